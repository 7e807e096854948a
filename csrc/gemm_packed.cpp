// Matrix products of any size, from operands packed into panels.
#include "gemm_product.h"

namespace functrans {
namespace {

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
    // What only one tile reads is packed by the task of that tile, and stays in its cache.
    own_a_ = p_.g.n <= tile_columns_;
    own_b_ = !own_a_ && p_.g.m <= tile_rows_;
    rows_ = own_a_ ? p_.g.m : rows_at_once(p_.g.m, column, tile_rows_);
    columns_ = own_b_ ? p_.g.n : rows_at_once(p_.g.n, column, tile_columns_);
  }

  bool run() {
    const i64 size = kernels_.element_size;
    Buffer a(own_a_ ? 0 : rows_ * elements_ * size);
    Buffer b(own_b_ ? 0 : round_up(columns_, kernels_.nr) * elements_ * size);
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
  static i64 rows_at_once(i64 count, i64 bytes, i64 tile) {
    return std::min(count, std::max<i64>(1, kPackedBytes / bytes / tile) * tile);
  }

  // Smaller tasks where there would be too few to share. No sum depends on the tile that it is in.
  void shrink_tiles() {
    const i64 threads = thread_count();
    const i64 wanted = threads == 1 ? 1 : std::min(2 * threads, p_.work() / kPieceWork);
    while (divide_up(p_.g.m, tile_rows_) * divide_up(p_.g.n, tile_columns_) < wanted) {
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
    const i64 b_pieces = new_columns && !own_b_ ? column_tiles * blocks_ : 0;
    const i64 a_pieces = own_a_ ? 0 : row_tiles * blocks_;
    // to pack an element takes about as long as 16 multiply-adds
    const i64 packed = ((new_columns && !own_b_ ? j1 - j0 : 0) + (own_a_ ? 0 : i1 - i0)) * p_.g.k;
    each(b_pieces + a_pieces, 1, serial_, 16 * packed, [&](i64 begin, i64 end) {
      for (i64 piece = begin; piece < end; ++piece) {
        if (piece < b_pieces) {
          const i64 j = j0 + piece / blocks_ * tile_columns_, block = piece % blocks_;
          pack_b(j, std::min(j1, j + tile_columns_), block, b_at(j0, j1, j, block));
        } else {
          const i64 rest = piece - b_pieces;
          const i64 i = i0 + rest / blocks_ * tile_rows_, block = rest % blocks_;
          pack_a(i, std::min(i1, i + tile_rows_), block, a_at(i0, i1, i, block));
        }
      }
    });
    const i64 work = (i1 - i0) * (j1 - j0) * std::max<i64>(1, p_.g.k);
    each(row_tiles * column_tiles, 1, serial_, work, [&](i64 begin, i64 end) {
      const bool buffered = p_.buffered();
      const i64 depth = divide_up(depth_, kernels_.k_step) * kernels_.element_size;
      const Buffer sums(buffered ? tile_rows_ * tile_columns_ * kernels_.sum_size : 0);
      const Buffer own((own_a_ ? tile_rows_ : own_b_ ? tile_columns_ : 0) * depth);
      if (sums.get() == nullptr || own.get() == nullptr) {
        failed_ = true;
        return;
      }
      for (i64 tile = begin; tile < end; ++tile) {
        const i64 i = i0 + tile % row_tiles * tile_rows_, j = j0 + tile / row_tiles * tile_columns_;
        const i64 rows = std::min(i1 - i, tile_rows_), columns = std::min(j1 - j, tile_columns_);
        char* c = buffered ? sums.get() : p_.c + (i * p_.g.c_row + j) * p_.out_size();
        const i64 c_row = buffered ? round_up(columns, kernels_.nr) : p_.g.c_row;
        for (i64 block = 0; block < blocks_; ++block) {
          if (own_a_) pack_a(i, i + rows, block, own.get());
          if (own_b_) pack_b(j, j + columns, block, own.get());
          kernels_.block(rows, columns, elements_in(block),
                         own_a_ ? own.get() : a_at(i0, i1, i, block),
                         own_b_ ? own.get() : b_at(j0, j1, j, block), c, c_row,
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

  void pack_a(i64 i, i64 end, i64 block, char* to) {
    const ft_gemm& g = p_.g;
    const i64 k0 = begin_of(block), k1 = end_of(block);
    if (g.a_fill == nullptr) {
      p_.pack(p_.a + (i * g.a_row + k0 * g.a_col) * p_.in_size(), g.a_row, g.a_col, end - i,
              k1 - k0, kernels_.mr, false, to);
      return;
    }
    Buffer made((end - i) * (k1 - k0) * p_.in_size());
    if (made.get() == nullptr) {
      failed_ = true;
      return;
    }
    g.a_fill(g.fill_arg, p_.batch, i, end, p_.k0 + k0, p_.k0 + k1, made.get());
    p_.pack(made.get(), g.a_fill_columns ? 1 : k1 - k0, g.a_fill_columns ? end - i : 1, end - i,
            k1 - k0, kernels_.mr, false, to);
  }

  void pack_b(i64 j, i64 end, i64 block, char* to) {
    const ft_gemm& g = p_.g;
    const i64 k0 = begin_of(block), k1 = end_of(block);
    if (g.b_fill == nullptr) {
      p_.pack(p_.b + (j * g.b_col + k0 * g.b_row) * p_.in_size(), g.b_col, g.b_row, end - j,
              k1 - k0, kernels_.nr, true, to);
      return;
    }
    Buffer made((end - j) * (k1 - k0) * p_.in_size());
    if (made.get() == nullptr) {
      failed_ = true;
      return;
    }
    g.b_fill(g.fill_arg, p_.batch, p_.k0 + k0, p_.k0 + k1, j, end, made.get());
    p_.pack(made.get(), g.b_fill_columns ? k1 - k0 : 1, g.b_fill_columns ? 1 : end - j, end - j,
            k1 - k0, kernels_.nr, true, to);
  }

  const Product& p_;
  const Kernels& kernels_;
  const bool serial_;
  i64 blocks_, depth_, elements_, tile_rows_, tile_columns_, rows_, columns_;
  bool own_a_ = false, own_b_ = false;
  char* a_ = nullptr;
  char* b_ = nullptr;
  std::atomic<bool> failed_{false};
};

}  // namespace

bool run_packed(const Product& p, bool serial) { return Packed(p, serial).run(); }

}  // namespace functrans
