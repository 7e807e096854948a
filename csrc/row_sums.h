// Sums of matrices of compressed rows, row by row.
#pragma once

#include "compressed_rows.h"
#include "merged_rows.h"
#include "sparse_runs.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <new>
#include <thread>
#include <vector>

namespace functrans {

// How many columns are not less than the next, and the largest of all, as an unsigned number.
template <typename I, typename U>
FUNCTRANS_INLINE I falls_and_largest(const I* columns, i64 n, U& most) {
  I falls = 0;
  U largest = static_cast<U>(columns[n - 1]);  // in a register: `most` could be a column
  for (i64 e = 0; e + 1 < n; ++e) {
    falls += static_cast<I>(columns[e] >= columns[e + 1]);
    largest = std::max(largest, static_cast<U>(columns[e]));
  }
  most = largest;
  return falls;
}

FUNCTRANS_WIDEST static std::int32_t not_increasing(const std::int32_t* columns, i64 n,
                                                    std::uint32_t& most) {
  return falls_and_largest(columns, n, most);
}

FUNCTRANS_WIDEST static i64 not_increasing(const i64* columns, i64 n, std::uint64_t& most) {
  return falls_and_largest(columns, n, most);
}

template <typename T, typename I>
class RowSums {
 public:
  // numbers[k] has the place of each element of part k, where that is asked for.
  RowSums(const Rows<T, I>* parts, i64 count, SumPlaces<T, I>& out, I* pointers,
          I* const* numbers)
      : parts_(parts), count_(count), out_(out), pointers_(pointers), numbers_(numbers) {}

  void add() {
    const i64 rows = parts_[0].rows;
    if (pointers_ != nullptr) pointers_[0] = 0;
    for (i64 k = 0; numbers_ != nullptr && k < count_; ++k) {
      std::fill_n(numbers_[k], parts_[k].nse, static_cast<I>(out_.room));
    }
    const i64 total = elements(0, rows);
    if (numbers_ == nullptr && total >= 2 * kGrain && out_.count + total <= out_.room &&
        thread_count() > 1 && !loops_run_alone()) {
      return add_on_threads();
    }
    for (i64 row = 0; row < rows;) {
      const i64 last = end_of_block(row, rows);
      add_block(row, last);
      row = last;
    }
  }

 private:
  struct Element {
    I column;
    T value;
    I* number;
  };

  void add_block(i64 row, i64 last) {
    const bool fits = out_.count + elements(row, last) <= out_.room;
    if (numbers_ == nullptr && fits && count_ > 2) return add_one_after_the_other(row, last);
    bool plain = numbers_ == nullptr && fits && count_ <= 2;
    if (plain && count_ == 2 && can_merge_by_vectors()) {
      while ((row = merge_by_vectors(row, last)) < last) sorted_row(row++);
      return;
    }
    for (i64 k = 0; plain && k < count_; ++k) plain = in_order(parts_[k], row, last);
    if (!plain) {
      for (i64 i = row; i < last; ++i) sorted_row(i);
    } else if (count_ == 1) {
      copy(row, last);
    } else {
      regular(row, last) ? merge<true>(row, last) : merge<false>(row, last);
    }
  }

  // More than two matrices: the sum of the first two, in memory that stays in cache, and the next one.
  void add_one_after_the_other(i64 first, i64 last) {
    const i64 room = elements(first, last) + kMergedRows / 16, pointers = last - first + 1;
    const i64 bytes = room * static_cast<i64>(sizeof(T) + sizeof(I));
    const Scratch memory(2 * (bytes + pointers * static_cast<i64>(sizeof(I))));
    if (!memory) throw std::bad_alloc();
    Rows<T, I> two[2] = {parts_[0], parts_[1]};
    for (i64 k = 1; k < count_; ++k) {
      two[1] = parts_[k];
      if (k == count_ - 1) {
        RowSums(two, 2, out_, pointers_, nullptr).add_block(first, last);
        return;
      }
      const i64 half = k % 2 * room;
      SumPlaces<T, I> sum{room, 1, memory.as<T>() + half,
                          memory.as<I>(2 * room * static_cast<i64>(sizeof(T))) + half};
      I* starts = memory.as<I>(2 * bytes) + k % 2 * pointers;
      starts[0] = 0;
      RowSums(two, 2, sum, starts - first, nullptr).add_block(first, last);
      two[0] = {parts_[0].rows, parts_[0].columns, sum.count, sum.sums, sum.places, starts - first};
    }
  }

#ifdef FUNCTRANS_MERGES_BY_VECTORS
  bool can_merge_by_vectors() const {
    return merges_by_vectors() && parts_[0].columns < INT32_MAX && parts_[0].rows < INT32_MAX;
  }

