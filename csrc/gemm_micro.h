// Micro-kernels of matrix products, compiled once per instruction set: included by gemm_<isa>.cpp
// below its `#pragma GCC target`, inside an anonymous namespace. No header of the standard library
// may come in here: its inline functions would be compiled for that instruction set, and the linker
// might choose them for everyone.
//
// The structure is that of Goto and van de Geijn, "Anatomy of High-Performance Matrix
// Multiplication" (2008), as BLIS has it (Van Zee and van de Geijn, 2015): sums of a tile of
// mr x nr in registers, fed from packed panels.

// A vector of `Bytes` of T, and loads and stores of its first `count` lanes.
template <typename T>
struct Vector {
  typedef T type __attribute__((vector_size(kVectorBytes)));
  typedef T loose __attribute__((vector_size(kVectorBytes), aligned(sizeof(T)), may_alias));
  static constexpr int lanes = kVectorBytes / sizeof(T);
};

template <typename T>
inline __attribute__((always_inline)) typename Vector<T>::type load(const T* p) {
  return *reinterpret_cast<const typename Vector<T>::loose*>(p);
}

template <typename T>
inline __attribute__((always_inline)) void store(T* p, typename Vector<T>::type v) {
  *reinterpret_cast<typename Vector<T>::loose*>(p) = v;
}

#ifdef FUNCTRANS_AVX2
inline __m256i first_lanes32(int count) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(count), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
inline __m256i first_lanes64(int count) {
  return _mm256_cmpgt_epi64(_mm256_set1_epi64x(count), _mm256_setr_epi64x(0, 1, 2, 3));
}
#endif

template <typename T>
inline __attribute__((always_inline)) typename Vector<T>::type load_part(const T* p, int count) {
#ifdef FUNCTRANS_AVX512
  if constexpr (sizeof(T) == 4) {
    return (typename Vector<T>::type)_mm512_maskz_loadu_epi32((__mmask16)((1u << count) - 1), p);
  } else if constexpr (sizeof(T) == 8) {
    return (typename Vector<T>::type)_mm512_maskz_loadu_epi64((__mmask8)((1u << count) - 1), p);
  }
#elif defined(FUNCTRANS_AVX2)
  if constexpr (sizeof(T) == 4) {
    return (typename Vector<T>::type)_mm256_maskload_epi32(reinterpret_cast<const int*>(p),
                                                           first_lanes32(count));
  } else if constexpr (sizeof(T) == 8) {
    return (typename Vector<T>::type)_mm256_maskload_epi64(reinterpret_cast<const long long*>(p),
                                                           first_lanes64(count));
  }
#endif
  typename Vector<T>::type v = {};
  for (int i = 0; i < count; ++i) v[i] = p[i];
  return v;
}

template <typename T>
inline __attribute__((always_inline)) void store_part(T* p, typename Vector<T>::type v, int count) {
#ifdef FUNCTRANS_AVX512
  if constexpr (sizeof(T) == 4) {
    _mm512_mask_storeu_epi32(p, (__mmask16)((1u << count) - 1), (__m512i)v);
    return;
  } else if constexpr (sizeof(T) == 8) {
    _mm512_mask_storeu_epi64(p, (__mmask8)((1u << count) - 1), (__m512i)v);
    return;
  }
#elif defined(FUNCTRANS_AVX2)
  if constexpr (sizeof(T) == 4) {
    _mm256_maskstore_epi32(reinterpret_cast<int*>(p), first_lanes32(count), (__m256i)v);
    return;
  } else if constexpr (sizeof(T) == 8) {
    _mm256_maskstore_epi64(reinterpret_cast<long long*>(p), first_lanes64(count), (__m256i)v);
    return;
  }
#endif
  for (int i = 0; i < count; ++i) p[i] = v[i];
}

// One kind of sum: elements, sums, and how a product is added.
template <typename T>
struct Plain {
  using Element = T;
  using Sum = T;
  using ElementVector = typename Vector<T>::type;
  using SumVector = typename Vector<T>::type;
  static constexpr int k_step = 1;
  static constexpr bool shifted = false;
  using Stored = T;
  static inline __attribute__((always_inline)) ElementVector load_b(const T* p) { return load(p); }
  static inline __attribute__((always_inline)) ElementVector load_b(const T* p, int count) {
    return load_part(p, count);
  }
  static inline __attribute__((always_inline)) SumVector add(ElementVector x, ElementVector y,
                                                             SumVector sum) {
    return x * y + sum;
  }
};

