// Two matrices of compressed rows merged by vectors of AVX-512: 16 columns of each at a time, without
// a branch that depends on their order.
#pragma once

#include "compressed_rows.h"
#include "sparse_runs.h"

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#include <immintrin.h>
#define FUNCTRANS_MERGES_BY_VECTORS 1

namespace functrans {

inline bool merges_by_vectors() {
  static const bool can = __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
                          __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("bmi2");
  return can;
}

#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,bmi2,popcnt")

constexpr i64 kMergedAtOnce = 16;                 // of each matrix
constexpr i64 kFetchedRows = 1 << 9;              // elements ahead
constexpr i64 kWrittenBehind = 2 * kMergedAtOnce;  // places that a step may write and not mean

FUNCTRANS_INLINE std::uint32_t lowest_bits(i64 n) {
  return static_cast<std::uint32_t>(_bzhi_u64(~std::uint64_t{0}, static_cast<unsigned>(n)));
}

// n columns, and the largest number behind them.
FUNCTRANS_INLINE __m512i some_columns(const std::int32_t* columns, i64 n) {
  return _mm512_mask_loadu_epi32(_mm512_set1_epi32(INT32_MAX),
                                 static_cast<__mmask16>(lowest_bits(n)), columns);
}

FUNCTRANS_INLINE __m512i some_columns(const i64* columns, i64 n) {
  const auto mask = static_cast<__mmask16>(lowest_bits(n));
  const __m256i low = _mm512_cvtepi64_epi32(
      _mm512_maskz_loadu_epi64(static_cast<__mmask8>(mask), columns));
  const __m256i high = _mm512_cvtepi64_epi32(
      _mm512_maskz_loadu_epi64(static_cast<__mmask8>(mask >> 8), columns + 8));
  const __m512i both = _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
  return _mm512_mask_mov_epi32(_mm512_set1_epi32(INT32_MAX), mask, both);
}

FUNCTRANS_INLINE void put_columns(std::int32_t* to, __m512i columns) {
  _mm512_storeu_si512(to, columns);
}

FUNCTRANS_INLINE void put_columns(i64* to, __m512i columns) {
  _mm512_storeu_si512(to, _mm512_cvtepi32_epi64(_mm512_castsi512_si256(columns)));
  _mm512_storeu_si512(to + 8, _mm512_cvtepi32_epi64(_mm512_extracti64x4_epi64(columns, 1)));
}

FUNCTRANS_INLINE void put_pairs(std::int32_t* to, __m512i row, __m512i columns) {
  const __m512i low = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
  const __m512i high = _mm512_setr_epi32(8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
  _mm512_storeu_si512(to, _mm512_permutex2var_epi32(row, low, columns));
  _mm512_storeu_si512(to + 16, _mm512_permutex2var_epi32(row, high, columns));
}

FUNCTRANS_INLINE void put_pairs(i64* to, __m512i row, __m512i columns) {
  alignas(64) std::int32_t pairs[32];
  put_pairs(pairs, row, columns);
  for (int k = 0; k < 4; ++k) {
    _mm512_storeu_si512(to + 8 * k, _mm512_cvtepi32_epi64(_mm256_loadu_si256(
                                        reinterpret_cast<const __m256i*>(pairs + 8 * k))));
  }
}

// The places of a merge that have an element of the first matrix, and of the second: one that has both
// is the sum of two.
struct MergedPlaces {
  std::uint32_t first, second;
  i64 count;
};

// How n columns of one matrix and m of another, each increasing, stand among each other: every column
// of the first is compared with all of the second. Numbers behind the columns are the largest.
FUNCTRANS_INLINE MergedPlaces merged_places(__m512i a, i64 n, __m512i b, i64 m) {
  alignas(64) std::int32_t each[16];
  _mm512_store_si512(each, b);
  const __m512i one = _mm512_set1_epi32(1);
  const __m512i lane = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  __m512i before = lane;  // the place of each of the first where equal ones have two places
  unsigned equal = 0;
  for (int half = 0; half < (m > 8 ? 16 : 8); half += 8) {
    for (int k = half; k < half + 8; ++k) {
      const __m512i other = _mm512_set1_epi32(each[k]);
      before = _mm512_mask_add_epi32(before, _mm512_cmplt_epi32_mask(other, a), before, one);
      equal |= _mm512_cmpeq_epi32_mask(a, other);
    }
  }
  const auto used = static_cast<__mmask16>(lowest_bits(n));
  const auto first = static_cast<std::uint32_t>(
      _mm512_mask_reduce_or_epi32(used, _mm512_sllv_epi32(one, before)));
  const std::uint32_t both = _pdep_u32(equal & used, first);  // its second place is the next one
  const std::uint32_t kept = ~(both << 1) & lowest_bits(n + m);
  MergedPlaces found;
  found.first = _pext_u32(first, kept);
  found.second = (~found.first | _pext_u32(both, kept)) & lowest_bits(__builtin_popcount(kept));
  found.count = __builtin_popcount(kept);
  return found;
}

// As many elements as there are bits, in their lanes. Expansions from memory take several times as long
// as loads and expansions of registers, above all where the memory is far.
FUNCTRANS_INLINE __m512d elements_at(const double* from, std::uint32_t bits) {
  const auto n = static_cast<__mmask8>(lowest_bits(__builtin_popcount(bits)));
  return _mm512_maskz_expand_pd(static_cast<__mmask8>(bits), _mm512_maskz_loadu_pd(n, from));
}

FUNCTRANS_INLINE __m512 elements_at(const float* from, std::uint32_t bits) {
  const auto n = static_cast<__mmask16>(lowest_bits(__builtin_popcount(bits)));
  return _mm512_maskz_expand_ps(static_cast<__mmask16>(bits), _mm512_maskz_loadu_ps(n, from));
}

FUNCTRANS_INLINE void put_sums(const double* a, const double* b, std::uint32_t first,
                               std::uint32_t second, double* to) {
  const __m512d x = elements_at(a, first), y = elements_at(b, second);
  const __m512d one = _mm512_mask_mov_pd(y, static_cast<__mmask8>(first), x);
  _mm512_storeu_pd(to, _mm512_mask_add_pd(one, static_cast<__mmask8>(first & second), x, y));
}

FUNCTRANS_INLINE void put_sums(const float* a, const float* b, std::uint32_t first,
                               std::uint32_t second, float* to) {
  const __m512 x = elements_at(a, first), y = elements_at(b, second);
  const __m512 one = _mm512_mask_mov_ps(y, static_cast<__mmask16>(first), x);
  _mm512_storeu_ps(to, _mm512_mask_add_ps(one, static_cast<__mmask16>(first & second), x, y));
}

template <typename T>
FUNCTRANS_INLINE void put_all_sums(const T* a, const T* b, const MergedPlaces& at, T* to) {
  constexpr i64 kLanes = 64 / sizeof(T);
  std::uint64_t first = at.first, second = at.second;
  for (i64 k = 0; k < at.count; k += kLanes) {
    const std::uint32_t x = first & lowest_bits(kLanes), y = second & lowest_bits(kLanes);
    put_sums(a, b, x, y, to + k);
    a += __builtin_popcount(x), b += __builtin_popcount(y);
    first >>= kLanes, second >>= kLanes;
  }
}

// Columns where two matrices of 16 columns stand in a merge: the first 16 places, or those behind them.
FUNCTRANS_INLINE __m512i merged_columns(__m512i a, __m512i b, const MergedPlaces& at) {
  const __m512i others = _mm512_maskz_expand_epi32(static_cast<__mmask16>(at.second), b);
  return _mm512_mask_expand_epi32(others, static_cast<__mmask16>(at.first), a);
}

FUNCTRANS_INLINE __m512i without_lanes(__m512i v, int n) {
  const __m512i lane = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  return _mm512_permutexvar_epi32(_mm512_add_epi32(lane, _mm512_set1_epi32(n)), v);
}

// Masked loads start no prefetches of the processor.
template <typename T, typename I>
FUNCTRANS_INLINE void fetch_ahead(const T* data, const I* columns, i64 e, i64 end) {
  constexpr i64 kLine = 64 / sizeof(T), kIndexLine = 64 / sizeof(I);
  for (i64 k = e; k < end; k += kLine) __builtin_prefetch(data + k + kFetchedRows, 0, 0);
  for (i64 k = e; k < end; k += kIndexLine) __builtin_prefetch(columns + k + kFetchedRows, 0, 0);
}

// The places of the row before, which are those of this one where it has columns in the same distances,
// as in matrices of bands.
struct RowPattern {
  __m512i a{}, b{};
  i64 n = -1, m = -1;
  MergedPlaces at{};
};

template <int kWidth, typename T, typename I>
FUNCTRANS_INLINE void put_merged(__m512i a, __m512i b, const T* data_a, const T* data_b,
                                 const MergedPlaces& at, I row, I* places, T* sums) {
  put_all_sums(data_a, data_b, at, sums);
  const __m512i of_row = _mm512_set1_epi32(static_cast<std::int32_t>(row));
  const __m512i low = merged_columns(a, b, at);
  if (kWidth == 1) put_columns(places, low);
  else put_pairs(places, of_row, low);
  if (at.count > 16) {
    const MergedPlaces rest{at.first >> 16, at.second >> 16, at.count - 16};
    const __m512i high =
        merged_columns(without_lanes(a, __builtin_popcount(at.first & 0xffff)),
                       without_lanes(b, __builtin_popcount(at.second & 0xffff)), rest);
    if (kWidth == 1) put_columns(places + 16, high);
    else put_pairs(places + 32, of_row, high);
  }
}

// Whether n columns increase and are inside.
FUNCTRANS_INLINE bool are_plain(const std::int32_t*, __m512i p, i64 n, i64 columns) {
  const __m512i bound = _mm512_set1_epi32(static_cast<std::int32_t>(columns));
  const unsigned falls = _mm512_cmpge_epi32_mask(p, without_lanes(p, 1)) & lowest_bits(n - 1);
  return (falls | (_mm512_cmpge_epu32_mask(p, bound) & lowest_bits(n))) == 0;
}

FUNCTRANS_INLINE bool are_plain(const i64* from, __m512i p, i64 n, i64 columns) {
  const auto mask = static_cast<__mmask16>(lowest_bits(n));
  const auto low = static_cast<__mmask8>(mask), high = static_cast<__mmask8>(mask >> 8);
  const __m512i bound = _mm512_set1_epi64(columns);
  const unsigned outside =
      _mm512_mask_cmpge_epu64_mask(low, _mm512_maskz_loadu_epi64(low, from), bound) |
      _mm512_mask_cmpge_epu64_mask(high, _mm512_maskz_loadu_epi64(high, from + 8), bound);
  const unsigned falls = _mm512_cmpge_epi32_mask(p, without_lanes(p, 1)) & lowest_bits(n - 1);
  return (falls | outside) == 0;
}

// Some columns of a row, which follow those before them in it.
template <typename T, typename I>
struct RowPart {
  const Rows<T, I>& of;
  i64 begin, at, end;
  __m512i columns;
  i64 n;

  i64 left() const { return end - at; }
  FUNCTRANS_INLINE bool load() {
    n = std::min(left(), kMergedAtOnce);
    columns = some_columns(of.indices + at, n);
    return are_plain(of.indices + at, columns, n, of.columns) &&
           (at == begin || of.indices[at - 1] < of.indices[at]);
  }
  // The last column that is known, if others follow.
  i64 most() const {
    return left() > kMergedAtOnce ? static_cast<i64>(of.indices[at + kMergedAtOnce - 1]) : INT32_MAX;
  }
  FUNCTRANS_INLINE void keep(i64 bound) {
    const __m512i most = _mm512_set1_epi32(static_cast<std::int32_t>(bound));
    n = __builtin_popcount(_mm512_cmple_epi32_mask(columns, most) & lowest_bits(n));
    columns = _mm512_mask_mov_epi32(_mm512_set1_epi32(INT32_MAX),
                                    static_cast<__mmask16>(lowest_bits(n)), columns);
  }
};

// One row from place `o` on: the place behind it, or -1 if its columns do not increase or are not all
// inside.
template <int kWidth, typename T, typename I>
FUNCTRANS_INLINE i64 merge_row(RowPart<T, I> a, RowPart<T, I> b, I row, RowPattern& before,
                               I* places, T* sums, i64 o) {
  const T *data_a = a.of.data, *data_b = b.of.data;
  while (a.left() > 0 && b.left() > 0) {
    if (!a.load() || !b.load()) return -1;
    if (a.left() <= kMergedAtOnce && b.left() <= kMergedAtOnce) {
      const __m512i origin = _mm512_set1_epi32(static_cast<std::int32_t>(a.of.indices[a.at]));
      const __m512i u = _mm512_maskz_sub_epi32(static_cast<__mmask16>(lowest_bits(a.n)), a.columns,
                                               origin);
      const __m512i v = _mm512_maskz_sub_epi32(static_cast<__mmask16>(lowest_bits(b.n)), b.columns,
                                               origin);
      const i64 differ = _mm512_cmpneq_epi32_mask(u, before.a) |
                         _mm512_cmpneq_epi32_mask(v, before.b) | (a.n ^ before.n) | (b.n ^ before.m);
      if (differ != 0) {
        before = {u, v, a.n, b.n, merged_places(a.columns, a.n, b.columns, b.n)};
      }
    } else {  // what may be followed by more of the other row is left for the next step
      const i64 most = std::min(a.most(), b.most());
      a.keep(most), b.keep(most);
      before.n = -1;
      before.at = merged_places(a.columns, a.n, b.columns, b.n);
    }
    put_merged<kWidth>(a.columns, b.columns, data_a + a.at, data_b + b.at, before.at, row,
                       places + o * kWidth, sums + o);
    o += before.at.count;
    a.at += a.n, b.at += b.n;
  }
  for (; a.left() > 0; o += a.n, a.at += a.n) {
    if (!a.load()) return -1;
    const MergedPlaces at{lowest_bits(a.n), 0, a.n};
    put_merged<kWidth>(a.columns, a.columns, data_a + a.at, data_a, at, row, places + o * kWidth,
                       sums + o);
  }
  for (; b.left() > 0; o += b.n, b.at += b.n) {
    if (!b.load()) return -1;
    const MergedPlaces at{0, lowest_bits(b.n), b.n};
    put_merged<kWidth>(b.columns, b.columns, data_b, data_b + b.at, at, row, places + o * kWidth,
                       sums + o);
  }
  return o;
}

// Rows [first, last), as far as their columns increase and are inside, and there is room for what may
// be written: the row that is next. Numbers of columns are below INT32_MAX.
template <int kWidth, typename T, typename I>
i64 merge_by_vectors(const Rows<T, I>& given_a, const Rows<T, I>& given_b, i64 first, i64 last,
                     SumPlaces<T, I>& out, I* pointers) {
  const Rows<T, I> a = given_a, b = given_b;
  I* places = out.places;
  T* sums = out.sums;
  i64 o = out.count, x = a.start(first), y = b.start(first), i = first;
  RowPattern before;
  for (; i < last; ++i) {
    const i64 end_x = a.start(i + 1), end_y = b.start(i + 1);
    if (o + (end_x - x) + (end_y - y) + kWrittenBehind > out.room) break;
    fetch_ahead(a.data, a.indices, x, end_x);
    fetch_ahead(b.data, b.indices, y, end_y);
    const i64 end = merge_row<kWidth>(RowPart<T, I>{a, x, x, end_x, {}, 0},
                                      RowPart<T, I>{b, y, y, end_y, {}, 0}, static_cast<I>(i),
                                      before, places, sums, o);
    if (end < 0) break;
    o = end, x = end_x, y = end_y;
    if (pointers != nullptr) pointers[i + 1] = static_cast<I>(o);
  }
  out.count = o;
  return i;
}

#pragma GCC pop_options

}  // namespace functrans
#endif
