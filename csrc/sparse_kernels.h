// Products of ranges of compressed rows, for the instruction set that is the target where this is
// included: vectors of GCC are made into instructions of the function that they stand in.

// Whether all columns are there, asked once for a range: the loops over elements need not ask.
template <typename I>
FUNCTRANS_INLINE bool all_inside(const I* indices, i64 n, i64 columns) {
  using U = std::make_unsigned_t<I>;
  const U most = static_cast<U>(std::min<i64>(columns, std::numeric_limits<I>::max()));
  if (most == 0) return n == 0;
  // two vectors at a time: one's largest waits for itself
  typedef U V __attribute__((vector_size(64)));
  constexpr i64 kLanes = 64 / sizeof(U);
  V above[2] = {};
  i64 e = 0;
  for (; e + 2 * kLanes <= n; e += 2 * kLanes) {
    for (int k = 0; k < 2; ++k) {
      V read;
      std::memcpy(&read, indices + e + k * kLanes, sizeof(V));
      above[k] = read > above[k] ? read : above[k];
    }
  }
  above[0] = above[0] > above[1] ? above[0] : above[1];
  U largest = 0;
  for (i64 k = 0; k < kLanes; ++k) largest = std::max(largest, above[0][k]);
  for (; e < n; ++e) largest = std::max(largest, static_cast<U>(indices[e]));
  // a size that indices cannot reach leaves the largest index inside
  return largest < most || (largest == most && columns > static_cast<i64>(most));
}

// A vector of stored elements with one of loads from x: no gathers, which take longer than the loads,
// and half the loads of stored elements: a row of 10 takes 0.8 of the time of one by one (Zen 5).
template <typename V, int kStep, typename T, typename I>
FUNCTRANS_INLINE V products(const T* data, const I* indices, const T* x) {
  const auto at = [&](int k) { return x[static_cast<std::make_unsigned_t<I>>(indices[kStep * k])]; };
  V value, read;  // loads that extend a sign take longer
  std::memcpy(&value, data, sizeof(V));
  if constexpr (sizeof(V) == 2 * sizeof(T)) read = V{at(0), at(1)};
  else read = V{at(0), at(1), at(2), at(3)};
  return value * read;
}

// The products of elements [e, end) with x, added up; columns are kStep indices apart.
template <int kStep, typename T, typename I>
FUNCTRANS_INLINE T sum_of_products(const T* data, const I* indices, i64 e, i64 end, const T* x) {
  typedef T V __attribute__((vector_size(16)));
  constexpr i64 kLanes = 16 / sizeof(T);
  V even = {}, odd = {};
  for (; e + 2 * kLanes <= end; e += 2 * kLanes) {
    even += products<V, kStep>(data + e, indices + kStep * e, x);
    odd += products<V, kStep>(data + e + kLanes, indices + kStep * (e + kLanes), x);
  }
  if (e + kLanes <= end) {
    even += products<V, kStep>(data + e, indices + kStep * e, x);
    e += kLanes;
  }
  even += odd;
  T total = even[0] + even[1];
  if constexpr (kLanes == 4) {
    total += even[2] + even[3];
    if (e + 2 <= end) {
      total += data[e] * x[indices[kStep * e]] + data[e + 1] * x[indices[kStep * (e + 1)]];
      e += 2;
    }
  }
  if (e < end) total += data[e] * x[indices[kStep * e]];
  return total;
}

// Pointers are in order and in bounds; the arrays are in registers, which what is written cannot be.
template <typename T, typename I>
FUNCTRANS_INLINE void multiply_vector_inside(const T* data, const I* indices, const I* indptr,
                                             i64 first, i64 last, const T* x, T* out) {
  i64 e = indptr[first];
  for (i64 i = first; i < last; ++i) {
    const i64 end = indptr[i + 1];
    out[i] = sum_of_products<1>(data, indices, e, end, x);
    e = end;
  }
}