// c[R, NV vectors] (+)= a * b. The last vector has `tail` lanes when Tail. Packed: a lies in steps
// of R elements and b is padded, so that its loads are whole. The sums of S::shifted begin at
// `start`, those of all others at zero.
template <typename S, int R, int NV, bool Tail, bool Packed>
__attribute__((noinline)) void tile(i64 k, const typename S::Element* a, i64 a_row, i64 a_col,
                                    const typename S::Stored* b, i64 b_row, typename S::Sum* c,
                                    i64 c_row, bool accumulate, int tail,
                                    const typename S::Sum* start = nullptr) {
  using E = typename S::Element;
  constexpr int L = Vector<E>::lanes;
  typename S::SumVector sum[R][NV];
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
    for (int v = 0; v < NV; ++v) {
      if constexpr (S::shifted) {
        sum[r][v] = load(start + v * L);
      } else {
        sum[r][v] = (typename S::SumVector){};
      }
    }
  }
  if (Packed) {
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) __builtin_prefetch(c + r * c_row, 1);
  }
  for (i64 p = 0; p < k; ++p) {
    typename S::ElementVector y[NV];
#pragma GCC unroll 8
    for (int v = 0; v < NV; ++v) {
      if constexpr (Tail && !Packed) {
        y[v] = v == NV - 1 ? S::load_b(b + v * L, tail) : S::load_b(b + v * L);
      } else {
        y[v] = S::load_b(b + v * L);
      }
    }
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      const E value = Packed ? a[r] : a[r * a_row];
      const typename S::ElementVector x = value - (typename S::ElementVector){};
#pragma GCC unroll 8
      for (int v = 0; v < NV; ++v) sum[r][v] = S::add(x, y[v], sum[r][v]);
    }
    a += Packed ? R : a_col;
    b += b_row;
  }
  // hides where the rows of c are, which would otherwise be worked out before the loop and kept
  __asm__("" : "+r"(c_row));
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r, c += c_row) {
#pragma GCC unroll 8
    for (int v = 0; v < NV; ++v) {
      typename S::Sum* to = c + v * L;
      if (Tail && v == NV - 1) {
        store_part(to, accumulate ? load_part(to, tail) + sum[r][v] : sum[r][v], tail);
      } else {
        store(to, accumulate ? load(to) + sum[r][v] : sum[r][v]);
      }
    }
  }
}

// The tile of `rows` <= R rows and `columns` columns.
template <typename S, int R, int NV, bool Packed>
inline __attribute__((always_inline)) void edge_tile(int rows, int columns, i64 k,
                                                     const typename S::Element* a, i64 a_row,
                                                     i64 a_col, const typename S::Stored* b,
                                                     i64 b_row, typename S::Sum* c, i64 c_row,
                                                     bool accumulate,
                                                     const typename S::Sum* start = nullptr) {
  constexpr int L = Vector<typename S::Element>::lanes;
  if constexpr (R > 1) {
    if (rows < R) {
      return edge_tile<S, R - 1, NV, Packed>(rows, columns, k, a, a_row, a_col, b, b_row, c, c_row,
                                             accumulate, start);
    }
  }
  if constexpr (NV > 1) {
    if (columns <= (NV - 1) * L) {
      return edge_tile<S, R, NV - 1, Packed>(rows, columns, k, a, a_row, a_col, b, b_row, c, c_row,
                                             accumulate, start);
    }
  }
  if (columns == NV * L) {
    tile<S, R, NV, false, Packed>(k, a, a_row, a_col, b, b_row, c, c_row, accumulate, L, start);
  } else {
    tile<S, R, NV, true, Packed>(k, a, a_row, a_col, b, b_row, c, c_row, accumulate,
                                 columns - (NV - 1) * L, start);
  }
}

// A panel of a stays in the first cache while those of b come from the second. Sums of S::shifted
// begin at `starts`, one for each column of the panels of b.
template <typename S, int MR, int NV>
inline __attribute__((always_inline)) void block_from(i64 m, i64 n, i64 k, const void* a_packed,
                                                      const void* b_packed, void* c_start,
                                                      i64 c_row, bool accumulate,
                                                      const typename S::Sum* starts) {
  using E = typename S::Element;
  constexpr int NR = NV * Vector<E>::lanes;
  for (i64 i = 0; i < m; i += MR) {
    const int rows = m - i < MR ? static_cast<int>(m - i) : MR;
    const E* a = static_cast<const E*>(a_packed) + i * k;
    for (i64 j = 0; j < n; j += NR) {
      const int columns = n - j < NR ? static_cast<int>(n - j) : NR;
      const E* b = static_cast<const E*>(b_packed) + j * k;
      typename S::Sum* c = static_cast<typename S::Sum*>(c_start) + i * c_row + j;
      const typename S::Sum* start = S::shifted ? starts + j : nullptr;
      if (rows == MR && columns == NR) {
        tile<S, MR, NV, false, true>(k, a, 1, MR, b, NR, c, c_row, accumulate, 0, start);
      } else {
        edge_tile<S, MR, NV, true>(rows, columns, k, a, 1, MR, b, NR, c, c_row, accumulate, start);
      }
    }
  }
}

