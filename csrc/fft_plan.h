// Plans of Fourier transforms: radices of a length, and the roots of unity that its passes multiply.
#pragma once

#include "rows.h"

#include <memory>
#include <vector>

namespace functrans {

// From so many points on a transform is one of columns and one of rows of n1 x n2 points.
constexpr i64 kLongTransform = 1024;

template <typename T>
struct FftPlan {
  i64 points = 0;
  std::vector<int> radices;
  std::vector<T> roots;  // of each pass: for each p the (radix - 1) roots, parts side by side
  // of a long transform; element (k1, j2) of the roots is exp(-2 pi i k1 j2 / points)
  std::shared_ptr<const FftPlan> columns, rows;
  std::vector<T> real, imag;
  std::vector<T> halves;  // exp(-pi i k / points), for real transforms of twice as many points
};

// The plan of a length, kept for later calls; null where a prime factor is large.
template <typename T>
std::shared_ptr<const FftPlan<T>> fft_plan(i64 points);

}  // namespace functrans
