// Library functions: products of matrices of compressed rows with columns of dense ones.
#include "compressed_rows.h"
#include "library.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <limits>
#include <type_traits>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace functrans {
namespace {

constexpr i64 kMostBlocks = 4;
constexpr i64 kChunk = 16;  // columns of a dense matrix that a thread takes at a time
constexpr i64 kAhead = 8;
// Elements whose indices are in cache when they are used: few of them, so that memory is read without
// a pause.
constexpr i64 kTogether = 1 << 8;
constexpr i64 kTogetherNear = 1 << 12;
constexpr i64 kFetched = 1 << 9;  // elements ahead of what is multiplied
constexpr i64 kFar = 1 << 18;
constexpr i64 kNearBytes = 1 << 18;
// Elements of coordinates that are, with their values: 0.85 of the time of 1024 where all come from
// memory.
constexpr i64 kPairs = 1 << 9;

// Elements of coordinates that are looked at together: a thread has [first, last) of the n, and the
// sums of rows [low, high).
template <typename T, typename I>
struct PairChunk {
  const T* data;
  const I* pairs;
  i64 n, first, last, low, high, rows, columns;
};

// What takes the time: elements from memory if they are many, and then also ends of rows, if a
// processor does not foretell them. Fewer rows than these it learns by heart.
enum class RowKind : char { kNear, kAlike, kAny };

// What there is for each instruction set.
template <typename T, typename I>
struct RowKernels {
  void (*multiply_vector)(const Rows<T, I>& a, i64 first, i64 last, RowKind kind, const T* x,
                          T* out);
  void (*multiply_rows)(const Rows<T, I>& a, i64 first, i64 last, i64 n, const T* x, T* out);
  void (*add_transposed)(const Rows<T, I>& a, i64 first, i64 last, RowKind kind, i64 n, i64 from,
                         i64 to, const T* x, T* out);
  bool (*multiply_pairs)(const PairChunk<T, I>& chunk, const T* x, T* out);
  void (*add_pairs)(const T* data, const I* pairs, i64 nse, i64 rows, i64 columns, bool transpose,
                    i64 n, i64 from, i64 to, const T* x, T* out);
};

// What the target is: in C++ no macro of GCC 12 says it, as a file is read before its pragmas count.
#define FUNCTRANS_WITH_AVX512 0
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
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,bmi2,popcnt")
#undef FUNCTRANS_WITH_AVX512
#define FUNCTRANS_WITH_AVX512 1
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

// Rows are alike where three of four have as many elements as the row before.
template <typename T, typename I>
RowKind kind_of(const Rows<T, I>& a) {
  if (a.nse < kFar) return RowKind::kNear;
  constexpr i64 kLooked = 64;
  i64 looked = 0, differ = 0;
  for (i64 part = 0; part < 3; ++part) {
    const i64 begin = std::max<i64>(1, part * (a.rows - kLooked) / 2);
    const i64 end = std::min(a.rows, begin + kLooked);
    for (i64 i = begin; i < end; ++i) {
      differ += a.indptr[i + 1] - a.indptr[i] != a.indptr[i] - a.indptr[i - 1];
    }
    looked += std::max<i64>(0, end - begin);
  }
  return 4 * differ <= looked ? RowKind::kAlike : RowKind::kAny;
}

template <typename T, typename I>
void multiply(const Rows<T, I>& a, i64 n, const T* x, T* out) {
  if (n == 1) {
    const RowKind kind = kind_of(a);
    over_rows(a, 1, [&](i64 first, i64 last) {
      kernels<T, I>().multiply_vector(a, first, last, kind, x, out);
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
      kernels<T, I>().add_transposed(a, 0, a.rows, RowKind::kNear, n, begin * kChunk, std::min(n, end * kChunk), x, out);
    });
    return 0;
  }
  const i64 blocks = a.nse < 2 * kGrain ? 1 : std::clamp<i64>(
      a.nse / (4 * std::max<i64>(1, a.columns)), 1, kMostBlocks);
  const RowKind kind = kind_of(a);
  if (blocks == 1) {
    kernels<T, I>().add_transposed(a, 0, a.rows, kind, n, 0, n, x, out);
    return 0;
  }
  Scratch scratch((blocks - 1) * size * static_cast<i64>(sizeof(T)));
  if (!scratch) return kOutOfMemory;
  parallel_pieces(blocks, 1, [&](i64 begin, i64 end) {
    for (i64 b = begin; b < end; ++b) {
      T* own = b == 0 ? out : scratch.as<T>() + (b - 1) * size;
      if (b > 0) std::memset(own, 0, size * sizeof(T));
      kernels<T, I>().add_transposed(a, a.rows * b / blocks, a.rows * (b + 1) / blocks, kind, n, 0,
                                     n, x, own);
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
  if (n == 1) {
    over_rows(a, 1, [&](i64 first, i64 last) {
      const I* indices = a.indices;
      i64 e = a.start(first);
      for (i64 i = first; i < last; ++i) {
        const i64 end = a.start(i + 1);
        const T left = y[i];
        for (; e < end; ++e) {
          const i64 c = indices[e];
          out[e] = a.has(c) ? left * x[c] : T(0);
        }
      }
    });
    return;
  }
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

// Coordinates times a vector. Threads take rows, where these are in order: whether they are is seen
// where they are multiplied. Chunks are the same with any number of threads, and so are the bits.
template <typename T, typename I>
void multiply_coordinates(const T* data, const I* pairs, i64 nse, i64 rows, i64 columns,
                          const T* x, T* out) {
  const auto product = [&](i64 begin, i64 end, i64 low, i64 high) {
    std::memset(out + low, 0, static_cast<std::size_t>(high - low) * sizeof(T));
    for (i64 e = begin / kPairs * kPairs; e < end; e += kPairs) {
      const PairChunk<T, I> chunk{data + e, pairs + 2 * e, std::min(kPairs, nse - e),
                                  std::max<i64>(begin - e, 0), std::min(kPairs, end - e),
                                  low, high, rows, columns};
      if (!kernels<T, I>().multiply_pairs(chunk, x, out)) return false;
    }
    return true;
  };
  const i64 wanted = thread_count() == 1 || nse < 2 * kGrain
                         ? 1 : std::min<i64>(nse / kGrain, 4 * thread_count());
  std::vector<i64> begins{0}, lows{0};
  for (i64 k = 1; k < wanted; ++k) {
    i64 e = std::max(nse * k / wanted / kPairs * kPairs, begins.back());
    while (e < nse && pairs[2 * e] == pairs[2 * e - 2]) ++e;
    if (e == begins.back() || e == nse) continue;
    const i64 row = pairs[2 * e];
    const bool inside = static_cast<std::uint64_t>(row) < static_cast<std::uint64_t>(rows);
    begins.push_back(e);
    lows.push_back(inside ? row : rows);
  }
  begins.push_back(nse), lows.push_back(rows);
  const auto pieces = static_cast<i64>(begins.size()) - 1;
  if (pieces > 1 && std::is_sorted(lows.begin(), lows.end())) {
    std::atomic<bool> in_order{true};
    parallel_pieces(pieces, 1, [&](i64 first, i64 last) {
      for (i64 k = first; k < last && in_order.load(std::memory_order_relaxed); ++k) {
        if (!product(begins[k], begins[k + 1], lows[k], lows[k + 1])) in_order.store(false);
      }
    });
    if (in_order.load()) return;
  }
  product(0, nse, 0, rows);
}

int coo_dot(i64 dtype, i64 wide, i64 transpose, i64 rows, i64 columns, i64 nse, i64 n,
            const void* data, const void* indices, const void* x, void* out) {
  return by_types(dtype, wide, [&](auto zero, auto index) {
    using T = decltype(zero);
    using I = decltype(index);
    const T *values = static_cast<const T*>(data), *read = static_cast<const T*>(x);
    const I* pairs = static_cast<const I*>(indices);
    T* sums = static_cast<T*>(out);
    if (n == 1 && !transpose) {
      multiply_coordinates(values, pairs, nse, rows, columns, read, sums);
    } else {
      std::memset(out, 0, static_cast<std::size_t>((transpose ? columns : rows) * n) * sizeof(T));
      parallel_pieces((n + kChunk - 1) / kChunk, std::max<i64>(1, kGrain / (kChunk * (nse + 1))),
                      [&](i64 begin, i64 end) {
        kernels<T, I>().add_pairs(values, pairs, nse, rows, columns, transpose != 0, n,
                                  begin * kChunk, std::min(n, end * kChunk), read, sums);
      });
    }
    return 0;
  });
}

}  // namespace

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

void register_sparse_library() {
  register_library("csr_dot", reinterpret_cast<void*>(&csr_dot));
  register_library("coo_dot", reinterpret_cast<void*>(&coo_dot));
  register_library("csr_sample", reinterpret_cast<void*>(&csr_sample));
}

}  // namespace functrans
