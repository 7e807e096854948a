// Elements at coordinates in row-major order, those of equal places added up.
#pragma once

#include "sparse_runs.h"

#include <algorithm>
#include <limits>
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

// Elements and their index vectors.
template <typename T, typename I>
struct CoordinatePart {
  const I* indices;
  const T* data;
  i64 nse;
  I* numbers;  // the place of each element, where that is asked for
};

// Of index vectors of K components, or of as many as it is told.
template <typename T, typename I, int K>
class CoordinateSums {
 public:
  CoordinateSums(const CoordinatePart<T, I>* parts, i64 count, const i64* sizes, i64 width,
                 SumPlaces<T, I>& out)
      : parts_(parts), count_(count), sizes_(sizes), given_width_(width), out_(out) {}

  // Two arrays in order, or two such runs, are merged; more than two runs are sorted.
  void add() {
    for (i64 k = 0; k < count_; ++k) {
      const auto& part = parts_[k];
      if (part.numbers != nullptr) {
        std::fill_n(part.numbers, part.nse, static_cast<I>(out_.room));
      }
    }
    Run runs[2];
    i64 found = 0;
    for (i64 k = 0; k < count_ && found <= 2; ++k) {
      for (i64 e = 0; e < parts_[k].nse;) {
        Run run = run_from(k, e);
        e = run.end;
        if (found < 2) runs[found] = run;
        if (++found > 2) break;
      }
    }
    if (found > 2) {
      sort();
    } else if (found == 2) {
      const bool fits = runs[0].size() + runs[1].size() <= out_.room - out_.count;
      if (fits && runs[0].plain && runs[1].plain) merge_plain(runs[0], runs[1]);
      else merge(runs[0], runs[1]);
    } else if (found == 1) {
      for (i64 e = runs[0].begin; e < runs[0].end; ++e) take(*runs[0].part, e);
    }
  }

 private:
  using Part = CoordinatePart<T, I>;
  static constexpr i64 kNowhere = std::numeric_limits<i64>::max();
  // Elements of one part in order; `plain` if no place is twice or out of bounds, and no number
  // of a place is asked for.
  struct Run {
    const Part* part;
    i64 begin, end;
    bool plain;
    i64 size() const { return end - begin; }
  };

  i64 width() const { return K > 0 ? K : given_width_; }

  i64 key(const Part& part, i64 e) const {
    const I* at = part.indices + e * width();
    i64 place = 0;
    bool inside = true;
    for (i64 c = 0; c < width(); ++c) {
      inside &= static_cast<std::uint64_t>(at[c]) < static_cast<std::uint64_t>(sizes_[c]);
      place = c == 0 ? at[0] : place * sizes_[c] + at[c];
    }
    return inside ? place : kNowhere;
  }

  Run run_from(i64 k, i64 e) const {
    const Part& part = parts_[k];
    Run run{&part, e, part.nse, part.numbers == nullptr};
    i64 before = -1;
    for (; e < part.nse; ++e) {
      const i64 here = key(part, e);
      if (here <= before) {
        if (here < before) {
          run.end = e;
          break;
        }
        run.plain = false;
      }
      before = here;
    }
    run.plain &= before != kNowhere;
    return run;
  }

  void take(const Part& part, i64 e) { take(part, e, key(part, e)); }

  void take(const Part& part, i64 e, i64 key) {
    if (key == kNowhere) return;
    if (key == last_) {
      if (out_.count <= out_.room) out_.sums[out_.count - 1] += part.data[e];
    } else {
      last_ = key;
      if (out_.count++ < out_.room) {
        const i64 p = out_.count - 1;
        std::copy_n(part.indices + e * width(), width(), out_.places + p * width());
        out_.sums[p] = part.data[e];
      }
    }
    if (part.numbers != nullptr) {
      part.numbers[e] = static_cast<I>(std::min(out_.count - 1, out_.room));
    }
  }

  void merge(const Run& first, const Run& second) {
    i64 a = first.begin, b = second.begin;
    i64 of_a = key(*first.part, a), of_b = key(*second.part, b);
    while (true) {
      if (of_a <= of_b) {
        take(*first.part, a, of_a);
        if (++a == first.end) break;
        of_a = key(*first.part, a);
      } else {
        take(*second.part, b, of_b);
        if (++b == second.end) break;
        of_b = key(*second.part, b);
      }
    }
    for (; a < first.end; ++a) take(*first.part, a);
    for (; b < second.end; ++b) take(*second.part, b);
  }

  void merge_plain(const Run& first, const Run& second) {
    i64 a = first.begin, b = second.begin;
    while (a < first.end && b < second.end) {
      const i64 most = kMergedRows;
      regular(first, a, second, b) ? merge_steps<true>(first, a, second, b, most)
                                   : merge_steps<false>(first, a, second, b, most);
    }
    copy(*first.part, a, first.end);
    copy(*second.part, b, second.end);
  }

  // What orders elements that are all inside: pairs of int32 are one number.
  i64 plain_key(const I* at) const {
    if constexpr (K == 2 && sizeof(I) == 4) {
      std::uint64_t pair;
      std::memcpy(&pair, at, sizeof(pair));
      return static_cast<i64>(pair << 32 | pair >> 32);
    } else {
      i64 place = at[0];
      for (i64 c = 1; c < width(); ++c) place = place * sizes_[c] + at[c];
      return place;
    }
  }

