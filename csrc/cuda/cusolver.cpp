// Dense linear algebra by cuSOLVER and cuBLAS, on stacks of matrices whose columns are contiguous.
// A stack goes to one call where the library has one for it, else to a call for each matrix.
#include "cuda/libraries.h"

#include <map>

namespace functrans::cuda {
namespace {

using Handle = void*;
constexpr int kSolverNoMemory = 2;
constexpr int kBlasNoMemory = 3;
constexpr int kUpper = 1;
constexpr int kLargestJacobi = 32;  // rows of the matrices that batched Jacobi methods are for

// Four functions each: of float32, float64, complex64 and complex128.
#define FT_SOLVER_FUNCTIONS(X)                                                                    \
  X(potrf_size, "potrf_bufferSize", "potrf_bufferSize", (Handle, int, int, void*, int, int*))      \
  X(potrf, "potrf", "potrf", (Handle, int, int, void*, int, void*, int, int*))                     \
  X(potrf_batched, "potrfBatched", "potrfBatched", (Handle, int, int, void*, int, int*, int))      \
  X(getrf_size, "getrf_bufferSize", "getrf_bufferSize", (Handle, int, int, void*, int, int*))      \
  X(getrf, "getrf", "getrf", (Handle, int, int, void*, int, void*, int*, int*))                    \
  X(laswp, "laswp", "laswp", (Handle, int, void*, int, int, int, const int*, int))                 \
  X(geqrf_size, "geqrf_bufferSize", "geqrf_bufferSize", (Handle, int, int, void*, int, int*))      \
  X(geqrf, "geqrf", "geqrf", (Handle, int, int, void*, int, void*, void*, int, int*))              \
  X(orgqr_size, "orgqr_bufferSize", "ungqr_bufferSize",                                           \
    (Handle, int, int, int, void*, int, void*, int*))                                             \
  X(orgqr, "orgqr", "ungqr", (Handle, int, int, int, void*, int, void*, void*, int, int*))         \
  X(syevd_size, "syevd_bufferSize", "heevd_bufferSize",                                           \
    (Handle, int, int, int, void*, int, void*, int*))                                             \
  X(syevd, "syevd", "heevd", (Handle, int, int, int, void*, int, void*, void*, int, int*))         \
  X(syevj_size, "syevjBatched_bufferSize", "heevjBatched_bufferSize",                             \
    (Handle, int, int, int, void*, int, void*, int*, void*, int))                                 \
  X(syevj, "syevjBatched", "heevjBatched",                                                        \
    (Handle, int, int, int, void*, int, void*, void*, int, int*, void*, int))                     \
  X(gesvdj_size, "gesvdj_bufferSize", "gesvdj_bufferSize",                                        \
    (Handle, int, int, int, int, void*, int, void*, void*, int, void*, int, int*, void*))         \
  X(gesvdj, "gesvdj", "gesvdj",                                                                   \
    (Handle, int, int, int, int, void*, int, void*, void*, int, void*, int, void*, int, int*,     \
     void*))                                                                                      \
  X(gesvdj_batched_size, "gesvdjBatched_bufferSize", "gesvdjBatched_bufferSize",                  \
    (Handle, int, int, int, void*, int, void*, void*, int, void*, int, int*, void*, int))         \
  X(gesvdj_batched, "gesvdjBatched", "gesvdjBatched",                                             \
    (Handle, int, int, int, void*, int, void*, void*, int, void*, int, void*, int, int*, void*,   \
     int))
#define FT_BLAS_FUNCTIONS(X)                                                                      \
  X(trsm, "trsm_v2", "trsm_v2",                                                                   \
    (Handle, int, int, int, int, int, int, const void*, void*, int, void*, int))                  \
  X(trsm_batched, "trsmBatched", "trsmBatched",                                                   \
    (Handle, int, int, int, int, int, int, const void*, void*, int, void*, int, int))             \
  X(getrf_batched, "getrfBatched", "getrfBatched", (Handle, int, void*, int, int*, int*, int))

struct {
  int (*create)(Handle*);
  int (*set_stream)(Handle, CUstream);
  int (*create_eigen_options)(void**);
  int (*create_singular_options)(void**);
#define X(name, real, complex, parameters) std::array<int(*) parameters, 4> name;
  FT_SOLVER_FUNCTIONS(X)
#undef X
} solver;

struct {
  int (*create)(Handle*);
  int (*set_stream)(Handle, CUstream);
#define X(name, real, complex, parameters) std::array<int(*) parameters, 4> name;
  FT_BLAS_FUNCTIONS(X)
#undef X
} blas;

#define FT_SOLVER(call, device) \
  check_library(solver.call, "cuSOLVER: " #call, kSolverNoMemory, device)
#define FT_BLAS(call, device) check_library(blas.call, "cuBLAS: " #call, kBlasNoMemory, device)

struct Handles {
  Handle solver = nullptr;
  Handle blas = nullptr;
  void* eigen_options = nullptr;
  void* singular_options = nullptr;
};

Handles& handles_of(const Device& device) {
  static std::map<int, Handles> handles;
  static std::mutex mutex;
  std::lock_guard<std::mutex> lock(mutex);
  return handles[device.ordinal];
}

Handle solver_of(const Device& device) {
  require_library(solver.gesvdj_batched[3] != nullptr, "cuSOLVER", device);
  Handles& handles = handles_of(device);
  if (handles.solver == nullptr) {
    FT_SOLVER(create(&handles.solver), device);
    FT_SOLVER(set_stream(handles.solver, device.compute), device);
  }
  return handles.solver;
}

Handle blas_of(const Device& device) {
  require_library(blas.getrf_batched[3] != nullptr, "cuBLAS", device);
  Handles& handles = handles_of(device);
  if (handles.blas == nullptr) {
    FT_BLAS(create(&handles.blas), device);
    FT_BLAS(set_stream(handles.blas, device.compute), device);
  }
  return handles.blas;
}

constexpr std::array<std::int64_t, 4> kBytes = {4, 8, 8, 16};

// What all steps here begin with: the dtype and the number of matrices.
struct Stack {
  explicit Stack(const LibraryCall& c)
      : call(c), type(static_cast<std::size_t>(c.number(0))), count(c.number(1)),
        bytes(kBytes[type]), real_bytes(type % 2 == 0 ? 4 : 8) {}

  // Matrix i of the stack that pointer p is, of so many elements each.
  void* at(std::size_t p, std::int64_t i, std::int64_t elements) const {
    return address(call.pointer(p) + static_cast<CUdeviceptr>(i * elements * bytes));
  }
  void* real_at(std::size_t p, std::int64_t i, std::int64_t elements) const {
    return address(call.pointer(p) + static_cast<CUdeviceptr>(i * elements * real_bytes));
  }
  int* int_at(std::size_t p, std::int64_t i, std::int64_t elements = 1) const {
    return reinterpret_cast<int*>(call.pointer(p) + static_cast<CUdeviceptr>(i * elements * 4));
  }
  void copy(void* to, const void* from, std::int64_t elements) const {
    if (to == from) return;
    FT_CU(MemcpyDtoDAsync(reinterpret_cast<CUdeviceptr>(to), reinterpret_cast<CUdeviceptr>(from),
                          static_cast<std::size_t>(elements * bytes), call.device.compute));
  }
  std::size_t work(int elements) const { return static_cast<std::size_t>(elements * bytes); }

  const LibraryCall& call;
  std::size_t type;
  std::int64_t count, bytes, real_bytes;
};

// The addresses of the matrices of a stack, on the device.
class Addresses {
 public:
  Addresses(const Stack& s, std::size_t pointer, std::int64_t elements)
      : work_(s.call.device, static_cast<std::size_t>(s.count) * sizeof(CUdeviceptr)) {
    std::vector<CUdeviceptr> table;
    for (std::int64_t i = 0; i < s.count; ++i) {
      table.push_back(reinterpret_cast<CUdeviceptr>(s.at(pointer, i, elements)));
    }
    FT_CU(MemcpyHtoDAsync(work_.pointer(), table.data(), table.size() * sizeof(CUdeviceptr),
                          s.call.device.compute));
  }
  void* pointer() const { return address(work_.pointer()); }

 private:
  Workspace work_;
};

// numbers: type, count, n; pointers: a, factor, info
void potrf(const LibraryCall& call) {
  const Stack s(call);
  const int n = call.small(2);
  const std::int64_t size = std::int64_t{n} * n;
  const Handle handle = solver_of(call.device);
  s.copy(s.at(1, 0, 0), s.at(0, 0, 0), s.count * size);
  if (s.count > 1) {
    const Addresses matrices(s, 1, size);
    FT_SOLVER(potrf_batched[s.type](handle, kUpper, n, matrices.pointer(), n, s.int_at(2, 0),
                                    static_cast<int>(s.count)),
              call.device);
    return;
  }
  int length = 0;
  void* a = s.at(1, 0, size);
  FT_SOLVER(potrf_size[s.type](handle, kUpper, n, a, n, &length), call.device);
  const Workspace work(call.device, s.work(length));
  FT_SOLVER(potrf[s.type](handle, kUpper, n, a, n, address(work.pointer()), length, s.int_at(2, 0)),
            call.device);
}

// numbers: type, count, side, triangle, operation, unit, m, n; pointers: a, b, x
void trsm(const LibraryCall& call) {
  static const double one[2] = {1, 0};
  static const float one_f[2] = {1, 0};
  const Stack s(call);
  const int side = call.small(2), m = call.small(6), n = call.small(7);
  const int order = side == 0 ? m : n;
  const std::int64_t size = std::int64_t{m} * n, square = std::int64_t{order} * order;
  const void* alpha = s.type % 2 == 0 ? static_cast<const void*>(one_f) : one;
  const Handle handle = blas_of(call.device);
  s.copy(s.at(2, 0, 0), s.at(1, 0, 0), s.count * size);
  if (s.count > 1) {
    const Addresses a(s, 0, square), x(s, 2, size);
    FT_BLAS(trsm_batched[s.type](handle, side, call.small(3), call.small(4), call.small(5), m, n,
                                 alpha, a.pointer(), order, x.pointer(), m,
                                 static_cast<int>(s.count)),
            call.device);
    return;
  }
  FT_BLAS(trsm[s.type](handle, side, call.small(3), call.small(4), call.small(5), m, n, alpha,
                       s.at(0, 0, square), order, s.at(2, 0, size), m),
          call.device);
}

// numbers: type, count, m, n; pointers: a, factors, pivots (from 1)
void getrf(const LibraryCall& call) {
  const Stack s(call);
  const int m = call.small(2), n = call.small(3);
  const std::int64_t size = std::int64_t{m} * n;
  const Workspace info(call.device, static_cast<std::size_t>(s.count) * 4);
  s.copy(s.at(1, 0, 0), s.at(0, 0, 0), s.count * size);
  if (s.count > 1 && m == n) {
    const Addresses matrices(s, 1, size);
    FT_BLAS(getrf_batched[s.type](blas_of(call.device), n, matrices.pointer(), n, s.int_at(2, 0),
                                  static_cast<int*>(address(info.pointer())),
                                  static_cast<int>(s.count)),
            call.device);
    return;
  }
  const Handle handle = solver_of(call.device);
  int length = 0;
  FT_SOLVER(getrf_size[s.type](handle, m, n, s.at(1, 0, size), m, &length), call.device);
  const Workspace work(call.device, s.work(length));
  for (std::int64_t i = 0; i < s.count; ++i) {
    FT_SOLVER(getrf[s.type](handle, m, n, s.at(1, i, size), m, address(work.pointer()),
                            s.int_at(2, i, std::min(m, n)),
                            static_cast<int*>(address(info.pointer()))),
              call.device);
  }
}

// numbers: type (1), count, rows, exchanges; pointers: values, pivots (from 1), values exchanged
void laswp(const LibraryCall& call) {
  const Stack s(call);
  const int m = call.small(2), k = call.small(3);
  const Handle handle = solver_of(call.device);
  s.copy(s.at(2, 0, 0), s.at(0, 0, 0), s.count * m);
  for (std::int64_t i = 0; i < s.count; ++i) {
    FT_SOLVER(laswp[s.type](handle, 1, s.at(2, i, m), m, 1, k, s.int_at(1, i, k), 1), call.device);
  }
}

// numbers: type, count, m, n; pointers: a, factors, scales
void geqrf(const LibraryCall& call) {
  const Stack s(call);
  const int m = call.small(2), n = call.small(3);
  const std::int64_t size = std::int64_t{m} * n;
  const Handle handle = solver_of(call.device);
  const Workspace info(call.device, 4);
  s.copy(s.at(1, 0, 0), s.at(0, 0, 0), s.count * size);
  int length = 0;
  FT_SOLVER(geqrf_size[s.type](handle, m, n, s.at(1, 0, size), m, &length), call.device);
  const Workspace work(call.device, s.work(length));
  for (std::int64_t i = 0; i < s.count; ++i) {
    FT_SOLVER(geqrf[s.type](handle, m, n, s.at(1, i, size), m, s.at(2, i, std::min(m, n)),
                            address(work.pointer()), length,
                            static_cast<int*>(address(info.pointer()))),
              call.device);
  }
}

// numbers: type, count, m, n, columns of q; pointers: factors, scales, q
void orgqr(const LibraryCall& call) {
  const Stack s(call);
  const int m = call.small(2), n = call.small(3), columns = call.small(4), k = std::min(m, n);
  const Handle handle = solver_of(call.device);
  const Workspace info(call.device, 4);
  int length = 0;
  FT_SOLVER(orgqr_size[s.type](handle, m, columns, k, s.at(2, 0, 0), m, s.at(1, 0, 0), &length),
            call.device);
  const Workspace work(call.device, s.work(length));
  for (std::int64_t i = 0; i < s.count; ++i) {
    void* q = s.at(2, i, std::int64_t{m} * columns);
    s.copy(q, s.at(0, i, std::int64_t{m} * n), std::int64_t{m} * k);
    FT_SOLVER(orgqr[s.type](handle, m, columns, k, q, m, s.at(1, i, k), address(work.pointer()),
                            length, static_cast<int*>(address(info.pointer()))),
              call.device);
  }
}

// numbers: type, count, n, vectors; pointers: a, vectors (or what is left of a), values, info
void syevd(const LibraryCall& call) {
  const Stack s(call);
  const int n = call.small(2), vectors = call.small(3);
  const std::int64_t size = std::int64_t{n} * n;
  const Handle handle = solver_of(call.device);
  s.copy(s.at(1, 0, 0), s.at(0, 0, 0), s.count * size);
  int length = 0;
  if (s.count > 1 && n <= kLargestJacobi) {
    void*& options = handles_of(call.device).eigen_options;
    if (options == nullptr) FT_SOLVER(create_eigen_options(&options), call.device);
    const int count = static_cast<int>(s.count);
    FT_SOLVER(syevj_size[s.type](handle, vectors, kUpper, n, s.at(1, 0, size), n,
                                 s.real_at(2, 0, n), &length, options, count),
              call.device);
    const Workspace work(call.device, s.work(length));
    FT_SOLVER(syevj[s.type](handle, vectors, kUpper, n, s.at(1, 0, size), n, s.real_at(2, 0, n),
                            address(work.pointer()), length, s.int_at(3, 0), options, count),
              call.device);
    return;
  }
  FT_SOLVER(syevd_size[s.type](handle, vectors, kUpper, n, s.at(1, 0, size), n, s.real_at(2, 0, n),
                               &length),
            call.device);
  const Workspace work(call.device, s.work(length));
  for (std::int64_t i = 0; i < s.count; ++i) {
    FT_SOLVER(syevd[s.type](handle, vectors, kUpper, n, s.at(1, i, size), n, s.real_at(2, i, n),
                            address(work.pointer()), length, s.int_at(3, i)),
              call.device);
  }
}

// numbers: type, count, m, n, vectors, thin
// pointers: a, u, values, v (conjugated and transposed: vh), info
// Matrices of a stack that goes to one call have all columns of u and v: they are not thin.
void gesvdj(const LibraryCall& call) {
  const Stack s(call);
  const int m = call.small(2), n = call.small(3), vectors = call.small(4), thin = call.small(5);
  const std::int64_t size = std::int64_t{m} * n;
  const Handle handle = solver_of(call.device);
  void*& options = handles_of(call.device).singular_options;
  if (options == nullptr) FT_SOLVER(create_singular_options(&options), call.device);
  const int k = std::min(m, n), left = thin ? k : m, right = thin ? k : n;
  int length = 0;
  if (s.count > 1 && std::max(m, n) <= kLargestJacobi && !thin) {
    const Workspace spoiled(call.device, static_cast<std::size_t>(s.count * size * s.bytes));
    void* a = address(spoiled.pointer());
    s.copy(a, s.at(0, 0, 0), s.count * size);
    const int count = static_cast<int>(s.count);
    FT_SOLVER(gesvdj_batched_size[s.type](handle, vectors, m, n, a, m, s.real_at(2, 0, k),
                                          s.at(1, 0, 0), m, s.at(3, 0, 0), n, &length, options,
                                          count),
              call.device);
    const Workspace work(call.device, s.work(length));
    FT_SOLVER(gesvdj_batched[s.type](handle, vectors, m, n, a, m, s.real_at(2, 0, k),
                                     s.at(1, 0, 0), m, s.at(3, 0, 0), n, address(work.pointer()),
                                     length, s.int_at(4, 0), options, count),
              call.device);
    return;
  }
  const Workspace spoiled(call.device, static_cast<std::size_t>(size * s.bytes));
  void* a = address(spoiled.pointer());
  FT_SOLVER(gesvdj_size[s.type](handle, vectors, thin, m, n, a, m, s.real_at(2, 0, k),
                                s.at(1, 0, 0), m, s.at(3, 0, 0), n, &length, options),
            call.device);
  const Workspace work(call.device, s.work(length));
  for (std::int64_t i = 0; i < s.count; ++i) {
    s.copy(a, s.at(0, i, size), size);
    FT_SOLVER(gesvdj[s.type](handle, vectors, thin, m, n, a, m, s.real_at(2, i, k),
                             s.at(1, i, std::int64_t{m} * left), m,
                             s.at(3, i, std::int64_t{n} * right), n, address(work.pointer()),
                             length, s.int_at(4, i), options),
              call.device);
  }
}

constexpr std::array<const char*, 4> kLetters = {"S", "D", "C", "Z"};

template <typename Function>
void find_four(Symbols& symbols, const std::string& prefix, const char* real, const char* complex,
               std::array<Function, 4>& found) {
  for (std::size_t i = 0; i < 4; ++i) {
    const std::string symbol = prefix + kLetters[i] + (i < 2 ? real : complex);
    found[i] = reinterpret_cast<Function>(symbols.find(symbol.c_str()));
  }
}

template <typename Function>
void find_one(Symbols& symbols, const char* symbol, Function& found) {
  found = reinterpret_cast<Function>(symbols.find(symbol));
}

}  // namespace

void open_cusolver(Symbols& symbols) {
  find_one(symbols, "cusolverDnCreate", solver.create);
  find_one(symbols, "cusolverDnSetStream", solver.set_stream);
  find_one(symbols, "cusolverDnCreateSyevjInfo", solver.create_eigen_options);
  find_one(symbols, "cusolverDnCreateGesvdjInfo", solver.create_singular_options);
#define X(name, real, complex, parameters) \
  find_four(symbols, "cusolverDn", real, complex, solver.name);
  FT_SOLVER_FUNCTIONS(X)
#undef X
}

void open_cublas(Symbols& symbols) {
  find_one(symbols, "cublasCreate_v2", blas.create);
  find_one(symbols, "cublasSetStream_v2", blas.set_stream);
#define X(name, real, complex, parameters) find_four(symbols, "cublas", real, complex, blas.name);
  FT_BLAS_FUNCTIONS(X)
#undef X
}

const std::vector<LibraryFunction> cusolver_functions = {
    {"potrf", 3, 3, potrf}, {"trsm", 8, 3, trsm},   {"getrf", 4, 3, getrf}, {"laswp", 4, 3, laswp},
    {"geqrf", 4, 3, geqrf}, {"orgqr", 5, 3, orgqr}, {"syevd", 4, 4, syevd}, {"gesvdj", 6, 5, gesvdj}};

}  // namespace functrans::cuda
