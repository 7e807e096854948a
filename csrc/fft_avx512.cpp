// Fourier transforms for AVX-512.
#include "fft_isa.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>
#include <utility>

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define FUNCTRANS_ISA "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,bmi2"
#include "isa_begin.h"

namespace functrans {
namespace {

constexpr int kVectorBytes = 64;

#include "fft_kernels.h"

}  // namespace

const FftKernels* fft_kernels_avx512() { return &kFftKernels; }

}  // namespace functrans

#include "isa_end.h"
#else

namespace functrans {
const FftKernels* fft_kernels_avx512() { return nullptr; }
}  // namespace functrans

#endif
