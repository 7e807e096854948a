// The driver of matrix products: chooses kernels, blocks and threads.
#include "gemm.h"

#include "allocator.h"
#include "gemm_isa.h"
#include "library.h"
#include "threads.h"

#include <algorithm>
#include <atomic>

namespace functrans {
namespace {

// Block sizes, and what was measured behind them (Zen 5, 48 KiB first and 1 MiB second level cache
// per core, two threads):
constexpr i64 kDepthBytes = 1536;      // of a row of a packed panel: a panel of a takes 18 KiB
constexpr i64 kTileRows = 144;         // of a task
constexpr i64 kTileBytes = 2048;       // of a row of a task: 512 float32
constexpr i64 kPackedBytes = 16 << 20; // of packed a, and of packed b, at a time
constexpr i64 kSerial = 1 << 18;       // multiply-adds below which one thread is faster
constexpr i64 kSmall = 64;             // extents up to which operands are packed on the stack

constexpr int kSizes[] = {4, 8, 2, 2, 1, 2, 4, 8, 1, 2, 4, 8, 8, 16};

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

i64 divide_up(i64 x, i64 y) { return (x + y - 1) / y; }
i64 round_up(i64 x, i64 y) { return divide_up(x, y) * y; }

template <typename Body>
void each(i64 n, i64 grain, bool serial, const Body& body) {
  if (serial || n <= grain) {
    if (n > 0) body(0, n);
    return;
  }
  parallel_for([](void* arg, std::int64_t begin, std::int64_t end) { (*static_cast<const Body*>(arg))(begin, end); },
               const_cast<Body*>(&body), n, grain);
}

class Buffer {
 public:
  explicit Buffer(i64 bytes) : data_(static_cast<char*>(allocate(static_cast<std::size_t>(bytes)))) {}
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
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
  const char* a;
  const char* b;
  char* c;

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

// A product of any size, from packed operands.
class Packed {
 public:
  Packed(const Product& product, bool serial)
      : p_(product), kernels_(product.kernels), serial_(serial) {
    const i64 step = kernels_.k_step, k = p_.g.k;
    blocks_ = std::max<i64>(1, divide_up(k, kDepthBytes / kernels_.element_size * step));
    depth_ = round_up(divide_up(k, blocks_), 4 * step);
    blocks_ = std::max<i64>(1, divide_up(k, std::max<i64>(depth_, 1)));
    elements_ = divide_up(k, step);
    const i64 column = std::max<i64>(elements_, 1) * kernels_.element_size;
    tile_rows_ = std::max<i64>(1, kTileRows / kernels_.mr) * kernels_.mr;
    tile_columns_ = round_up(kTileBytes / kernels_.sum_size, kernels_.nr);
    if (!serial_) shrink_tiles();
    rows_ = std::min(p_.g.m, std::max<i64>(1, kPackedBytes / column / tile_rows_) * tile_rows_);
    columns_ =
        std::min(p_.g.n, std::max<i64>(1, kPackedBytes / column / tile_columns_) * tile_columns_);
  }

  bool run() {
    const i64 size = kernels_.element_size;
    Buffer a(std::max<i64>(1, rows_ * elements_ * size));
    Buffer b(std::max<i64>(1, round_up(columns_, kernels_.nr) * elements_ * size));
    if (a.get() == nullptr || b.get() == nullptr) return false;
    a_ = a.get();
    b_ = b.get();
    for (i64 j = 0; j < p_.g.n; j += columns_) {
      for (i64 i = 0; i < p_.g.m; i += rows_) {
        multiply(i, std::min(p_.g.m, i + rows_), j, std::min(p_.g.n, j + columns_), i == 0);
      }
    }
    return !failed_;
  }

 private:
  // Smaller tasks where there would be too few to share.
  void shrink_tiles() {
    while (divide_up(p_.g.m, tile_rows_) * divide_up(p_.g.n, tile_columns_) < 8) {
      if (tile_columns_ > 4 * kernels_.nr && p_.g.n > tile_columns_ / 2) {
        tile_columns_ = round_up(tile_columns_ / 2, kernels_.nr);
      } else if (tile_rows_ > 4 * kernels_.mr) {
        tile_rows_ = round_up(tile_rows_ / 2, kernels_.mr);
      } else {
        return;
      }
    }
  }

  i64 begin_of(i64 block) const { return block * depth_; }
  i64 end_of(i64 block) const { return std::min(p_.g.k, (block + 1) * depth_); }
  i64 elements_in(i64 block) const {
    return divide_up(end_of(block) - begin_of(block), kernels_.k_step);
  }
  i64 elements_before(i64 block) const { return begin_of(block) / kernels_.k_step; }

