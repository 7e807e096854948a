// What one instruction set offers to Fourier transforms: groups of lines, a line to a vector lane.
#pragma once

#include "fft_plan.h"

namespace functrans {

constexpr i64 kFftLanes = 16;  // at most: roots of long transforms are padded by as many

// Where complex numbers are, in numbers: either the points of a line are neighbours (point is 1),
// or the lines of a group are (line is 1).
template <typename T>
struct FftPlace {
  T* data;
  i64 line, point;
};

enum class FftKind : int { kComplex, kRealForward, kRealInverse };

// Some lines that are transformed together, forward; exchanged parts on the way in and out make it
// the inverse. Real lines of 2 n numbers are n complex ones; their transforms have n + 1.
template <typename T>
struct FftGroup {
  const FftPlan<T>* plan;
  FftPlace<const T> in;
  FftPlace<T> out;
  i64 count;
  FftKind kind;
  bool exchanged_in, exchanged_out;
  T scale;
  const T *real, *imag;  // roots of the columns of a long transform, or null
  i64 root_step;
  void* scratch;
};

struct FftKernels {
  i64 lane_bytes;
  void (*of_float)(const FftGroup<float>&);
  void (*of_double)(const FftGroup<double>&);
};

// Bytes of scratch memory of a group.
template <typename T>
i64 fft_scratch_bytes(i64 points, i64 lane_bytes) {
  return 4 * (points + 1) * lane_bytes + 64;
}

const FftKernels* fft_kernels_avx512();  // null where the compiler has no such instructions
const FftKernels* fft_kernels_avx2();
const FftKernels& fft_kernels();

}  // namespace functrans
