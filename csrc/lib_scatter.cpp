// Library functions: rows of one array combined into rows of another, and rows taken by index.
#include "library.h"
#include "list_choice.h"
#include "row_isa.h"
#include "thread_costs.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

namespace functrans {
namespace {

constexpr i64 kPieceBytes = 1 << 15;
constexpr i64 kSerialBytes = 1 << 16;  // below this one thread is faster
// Up to here a few threads lose more by lists than they gain: 12 ms against 4.5 in all, of rows of
// 16 float32.
constexpr i64 kNarrowBytes = 128;
constexpr i64 kMostPieces = 32;
constexpr int kUnsupported = 3;

bool is_sorted(const void* index, bool wide, i64 rows) {
  std::atomic<bool> sorted{true};
  parallel_pieces(rows - 1, 1 << 14, [&](i64 begin, i64 end) {
    for (i64 start = begin; start < end && sorted.load(std::memory_order_relaxed);) {
      const i64 stop = std::min(end, start + 1024);
      bool increasing = true;
      for (i64 r = start; r < stop; ++r) {
        increasing &= index_at(index, wide, r) <= index_at(index, wide, r + 1);
      }
      if (!increasing) sorted.store(false, std::memory_order_relaxed);
      start = stop;
    }
  });
  return sorted.load();
}

// Unsorted rows: each thread combines those whose targets lie in its share of `out`, from lists
// that are made first. (Shares of columns read the updates as often as there are threads: 37 ms a
// thread against 18 for whole rows, of 2^20 rows of 64 float32.)
int scatter_unsorted(const UpdateRange& whole, Update update, i64 rows) {
  const i64 targets = whole.targets, threads = thread_count();
  const i64 pieces = std::min({targets, threads, kMostPieces});
  const i64 blocks = std::min(threads, kMostPieces);
  const i64 length = (rows + blocks - 1) / blocks;
  Scratch scratch(rows * 4);
  if (!scratch) return kOutOfMemory;
  auto* chosen = scratch.as<std::int32_t>();
  const std::uint64_t factor = (static_cast<std::uint64_t>(pieces) << 32) / targets;
  const auto piece_of = [&](i64 r) {  // of a row to be dropped: `pieces`
    const auto target = static_cast<std::uint64_t>(index_at(whole.index, whole.wide_index, r));
    return target < static_cast<std::uint64_t>(targets) ? static_cast<i64>(target * factor >> 32)
                                                        : pieces;
  };
  i64 places[kMostPieces][kMostPieces + 1] = {};
  const auto over_blocks = [&](auto&& body) {
    parallel_pieces(blocks, 1, [&](i64 first, i64 last) {
      for (i64 b = first; b < last; ++b) {
        i64 place[kMostPieces + 1];
        std::copy_n(places[b], pieces + 1, place);
        const i64 end = std::min(rows, (b + 1) * length);
        for (i64 r = b * length; r < end; ++r) body(r, place[piece_of(r)]);
        std::copy_n(place, pieces + 1, places[b]);
      }
    });
  };
  over_blocks([](i64, i64& count) { ++count; });
  i64 starts[kMostPieces + 1], total = 0;
  for (i64 p = 0; p <= pieces; ++p) {
    starts[p] = total;
    for (i64 b = 0; b < blocks; ++b) total += std::exchange(places[b][p], total);
  }
  over_blocks([=](i64 r, i64& place) { chosen[place++] = static_cast<std::int32_t>(r); });
  parallel_pieces(pieces, 1, [&](i64 first, i64 last) {
    for (i64 p = first; p < last; ++p) {
      UpdateRange range = whole;
      range.begin = starts[p];
      range.end = starts[p + 1];
      range.chosen = chosen;
      update(range);
    }
  });
  return 0;
}

// Every target row is written by one thread in the order of the updates, so that the result is the
// same with any number of threads.
int scatter_rows(i64 op, i64 dtype, i64 wide_index, i64 rows, i64 width, i64 targets,
                 const void* index, const void* updates, void* out) {
  const Update update = row_kernels().update_of(op, dtype);
  if (update == nullptr) return kUnsupported;
  if (rows == 0 || width == 0 || targets == 0) return 0;
  const UpdateRange whole{static_cast<char*>(out), static_cast<const char*>(updates), index,
                          wide_index != 0, width, targets, 0, rows, nullptr};
  const i64 row_bytes = width * item_size(dtype), threads = thread_count();
  if (threads == 1 || rows == 1 || rows * row_bytes < kSerialBytes) {
    update(whole);
    return 0;
  }
  if (!is_sorted(index, whole.wide_index, rows)) {
    constexpr i64 most = i64{1} << 31;
    const bool narrow = row_bytes <= kNarrowBytes && threads <= 4;
    if (!narrow && rows < most && targets < most) return scatter_unsorted(whole, update, rows);
    update(whole);
    return 0;
  }
  const auto segment_from = [&](i64 r) {  // the first row from r on with a new target
    if (r == 0 || r >= rows) return std::min(r, rows);
    const i64 before = index_at(index, whole.wide_index, r - 1);
    while (r < rows && index_at(index, whole.wide_index, r) == before) ++r;
    return r;
  };
  parallel_pieces(rows, std::max<i64>(1, kPieceBytes / row_bytes), [&](i64 begin, i64 end) {
    UpdateRange range = whole;
    range.begin = segment_from(begin);
    range.end = segment_from(end);
    if (range.begin < range.end) update(range);
  });
  return 0;
}

// ---- gather ---------------------------------------------------------------------------------

constexpr i64 kAhead = 16;

template <typename Item>
void gather_items(i64 begin, i64 end, i64 sources, const void* index, bool wide, const char* in,
                  char* out, const Item& fill) {
  const auto* from = reinterpret_cast<const Item*>(in);
  auto* to = reinterpret_cast<Item*>(out);
  for (i64 r = begin; r < end; ++r) {
    const i64 source = index_at(index, wide, r);
    to[r] = source >= 0 && source < sources ? from[source] : fill;
  }
}

int gather_rows(i64 item_bytes, i64 wide_index, i64 rows, i64 width, i64 sources,
                const void* index, const void* in, const void* fill, void* out) {
  if (rows == 0 || width == 0) return 0;
  const bool wide = wide_index != 0;
  const auto* from = static_cast<const char*>(in);
  auto* to = static_cast<char*>(out);
  const i64 row_bytes = width * item_bytes;
  Scratch filling(row_bytes);
  if (!filling) return kOutOfMemory;
  char* fill_row = filling.as<char>();
  for (i64 i = 0; i < width; ++i) {
    fill == nullptr ? static_cast<void>(std::memset(fill_row + i * item_bytes, 0, item_bytes))
                    : static_cast<void>(std::memcpy(fill_row + i * item_bytes, fill, item_bytes));
  }
  const i64 grain = std::max<i64>(1, kPieceBytes / row_bytes);
  if (row_bytes == 4 || row_bytes == 8 || row_bytes == 1 || row_bytes == 2) {
    parallel_pieces(rows, grain, [&](i64 begin, i64 end) {
      const auto run = [&](auto zero) {
        decltype(zero) value;
        std::memcpy(&value, fill_row, sizeof value);
        gather_items(begin, end, sources, index, wide, from, to, value);
      };
      switch (row_bytes) {
        case 1: return run(std::uint8_t{});
        case 2: return run(std::uint16_t{});
        case 4: return run(std::uint32_t{});
        default: return run(std::uint64_t{});
      }
    });
    return 0;
  }
  const i64 lines = std::min<i64>(8, (row_bytes + 63) / 64);
  parallel_pieces(rows, grain, [&](i64 begin, i64 end) {
    for (i64 r = begin; r < end; ++r) {
      if (r + kAhead < end) {
        const i64 next = index_at(index, wide, r + kAhead);
        if (next >= 0 && next < sources) {
          const char* line = from + next * row_bytes;
          for (i64 l = 0; l < lines; ++l) __builtin_prefetch(line + 64 * l);
        }
      }
      const i64 source = index_at(index, wide, r);
      const char* row = source >= 0 && source < sources ? from + source * row_bytes : fill_row;
      std::memcpy(to + r * row_bytes, row, row_bytes);
    }
  });
  return 0;
}

// ---- scatters of programs -------------------------------------------------------------------

using ParallelFn = int (*)(void* context, RangeFn body, void* arg, i64 n, i64 grain);

struct SliceLoops {
  RangeFn walk;    // over slices: finds their rows among all
  RangeFn list;    // over blocks of rows: lists their rows by slices
  RangeFn listed;  // over slices: has their rows from the lists
};

int scatter_slices(void* context, ParallelFn parallel, const SliceLoops* loops, void* arg,
                   i64 slices, i64 blocks) {
  const auto run = [=](bool lists) {
    if (!lists) return parallel(context, loops->walk, arg, slices, -1);
    const int ended = parallel(context, loops->list, arg, blocks, 1);
    return ended != 0 ? ended : parallel(context, loops->listed, arg, slices, -1);
  };
  const int threads = loops_run_alone() ? 1 : thread_count(), most = threads_at_most();
  if (threads < ListChoice::kLeastThreads) return run(false);
  ListChoice& choice = ListChoice::of(reinterpret_cast<std::uintptr_t>(loops->walk) ^
                                      static_cast<std::uint64_t>(blocks) << 48 ^
                                      static_cast<std::uint64_t>(most) << 56);
  if (threads != most) return run(choice.best(threads));  // a trial of the program's
  const bool lists = choice.next(threads);
  const i64 begin = clock_nanoseconds();
  const int ended = run(lists);
  if (ended == 0) choice.note(lists, clock_nanoseconds() - begin);
  return ended;
}

}  // namespace

void register_scatter_library() {
  register_library("scatter_rows", reinterpret_cast<void*>(&scatter_rows));
  register_library("scatter_slices", reinterpret_cast<void*>(&scatter_slices));
  register_library("gather_rows", reinterpret_cast<void*>(&gather_rows));
}

}  // namespace functrans
