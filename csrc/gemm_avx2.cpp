// Kernels of matrix products for AVX2.
#include "gemm_isa.h"

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#define FUNCTRANS_ISA "avx2,fma,bmi2"
#include "isa_begin.h"

namespace functrans {
namespace {

#define FUNCTRANS_AVX2
constexpr int kVectorBytes = 32;
// 6 x 2 sums, 2 vectors of b and a broadcast element: 15 of 16 registers
constexpr int kFloatRows = 6, kFloatVectors = 2, kDoubleRows = 6, kDoubleVectors = 2;
constexpr Blocking kBlocks = {};
constexpr char kIsaName[] = "avx2";

#include "gemm_micro.h"
#include "gemm_pack.h"
#include "gemm_few.h"
#include "gemm_table.h"

}  // namespace

const Isa* gemm_avx2() { return &kTable; }

}  // namespace functrans

#include "isa_end.h"
#else
const functrans::Isa* functrans::gemm_avx2() { return nullptr; }
#endif
