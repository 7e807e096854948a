// Library function: sums of sparse arrays, each place once and in order.
#include "compressed_rows.h"
#include "coordinate_sums.h"
#include "library.h"
#include "row_sums.h"

#include <atomic>
#include <memory>
#include <new>
#include <vector>

namespace functrans {
namespace {

// The arrays of one call: `inputs` are those of each part one after the other, `outputs` the sums,
// their places (columns and pointers if `to_rows`), and the numbers of each part if `numbered`.
template <typename T, typename I>
struct Sums {
  i64 lanes, parts, compressed, to_rows, numbered, axes, room;
  const i64 *sizes, *counts;
  const void* const* inputs;
  void* const* outputs;

  const void* input(i64 part, i64 which) const {
    return inputs[part * (compressed ? 3 : 2) + which];
  }
  I* output(i64 which) const { return static_cast<I*>(outputs[which]); }
  I* numbers(i64 part, i64 lane) const {
    return numbered ? output(2 + (to_rows != 0) + part) + lane * counts[part] : nullptr;
  }

  void add_lane(i64 lane) const {
    const i64 width = to_rows ? 1 : axes;
    SumPlaces<T, I> out{room, width, static_cast<T*>(outputs[0]) + lane * room,
                        output(1) + lane * room * width};
    I* pointers = to_rows ? output(2) + lane * (sizes[0] + 1) : nullptr;
    if (compressed) add_rows(lane, out, pointers);
    else if (to_rows) add_pairs(lane, out, pointers);
    else add_coordinates(lane, out);
    out.fill(sizes + (axes - width));
  }

  void add_rows(i64 lane, SumPlaces<T, I>& out, I* pointers) const {
    const i64 pointer_count = sizes[0] + 1;
    std::vector<Rows<T, I>> rows(parts);
    std::vector<std::vector<I>> increasing(parts);
    std::vector<I*> slots(parts);
    for (i64 k = 0; k < parts; ++k) {
      rows[k] = {sizes[0], sizes[1], counts[k],
                 static_cast<const T*>(input(k, 0)) + lane * counts[k],
                 static_cast<const I*>(input(k, 1)) + lane * counts[k],
                 static_cast<const I*>(input(k, 2)) + lane * pointer_count};
      slots[k] = numbers(k, lane);
      if (rows[k].in_order()) continue;
      increasing[k].assign(rows[k].indptr, rows[k].indptr + pointer_count);
      I most = 0;
      for (I& pointer : increasing[k]) pointer = most = std::max(most, pointer);
      rows[k].indptr = increasing[k].data();
    }
    RowSums<T, I>(rows.data(), parts, out, pointers, numbered ? slots.data() : nullptr).add();
  }

  void add_coordinates(i64 lane, SumPlaces<T, I>& out) const {
    std::vector<CoordinatePart<T, I>> all(parts);
    for (i64 k = 0; k < parts; ++k) {
      all[k] = {static_cast<const I*>(input(k, 1)) + lane * counts[k] * axes,
                static_cast<const T*>(input(k, 0)) + lane * counts[k], counts[k],
                numbers(k, lane)};
    }
    sum_coordinates(all.data(), parts, sizes, axes, out);
  }

  // Index vectors whose rows are counted once they are in order.
  void add_pairs(i64 lane, SumPlaces<T, I>& out, I* pointers) const {
    const std::unique_ptr<I[]> pairs(new I[2 * room + 1]);
    SumPlaces<T, I> found{room, 2, out.sums, pairs.get()};
    add_coordinates(lane, found);
    out.count = found.kept();
    i64 row = 0;
    pointers[0] = 0;
    for (i64 p = 0; p < out.count; ++p) {
      for (; row < pairs[2 * p]; ++row) pointers[row + 1] = static_cast<I>(p);
      out.places[p] = pairs[2 * p + 1];
    }
    for (; row < sizes[0]; ++row) pointers[row + 1] = static_cast<I>(out.count);
  }
};

int sum_places(i64 dtype, i64 wide, i64 lanes, i64 parts, i64 compressed, i64 to_rows,
               i64 numbered, i64 axes, i64 room, const i64* sizes, const i64* counts,
               const void* const* inputs, void* const* outputs) {
  return by_types(dtype, wide, [&](auto zero, auto index) {
    const Sums<decltype(zero), decltype(index)> sums{
        lanes, parts, compressed, to_rows, numbered, axes, room, sizes, counts, inputs, outputs};
    std::atomic<bool> enough{true};
    const auto add = [&](i64 begin, i64 end) {
      try {
        for (i64 lane = begin; lane < end; ++lane) sums.add_lane(lane);
      } catch (const std::bad_alloc&) {
        enough.store(false);
      }
    };
    if (lanes == 1) add(0, 1);  // threads are for its rows
    else parallel_pieces(lanes, 1, add);
    return enough.load() ? 0 : kOutOfMemory;
  });
}

}  // namespace

void register_sparse_sums_library() {
  register_library("sum_places", reinterpret_cast<void*>(&sum_places));
}

}  // namespace functrans
