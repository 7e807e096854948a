// Kernels of matrix products for AVX-512.
#include "gemm_isa.h"

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#ifdef __clang__
#pragma clang attribute push( \
    __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,bmi2"))), \
    apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,bmi2")
#endif

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
#include "gemm_table.h"

}  // namespace

const Isa* gemm_avx512() { return &kTable; }

}  // namespace functrans

#ifdef __clang__
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#else
const functrans::Isa* functrans::gemm_avx512() { return nullptr; }
#endif
