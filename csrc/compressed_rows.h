// Matrices of compressed rows as library functions take them: element e of row i stands between
// indptr[i] and indptr[i + 1], in the column indices[e].
#pragma once

#include "rows.h"

#include <algorithm>

namespace functrans {

constexpr i64 kGrain = 1 << 13;  // stored elements: below twice of it one thread is faster
constexpr int kUnsupported = 3;

template <typename T, typename I>
struct Rows {
  i64 rows, columns, nse;
  const T* data;
  const I* indices;
  const I* indptr;

  // what a matrix says of its rows is the caller's, so that no bound is trusted
  i64 start(i64 row) const {
    return std::min<i64>(std::max<i64>(static_cast<i64>(indptr[row]), 0), nse);
  }
  bool has(i64 column) const {
    return static_cast<std::uint64_t>(column) < static_cast<std::uint64_t>(columns);
  }
  bool in_order() const {
    I falls = indptr[0] < 0;  // as wide as pointers, so that they are compared as vectors
    for (i64 i = 0; i < rows; ++i) falls |= static_cast<I>(indptr[i] > indptr[i + 1]);
    return falls == 0;
  }
};

// body(first, last) over ranges of rows that hold about as many stored elements each.
template <typename T, typename I, typename Body>
void over_rows(const Rows<T, I>& a, i64 work, Body&& body) {
  const i64 total = a.nse + a.rows;  // rows without elements are work, too
  const auto row_of = [&](i64 place) {
    if (place <= 0) return i64{0};
    if (place >= total) return a.rows;
    i64 low = 0, high = a.rows;
    while (low < high) {
      const i64 middle = (low + high) / 2;
      a.start(middle) + middle < place ? low = middle + 1 : high = middle;
    }
    return low;
  };
  parallel_pieces(total, std::max<i64>(1, kGrain / work),
                  [&](i64 begin, i64 end) { body(row_of(begin), row_of(end)); });
}

// run(a), where a pointer that is less than one before it is as large as that, and none is beyond the
// elements.
template <typename T, typename I, typename Run>
int in_order(Rows<T, I> a, Run&& run) {
  if (a.in_order() && static_cast<i64>(a.indptr[a.rows]) <= a.nse) return run(a);
  Scratch scratch((a.rows + 1) * static_cast<i64>(sizeof(I)));
  if (!scratch) return kOutOfMemory;
  I* pointers = scratch.as<I>();
  I most = 0;
  for (i64 i = 0; i <= a.rows; ++i) {
    pointers[i] = most = std::max(most, static_cast<I>(a.start(i)));
  }
  a.indptr = pointers;
  return run(a);
}

template <typename Run>
int by_types(i64 dtype, i64 wide, Run&& run) {
  if (dtype != kF32 && dtype != kF64) return kUnsupported;
  if (dtype == kF32) return wide ? run(float{}, i64{}) : run(float{}, std::int32_t{});
  return wide ? run(double{}, i64{}) : run(double{}, std::int32_t{});
}

// The product with x, or of the transpose; `wide` says that indices are int64.
int csr_dot(i64 dtype, i64 wide, i64 transpose, i64 rows, i64 columns, i64 nse, i64 n,
            const void* data, const void* indices, const void* indptr, const void* x, void* out);

}  // namespace functrans
