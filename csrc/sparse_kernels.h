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
template <typename V, typename T, typename I>
FUNCTRANS_INLINE V products(const T* data, const I* indices, const T* x) {
  const auto at = [&](int k) { return x[static_cast<std::make_unsigned_t<I>>(indices[k])]; };
  V value, read;  // loads that extend a sign take longer
  std::memcpy(&value, data, sizeof(V));
  if constexpr (sizeof(V) == 2 * sizeof(T)) read = V{at(0), at(1)};
  else read = V{at(0), at(1), at(2), at(3)};
  return value * read;
}

// Pointers are in order and in bounds; the arrays are in registers, which what is written cannot be.
template <typename T, typename I>
FUNCTRANS_INLINE void multiply_vector_inside(const T* data, const I* indices, const I* indptr,
                                             i64 first, i64 last, const T* x, T* out) {
  typedef T V __attribute__((vector_size(16)));
  constexpr i64 kLanes = 16 / sizeof(T);
  i64 e = indptr[first];
  for (i64 i = first; i < last; ++i) {
    const i64 end = indptr[i + 1];
    V even = {}, odd = {};
    for (; e + 2 * kLanes <= end; e += 2 * kLanes) {
      even += products<V>(data + e, indices + e, x);
      odd += products<V>(data + e + kLanes, indices + e + kLanes, x);
    }
    if (e + kLanes <= end) {
      even += products<V>(data + e, indices + e, x);
      e += kLanes;
    }
    even += odd;
    T total = even[0] + even[1];
    if constexpr (kLanes == 4) {
      total += even[2] + even[3];
      if (e + 2 <= end) {
        total += data[e] * x[indices[e]] + data[e + 1] * x[indices[e + 1]];
        e += 2;
      }
    }
    if (e < end) {
      total += data[e] * x[indices[e]];
      ++e;
    }
    out[i] = total;
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

template <typename T, typename I>
constexpr RowKernels<T, I> kKernels{multiply_vector<T, I>, multiply_rows<T, I>,
                                      add_transposed<T, I>};
