// Sums of contiguous numbers, faster and more accurate than one running sum.
#pragma once

#include <cstddef>

namespace functrans {

float sum(const float* x, std::size_t n);
double sum(const double* x, std::size_t n);

}  // namespace functrans
