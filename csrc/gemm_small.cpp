// Matrix products that are not worth packing: small ones, those with few rows or columns, and
// products with a vector.
#include "gemm_product.h"

#include <cstring>

namespace functrans {
namespace {

constexpr i64 kStackBytes = 16384;
constexpr i64 kShortSum = 16;  // of which packing takes as long as multiplying
constexpr i64 kDotTask = 16;  // columns at a time
// Tasks for each thread where there is work for them: threads of 24 tasks on 16 have one or two.
constexpr i64 kTasks = 4;

// Rows i0:i1 and columns j0:j1, whole k; b is read where it is.
bool multiply_in_place(const Product& p, const char* a, i64 a_row, i64 a_col, const char* b,
                       i64 b_row, i64 i0, i64 i1, i64 j0, i64 j1) {
  const ft_gemm& g = p.g;
  const i64 size = p.kernels.element_size;
  a += i0 * a_row * size;
  b += j0 * size;
  const i64 rows = i1 - i0, columns = j1 - j0;
  const i64 depth = p.kernels.blocks.depth_bytes / size;  // a panel of b stays in the second cache
  const auto multiply = [&](char* c, i64 c_row, bool accumulate) {
    i64 k0 = 0;
    do {
      const i64 taken = std::min(depth, g.k - k0);
      p.kernels.direct(rows, columns, taken, a + k0 * a_col * size, a_row, a_col,
                       b + k0 * b_row * size, b_row, c, c_row, k0 > 0 || accumulate);
      k0 += taken;
    } while (k0 < g.k);
  };
  if (!p.buffered()) {
    multiply(p.c + (i0 * g.c_row + j0) * p.out_size(), g.c_row, g.accumulate != 0);
    return true;
  }
  const i64 bytes = rows * columns * p.kernels.sum_size;
  if (bytes <= kStackBytes) {
    alignas(64) char sums[kStackBytes];
    multiply(sums, columns, false);
    p.finish(i0, i1, j0, j1, sums, columns);
    return true;
  }
  const Buffer sums(bytes);
  if (sums.get() == nullptr) return false;
  multiply(sums.get(), columns, false);
  p.finish(i0, i1, j0, j1, sums.get(), columns);
  return true;
}

// Operands that kernels cannot read where they are go to the stack first.
bool multiply_copies(const Product& p, bool same) {
  const ft_gemm& g = p.g;
  alignas(64) char a_copy[kSmall * kSmall * 8];
  alignas(64) char b_copy[kSmall * kSmall * 8];
  const char* a = p.a;
  i64 a_row = g.a_row, a_col = g.a_col;
  if (!same) {
    p.pack(a, a_row, a_col, g.m, g.k, static_cast<int>(g.m), false, a_copy);
    a = a_copy;
    a_row = 1;
    a_col = g.m;
  }
  p.pack(p.b, g.b_col, g.b_row, g.n, g.k, static_cast<int>(g.n), false, b_copy);
  return multiply_in_place(p, a, a_row, a_col, b_copy, g.n, 0, g.m, 0, g.n);
}

// Rows and columns of a task of a product that is read in place.
struct TileInPlace {
  explicit TileInPlace(const Product& p) {
    const bool flat = p.g.m <= 2 * p.kernels.mr;
    height = flat ? p.g.m : 4 * p.kernels.mr;
    width = flat ? p.kernels.blocks.tile_bytes / 2 / p.kernels.element_size : p.g.n;
  }
  i64 height, width;
};

bool same_type(const Product& p) { return p.in_size() == p.kernels.element_size; }

}  // namespace

bool run_small(const Product& p) {
  const ft_gemm& g = p.g;
  const bool same = same_type(p);
  if (!same || (g.b_col != 1 && g.n > 1)) return multiply_copies(p, same);
  return multiply_in_place(p, p.a, g.a_row, g.a_col, p.b, g.b_row, 0, g.m, 0, g.n);
}

// Each element of b is read once for every `mr` rows of a, each of a once for every `nr` columns.
bool suits_in_place(const Product& p) {
  const ft_gemm& g = p.g;
  if (!same_type(p) || (g.b_col != 1 && g.n > 1)) return false;
  if (g.k <= kShortSum && g.n * g.k * p.in_size() <= kStackBytes * 2) return true;
  return g.m <= 2 * p.kernels.mr ||
         (g.n <= 2 * p.kernels.nr && g.n * g.k * p.in_size() <= kInPlaceBytes);
}

// To pack a, too, is slower: 262144 rows of 4 x 4 float32 took 0.76 ms, and 0.46 so. Of float64 it is
// so from 2 KiB of b on: 65536 rows of 32 x 32 took 3.4 ms, and 2.4 so, but of 4 x 4 0.8 and 1.0.
bool suits_turned(const Product& p) {
  const ft_gemm& g = p.g;
  if (p.in_size() > 4 && g.n * g.k * p.in_size() <= 2048) return false;
  return same_type(p) && g.b_col != 1 && g.m >= kSmall && g.n <= kSmall &&
         g.n <= 2 * p.kernels.nr && g.n * g.k * p.in_size() <= kStackBytes;
}

bool run_turned(const Product& p, bool serial) {
  alignas(64) char rows[kStackBytes];
  ft_gemm g = p.g;
  p.pack(p.b, g.b_col, g.b_row, g.n, g.k, static_cast<int>(g.n), false, rows);
  g.b = rows;
  g.b_row = g.n;
  g.b_col = 1;
  return run_in_place({g, p.kernels, p.pack, p.dots, p.widening, p.batch, p.k0, p.a, rows, p.c},
                      serial);
}

i64 tasks_in_place(const Product& p) {
  const TileInPlace tile(p);
  return divide_up(p.g.m, tile.height) * divide_up(p.g.n, tile.width);
}

bool run_in_place(const Product& p, bool serial) {
  const ft_gemm& g = p.g;
  auto [height, width] = TileInPlace(p);
  // Fewer rows where there would be too few tasks to share: no sum depends on the task it is in.
  const i64 columns = divide_up(g.n, width), mr = p.kernels.mr;
  const i64 wanted = serial ? 1 : std::min<i64>(kTasks * thread_count(), p.work() / kPieceWork);
  while (height > mr && divide_up(g.m, height) * columns < wanted) {
    height = round_up(height / 2, mr);
  }
  const i64 row_tiles = divide_up(g.m, height);
  std::atomic<bool> failed{false};
  each(row_tiles * columns, 1, serial, p.work(), [&](i64 begin, i64 end) {
    for (i64 tile = begin; tile < end; ++tile) {
      const i64 i = tile % row_tiles * height, j = tile / row_tiles * width;
      if (!multiply_in_place(p, p.a, g.a_row, g.a_col, p.b, g.b_row, i, std::min(g.m, i + height),
                             j, std::min(g.n, j + width))) {
        failed = true;
      }
    }
  });
  return !failed;
}

// b is read once; packing it would write it as well, and read what was written.
bool suits_widening(const Product& p) {
  const ft_gemm& g = p.g;
  return p.widening != nullptr && g.a_fill == nullptr && g.b_fill == nullptr && g.b_col == 1 &&
         g.m <= kFewRows && g.n >= p.kernels.nr;
}

bool run_widening(const Product& p, bool serial) {
  const ft_gemm& g = p.g;
  const i64 size = p.kernels.element_size, in = p.in_size();
  const Buffer rows(g.m * g.k * size);
  if (rows.get() == nullptr) return false;
  p.pack(p.a, g.a_row, g.a_col, g.m, g.k, static_cast<int>(g.m), false, rows.get());
  // 64 rows of b, of as many columns as sums stay in the first cache for, or as threads share
  const i64 depth = 64, shared = divide_up(g.n, serial ? 1 : 2 * thread_count());
  const i64 width = std::min<i64>(g.m <= 8 ? 1024 : 512, round_up(shared, 2 * p.kernels.nr));
  std::atomic<bool> failed{false};
  each(divide_up(g.n, width), 1, serial, p.work(), [&](i64 begin, i64 end) {
    const Buffer sums(g.m * width * size);
    if (sums.get() == nullptr) {
      failed = true;
      return;
    }
    for (i64 j = begin * width; j < std::min(g.n, end * width); j += width) {
      const i64 columns = std::min(g.n - j, width);
      i64 k0 = 0;
      do {
        const i64 taken = std::min(depth, g.k - k0);
        p.widening(g.m, columns, taken, rows.get() + k0 * g.m * size, 1, g.m,
                   p.b + (k0 * g.b_row + j) * in, g.b_row, sums.get(), columns, k0 > 0);
        k0 += taken;
      } while (k0 < g.k);
      p.finish(0, g.m, j, j + columns, sums.get(), columns);
    }
  });
  return !failed;
}

// Columns are read once; packing would transpose them. Of less than 256 bytes along k the end of a
// sum, across a vector, takes longer than what is before it.
bool suits_dots(const Product& p) {
  const ft_gemm& g = p.g;
  return p.dots != nullptr && g.a_fill == nullptr && g.b_fill == nullptr && g.m <= kFewRows &&
         g.b_row == 1 && g.n >= kDotTask && g.k * p.in_size() >= 256;
}

bool run_dots(const Product& p, bool serial) {
  const ft_gemm& g = p.g;
  const i64 in = p.in_size(), size = p.kernels.sum_size;
  const Buffer rows(g.a_col == 1 ? 0 : g.m * g.k * in);
  if (rows.get() == nullptr) return false;
  const char* a = p.a;
  i64 a_row = g.a_row;
  if (g.a_col != 1) {
    for (i64 i = 0; i < g.m; ++i) {
      const char* from = p.a + i * g.a_row * in;
      char* to = rows.get() + i * g.k * in;
      for (i64 q = 0; q < g.k; ++q) std::memcpy(to + q * in, from + q * g.a_col * in, in);
    }
    a = rows.get();
    a_row = g.k;
  }
  std::atomic<bool> failed{false};
  each(divide_up(g.n, kDotTask), 1, serial, p.work(), [&](i64 begin, i64 end) {
    const bool buffered = p.buffered() || g.accumulate;
    const Buffer sums(buffered ? g.m * kDotTask * size : 0);
    if (sums.get() == nullptr) {
      failed = true;
      return;
    }
    for (i64 j = begin * kDotTask; j < std::min(g.n, end * kDotTask); j += kDotTask) {
      const i64 columns = std::min(g.n - j, kDotTask);
      char* c = buffered ? sums.get() : p.c + j * size;
      p.dots(g.m, columns, g.k, a, a_row, p.b + j * g.b_col * in, g.b_col, c,
             buffered ? columns : g.c_row);
      if (buffered) p.finish(0, g.m, j, j + columns, sums.get(), columns);
    }
  });
  return !failed;
}

bool suits_vector(const Product& p) {
  const ft_gemm& g = p.g;
  if (g.m != 1 || !same_type(p) || g.k < 2 || g.n * g.k <= kSmall * kSmall) return false;
  return g.b_row == 1 || (g.b_col == 1 && g.n > 8 * p.kernels.nr);
}

bool run_vector(const Product& p, bool serial) {
  const ft_gemm& g = p.g;
  const Kernels& kernels = p.kernels;
  const i64 size = kernels.element_size;
  const bool rows = g.b_col == 1;
  const bool buffered = p.buffered() && (rows || g.epilogue != nullptr || g.alpha != 1 ||
                                         p.out_size() != size);
  const bool copied = !rows && g.a_col != 1;
  const Buffer sums(buffered ? g.n * size : 0), x_copy(copied ? g.k * size : 0);
  if (sums.get() == nullptr || x_copy.get() == nullptr) return false;
  if (copied) p.pack(p.a, 0, g.a_col, 1, g.k, 1, false, x_copy.get());
  const char* x = copied ? x_copy.get() : p.a;
  // rows: y and four rows of b stay in the first level cache; dots: a few rows for each thread
  const i64 shared = divide_up(g.n, std::max(8, serial ? 1 : 2 * thread_count()));
  const i64 width = rows ? std::min<i64>(kRowsTile / size, round_up(shared, 64))
                         : std::max<i64>(4, round_up(divide_up(16384, g.k), 4));
  each(divide_up(g.n, width), 1, serial, p.work(), [&](i64 begin, i64 end) {
    for (i64 j = begin * width; j < std::min(g.n, end * width); j += width) {
      const i64 columns = std::min(g.n - j, width);
      const i64 step = buffered ? 1 : g.c_col;
      char* y = (buffered ? sums.get() : p.c) + j * step * size;
      const bool accumulate = !buffered && g.accumulate;
      if (rows) {
        kernels.vector_rows(columns, g.k, x, g.a_col, p.b + j * size, g.b_row, y, accumulate);
      } else {
        kernels.vector_dots(columns, g.k, x, p.b + j * g.b_col * size, g.b_col, y, step,
                            accumulate);
      }
    }
  });
  if (buffered) p.finish(0, 1, 0, g.n, sums.get(), g.n);
  return true;
}

}  // namespace functrans
