#include "conv_gather.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace functrans {
namespace {

struct Place {
  i64 offset = 0;
  i64 at[3] = {0, 0, 0};

  void move(const PatchAxis& axis, i64 by) {
    offset += axis.stride * by;
    if (axis.space >= 0) at[axis.space] += axis.step * by;
  }
};

// The innermost axis, or the innermost two where they lie in memory as one: q counts both.
struct Run {
  i64 length;    // of q
  i64 stride;    // of an element
  int space;     // that it moves along, -1 for none
  i64 step;      // by how much, every `unit` elements
  i64 unit;
  std::size_t axes;  // how many it covers
};

Run innermost(const std::vector<PatchAxis>& axes) {
  const PatchAxis& last = axes.back();
  if (axes.size() >= 2 && last.space < 0) {
    const PatchAxis& next = axes[axes.size() - 2];
    if (next.stride == last.size * last.stride && next.step > 0 && next.space >= 0) {
      return {last.size * next.size, last.stride, next.space, next.step, last.size, 2};
    }
  }
  return {last.size, last.stride, last.space, last.step, 1, 1};
}

// A stretch of q from `begin` to `end` at a place of the axes outside the run.
struct Stretch {
  Place place;  // of q = 0
  i64 begin, end;
};

std::vector<Stretch> stretches(const std::vector<PatchAxis>& axes, const Run& run, i64 from,
                               i64 to) {
  std::vector<Stretch> result;
  const std::size_t outer = axes.size() - run.axes;
  for (i64 i = from; i < to;) {
    i64 rest = i / run.length;
    Stretch s{{}, i % run.length, 0};
    s.end = std::min(run.length, s.begin + (to - i));
    for (std::size_t d = outer; d-- > 0; rest /= axes[d].size) {
      s.place.move(axes[d], rest % axes[d].size);
    }
    i += s.end - s.begin;
    result.push_back(s);
  }
  return result;
}

// Steps from index to index; divisions for each would take as long as copying a run.
std::vector<Place> places(const std::vector<PatchAxis>& axes, i64 from, i64 to) {
  std::vector<Place> result;
  result.reserve(static_cast<std::size_t>(std::max<i64>(0, to - from)));
  i64 index[4] = {0, 0, 0, 0};
  Place place;
  i64 rest = from;
  for (std::size_t d = axes.size(); d-- > 0 && from < to; rest /= axes[d].size) {
    index[d] = rest % axes[d].size;
    place.move(axes[d], index[d]);
  }
  for (i64 i = from; i < to; ++i) {
    result.push_back(place);
    for (std::size_t d = axes.size(); d-- > 0;) {
      place.move(axes[d], 1);
      if (++index[d] < axes[d].size) break;
      place.move(axes[d], -index[d]);
      index[d] = 0;
    }
  }
  return result;
}

i64 ceil_divide(i64 x, i64 y) { return x >= 0 ? (x + y - 1) / y : -(-x / y); }

template <typename T>
void copy_strided(const char* from, i64 stride, i64 count, char* to) {
  const T* source = reinterpret_cast<const T*>(from);
  T* target = reinterpret_cast<T*>(to);
  for (i64 i = 0; i < count; ++i) target[i] = source[i * stride];
}

void copy_run(const char* from, i64 stride, i64 count, i64 item, char* to) {
  if (stride == 1) {
    std::memcpy(to, from, static_cast<std::size_t>(count * item));
  } else if (item == 4) {
    copy_strided<std::uint32_t>(from, stride, count, to);
  } else if (item == 2) {
    copy_strided<std::uint16_t>(from, stride, count, to);
  } else if (item == 8) {
    copy_strided<std::uint64_t>(from, stride, count, to);
  } else {
    copy_strided<std::uint8_t>(from, stride, count, to);
  }
}

i64 adjacent_run(const std::vector<PatchAxis>& axes) {
  std::size_t d = axes.size();
  while (d > 0 && axes[d - 1].size == 1) --d;
  if (d == 0 || std::abs(axes[d - 1].stride) != 1) return 0;
  return innermost(axes).length;
}

}  // namespace

bool common_stride(const std::vector<PatchAxis>& axes, i64* stride) {
  i64 length = 0;
  *stride = 1;
  for (std::size_t d = axes.size(); d-- > 0;) {
    if (axes[d].size == 1) continue;
    if (length == 0) {
      *stride = axes[d].stride;
      length = 1;
    } else if (axes[d].stride != *stride * length) {
      return false;
    }
    length *= axes[d].size;
  }
  return true;
}

bool Patches::columns_adjacent() const { return adjacent_run(columns) >= adjacent_run(rows); }

void Patches::gather(i64 r0, i64 r1, i64 c0, i64 c1, bool along_columns, char* to) const {
  const std::vector<PatchAxis>& inner = along_columns ? columns : rows;
  const i64 q0 = along_columns ? c0 : r0, q1 = along_columns ? c1 : r1;
  const Run run = innermost(inner);
  const std::vector<Stretch> along = stretches(inner, run, q0, q1);
  const std::vector<Place> across =
      along_columns ? places(rows, r0, r1) : places(columns, c0, c1);
  for (const Place& fixed : across) {
    for (const Stretch& s : along) {
      i64 begin = s.begin, end = s.end;
      for (int d = 0; d < rank; ++d) {
        const i64 at = start[d] + fixed.at[d] + s.place.at[d];
        if (d == run.space) {
          const i64 first = run.step == 1 ? -at : ceil_divide(-at, run.step);
          const i64 last = run.step == 1 ? extent[d] - at : ceil_divide(extent[d] - at, run.step);
          begin = std::max(begin, first * run.unit);
          end = std::min(end, last * run.unit);
        } else if (at < 0 || at >= extent[d]) {
          end = begin;
        }
      }
      const i64 length = s.end - s.begin;
      if (begin >= end) {
        std::memset(to, 0, static_cast<std::size_t>(length * item));
      } else {
        if (begin > s.begin) {
          std::memset(to, 0, static_cast<std::size_t>((begin - s.begin) * item));
        }
        copy_run(image + (offset + fixed.offset + s.place.offset + begin * run.stride) * item,
                 run.stride, end - begin, item, to + (begin - s.begin) * item);
        if (end < s.end) {
          std::memset(to + (end - s.begin) * item, 0,
                      static_cast<std::size_t>((s.end - end) * item));
        }
      }
      to += length * item;
    }
  }
}

}  // namespace functrans
