// Library functions: products of matrices of compressed rows with columns of dense ones.
#include "library.h"
#include "rows.h"

#include <algorithm>
#include <cstring>

namespace functrans {
namespace {

constexpr i64 kGrain = 1 << 13;  // stored elements: below twice of it one thread is faster
constexpr i64 kMostBlocks = 4;
constexpr i64 kChunk = 16;  // columns of a dense matrix that a thread takes at a time
constexpr i64 kAhead = 8;
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
    bool increasing = indptr[0] >= 0;
    for (i64 i = 0; i < rows; ++i) increasing &= indptr[i] <= indptr[i + 1];
    return increasing;
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

template <typename T, typename I>
T row_times_vector(const Rows<T, I>& a, i64 begin, i64 end, const T* x) {
  T sums[4] = {};
  i64 e = begin;
  for (; e + 4 <= end; e += 4) {
    for (i64 k = 0; k < 4; ++k) {
      const i64 c = a.indices[e + k];
      if (a.has(c)) sums[k] += a.data[e + k] * x[c];
    }
  }
  for (; e < end; ++e) {
    const i64 c = a.indices[e];
    if (a.has(c)) sums[0] += a.data[e] * x[c];
  }
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

template <typename T>
FUNCTRANS_INLINE void add_scaled(T* __restrict out, T factor, const T* __restrict x, i64 n) {
  for (i64 j = 0; j < n; ++j) out[j] += factor * x[j];
}

template <typename T, typename I>
void multiply(const Rows<T, I>& a, i64 n, const T* x, T* out) {
  over_rows(a, n, [&](i64 first, i64 last) {
    for (i64 i = first; i < last; ++i) {
      const i64 begin = a.start(i), end = a.start(i + 1);
      if (n == 1) {
        out[i] = row_times_vector(a, begin, end, x);
        continue;
      }
      T* row = out + i * n;
      std::memset(row, 0, n * sizeof(T));
      for (i64 e = begin; e < end; ++e) {
        if (e + kAhead < a.nse && a.has(a.indices[e + kAhead])) {
          const auto* next = reinterpret_cast<const char*>(x + a.indices[e + kAhead] * n);
          for (i64 b = 0; b < std::min<i64>(n * sizeof(T), 512); b += 64) __builtin_prefetch(next + b);
        }
        const i64 c = a.indices[e];
        if (a.has(c)) add_scaled(row, a.data[e], x + c * n, n);
      }
    }
  });
}

template <typename T, typename I>
void add_transposed(const Rows<T, I>& a, i64 first, i64 last, i64 n, i64 from, i64 to,
                    const T* x, T* out) {
  for (i64 i = first; i < last; ++i) {
    const i64 end = a.start(i + 1);
    const T* row = x + i * n;
    for (i64 e = a.start(i); e < end; ++e) {
      const i64 c = a.indices[e];
      if (!a.has(c)) continue;
      if (n == 1) out[c] += a.data[e] * row[0];
      else add_scaled(out + c * n + from, a.data[e], row + from, to - from);
    }
  }
}

// Threads take columns of x, or blocks of rows whose number depends on sizes alone: the result is
// the same with any number of threads.
template <typename T, typename I>
int multiply_transposed(const Rows<T, I>& a, i64 n, const T* x, T* out) {
  const i64 size = a.columns * n;
  std::memset(out, 0, size * sizeof(T));
  if (n >= 2 * kChunk) {
    parallel_pieces((n + kChunk - 1) / kChunk, std::max<i64>(1, kGrain / (kChunk * (a.nse + 1))),
                    [&](i64 begin, i64 end) {
      add_transposed(a, 0, a.rows, n, begin * kChunk, std::min(n, end * kChunk), x, out);
    });
    return 0;
  }
  const i64 blocks = a.nse < 2 * kGrain ? 1 : std::clamp<i64>(
      a.nse / (4 * std::max<i64>(1, a.columns)), 1, kMostBlocks);
  if (blocks == 1) {
    add_transposed(a, 0, a.rows, n, 0, n, x, out);
    return 0;
  }
  Scratch scratch((blocks - 1) * size * static_cast<i64>(sizeof(T)));
  if (!scratch) return kOutOfMemory;
  parallel_pieces(blocks, 1, [&](i64 begin, i64 end) {
    for (i64 b = begin; b < end; ++b) {
      T* own = b == 0 ? out : scratch.as<T>() + (b - 1) * size;
      if (b > 0) std::memset(own, 0, size * sizeof(T));
      add_transposed(a, a.rows * b / blocks, a.rows * (b + 1) / blocks, n, 0, n, x, own);
    }
  });
  parallel_pieces(size, kGrain, [&](i64 begin, i64 end) {
    for (i64 b = 1; b < blocks; ++b) {
      const T* own = scratch.as<T>() + (b - 1) * size;
      for (i64 k = begin; k < end; ++k) out[k] += own[k];
    }
  });
  return 0;
}

template <typename T, typename I>
void sample(const Rows<T, I>& a, i64 n, const T* y, const T* x, T* out) {
  // elements before the first row and behind the last belong to none
  std::memset(out, 0, a.start(0) * sizeof(T));
  const i64 used = a.start(a.rows);
  std::memset(out + used, 0, (a.nse - used) * sizeof(T));
  over_rows(a, n, [&](i64 first, i64 last) {
    for (i64 i = first; i < last; ++i) {
      const T* left = y + i * n;
      const i64 end = a.start(i + 1);
      for (i64 e = a.start(i); e < end; ++e) {
        const i64 c = a.indices[e];
        T total = 0;
        if (a.has(c)) {
          const T* right = x + c * n;
          T sums[8] = {};
          i64 j = 0;
          for (; j + 8 <= n; j += 8) {
            for (i64 k = 0; k < 8; ++k) sums[k] += left[j + k] * right[j + k];
          }
          for (; j < n; ++j) total += left[j] * right[j];
          for (i64 k = 0; n >= 8 && k < 8; ++k) total += sums[k];
        }
        out[e] = total;
      }
    }
  });
}

// run(a), where a pointer that is less than one before it is as large as that.
template <typename T, typename I, typename Run>
int in_order(Rows<T, I> a, Run&& run) {
  if (a.in_order()) return run(a);
  Scratch scratch((a.rows + 1) * static_cast<i64>(sizeof(I)));
  if (!scratch) return kOutOfMemory;
  I* pointers = scratch.as<I>();
  I most = 0;
  for (i64 i = 0; i <= a.rows; ++i) pointers[i] = most = std::max(most, a.indptr[i]);
  a.indptr = pointers;
  return run(a);
}

template <typename Run>
int by_types(i64 dtype, i64 wide, Run&& run) {
  if (dtype != kF32 && dtype != kF64) return kUnsupported;
  if (dtype == kF32) return wide ? run(float{}, i64{}) : run(float{}, std::int32_t{});
  return wide ? run(double{}, i64{}) : run(double{}, std::int32_t{});
}

int csr_dot(i64 dtype, i64 wide, i64 transpose, i64 rows, i64 columns, i64 nse, i64 n,
            const void* data, const void* indices, const void* indptr, const void* x, void* out) {
  return by_types(dtype, wide, [&](auto zero, auto index) {
    using T = decltype(zero);
    using I = decltype(index);
    const Rows<T, I> a{rows, columns, nse, static_cast<const T*>(data),
                       static_cast<const I*>(indices), static_cast<const I*>(indptr)};
    return in_order(a, [&](const Rows<T, I>& a) {
      if (transpose) {
        return multiply_transposed(a, n, static_cast<const T*>(x), static_cast<T*>(out));
      }
      multiply(a, n, static_cast<const T*>(x), static_cast<T*>(out));
      return 0;
    });
  });
}

int csr_sample(i64 dtype, i64 wide, i64 rows, i64 columns, i64 nse, i64 n, const void* indices,
               const void* indptr, const void* y, const void* x, void* out) {
  return by_types(dtype, wide, [&](auto zero, auto index) {
    using T = decltype(zero);
    using I = decltype(index);
    const Rows<T, I> a{rows, columns, nse, nullptr, static_cast<const I*>(indices),
                       static_cast<const I*>(indptr)};
    return in_order(a, [&](const Rows<T, I>& a) {
      sample(a, n, static_cast<const T*>(y), static_cast<const T*>(x), static_cast<T*>(out));
      return 0;
    });
  });
}

}  // namespace

void register_sparse_library() {
  register_library("csr_dot", reinterpret_cast<void*>(&csr_dot));
  register_library("csr_sample", reinterpret_cast<void*>(&csr_sample));
}

}  // namespace functrans
