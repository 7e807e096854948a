// Kernels of rows for AVX-512.
#include "row_isa.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define FUNCTRANS_ISA "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,bmi2"
#include "isa_begin.h"

namespace functrans {
namespace {

constexpr int kVectorBytes = 64;

#include "row_kernels.h"

}  // namespace

const RowKernels* row_kernels_avx512() { return &kKernels; }

}  // namespace functrans

#include "isa_end.h"
#else

namespace functrans {
const RowKernels* row_kernels_avx512() { return nullptr; }
}  // namespace functrans

#endif
