// The kernels of csrc/gemm_tiles.h with tile registers that are memory, for tests on processors
// without AMX. What the processor would refuse, or would do with tiles of other shapes, is counted.
#include "gemm_isa.h"

namespace functrans {
namespace {

constexpr int kVectorBytes = 64;

#include "gemm_micro.h"
#include "gemm_pack.h"
#include "gemm_groups.h"
#include "gemm_tiles.h"

struct Tile {
  int rows = 0, row_bytes = 0;
  unsigned char data[kTileSide][kTileRow] = {};
};
thread_local Tile tiles[8];
thread_local bool shaped = false;
long long faults = 0, begun = 0, ended = 0;

void count(long long& counter) { __atomic_fetch_add(&counter, 1, __ATOMIC_RELAXED); }

template <typename NumberOf, typename SumOf, typename Term>
struct EmulatedTiles {
  using Number = NumberOf;
  using Sum = SumOf;

  static void begin(const TileShapes& shapes) {
    if (reinterpret_cast<unsigned long long>(&shapes) % 8 != 0 || shapes.palette != 1 ||
        sizeof(TileShapes) != 64) {
      count(faults);
    }
    if (!shaped) count(begun);
    shaped = true;
    for (int t = 0; t < 8; ++t) {
      tiles[t] = Tile{shapes.rows[t], shapes.row_bytes[t]};
      if (tiles[t].rows < 1 || tiles[t].rows > 16 || tiles[t].row_bytes != 64) count(faults);
    }
  }
  static void end() {
    count(shaped ? ended : faults);
    shaped = false;
  }
  template <int T>
  static void zero() {
    if (!shaped) count(faults);
    for (auto& row : tiles[T].data) __builtin_memset(row, 0, sizeof row);
  }
  template <int T>
  static void load(const void* from, i64 stride) {
    if (!shaped) count(faults);
    for (int r = 0; r < tiles[T].rows; ++r) {
      __builtin_memcpy(tiles[T].data[r], static_cast<const char*>(from) + r * stride, kTileRow);
    }
  }
  template <int T>
  static void stream(const void* from, i64 stride) {
    load<T>(from, stride);
  }
  template <int T>
  static void store(void* to, i64 stride) {
    if (!shaped) count(faults);
    for (int r = 0; r < tiles[T].rows; ++r) {
      __builtin_memcpy(static_cast<char*>(to) + r * stride, tiles[T].data[r], kTileRow);
    }
  }
  template <int C, int A, int B>
  static void multiply() {
    constexpr int G = kGroup<Number>;
    if (!shaped || tiles[C].rows != tiles[A].rows || tiles[B].rows != kTileSide) count(faults);
    for (int r = 0; r < tiles[C].rows; ++r) {
      Sum sums[kTileSide];
      __builtin_memcpy(sums, tiles[C].data[r], kTileRow);
      for (int p = 0; p < kTileSide; ++p) {
        Term x[G], y[kTileSide * G];
        __builtin_memcpy(x, tiles[A].data[r] + 4 * p, 4);
        __builtin_memcpy(y, tiles[B].data[p], kTileRow);
        for (int q = 0; q < kTileSide; ++q) {
          for (int g = 0; g < G; ++g) sums[q] += value(x[g]) * value(y[G * q + g]);
        }
      }
      __builtin_memcpy(tiles[C].data[r], sums, kTileRow);
    }
  }

 private:
  static Sum value(Term x) { return static_cast<Sum>(widened(x)); }
};

constexpr GroupKernels kBf16Table = tile_kernels<EmulatedTiles<u16, float, Bf16>>();
constexpr GroupKernels kInt8Table = tile_kernels<EmulatedTiles<unsigned char, int, signed char>>();
constexpr GroupKernels kUint8Table =
    tile_kernels<EmulatedTiles<unsigned char, int, unsigned char>>();

}  // namespace
}  // namespace functrans

extern "C" {
const void* emulated_kernels(int in_type) {
  using namespace functrans;
  return in_type == kBf16 ? &kBf16Table : in_type == kI8 ? &kInt8Table : &kUint8Table;
}
long long emulated_faults() { return functrans::faults; }
long long emulated_open() { return functrans::begun - functrans::ended; }
long long emulated_uses() { return functrans::begun; }
}
