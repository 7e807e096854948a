// Which kernels products are made of: the best that this processor has, or others that tests name.
#include "gemm_product.h"

#include <cstring>
#include <iterator>

namespace functrans {
namespace {

bool runs_here(const Isa* isa) {
  if (isa == nullptr) return false;
#if defined(__x86_64__) && defined(__GNUC__)
  __builtin_cpu_init();
  if (isa == gemm_avx512()) {
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("bmi2");
  }
  if (isa == gemm_avx2()) {
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
           __builtin_cpu_supports("bmi2");
  }
#endif
  return isa == gemm_portable();
}

bool has_dot_products() {
#if defined(__x86_64__) && defined(__GNUC__)
  static const bool supported = __builtin_cpu_supports("avx512bf16");
  return supported;
#else
  return false;
#endif
}

// On Intel's processors a dot product of pairs takes as long as four multiply-adds of float32: one
// core of a Xeon with AMX makes 85 GFLOP/s of them, and 171 of float32.
bool has_fast_dot_products() {
#if defined(__x86_64__) && defined(__GNUC__)
  static const bool fast = has_dot_products() && !__builtin_cpu_is("intel");
  return fast;
#else
  return false;
#endif
}

bool has_integer_dot_products() {
#if defined(__x86_64__) && defined(__GNUC__)
  static const bool supported = __builtin_cpu_supports("avx512vnni");
  return supported;
#else
  return false;
#endif
}

const Isa* best_isa() {
  for (const Isa* isa : {gemm_avx512(), gemm_avx2()}) {
    if (runs_here(isa)) return isa;
  }
  return gemm_portable();
}

// Kernels of groups that are null are the best ones of the processor.
struct Choice {
  std::atomic<const Isa*> isa{best_isa()};
  std::atomic<bool> tiles{true};
  std::atomic<const GroupKernels*> groups[std::size(kSizes)] = {};
};

Choice& choice() {
  static Choice chosen;
  return chosen;
}

}  // namespace

const Kernels& gemm_kernels(int in_type) {
  return *choice().isa.load(std::memory_order_relaxed)->kernels[in_type];
}

Pack gemm_pack(int in_type) {
  return choice().isa.load(std::memory_order_relaxed)->pack[in_type];
}

Dots gemm_dots(int in_type) {
  return choice().isa.load(std::memory_order_relaxed)->dots[in_type];
}

InPlace gemm_widening(int in_type) {
  return choice().isa.load(std::memory_order_relaxed)->widening[in_type];
}

const GroupKernels* gemm_group_kernels(int in_type) {
  Choice& chosen = choice();
  const GroupKernels* given = chosen.groups[in_type].load(std::memory_order_relaxed);
  if (given != nullptr || (in_type != kBf16 && in_type != kI8 && in_type != kU8)) return given;
  if (chosen.isa.load(std::memory_order_relaxed) != gemm_avx512()) return nullptr;
  if (chosen.tiles.load(std::memory_order_relaxed) && has_dot_products() && amx_is_permitted()) {
    return gemm_amx(in_type);
  }
  if (in_type != kBf16) return has_integer_dot_products() ? gemm_avx512_vnni(in_type) : nullptr;
  return has_fast_dot_products() ? gemm_avx512_bf16() : nullptr;
}

int ft_gemm_use(const char* name) {
  const bool tiles = std::strcmp(name, "amx") == 0;
  if (tiles && (!has_dot_products() || !amx_is_permitted())) return 0;
  for (const Isa* isa : {gemm_avx512(), gemm_avx2(), gemm_portable()}) {
    if (runs_here(isa) && std::strcmp(isa->name, tiles ? "avx512" : name) == 0) {
      choice().isa = isa;
      choice().tiles = tiles;
      return 1;
    }
  }
  return 0;
}

void ft_gemm_use_groups(int in_type, const void* kernels) {
  choice().groups[in_type] = static_cast<const GroupKernels*>(kernels);
}

}  // namespace functrans
