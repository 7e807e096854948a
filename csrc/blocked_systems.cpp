#include "blocked_systems.h"

#include "lapack_loops.h"
#include "product_update.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <type_traits>

namespace functrans {
namespace {

constexpr i64 kBlock = 128;   // of factors and of substitutions
constexpr i64 kPanel = 64;    // of LU: a panel is LAPACK's, on one thread
constexpr i64 kSide = 64;     // right-hand sides that one thread takes at a time

constexpr int kRowMajor = 101, kColumnMajor = 102, kLeft = 141, kRight = 142, kUpper = 121,
              kLower = 122, kPlain = 111, kTransposed = 112, kConjugated = 113, kCounted = 131,
              kUnit = 132;

template <typename T>
constexpr bool is_complex = !std::is_floating_point_v<T>;
template <typename T>
constexpr int real_bytes = is_complex<T> ? sizeof(T) / 2 : sizeof(T);
template <typename T>
constexpr i64 dtype_of = is_complex<T> ? (real_bytes<T> == 4 ? kC64 : kC128)
                                       : (real_bytes<T> == 4 ? kF32 : kF64);

template <typename T>
T conjugate(T x) {
  if constexpr (is_complex<T>) return std::conj(x);
  return x;
}

template <typename T>
void solve_triangle(int order, int side, int uplo, int op, int diagonal, i64 m, i64 n, const T* a,
                    i64 lda, T* b, i64 ldb) {
  const Blas& library = blas();
  const T one = 1;
  if constexpr (is_complex<T>) {
    const auto solver = real_bytes<T> == 4 ? library.ctrsm : library.ztrsm;
    solver(order, side, uplo, op, diagonal, m, n, &one, a, lda, b, ldb);
  } else if constexpr (real_bytes<T> == 4) {
    library.strsm(order, side, uplo, op, diagonal, m, n, one, a, lda, b, ldb);
  } else {
    library.dtrsm(order, side, uplo, op, diagonal, m, n, one, a, lda, b, ldb);
  }
}

// body(begin, end) for pieces of kSide indices, whose bounds do not depend on who takes them.
template <typename Body>
void over_sides(i64 count, Body&& body) {
  parallel_pieces(count, kSide, [&](i64 begin, i64 end) {
    for (i64 i = begin; i < end; i += kSide) body(i, std::min(i + kSide, end));
  });
}

template <typename T>
bool update(i64 m, i64 n, i64 k, const MatrixView& a, const MatrixView& b, T* c, i64 c_row) {
  return subtract_product(is_complex<T>, real_bytes<T>, m, n, k, a, b, c, c_row);
}

// Columns of blocks from left to right: what the columns before contribute is one product.
template <typename T>
bool cholesky_of(i64 n, const T* a, T* out) {
  Scratch scratch((kBlock * kBlock + (is_complex<T> ? n * kBlock : 0)) * static_cast<i64>(sizeof(T)));
  if (!scratch) return false;
  T* block = scratch.as<T>();
  T* conjugates = block + kBlock * kBlock;
  const i64 item = sizeof(T);
  for (i64 j = 0; j < n; j += kBlock) {
    const i64 w = std::min(kBlock, n - j);
    for (i64 i = j; i < n; ++i) std::copy_n(a + i * n + j, w, out + i * n + j);
    const T* rows = out + j * n;
    i64 row = n;
    if (is_complex<T>) {
      for (i64 i = 0; i < w; ++i) {
        std::transform(rows + i * n, rows + i * n + j, conjugates + i * j, conjugate<T>);
      }
      rows = conjugates, row = j;
    }
    if (!update(n - j, w, j, {out + j * n, n, 1}, {rows, 1, row}, out + j * n + j, n)) return false;
    for (i64 i = 0; i < w; ++i) std::copy_n(out + (j + i) * n + j, w, block + i * w);
    const Stack stack{block, item, 2, {w, w}};
    run_lapack(Lapack::cholesky, dtype_of<T>, 1, {w}, {stack, stack});
    if (block[0] != block[0]) {  // no factor
      for (i64 i = 0; i < n; ++i) {
        std::fill_n(out + i * n, i + 1, T(std::numeric_limits<double>::quiet_NaN()));
      }
      return true;
    }
    for (i64 i = 0; i < w; ++i) std::copy_n(block + i * w, w, out + (j + i) * n + j);
    T* below = out + (j + w) * n + j;
    over_sides(n - j - w, [&](i64 begin, i64 end) {
      solve_triangle<T>(kRowMajor, kRight, kLower, is_complex<T> ? kConjugated : kTransposed,
                        kCounted, end - begin, w, block, w, below + begin * n, n);
    });
  }
  return true;
}

template <typename T>
bool substitution_of(const TriangularKind& kind, bool conjugated, i64 n, i64 k, const T* a,
                     const T* b, T* x) {
  const i64 elements = n * k;
  if (is_complex<T> && conjugated) {  // conj(op(a)) x = b where op(a) conj(x) = conj(b)
    std::transform(b, b + elements, x, conjugate<T>);
  } else {
    std::copy_n(b, elements, x);
  }
  const int uplo = kind.lower ? kLower : kUpper, op = kind.transposed ? kTransposed : kPlain;
  const int diagonal = kind.unit ? kUnit : kCounted;
  const bool lower = kind.lower != kind.transposed, forward = lower == kind.left;
  const i64 row = kind.transposed ? 1 : n, column = kind.transposed ? n : 1;
  const i64 blocks = (n + kBlock - 1) / kBlock;
  for (i64 step = 0; step < blocks; ++step) {
    const i64 i = (forward ? step : blocks - 1 - step) * kBlock, w = std::min(kBlock, n - i);
    const i64 from = forward ? 0 : i + w, known = forward ? i : n - i - w;
    const T* corner = a + i * n + i;
    if (kind.left) {
      T* unknown = x + i * k;
      if (!update(w, k, known, {a + i * row + from * column, row, column}, {x + from * k, k, 1},
                  unknown, k)) return false;
      over_sides(k, [&](i64 begin, i64 end) {
        solve_triangle<T>(kRowMajor, kLeft, uplo, op, diagonal, w, end - begin, corner, n,
                          unknown + begin, k);
      });
    } else {
      T* unknown = x + i;
      if (!update(k, w, known, {x + from, n, 1}, {a + from * row + i * column, row, column},
                  unknown, n)) return false;
      over_sides(k, [&](i64 begin, i64 end) {
        solve_triangle<T>(kRowMajor, kRight, uplo, op, diagonal, end - begin, w, corner, n,
                          unknown + begin * n, n);
      });
    }
  }
  if (is_complex<T> && conjugated) std::transform(x, x + elements, x, conjugate<T>);
  return true;
}

constexpr i64 number_of(i64 dtype) {  // in Blas::lu
  return dtype == kF32 ? 0 : dtype == kF64 ? 1 : dtype == kC64 ? 2 : 3;
}

// Factors of a matrix of m rows whose columns are one after the other, as LAPACK wants them.
template <typename T>
struct Columns {
  i64 m;
  T* numbers;
  std::int32_t* pivots;

