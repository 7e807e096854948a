// One matrix product of a batch, and what its drivers share: packed operands (gemm_packed.cpp), or
// operands where they are (gemm_small.cpp).
#pragma once

#include "allocator.h"
#include "gemm_isa.h"
#include "interrupts.h"
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

class Buffer {
 public:
  explicit Buffer(i64 bytes)
      : data_(static_cast<char*>(allocate(static_cast<std::size_t>(std::max<i64>(1, bytes))))) {}
  Buffer(const Buffer&) = delete;
  Buffer& operator=(Buffer&& other) noexcept {
    std::swap(data_, other.data_);
    return *this;
  }
  ~Buffer() {
    if (data_ != nullptr) deallocate(data_);
  }
  char* get() const { return data_; }

 private:
  char* data_;
};

// The product of one batch index.
struct Product {
  const ft_gemm& g;
  const Kernels& kernels;
  Pack pack;
  i64 batch;
  i64 k0;  // where the sum begins for fills, when it is a piece of a longer one
  const char* a;
  const char* b;
  char* c;

  i64 work() const { return g.m * g.n * std::max<i64>(g.k, 1); }
  i64 in_size() const { return kSizes[g.in_type]; }
  i64 out_size() const { return kSizes[g.out_type]; }
  // Sums go to a buffer of their own first, unless c can hold them.
  bool buffered() const {
    return g.epilogue != nullptr || out_size() != kernels.sum_size || g.c_col != 1 ||
           g.alpha != 1 || (g.out_type <= kF16) != (g.in_type <= kF16);
  }
  void finish(i64 i0, i64 i1, i64 j0, i64 j1, const void* sums, i64 sums_row) const {
    if (g.epilogue != nullptr) {
      g.epilogue(g.epilogue_arg, batch, i0, i1, j0, j1, sums, sums_row);
    } else {
      kernels.finish[g.out_type](i1 - i0, j1 - j0, sums, sums_row, g.alpha, g.accumulate != 0,
                                 c + (i0 * g.c_row + j0 * g.c_col) * out_size(), g.c_row, g.c_col);
    }
  }
};

// The kernels that products of this type are made of (gemm_choice.cpp), and those of groups along k
// that larger ones are made of, if there are any; sums are of the same type.
const Kernels& gemm_kernels(int in_type);
Pack gemm_pack(int in_type);
const GroupKernels* gemm_group_kernels(int in_type);
// The same product with rows and columns exchanged, fills included; not for other epilogues than
// ones that know.
void turn(ft_gemm& g);

// Each returns false when memory ran out.
bool run_packed(const Product& p, bool serial);
bool run_in_place(const Product& p, bool serial);
bool run_small(const Product& p);   // extents of at most kSmall, any strides and types
bool run_vector(const Product& p, bool serial);
bool run_turned(const Product& p, bool serial);  // in place but for b, whose rows are made first

// Whether run_in_place, run_vector, run_turned can take it, and is the faster choice.
bool suits_in_place(const Product& p);
i64 tasks_in_place(const Product& p);  // how many run_in_place has to share
bool suits_vector(const Product& p);
bool suits_turned(const Product& p);

}  // namespace functrans
