#include "lapack_loops.h"

#include "common.h"

#include <algorithm>
#include <cstdio>
#include <mutex>

#include <dlfcn.h>

namespace functrans {
namespace {

constexpr int kFunctions = static_cast<int>(Lapack::kCount);
constexpr const char* kNames[kFunctions] = {
    "cholesky_lo", "solve", "det", "slogdet", "eigh_lo", "eigvalsh_lo", "eig", "eigvals", "svd_s",
    "svd_f", "svd", "qr_r_raw", "qr_reduced", "qr_complete"};
constexpr i64 kPieceBytes = 4096;  // of matrices: a thread does not start for less

struct GufuncLoop {
  PyUFuncGenericFunction function = nullptr;
  void* data = nullptr;
};
GufuncLoop loops[kFunctions][4];  // by f32, f64, c64, c128
Blas found;

int column_of(i64 dtype) {
  switch (dtype) {
    case kF32: return 0;
    case kF64: return 1;
    case kC64: return 2;
    case kC128: return 3;
    default: return -1;
  }
}

void find_loops(PyUFuncObject* ufunc, GufuncLoop* row) {
  constexpr char types[4] = {NPY_FLOAT, NPY_DOUBLE, NPY_CFLOAT, NPY_CDOUBLE};
  for (int loop = 0; loop < ufunc->ntypes; ++loop) {
    const char* signature = ufunc->types + loop * ufunc->nargs;
    for (int column = 0; column < 4; ++column) {
      const bool fits = std::all_of(signature, signature + ufunc->nin,
                                    [&](char type) { return type == types[column]; });
      if (!fits || row[column].function != nullptr) continue;
      row[column] = {ufunc->functions[loop],
                     ufunc->data == nullptr ? nullptr : const_cast<void*>(ufunc->data[loop])};
    }
  }
}

template <typename Function>
void find_symbol(void* handle, const char* name, bool ilp64, Function& function) {
  // the names under which NumPy's wheels, and others, carry OpenBLAS
  for (const char* prefix : {"scipy_", ""}) {
    char full[64];
    std::snprintf(full, sizeof full, "%s%s%s", prefix, name, ilp64 ? "64_" : "");
    if (void* symbol = dlsym(handle, full)) {
      function = reinterpret_cast<Function>(symbol);
      return;
    }
  }
}

// The extension module was linked with the library: its handle finds the library's symbols.
void find_blas(PyObject* module) {
  Ref ilp64(PyObject_GetAttrString(module, "_ilp64"));
  Ref file(PyObject_GetAttrString(module, "__file__"));
  const char* path = file ? PyUnicode_AsUTF8(file.get()) : nullptr;
  if (!ilp64 || path == nullptr || ilp64.get() != Py_True) return;
  void* handle = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
  if (handle == nullptr) return;
  find_symbol(handle, "sgetrf_", true, found.lu[0]);
  find_symbol(handle, "dgetrf_", true, found.lu[1]);
  find_symbol(handle, "cgetrf_", true, found.lu[2]);
  find_symbol(handle, "zgetrf_", true, found.lu[3]);
  find_symbol(handle, "cblas_strsm", true, found.strsm);
  find_symbol(handle, "cblas_dtrsm", true, found.dtrsm);
  find_symbol(handle, "cblas_ctrsm", true, found.ctrsm);
  find_symbol(handle, "cblas_ztrsm", true, found.ztrsm);
  find_symbol(handle, "openblas_set_num_threads", true, found.set_threads);
  find_symbol(handle, "openblas_get_num_threads", true, found.get_threads);
}

}  // namespace

void init_lapack() {
  Ref module(PyImport_ImportModule("numpy.linalg._umath_linalg"));
  if (module) {
    for (int i = 0; i < kFunctions; ++i) {
      Ref ufunc(PyObject_GetAttrString(module.get(), kNames[i]));
      if (ufunc && PyObject_TypeCheck(ufunc.get(), &PyUFunc_Type)) {
        find_loops(reinterpret_cast<PyUFuncObject*>(ufunc.get()), loops[i]);
        ufunc.release();  // its loops are used as long as the process lives
      }
      PyErr_Clear();
    }
    find_blas(module.get());
  }
  PyErr_Clear();
}

bool has_lapack(Lapack function, i64 dtype) {
  const int column = column_of(dtype);
  return column >= 0 && loops[static_cast<int>(function)][column].function != nullptr;
}

void run_lapack(Lapack function, i64 dtype, i64 batch, std::initializer_list<i64> core,
                std::initializer_list<Stack> stacks) {
  const GufuncLoop& loop = loops[static_cast<int>(function)][column_of(dtype)];
  npy_intp steps[16];
  i64 count = 0, bytes = 0;
  for (const Stack& stack : stacks) {
    steps[count++] = static_cast<npy_intp>(stack.bytes());
    bytes += stack.bytes();
  }
  for (const Stack& stack : stacks) {
    if (stack.rank == 2) steps[count++] = static_cast<npy_intp>(stack.item * stack.shape[1]);
    if (stack.rank >= 1) steps[count++] = static_cast<npy_intp>(stack.item);
  }
  const auto run = [&](i64 begin, i64 end) {
    npy_intp dimensions[4] = {static_cast<npy_intp>(end - begin)};
    std::copy(core.begin(), core.end(), dimensions + 1);
    char* pointers[4];
    char** pointer = pointers;
    for (const Stack& stack : stacks) {
      *pointer++ = static_cast<char*>(const_cast<void*>(stack.data)) + begin * stack.bytes();
    }
    npy_intp own_steps[16];  // loops may change them
    std::copy_n(steps, count, own_steps);
    loop.function(pointers, dimensions, own_steps, loop.data);
  };
  if (batch == 1) return run(0, 1);
  SerialBlas serial;
  parallel_pieces(batch, std::max<i64>(1, kPieceBytes / std::max<i64>(1, bytes)), run);
}

const Blas& blas() { return found; }

namespace {
std::mutex serial_mutex;
int serial_calls = 0, usual_threads = 0;
}  // namespace

// Calls of several threads may overlap: the first one in lowers the number, the last one out sets it
// back.
SerialBlas::SerialBlas() {
  if (found.get_threads == nullptr || found.set_threads == nullptr) return;
  const std::lock_guard<std::mutex> lock(serial_mutex);
  if (serial_calls++ > 0) return;
  usual_threads = found.get_threads();
  if (usual_threads > 1) found.set_threads(1);
}

SerialBlas::~SerialBlas() {
  if (found.get_threads == nullptr || found.set_threads == nullptr) return;
  const std::lock_guard<std::mutex> lock(serial_mutex);
  if (--serial_calls == 0 && usual_threads > 1) found.set_threads(usual_threads);
}

}  // namespace functrans
