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
// there are. There is room for 16 more than elements. Without branches: rows are of any length.
template <typename I>
FUNCTRANS_INLINE i64 starts_of_rows(const I* pairs, i64 n, std::int32_t* starts) {
  i64 runs = 0, e = 1;
  starts[0] = 0;
#if defined(__AVX512F__)
  if constexpr (sizeof(I) == 4) {
    // 8 pairs beside those before them: 0.2 of the time of one by one
    __m512i here = _mm512_setr_epi32(1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8);
    for (; e + 8 <= n; e += 8) {
      const __mmask16 begins = _mm512_mask_cmpneq_epi32_mask(
          0x5555, _mm512_loadu_si512(pairs + 2 * e), _mm512_loadu_si512(pairs + 2 * e - 2));
      _mm512_storeu_si512(starts + runs + 1, _mm512_maskz_compress_epi32(begins, here));
      runs += __builtin_popcount(begins);
      here = _mm512_add_epi32(here, _mm512_set1_epi32(8));
    }
  }
#endif
  for (; e < n; ++e) {
    starts[runs + 1] = static_cast<std::int32_t>(e);
    runs += pairs[2 * e] != pairs[2 * e - 2];
  }
  starts[++runs] = static_cast<std::int32_t>(n);
  return runs;
}

// At most kPairs elements of coordinates: those of a row that stand side by side are added up before
// they are added to its sum. Where rows begin is found without branches, before.
template <typename T, typename I>
void multiply_pairs(const T* data, const I* pairs, i64 n, i64 rows, i64 columns, const T* x,
                    T* out) {
  if (!all_pairs_inside(pairs, n, rows, columns)) {
    for (i64 e = 0; e < n; ++e) {
      const i64 i = pairs[2 * e], j = pairs[2 * e + 1];
      if (static_cast<std::uint64_t>(i) < static_cast<std::uint64_t>(rows) &&
          static_cast<std::uint64_t>(j) < static_cast<std::uint64_t>(columns)) {
        out[i] += data[e] * x[j];
      }
    }
    return;
  }
  std::int32_t starts[kPairs + 16];
  const i64 runs = starts_of_rows(pairs, n, starts);
  if (2 * runs > n) {
    for (i64 e = 0; e < n; ++e) out[pairs[2 * e]] += data[e] * x[pairs[2 * e + 1]];
    return;
  }
  for (i64 k = 0; k < runs; ++k) {
    const i64 e = starts[k];
    out[pairs[2 * e]] += sum_of_products<2>(data, pairs + 1, e, starts[k + 1], x);
  }
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