  T* at(i64 row, i64 column) const { return numbers + column * m + row; }

  // Half of the columns, what they do to the other half, and that half: most products are deep.
  bool factor(i64 begin, i64 end) const {
    const i64 rows = std::min(end, m);  // that have a pivot
    if (end - begin <= kPanel) return panel(begin, end), true;
    const i64 middle = begin + round_up((end - begin) / 2, kPanel);
    if (!factor(begin, middle)) return false;
    const i64 known = std::min(middle, m);
    exchange(begin, known, middle, end);
    if (!substitute(begin, known, middle, end)) return false;
    if (known == m) return true;
    if (!update(end - middle, m - known, known - begin, {at(begin, middle), m, 1},
                {at(known, begin), m, 1}, at(known, middle), m)) return false;
    if (!factor(middle, end)) return false;
    exchange(middle, rows, begin, middle);
    return true;
  }

  void panel(i64 begin, i64 end) const {
    const std::int64_t rows = m - begin, width = end - begin, lead = m;
    std::int64_t exchanged[kPanel], info = 0;
    blas().lu[number_of(dtype_of<T>)](&rows, &width, at(begin, begin), &lead, exchanged, &info);
    for (i64 i = 0; i < std::min(rows, width); ++i) {
      pivots[begin + i] = static_cast<std::int32_t>(begin + exchanged[i] - 1);
    }
  }

