// Reductions of one square matrix by unitary similarity, and equations of triangular matrices, in
// double precision; row-major. T is double or std::complex<double>.
#pragma once

#include "rows.h"

namespace functrans {

// a -> upper Hessenberg, with the reflectors H_i = 1 - taus[i] v v* below its first subdiagonal.
// a = Q H Q*, Q = H_0 ... H_{n-2}. Rows of a are `row` elements apart; `work` has n elements.
template <typename T>
void hessenberg(i64 n, i64 row, T* a, T* taus, T* work);

// a (m x n) -> R with the reflectors H_i = 1 - taus[i] v v* below its diagonal; a = H_0 H_1 ... R.
// `work` has n elements.
template <typename T>
void reflected_qr(i64 m, i64 n, T* a, T* taus, T* work);

// A Hermitian matrix, of which the lower triangle is read -> diagonal d and subdiagonal e, both
// real, with the reflectors below the subdiagonal of a. `work` has 2 n elements.
template <typename T>
void tridiagonal(i64 n, T* a, double* d, double* e, T* taus, T* work);

// The distance of rows in which the Schur form is made: an odd number of cache lines. 128 complex
// numbers are a multiple of 2048 bytes, so that columns would stand in two sets of the first cache.
template <typename T>
i64 schur_row(i64 n);

// a -> its Schur form, and z with a = z T z* where z is not null. Real matrices keep blocks of 2 x 2
// for complex pairs, with equal diagonals and off-diagonals of opposite signs. `work` has
// 2 n (schur_row(n) + 1) elements. False where the iteration does not converge, as it does for NaN.
template <typename T>
bool schur(i64 n, T* a, T* z, T* work);

// x (m x n) with t x + x s = f, t and s upper triangles, or with their transposes where `transposed`.
// With `strict` only what is below the diagonal of x and of the equation counts, and the rest of x is
// zero. `work` has m * m + m * n elements.
template <typename T>
void triangular_sylvester(i64 m, i64 n, bool transposed, bool strict, const T* t, const T* s,
                          const T* f, T* x, T* work);

// The upper triangle x with x x = t that has the principal roots on its diagonal. `work`: n * n.
template <typename T>
void triangular_root(i64 n, const T* t, T* x, T* work);

}  // namespace functrans
