// Library function: the k largest of each row.
#include "library.h"
#include "numpy_sort.h"
#include "sort_keys.h"

#include <algorithm>
#include <functional>

namespace functrans {
namespace {

constexpr i64 kLongRow = 1 << 17;
constexpr i64 kPieceElements = 16384;
constexpr i64 kBlock = 64;  // keys compared with the threshold at once

// Key and complemented index in one integer: of equal keys the first is the largest.
template <typename Traits>
using RecordOf =
    std::conditional_t<sizeof(typename Traits::Key) == 8, unsigned __int128, std::uint64_t>;

template <typename Record>
std::uint32_t index_of(Record record) {
  return ~static_cast<std::uint32_t>(record);
}

template <typename Key, typename Traits>
FUNCTRANS_INLINE bool any_above(const Key* bits, Key threshold) {
  int above = 0;
  for (i64 i = 0; i < kBlock; ++i) above |= Traits::ordered(bits[i]) > threshold;
  return above != 0;
}

// Collects in `found` (room for capacity >= k + kBlock records) the k largest of [begin, end), in
// any order; returns how many there are. Only what beats the k-th of those seen is kept: of random
// keys k log(n / k), so that nearly all blocks are passed over.
template <typename Traits>
i64 select(const typename Traits::Key* bits, i64 begin, i64 end, i64 k, RecordOf<Traits>* found,
           i64 capacity) {
  using Key = typename Traits::Key;
  using Record = RecordOf<Traits>;
  i64 count = 0;
  bool full = false;
  Key threshold = 0;
  for (i64 start = begin; start < end; start += kBlock) {
    const i64 stop = std::min(end, start + kBlock);
    const bool whole = stop - start == kBlock;
    if (full && whole && !any_above<Key, Traits>(bits + start, threshold)) continue;
    for (i64 i = start; i < stop; ++i) {
      const Key key = Traits::ordered(bits[i]);
      found[count] = Record{key} << 32 | Record{~static_cast<std::uint32_t>(i)};
      count += !full || key > threshold;
    }
    if (count + kBlock > capacity) {
      std::nth_element(found, found + k - 1, found + count, std::greater<Record>());
      threshold = static_cast<Key>(found[k - 1] >> 32);
      count = k;
      full = true;
    }
  }
  if (count > k) {
    std::nth_element(found, found + k - 1, found + count, std::greater<Record>());
    count = k;
  }
  return count;
}

template <typename Record>
void sort_descending(Record* records, i64 n) {
  if constexpr (sizeof(Record) == 8) {
    sort_values(records, n);
    std::reverse(records, records + n);
  } else {
    std::sort(records, records + n, std::greater<Record>());
  }
}

template <typename Traits>
int top_k(i64 rows, i64 n, i64 k, const void* in, void* values, std::int32_t* indices) {
  using Key = typename Traits::Key;
  using Record = RecordOf<Traits>;
  const i64 threads = std::min(thread_count(), 64);
  // Rows are cut where there are fewer of them than threads.
  const i64 cuts = n >= kLongRow && rows < threads && k < n / (4 * threads) ? threads : 1;
  const i64 length = round_up((n + cuts - 1) / cuts, kBlock);
  const i64 capacity = std::min(n, 2 * k + 512) + kBlock;
  bool failed = false;
  const auto finish = [&](i64 row, Record* found, i64 count) {
    if (count > k) std::nth_element(found, found + k - 1, found + count, std::greater<Record>());
    sort_descending(found, k);
    const Key* bits = static_cast<const Key*>(in) + row * n;
    for (i64 i = 0; i < k; ++i) {
      const std::uint32_t at = index_of(found[i]);
      static_cast<Key*>(values)[row * k + i] = bits[at];
      indices[row * k + i] = static_cast<std::int32_t>(at);
    }
  };
  if (cuts == 1) {
    parallel_pieces(rows, std::max<i64>(1, kPieceElements / n), [&](i64 begin, i64 end) {
      Scratch scratch(capacity * i64{sizeof(Record)});
      if (!scratch) return __atomic_store_n(&failed, true, __ATOMIC_RELAXED);
      auto* found = scratch.as<Record>();
      for (i64 row = begin; row < end; ++row) {
        const Key* bits = static_cast<const Key*>(in) + row * n;
        finish(row, found, select<Traits>(bits, 0, n, k, found, capacity));
      }
    });
    return failed ? kOutOfMemory : 0;
  }
  Scratch scratch(cuts * (capacity + k) * i64{sizeof(Record)});
  if (!scratch) return kOutOfMemory;
  auto* all = scratch.as<Record>();  // of all pieces, one after the other; then their work space
  for (i64 row = 0; row < rows; ++row) {
    const Key* bits = static_cast<const Key*>(in) + row * n;
    i64 counts[64] = {};
    parallel_pieces(cuts, 1, [&](i64 first, i64 last) {
      for (i64 c = first; c < last; ++c) {
        Record* found = all + cuts * k + c * capacity;
        counts[c] = select<Traits>(bits, std::min(n, c * length), std::min(n, (c + 1) * length), k,
                                   found, capacity);
      }
    });
    i64 count = 0;
    for (i64 c = 0; c < cuts; ++c) {
      std::copy_n(all + cuts * k + c * capacity, counts[c], all + count);
      count += counts[c];
    }
    finish(row, all, count);
  }
  return 0;
}

int top_k_rows(i64 rows, i64 n, i64 k, i64 dtype, const void* in, void* values,
               std::int32_t* indices) {
  if (rows == 0 || k == 0) return 0;
  return with_key(dtype, [&](auto traits) {
    return top_k<decltype(traits)>(rows, n, k, in, values, indices);
  });
}

}  // namespace

void register_top_k_library() {
  register_library("top_k_rows", reinterpret_cast<void*>(&top_k_rows));
}

}  // namespace functrans