  // Rows [begin, end) with their pivots, in the columns [first, last).
  void exchange(i64 begin, i64 end, i64 first, i64 last) const {
    over_sides(last - first, [&](i64 from, i64 to) {
      for (i64 column = first + from; column < first + to; ++column) {
        T* x = at(0, column);
        for (i64 i = begin; i < end; ++i) std::swap(x[i], x[pivots[i]]);
      }
    });
  }

  // The rows of the upper factor beside the lower one of [begin, end).
  bool substitute(i64 begin, i64 end, i64 first, i64 last) const {
    for (i64 i = begin; i < end; i += kPanel) {
      const i64 w = std::min(kPanel, end - i);
      if (!update(last - first, w, i - begin, {at(begin, first), m, 1}, {at(i, begin), m, 1},
                  at(i, first), m)) return false;
      over_sides(last - first, [&](i64 from, i64 to) {
        solve_triangle<T>(kColumnMajor, kLeft, kLower, kPlain, kUnit, w, to - from, at(i, i), m,
                          at(i, first + from), m);
      });
    }
    return true;
  }
};

// In squares that the cache holds, so that neither side is read or written an element a line.
template <typename T>
void transpose(i64 m, i64 n, const T* in, T* out) {
  constexpr i64 tile = 32;
  parallel_pieces((m + tile - 1) / tile, 1, [&](i64 begin, i64 end) {
    for (i64 i0 = begin * tile; i0 < std::min(end * tile, m); i0 += tile) {
      for (i64 j0 = 0; j0 < n; j0 += tile) {
        for (i64 i = i0; i < std::min(i0 + tile, m); ++i) {
          for (i64 j = j0; j < std::min(j0 + tile, n); ++j) out[j * m + i] = in[i * n + j];
        }
      }
    }
  });
}

template <typename T>
bool lu_of(i64 m, i64 n, const T* a, T* factors, std::int32_t* pivots) {
  Scratch scratch(m * n * static_cast<i64>(sizeof(T)));
  if (!scratch) return false;
  T* columns = scratch.as<T>();
  transpose(m, n, a, columns);
  if (!Columns<T>{m, columns, pivots}.factor(0, n)) return false;
  transpose(n, m, columns, factors);
  return true;
}

template <typename Run>
bool with_type(i64 dtype, Run&& run) {
  const SerialBlas serial;
  switch (dtype) {
    case kF32: return run(0.0F);
    case kF64: return run(0.0);
    case kC64: return run(std::complex<float>());
    default: return run(std::complex<double>());
  }
}

}  // namespace

bool can_block() {
  const Blas& library = blas();
  return library.strsm != nullptr && library.dtrsm != nullptr && library.ctrsm != nullptr &&
         library.ztrsm != nullptr &&
         std::all_of(library.lu, library.lu + 4, [](LuFactor lu) { return lu != nullptr; });
}

bool blocked_cholesky(i64 dtype, i64 n, const void* a, void* out) {
  return with_type(dtype, [&](auto number) {
    using T = decltype(number);
    return cholesky_of(n, static_cast<const T*>(a), static_cast<T*>(out));
  });
}

bool blocked_substitution(i64 dtype, const TriangularKind& kind, bool conjugated, i64 n, i64 k,
                          const void* a, const void* b, void* x) {
  return with_type(dtype, [&](auto number) {
    using T = decltype(number);
    return substitution_of(kind, conjugated, n, k, static_cast<const T*>(a),
                           static_cast<const T*>(b), static_cast<T*>(x));
  });
}

bool blocked_lu(i64 dtype, i64 m, i64 n, const void* a, void* factors, std::int32_t* pivots) {
  return with_type(dtype, [&](auto number) {
    using T = decltype(number);
    return lu_of(m, n, static_cast<const T*>(a), static_cast<T*>(factors), pivots);
  });
}

}  // namespace functrans