  void multiply(i64 i0, i64 i1, i64 j0, i64 j1, bool new_columns) {
    const i64 row_tiles = divide_up(i1 - i0, tile_rows_);
    const i64 column_tiles = divide_up(j1 - j0, tile_columns_);
    const i64 b_pieces = new_columns ? column_tiles * blocks_ : 0;
    each(b_pieces + row_tiles * blocks_, 1, serial_, [&](i64 begin, i64 end) {
      for (i64 piece = begin; piece < end; ++piece) {
        if (piece < b_pieces) {
          const i64 j = j0 + piece / blocks_ * tile_columns_;
          pack_b(j0, j1, j, std::min(j1, j + tile_columns_), piece % blocks_);
        } else {
          const i64 rest = piece - b_pieces;
          const i64 i = i0 + rest / blocks_ * tile_rows_;
          pack_a(i0, i1, i, std::min(i1, i + tile_rows_), rest % blocks_);
        }
      }
    });
    each(row_tiles * column_tiles, 1, serial_, [&](i64 begin, i64 end) {
      const bool buffered = p_.buffered();
      Buffer sums(buffered ? tile_rows_ * tile_columns_ * kernels_.sum_size : 1);
      if (sums.get() == nullptr) {
        failed_ = true;
        return;
      }
      for (i64 tile = begin; tile < end; ++tile) {
        const i64 i = i0 + tile % row_tiles * tile_rows_, j = j0 + tile / row_tiles * tile_columns_;
        const i64 rows = std::min(i1 - i, tile_rows_), columns = std::min(j1 - j, tile_columns_);
        char* c = buffered ? sums.get() : p_.c + (i * p_.g.c_row + j) * p_.out_size();
        const i64 c_row = buffered ? round_up(columns, kernels_.nr) : p_.g.c_row;
        for (i64 block = 0; block < blocks_; ++block) {
          kernels_.block(rows, columns, elements_in(block), a_at(i0, i1, i, block),
                         b_at(j0, j1, j, block), c, c_row,
                         block > 0 || (!buffered && p_.g.accumulate));
        }
        if (buffered) p_.finish(i, i + rows, j, j + columns, c, c_row);
      }
    });
  }

  char* a_at(i64 i0, i64 i1, i64 i, i64 block) const {
    return a_ + ((i1 - i0) * elements_before(block) + (i - i0) * elements_in(block)) *
                    kernels_.element_size;
  }
  char* b_at(i64 j0, i64 j1, i64 j, i64 block) const {
    return b_ + (round_up(j1 - j0, kernels_.nr) * elements_before(block) +
                 (j - j0) * elements_in(block)) *
                    kernels_.element_size;
  }

  void pack_a(i64 i0, i64 i1, i64 i, i64 end, i64 block) {
    const ft_gemm& g = p_.g;
    const i64 k0 = begin_of(block), k1 = end_of(block);
    char* to = a_at(i0, i1, i, block);
    if (g.a_fill == nullptr) {
      p_.pack(p_.a + (i * g.a_row + k0 * g.a_col) * p_.in_size(), g.a_row, g.a_col, end - i,
              k1 - k0, kernels_.mr, false, to);
      return;
    }
    Buffer made((end - i) * (k1 - k0) * p_.in_size() + 1);
    if (made.get() == nullptr) {
      failed_ = true;
      return;
    }
    g.a_fill(g.fill_arg, p_.batch, i, end, k0, k1, made.get());
    p_.pack(made.get(), g.a_fill_columns ? 1 : k1 - k0, g.a_fill_columns ? end - i : 1, end - i,
            k1 - k0, kernels_.mr, false, to);
  }

  void pack_b(i64 j0, i64 j1, i64 j, i64 end, i64 block) {
    const ft_gemm& g = p_.g;
    const i64 k0 = begin_of(block), k1 = end_of(block);
    char* to = b_at(j0, j1, j, block);
    if (g.b_fill == nullptr) {
      p_.pack(p_.b + (j * g.b_col + k0 * g.b_row) * p_.in_size(), g.b_col, g.b_row, end - j,
              k1 - k0, kernels_.nr, true, to);
      return;
    }
    Buffer made((end - j) * (k1 - k0) * p_.in_size() + 1);
    if (made.get() == nullptr) {
      failed_ = true;
      return;
    }
    g.b_fill(g.fill_arg, p_.batch, k0, k1, j, end, made.get());
    p_.pack(made.get(), g.b_fill_columns ? k1 - k0 : 1, g.b_fill_columns ? 1 : end - j, end - j,
            k1 - k0, kernels_.nr, true, to);
  }

