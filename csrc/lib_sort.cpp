// Library functions: rows sorted by one or several keys.
#include "library.h"
#include "numpy_sort.h"
#include "sort_keys.h"
#include "sort_split.h"

#include <algorithm>
#include <cmath>

namespace functrans {
namespace {

constexpr i64 kLongRow = 1 << 16;     // from here one row is sorted by several threads
constexpr i64 kPieceElements = 8192;  // elements of short rows that one piece of work takes

template <typename Traits>
using Key = typename Traits::Key;

// ---- One array, sorted by itself -----------------------------------------------------------

// Puts the zeros of a sorted row into the order in which the input has them. Their signs are those
// of the input again: NumPy's vectorised sort takes minima and maxima, which may change them.
template <typename T>
void restore_zeros(const T* in, T* out, i64 n) {
  T* first = std::partition_point(out, out + n, [](T x) { return x < 0; });
  T* last = std::partition_point(first, out + n, [](T x) { return x == 0; });
  for (i64 i = 0; first != last; ++i) {
    if (in[i] == 0) *first++ = in[i];
  }
}

// Values that NumPy sorts as they are.
template <typename T>
struct PlainRow {
  using Value = T;
  static void sort(const T* in, T* out, i64 n, bool stable) {
    std::copy_n(in, n, out);
    sort_values(out, n);
    finish(in, out, n, stable);
  }
  static void finish(const T* in, T* out, i64 n, bool stable) {
    if constexpr (std::is_floating_point_v<T>) {
      if (stable) restore_zeros(in, out, n);
    } else {
      (void)in, (void)out, (void)n, (void)stable;
    }
  }
};

// float16 and bfloat16, as integers in the same order.
template <typename Traits>
struct HalfRow {
  using Value = Key<Traits>;
  static void sort(const Value* in, Value* out, i64 n, bool stable) {
    for (i64 i = 0; i < n; ++i) out[i] = Traits::apart(in[i]);
    sort_values(out, n);
    if (stable) {
      constexpr Value zero = Traits::kSign, negative_zero = zero - 1;
      Value* first = std::lower_bound(out, out + n, negative_zero);
      Value* last = std::upper_bound(first, out + n, zero);
      if (first != last && *first == negative_zero) {
        for (i64 i = 0; first != last; ++i) {
          const Value key = Traits::apart(in[i]);
          if (key == zero || key == negative_zero) *first++ = key;
        }
      }
    }
    for (i64 i = 0; i < n; ++i) out[i] = Traits::from_apart(out[i]);
  }
};

// Bytes: counted, then written out.
template <typename Traits>
struct ByteRow {
  using Value = std::uint8_t;
  static void sort(const Value* in, Value* out, i64 n, bool) {
    i64 counts[256] = {};
    for (i64 i = 0; i < n; ++i) ++counts[in[i]];
    for (int rank = 0; rank < 256; ++rank) {
      const Value value = Traits::ordered(static_cast<Value>(rank));  // its own inverse
      out = std::fill_n(out, counts[value], value);
    }
  }
};

// One long row: buckets between quantiles of a sample are sorted in parallel. What comes out does
// not depend on the number of threads, but for the order of equal elements that can be told apart.
constexpr i64 kMostBuckets = 16;

template <typename T>
bool sort_long(const T* in, T* out, i64 n) {
  constexpr i64 kSampled = 2048;
  const i64 blocks = std::min<i64>(thread_count(), kMostBuckets);
  i64 buckets = 2;
  while (buckets < blocks) buckets *= 2;
  const i64 length = (n + blocks - 1) / blocks;
  Scratch scratch(n);
  if (blocks < 2 || !scratch) return false;
  T sample[kSampled];
  for (i64 i = 0; i < kSampled; ++i) sample[i] = in[n / kSampled * i];
  sort_values(sample, kSampled);
  T splitters[kMostBuckets];
  for (i64 k = 1; k < buckets; ++k) splitters[k] = sample[k * (kSampled / buckets)];
  auto* bucket_of = scratch.as<std::uint8_t>();
  i64 places[kMostBuckets][kMostBuckets] = {};  // of each block in each bucket
  parallel_pieces(blocks, 1, [&](i64 first, i64 last) {
    for (i64 b = first; b < last; ++b) {
      const i64 begin = std::min(n, b * length), end = std::min(n, begin + length);
      i64 counts[kMostBuckets] = {};
      if (buckets == 2) {
        counts[0] = count_below(in + begin, end - begin, splitters[1]);
        counts[1] = end - begin - counts[0];
      } else {
        std::fill(bucket_of + begin, bucket_of + end, std::uint8_t{0});
        for (i64 k = 1; k < buckets; ++k) {
          const T splitter = splitters[k];  // NaN is not below any: it goes to the last bucket
          for (i64 i = begin; i < end; ++i) bucket_of[i] += !(in[i] < splitter);
        }
        for (i64 i = begin; i < end; ++i) ++counts[bucket_of[i]];
      }
      std::copy_n(counts, buckets, places[b]);
    }
  });
  i64 starts[kMostBuckets + 1] = {}, total = 0;
  for (i64 k = 0; k < buckets; ++k) {
    starts[k] = total;
    for (i64 b = 0; b < blocks; ++b) total += std::exchange(places[b][k], total);
  }
  starts[buckets] = n;
  parallel_pieces(blocks, 1, [&](i64 first, i64 last) {
    for (i64 b = first; b < last; ++b) {
      const i64 begin = std::min(n, b * length), end = std::min(n, begin + length);
      i64* place = places[b];
      if (buckets == 2) {
        const i64 low_end = b + 1 < blocks ? places[b + 1][0] : starts[1];
        split_in_two(in + begin, end - begin, splitters[1], out + place[0], low_end - place[0],
                     out + place[1]);
      } else {
        for (i64 i = begin; i < end; ++i) out[place[bucket_of[i]]++] = in[i];
      }
    }
  });
  parallel_pieces(buckets, 1, [&](i64 first, i64 last) {
    for (i64 k = first; k < last; ++k) sort_values(out + starts[k], starts[k + 1] - starts[k]);
  });
  return true;
}

template <typename Row>
void sort_one(i64 rows, i64 n, const void* in, void* out, bool stable) {
  using Value = typename Row::Value;
  const auto* from = static_cast<const Value*>(in);
  auto* to = static_cast<Value*>(out);
  if constexpr (std::is_same_v<Row, PlainRow<Value>> && sizeof(Value) >= 4) {
    if (n >= kLongRow && rows < thread_count()) {
      for (i64 row = 0; row < rows; ++row, from += n, to += n) {
        if (sort_long(from, to, n)) {
          Row::finish(from, to, n, stable);
        } else {
          Row::sort(from, to, n, stable);
        }
      }
      return;
    }
  }
  parallel_pieces(rows, std::max<i64>(1, kPieceElements / n), [&](i64 begin, i64 end) {
    for (i64 row = begin; row < end; ++row) Row::sort(from + row * n, to + row * n, n, stable);
  });
}

void sort_single(i64 rows, i64 n, i64 dtype, const void* in, void* out, bool stable) {
  switch (dtype) {
    case kF32: return sort_one<PlainRow<float>>(rows, n, in, out, stable);
    case kF64: return sort_one<PlainRow<double>>(rows, n, in, out, stable);
    case kF16: return sort_one<HalfRow<KeyF16>>(rows, n, in, out, stable);
    case kBF16: return sort_one<HalfRow<KeyBF16>>(rows, n, in, out, stable);
    case kI8: return sort_one<ByteRow<SignedKey<std::uint8_t>>>(rows, n, in, out, stable);
    case kI16: return sort_one<PlainRow<std::int16_t>>(rows, n, in, out, stable);
    case kI32: return sort_one<PlainRow<std::int32_t>>(rows, n, in, out, stable);
    case kI64: return sort_one<PlainRow<std::int64_t>>(rows, n, in, out, stable);
    case kU16: return sort_one<PlainRow<std::uint16_t>>(rows, n, in, out, stable);
    case kU32: return sort_one<PlainRow<std::uint32_t>>(rows, n, in, out, stable);
    case kU64: return sort_one<PlainRow<std::uint64_t>>(rows, n, in, out, stable);
    default: return sort_one<ByteRow<UnsignedKey<std::uint8_t>>>(rows, n, in, out, stable);
  }
}

// ---- The order of rows, and arrays taken in that order --------------------------------------

// Key and place in one integer: no two are equal, so that the fastest sort of integers is stable
// (2^20 of them in 6 ms; three passes of a radix sort take 9).
using Record = std::uint64_t;

struct Buffers {
  Record* records;
  Record* sorted;
  std::uint32_t* order;
  bool parallel;  // one row by several threads
};

// body(begin, end) over the row: in parallel where the row is.
template <typename Body>
void over_row(const Buffers& buffers, i64 n, Body&& body) {
  if (buffers.parallel) {
    parallel_pieces(n, kPieceElements, body);
  } else {
    body(i64{0}, n);
  }
}

// Two ascending runs into one. The comparison is no branch: it is as often true as false.
void merge_two(const Record* a, i64 n, const Record* b, i64 m, Record* out) {
  i64 i = 0, j = 0;
  while (i < n && j < m) {
    const bool second = b[j] < a[i];
    *out++ = second ? b[j] : a[i];
    j += second;
    i += !second;
  }
  out = std::copy(a + i, a + n, out);
  std::copy(b + j, b + m, out);
}

// Records that are a few ascending runs, as sorted arrays one behind the other are; null of others.
const Record* merge_runs(const Buffers& buffers, i64 n) {
  constexpr int kMostRuns = 4;
  i64 ends[kMostRuns + 1];
  int runs = 0;
  for (i64 i = 1; i < n; ++i) {
    if (buffers.records[i] >= buffers.records[i - 1]) continue;
    if (runs == kMostRuns - 1) return nullptr;
    ends[runs++] = i;
  }
  ends[runs++] = n;
  Record *from = buffers.records, *to = buffers.sorted;
  while (runs > 1) {
    int left = 0;
    for (int k = 0; k < runs; k += 2) {
      const i64 begin = k == 0 ? 0 : ends[k - 1], middle = ends[k];
      const i64 end = ends[std::min(k + 1, runs - 1)];
      merge_two(from + begin, middle - begin, from + middle, end - middle, to + begin);
      ends[left++] = end;
    }
    runs = left;
    std::swap(from, to);
  }
  return from;
}

const Record* sort_records(const Buffers& buffers, i64 n) {
  if (const Record* merged = merge_runs(buffers, n)) return merged;
  if (buffers.parallel && sort_long(buffers.records, buffers.sorted, n)) return buffers.sorted;
  sort_values(buffers.records, n);
  return buffers.records;
}

// Keys of 64 bits leave no room for the place: their leading bits do, those that vary. Then runs
// of records that agree in these are sorted by the whole key.
template <typename KeyAt>
const Record* sort_wide(KeyAt&& key_at, i64 n, int place_bits, const Buffers& buffers) {
  Record least = ~Record{0}, most = 0;
  for (i64 i = 0; i < n; ++i) {
    const Record key = buffers.sorted[i] = key_at(i);
    least = std::min(least, key);
    most = std::max(most, key);
  }
  const int varying = most == least ? 0 : 64 - __builtin_clzll(most - least);
  const int dropped = std::max(0, varying - (64 - place_bits));
  for (i64 i = 0; i < n; ++i) {
    buffers.records[i] = (buffers.sorted[i] - least) >> dropped << place_bits | Record(i);
  }
  const Record mask = (Record{1} << place_bits) - 1;
  const Record* sorted = sort_records(buffers, n);
  if (dropped == 0) return sorted;
  auto* records = const_cast<Record*>(sorted);
  for (i64 begin = 0, end; begin < n; begin = end) {
    const Record prefix = records[begin] >> place_bits;
    for (end = begin + 1; end < n && records[end] >> place_bits == prefix;) ++end;
    if (end - begin == 1) continue;
    std::sort(records + begin, records + end, [&](Record a, Record b) {
      const Record x = key_at(static_cast<i64>(a & mask)), y = key_at(static_cast<i64>(b & mask));
      return x < y || (x == y && a < b);
    });
  }
  return records;
}

// Reorders `order` so that keys[order[i]] increase, stably; `identity`: order is to be 0, 1, ...
template <typename Traits>
void order_by(const void* keys, i64 n, bool identity, const Buffers& buffers) {
  const auto* bits = static_cast<const Key<Traits>*>(keys);
  std::uint32_t* order = buffers.order;
  const auto key_at = [=](i64 i) { return Record{Traits::ordered(bits[identity ? i : order[i]])}; };
  const Record* records;
  int place_bits = 32;
  if constexpr (sizeof(Key<Traits>) == 8) {
    place_bits = std::max(1, 64 - __builtin_clzll(static_cast<Record>(n)));
    records = sort_wide(key_at, n, place_bits, buffers);
  } else {
    over_row(buffers, n, [&](i64 begin, i64 end) {
      for (i64 i = begin; i < end; ++i) buffers.records[i] = key_at(i) << 32 | Record(i);
    });
    records = sort_records(buffers, n);
  }
  const Record mask = (Record{1} << place_bits) - 1;
  const auto place_of = [=](i64 i) { return static_cast<std::uint32_t>(records[i] & mask); };
  if (identity) {
    over_row(buffers, n, [&](i64 begin, i64 end) {
      for (i64 i = begin; i < end; ++i) order[i] = place_of(i);
    });
    return;
  }
  auto* before = reinterpret_cast<std::uint32_t*>(records == buffers.records ? buffers.sorted
                                                                             : buffers.records);
  std::copy_n(order, n, before);
  over_row(buffers, n, [&](i64 begin, i64 end) {
    for (i64 i = begin; i < end; ++i) order[i] = before[place_of(i)];
  });
}

template <typename Item>
void take_items(const void* in, void* out, const std::uint32_t* order, i64 begin, i64 end) {
  const auto* from = static_cast<const Item*>(in);
  auto* to = static_cast<Item*>(out);
  for (i64 i = begin; i < end; ++i) to[i] = from[order[i]];
}

void take(i64 size, const void* in, void* out, const std::uint32_t* order, i64 begin, i64 end) {
  struct Complex128 { double re, im; };
  switch (size) {
    case 1: return take_items<std::uint8_t>(in, out, order, begin, end);
    case 2: return take_items<std::uint16_t>(in, out, order, begin, end);
    case 4: return take_items<std::uint32_t>(in, out, order, begin, end);
    case 8: return take_items<std::uint64_t>(in, out, order, begin, end);
    default: return take_items<Complex128>(in, out, order, begin, end);
  }
}

struct SortCall {
  i64 n, operands, num_keys;
  const i64* dtypes;
  const char* const* in;
  char* const* out;
  std::int32_t* indices;  // or null
};

void sort_row(const SortCall& call, i64 row, const Buffers& buffers) {
  const i64 n = call.n;
  for (i64 k = call.num_keys - 1; k >= 0; --k) {
    const char* keys = call.in[k] + row * n * item_size(call.dtypes[k]);
    with_key(call.dtypes[k], [&](auto traits) {
      order_by<decltype(traits)>(keys, n, k == call.num_keys - 1, buffers);
    });
  }
  const std::uint32_t* order = buffers.order;
  over_row(buffers, n, [&](i64 begin, i64 end) {
    for (i64 k = 0; k < call.operands; ++k) {
      if (call.out[k] == nullptr) continue;
      const i64 size = item_size(call.dtypes[k]);
      take(size, call.in[k] + row * n * size, call.out[k] + row * n * size, order, begin, end);
    }
    if (call.indices != nullptr) {
      std::copy(order + begin, order + end, call.indices + row * n + begin);
    }
  });
}

int sort_together(const SortCall& call, i64 rows) {
  const i64 n = call.n;
  const i64 records = round_up(n * i64{sizeof(Record)}, 64);
  const bool parallel = n >= kLongRow && rows < thread_count();
  const auto run = [&](i64 begin, i64 end) {
    Scratch scratch(2 * records + n * 4);
    if (!scratch) return false;
    const Buffers buffers{scratch.as<Record>(), scratch.as<Record>(records),
                          scratch.as<std::uint32_t>(2 * records), parallel};
    for (i64 row = begin; row < end; ++row) sort_row(call, row, buffers);
    return true;
  };
  if (parallel) return run(0, rows) ? 0 : kOutOfMemory;
  bool failed = false;
  parallel_pieces(rows, std::max<i64>(1, kPieceElements / n), [&](i64 begin, i64 end) {
    if (!run(begin, end)) __atomic_store_n(&failed, true, __ATOMIC_RELAXED);
  });
  return failed ? kOutOfMemory : 0;
}

int sort_rows(i64 rows, i64 n, i64 operands, i64 num_keys, i64 stable, const i64* dtypes,
              const char* const* in, char* const* out) {
  if (rows == 0 || n == 0) return 0;
  if (operands == 1) {
    sort_single(rows, n, dtypes[0], in[0], out[0], stable != 0);
    return 0;
  }
  return sort_together({n, operands, num_keys, dtypes, in, out, nullptr}, rows);
}

int argsort_rows(i64 rows, i64 n, i64 dtype, const char* in, char* sorted, std::int32_t* indices) {
  if (rows == 0 || n == 0) return 0;
  return sort_together({n, 1, 1, &dtype, &in, &sorted, indices}, rows);
}

}  // namespace

void register_sort_library() {
  init_numpy_sorts();
  register_library("sort_rows", reinterpret_cast<void*>(&sort_rows));
  register_library("argsort_rows", reinterpret_cast<void*>(&argsort_rows));
}

}  // namespace functrans
