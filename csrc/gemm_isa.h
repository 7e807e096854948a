// What one instruction set offers to the driver of matrix products (gemm.cpp).
#pragma once

#include "gemm.h"

namespace functrans {

// c[m, n] = alpha * sums (+ c), converted to the type of c.
using Finish = void (*)(i64 m, i64 n, const void* sums, i64 sums_row, double alpha, bool accumulate,
                        void* c, i64 c_row, i64 c_col);

// The kernels of one kind of sum. An element is what one multiply-add takes: a number, or a pair of
// bfloat16 along k (k_step 2). Packed panels hold `mr` rows of a (the last one only as many as are
// left) or `nr` columns of b (the last one padded by zeros), k after k.
constexpr i64 kRowsTile = 16384;  // with four rows of b it stays in the first-level cache

struct Kernels {
  int mr, nr, k_step, element_size, sum_size;
  // c[m, n] (+)= a * b for packed a and b; k counts elements.
  void (*block)(i64 m, i64 n, i64 k, const void* a, const void* b, void* c, i64 c_row,
                bool accumulate);
  // The same with a anywhere and b in rows of adjacent elements; null if there is none.
  void (*direct)(i64 m, i64 n, i64 k, const void* a, i64 a_row, i64 a_col, const void* b, i64 b_row,
                 void* c, i64 c_row, bool accumulate);
  // y[n] (+)= x[k] * b[k, n] with b in rows of adjacent elements; n elements are kRowsTile bytes.
  void (*vector_rows)(i64 n, i64 k, const void* x, i64 x_step, const void* b, i64 b_row, void* y,
                      bool accumulate);
  // y[n] (+)= b[n, k] * x[k] with b and x in rows of adjacent elements.
  void (*vector_dots)(i64 n, i64 k, const void* x, const void* b, i64 b_row, void* y, i64 y_step,
                      bool accumulate);
  Finish finish[12];  // by GemmType of c; null where sums do not become that
};

// Packs `count` rows of length k into panels of `width`; strides in elements of the source.
using Pack = void (*)(const void* source, i64 row, i64 step, i64 count, i64 k, int width, bool pad,
                      void* packed);

struct Isa {
  const char* name;
  // By GemmType; complex types have none.
  const Kernels* kernels[12];
  Pack pack[12];
};

// Dot products of pairs of bfloat16, in the place of float32 kernels for larger products.
struct PairKernels {
  Kernels kernels;
  Pack pack;
};

// Null where the compiler cannot make them. They ask nothing of the processor.
const Isa* gemm_avx512();
const PairKernels* gemm_avx512_bf16();
const Isa* gemm_avx2();
const Isa* gemm_portable();

}  // namespace functrans
