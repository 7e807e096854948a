// The driver of matrix products: chooses kernels, blocks and threads.
#include "gemm.h"

#include "conv.h"
#include "gemm_product.h"
#include "library.h"

#include <utility>

namespace functrans {
namespace {

const Isa& isa() {
  static const Isa* chosen = [] {
#if defined(__x86_64__) && defined(__GNUC__)
    __builtin_cpu_init();
    if (gemm_avx512() != nullptr && __builtin_cpu_supports("avx512f") &&
        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("bmi2")) {
      return gemm_avx512();
    }
    if (gemm_avx2() != nullptr && __builtin_cpu_supports("avx2") &&
        __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2")) {
      return gemm_avx2();
    }
#endif
    return gemm_portable();
  }();
  return *chosen;
}

const PairKernels* pair_kernels() {
  static const PairKernels* chosen = []() -> const PairKernels* {
#if defined(__x86_64__) && defined(__GNUC__)
    __builtin_cpu_init();
    if (&isa() == gemm_avx512() && __builtin_cpu_supports("avx512bf16")) return gemm_avx512_bf16();
#endif
    return nullptr;
  }();
  return chosen;
}

bool run_one(const Product& p, bool serial) {
  const ft_gemm& g = p.g;
  serial = serial || g.m * g.n * std::max<i64>(g.k, 1) < kSerial;
  if (p.kernels.direct != nullptr && g.a_fill == nullptr && g.b_fill == nullptr) {
    if (suits_vector(p)) return run_vector(p, serial);
    if (g.m <= kSmall && g.n <= kSmall && g.k <= kSmall) return run_small(p);
    if (suits_in_place(p)) return run_in_place(p, serial);
  }
  return run_packed(p, serial);
}

// Real and imaginary parts are matrices with every second element.
int run_complex(const ft_gemm& g) {
  ft_gemm real = g;
  real.in_type = real.out_type = g.in_type == kC64 ? kF32 : kF64;
  const i64 size = kSizes[real.in_type];
  for (i64* stride : {&real.a_batch0, &real.a_batch1, &real.a_row, &real.a_col, &real.b_batch0,
                      &real.b_batch1, &real.b_row, &real.b_col, &real.c_batch0, &real.c_batch1,
                      &real.c_row, &real.c_col}) {
    *stride *= 2;
  }
  for (int part = 0; part < 4; ++part) {  // re re, im im, re im, im re
    real.a = static_cast<const char*>(g.a) + (part == 1 || part == 3 ? size : 0);
    real.b = static_cast<const char*>(g.b) + (part == 1 || part == 2 ? size : 0);
    real.c = static_cast<char*>(g.c) + (part >= 2 ? size : 0);
    real.alpha = part == 1 ? -g.alpha : g.alpha;
    real.accumulate = g.accumulate || part == 1 || part == 3;
    const int status = ft_gemm_run(&real);
    if (status != 0) return status;
  }
  return 0;
}

}  // namespace

const Kernels& gemm_kernels(int in_type) { return *isa().kernels[in_type]; }

void turn(ft_gemm& g) {
  std::swap(g.m, g.n);
  std::swap(g.a, g.b);
  std::swap(g.a_batch0, g.b_batch0);
  std::swap(g.a_batch1, g.b_batch1);
  std::swap(g.a_row, g.b_col);
  std::swap(g.a_col, g.b_row);
  std::swap(g.c_row, g.c_col);
  std::swap(g.a_fill, g.b_fill);
  std::swap(g.a_fill_columns, g.b_fill_columns);
  g.a_fill_columns = !g.a_fill_columns;
  g.b_fill_columns = !g.b_fill_columns;
}

int ft_gemm_run(const ft_gemm* given) {
  ft_gemm g = *given;
  const i64 batches = g.batch0 * g.batch1;
  if (batches <= 0 || g.m <= 0 || g.n <= 0) return 0;
  if (g.in_type >= kC64) return run_complex(g);
  const bool plain = g.a_fill == nullptr && g.b_fill == nullptr && g.epilogue == nullptr;
  if (plain && (g.n == 1 ? g.m > 1 : g.c_col != 1 && g.c_row == 1)) turn(g);
  const i64 work = g.m * g.n * std::max<i64>(g.k, 1);
  const bool small = g.m <= kSmall && g.n <= kSmall && g.k <= kSmall;
  const PairKernels* pairs = g.in_type == kBf16 && !small ? pair_kernels() : nullptr;
  const Kernels& kernels = pairs != nullptr ? pairs->kernels : *isa().kernels[g.in_type];
  const Pack pack = pairs != nullptr ? pairs->pack : isa().pack[g.in_type];
  const i64 in = kSizes[g.in_type], out = kSizes[g.out_type];
  const bool over_batch = batches >= 8 || (batches > 1 && work < 4 * kSerial);
  std::atomic<bool> failed{false};
  const auto run = [&](i64 begin, i64 end) {
    for (i64 batch = begin; batch < end; ++batch) {
      const i64 b0 = batch / g.batch1, b1 = batch % g.batch1;
      const Product product{g, kernels, pack, batch,
                            static_cast<const char*>(g.a) + (b0 * g.a_batch0 + b1 * g.a_batch1) * in,
                            static_cast<const char*>(g.b) + (b0 * g.b_batch0 + b1 * g.b_batch1) * in,
                            static_cast<char*>(g.c) + (b0 * g.c_batch0 + b1 * g.c_batch1) * out};
      if (!run_one(product, over_batch)) failed = true;
    }
  };
  if (over_batch) {
    each(batches, std::max<i64>(1, kSerial / 2 / work), batches * work < kSerial, run);
  } else {
    run(0, batches);
  }
  return failed ? 2 : 0;
}

void register_gemm_library() {
  register_library("gemm", reinterpret_cast<void*>(&ft_gemm_run));
  register_library("conv", reinterpret_cast<void*>(&ft_conv_run));
}

}  // namespace functrans
