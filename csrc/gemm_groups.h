// Packing of groups of numbers along k, each group as one int: pairs of bfloat16, fours of int8.
// Compiled once per instruction set, below gemm_micro.h and gemm_pack.h.

template <typename T>
constexpr int kGroup = 4 / sizeof(T);

// `taken` rows of k, of `count` adjacent columns each, as groups; rows that are missing are zero.
template <typename T>
inline void join_some(const T* source, i64 step, int taken, i64 count, int* to) {
  for (i64 r = 0; r < count; ++r) {
    u32 group = 0;
    for (int g = 0; g < taken; ++g) {
      group |= static_cast<u32>(source[g * step + r]) << (8 * sizeof(T) * g);
    }
    to[r] = static_cast<int>(group);
  }
}

// A whole group of 16 columns.
template <typename T>
inline __attribute__((always_inline)) Vector<int>::type joined(const T* source, i64 step) {
#ifdef FUNCTRANS_AVX512
  typename Vector<int>::type groups = {};
  constexpr __mmask16 all = 0xffff;  // without it gcc 12 warns of its own header
#pragma GCC unroll 4
  for (int g = 0; g < kGroup<T>; ++g, source += step) {
    __m512i row;
    if constexpr (sizeof(T) == 2) {
      row = _mm512_maskz_cvtepu16_epi32(
          all, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(source)));
    } else {
      row = _mm512_maskz_cvtepu8_epi32(
          all, _mm_loadu_si128(reinterpret_cast<const __m128i*>(source)));
    }
    groups |= (typename Vector<int>::type)row << (8 * static_cast<int>(sizeof(T)) * g);
  }
  return groups;
#else
  alignas(64) int groups[16];
  join_some(source, step, kGroup<T>, 16, groups);
  return load(groups);
#endif
}

#ifdef FUNCTRANS_AVX512
// A group of 32 columns. Each row is first brought into the order in which the halves of lanes,
// interleaved with those of the next row, come out as adjacent columns.
inline __attribute__((always_inline)) void join_panel(const u16* source, i64 step, int* to) {
  const __m512i order = _mm512_setr_epi64(0, 4, 1, 5, 2, 6, 3, 7);
  const __m512i x = _mm512_maskz_permutexvar_epi64(0xff, order, _mm512_loadu_si512(source));
  const __m512i y = _mm512_maskz_permutexvar_epi64(0xff, order, _mm512_loadu_si512(source + step));
  _mm512_storeu_si512(to, _mm512_unpacklo_epi16(x, y));
  _mm512_storeu_si512(to + 16, _mm512_unpackhi_epi16(x, y));
}

inline __attribute__((always_inline)) void join_panel(const unsigned char* source, i64 step,
                                                      int* to) {
  const __m256i order = _mm256_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7);
  __m256i row[4];
#pragma GCC unroll 4
  for (int g = 0; g < 4; ++g, source += step) {
    row[g] = _mm256_permutevar8x32_epi32(
        _mm256_loadu_si256(reinterpret_cast<const __m256i*>(source)), order);
  }
  const __m256i low0 = _mm256_unpacklo_epi8(row[0], row[1]);
  const __m256i low1 = _mm256_unpacklo_epi8(row[2], row[3]);
  const __m256i high0 = _mm256_unpackhi_epi8(row[0], row[1]);
  const __m256i high1 = _mm256_unpackhi_epi8(row[2], row[3]);
  __m256i* out = reinterpret_cast<__m256i*>(to);
  _mm256_storeu_si256(out, _mm256_unpacklo_epi16(low0, low1));
  _mm256_storeu_si256(out + 1, _mm256_unpackhi_epi16(low0, low1));
  _mm256_storeu_si256(out + 2, _mm256_unpacklo_epi16(high0, high1));
  _mm256_storeu_si256(out + 3, _mm256_unpackhi_epi16(high0, high1));
}
#endif

// One of R columns.
template <typename T, int R>
inline __attribute__((always_inline)) void join_rows(const T* source, i64 step, int* to) {
#ifdef FUNCTRANS_AVX512
  if constexpr (R == 32) return join_panel(source, step, to);
#endif
  int r = 0;
#pragma GCC unroll 4
  for (; r + 16 <= R; r += 16) store(to + r, joined(source + r, step));
  if (r < R) join_some(source + r, step, kGroup<T>, R - r, to + r);
}