// Whether all rows and columns are there.
template <typename I>
FUNCTRANS_INLINE bool all_pairs_inside(const I* pairs, i64 n, i64 rows, i64 columns) {
  using U = std::make_unsigned_t<I>;
  typedef U V __attribute__((vector_size(64)));
  constexpr i64 kLanes = 64 / sizeof(U);
  V above = {};
  i64 k = 0;
  for (; k + kLanes <= 2 * n; k += kLanes) {
    V read;
    std::memcpy(&read, pairs + k, sizeof(V));
    above = read > above ? read : above;
  }
  U row = 0, column = 0;
  for (i64 l = 0; l < kLanes; l += 2) {
    row = std::max(row, above[l]), column = std::max(column, above[l + 1]);
  }
  for (; k < 2 * n; k += 2) {
    row = std::max(row, static_cast<U>(pairs[k]));
    column = std::max(column, static_cast<U>(pairs[k + 1]));
  }
  return n == 0 || (static_cast<std::uint64_t>(row) < static_cast<std::uint64_t>(rows) &&
                    static_cast<std::uint64_t>(column) < static_cast<std::uint64_t>(columns));
}

// Where the rows of coordinates begin that stand side by side, and where the last one ends; how many
// there are, or -1 if a row or a column is not there. There is room for 16 more than elements. Without
// branches: rows are of any length.
template <typename I>
FUNCTRANS_INLINE i64 starts_of_rows(const I* pairs, i64 n, i64 rows, i64 columns,
                                    std::int32_t* starts) {
#if FUNCTRANS_WITH_AVX512
  if constexpr (sizeof(I) == 4) {
    // 16 rows beside those before them: 0.15 of the time of one by one
    const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    __m512i here = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    __m512i before = _mm512_set1_epi32(~pairs[0]), most = _mm512_setzero_si512();
    i64 runs = 0, e = 0;
    for (; e + 16 <= n; e += 16) {
      const __m512i a = _mm512_loadu_si512(pairs + 2 * e), b = _mm512_loadu_si512(pairs + 2 * e + 16);
      const __m512i here_rows = _mm512_permutex2var_epi32(a, even, b);
      most = _mm512_max_epu32(most, _mm512_max_epu32(a, b));
      const __mmask16 begins =
          _mm512_cmpneq_epi32_mask(here_rows, _mm512_alignr_epi32(here_rows, before, 15));
      _mm512_storeu_si512(starts + runs, _mm512_maskz_compress_epi32(begins, here));
      runs += __builtin_popcount(begins);
      here = _mm512_add_epi32(here, _mm512_set1_epi32(16));
      before = here_rows;
    }
    std::uint32_t row = _mm512_mask_reduce_max_epu32(0x5555, most);
    std::uint32_t column = _mm512_mask_reduce_max_epu32(0xaaaa, most);
    for (; e < n; ++e) {
      starts[runs] = static_cast<std::int32_t>(e);
      runs += e == 0 || pairs[2 * e] != pairs[2 * e - 2];
      row = std::max(row, static_cast<std::uint32_t>(pairs[2 * e]));
      column = std::max(column, static_cast<std::uint32_t>(pairs[2 * e + 1]));
    }
    starts[runs] = static_cast<std::int32_t>(n);
    return static_cast<i64>(row) < rows && static_cast<i64>(column) < columns ? runs : -1;
  }
#endif
  if (!all_pairs_inside(pairs, n, rows, columns)) return -1;
  i64 runs = 1;
  starts[0] = 0;
  for (i64 e = 1; e < n; ++e) {
    starts[runs] = static_cast<std::int32_t>(e);
    runs += pairs[2 * e] != pairs[2 * e - 2];
  }
  starts[runs] = static_cast<std::int32_t>(n);
  return runs;
}

