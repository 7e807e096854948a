// Products of two matrices of compressed rows, row by row (Gustavson, ACM TOMS 4 (1978)). The columns
// of a row are found in order as the bits of a set.
#pragma once

#include "compressed_rows.h"

#include <cstdint>
#include <limits>
#include <memory>
#include <new>
#include <vector>

namespace functrans {

// Rows of a product that one thread has made: memory that grows without being cleared.
template <typename T, typename I>
struct ProductRows {
  struct Free {
    void operator()(void* memory) const { deallocate(memory); }
  };
  std::unique_ptr<I, Free> columns;
  std::unique_ptr<T, Free> values;
  i64 room = 0, size = 0;

  void reserve(i64 wanted) {
    if (wanted <= room) return;
    room = std::max(wanted, room + room / 2);
    grow(columns, room);
    grow(values, room);
  }

 private:
  template <typename E>
  static void grow(std::unique_ptr<E, Free>& memory, i64 room) {
    void* larger = reallocate(memory.get(), static_cast<std::size_t>(room) * sizeof(E));
    if (larger == nullptr) throw std::bad_alloc();
    static_cast<void>(memory.release());
    memory.reset(static_cast<E*>(larger));
  }
};

template <typename T, typename I>
i64 pairs_of(const Rows<T, I>& a, const Rows<T, I>& b) {
  i64 pairs = 0;
  const i64 end = a.start(a.rows);
  for (i64 e = a.start(0); e < end; ++e) {
    if (a.has(a.indices[e])) pairs += b.start(a.indices[e] + 1) - b.start(a.indices[e]);
  }
  return pairs;
}

// Of the second matrix, fetched before their turn: 160 ms where it took 225, of a million elements in
// random columns.
constexpr i64 kRowsAhead = 4;

// What one thread needs for rows of so many columns.
template <typename T, typename I>
struct RowScratch {
  std::vector<I> place;               // of each column among the values, from `first` on in a row
  std::vector<std::uint64_t> bits;    // the columns of the row
  std::vector<std::uint64_t> filled;  // which words of these are not zero
  std::vector<T> values;
  I first = 0;

  explicit RowScratch(i64 columns)
      : place(columns, -1), bits(columns / 64 + 1), filled(columns / 4096 + 1) {}

  // Places of rows before are less than that of the next one, so that they need not be cleared.
  void next_row(i64 count, i64 most) {
    first += static_cast<I>(count);
    if (first < std::numeric_limits<I>::max() - most) return;
    std::fill(place.begin(), place.end(), I{-1});
    first = 0;
  }

  // The columns in order; the set is empty afterwards.
  void take(I* to) {
    for (std::size_t u = 0; u < filled.size(); ++u) {
      for (std::uint64_t above = filled[u]; above != 0; above &= above - 1) {
        const std::size_t w = u * 64 + __builtin_ctzll(above);
        for (std::uint64_t word = bits[w]; word != 0; word &= word - 1) {
          *to++ = static_cast<I>(w * 64 + __builtin_ctzll(word));
        }
        bits[w] = 0;
      }
      filled[u] = 0;
    }
  }
};

// The rows [first, last) of a times b, with how many elements each has in counts[row].
template <typename T, typename I>
void multiply_some_rows(const Rows<T, I>& a, const Rows<T, I>& b, i64 first, i64 last,
                        RowScratch<T, I>& scratch, i64* counts, ProductRows<T, I>& out) {
  I* const place = scratch.place.data();
  std::uint64_t *const bits = scratch.bits.data(), *const filled = scratch.filled.data();
  const i64 all = a.start(a.rows);
  for (i64 i = first; i < last; ++i) {
    const i64 begin = a.start(i), end = a.start(i + 1);
    i64 most = 0;
    for (i64 e = begin; e < end; ++e) {
      const i64 k = a.indices[e];
      if (a.has(k)) most += b.start(k + 1) - b.start(k);
    }
    most = std::min(most, b.columns);
    if (static_cast<i64>(scratch.values.size()) < most) scratch.values.resize(2 * most);
    T* values = scratch.values.data();
    const I origin = scratch.first;
    i64 count = 0;
    for (i64 e = begin; e < end; ++e) {
      const i64 k = a.indices[e];
      if (!a.has(k)) continue;
      const T factor = a.data[e];
      if (e + kRowsAhead < all && a.has(a.indices[e + kRowsAhead])) {
        const i64 next = b.start(a.indices[e + kRowsAhead]);
        __builtin_prefetch(b.indices + next);
        __builtin_prefetch(b.data + next);
        __builtin_prefetch(b.data + next + 64 / sizeof(T));
      }
      const T* const data = b.data;
      const I* const indices = b.indices;
      const i64 stop = b.start(k + 1);
      for (i64 f = b.start(k); f < stop; ++f) {
        const i64 j = indices[f];
        if (!b.has(j)) continue;
        const i64 p = static_cast<i64>(place[j]) - origin;
        if (p < 0) {
          bits[j >> 6] |= std::uint64_t{1} << (j & 63);
          filled[j >> 12] |= std::uint64_t{1} << (j >> 6 & 63);
          values[count] = factor * data[f];
          place[j] = static_cast<I>(origin + count++);
        } else {
          values[p] += factor * data[f];
        }
      }
    }
    out.reserve(out.size + count);
    I* columns = out.columns.get() + out.size;
    T* sums = out.values.get() + out.size;
    scratch.take(columns);
    for (i64 k = 0; k < count; ++k) sums[k] = values[place[columns[k]] - origin];
    scratch.next_row(count, b.columns);
    out.size += count;
    counts[i] = count;
  }
}

// The whole product, in parts of consecutive rows; false where there is not enough memory.
template <typename T, typename I>
bool multiply_rows_of_both(const Rows<T, I>& a, const Rows<T, I>& b, std::vector<i64>& counts,
                           std::vector<ProductRows<T, I>>& parts) {
  const i64 pairs = pairs_of(a, b);
  const i64 wanted = std::clamp<i64>(pairs / kGrain, 1, 4 * thread_count());
  const i64 step = (a.rows + wanted - 1) / wanted;
  const i64 blocks = step == 0 ? 0 : (a.rows + step - 1) / step;
  counts.assign(a.rows, 0);
  parts.resize(blocks);
  bool enough = true;
  parallel_pieces(blocks, 1, [&](i64 begin, i64 end) {
    try {
      RowScratch<T, I> scratch(b.columns);
      for (i64 k = begin; k < end; ++k) {
        parts[k].reserve(std::min(pairs / blocks, b.columns * step) + 1);
        multiply_some_rows(a, b, k * step, std::min(a.rows, (k + 1) * step), scratch,
                           counts.data(), parts[k]);
      }
    } catch (const std::bad_alloc&) {
      enough = false;
    }
  });
  return enough;
}

}  // namespace functrans
