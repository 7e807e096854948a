// Kernels of matrix products whose block sizes a benchmark chooses (gemm_blocks.py).
#include "gemm_isa.h"

namespace functrans {
namespace {

GroupKernels made[4096];
int count = 0;

void without_ahead(i64 m, i64 n, i64 k, const void* a, i64 a_row, const void* b, void* c, i64 c_row,
                   bool accumulate, const Ahead&) {
  gemm_amx(kBf16)->kernels.rows_block(m, n, k, a, a_row, b, c, c_row, accumulate, Ahead{});
}

}  // namespace
}  // namespace functrans

extern "C" {
__attribute__((visibility("default"))) int permitted() {
  return functrans::amx_is_permitted() ? 1 : 0;
}

// Kernels for bfloat16 (AMX) or float32 with these sizes. `form` of bfloat16: both operands packed,
// the first one where it is, or that and what comes next asked for.
__attribute__((visibility("default"))) const void* kernels(int in_type,
                                                           const functrans::i64* sizes,
                                                           int form) {
  using namespace functrans;
  GroupKernels& one = made[count++ % 4096];
  if (in_type == kBf16) {
    one = *gemm_amx(kBf16);
    if (form == 0) one.kernels.rows_block = nullptr;
    if (form == 1) one.kernels.rows_block = without_ahead;
  } else {
    one = {*gemm_avx512()->kernels[kF32], gemm_avx512()->pack[kF32], 0};
  }
  one.kernels.blocks = {sizes[0], sizes[1], sizes[2], sizes[3], sizes[4], sizes[5], sizes[6], 0};
  return &one;
}
}
