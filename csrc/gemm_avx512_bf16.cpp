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
constexpr int kVectorBytes = 64;

#include "gemm_micro.h"
#include "gemm_pack.h"

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

// Two rows of k, of R adjacent columns each, as pairs.
template <int R>
inline __attribute__((always_inline)) void join_rows(const u16* first, const u16* second, int* to) {
  for (int r = 0; r < R; ++r) {
    to[r] = static_cast<int>(first[r] | static_cast<u32>(second[r]) << 16);
  }
}

// k counts bfloat16; a missing last one is zero. Of 1024^3 packing took 13 % of the time before
// pairs were read where they are, and whole panels in vectors.
void pack_pairs(const void* source_start, i64 row, i64 step, i64 count, i64 k, int width, bool pad,
                void* packed_start) {
  const i64 pairs = (k + 1) / 2;
  for (i64 i = 0; i < count; i += width) {
    const i64 rows = count - i < width ? count - i : width;
    const int filled = pad ? width : static_cast<int>(rows);
    const u16* source = static_cast<const u16*>(source_start) + i * row;
    int* packed = static_cast<int*>(packed_start) + i * pairs;
    if (step == 1 && row % 2 == 0 && k % 2 == 0) {  // pairs are adjacent already
      pack_along_k(reinterpret_cast<const int*>(source), row / 2, rows, pairs, filled, packed);
      continue;
    }
    if (row == 1 && rows == width && (width == 32 || width == 12)) {
      i64 p = 0;
      for (; 2 * p + 1 < k; ++p) {
        const u16* first = source + 2 * p * step;
        if (width == 32) {
          join_rows<32>(first, first + step, packed + p * 32);
        } else {
          join_rows<12>(first, first + step, packed + p * 12);
        }
      }
      for (i64 r = 0; p < pairs && r < rows; ++r) packed[p * width + r] = source[2 * p * step + r];
      continue;
    }
    if (step == 1 && row != 1) {
      constexpr int piece = 64;
      alignas(64) int wide[64 * piece];
      for (i64 p = 0; p < pairs; p += piece) {
        const i64 taken = pairs - p < piece ? pairs - p : piece;
        for (i64 r = 0; r < rows; ++r) {
          const i64 left = k - 2 * p < 2 * taken ? k - 2 * p : 2 * taken;
          wide[r * piece + taken - 1] = 0;
          __builtin_memcpy(wide + r * piece, source + r * row + 2 * p, 2 * left);
        }
        pack_along_k(wide, piece, rows, taken, filled, packed + p * filled);
      }
      continue;
    }
    for (i64 p = 0; p < pairs; ++p) {
      const u16* first = source + 2 * p * step;
      int* to = packed + p * filled;
      if (2 * p + 1 == k) {
        for (i64 r = 0; r < rows; ++r) to[r] = first[r * row];
      } else if (row == 1) {
        const u16* second = first + step;
        for (i64 r = 0; r < rows; ++r) {
          to[r] = static_cast<int>(first[r] | static_cast<u32>(second[r]) << 16);
        }
      } else {
        const u16* second = first + step;
        for (i64 r = 0; r < rows; ++r) {
          to[r] = static_cast<int>(first[r * row] | static_cast<u32>(second[r * row]) << 16);
        }
      }
      for (i64 r = rows; r < filled; ++r) to[r] = 0;
    }
  }
}

constexpr PairKernels kPairs = {
    {12, 32, 2, 4, 4, block<Bf16Pairs, 12, 2>, nullptr, nullptr, nullptr,
     {finish<float, float>, finish<float, double>, finish<float, Bf16>, finish<float, F16>}},
    pack_pairs};

}  // namespace

const PairKernels* gemm_avx512_bf16() { return &kPairs; }

}  // namespace functrans

#ifdef __clang__
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#else
const functrans::PairKernels* functrans::gemm_avx512_bf16() { return nullptr; }
#endif
