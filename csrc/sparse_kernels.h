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

// What the loop over elements will need soon, without a place in the caches behind the first: there it
// would take that of x. A product of a million elements in random columns, from memory: 670 us, and
// 1,290 without; 512 elements ahead, and 890 with 256 (Zen 5).
template <int kStep, typename T, typename I>
FUNCTRANS_INLINE void fetch(const T* data, const I* indices, i64 e, i64 end) {
  constexpr i64 kLine = 64 / sizeof(T), kIndexLine = 64 / (kStep * sizeof(I));
  for (i64 k = e; k < end; k += kLine) __builtin_prefetch(data + k + kFetched, 0, 0);
  for (i64 k = e; k < end; k += kIndexLine) {
    __builtin_prefetch(indices + kStep * (k + kFetched), 0, 0);
  }
}

// A vector of stored elements with one of loads from x: no gathers, which take longer than the loads,
// and half the loads of stored elements: a row of 10 takes 0.8 of the time of one by one (Zen 5).
// If `kChecked`, an element that is in none of the columns is zero times zero.
template <typename V, int kStep, bool kChecked, typename T, typename I>
FUNCTRANS_INLINE void loads(const T* data, const I* indices, i64 columns, const T* x, V& value,
                            V& read) {
  using U = std::make_unsigned_t<I>;
  const auto inside = [&](int k) {
    return static_cast<std::uint64_t>(static_cast<i64>(indices[kStep * k])) <
           static_cast<std::uint64_t>(columns);
  };
  const auto at = [&](int k) {  // loads that extend a sign take longer
    return !kChecked || inside(k) ? x[static_cast<U>(indices[kStep * k])] : T(0);
  };
  std::memcpy(&value, data, sizeof(V));
  if constexpr (sizeof(V) == 2 * sizeof(T)) read = V{at(0), at(1)};
  else read = V{at(0), at(1), at(2), at(3)};
  if constexpr (kChecked) {
    for (i64 k = 0; k < static_cast<i64>(sizeof(V) / sizeof(T)); ++k) {
      if (!inside(k)) value[k] = 0;
    }
  }
}

// The products of elements [e, end) with x, added up; columns are kStep indices apart.
template <int kStep, bool kChecked, typename T, typename I>
FUNCTRANS_INLINE T sum_of_products(const T* data, const I* indices, i64 e, i64 end, i64 columns,
                                   const T* x) {
  typedef T V __attribute__((vector_size(16)));
  constexpr i64 kLanes = 16 / sizeof(T);
  const auto product = [&](i64 k, V& sum) {
    V value, read;
    loads<V, kStep, kChecked>(data + k, indices + kStep * k, columns, x, value, read);
    sum += value * read;
  };
  const auto one = [&](i64 k, T sum) {
    const auto c = static_cast<std::uint64_t>(static_cast<i64>(indices[kStep * k]));
    if (kChecked && c >= static_cast<std::uint64_t>(columns)) return sum;
    return sum + data[k] * x[c];
  };
  V even = {}, odd = {};
  for (; e + 2 * kLanes <= end; e += 2 * kLanes) {
    product(e, even);
    product(e + kLanes, odd);
  }
  if (e + kLanes <= end) {
    product(e, even);
    e += kLanes;
  }
  even += odd;
  T total = even[0] + even[1];
  if constexpr (kLanes == 4) {
    total += even[2] + even[3];
    if (e + 2 <= end) {
      total = one(e + 1, one(e, total));
      e += 2;
    }
  }
  if (e < end) total = one(e, total);
  return total;
}

