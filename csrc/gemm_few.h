// Dot products of a few rows with columns that lie along k, where they are: nothing is packed, and
// the columns are read once. Compiled once per instruction set, below gemm_pack.h. What numbers
// become in a vector, and how they are multiplied, is a parameter:
//
//   D::Number, D::Sum      what is read, and what a sum is
//   D::kNumbers            how many numbers of k a vector takes
//   D::few(p, count), D::many(p, count)    vectors of a row and of a column; count < kNumbers is
//                                          the end of k, and the rest of the vector's row is zero
//   D::add(x, y, sum)      sum + x * y, lane by lane
//   D::kShift              whether the vectors of columns are shifted; what that adds to a sum is
//                          D::add_shift(x, shift), and is taken away

template <typename In, typename Out>
struct WideDots {
  using Number = In;
  using Sum = Out;
  using Data = typename Vector<Out>::type;
  using SumVector = typename Vector<Out>::type;
  static constexpr int kNumbers = Vector<Out>::lanes;
  static constexpr bool kShift = false;
  static inline __attribute__((always_inline)) Data few(const In* p, int count) {
    return load_widened<In, Out>(p, count);
  }
  static inline __attribute__((always_inline)) Data many(const In* p, int count) {
    return load_widened<In, Out>(p, count);
  }
  static inline __attribute__((always_inline)) SumVector add(Data x, Data y, SumVector sum) {
    return x * y + sum;
  }
};

constexpr int kDotColumns = 4;
constexpr int kDotRows = kVectorBytes == 64 ? 4 : 2;  // 16 sums, 4 columns and a row: 21 registers
// Bytes of a column at a time, so that those of four stay in the first cache for the next rows.
constexpr i64 kDotDepth = 4096;

// c[R, columns] (+)= a * b; `columns` <= 4 columns of b.
template <typename D, int R>
__attribute__((noinline)) void dots_tile(i64 columns, i64 k, const typename D::Number* a, i64 a_row,
                                         const typename D::Number* b, i64 b_col,
                                         typename D::Sum* c, i64 c_row, bool accumulate) {
  using Sum = typename D::Sum;
  constexpr int C = kDotColumns, L = Vector<Sum>::lanes, N = D::kNumbers;
  constexpr int blocks = (R * C + L - 1) / L;
  typename D::SumVector sum[blocks * L] = {};
  typename D::SumVector shift[R] = {};
  const typename D::Number* column[C];
  for (int q = 0; q < C; ++q) column[q] = b + (q < columns ? q : 0) * b_col;
  i64 p = 0;
  const auto step = [&](int count) __attribute__((always_inline)) {
    typename D::Data y[C];
#pragma GCC unroll 4
    for (int q = 0; q < C; ++q) y[q] = D::many(column[q] + p, count);
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) {
      const typename D::Data x = D::few(a + r * a_row + p, count);
#pragma GCC unroll 4
      for (int q = 0; q < C; ++q) sum[r * C + q] = D::add(x, y[q], sum[r * C + q]);
      if constexpr (D::kShift) shift[r] = D::add_shift(x, shift[r]);
    }
  };
  for (; p + N <= k; p += N) step(N);
  if (p < k) step(static_cast<int>(k - p));
  if constexpr (D::kShift) {
    for (int r = 0; r < R; ++r) {
      for (int q = 0; q < C; ++q) sum[r * C + q] -= shift[r];
    }
  }
  alignas(64) Sum totals[blocks * L];
#pragma GCC unroll 8
  for (int block = 0; block < blocks; ++block) {
    transpose_block<Sum>(sum + block * L);
    typename D::SumVector total = sum[block * L];
#pragma GCC unroll 16
    for (int q = 1; q < L; ++q) total += sum[block * L + q];
    store(totals + block * L, total);
  }
  for (int r = 0; r < R; ++r) {
    for (i64 q = 0; q < columns; ++q) {
      c[r * c_row + q] = accumulate ? c[r * c_row + q] + totals[r * C + q] : totals[r * C + q];
    }
  }
}

template <typename D, int R>
inline __attribute__((always_inline)) void dots_rows(int rows, i64 columns, i64 k,
                                                     const typename D::Number* a, i64 a_row,
                                                     const typename D::Number* b, i64 b_col,
                                                     typename D::Sum* c, i64 c_row,
                                                     bool accumulate) {
  if constexpr (R > 1) {
    if (rows < R) {
      return dots_rows<D, R - 1>(rows, columns, k, a, a_row, b, b_col, c, c_row, accumulate);
    }
  }
  dots_tile<D, R>(columns, k, a, a_row, b, b_col, c, c_row, accumulate);
}

// c[m, n] = a * b with rows of a and columns of b that are adjacent along k.
template <typename D>
void dots_of_few(i64 m, i64 n, i64 k, const void* a_start, i64 a_row, const void* b_start,
                 i64 b_col, void* c_start, i64 c_row) {
  using Number = typename D::Number;
  const i64 depth = m <= kDotRows ? k : kDotDepth / static_cast<i64>(sizeof(Number));
  const i64 panels = (m + kDotRows - 1) / kDotRows;
  for (i64 k0 = 0; k0 < k; k0 += depth) {
    const i64 taken = k - k0 < depth ? k - k0 : depth;
    const Number* a = static_cast<const Number*>(a_start) + k0;
    for (i64 j = 0; j < n; j += kDotColumns) {
      const Number* b = static_cast<const Number*>(b_start) + j * b_col + k0;
      const i64 columns = n - j < kDotColumns ? n - j : kDotColumns;
      typename D::Sum* c = static_cast<typename D::Sum*>(c_start) + j;
      i64 i = 0;
      for (i64 panel = 0; panel < panels; ++panel) {
        const int rows = static_cast<int>((m - i + panels - panel - 1) / (panels - panel));
        dots_rows<D, kDotRows>(rows, columns, taken, a + i * a_row, a_row, b, b_col,
                               c + i * c_row, c_row, k0 > 0);
        i += rows;
      }
    }
  }
}

// Few rows, where b lies in rows of adjacent narrower numbers, which become wide in registers; a
// was made wide before.
template <typename In, typename Out>
struct WideRows : Plain<Out> {
  using Stored = In;
  static inline __attribute__((always_inline)) typename Vector<Out>::type load_b(const In* p) {
    return load_widened<In, Out>(p, Vector<Out>::lanes);
  }
  static inline __attribute__((always_inline)) typename Vector<Out>::type load_b(const In* p,
                                                                                 int count) {
    return load_widened<In, Out>(p, count);
  }
};
