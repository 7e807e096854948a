// One matrix product of a batch, and what its drivers share: packed operands (gemm_packed.cpp), or
// operands where they are (gemm_small.cpp).
#pragma once

#include "gemm_isa.h"
#include "interrupts.h"
#include "thread_scratch.h"
#include "threads.h"

#include <algorithm>
#include <atomic>
#include <utility>

namespace functrans {

constexpr i64 kPackedPiece = 64 << 10;  // bytes that one task packs
constexpr i64 kApart = 16;  // sums between rows of a tile, which are in other sets of a cache so
// Elements of c up to which a long sum is split, and the depth of a piece: the gradient of a 3x3
// kernel (576 x 64, sum over 50,000) went from 103 to 146, because its images stay in the cache.
constexpr i64 kSplitTile = 1 << 17;
constexpr i64 kSplitDepth = 1024;
// Multiply-adds of a product that is cut into pieces, and of a piece at least: 6 us of float32, and 3.
constexpr i64 kSerial = 1 << 18;
constexpr i64 kPieceWork = 1 << 17;
// ... in a nanosecond, until a product was measured.
constexpr i64 kRate = 40;
constexpr i64 kTurnedBytes = 16384;  // of sums whose columns are made rows
constexpr i64 kFewRows = 32;  // up to which b is read, or packed, once
constexpr i64 kSmall = 64;        // extents up to which operands are packed on the stack
constexpr i64 kInPlaceBytes = 256 << 10;  // of b that is read in place for many rows

constexpr int kSizes[] = {4, 8, 2, 2, 1, 2, 4, 8, 1, 2, 4, 8, 8, 16};

inline i64 divide_up(i64 x, i64 y) { return (x + y - 1) / y; }
inline i64 round_up(i64 x, i64 y) { return divide_up(x, y) * y; }

// body(begin, end) over [0, n), on several threads unless `serial`; `work` multiply-adds in all.
template <typename Body>
void each(i64 n, i64 grain, bool serial, i64 work, const Body& body) {
  if (serial || n <= grain) {
    if (n > 0) body(0, n);
    return;
  }
  const RangeFn call = [](void* arg, std::int64_t begin, std::int64_t end) {
    (*static_cast<const Body*>(arg))(begin, end);
  };
  if (running_call == nullptr) {
    parallel_for(call, const_cast<Body*>(&body), n, grain, 1 + work / kRate);
  } else {  // what is left undone is numbers, and the result is not used
    parallel_for_until(call, const_cast<Body*>(&body), n, grain, call_stops, running_call,
                       1 + work / kRate);
  }
}

using Buffer = ThreadScratch;

// Sums of any type that are moved.
typedef std::uint32_t Bits32 __attribute__((may_alias));
typedef std::uint64_t Bits64 __attribute__((may_alias));

// The product of one batch index.
struct Product {
  const ft_gemm& g;
  const Kernels& kernels;
  Pack pack;
  Dots dots;
  InPlace widening;
  i64 batch;
  i64 k0;  // where the sum begins for fills, when it is a piece of a longer one
  const char* a;
  const char* b;
  char* c;
  bool turned = false;  // rows and columns were exchanged, but for the epilogue

  i64 work() const { return g.m * g.n * std::max<i64>(g.k, 1); }
  i64 in_size() const { return kSizes[g.in_type]; }
  i64 out_size() const { return kSizes[g.out_type]; }
  // Sums go to a buffer of their own first, unless c can hold them.
  bool buffered() const {
    return g.epilogue != nullptr || out_size() != kernels.sum_size || g.c_col != 1 ||
           g.alpha != 1 || (g.out_type <= kF16) != (g.in_type <= kF16);
  }
  void finish(i64 i0, i64 i1, i64 j0, i64 j1, const void* sums, i64 sums_row) const {
    const bool by_columns = g.epilogue == nullptr && g.c_row == 1 && g.c_col != 1 && i1 - i0 > 1;
    if (turned || by_columns) {
      if (kernels.sum_size == 4) {
        finish_columns(i0, i1, j0, j1, static_cast<const Bits32*>(sums), sums_row);
      } else {
        finish_columns(i0, i1, j0, j1, static_cast<const Bits64*>(sums), sums_row);
      }
    } else {
      finish_rows(i0, i1, j0, j1, sums, sums_row, g.c_row, g.c_col);
    }
  }

 private:
  void finish_rows(i64 i0, i64 i1, i64 j0, i64 j1, const void* sums, i64 sums_row, i64 c_row,
                   i64 c_col) const {
    if (g.epilogue != nullptr) {
      g.epilogue(g.epilogue_arg, batch, i0, i1, j0, j1, sums, sums_row);
    } else {
      kernels.finish[g.out_type](i1 - i0, j1 - j0, sums, sums_row, g.alpha, g.accumulate != 0,
                                 c + (i0 * c_row + j0 * c_col) * out_size(), c_row, c_col);
    }
  }

  // Some columns at a time are made rows, which are written one after another: of 1024^3 with c
  // across, a scattered number took 2.5 ns.
  template <typename T>
  void finish_columns(i64 i0, i64 i1, i64 j0, i64 j1, const T* sums, i64 sums_row) const {
    constexpr i64 height = 128, width = kTurnedBytes / height / sizeof(T);
    alignas(64) T columns[width * height];
    for (i64 i = i0; i < i1; i += height) {
      const i64 rows = std::min(height, i1 - i);
      for (i64 j = j0; j < j1; j += width) {
        const i64 taken = std::min(width, j1 - j);
        const T* from = sums + (i - i0) * sums_row + (j - j0);
        for (i64 q = 0; q < taken; ++q) {
          for (i64 r = 0; r < rows; ++r) columns[q * rows + r] = from[r * sums_row + q];
        }
        finish_rows(j, j + taken, i, i + rows, columns, rows, g.c_col, g.c_row);
      }
    }
  }
};

// The kernels that products of this type are made of (gemm_choice.cpp), and those of groups along k
// that larger ones are made of, if there are any; sums are of the same type.
const Kernels& gemm_kernels(int in_type);
Pack gemm_pack(int in_type);
Dots gemm_dots(int in_type);
InPlace gemm_widening(int in_type);
const GroupKernels* gemm_group_kernels(int in_type);
// The same product with rows and columns exchanged, fills included; not for other epilogues than
// ones that know.
void turn(ft_gemm& g);

// Each returns false when memory ran out.
bool run_packed(const Product& p, bool serial);
bool run_in_place(const Product& p, bool serial);
bool run_small(const Product& p);   // extents of at most kSmall, any strides and types
bool run_vector(const Product& p, bool serial);
bool run_dots(const Product& p, bool serial);  // few rows, columns along k
bool run_widening(const Product& p, bool serial);  // few rows, b of narrower numbers in rows
bool run_tiles_turned(const Product& p, bool serial);  // the same, in tile registers
bool run_turned(const Product& p, bool serial);  // in place but for b, whose rows are made first

// Whether run_in_place, run_vector, run_dots, run_turned can take it, and is the faster choice.
bool suits_in_place(const Product& p);
i64 tasks_in_place(const Product& p);  // how many run_in_place has to share
bool suits_vector(const Product& p);
bool suits_dots(const Product& p);
bool suits_widening(const Product& p);
bool suits_tiles_turned(const Product& p);
bool suits_turned(const Product& p);

}  // namespace functrans
