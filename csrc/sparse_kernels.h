// Products of ranges of compressed rows, for the instruction set that is the target where this is
// included: vectors of GCC are made into instructions of the function that they stand in.

// Whether all columns are there, asked once for a range: the loops over elements need not ask.
template <typename I>
FUNCTRANS_INLINE bool all_inside(const I* indices, i64 n, i64 columns) {
  using U = std::make_unsigned_t<I>;
  const U most = static_cast<U>(std::min<i64>(columns, std::numeric_limits<I>::max()));
  if (most == 0) return n == 0;
  U largest = 0;
  for (i64 e = 0; e < n; ++e) largest = std::max(largest, static_cast<U>(indices[e]));
  // a size that indices cannot reach leaves the largest index inside
  return largest < most || (largest == most && columns > static_cast<i64>(most));
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
      if (n == 1) out[c] += a.data[e] * row[0];
      else add_scaled(out + c * n + from, a.data[e], row + from, to - from);
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

template <typename T, typename I>
void add_transposed(const Rows<T, I>& a, i64 first, i64 last, i64 n, i64 from, i64 to,
                                 const T* x, T* out) {
  if (range_is_inside(a, first, last)) {
    add_transposed_range<true>(a, first, last, n, from, to, x, out);
  } else {
    add_transposed_range<false>(a, first, last, n, from, to, x, out);
  }
}

template <typename T, typename I>
constexpr RowKernels<T, I> kKernels{range_is_inside<T, I>, multiply_rows<T, I>,
                                      add_transposed<T, I>};
