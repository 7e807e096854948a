// Kernels of matrix products for any processor with vectors of 16 bytes (SSE2, NEON), or none.
#include "gemm_isa.h"

namespace functrans {
namespace {

constexpr int kVectorBytes = 16;
#ifdef __aarch64__  // 32 registers
constexpr int kFloatRows = 8, kFloatVectors = 3, kDoubleRows = 8, kDoubleVectors = 3;
#else
constexpr int kFloatRows = 6, kFloatVectors = 2, kDoubleRows = 6, kDoubleVectors = 2;
#endif
constexpr Blocking kBlocks = {};
constexpr char kIsaName[] = "portable";

#include "gemm_micro.h"
#include "gemm_pack.h"
#include "gemm_few.h"
#include "gemm_table.h"

}  // namespace

const Isa* gemm_portable() { return &kTable; }

}  // namespace functrans
