// Elements at coordinates in row-major order, those of equal places added up.
#pragma once

#include "rows.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <vector>

namespace functrans {

// The order of elements by rows, found by counting columns and then rows: it is stable. Elements out
// of bounds stand behind those of the last row, in no column.
template <typename I>
void order_of(const I* pairs, i64 nse, i64 rows, i64 columns, I* order) {
  std::vector<I> by_column(nse);
  std::vector<i64> starts(std::max(rows, columns) + 2);
  const auto inside = [&](i64 e) {
    return pairs[2 * e] >= 0 && static_cast<i64>(pairs[2 * e]) < rows && pairs[2 * e + 1] >= 0 &&
           static_cast<i64>(pairs[2 * e + 1]) < columns;
  };
  const auto place = [&](auto&& key, auto&& from, i64 most, I* to) {
    std::fill(starts.begin(), starts.begin() + most + 2, 0);
    for (i64 e = 0; e < nse; ++e) ++starts[key(e) + 1];
    for (i64 k = 0; k <= most; ++k) starts[k + 1] += starts[k];
    for (i64 p = 0; p < nse; ++p) {
      const i64 e = from(p);
      to[starts[key(e)]++] = static_cast<I>(e);
    }
  };
  place([&](i64 e) { return inside(e) ? static_cast<i64>(pairs[2 * e + 1]) : columns; },
        [](i64 p) { return p; }, columns, by_column.data());
  place([&](i64 e) { return inside(e) ? static_cast<i64>(pairs[2 * e]) : rows; },
        [&](i64 p) { return static_cast<i64>(by_column[p]); }, rows, order);
}

// Elements of a matrix in any order, and where sums of them go.
template <typename T, typename I>
class CoordinateSums {
 public:
  CoordinateSums(const I* pairs, const T* data, i64 nse, i64 rows, i64 columns)
      : pairs_(pairs), data_(data), nse_(nse), rows_(rows), columns_(columns) {}

  // At most `room` places into `places` and `sums`, and how many there are. Two matrices in order
  // one behind the other are merged; more than two such runs are sorted.
  i64 add(i64 room, I* places, T* sums) {
    room_ = room, places_ = places, sums_ = sums, count_ = 0, last_ = -1;
    const i64 second = end_of_run(0);
    if (second == nse_) {
      for (i64 e = 0; e < nse_; ++e) take(key(e), e);
    } else if (end_of_run(second) == nse_) {
      merge(second);
    } else {
      std::vector<I> order(nse_);
      sort(order);
      for (const I e : order) take(key(e), e);
    }
    return count_;
  }

 private:
  static constexpr i64 kNowhere = std::numeric_limits<i64>::max();

  i64 key(i64 e) const {
    const i64 i = pairs_[2 * e], j = pairs_[2 * e + 1];
    const bool inside = static_cast<std::uint64_t>(i) < static_cast<std::uint64_t>(rows_) &&
                        static_cast<std::uint64_t>(j) < static_cast<std::uint64_t>(columns_);
    return inside ? i * columns_ + j : kNowhere;
  }

  i64 end_of_run(i64 e) const {
    i64 before = -1;
    for (; e < nse_; ++e) {
      const i64 here = key(e);
      if (here < before) return e;
      before = here;
    }
    return nse_;
  }

  void take(i64 key, i64 e) {
    if (key == last_) {
      if (count_ <= room_) sums_[count_ - 1] += data_[e];
      return;
    }
    if (key == kNowhere) return;
    last_ = key;
    if (count_++ >= room_) return;
    places_[2 * count_ - 2] = pairs_[2 * e];
    places_[2 * count_ - 1] = pairs_[2 * e + 1];
    sums_[count_ - 1] = data_[e];
  }

  void merge(i64 second) {
    i64 a = 0, b = second, of_a = key(a), of_b = key(b);
    while (true) {
      if (of_a <= of_b) {
        take(of_a, a);
        if (++a == second) break;
        of_a = key(a);
      } else {
        take(of_b, b);
        if (++b == nse_) break;
        of_b = key(b);
      }
    }
    for (; a < second; ++a) take(key(a), a);
    for (; b < nse_; ++b) take(key(b), b);
  }

  // By comparing where the matrix is much larger than what it stores.
  void sort(std::vector<I>& order) const {
    if (std::max(rows_, columns_) > 8 * nse_ + 4096) {
      std::vector<i64> keys(nse_);
      for (i64 e = 0; e < nse_; ++e) keys[e] = key(e);
      std::iota(order.begin(), order.end(), I{0});
      std::stable_sort(order.begin(), order.end(), [&](I a, I b) { return keys[a] < keys[b]; });
      return;
    }
    order_of(pairs_, nse_, rows_, columns_, order.data());
  }

  const I* pairs_;
  const T* data_;
  i64 nse_, rows_, columns_, room_ = 0, count_ = 0, last_ = -1;
  I* places_ = nullptr;
  T* sums_ = nullptr;
};

}  // namespace functrans
