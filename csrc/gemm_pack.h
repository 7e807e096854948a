// Packing of operands into panels, compiled once per instruction set like gemm_micro.h.

#include "half.h"

using u16 = unsigned short;
using u32 = unsigned int;
using u64 = unsigned long long;

struct Bf16 {
  u16 bits;
};
struct F16 {
  u16 bits;
};

template <typename T>
struct IsF16 {
  static constexpr bool value = false;
};
template <>
struct IsF16<F16> {
  static constexpr bool value = true;
};
template <typename T>
struct IsHalf {
  static constexpr bool value = false;
};
template <>
struct IsHalf<F16> {
  static constexpr bool value = true;
};
template <>
struct IsHalf<Bf16> {
  static constexpr bool value = true;
};

template <int Bytes>
struct SignedOf {
  using type = int;
};
template <>
struct SignedOf<8> {
  using type = long long;
};

inline float as_float(u32 bits) {
  float value;
  __builtin_memcpy(&value, &bits, 4);
  return value;
}

template <typename T>
inline T widened(T x) {
  return x;
}
inline float widened(Bf16 x) { return as_float(static_cast<u32>(x.bits) << 16); }
inline float widened(F16 x) { return float_of_half(x.bits); }

// The first `count` of a vector's numbers, as numbers of adjacent Out; all where count is L.
template <typename In, typename Out>
inline __attribute__((always_inline)) typename Vector<Out>::type load_widened(const In* p,
                                                                              int count) {
  constexpr int L = Vector<Out>::lanes;
  if constexpr (sizeof(In) == sizeof(Out)) {
    return count == L ? load(reinterpret_cast<const Out*>(p))
                      : load_part(reinterpret_cast<const Out*>(p), count);
  } else {
#ifdef FUNCTRANS_AVX512
    const __mmask16 taken = static_cast<__mmask16>(count == L ? 0xffffu : (1u << count) - 1);
    const __m256i bits = _mm256_maskz_loadu_epi16(taken, p);
    if constexpr (IsF16<In>::value) {
      return (typename Vector<Out>::type)_mm512_maskz_cvtph_ps(0xffff, bits);
    } else {
      const __m512i wide = _mm512_maskz_cvtepu16_epi32(0xffff, bits);
      return (typename Vector<Out>::type)((typename Vector<int>::type)wide << 16);
    }
#else
    typename Vector<Out>::type v = {};
    if (count == L) {
      for (int i = 0; i < L; ++i) v[i] = widened(p[i]);
    } else {
      for (int i = 0; i < count; ++i) v[i] = widened(p[i]);
    }
    return v;
#endif
  }
}

template <int... I>
struct Indices {};
template <int N, int... I>
struct MakeIndices : MakeIndices<N - 1, N - 1, I...> {};
template <int... I>
struct MakeIndices<0, I...> {
  using type = Indices<I...>;
};

#if defined(__clang__) || __GNUC__ >= 12
#define FUNCTRANS_SHUFFLE(x, y, Index, ...) __builtin_shufflevector(x, y, __VA_ARGS__)
#else
#define FUNCTRANS_SHUFFLE(x, y, Index, ...) __builtin_shuffle(x, y, Index{__VA_ARGS__})
#endif

// One round of a transposition: lanes with the bit `Half` of the first row change places with lanes
// without it of the second.
template <int Half, typename T, int... I>
inline __attribute__((always_inline)) void exchange(typename Vector<T>::type& first,
                                                    typename Vector<T>::type& second,
                                                    Indices<I...>) {
  constexpr int L = Vector<T>::lanes;
  using Index [[maybe_unused]] = typename Vector<typename SignedOf<sizeof(T)>::type>::type;
  const typename Vector<T>::type x = first, y = second;
  first = FUNCTRANS_SHUFFLE(x, y, Index, ((I & Half) ? I - Half + L : I)...);
  second = FUNCTRANS_SHUFFLE(x, y, Index, ((I & Half) ? I + L : I + Half)...);
}

// An L x L block in place, in log2(L) rounds.
template <typename T, int Half = Vector<T>::lanes / 2>
inline __attribute__((always_inline)) void transpose_block(typename Vector<T>::type* rows) {
  constexpr int L = Vector<T>::lanes;
#pragma GCC unroll 16
  for (int r = 0; r < L; ++r) {
    if ((r & Half) == 0) {
      exchange<Half, T>(rows[r], rows[r + Half], typename MakeIndices<L>::type{});
    }
  }
  if constexpr (Half > 1) transpose_block<T, Half / 2>(rows);
}

// `steps` <= L columns of a panel whose rows are adjacent along k.
template <typename T>
inline __attribute__((always_inline)) void pack_columns(const T* source, i64 row, i64 rows,
                                                        int steps, int width, T* packed) {
  constexpr int L = Vector<T>::lanes;
  for (i64 r0 = 0; r0 < rows; r0 += L) {
    typename Vector<T>::type block[L];
#pragma GCC unroll 16
    for (int r = 0; r < L; ++r) {
      block[r] = r0 + r >= rows ? (typename Vector<T>::type){}
                 : steps == L   ? load(source + (r0 + r) * row)
                                : load_part(source + (r0 + r) * row, steps);
    }
    transpose_block<T>(block);
    const int filled = width - r0 < L ? static_cast<int>(width - r0) : L;
#pragma GCC unroll 16
    for (int q = 0; q < L; ++q) {
      if (q < steps) {
        if (filled == L) {
          store(packed + q * width + r0, block[q]);
        } else {
          store_part(packed + q * width + r0, block[q], filled);
        }
      }
    }
  }
  for (int q = 0; q < steps; ++q) {
    for (i64 r = (rows + L - 1) / L * L; r < width; ++r) packed[q * width + r] = 0;
  }
}

