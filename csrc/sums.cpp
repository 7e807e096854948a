#include "sums.h"

namespace functrans {
namespace {

constexpr std::size_t kLanes = 64;    // running sums side by side: what the vector units hold
constexpr std::size_t kBlock = 4096;  // numbers before the lanes are added up in double

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define FUNCTRANS_WIDEST __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define FUNCTRANS_WIDEST
#endif

// Lanes are summed pairwise, blocks in double: the error grows with log2(64) + 64 roundings.
template <typename T>
inline T sum_blocks(const T* x, std::size_t n) {
  double total = 0;
  std::size_t i = 0;
  while (n - i >= kLanes) {
    T lanes[kLanes] = {};
    const std::size_t end = i + (n - i < kBlock ? (n - i) / kLanes * kLanes : kBlock);
    for (; i < end; i += kLanes) {
      for (std::size_t j = 0; j < kLanes; ++j) lanes[j] += x[i + j];
    }
    for (std::size_t width = kLanes / 2; width > 0; width /= 2) {
      for (std::size_t j = 0; j < width; ++j) lanes[j] += lanes[j + width];
    }
    total += static_cast<double>(lanes[0]);
  }
  T rest = 0;
  for (; i < n; ++i) rest += x[i];
  return static_cast<T>(total + static_cast<double>(rest));
}

}  // namespace

FUNCTRANS_WIDEST float sum(const float* x, std::size_t n) { return sum_blocks(x, n); }
FUNCTRANS_WIDEST double sum(const double* x, std::size_t n) { return sum_blocks(x, n); }

}  // namespace functrans