// Rows one after the other; pointers are in order and in bounds. The arrays are in registers, which
// what is written cannot be.
template <bool kChecked, bool kFetch, typename T, typename I>
FUNCTRANS_INLINE void multiply_each_row(const T* data, const I* indices, const I* indptr, i64 first,
                                        i64 last, i64 columns, const T* x, T* out) {
  i64 e = indptr[first];
  for (i64 i = first; i < last; ++i) {
    const i64 end = indptr[i + 1];
    if (kFetch) fetch<1>(data, indices, e, end);
    out[i] = sum_of_products<1, kChecked>(data, indices, e, end, columns, x);
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

// The products of elements [first, last) with x, one after the other.
template <int kStep, bool kChecked, typename T, typename I>
FUNCTRANS_INLINE void put_products(const T* data, const I* indices, i64 first, i64 last, i64 columns,
                                   const T* x, T* out) {
  typedef T V __attribute__((vector_size(16)));
  constexpr i64 kLanes = 16 / sizeof(T), kLine = 64 / sizeof(T);
  i64 e = first;
  for (; e + kLine <= last; e += kLine) {
    fetch<kStep>(data, indices, e, e + kLine);
    for (i64 k = e; k < e + kLine; k += kLanes) {
      V value, read;
      loads<V, kStep, kChecked>(data + k, indices + kStep * k, columns, x, value, read);
      value *= read;
      std::memcpy(out + k, &value, sizeof(V));
    }
  }
  for (; e < last; ++e) {
    const auto c = static_cast<std::uint64_t>(static_cast<i64>(indices[kStep * e]));
    out[e] = kChecked && c >= static_cast<std::uint64_t>(columns) ? T(0) : data[e] * x[c];
  }
}

// Rows of any length: the products of all elements, and then their sums.
template <bool kChecked, typename T, typename I>
FUNCTRANS_INLINE void multiply_all_at_once(const Rows<T, I>& a, i64 first, i64 last, const T* x,
                                           T* out) {
  alignas(64) T values[kPairs + 32];
  const I* indptr = a.indptr;
  const i64 begin = indptr[first];
  put_products<1, kChecked>(a.data + begin, a.indices + begin, 0, indptr[last] - begin, a.columns, x,
                            values);
  for (i64 i = first; i < last; ++i) {
    out[i] = sum_of(values + (indptr[i] - begin), indptr[i + 1] - indptr[i]);
  }
}
#endif

template <typename T, typename I>
FUNCTRANS_INLINE void add_each(const T* data, const I* pairs, i64 first, i64 last, const T* x, T* out) {
  constexpr i64 kLine = 64 / sizeof(T);
  for (i64 e = first; e < last;) {
    const i64 stop = std::min(last, e + kLine);
    fetch<2>(data, pairs, e, stop);
    for (; e < stop; ++e) out[pairs[2 * e]] += data[e] * x[pairs[2 * e + 1]];
  }
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
    put_products<2, false>(data, pairs + 1, c.first, last, c.columns, x, values);
    for (; *starts < last; ++starts) {
      out[pairs[2 * *starts]] += sum_of(values + *starts, starts[1] - *starts);
    }
    return;
  }
#endif
  for (; *starts < last; ++starts) {
    fetch<2>(data, pairs + 1, *starts, starts[1]);
    out[pairs[2 * *starts]] +=
        sum_of_products<2, false>(data, pairs + 1, *starts, starts[1], c.columns, x);
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

// The last of rows from `row` on that hold about `most` elements, and at least one row.
template <typename T, typename I>
FUNCTRANS_INLINE i64 end_of_chunk(const Rows<T, I>& a, i64 row, i64 last, i64 most) {
  const i64 begin = a.start(row++);
  while (row < last && a.start(row + 1) - begin <= most) ++row;
  return row;
}

// How a row is added up depends on the matrix and the row alone, and not on which rows a thread has.
template <bool kChecked, typename T, typename I>
FUNCTRANS_INLINE void multiply_chunk(const Rows<T, I>& a, i64 first, i64 last, RowKind kind,
                                     const T* x, T* out) {
#if FUNCTRANS_WITH_AVX512
  if (kind == RowKind::kAny && a.start(last) - a.start(first) <= kPairs) {
    multiply_all_at_once<kChecked>(a, first, last, x, out);
    return;
  }
#endif
  if (kind == RowKind::kNear) {
    multiply_each_row<kChecked, false>(a.data, a.indices, a.indptr, first, last, a.columns, x, out);
  } else {
    multiply_each_row<kChecked, true>(a.data, a.indices, a.indptr, first, last, a.columns, x, out);
  }
}

template <typename T, typename I>
void multiply_vector(const Rows<T, I>& given, i64 first, i64 last, RowKind kind, const T* x, T* out) {
  const Rows<T, I> a = given;
  const i64 most = kind == RowKind::kNear ? kTogetherNear : kTogether;
  const i64 step = std::max<i64>(1, most / (a.nse / std::max<i64>(1, a.rows) + 1));
  for (i64 row = first; row < last;) {
    const i64 end = kind == RowKind::kAny ? end_of_chunk(a, row, last, kPairs)
                                          : std::min(last, row + step);
    const i64 begin = a.start(row);
    if (all_inside(a.indices + begin, a.start(end) - begin, a.columns)) {
      multiply_chunk<false>(a, row, end, kind, x, out);
    } else {
      multiply_chunk<true>(a, row, end, kind, x, out);
    }
    row = end;
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
template <bool kFetch, typename T, typename I>
FUNCTRANS_INLINE void add_transposed_rows(const Rows<T, I>& a, i64 first, i64 last, const T* x,
                                          T* out) {
  const T* data = a.data;
  const I *indices = a.indices, *indptr = a.indptr;
  const i64 nse = a.nse, columns = a.columns;
  i64 e = a.start(first);
  for (i64 i = first; i < last; ++i) {
    const i64 end = std::min<i64>(indptr[i + 1], nse);
    const T factor = x[i];
    if (kFetch) fetch<1>(data, indices, e, end);
    for (; e < end; ++e) {
      const i64 c = indices[e];
      if (static_cast<std::uint64_t>(c) < static_cast<std::uint64_t>(columns)) {
        out[c] += data[e] * factor;
      }
    }
  }
}

// Rows of any length: the factors of their elements first, so that no loop ends unforeseen (0.75 of the
// time where rows have none to a few elements). What is written behind a row is that of the next one.
template <typename T, typename I>
FUNCTRANS_INLINE void add_transposed_elements(const Rows<T, I>& a, i64 first, i64 last, const T* x,
                                              T* out) {
  typedef T V __attribute__((vector_size(64)));
  constexpr i64 kLanes = 64 / sizeof(T);
  alignas(64) T factors[kPairs + 2 * kLanes];
  const i64 begin = a.start(first), n = a.start(last) - begin;
  for (i64 i = first; i < last; ++i) {
    const i64 end = a.start(i + 1) - begin;
    const V factor = x[i] - V{};
    for (i64 e = a.start(i) - begin; e < end; e += kLanes) {
      std::memcpy(factors + e, &factor, sizeof(V));
    }
  }
  const T* data = a.data + begin;
  const I* indices = a.indices + begin;
  const i64 columns = a.columns;
  for (i64 e = 0; e < n;) {
    const i64 stop = std::min(n, e + kLanes);
    fetch<1>(data, indices, e, stop);
    for (; e < stop; ++e) {
      const i64 c = indices[e];
      if (static_cast<std::uint64_t>(c) < static_cast<std::uint64_t>(columns)) {
        out[c] += data[e] * factors[e];
      }
    }
  }
}

template <typename T, typename I>
FUNCTRANS_INLINE void add_transposed_vector(const Rows<T, I>& given, i64 first, i64 last,
                                            RowKind kind, const T* x, T* out) {
  const Rows<T, I> a = given;
  if (kind == RowKind::kNear) {
    add_transposed_rows<false>(a, first, last, x, out);
    return;
  }
  if (kind == RowKind::kAlike) {
    add_transposed_rows<true>(a, first, last, x, out);
    return;
  }
  for (i64 row = first; row < last;) {
    const i64 end = end_of_chunk(a, row, last, kPairs);
    if (a.start(end) - a.start(row) <= kPairs) add_transposed_elements(a, row, end, x, out);
    else add_transposed_rows<true>(a, row, end, x, out);
    row = end;
  }
}

template <typename T, typename I>
void add_transposed(const Rows<T, I>& a, i64 first, i64 last, RowKind kind, i64 n, i64 from, i64 to,
                    const T* x, T* out) {
  if (n == 1) {
    add_transposed_vector(a, first, last, kind, x, out);
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
