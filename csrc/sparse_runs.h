// What sums of sparse arrays share: where they go, and how two runs in order are merged.
#pragma once

#include "rows.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

namespace functrans {

constexpr i64 kMergedRows = 1 << 13;  // elements that are merged alike
constexpr i64 kFilled = 1 << 14;      // places that one thread fills
// The places of a sum and its elements, of which there are `count` so far and at most `room`. An
// index vector has `width` components; 1 where rows are told by pointers.
template <typename T, typename I>
struct SumPlaces {
  i64 room, width;
  T* sums;
  I* places;
  i64 count = 0;

  i64 kept() const { return std::min(count, room); }
  // Zeros nowhere, behind the places that there are.
  void fill(const i64* nowhere) {
    parallel_pieces(room - kept(), kFilled, [&, before = kept()](i64 begin, i64 end) {
      fill(nowhere, before + begin, before + end);
    });
  }

 private:
  void fill(const i64* nowhere, i64 begin, i64 end) {
    if (begin == end) return;
    std::fill(sums + begin, sums + end, T(0));
    I *to = places + begin * width, *stop = places + end * width;
    if (width == 1) {
      std::fill(to, stop, static_cast<I>(nowhere[0]));
    } else if (width == 2) {
      const I first = static_cast<I>(nowhere[0]), second = static_cast<I>(nowhere[1]);
      for (; to < stop; to += 2) to[0] = first, to[1] = second;
    } else {
      std::copy_n(nowhere, width, to);
      for (to += width; to < stop; ++to) *to = to[-width];
    }
  }
};

// What one step of a merge takes.
enum class Step : char { kFirst, kSecond, kBoth, kNone };

// Whether steps repeat themselves, so that a processor foretells them: then branches take a third
// of the time of selections (bands: 80 us for 200,000 elements, and 260), else twice of it.
inline bool repeats(const Step* steps, i64 n) {
  for (i64 period = 1; 3 * period <= n; ++period) {
    if (std::equal(steps + period, steps + n, steps)) return true;
  }
  return false;
}

constexpr i64 kProbed = 96;  // steps that are looked at

// One of two pointers, which no compiler makes a branch of.
template <typename T>
FUNCTRANS_INLINE const T* chosen(i64 first, const T* a, const T* b) {
  const auto x = reinterpret_cast<std::uintptr_t>(a), y = reinterpret_cast<std::uintptr_t>(b);
  const auto mask = std::uintptr_t{0} - static_cast<std::uintptr_t>(first);
  return reinterpret_cast<const T*>(y ^ ((x ^ y) & mask));
}

}  // namespace functrans