#if FUNCTRANS_WITH_AVX512
// n numbers added up, without a branch where they are few: 1.0 to 1.3 ns for rows of about ten, and 5
// where a loop over each ends unforeseen (Zen 5). What is read behind them counts for nothing.
FUNCTRANS_INLINE double sum_of(const double* p, i64 n) {
  const auto some = [&](i64 k) {
    const auto left = static_cast<unsigned>(std::max<i64>(0, std::min<i64>(n - k, 8)));
    return _mm512_maskz_loadu_pd(static_cast<__mmask8>(_bzhi_u32(0xff, left)), p + k);
  };
  __m512d sum = _mm512_add_pd(some(0), some(8));
  for (i64 k = 16; k < n; k += 8) sum = _mm512_add_pd(sum, some(k));
  const __m256d half = _mm256_add_pd(_mm512_castpd512_pd256(sum), _mm512_extractf64x4_pd(sum, 1));
  const __m128d pair = _mm_add_pd(_mm256_castpd256_pd128(half), _mm256_extractf128_pd(half, 1));
  return pair[0] + pair[1];
}

FUNCTRANS_INLINE float sum_of(const float* p, i64 n) {
  const auto some = [&](i64 k) {
    const auto left = static_cast<unsigned>(std::min<i64>(n - k, 16));
    return _mm512_maskz_loadu_ps(static_cast<__mmask16>(_bzhi_u32(0xffff, left)), p + k);
  };
  __m512 sum = some(0);
  for (i64 k = 16; k < n; k += 16) sum = _mm512_add_ps(sum, some(k));
  const __m256 half = _mm256_add_ps(_mm512_castps512_ps256(sum), _mm512_extractf32x8_ps(sum, 1));
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1));
  return (four[0] + four[2]) + (four[1] + four[3]);
}

// The products of elements [first, last) with x.
template <int kStep, typename T, typename I>
FUNCTRANS_INLINE void put_products(const T* data, const I* indices, i64 first, i64 last, const T* x,
                                   T* out) {
  typedef T V __attribute__((vector_size(16)));
  constexpr i64 kLanes = 16 / sizeof(T);
  i64 e = first;
  for (; e + 2 * kLanes <= last; e += 2 * kLanes) {
    const V one = products<V, kStep>(data + e, indices + kStep * e, x);
    const V other = products<V, kStep>(data + e + kLanes, indices + kStep * (e + kLanes), x);
    std::memcpy(out + e, &one, sizeof(V));
    std::memcpy(out + e + kLanes, &other, sizeof(V));
  }
  for (; e < last; ++e) out[e] = data[e] * x[indices[kStep * e]];
}
#endif

template <typename T, typename I>
FUNCTRANS_INLINE void add_each(const T* data, const I* pairs, i64 first, i64 last, const T* x, T* out) {
  for (i64 e = first; e < last; ++e) out[pairs[2 * e]] += data[e] * x[pairs[2 * e + 1]];
}

template <typename T, typename I>
FUNCTRANS_INLINE void add_runs(const PairChunk<T, I>& c, const std::int32_t* starts, const T* x,
                               T* out) {
  const T* data = c.data;
  const I* pairs = c.pairs;
  const i64 last = c.last;
  while (*starts < c.first) ++starts;
#if FUNCTRANS_WITH_AVX512
  if (c.columns * static_cast<i64>(sizeof(T)) <= kNearBytes) {
    alignas(64) T values[kPairs + 32];
    put_products<2>(data, pairs + 1, c.first, last, x, values);
    for (; *starts < last; ++starts) {
      out[pairs[2 * *starts]] += sum_of(values + *starts, starts[1] - *starts);
    }
    return;
  }
#endif
  for (; *starts < last; ++starts) {
    out[pairs[2 * *starts]] += sum_of_products<2>(data, pairs + 1, *starts, starts[1], x);
  }
}

