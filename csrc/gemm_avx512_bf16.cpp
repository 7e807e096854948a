// Kernels of matrix products for AVX-512 with dot products of bfloat16.
#include "gemm_isa.h"

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#ifdef __clang__
#pragma clang attribute push( \
    __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx2,fma,bmi2"))), \
    apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx2,fma,bmi2")
#endif

namespace functrans {
namespace {

#define FUNCTRANS_AVX512
#define FUNCTRANS_AVX512_BF16
constexpr int kVectorBytes = 64;

#include "gemm_micro.h"
#include "gemm_pack.h"
#include "gemm_groups.h"

struct Bf16Pairs {
  using Element = int;
  using Sum = float;
  using ElementVector = Vector<int>::type;
  using SumVector = Vector<float>::type;
  static constexpr int k_step = 2;
  static inline __attribute__((always_inline)) SumVector add(ElementVector x, ElementVector y,
                                                             SumVector sum) {
    return (SumVector)_mm512_dpbf16_ps((__m512)sum, (__m512bh)x, (__m512bh)y);
  }
};

// k counts bfloat16; a missing last one is zero.
void pack_pairs(const void* source, i64 row, i64 step, i64 count, i64 k, int width, bool pad,
                void* packed) {
  const i64 pairs = (k + 1) / 2;
  for (i64 i = 0; i < count; i += width) {
    const i64 rows = count - i < width ? count - i : width;
    pack_group_panel(static_cast<const u16*>(source) + i * row, row, step, rows, k,
                     pad ? width : static_cast<int>(rows), static_cast<int*>(packed) + i * pairs);
  }
}

constexpr GroupKernels kPairs = {
    {12, 32, 2, 4, 4, block<Bf16Pairs, 12, 2>, nullptr, nullptr, nullptr,
     {finish<float, float>, finish<float, double>, finish_bf16, finish<float, F16>}},
    pack_pairs};

}  // namespace

const GroupKernels* gemm_avx512_bf16() { return &kPairs; }

}  // namespace functrans

#ifdef __clang__
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#else
const functrans::GroupKernels* functrans::gemm_avx512_bf16() { return nullptr; }
#endif