template <typename T>
void pack_along_k(const T* source, i64 row, i64 rows, i64 k, int width, T* packed) {
  constexpr int L = Vector<T>::lanes;
  i64 p = 0;
  for (; p + L <= k; p += L) {
    pack_columns(source + p, row, rows, L, width, packed + p * width);
  }
  if (p < k) {
    pack_columns(source + p, row, rows, static_cast<int>(k - p), width, packed + p * width);
  }
}

template <typename T>
void pack_across_k(const T* source, i64 step, i64 rows, i64 k, int width, T* packed) {
  constexpr int L = Vector<T>::lanes;
  for (i64 p = 0; p < k; ++p, source += step, packed += width) {
    i64 r = 0;
    for (; r + L <= rows; r += L) store(packed + r, load(source + r));
    if (r < rows) {
      store_part(packed + r, load_part(source + r, static_cast<int>(rows - r)),
                 static_cast<int>(rows - r));
    }
    for (r = rows; r < width; ++r) packed[r] = 0;
  }
}

template <typename In, typename Out>
inline void widen_row(const In* source, i64 count, Out* to) {
  i64 i = 0;
  if constexpr (sizeof(In) == 2 && sizeof(Out) == 4 && IsHalf<In>::value) {
    constexpr int L = Vector<Out>::lanes;
    for (; i + L <= count; i += L) store(to + i, load_widened<In, Out>(source + i, L));
  }
  for (; i < count; ++i) to[i] = static_cast<Out>(widened(source[i]));
}

template <typename In, typename Out>
void pack_panel(const In* source, i64 row, i64 step, i64 rows, i64 k, int width, Out* packed) {
  if constexpr (sizeof(In) == sizeof(Out)) {
    if (step == 1) {
      return pack_along_k(reinterpret_cast<const Out*>(source), row, rows, k, width, packed);
    }
    if (row == 1) {
      return pack_across_k(reinterpret_cast<const Out*>(source), step, rows, k, width, packed);
    }
  } else if (step == 1 && row != 1) {
    // widened a piece at a time, then as above
    constexpr int piece = 64;
    alignas(64) Out wide[64 * piece];
    for (i64 p = 0; p < k; p += piece) {
      const i64 count = k - p < piece ? k - p : piece;
      for (i64 r = 0; r < rows; ++r) {
        widen_row(source + r * row + p, count, wide + r * piece);
      }
      pack_along_k(wide, piece, rows, count, width, packed + p * width);
    }
    return;
  } else if (row == 1) {
    for (i64 p = 0; p < k; ++p) {
      widen_row(source + p * step, rows, packed + p * width);
      for (i64 r = rows; r < width; ++r) packed[p * width + r] = 0;
    }
    return;
  }
  for (i64 p = 0; p < k; ++p) {
    for (i64 r = 0; r < rows; ++r) {
      packed[p * width + r] = static_cast<Out>(widened(source[r * row + p * step]));
    }
    for (i64 r = rows; r < width; ++r) packed[p * width + r] = 0;
  }
}

template <typename In, typename Out>
void pack(const void* source, i64 row, i64 step, i64 count, i64 k, int width, bool pad,
          void* packed) {
  for (i64 i = 0; i < count; i += width) {
    const i64 rows = count - i < width ? count - i : width;
    pack_panel(static_cast<const In*>(source) + i * row, row, step, rows, k,
               pad ? width : static_cast<int>(rows), static_cast<Out*>(packed) + i * k);
  }
}

// The other way: sums as what c holds. Rounding is to the nearest, ties to even.

template <typename Out, typename Sum>
struct Narrow {
  static inline Out of(Sum x) { return static_cast<Out>(x); }
};
template <typename Sum>
struct Narrow<Bf16, Sum> {
  static inline Bf16 of(float x) {
    u32 bits;
    __builtin_memcpy(&bits, &x, 4);
    const u32 rounded = (bits + 0x7fffu + ((bits >> 16) & 1)) >> 16;
    return {static_cast<u16>(x != x ? (bits >> 16) | 0x40u : rounded)};
  }
};
template <typename Sum>
struct Narrow<F16, Sum> {
  static inline F16 of(float x) { return {half_of_float(x)}; }
};

template <typename Sum, typename Out>
void finish(i64 m, i64 n, const void* sums_start, i64 sums_row, double alpha, bool accumulate,
            void* c_start, i64 c_row, i64 c_col) {
  const Sum scale = static_cast<Sum>(alpha);
  for (i64 i = 0; i < m; ++i) {
    const Sum* sums = static_cast<const Sum*>(sums_start) + i * sums_row;
    Out* c = static_cast<Out*>(c_start) + i * c_row;
    if (accumulate) {
      for (i64 j = 0; j < n; ++j) {
        const Sum before = static_cast<Sum>(widened(c[j * c_col]));
        c[j * c_col] = Narrow<Out, Sum>::of(sums[j] * scale + before);
      }
    } else if (c_col != 1) {
      for (i64 j = 0; j < n; ++j) c[j * c_col] = Narrow<Out, Sum>::of(sums[j] * scale);
    } else {
      for (i64 j = 0; j < n; ++j) c[j] = Narrow<Out, Sum>::of(sums[j] * scale);
    }
  }
}
