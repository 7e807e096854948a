// Factors and systems of one large matrix, in blocks: products by our own kernels on our own threads,
// blocks on the diagonal by LAPACK on one. Blocks depend on sizes alone, so that the bits of a result
// do not depend on the number of threads; and no second pool of threads waits beside ours.
#pragma once

#include "row_isa.h"

namespace functrans {

constexpr i64 kBlockedMatrix = 256;  // rows from which a matrix is taken in blocks

// Each returns false when memory ran out. Matrices are row-major.

// Whether LAPACK and BLAS have what the functions below are made of.
bool can_block();

// The lower factor of a Hermitian matrix, NaN where there is none; above the diagonal is anything.
bool blocked_cholesky(i64 dtype, i64 n, const void* a, void* out);

// op(a) x = b with x of n x k, or x op(a) = b with x of k x n.
bool blocked_substitution(i64 dtype, const TriangularKind& kind, bool conjugated, i64 n, i64 k,
                          const void* a, const void* b, void* x);

// Factors with partial pivoting in one matrix, and the row that each row was exchanged with.
bool blocked_lu(i64 dtype, i64 m, i64 n, const void* a, void* factors, std::int32_t* pivots);

}  // namespace functrans
