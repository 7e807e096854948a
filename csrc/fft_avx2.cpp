// Fourier transforms for AVX2.
#include "fft_isa.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>
#include <utility>

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define FUNCTRANS_ISA "avx2,fma,bmi2"
#include "isa_begin.h"

namespace functrans {
namespace {

constexpr int kVectorBytes = 32;

#include "fft_kernels.h"

}  // namespace

const FftKernels* fft_kernels_avx2() { return &kFftKernels; }

}  // namespace functrans

#include "isa_end.h"
#else

namespace functrans {
const FftKernels* fft_kernels_avx2() { return nullptr; }
}  // namespace functrans

#endif
