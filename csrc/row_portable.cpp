// Kernels of rows for any processor, and the choice for the one that runs.
#include "row_isa.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

namespace functrans {
namespace {

constexpr int kVectorBytes = 16;

#include "row_kernels.h"

const RowKernels& choose() {
#if defined(__x86_64__)
  const bool avx512 = __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512vl");
  if (avx512 && row_kernels_avx512() != nullptr) return *row_kernels_avx512();
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (avx2 && row_kernels_avx2() != nullptr) return *row_kernels_avx2();
#endif
  return kKernels;
}

}  // namespace

const RowKernels& row_kernels() {
  static const RowKernels& chosen = choose();
  return chosen;
}

}  // namespace functrans