  bool regular(const Run& first, i64 a, const Run& second, i64 b) const {
    Step steps[kProbed];
    i64 n = 0;
    for (; n < kProbed && a < first.end && b < second.end; ++n) {
      const i64 p = plain_key(first.part->indices + a * width());
      const i64 q = plain_key(second.part->indices + b * width());
      steps[n] = p == q ? Step::kBoth : p < q ? Step::kFirst : Step::kSecond;
      a += p <= q, b += q <= p;
    }
    return repeats(steps, n);
  }

  // At most so many steps of a merge of plain runs; what they need is in registers.
  template <bool kBranches>
  FUNCTRANS_INLINE void merge_steps(const Run& first, i64& from_a, const Run& second, i64& from_b,
                                    i64 most) {
    const i64 step = width();
    const I *at_a = first.part->indices + from_a * step, *end_a = first.part->indices + first.end * step;
    const I *at_b = second.part->indices + from_b * step, *end_b = second.part->indices + second.end * step;
    const T *data_a = first.part->data + from_a, *data_b = second.part->data + from_b;
    I* places = out_.places + out_.count * step;
    T* sums = out_.sums + out_.count;
    const T* stop = sums + most;
    i64 p = plain_key(at_a), q = plain_key(at_b);
    while (sums < stop) {
      if (kBranches) {
        const bool of_a = p <= q, of_b = q <= p;
        std::copy_n(of_a ? at_a : at_b, step, places);
        if (of_a && of_b) {
          *sums = *data_a++ + *data_b++;
          at_a += step, at_b += step;
        } else if (of_a) {
          *sums = *data_a++;
          at_a += step;
        } else {
          *sums = *data_b++;
          at_b += step;
        }
      } else {
        const i64 of_a = p <= q, of_b = q <= p;
        static constexpr T kNothing = -T(0);  // changes no sum
        *sums = *chosen(of_a, data_a, data_b) + *chosen(of_a & of_b, data_b, &kNothing);
        if constexpr (K == 2 && sizeof(I) == 4) {
          const std::uint64_t least = static_cast<std::uint64_t>(std::min(p, q));
          const std::uint64_t pair = least << 32 | least >> 32;
          std::memcpy(places, &pair, sizeof(pair));
        } else {
          std::copy_n(of_a != 0 ? at_a : at_b, step, places);
        }
        data_a += of_a, data_b += of_b;
        at_a += of_a * step, at_b += of_b * step;
      }
      ++sums;
      places += step;
      if (at_a >= end_a || at_b >= end_b) break;
      p = plain_key(at_a), q = plain_key(at_b);
    }
    from_a = data_a - first.part->data, from_b = data_b - second.part->data;
    out_.count = sums - out_.sums;
  }

  void copy(const Part& part, i64 begin, i64 end) {
    const auto n = static_cast<std::size_t>(end - begin);
    std::memcpy(out_.places + out_.count * width(), part.indices + begin * width(),
                n * width() * sizeof(I));
    std::memcpy(out_.sums + out_.count, part.data + begin, n * sizeof(T));
    out_.count += end - begin;
  }

  // By digits of the places, from the last: it is stable.
  void sort() {
    struct Element {
      i64 key;
      i64 of;
    };
    i64 total = 0, places = 1;
    for (i64 k = 0; k < count_; ++k) total += parts_[k].nse;
    for (i64 c = 0; c < width(); ++c) places *= sizes_[c];
    std::vector<Element> elements(total), others(total);
    i64 n = 0, first = 0;
    for (i64 k = 0; k < count_; first += parts_[k].nse, ++k) {
      for (i64 e = 0; e < parts_[k].nse; ++e) {
        const i64 here = key(parts_[k], e);
        if (here != kNowhere) elements[n++] = {here, first + e};
      }
    }
    constexpr int kDigit = 11;
    std::vector<i64> starts(std::size_t{1} << kDigit);
    for (int shift = 0; shift < 63 && (places - 1) >> shift > 0; shift += kDigit) {
      std::fill(starts.begin(), starts.end(), 0);
      const auto digit = [&](const Element& e) {
        return static_cast<std::size_t>(e.key >> shift) & (starts.size() - 1);
      };
      for (i64 p = 0; p < n; ++p) ++starts[digit(elements[p])];
      i64 before = 0;
      for (i64& start : starts) before += std::exchange(start, before);
      for (i64 p = 0; p < n; ++p) others[starts[digit(elements[p])]++] = elements[p];
      elements.swap(others);
    }
    for (i64 p = 0; p < n; ++p) {
      i64 e = elements[p].of;
      const Part* part = parts_;
      for (; e >= part->nse; ++part) e -= part->nse;
      take(*part, e, elements[p].key);
    }
  }

  const Part* parts_;
  i64 count_;
  const i64* sizes_;
  i64 given_width_;
  SumPlaces<T, I>& out_;
  i64 last_ = -1;
};

// The sum of parts, at index vectors of `width` components.
template <typename T, typename I>
void sum_coordinates(const CoordinatePart<T, I>* parts, i64 count, const i64* sizes, i64 width,
                     SumPlaces<T, I>& out) {
  if (width == 2) CoordinateSums<T, I, 2>(parts, count, sizes, width, out).add();
  else CoordinateSums<T, I, 0>(parts, count, sizes, width, out).add();
}

}  // namespace functrans
