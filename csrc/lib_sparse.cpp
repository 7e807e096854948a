// Library functions: products of matrices of compressed rows with columns of dense ones.
#include "library.h"
#include "rows.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <type_traits>

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

// What there is for each instruction set.
template <typename T, typename I>
struct RowKernels {
  bool (*is_inside)(const Rows<T, I>& a, i64 first, i64 last);
  void (*multiply_rows)(const Rows<T, I>& a, i64 first, i64 last, i64 n, const T* x, T* out);
  void (*add_transposed)(const Rows<T, I>& a, i64 first, i64 last, i64 n, i64 from, i64 to,
                         const T* x, T* out);
};

namespace portable {
#include "sparse_kernels.h"
}  // namespace portable

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#pragma GCC push_options
#pragma GCC target("avx2,fma,bmi2")
namespace avx2 {
#include "sparse_kernels.h"
}  // namespace avx2
#pragma GCC pop_options
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,bmi2")
namespace avx512 {
#include "sparse_kernels.h"
}  // namespace avx512
#pragma GCC pop_options

template <typename T, typename I>
const RowKernels<T, I>& kernels() {
  static const RowKernels<T, I>& best =
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
              __builtin_cpu_supports("avx512vl")
          ? avx512::kKernels<T, I>
      : __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? avx2::kKernels<T, I>
                                                                        : portable::kKernels<T, I>;
  return best;
}
#else
template <typename T, typename I>
const RowKernels<T, I>& kernels() {
  return portable::kKernels<T, I>;
}
#endif

// Not vectorised: gathers of a few elements take longer than as many loads.
#pragma GCC push_options
#pragma GCC optimize("no-tree-vectorize", "no-tree-slp-vectorize")
template <bool kInside, typename T, typename I>
void multiply_vector(const Rows<T, I>& a, i64 first, i64 last, const T* x, T* out) {
  i64 e = a.start(first);
  for (i64 i = first; i < last; ++i) {
    const i64 end = a.start(i + 1);
    T even = 0, odd = 0;
    for (; e + 2 <= end; e += 2) {
      const i64 c = a.indices[e], d = a.indices[e + 1];
      if (kInside || a.has(c)) even += a.data[e] * x[c];
      if (kInside || a.has(d)) odd += a.data[e + 1] * x[d];
    }
    if (e < end) {
      const i64 c = a.indices[e++];
      if (kInside || a.has(c)) even += a.data[e - 1] * x[c];
    }
    out[i] = even + odd;
  }
}
#pragma GCC pop_options

template <typename T, typename I>
void multiply(const Rows<T, I>& a, i64 n, const T* x, T* out) {
  if (n == 1) {
    over_rows(a, 1, [&](i64 first, i64 last) {
      if (kernels<T, I>().is_inside(a, first, last)) multiply_vector<true>(a, first, last, x, out);
      else multiply_vector<false>(a, first, last, x, out);
    });
    return;
  }
  over_rows(a, n, [&](i64 first, i64 last) {
    kernels<T, I>().multiply_rows(a, first, last, n, x, out);
  });
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
      kernels<T, I>().add_transposed(a, 0, a.rows, n, begin * kChunk, std::min(n, end * kChunk), x, out);
    });
    return 0;
  }
  const i64 blocks = a.nse < 2 * kGrain ? 1 : std::clamp<i64>(
      a.nse / (4 * std::max<i64>(1, a.columns)), 1, kMostBlocks);
  if (blocks == 1) {
    kernels<T, I>().add_transposed(a, 0, a.rows, n, 0, n, x, out);
    return 0;
  }
  Scratch scratch((blocks - 1) * size * static_cast<i64>(sizeof(T)));
  if (!scratch) return kOutOfMemory;
  parallel_pieces(blocks, 1, [&](i64 begin, i64 end) {
    for (i64 b = begin; b < end; ++b) {
      T* own = b == 0 ? out : scratch.as<T>() + (b - 1) * size;
      if (b > 0) std::memset(own, 0, size * sizeof(T));
      kernels<T, I>().add_transposed(a, a.rows * b / blocks, a.rows * (b + 1) / blocks, n, 0, n, x, own);
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
