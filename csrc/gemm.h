// Matrix products and convolutions for compiled programs, without Python and without the GIL.
//
// The structures are part of the interface of generated C: lowering/c pastes them as they are.
#pragma once

#include <cstdint>

namespace functrans {

using i64 = long long;

// What a and b hold, and what c holds. The sums of halves are float32, those of narrow integers
// int32 (they wrap), all others have the type of their terms.
enum GemmType : int {
  kF32, kF64, kBf16, kF16, kI8, kI16, kI32, kI64, kU8, kU16, kU32, kU64, kC64, kC128
};

extern "C" {

// Writes a[i0:i1, k0:k1] of one batch to dst, row by row (or column by column, a_fill_columns).
typedef void (*ft_gemm_fill)(void* arg, i64 batch, i64 i0, i64 i1, i64 k0, i64 k1, void* dst);

// Takes a finished tile of sums (row i at tile + (i - i0) * tile_row) instead of c.
typedef void (*ft_gemm_epilogue)(void* arg, i64 batch, i64 i0, i64 i1, i64 j0, i64 j1,
                                 const void* tile, i64 tile_row);

// c[i, j] (+)= alpha * sum over k of a[i, k] * b[k, j], over two batch axes. Strides count elements
// and may be anything for a and b; c may not overlap itself. A field left 0 means its default, but
// for alpha (1) and the sizes.
typedef struct ft_gemm {
  i64 batch0, batch1, m, n, k;
  const void* a;
  i64 a_batch0, a_batch1, a_row, a_col;
  const void* b;
  i64 b_batch0, b_batch1, b_row, b_col;
  void* c;
  i64 c_batch0, c_batch1, c_row, c_col;
  int in_type, out_type;
  double alpha;
  int accumulate;
  int a_fill_columns, b_fill_columns;
  ft_gemm_fill a_fill, b_fill;  // instead of a, b: their elements, made while they are packed
  void* fill_arg;
  ft_gemm_epilogue epilogue;
  void* epilogue_arg;
} ft_gemm;

// 0, or 2 when memory ran out. Exported by name too, for tests and benchmarks through ctypes.
__attribute__((visibility("default"))) int ft_gemm_run(const ft_gemm* g);

// Kernels of this instruction set from now on ("amx", "avx512", "avx2", "portable"), for tests; 0
// if this processor has not got it.
__attribute__((visibility("default"))) int ft_gemm_use(const char* name);

// These kernels of groups along k (gemm_isa.h) from now on, for tests; null for those of the
// processor.
__attribute__((visibility("default"))) void ft_gemm_use_groups(int in_type, const void* kernels);
}

void register_gemm_library();

}  // namespace functrans
