// Sums of contiguous numbers, faster and more accurate than one running sum.
#pragma once

#include <cstddef>

namespace functrans {

float sum(const float* x, std::size_t n);
double sum(const double* x, std::size_t n);
float dot(const float* x, const float* y, std::size_t n);

// The sums of the columns of a matrix of `rows` rows of `width` numbers.
void column_sums(const float* x, std::size_t rows, std::size_t width, float* out);
void column_sums(const double* x, std::size_t rows, std::size_t width, double* out);

}  // namespace functrans
