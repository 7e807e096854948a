// The driver of matrix products: chooses how operands are read, pieces and threads.
#include "gemm.h"

#include "conv.h"
#include "gemm_product.h"
#include "library.h"
#include "program.h"

#include <utility>

namespace functrans {
namespace {

// Elements of c whose pieces are added up at a time.
constexpr i64 kFinishElements = 2048;
constexpr i64 kFewTasks = 4;
// Multiply-adds of small products that one thread takes at a time: 1 us of larger ones, some us of
// those with a few columns.
constexpr i64 kBatchWork = 1 << 15;
// Bytes of an operand of a small product that are asked for while the one before is multiplied, and
// of all products for each thread from which on they are: what is in a cache need not be asked for.
// On an EPYC 64 and 1,024 products of 32^3 took 1.1 times as long so, on 16 cores of a Xeon 1,024 of
// 24^3 1.5 times; 8,192 of 24^3 on one core, which are in memory, 0.75 and 4,096 of 48^3 0.9.
constexpr i64 kNextBytes = 16384, kBatchInCache = 16 << 20;
// Operands of whole pages are left to the processor, too: 8,192 of 32^3 took 1.1 times as long.
constexpr i64 kPage = 4096;

// Few rows and columns but a long sum: pieces of the sum are products of their own, which are added
// up. How many there are depends on the sizes alone, so that results do not depend on threads.
i64 pieces_of_sum(const Product& p) {
  const ft_gemm& g = p.g;
  if (g.m * g.n > kSplitTile || g.k < 4 * kSplitDepth || g.k < 4 * std::max(g.m, g.n)) return 1;
  return std::min<i64>(32, g.k / kSplitDepth);
}

// Whether kernels may read the operands where they are.
bool reads_in_place(const Product& p) {
  return p.kernels.direct != nullptr && p.g.a_fill == nullptr && p.g.b_fill == nullptr;
}

bool run_split(const Product& p, i64 pieces, bool serial) {
  const ft_gemm& g = p.g;
  const i64 size = p.kernels.sum_size, tile = g.m * g.n;
  const i64 depth = round_up(divide_up(g.k, pieces), 16);
  pieces = divide_up(g.k, depth);
  const Buffer sums(pieces * tile * size);
  if (sums.get() == nullptr) return false;
  ft_gemm part = g;
  part.out_type = g.in_type >= kI8 ? (size == 8 ? kI64 : kI32) : (size == 8 ? kF64 : kF32);
  part.c_row = g.n;
  part.c_col = 1;
  part.alpha = 1;
  part.accumulate = 0;
  part.epilogue = nullptr;
  std::atomic<bool> failed{false};
  each(pieces, 1, serial, p.work(), [&](i64 begin, i64 end) {
    for (i64 piece = begin; piece < end; ++piece) {
      ft_gemm one = part;
      const i64 k0 = piece * depth;
      one.k = std::min(depth, g.k - k0);
      const Product product{one, p.kernels, p.pack, p.dots, p.widening, p.batch, p.k0 + k0,
                            p.a + k0 * g.a_col * p.in_size(), p.b + k0 * g.b_row * p.in_size(),
                            sums.get() + piece * tile * size};
      const bool in_place = reads_in_place(p) && suits_in_place(product);
      if (!(in_place ? run_in_place(product, true) : run_packed(product, true))) failed = true;
    }
  });
  if (failed) return false;
  // some rows at a time, so that their sums stay in a cache; an addition counts as eight
  const Finish add = p.kernels.finish[part.out_type];
  const i64 rows = divide_up(kFinishElements, g.n);
  each(divide_up(g.m, rows), 1, serial, 8 * pieces * tile, [&](i64 begin, i64 end) {
    for (i64 i = begin * rows; i < std::min(g.m, end * rows); i += rows) {
      const i64 count = std::min(g.m - i, rows) * g.n;
      char* total = sums.get() + i * g.n * size;
      for (i64 piece = 1; piece < pieces; ++piece) {
        add(1, count, total + piece * tile * size, count, 1, true, total, count, 1);
      }
      p.finish(i, std::min(g.m, i + rows), 0, g.n, total, g.n);
    }
  });
  return true;
}

bool run_one(const Product& p, bool serial) {
  const ft_gemm& g = p.g;
  serial = serial || p.work() < kSerial;
  if (reads_in_place(p)) {
    if (suits_vector(p)) return run_vector(p, serial);
    if (g.m <= kSmall && g.n <= kSmall && g.k <= kSmall && p.kernels.direct != nullptr) {
      return run_small(p);
    }
    // a few tasks of long sums are better cut along the sums
    if (suits_in_place(p) && (tasks_in_place(p) >= kFewTasks || pieces_of_sum(p) == 1)) {
      return run_in_place(p, serial);
    }
  }
  if (suits_dots(p)) return run_dots(p, serial);
  if (suits_widening(p)) return run_widening(p, serial);
  if (suits_tiles_turned(p)) return run_tiles_turned(p, serial);
  const i64 pieces = pieces_of_sum(p);
  if (pieces == 1 && reads_in_place(p) && suits_turned(p)) return run_turned(p, serial);
  return pieces > 1 ? run_split(p, pieces, serial) : run_packed(p, serial);
}

// Bytes of an operand whose products of a batch are adjacent; 0 for others, and for those that
// processors read ahead by themselves.
i64 batch_bytes(i64 stride, i64 numbers, i64 size) {
  const i64 bytes = numbers * size;
  const bool asked = bytes >= 1024 && bytes <= kNextBytes && bytes % kPage != 0;
  return stride == numbers && asked ? bytes : 0;
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
  const GroupKernels* groups = gemm_group_kernels(g.in_type);
  if (groups != nullptr && work < groups->least_work) groups = nullptr;
  const bool small = groups == nullptr && g.m <= kSmall && g.n <= kSmall && g.k <= kSmall;
  const Kernels& kernels = groups != nullptr ? groups->kernels : gemm_kernels(g.in_type);
  const Pack pack = groups != nullptr ? groups->pack : gemm_pack(g.in_type);
  const InPlace widening = groups != nullptr ? nullptr : gemm_widening(g.in_type);
  const Dots dots = groups != nullptr ? groups->dots : gemm_dots(g.in_type);
  const i64 in = kSizes[g.in_type], out = kSizes[g.out_type];
  const bool over_batch = batches >= 8 || (batches > 1 && work < 4 * kSerial);
  std::atomic<bool> failed{false};
  const Product first{g, kernels, pack, dots, widening, 0, 0, static_cast<const char*>(g.a),
                      static_cast<const char*>(g.b), static_cast<char*>(g.c)};
  // small products read and written where they are: without what only larger ones need
  const bool bare = plain && small && kernels.direct != nullptr && in == kernels.element_size &&
                    (g.b_col == 1 || g.n == 1) && !first.buffered();
  // where operands follow each other, by how many bytes; to ask for results as well made it slower
  const i64 all = batches * ((g.m + g.n) * g.k * in + g.m * g.n * out);
  const bool in_memory = all > kBatchInCache * thread_count();
  const i64 a_next = in_memory ? batch_bytes(g.a_batch1, g.m * g.k, in) : 0;
  const i64 b_next = in_memory ? batch_bytes(g.b_batch1, g.n * g.k, in) : 0;
  const auto run_bare = [&](i64 begin, i64 end) {
    i64 b0 = begin / g.batch1, b1 = begin % g.batch1;
    for (i64 batch = begin; batch < end; ++batch) {
      const char* a = first.a + (b0 * g.a_batch0 + b1 * g.a_batch1) * in;
      const char* b = first.b + (b0 * g.b_batch0 + b1 * g.b_batch1) * in;
      for (i64 at = 0; at < a_next; at += 64) __builtin_prefetch(a + a_next + at, 0, 2);
      for (i64 at = 0; at < b_next; at += 64) __builtin_prefetch(b + b_next + at, 0, 2);
      char* c = first.c + (b0 * g.c_batch0 + b1 * g.c_batch1) * out;
      kernels.direct(g.m, g.n, g.k, a, g.a_row, g.a_col, b, g.b_row, c, g.c_row,
                     g.accumulate != 0);
      if (++b1 == g.batch1) {
        b1 = 0;
        ++b0;
      }
    }
  };
  const auto run = [&](i64 begin, i64 end) {
    if (bare) return run_bare(begin, end);
    for (i64 batch = begin; batch < end; ++batch) {
      const i64 b0 = batch / g.batch1, b1 = batch % g.batch1;
      const Product product{g, kernels, pack, dots, widening, batch, 0,
                            first.a + (b0 * g.a_batch0 + b1 * g.a_batch1) * in,
                            first.b + (b0 * g.b_batch0 + b1 * g.b_batch1) * in,
                            first.c + (b0 * g.c_batch0 + b1 * g.c_batch1) * out};
      if (!run_one(product, over_batch)) failed = true;
    }
  };
  if (over_batch) {
    each(batches, std::max<i64>(1, kBatchWork / work), batches * work < kBatchWork,
         batches * work, run);
  } else {
    run(0, batches);
  }
  const bool stopped = running_call != nullptr && running_call->stopped;
  return failed || stopped ? 2 : 0;
}

void register_gemm_library() {
  register_library("gemm", reinterpret_cast<void*>(&ft_gemm_run));
  register_library("conv", reinterpret_cast<void*>(&ft_conv_run));
}

}  // namespace functrans
