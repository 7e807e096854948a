// Kernels of rows for AVX2.
#include "row_isa.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define FUNCTRANS_ISA "avx2,fma,bmi2"
#include "isa_begin.h"

namespace functrans {
namespace {

constexpr int kVectorBytes = 32;

#include "row_kernels.h"

}  // namespace

const RowKernels* row_kernels_avx2() { return &kKernels; }

}  // namespace functrans

#include "isa_end.h"
#else

namespace functrans {
const RowKernels* row_kernels_avx2() { return nullptr; }
}  // namespace functrans

#endif