template <typename S, int MR, int NV>
void block(i64 m, i64 n, i64 k, const void* a_packed, const void* b_packed, void* c_start,
           i64 c_row, bool accumulate) {
  block_from<S, MR, NV>(m, n, k, a_packed, b_packed, c_start, c_row, accumulate, nullptr);
}

// How many vectors wide a tile of R rows is, so that enough sums are on their way.
template <int R, int MR, int NV>
constexpr int wide_vectors() {
  return R * 6 <= MR ? 4 * NV : R * 2 <= MR ? 2 * NV : NV;
}

template <typename S, int R, int MR, int NV>
inline __attribute__((always_inline)) void direct_rows(int rows, i64 n, i64 k,
                                                       const typename S::Element* a, i64 a_row,
                                                       i64 a_col, const typename S::Stored* b,
                                                       i64 b_row, typename S::Sum* c, i64 c_row,
                                                       bool accumulate) {
  if constexpr (R > 1) {
    if (rows < R) {
      return direct_rows<S, R - 1, MR, NV>(rows, n, k, a, a_row, a_col, b, b_row, c, c_row,
                                           accumulate);
    }
  }
  constexpr int W = wide_vectors<R, MR, NV>();
  constexpr int width = W * Vector<typename S::Element>::lanes;
  i64 j = 0;
  if (W > NV) {
    for (; j + width <= n; j += width) {
      tile<S, R, W, false, false>(k, a, a_row, a_col, b + j, b_row, c + j, c_row, accumulate, 0);
    }
  }
  constexpr int narrow = NV * Vector<typename S::Element>::lanes;
  for (; j < n; j += narrow) {
    const int columns = n - j < narrow ? static_cast<int>(n - j) : narrow;
    edge_tile<S, R, NV, false>(R, columns, k, a, a_row, a_col, b + j, b_row, c + j, c_row,
                               accumulate);
  }
}

constexpr i64 kPanelsAhead = 4;

// Panels of nearly equal height: 32 rows are 11 + 11 + 10, not 12 + 12 + 8.
template <typename S, int MR, int NV>
void direct(i64 m, i64 n, i64 k, const void* a_start, i64 a_row, i64 a_col, const void* b_start,
            i64 b_row, void* c_start, i64 c_row, bool accumulate) {
  using E = typename S::Element;
  const i64 panels = (m + MR - 1) / MR;
  // short rows come and go faster than a processor asks for them by itself
  const bool fetches = panels > kPanelsAhead && a_col == 1 &&
                       k * static_cast<i64>(sizeof(E)) <= 64 &&
                       n * static_cast<i64>(sizeof(typename S::Sum)) <= 64;
  i64 i = 0;
  for (i64 panel = 0; panel < panels; ++panel) {
    const int rows = static_cast<int>((m - i + panels - panel - 1) / (panels - panel));
    if (fetches) {
      for (i64 r = i + kPanelsAhead * MR; r < i + (kPanelsAhead + 1) * MR; ++r) {
        __builtin_prefetch(static_cast<const E*>(a_start) + r * a_row);
        __builtin_prefetch(static_cast<typename S::Sum*>(c_start) + r * c_row, 1);
      }
    }
    direct_rows<S, MR, MR, NV>(rows, n, k, static_cast<const E*>(a_start) + i * a_row, a_row, a_col,
                               static_cast<const typename S::Stored*>(b_start), b_row,
                               static_cast<typename S::Sum*>(c_start) + i * c_row, c_row,
                               accumulate);
    i += rows;
  }
}

