// Fourier transforms for AVX-512.
#include "fft_isa.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>
#include <utility>

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,bmi2")

namespace functrans {
namespace {

constexpr int kVectorBytes = 64;

#include "fft_kernels.h"

}  // namespace

const FftKernels* fft_kernels_avx512() { return &kFftKernels; }

}  // namespace functrans

#pragma GCC pop_options
#else

namespace functrans {
const FftKernels* fft_kernels_avx512() { return nullptr; }
}  // namespace functrans

#endif
