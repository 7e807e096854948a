// Kernels of matrix products for AMX: dot products of bfloat16 and of int8 in tile registers.
#include "gemm_isa.h"

#if defined(__x86_64__) && defined(__linux__) && defined(__GNUC__) && \
    __has_include(<amxtileintrin.h>)
#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace functrans {

// The kernel keeps tile registers for processes that asked for it; forked ones inherit the answer.
// A process whose threads have small alternate stacks for signals is refused.
bool amx_is_permitted() {
  static const bool permitted = [] {
    constexpr unsigned kBf16 = 1u << 22, kTile = 1u << 24, kInt8 = 1u << 25;
    constexpr unsigned kAll = kBf16 | kTile | kInt8;
    unsigned a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d) || (c & (1u << 27)) == 0) return false;  // no xgetbv
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || (d & kAll) != kAll) return false;
    unsigned low, high;
    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    if ((low & 0x60000u) != 0x60000u) return false;  // the kernel does not know of tiles
    constexpr int kRequestPermission = 0x1023, kTileData = 18;
    return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
  }();
  return permitted;
}

}  // namespace functrans

#define FUNCTRANS_ISA "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx2,fma,bmi2"
#include "isa_begin.h"

namespace functrans {
namespace {

#define FUNCTRANS_AVX512
#define FUNCTRANS_AVX512_BF16
constexpr int kVectorBytes = 64;

#include "gemm_micro.h"
#include "gemm_pack.h"
#include "gemm_groups.h"
#include "gemm_tiles.h"

// Assembly, because intrinsics take the numbers of tiles as text.
struct TileRegisters {
  static void begin(const TileShapes& shapes) {
    __asm__ volatile("ldtilecfg %0" : : "m"(shapes));
  }
  static void end() { __asm__ volatile("tilerelease" : : : "memory"); }
  template <int T>
  static inline __attribute__((always_inline)) void zero() {
    __asm__ volatile("tilezero %%tmm%c0" : : "i"(T));
  }
  template <int T>
  static inline __attribute__((always_inline)) void load(const void* from, i64 stride) {
    __asm__ volatile("tileloadd (%0,%1,1), %%tmm%c2" : : "r"(from), "r"(stride), "i"(T) : "memory");
  }
  template <int T>
  static inline __attribute__((always_inline)) void stream(const void* from, i64 stride) {
    __asm__ volatile("tileloaddt1 (%0,%1,1), %%tmm%c2"
                     :
                     : "r"(from), "r"(stride), "i"(T)
                     : "memory");
  }
  template <int T>
  static inline __attribute__((always_inline)) void store(void* to, i64 stride) {
    __asm__ volatile("tilestored %%tmm%c2, (%0,%1,1)" : : "r"(to), "r"(stride), "i"(T) : "memory");
  }
};

struct Bf16Tiles : TileRegisters {
  using Number = u16;
  using Sum = float;
  template <int C, int A, int B>
  static inline __attribute__((always_inline)) void multiply() {
    __asm__ volatile("tdpbf16ps %%tmm%c0, %%tmm%c1, %%tmm%c2" : : "i"(B), "i"(A), "i"(C));
  }
};

struct Int8Tiles : TileRegisters {
  using Number = unsigned char;
  using Sum = int;
  template <int C, int A, int B>
  static inline __attribute__((always_inline)) void multiply() {
    __asm__ volatile("tdpbssd %%tmm%c0, %%tmm%c1, %%tmm%c2" : : "i"(B), "i"(A), "i"(C));
  }
};

struct Uint8Tiles : TileRegisters {
  using Number = unsigned char;
  using Sum = int;
  template <int C, int A, int B>
  static inline __attribute__((always_inline)) void multiply() {
    __asm__ volatile("tdpbuud %%tmm%c0, %%tmm%c1, %%tmm%c2" : : "i"(B), "i"(A), "i"(C));
  }
};

constexpr GroupKernels kBf16Table = tile_kernels<Bf16Tiles>();
constexpr GroupKernels kInt8Table = tile_kernels<Int8Tiles>();
constexpr GroupKernels kUint8Table = tile_kernels<Uint8Tiles>();

}  // namespace

const GroupKernels* gemm_amx(int in_type) {
  return in_type == kBf16  ? &kBf16Table
         : in_type == kI8  ? &kInt8Table
         : in_type == kU8  ? &kUint8Table
                           : nullptr;
}

}  // namespace functrans

#include "isa_end.h"
#else
bool functrans::amx_is_permitted() { return false; }
const functrans::GroupKernels* functrans::gemm_amx(int) { return nullptr; }
#endif