// Four rows of b at a time, so that y is read and written once for four.
template <typename T>
void add_rows(i64 n, i64 k, const T* x, i64 x_step, const T* b, i64 b_row, T* y) {
  constexpr int L = Vector<T>::lanes;
  i64 p = 0;
  for (; p + 4 <= k; p += 4, b += 4 * b_row) {
    const T x0 = x[p * x_step], x1 = x[(p + 1) * x_step];
    const T x2 = x[(p + 2) * x_step], x3 = x[(p + 3) * x_step];
    i64 j = 0;
    for (; j + L <= n; j += L) {
      store(y + j, load(y + j) + (load(b + j) * x0 + load(b + b_row + j) * x1) +
                       (load(b + 2 * b_row + j) * x2 + load(b + 3 * b_row + j) * x3));
    }
    for (; j < n; ++j) {
      y[j] += (b[j] * x0 + b[b_row + j] * x1) + (b[2 * b_row + j] * x2 + b[3 * b_row + j] * x3);
    }
  }
  for (; p < k; ++p, b += b_row) {
    const T x0 = x[p * x_step];
    for (i64 j = 0; j < n; ++j) y[j] += b[j] * x0;
  }
}

// y = x @ b, where y is short enough for the stack (kRowsTile bytes). Blocks of rows have sums of
// their own: 20,000 products in sequence are 5e-6 off, of float32, and 3e-7 so.
template <typename T>
void vector_rows(i64 n, i64 k, const void* x_start, i64 x_step, const void* b_start, i64 b_row,
                 void* y_start, bool accumulate) {
  constexpr i64 block = 128;
  const T* x = static_cast<const T*>(x_start);
  const T* b = static_cast<const T*>(b_start);
  T* y = static_cast<T*>(y_start);
  if (!accumulate) {
    for (i64 j = 0; j < n; ++j) y[j] = 0;
  }
  if (k <= 2 * block) return add_rows(n, k, x, x_step, b, b_row, y);
  T sums[kRowsTile / sizeof(T)];
  for (i64 p = 0; p < k; p += block) {
    for (i64 j = 0; j < n; ++j) sums[j] = 0;
    add_rows(n, k - p < block ? k - p : block, x + p * x_step, x_step, b + p * b_row, b_row, sums);
    for (i64 j = 0; j < n; ++j) y[j] += sums[j];
  }
}

template <typename T>
inline __attribute__((always_inline)) T sum_of(typename Vector<T>::type v) {
  T sum = 0;
  for (int i = 0; i < Vector<T>::lanes; ++i) sum += v[i];
  return sum;
}

template <typename T>
struct Total {
  using type = T;
};
template <>
struct Total<float> {
  using type = double;
};

// R rows of b against x at a time, two vectors each.
template <typename T, int R>
inline __attribute__((always_inline)) void dots(i64 k, const T* x, const T* b, i64 b_row,
                                                typename Total<T>::type* totals) {
  constexpr int L = Vector<T>::lanes;
  typename Vector<T>::type even[R] = {}, odd[R] = {};
  i64 p = 0;
  for (; p + 2 * L <= k; p += 2 * L) {
    const typename Vector<T>::type x0 = load(x + p), x1 = load(x + p + L);
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) {
      even[r] += load(b + r * b_row + p) * x0;
      odd[r] += load(b + r * b_row + p + L) * x1;
    }
  }
  for (; p < k; p += L) {
    const int count = k - p < L ? static_cast<int>(k - p) : L;
    const typename Vector<T>::type x0 = load_part(x + p, count);
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) even[r] += load_part(b + r * b_row + p, count) * x0;
  }
  for (int r = 0; r < R; ++r) totals[r] += sum_of<T>(even[r] + odd[r]);
}

// Long rows are read in pieces, whose sums are added up in double.
template <typename T, int R>
inline __attribute__((always_inline)) void long_dots(i64 k, const T* x, const T* b, i64 b_row,
                                                     T* y, i64 y_step, bool accumulate) {
  constexpr i64 piece = 2048;
  typename Total<T>::type totals[R] = {};
  for (i64 p = 0; p < k; p += piece) {
    dots<T, R>(k - p < piece ? k - p : piece, x + p, b + p, b_row, totals);
  }
  for (int r = 0; r < R; ++r) {
    const T sum = static_cast<T>(totals[r]);
    y[r * y_step] = accumulate ? y[r * y_step] + sum : sum;
  }
}

template <typename T>
void vector_dots(i64 n, i64 k, const void* x_start, const void* b_start, i64 b_row, void* y_start,
                 i64 y_step, bool accumulate) {
  const T* x = static_cast<const T*>(x_start);
  const T* b = static_cast<const T*>(b_start);
  T* y = static_cast<T*>(y_start);
  i64 j = 0;
  for (; j + 4 <= n; j += 4) {
    long_dots<T, 4>(k, x, b + j * b_row, b_row, y + j * y_step, y_step, accumulate);
  }
  for (; j < n; ++j) {
    long_dots<T, 1>(k, x, b + j * b_row, b_row, y + j * y_step, y_step, accumulate);
  }
}