  i64 merge_by_vectors(i64 row, i64 last) {
    return out_.width == 1
               ? functrans::merge_by_vectors<1>(parts_[0], parts_[1], row, last, out_, pointers_)
               : functrans::merge_by_vectors<2>(parts_[0], parts_[1], row, last, out_, pointers_);
  }
#else
  bool can_merge_by_vectors() const { return false; }
  i64 merge_by_vectors(i64, i64 last) { return last; }
#endif

  // Threads take one block after the other. The sum of a block is made in memory that stays in cache,
  // and copied once all blocks before it are known to have so many places: these are with threads
  // already, so that nobody waits for long.
  void add_on_threads() {
    const i64 rows = parts_[0].rows;
    std::vector<i64> begins{0};
    i64 most = 0;
    while (begins.back() < rows) {
      begins.push_back(end_of_block(begins.back(), rows));
      most = std::max(most, elements(*(begins.end() - 2), begins.back()));
    }
    const i64 blocks = static_cast<i64>(begins.size()) - 1, width = out_.width;
    const std::unique_ptr<std::atomic<i64>[]> starts(new std::atomic<i64>[blocks + 1]);
    for (i64 b = 0; b <= blocks; ++b) starts[b].store(-1, std::memory_order_relaxed);
    starts[0].store(out_.count);
    std::atomic<i64> next{0};
    std::atomic<bool> enough{true};
    const auto take = [&] {
      const Scratch scratch(most * static_cast<i64>(sizeof(T) + width * sizeof(I)));
      if (!scratch) return enough.store(false);
      T* const sums = scratch.as<T>();
      I* const places = scratch.as<I>(most * static_cast<i64>(sizeof(T)));
      for (i64 b; (b = next.fetch_add(1)) < blocks;) {
        SumPlaces<T, I> own{most, width, sums, places};
        try {
          RowSums(parts_, count_, own, pointers_, nullptr).add_block(begins[b], begins[b + 1]);
        } catch (const std::bad_alloc&) {
          enough.store(false);
          own.count = 0;
        }
        i64 start;
        while ((start = starts[b].load(std::memory_order_acquire)) < 0) std::this_thread::yield();
        starts[b + 1].store(start + own.count, std::memory_order_release);
        std::memcpy(out_.sums + start, sums, static_cast<std::size_t>(own.count) * sizeof(T));
        std::memcpy(out_.places + start * width, places,
                    static_cast<std::size_t>(own.count * width) * sizeof(I));
        for (i64 i = begins[b]; pointers_ != nullptr && i < begins[b + 1]; ++i) {
          pointers_[i + 1] += static_cast<I>(start);
        }
      }
    };
    parallel_pieces(std::min<i64>(thread_count(), blocks), 1, [&](i64, i64) { take(); });
    if (!enough.load()) throw std::bad_alloc();
    out_.count = starts[blocks].load();
  }

  i64 elements(i64 first, i64 last) const {
    i64 n = 0;
    for (i64 k = 0; k < count_; ++k) n += parts_[k].start(last) - parts_[k].start(first);
    return n;
  }

  // Rows that hold about kMergedRows elements together.
  i64 end_of_block(i64 row, i64 rows) const {
    i64 step = std::max<i64>(1, kMergedRows / (elements(row, rows) / (rows - row) + 1));
    step = std::min(step, rows - row);
    while (step > 1 && elements(row, row + step) > 2 * kMergedRows) step /= 2;
    return row + step;
  }

  // Columns increase within each row and are inside: as many do not increase as rows begin so.
  static bool in_order(const Rows<T, I>& a, i64 first, i64 last) {
    const i64 begin = a.start(first), end = a.start(last);
    if (a.indptr[last] > a.nse) return false;
    if (begin == end) return true;
    const I* columns = a.indices;
    std::make_unsigned_t<I> most;
    const I falls = not_increasing(columns + begin, end - begin, most);
    if (static_cast<std::uint64_t>(most) >= static_cast<std::uint64_t>(a.columns)) return false;
    if (end - begin < 2) return true;
    I begins = 0, before = a.indptr[first];
    for (i64 i = first + 1; i < last; ++i) {  // without branches: rows are of any length
      const I start = a.indptr[i];
      const i64 e = std::clamp<i64>(start, begin + 1, end - 1);
      const I falls_here = static_cast<I>(columns[e - 1] >= columns[e]);
      begins += static_cast<I>(start > before) & static_cast<I>(e == start) & falls_here;
      before = start;
    }
    return falls == begins;
  }

  void put(I row, I column, T value) {
    const i64 p = out_.count++;
    out_.sums[p] = value;
    if (out_.width == 1) {
      out_.places[p] = column;
    } else {
      out_.places[2 * p] = row;
      out_.places[2 * p + 1] = column;
    }
  }

  void end_row(i64 row) {
    if (pointers_ != nullptr) pointers_[row + 1] = static_cast<I>(out_.kept());
  }