// The elements [first, last) of a chunk of coordinates; those of a row that stand side by side are
// added up before they are added to its sum. What is done depends on the chunk as a whole, and how
// many of it this thread has changes no bit. False if one of them is in a row that is not of
// [low, high), which are this thread's.
template <typename T, typename I>
bool multiply_pairs(const PairChunk<T, I>& c, const T* x, T* out) {
  const T* data = c.data;
  const I* pairs = c.pairs;
  std::int32_t starts[kPairs + 16];
  const i64 runs = starts_of_rows(pairs, c.n, c.rows, c.columns, starts);
  if (runs < 0) {
    for (i64 e = c.first; e < c.last; ++e) {
      const i64 i = pairs[2 * e], j = pairs[2 * e + 1];
      if (static_cast<std::uint64_t>(i) >= static_cast<std::uint64_t>(c.rows) ||
          static_cast<std::uint64_t>(j) >= static_cast<std::uint64_t>(c.columns)) {
        continue;
      }
      if (i < c.low || i >= c.high) return false;
      out[i] += data[e] * x[j];
    }
    return true;
  }
  if (c.low > 0 || c.high < c.rows) {
    const I low = static_cast<I>(c.low), most = static_cast<I>(c.high - 1);
    I outside = 0;
    for (i64 e = c.first; e < c.last; ++e) {
      outside |= static_cast<I>(pairs[2 * e] < low) | static_cast<I>(pairs[2 * e] > most);
    }
    if (outside != 0 || c.low >= c.high) return c.first == c.last;
  }
  if (2 * runs > c.n) add_each(data, pairs, c.first, c.last, x, out);
  else add_runs(c, starts, x, out);
  return true;
}

template <typename T, typename I>
void multiply_vector(const Rows<T, I>& a, i64 first, i64 last, const T* x, T* out) {
  const i64 begin = a.start(first);
  if (a.indptr[last] <= a.nse &&
      all_inside(a.indices + begin, a.start(last) - begin, a.columns)) {
    multiply_vector_inside(a.data, a.indices, a.indptr, first, last, x, out);
    return;
  }
  for (i64 i = first; i < last; ++i) {
    const i64 end = a.start(i + 1);
    T total = 0;
    for (i64 e = a.start(i); e < end; ++e) {
      const i64 c = a.indices[e];
      if (a.has(c)) total += a.data[e] * x[c];
    }
    out[i] = total;
  }
}

// N vectors of columns of x for each element of a row, added up in registers.
template <int N, bool kInside, typename T, typename I>
FUNCTRANS_INLINE void row_times_columns(const Rows<T, I>& a, i64 begin, i64 end, i64 n,
                                        const T* x, T* out) {
  typedef T V __attribute__((vector_size(64)));
  constexpr i64 kLanes = 64 / sizeof(T);
  V sums[N] = {};
  for (i64 e = begin; e < end; ++e) {
    const i64 c = a.indices[e];
    if (!kInside && !a.has(c)) continue;
    const T* line = x + c * n;
    if (e + kAhead < a.nse && a.has(a.indices[e + kAhead])) {
      const T* next = x + static_cast<i64>(a.indices[e + kAhead]) * n;
      for (int k = 0; k < N; ++k) __builtin_prefetch(next + k * kLanes);
    }
    for (int k = 0; k < N; ++k) {
      V value;
      std::memcpy(&value, line + k * kLanes, sizeof(V));
      sums[k] += a.data[e] * value;
    }
  }
  for (int k = 0; k < N; ++k) std::memcpy(out + k * kLanes, &sums[k], sizeof(V));
}

template <typename T>
FUNCTRANS_INLINE void add_scaled(T* __restrict out, T factor, const T* __restrict x, i64 n) {
  for (i64 j = 0; j < n; ++j) out[j] += factor * x[j];
}

template <bool kInside, typename T, typename I>
FUNCTRANS_INLINE void multiply_range(const Rows<T, I>& a, i64 first, i64 last, i64 n, const T* x,
                                     T* out) {
  constexpr i64 kLanes = 64 / sizeof(T);
  for (i64 i = first; i < last; ++i) {
    const i64 begin = a.start(i), end = a.start(i + 1);
    T* row = out + i * n;
    i64 j = 0;
    for (; j + 4 * kLanes <= n; j += 4 * kLanes) {
      row_times_columns<4, kInside>(a, begin, end, n, x + j, row + j);
    }
    for (; j + kLanes <= n; j += kLanes) {
      row_times_columns<1, kInside>(a, begin, end, n, x + j, row + j);
    }
    if (j == n) continue;
    std::memset(row + j, 0, (n - j) * sizeof(T));
    for (i64 e = begin; e < end; ++e) {
      const i64 c = a.indices[e];
      if (kInside || a.has(c)) add_scaled(row + j, a.data[e], x + c * n + j, n - j);
    }
  }
}

