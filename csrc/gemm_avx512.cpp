// Kernels of matrix products for AVX-512.
#include "gemm_isa.h"

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#define FUNCTRANS_ISA "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,bmi2"
#include "isa_begin.h"

namespace functrans {
namespace {

#define FUNCTRANS_AVX512
constexpr int kVectorBytes = 64;
// 12 x 2 sums, 2 vectors of b and a broadcast element: 27 of 32 registers
constexpr int kFloatRows = 12, kFloatVectors = 2, kDoubleRows = 12, kDoubleVectors = 2;
constexpr Blocking kBlocks = {};
constexpr char kIsaName[] = "avx512";

#include "gemm_micro.h"
#include "gemm_pack.h"
#include "gemm_few.h"
#include "gemm_table.h"

}  // namespace

const Isa* gemm_avx512() { return &kTable; }

}  // namespace functrans

#include "isa_end.h"
#else
const functrans::Isa* functrans::gemm_avx512() { return nullptr; }
#endif