  void copy(i64 first, i64 last) {
    const Rows<T, I>& a = parts_[0];
    const i64 begin = a.start(first), n = a.start(last) - begin, shift = out_.count - begin;
    std::memcpy(out_.sums + out_.count, a.data + begin, static_cast<std::size_t>(n) * sizeof(T));
    if (out_.width == 1) {
      std::memcpy(out_.places + out_.count, a.indices + begin,
                  static_cast<std::size_t>(n) * sizeof(I));
    }
    for (i64 i = first; i < last; ++i) {
      const i64 end = a.start(i + 1);
      for (i64 e = a.start(i); out_.width == 2 && e < end; ++e) {
        out_.places[2 * (e + shift)] = static_cast<I>(i);
        out_.places[2 * (e + shift) + 1] = a.indices[e];
      }
      if (pointers_ != nullptr) pointers_[i + 1] = static_cast<I>(end + shift);
    }
    out_.count += n;
  }

  bool regular(i64 first, i64 last) const {
    const Rows<T, I>&a = parts_[0], &b = parts_[1];
    Step steps[kProbed];
    i64 n = 0;
    for (i64 i = first; i < last && n < kProbed; ++i) {
      i64 x = a.start(i), y = b.start(i);
      const i64 end_x = a.start(i + 1), end_y = b.start(i + 1);
      while (n < kProbed && x < end_x && y < end_y) {
        const I p = a.indices[x], q = b.indices[y];
        steps[n++] = p == q ? Step::kBoth : p < q ? Step::kFirst : Step::kSecond;
        x += p <= q, y += q <= p;
      }
      if (n < kProbed) steps[n++] = Step::kNone;
    }
    return repeats(steps, n);
  }

  template <bool kBranches>
  void merge(i64 first, i64 last) {
    out_.width == 1 ? merge_rows<kBranches, 1>(first, last) : merge_rows<kBranches, 2>(first, last);
  }

  template <bool kBranches, int kWidth>
  void merge_rows(i64 first, i64 last) {
    const Rows<T, I>&a = parts_[0], &b = parts_[1];
    const I *columns_a = a.indices, *columns_b = b.indices;
    const T *data_a = a.data, *data_b = b.data;
    I* places = out_.places;
    T* sums = out_.sums;
    i64 o = out_.count, x = a.start(first), y = b.start(first);
    for (i64 i = first; i < last; ++i) {
      const i64 end_x = a.start(i + 1), end_y = b.start(i + 1);
      const auto store = [&](I column, T value) {
        if constexpr (kWidth == 1) {
          places[o] = column;
        } else {
          places[2 * o] = static_cast<I>(i);
          places[2 * o + 1] = column;
        }
        sums[o++] = value;
      };
      if constexpr (!kBranches) {
        static constexpr T kNothing = -T(0);  // changes no sum
        while (x < end_x && y < end_y) {
          const I p = columns_a[x], q = columns_b[y];
          const i64 of_a = p <= q, of_b = q <= p;
          const T* value = chosen(of_a, data_a + x, data_b + y);
          const T* other = chosen(of_a & of_b, data_b + y, &kNothing);
          store(std::min(p, q), *value + *other);
          x += of_a, y += of_b;
        }
      }
      while (x < end_x && y < end_y) {
        const I p = columns_a[x], q = columns_b[y];
        if (p == q) store(p, data_a[x++] + data_b[y++]);
        else if (p < q) store(p, data_a[x++]);
        else store(q, data_b[y++]);
      }
      for (; x < end_x; ++x) store(columns_a[x], data_a[x]);
      for (; y < end_y; ++y) store(columns_b[y], data_b[y]);
      if (pointers_ != nullptr) pointers_[i + 1] = static_cast<I>(o);
    }
    out_.count = o;
  }

  void sorted_row(i64 row) {
    elements_.clear();
    for (i64 k = 0; k < count_; ++k) {
      const Rows<T, I>& a = parts_[k];
      const i64 end = a.start(row + 1);
      for (i64 e = a.start(row); e < end; ++e) {
        if (!a.has(a.indices[e])) continue;
        elements_.push_back({a.indices[e], a.data[e],
                             numbers_ == nullptr ? nullptr : numbers_[k] + e});
      }
    }
    const auto less = [](const Element& p, const Element& q) { return p.column < q.column; };
    if (!std::is_sorted(elements_.begin(), elements_.end(), less)) {
      std::stable_sort(elements_.begin(), elements_.end(), less);
    }
    I before = -1;
    for (const Element& e : elements_) {
      if (e.column != before) {
        before = e.column;
        if (out_.count < out_.room) put(static_cast<I>(row), e.column, e.value);
        else ++out_.count;
      } else if (out_.count <= out_.room) {
        out_.sums[out_.count - 1] += e.value;
      }
      if (e.number != nullptr) *e.number = static_cast<I>(std::min(out_.count - 1, out_.room));
    }
    end_row(row);
  }

  const Rows<T, I>* parts_;
  i64 count_;
  SumPlaces<T, I>& out_;
  I* pointers_;
  I* const* numbers_;
  std::vector<Element> elements_;
};

}  // namespace functrans
