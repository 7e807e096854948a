// Kernels of matrix products for AVX-512 with dot products of bfloat16.
#include "gemm_isa.h"

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#define FUNCTRANS_ISA "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx2,fma,bmi2"
#include "isa_begin.h"

namespace functrans {
namespace {

#define FUNCTRANS_AVX512
#define FUNCTRANS_AVX512_BF16
constexpr int kVectorBytes = 64;

#include "gemm_micro.h"
#include "gemm_pack.h"
#include "gemm_groups.h"
#include "gemm_few.h"

struct Bf16Pairs {
  using Element = int;
  using Sum = float;
  using ElementVector = Vector<int>::type;
  using SumVector = Vector<float>::type;
  static constexpr int k_step = 2;
  static constexpr bool shifted = false;
  using Stored = int;
  static inline __attribute__((always_inline)) ElementVector load_b(const int* p) {
    return load(p);
  }
  static inline __attribute__((always_inline)) SumVector add(ElementVector x, ElementVector y,
                                                             SumVector sum) {
    return (SumVector)_mm512_dpbf16_ps((__m512)sum, (__m512bh)x, (__m512bh)y);
  }
};

struct PairDots {
  using Number = u16;
  using Sum = float;
  using Data = __m512i;
  using SumVector = Vector<float>::type;
  static constexpr int kNumbers = 32;
  static constexpr bool kShift = false;
  static inline __attribute__((always_inline)) Data few(const u16* p, int count) {
    if (count == kNumbers) return _mm512_loadu_si512(p);
    return _mm512_maskz_loadu_epi16((1u << count) - 1, p);
  }
  static inline __attribute__((always_inline)) Data many(const u16* p, int count) {
    return few(p, count);
  }
  static inline __attribute__((always_inline)) SumVector add(Data x, Data y, SumVector sum) {
    return (SumVector)_mm512_dpbf16_ps((__m512)sum, (__m512bh)x, (__m512bh)y);
  }
};

constexpr GroupKernels kPairs = {
    {12, 32, 2, 4, 4, block<Bf16Pairs, 12, 2>, nullptr, nullptr, nullptr,
     {finish<float, float>, finish<float, double>, finish_bf16, finish<float, F16>}},
    pack_groups<u16>,
    1 << 17,  // 64 of 64^3: 197 as sums of float32, and 254 so; of 48^3 164 and 138
    dots_of_few<PairDots>};

}  // namespace

const GroupKernels* gemm_avx512_bf16() { return &kPairs; }

}  // namespace functrans

#include "isa_end.h"
#else
const functrans::GroupKernels* functrans::gemm_avx512_bf16() { return nullptr; }
#endif
