// Special functions of one element in double precision; special.cpp makes ufuncs of them.
#pragma once

#include <cstddef>

namespace functrans {

double erf_inverse(double x);
// erf_inv_float.cpp: n float32 elements, strides in bytes
void erf_inverse_float(const char* in, char* out, std::ptrdiff_t n, std::ptrdiff_t in_stride,
                       std::ptrdiff_t out_stride);
double log_gamma(double x);  // log |Gamma(x)|
double digamma(double x);
double bessel_i0e(double x);
double bessel_i1e(double x);
double hurwitz_zeta(double x, double q);

// incomplete_gamma.cpp
double igamma(double a, double x);   // regularised lower, P(a, x)
double igammac(double a, double x);  // regularised upper, Q(a, x)
double random_gamma_grad(double a, double sample);

}  // namespace functrans
