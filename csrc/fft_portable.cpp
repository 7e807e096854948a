// Fourier transforms for any processor, and the choice for the one that runs.
#include "fft_isa.h"

#include "row_isa.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>
#include <utility>

namespace functrans {
namespace {

constexpr int kVectorBytes = 16;

#include "fft_kernels.h"

}  // namespace

const FftKernels& fft_kernels() {
  switch (row_kernels().lane_bytes) {  // of the instructions that were chosen for rows
    case 64: return *fft_kernels_avx512();
    case 32: return *fft_kernels_avx2();
    default: return kFftKernels;
  }
}

}  // namespace functrans