// `rows` <= `filled` <= 64 rows (or columns) of length k, group after group; a group that k ends in
// is filled up with zeros, and so are rows up to `filled`. Of a bfloat16 product of 1024^3 packing
// took 13 % of the time before pairs were read where they are, and whole panels in vectors.
template <typename T>
void pack_group_panel(const T* source, i64 row, i64 step, i64 rows, i64 k, int filled,
                      int* packed) {
  constexpr int G = kGroup<T>;
  const i64 groups = (k + G - 1) / G;
  if (step == 1 && row % G == 0 && k % G == 0) {  // groups are adjacent already
    pack_along_k(reinterpret_cast<const int*>(source), row / G, rows, groups, filled, packed);
    return;
  }
  if (step == 1 && row != 1) {
    constexpr int piece = 64;
    alignas(64) int wide[64 * piece];
    for (i64 p = 0; p < groups; p += piece) {
      const i64 taken = groups - p < piece ? groups - p : piece;
      const i64 left = k - G * p < G * taken ? k - G * p : G * taken;
      for (i64 r = 0; r < rows; ++r) {
        wide[r * piece + taken - 1] = 0;
        __builtin_memcpy(wide + r * piece, source + r * row + G * p, sizeof(T) * left);
      }
      pack_along_k(wide, piece, rows, taken, filled, packed + p * filled);
    }
    return;
  }
  for (i64 p = 0; p < groups; ++p) {
    const T* first = source + G * p * step;
    int* to = packed + p * filled;
    const int taken = k - G * p < G ? static_cast<int>(k - G * p) : G;
    if (row == 1 && taken == G && rows == filled && filled == 32) {
      join_rows<T, 32>(first, step, to);
    } else if (row == 1 && taken == G && rows == filled && filled == 12) {
      join_rows<T, 12>(first, step, to);
    } else if (row == 1) {
      join_some(first, step, taken, rows, to);
    } else {
      for (i64 r = 0; r < rows; ++r) join_some(first + r * row, step, taken, 1, to + r);
    }
    for (i64 r = rows; r < filled; ++r) to[r] = 0;
  }
}

// Panels of groups; k counts numbers.
template <typename T>
inline void pack_groups(const void* source, i64 row, i64 step, i64 count, i64 k, int width,
                        bool pad, void* packed) {
  const i64 groups = (k + kGroup<T> - 1) / kGroup<T>;
  for (i64 i = 0; i < count; i += width) {
    const i64 rows = count - i < width ? count - i : width;
    pack_group_panel(static_cast<const T*>(source) + i * row, row, step, rows, k,
                     pad ? width : static_cast<int>(rows), static_cast<int*>(packed) + i * groups);
  }
}

// Sums as bfloat16. They are no denormal numbers, which the instruction would take as zero: dot
// products of pairs do so already.
inline void finish_bf16(i64 m, i64 n, const void* sums_start, i64 sums_row, double alpha,
                        bool accumulate, void* c_start, i64 c_row, i64 c_col) {
#ifdef FUNCTRANS_AVX512_BF16
  if (alpha == 1 && !accumulate && c_col == 1) {
    for (i64 i = 0; i < m; ++i) {
      const float* sums = static_cast<const float*>(sums_start) + i * sums_row;
      u16* c = static_cast<u16*>(c_start) + i * c_row;
      i64 j = 0;
      for (; j + 32 <= n; j += 32) {
        const __m512bh both = _mm512_cvtne2ps_pbh(_mm512_loadu_ps(sums + j + 16),
                                                  _mm512_loadu_ps(sums + j));
        _mm512_storeu_si512(c + j, (__m512i)both);
      }
      for (; j < n; j += 16) {
        const __mmask16 left = static_cast<__mmask16>(n - j < 16 ? (1u << (n - j)) - 1 : 0xffffu);
        const __m256bh half = _mm512_cvtneps_pbh(_mm512_maskz_loadu_ps(left, sums + j));
        _mm256_mask_storeu_epi16(c + j, left, (__m256i)half);
      }
    }
    return;
  }
#endif
  finish<float, Bf16>(m, n, sums_start, sums_row, alpha, accumulate, c_start, c_row, c_col);
}