  const Product& p_;
  const Kernels& kernels_;
  const bool serial_;
  i64 blocks_, depth_, elements_, tile_rows_, tile_columns_, rows_, columns_;
  char* a_ = nullptr;
  char* b_ = nullptr;
  std::atomic<bool> failed_{false};
};

// b is read where it is: each element once for every `mr` rows.
bool run_direct(const Product& p, const char* a, i64 a_row, i64 a_col, const char* b, i64 b_row,
                bool serial) {
  const ft_gemm& g = p.g;
  const i64 size = p.kernels.element_size;
  const bool buffered = p.buffered();
  // a panel of b of this depth and one task's width stays in the second level cache
  const i64 depth = std::max<i64>(1, kDepthBytes / size);
  const i64 width = kTileBytes / size;
  std::atomic<bool> failed{false};
  each(divide_up(g.n, width), 1, serial, [&](i64 begin, i64 end) {
    for (i64 tile = begin; tile < end; ++tile) {
      const i64 j = tile * width, columns = std::min(g.n - j, width);
      alignas(64) char stack[16384];
      const i64 bytes = buffered ? g.m * columns * p.kernels.sum_size : 0;
      Buffer heap(bytes > static_cast<i64>(sizeof stack) ? bytes : 1);
      if (heap.get() == nullptr) {
        failed = true;
        return;
      }
      char* sums = bytes > static_cast<i64>(sizeof stack) ? heap.get() : stack;
      char* c = buffered ? sums : p.c + (j * g.c_col) * p.out_size();
      const i64 c_row = buffered ? columns : g.c_row;
      i64 k0 = 0;
      do {
        const i64 taken = std::min(depth, g.k - k0);
        p.kernels.direct(g.m, columns, taken, a + k0 * a_col * size, a_row, a_col,
                         b + (k0 * b_row + j) * size, b_row, c, c_row,
                         k0 > 0 || (!buffered && g.accumulate));
        k0 += taken;
      } while (k0 < g.k);
      if (buffered) p.finish(0, g.m, j, j + columns, c, c_row);
    }
  });
  return !failed;
}

// Operands of at most kSmall x kSmall that direct kernels cannot read are packed on the stack.
bool run_small(const Product& p) {
  const ft_gemm& g = p.g;
  alignas(64) char a_copy[kSmall * kSmall * 8];
  alignas(64) char b_copy[kSmall * kSmall * 8];
  const bool same = p.in_size() == p.kernels.element_size;
  const char* a = p.a;
  const char* b = p.b;
  i64 a_row = g.a_row, a_col = g.a_col, b_row = g.b_row;
  if (!same) {
    p.pack(a, a_row, a_col, g.m, g.k, static_cast<int>(g.m), false, a_copy);
    a = a_copy;
    a_row = 1;
    a_col = g.m;
  }
  if (!same || (g.b_col != 1 && g.n > 1)) {
    p.pack(b, g.b_col, b_row, g.n, g.k, static_cast<int>(g.n), false, b_copy);
    b = b_copy;
    b_row = g.n;
  }
  return run_direct(p, a, a_row, a_col, b, b_row, true);
}

bool run_one(const Product& p, bool serial) {
  const ft_gemm& g = p.g;
  serial = serial || g.m * g.n * std::max<i64>(g.k, 1) < kSerial;
  const bool in_place = g.a_fill == nullptr && g.b_fill == nullptr;
  if (in_place && p.kernels.direct != nullptr) {
    const bool same = p.in_size() == p.kernels.element_size;
    if (g.m <= kSmall && g.n <= kSmall && g.k <= kSmall) return run_small(p);
    if (same && g.b_col == 1 && g.m <= 2 * p.kernels.mr) {
      return run_direct(p, p.a, g.a_row, g.a_col, p.b, g.b_row, serial);
    }
  }
  return Packed(p, serial).run();
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

void exchange_operands(ft_gemm& g) {
  std::swap(g.m, g.n);
  std::swap(g.a, g.b);
  std::swap(g.a_batch0, g.b_batch0);
  std::swap(g.a_batch1, g.b_batch1);
  std::swap(g.a_row, g.b_col);
  std::swap(g.a_col, g.b_row);
  std::swap(g.c_row, g.c_col);
}

}  // namespace

int ft_gemm_run(const ft_gemm* given) {
  ft_gemm g = *given;
  const i64 batches = g.batch0 * g.batch1;
  if (batches <= 0 || g.m <= 0 || g.n <= 0) return 0;
  if (g.in_type >= kC64) return run_complex(g);
  const bool plain = g.a_fill == nullptr && g.b_fill == nullptr && g.epilogue == nullptr;
  if (plain && g.c_col != 1 && g.c_row == 1) exchange_operands(g);
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
}

}  // namespace functrans
