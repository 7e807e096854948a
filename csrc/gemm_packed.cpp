// Matrix products of any size, from operands packed into panels.
#include "cache_sizes.h"
#include "gemm_product.h"

namespace functrans {
namespace {

// Few rows read b once: a panel of it that stays in the first cache is packed, multiplied and
// forgotten.
constexpr i64 kFewDepthBytes = 512, kFewColumns = 512;

// The sizes for the caches of this processor. A panel of a takes 9/16 of the first one at most.
Blocking fitted(const Kernels& kernels, bool few) {
  Blocking sizes = kernels.blocks;
  if (few) {
    sizes.depth_bytes = kFewDepthBytes;
    sizes.tile_bytes = kFewColumns * kernels.sum_size;
    sizes.least_panels = 1;
    return sizes;
  }
  if (sizes.second_cache == 0) return sizes;
  const CacheSizes& caches = cache_sizes();
  if (!sizes.in_first) {
    sizes.depth_bytes = sizes.depth_bytes * caches.second / sizes.second_cache;
    return sizes;
  }
  const i64 depth = std::min<i64>(sizes.depth_bytes, caches.first * 9 / 16 / kernels.mr);
  const i64 bytes = sizes.tile_rows * sizes.depth_bytes * caches.second / sizes.second_cache;
  sizes.tile_rows = bytes / depth;
  sizes.depth_bytes = depth;
  return sizes;
}

class Packed {
 public:
  Packed(const Product& product, bool serial)
      : p_(product), kernels_(product.kernels),
        few_(product.g.m <= kFewRows && kernels_.rows_block == nullptr),
        sizes_(fitted(kernels_, few_)), serial_(serial) {
    const i64 step = kernels_.k_step, k = p_.g.k;
    blocks_ = std::max<i64>(1, divide_up(k, sizes_.depth_bytes / kernels_.element_size * step));
    depth_ = round_up(divide_up(k, blocks_), 4 * step);
    blocks_ = std::max<i64>(1, divide_up(k, std::max<i64>(depth_, 1)));
    elements_ = divide_up(k, step);
    const i64 column = std::max<i64>(elements_, 1) * kernels_.element_size;
    tile_rows_ = std::max<i64>(1, sizes_.tile_rows / kernels_.mr) * kernels_.mr;
    tile_columns_ = round_up(sizes_.tile_bytes / kernels_.sum_size, kernels_.nr);
    tile_rows_ = std::min(tile_rows_, round_up(p_.g.m, kernels_.mr));
    tile_columns_ = std::min(tile_columns_, round_up(p_.g.n, kernels_.nr));
    const bool own = !serial_ && thread_count() >= sizes_.own_threads && !loops_run_alone();
    in_place_ = kernels_.rows_block != nullptr && has_whole_rows();
    if (!serial_) shrink_tiles(own);
    // What only one tile reads is packed by the task of that tile, and stays in its cache.
    own_a_ = !in_place_ && !few_ && (own || p_.g.n <= tile_columns_);
    own_b_ = !p_.turned && (own || (!own_a_ && p_.g.m <= tile_rows_));
    rows_ = own_a_ || in_place_ ? p_.g.m : rows_at_once(p_.g.m, column, tile_rows_);
    columns_ = own_b_ ? p_.g.n : rows_at_once(p_.g.n, column, tile_columns_);
  }

