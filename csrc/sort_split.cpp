#include "sort_split.h"

#include <algorithm>

#if defined(__x86_64__)
#include <immintrin.h>
#define FUNCTRANS_AVX512 __attribute__((target("avx512f,avx512dq,avx512vl,bmi2,popcnt")))
#endif

namespace functrans {
namespace {

// Both places are written, one of them advances: two cycles an element, without jumps.
template <typename T>
void split_rest(const T* in, const T* end, T splitter, T* low, T* low_end, T* high, T* high_end) {
  while (low != low_end && high != high_end) {
    const T x = *in++;
    const bool below = x < splitter;
    *low = x;
    *high = x;
    low += below;
    high += !below;
  }
  std::copy(in, end, low != low_end ? low : high);
}

#if defined(__x86_64__)

template <typename T>
struct Lanes {
  static constexpr i64 count = 64 / sizeof(T);
  typedef T Vector __attribute__((vector_size(64), aligned(sizeof(T)), may_alias));
};

template <typename T>
FUNCTRANS_AVX512 inline unsigned below_mask(typename Lanes<T>::Vector x, T splitter) {
  const auto below = (__m512i)(x < splitter);
  if constexpr (sizeof(T) == 4) return _mm512_movepi32_mask(below);
  return _mm512_movepi64_mask(below);
}

template <typename T>
FUNCTRANS_AVX512 i64 count_avx512(const T* in, i64 n, T splitter) {
  using L = Lanes<T>;
  i64 count = 0, i = 0;
  for (; i + L::count <= n; i += L::count) {
    const auto x = *reinterpret_cast<const typename L::Vector*>(in + i);
    count += __builtin_popcount(below_mask<T>(x, splitter));
  }
  for (; i < n; ++i) count += in[i] < splitter;
  return count;
}

template <typename T>
FUNCTRANS_AVX512 inline void store_packed(T* out, unsigned mask, __m512i x) {
  if constexpr (sizeof(T) == 4) {
    _mm512_storeu_si512(out, _mm512_maskz_compress_epi32(static_cast<__mmask16>(mask), x));
  } else {
    _mm512_storeu_si512(out, _mm512_maskz_compress_epi64(static_cast<__mmask8>(mask), x));
  }
}

template <typename T>
FUNCTRANS_AVX512 void split_avx512(const T* in, const T* end, T splitter, T* low, T* low_end,
                                   T* high, T* high_end) {
  using L = Lanes<T>;
  // Whole vectors are stored, of which the next store overwrites what is too much.
  while (low_end - low >= L::count && high_end - high >= L::count) {
    const auto x = *reinterpret_cast<const typename L::Vector*>(in);
    const unsigned below = below_mask<T>(x, splitter);
    const int count = __builtin_popcount(below);
    store_packed(low, below, (__m512i)x);
    store_packed(high, ~below, (__m512i)x);
    low += count;
    high += L::count - count;
    in += L::count;
  }
  split_rest(in, end, splitter, low, low_end, high, high_end);
}

bool has_avx512() {
  static const bool has = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                          __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("bmi2");
  return has;
}

#endif

}  // namespace

template <typename T>
i64 count_below(const T* in, i64 n, T splitter) {
#if defined(__x86_64__)
  if (has_avx512()) return count_avx512(in, n, splitter);
#endif
  i64 count = 0;
  for (i64 i = 0; i < n; ++i) count += in[i] < splitter;
  return count;
}

template <typename T>
void split_in_two(const T* in, i64 n, T splitter, T* low, i64 low_count, T* high) {
  T* const low_end = low + low_count;
  T* const high_end = high + (n - low_count);
#if defined(__x86_64__)
  if (has_avx512()) {
    return split_avx512(in, in + n, splitter, low, low_end, high, high_end);
  }
#endif
  split_rest(in, in + n, splitter, low, low_end, high, high_end);
}

#define FUNCTRANS_SPLIT(T)                           \
  template i64 count_below(const T*, i64, T);        \
  template void split_in_two(const T*, i64, T, T*, i64, T*);
FUNCTRANS_SPLIT(float)
FUNCTRANS_SPLIT(double)
FUNCTRANS_SPLIT(std::int32_t)
FUNCTRANS_SPLIT(std::int64_t)
FUNCTRANS_SPLIT(std::uint32_t)
FUNCTRANS_SPLIT(std::uint64_t)

}  // namespace functrans
