// Library functions: products of few rows with a matrix of 8-bit weights, which are converted in
// registers. Converting 4096 x 4096 of them in memory first takes longer than the product.
#include "library.h"
#include "rows.h"

#include <algorithm>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace functrans {
namespace {

constexpr i64 kLanes = 16;
constexpr i64 kDepth = 32;  // rows of weights that a tile takes at a time: they stay in L1
constexpr i64 kAhead = 256;  // bytes: rows of weights are read side by side, too many to foresee
constexpr i64 kPiece = 512;  // columns of weights that a thread takes at a time

struct Product {
  i64 m, k, n;
  const float* x;
  const std::uint8_t* w;
  float* out;
};

using Columns = void (*)(const Product& p, i64 begin, i64 end);

typedef float Floats __attribute__((vector_size(64)));
typedef std::int32_t Ints __attribute__((vector_size(64)));
typedef std::uint32_t Words __attribute__((vector_size(64)));

namespace portable {
FUNCTRANS_INLINE Ints sign_extended(const std::uint8_t* place) {
  Ints out;
  for (int k = 0; k < kLanes; ++k) out[k] = static_cast<std::int8_t>(place[k]);
  return out;
}
FUNCTRANS_INLINE Ints zero_extended(const std::uint8_t* place) {
  Ints out;
  for (int k = 0; k < kLanes; ++k) out[k] = place[k];
  return out;
}
#include "narrow_kernels.h"
}  // namespace portable

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#pragma GCC push_options
#pragma GCC target("avx2,fma,bmi2")
namespace avx2 {
// GCC 12 converts vectors of bytes one by one
template <bool kSigned>
FUNCTRANS_INLINE Ints extended(const std::uint8_t* place) {
  const __m128i raw = _mm_loadu_si128(reinterpret_cast<const __m128i*>(place));
  const __m128i upper = _mm_unpackhi_epi64(raw, raw);
  const __m256i halves[] = {kSigned ? _mm256_cvtepi8_epi32(raw) : _mm256_cvtepu8_epi32(raw),
                            kSigned ? _mm256_cvtepi8_epi32(upper) : _mm256_cvtepu8_epi32(upper)};
  Ints out;
  std::memcpy(&out, halves, sizeof out);
  return out;
}
FUNCTRANS_INLINE Ints sign_extended(const std::uint8_t* place) { return extended<true>(place); }
FUNCTRANS_INLINE Ints zero_extended(const std::uint8_t* place) { return extended<false>(place); }
#include "narrow_kernels.h"
}  // namespace avx2
#pragma GCC pop_options
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,bmi2")
namespace avx512 {
FUNCTRANS_INLINE Ints sign_extended(const std::uint8_t* place) {
  return (Ints)_mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(place)));
}
FUNCTRANS_INLINE Ints zero_extended(const std::uint8_t* place) {
  return (Ints)_mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(place)));
}
#include "narrow_kernels.h"
}  // namespace avx512
#pragma GCC pop_options

Columns columns_of(i64 format) {
  static const Columns* const best =
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
              __builtin_cpu_supports("avx512vl")
          ? avx512::kColumns
      : __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? avx2::kColumns
                                                                        : portable::kColumns;
  return best[format];
}
#else
Columns columns_of(i64 format) { return portable::kColumns[format]; }
#endif

// out (m, n) = x (m, k) w (k, n); formats are numbered in lowering/passes/narrow_products.py.
int narrow_dot(i64 format, i64 m, i64 k, i64 n, const float* x, const void* w, float* out) {
  const Product p{m, k, n, x, static_cast<const std::uint8_t*>(w), out};
  const Columns body = columns_of(format);
  parallel_pieces((n + kPiece - 1) / kPiece, std::max<i64>(1, (1 << 16) / (kPiece * (k * m + 1))),
                  [&](i64 begin, i64 end) {
    for (i64 b = begin; b < end; ++b) body(p, b * kPiece, std::min(n, (b + 1) * kPiece));
  });
  return 0;
}

}  // namespace

void register_narrow_library() {
  register_library("narrow_dot", reinterpret_cast<void*>(&narrow_dot));
}

}  // namespace functrans