  bool run() {
    const i64 size = kernels_.element_size;
    Buffer a(own_a_ || in_place_ ? 0 : rows_ * elements_ * size);
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
  // Of packed a, and of packed b, at a time: half of a third cache of 32 MiB; more was not measured.
  static i64 packed_bytes() { return std::min<i64>(16 << 20, cache_sizes().third / 2); }

  static i64 rows_at_once(i64 count, i64 bytes, i64 tile) {
    return std::min(count, std::max<i64>(1, packed_bytes() / bytes / tile) * tile);
  }

  // Rows of whole panels that are packed at a time: some tasks for each thread, of a few us.
  i64 panels_in_piece(i64 panel) const {
    const i64 bytes = panel * divide_up(depth_, kernels_.k_step) * kernels_.element_size;
    return std::max<i64>(1, kPackedPiece / std::max<i64>(bytes, 1)) * panel;
  }

  // Whether kernels may read a where it is.
  bool has_whole_rows() const {
    return p_.g.a_fill == nullptr && p_.g.a_col == 1 && p_.g.a_row > 0 &&
           p_.g.k % kernels_.k_step == 0;
  }

  // Smaller tasks where there would be too few to share. No sum depends on the tile that it is in.
  void shrink_tiles(bool own) {
    // where no task packs, a panel of rows each costs nothing
    const i64 threads = thread_count(), least = in_place_ && p_.turned ? 1 : sizes_.least_panels;
    const bool one_row = p_.g.m <= tile_rows_;  // then columns are packed once in any case
    const i64 most = own ? sizes_.own_tasks * threads : 2 * threads;
    const i64 wanted = threads == 1 ? 1 : std::min(most, p_.work() / kPieceWork);
    while (divide_up(p_.g.m, tile_rows_) * divide_up(p_.g.n, tile_columns_) < wanted) {
      const bool rows_left = tile_rows_ > least * kernels_.mr;
      const bool columns_left = tile_columns_ > least * kernels_.nr;
      if (columns_left && !(own && rows_left &&
                            tile_rows_ > sizes_.own_aspect * tile_columns_)) {
        tile_columns_ = round_up(tile_columns_ / 2, kernels_.nr);
      } else if (one_row && tile_columns_ > kernels_.nr &&
                 divide_up(p_.g.n, tile_columns_) < threads) {
        tile_columns_ = round_up(tile_columns_ / 2, kernels_.nr);
      } else if (rows_left) {
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
    const bool packs_b = new_columns && !own_b_;
    const i64 in_b = panels_in_piece(kernels_.nr), in_a = panels_in_piece(kernels_.mr);
    const i64 across_b = divide_up(j1 - j0, in_b), across_a = divide_up(i1 - i0, in_a);
    const i64 b_pieces = packs_b ? across_b * blocks_ : 0;
    const i64 a_pieces = own_a_ || in_place_ ? 0 : across_a * blocks_;
    // to pack an element takes about as long as 16 multiply-adds
    const i64 packed = ((packs_b ? j1 - j0 : 0) + (a_pieces > 0 ? i1 - i0 : 0)) * p_.g.k;
    each(b_pieces + a_pieces, 1, serial_, 16 * packed, [&](i64 begin, i64 end) {
      for (i64 piece = begin; piece < end; ++piece) {
        if (piece < b_pieces) {
          const i64 j = j0 + piece % across_b * in_b, block = piece / across_b;
          pack_b(j, std::min(j1, j + in_b), block, b_at(j0, j1, j, block));
        } else {
          const i64 rest = piece - b_pieces;
          const i64 i = i0 + rest % across_a * in_a, block = rest / across_a;
          pack_a(i, std::min(i1, i + in_a), block, a_at(i0, i1, i, block));
        }
      }
    });
    const i64 work = (i1 - i0) * (j1 - j0) * std::max<i64>(1, p_.g.k);
    each(row_tiles * column_tiles, 1, serial_, work, [&](i64 begin, i64 end) {
      const bool buffered = p_.buffered();
      const i64 depth = divide_up(depth_, kernels_.k_step) * kernels_.element_size;
      const Buffer sums(buffered ? tile_rows_ * (tile_columns_ + kApart) * kernels_.sum_size : 0);
      const Buffer own_a((own_a_ ? tile_rows_ : 0) * depth);
      const Buffer own_b((own_b_ ? tile_columns_ : 0) * depth);
      // which columns own_b holds, and rows own_a, where they are packed in one piece
      i64 packed_i = -1, packed_j = -1;
      if (sums.get() == nullptr || own_a.get() == nullptr || own_b.get() == nullptr) {
        failed_ = true;
        return;
      }
      // rows that lie across k are transposed while they are packed: those are kept, not columns
      const bool along_rows = own_a_ && own_b_ && p_.g.a_col != 1;
      const auto rows_of = [&](i64 tile) {
        return i0 + (along_rows ? tile / column_tiles : tile % row_tiles) * tile_rows_;
      };
      const auto columns_of = [&](i64 tile) {
        return j0 + (along_rows ? tile % column_tiles : tile / row_tiles) * tile_columns_;
      };
      for (i64 tile = begin; tile < end; ++tile) {
        const i64 i = rows_of(tile), j = columns_of(tile);
        const i64 rows = std::min(i1 - i, tile_rows_), columns = std::min(j1 - j, tile_columns_);
        char* c = buffered ? sums.get() : p_.c + (i * p_.g.c_row + j) * p_.out_size();
        const i64 c_row = buffered ? round_up(columns, kernels_.nr) + kApart : p_.g.c_row;
        for (i64 block = 0; block < blocks_; ++block) {
          if (own_a_ && i != packed_i) pack_a(i, i + rows, block, own_a.get());
          if (own_b_ && j != packed_j) pack_b(j, j + columns, block, own_b.get());
          if (blocks_ == 1) {
            packed_i = i;
            packed_j = j;
          }
          const char* a = in_place_ ? a_in_place(i, block)
                          : own_a_  ? own_a.get()
                                    : a_at(i0, i1, i, block);
          const char* b = own_b_ ? own_b.get() : b_at(j0, j1, j, block);
          const bool adds = block > 0 || (!buffered && p_.g.accumulate);
          if (kernels_.rows_block == nullptr) {
            kernels_.block(rows, columns, elements_in(block), a, b, c, c_row, adds);
            continue;
          }
          Ahead ahead{};
          if (block + 1 < blocks_) {
            ahead = ahead_of_b(j0, j1, j, block + 1);
          } else if (tile + 1 < end && columns_of(tile + 1) != packed_j) {
            ahead = ahead_of_b(j0, j1, columns_of(tile + 1), 0);
          }
          kernels_.rows_block(rows, columns, elements_in(block), a,
                              in_place_ ? p_.g.a_row * p_.in_size() : 0, b, c, c_row, adds, ahead);
        }
        if (buffered) p_.finish(i, i + rows, j, j + columns, c, c_row);
      }
    });
  }

  const char* a_in_place(i64 i, i64 block) const {
    return p_.a + (i * p_.g.a_row + begin_of(block)) * p_.in_size();
  }

  // What a block of a tile whose columns begin at j reads of b.
  Ahead ahead_of_b(i64 j0, i64 j1, i64 j, i64 block) const {
    const i64 columns = std::min(j1 - j, tile_columns_), size = p_.in_size();
    if (!own_b_) {
      return {b_at(j0, j1, j, block), 0, 1,
              round_up(columns, kernels_.nr) * elements_in(block) * kernels_.element_size};
    }
    const i64 k0 = begin_of(block), depth = end_of(block) - k0;
    if (p_.g.b_fill != nullptr) return {};
    const char* start = p_.b + (j * p_.g.b_col + k0 * p_.g.b_row) * size;
    if (p_.g.b_col == 1) return {start, p_.g.b_row * size, depth, columns * size};
    if (p_.g.b_row == 1) return {start, p_.g.b_col * size, columns, depth * size};
    return {};
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
  const bool few_;
  const Blocking sizes_;
  const bool serial_;
  i64 blocks_, depth_, elements_, tile_rows_, tile_columns_, rows_, columns_;
  bool in_place_ = false, own_a_ = false, own_b_ = false;
  char* a_ = nullptr;
  char* b_ = nullptr;
  std::atomic<bool> failed_{false};
};

}  // namespace

bool run_packed(const Product& p, bool serial) { return Packed(p, serial).run(); }

// Columns along k are rows that tiles take where they are. The few rows, which are packed instead,
// are little.
bool suits_tiles_turned(const Product& p) {
  const ft_gemm& g = p.g;
  return p.kernels.rows_block != nullptr && g.a_fill == nullptr && g.b_fill == nullptr &&
         g.m <= kFewRows && g.n > g.m && g.b_row == 1 && g.b_col > 0 &&
         g.k % p.kernels.k_step == 0;
}

bool run_tiles_turned(const Product& p, bool serial) {
  ft_gemm g = p.g;
  turn(g);
  Product turned{g, p.kernels, p.pack, p.dots, p.widening, p.batch, p.k0, p.b, p.a, p.c};
  turned.turned = true;
  return run_packed(turned, serial);
}

}  // namespace functrans
