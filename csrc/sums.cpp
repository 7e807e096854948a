#include "sums.h"

#include <algorithm>

namespace functrans {
namespace {

// Numbers are added in blocks of kSteps times kBytes of running sums, what the vector units hold.
// Four times a number is exact, and so are the pairs that follow: what is left is the error of a
// block, which does not grow with the length, and blocks are added up in double.
constexpr std::size_t kBytes = 512;
constexpr std::size_t kSteps = 4;
constexpr std::size_t kWide = 16;    // running totals in double
constexpr std::size_t kTile = 1024;  // columns whose totals stay in the first-level cache
constexpr std::size_t kRows = 16;    // of a block of columns

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define FUNCTRANS_WIDEST __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define FUNCTRANS_WIDEST
#endif
#define FUNCTRANS_INLINE inline __attribute__((always_inline))

// The sum of at(0), ..., at(n - 1).
template <typename T, typename At>
FUNCTRANS_INLINE T sum_blocks(std::size_t n, At at) {
  constexpr std::size_t lanes = kBytes / sizeof(T);
  double totals[kWide] = {};
  std::size_t i = 0;
  for (; n - i >= kSteps * lanes; i += kSteps * lanes) {
    T sums[lanes];
    for (std::size_t j = 0; j < lanes; ++j) sums[j] = at(i + j);
    for (std::size_t step = 1; step < kSteps; ++step) {
      for (std::size_t j = 0; j < lanes; ++j) sums[j] += at(i + step * lanes + j);
    }
    for (std::size_t width = lanes / 2; width >= kWide; width /= 2) {
      for (std::size_t j = 0; j < width; ++j) sums[j] += sums[j + width];
    }
    for (std::size_t j = 0; j < kWide; ++j) totals[j] += static_cast<double>(sums[j]);
  }
  for (; i < n; ++i) totals[i % kWide] += static_cast<double>(at(i));
  for (std::size_t width = kWide / 2; width > 0; width /= 2) {
    for (std::size_t j = 0; j < width; ++j) totals[j] += totals[j + width];
  }
  return static_cast<T>(totals[0]);
}

template <typename T>
FUNCTRANS_INLINE void add_columns(const T* x, std::size_t rows, std::size_t width, T* out) {
  for (std::size_t first = 0; first < width; first += kTile) {
    const std::size_t columns = std::min(kTile, width - first);
    double totals[kTile];
    std::fill_n(totals, columns, 0.0);
    for (std::size_t row = 0; row < rows; row += kRows) {
      const std::size_t last = std::min(rows, row + kRows);
      T sums[kTile];
      std::fill_n(sums, columns, T{0});
      std::size_t r = row;
      for (; r + 4 <= last; r += 4) {
        const T* line = x + r * width + first;
        for (std::size_t j = 0; j < columns; ++j) {
          sums[j] += (line[j] + line[width + j]) + (line[2 * width + j] + line[3 * width + j]);
        }
      }
      for (; r < last; ++r) {
        for (std::size_t j = 0; j < columns; ++j) sums[j] += x[r * width + first + j];
      }
      for (std::size_t j = 0; j < columns; ++j) totals[j] += static_cast<double>(sums[j]);
    }
    for (std::size_t j = 0; j < columns; ++j) out[first + j] = static_cast<T>(totals[j]);
  }
}

}  // namespace

FUNCTRANS_WIDEST float sum(const float* x, std::size_t n) {
  return sum_blocks<float>(n, [x](std::size_t i) { return x[i]; });
}

FUNCTRANS_WIDEST double sum(const double* x, std::size_t n) {
  return sum_blocks<double>(n, [x](std::size_t i) { return x[i]; });
}

FUNCTRANS_WIDEST float dot(const float* x, const float* y, std::size_t n) {
  return sum_blocks<float>(n, [x, y](std::size_t i) { return x[i] * y[i]; });
}

FUNCTRANS_WIDEST void column_sums(const float* x, std::size_t rows, std::size_t width, float* out) {
  add_columns(x, rows, width, out);
}

FUNCTRANS_WIDEST void column_sums(const double* x, std::size_t rows, std::size_t width,
                                  double* out) {
  add_columns(x, rows, width, out);
}

}  // namespace functrans
