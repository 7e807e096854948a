// NumPy's linear algebra without Python: the C loops of its generalised ufuncs over stacks of
// matrices, which call the LAPACK that comes with it, and that library's own functions.
#pragma once

#include "rows.h"

#include <initializer_list>

namespace functrans {

enum class Lapack : int {
  cholesky, solve, det, slogdet, eigh, eigvalsh, eig, eigvals, svd_reduced, svd_full, svd_values,
  qr_raw, qr_reduced, qr_complete, kCount,
};

// One array of a stack: where it begins, the bytes of an element, and its core shape (rows and
// columns, one length, or nothing), C-contiguous.
struct Stack {
  const void* data;
  i64 item;
  i64 rank;
  i64 shape[2];
  i64 bytes() const { return item * (rank > 0 ? shape[0] : 1) * (rank > 1 ? shape[1] : 1); }
};

// Whether NumPy has the loop for that dtype of inputs (f32, f64, c64, c128).
bool has_lapack(Lapack function, i64 dtype);

// Runs it over a batch, several matrices at a time where there are several; `core` are the core
// dimensions in the order of the ufunc's signature. Matrices that cannot be factored become NaN.
void run_lapack(Lapack function, i64 dtype, i64 batch, std::initializer_list<i64> core,
                std::initializer_list<Stack> stacks);

// LU with partial pivoting of a column-major matrix.
using LuFactor = void (*)(const std::int64_t* m, const std::int64_t* n, void* a,
                          const std::int64_t* lda, std::int64_t* pivots, std::int64_t* info);

// Triangular systems, from cblas.h; alpha is a number for real matrices, its address for complex.
template <typename Alpha>
using TriangularSolver = void (*)(int order, int side, int uplo, int transpose, int diagonal,
                                  std::int64_t m, std::int64_t n, Alpha alpha, const void* a,
                                  std::int64_t lda, void* b, std::int64_t ldb);

struct Blas {
  // null where the symbols were not found
  LuFactor lu[4] = {};  // of f32, f64, c64, c128
  TriangularSolver<float> strsm = nullptr;
  TriangularSolver<double> dtrsm = nullptr;
  TriangularSolver<const void*> ctrsm = nullptr, ztrsm = nullptr;
  void (*set_threads)(int) = nullptr;
  int (*get_threads)() = nullptr;
};
const Blas& blas();

// One thread for each BLAS call, where we run several of them ourselves, and where the bits of a
// result may not depend on the number of threads.
class SerialBlas {
 public:
  SerialBlas();
  SerialBlas(const SerialBlas&) = delete;
  SerialBlas& operator=(const SerialBlas&) = delete;
  ~SerialBlas();
};

void init_lapack();  // at import, under the GIL; what is not found stays unavailable

}  // namespace functrans