template <bool kInside, typename T, typename I>
FUNCTRANS_INLINE void add_transposed_range(const Rows<T, I>& a, i64 first, i64 last, i64 n,
                                           i64 from, i64 to, const T* x, T* out) {
  for (i64 i = first; i < last; ++i) {
    const i64 end = a.start(i + 1);
    const T* row = x + i * n;
    for (i64 e = a.start(i); e < end; ++e) {
      const i64 c = a.indices[e];
      if (!kInside && !a.has(c)) continue;
      add_scaled(out + c * n + from, a.data[e], row + from, to - from);
    }
  }
}

template <typename T, typename I>
bool range_is_inside(const Rows<T, I>& a, i64 first, i64 last) {
  const i64 begin = a.start(first);
  return all_inside(a.indices + begin, a.start(last) - begin, a.columns);
}

template <typename T, typename I>
void multiply_rows(const Rows<T, I>& a, i64 first, i64 last, i64 n, const T* x,
                                      T* out) {
  if (range_is_inside(a, first, last)) multiply_range<true>(a, first, last, n, x, out);
  else multiply_range<false>(a, first, last, n, x, out);
}

// One column: what takes the time is that a sum is read where it has just been written, so that to ask
// for each index whether it is inside costs nothing.
template <typename T, typename I>
FUNCTRANS_INLINE void add_transposed_vector(const Rows<T, I>& a, i64 first, i64 last, const T* x,
                                            T* out) {
  const T* data = a.data;
  const I *indices = a.indices, *indptr = a.indptr;
  const i64 nse = a.nse, columns = a.columns;
  i64 e = a.start(first);
  for (i64 i = first; i < last; ++i) {
    const i64 end = std::min<i64>(indptr[i + 1], nse);
    const T factor = x[i];
    for (; e < end; ++e) {
      const i64 c = indices[e];
      if (static_cast<std::uint64_t>(c) < static_cast<std::uint64_t>(columns)) {
        out[c] += data[e] * factor;
      }
    }
  }
}

template <typename T, typename I>
void add_transposed(const Rows<T, I>& a, i64 first, i64 last, i64 n, i64 from, i64 to,
                                 const T* x, T* out) {
  if (n == 1) {
    add_transposed_vector(a, first, last, x, out);
  } else if (range_is_inside(a, first, last)) {
    add_transposed_range<true>(a, first, last, n, from, to, x, out);
  } else {
    add_transposed_range<false>(a, first, last, n, from, to, x, out);
  }
}

// Coordinates, or their transpose, times the columns [from, to) of x.
template <typename T, typename I>
void add_pairs(const T* data, const I* pairs, i64 nse, i64 rows, i64 columns, bool transpose, i64 n,
               i64 from, i64 to, const T* x, T* out) {
  for (i64 e = 0; e < nse; ++e) {
    const i64 i = pairs[2 * e], j = pairs[2 * e + 1];
    if (static_cast<std::uint64_t>(i) >= static_cast<std::uint64_t>(rows) ||
        static_cast<std::uint64_t>(j) >= static_cast<std::uint64_t>(columns)) {
      continue;
    }
    const i64 at = transpose ? j : i, of = transpose ? i : j;
    if (n == 1) out[at] += data[e] * x[of];
    else add_scaled(out + at * n + from, data[e], x + of * n + from, to - from);
  }
}

template <typename T, typename I>
constexpr RowKernels<T, I> kKernels{multiply_vector<T, I>, multiply_rows<T, I>,
                                      add_transposed<T, I>, multiply_pairs<T, I>,
                                      add_pairs<T, I>};
