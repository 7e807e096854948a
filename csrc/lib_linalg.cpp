// Library functions: factorizations and systems over stacks of matrices (primitives/linalg.py,
// solve.py, spectral.py). Small ones are taken several at a time, one to a vector lane.
#include "blocked_systems.h"
#include "lapack_loops.h"
#include "library.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <type_traits>

namespace functrans {
namespace {

constexpr int kUnsupported = 3;

i64 real_size(i64 dtype) { return dtype == kF32 || dtype == kC64 ? 4 : 8; }
i64 complex_size(i64 dtype) { return 2 * real_size(dtype); }
bool is_real(i64 dtype) { return dtype == kF32 || dtype == kF64; }

Stack matrices(const void* data, i64 item, i64 m, i64 n) { return {data, item, 2, {m, n}}; }
Stack vectors(const void* data, i64 item, i64 n) { return {data, item, 1, {n, 1}}; }
Stack numbers(const void* data, i64 item) { return {data, item, 0, {1, 1}}; }

bool small(i64 dtype, i64 n, i64 k) {
  return is_real(dtype) && n <= kSmallMatrix && k <= kSmallMatrix;
}

// Groups of small matrices in parallel; run(first, count).
template <typename Run>
void over_groups(i64 dtype, i64 batch, i64 elements, Run&& run) {
  const i64 lanes = row_kernels().lane_bytes / item_size(dtype);
  const i64 groups = (batch + lanes - 1) / lanes;
  parallel_pieces(groups, std::max<i64>(1, 4096 / (elements * lanes)), [&](i64 begin, i64 end) {
    for (i64 g = begin; g < end; ++g) run(g * lanes, std::min(lanes, batch - g * lanes));
  });
}

template <typename Pointer>
Pointer* offset(Pointer* data, i64 bytes) {
  using Byte = std::conditional_t<std::is_const_v<Pointer>, const char, char>;
  return reinterpret_cast<Byte*>(data) + bytes;
}

bool in_blocks(i64 n) { return n >= kBlockedMatrix && can_block(); }

// One matrix after the other on all threads, or many side by side; the same bits either way.
template <typename Run>
int each_matrix(i64 batch, Run&& run) {
  constexpr i64 many = 8;
  bool failed = false;
  const auto range = [&](i64 begin, i64 end) {
    for (i64 i = begin; i < end; ++i) {
      if (!run(i)) __atomic_store_n(&failed, true, __ATOMIC_RELAXED);
    }
  };
  if (batch < many) {
    range(0, batch);
  } else {
    parallel_pieces(batch, 1, range);
  }
  return failed ? kOutOfMemory : 0;
}

void clear_above(i64 batch, i64 n, i64 item, void* out) {
  parallel_pieces(batch * n, std::max<i64>(1, 65536 / n), [&](i64 begin, i64 end) {
    for (i64 row = begin; row < end; ++row) {
      const i64 i = row % n;
      std::memset(offset(out, (row * n + i + 1) * item), 0, (n - i - 1) * item);
    }
  });
}

int cholesky(i64 dtype, i64 batch, i64 n, const void* a, void* out) {
  if (batch == 0 || n == 0) return 0;
  const i64 item = item_size(dtype), bytes = n * n * item;
  if (small(dtype, n, 1)) {
    const auto kernel = row_kernels().cholesky[dtype == kF64];
    over_groups(dtype, batch, n * n, [&](i64 first, i64 count) {
      kernel(n, count, offset(a, first * bytes), offset(out, first * bytes));
    });
    return 0;
  }
  if (!has_lapack(Lapack::cholesky, dtype)) return kUnsupported;
  int status = 0;
  if (in_blocks(n)) {
    status = each_matrix(batch, [&](i64 i) {
      return blocked_cholesky(dtype, n, offset(a, i * bytes), offset(out, i * bytes));
    });
  } else {
    const SerialBlas serial;
    run_lapack(Lapack::cholesky, dtype, batch, {n},
               {matrices(a, item, n, n), matrices(out, item, n, n)});
  }
  clear_above(batch, n, item, out);  // NaN in those that have no factor
  return status;
}

// An LU factorisation that is used at once, and thrown away.
struct Factors {
  Factors(i64 dtype, i64 n, const void* a)
      : scratch(n * n * item_size(dtype) + n * 4),
        pivots(scratch.as<std::int32_t>(n * n * item_size(dtype))),
        made(scratch && blocked_lu(dtype, n, n, a, scratch.as<char>(), pivots)) {}
  Scratch scratch;
  std::int32_t* pivots;
  bool made;
};

template <typename Run>
auto with_number(i64 dtype, Run&& run) {
  switch (dtype) {
    case kF32: return run(0.0F);
    case kF64: return run(0.0);
    case kC64: return run(std::complex<float>());
    default: return run(std::complex<double>());
  }
}

bool solve_by_factors(i64 dtype, i64 n, i64 k, const void* a, const void* b, void* x) {
  const Factors lu(dtype, n, a);
  if (!lu.made) return false;
  return with_number(dtype, [&](auto number) {
    using T = decltype(number);
    const T* factors = lu.scratch.template as<T>();
    T* out = static_cast<T*>(x);
    std::copy_n(static_cast<const T*>(b), n * k, out);
    bool singular = false;
    for (i64 i = 0; i < n; ++i) {
      singular |= factors[i * n + i] == T{};
      if (lu.pivots[i] != i) std::swap_ranges(out + i * k, out + (i + 1) * k, out + lu.pivots[i] * k);
    }
    if (singular) {
      std::fill_n(out, n * k, T(std::numeric_limits<double>::quiet_NaN()));
      return true;
    }
    const TriangularKind lower{true, true, false, true}, upper{true, false, false, false};
    return blocked_substitution(dtype, lower, false, n, k, factors, out, out) &&
           blocked_substitution(dtype, upper, false, n, k, factors, out, out);
  });
}

// The determinant; or, where `log` is not null, its sign and the logarithm of its modulus.
bool determinant(i64 dtype, i64 n, const void* a, void* out, void* log) {
  const Factors lu(dtype, n, a);
  if (!lu.made) return false;
  return with_number(dtype, [&](auto number) {
    using T = decltype(number);
    using Real = decltype(std::abs(number));
    const T* factors = lu.scratch.template as<T>();
    T sign = 1;
    double modulus = 0;
    for (i64 i = 0; i < n; ++i) {
      const T pivot = lu.pivots[i] == i ? factors[i * n + i] : -factors[i * n + i];
      const Real size = std::abs(pivot);
      sign *= size == 0 ? T{} : pivot / size;
      modulus += std::log(static_cast<double>(size));
    }
    if (log != nullptr) {
      *static_cast<T*>(out) = sign;
      *static_cast<Real*>(log) = static_cast<Real>(modulus);
    } else {
      *static_cast<T*>(out) = sign * static_cast<Real>(std::exp(modulus));
    }
    return true;
  });
}

int solve(i64 dtype, i64 batch, i64 n, i64 k, const void* a, const void* b, void* out) {
  if (batch == 0 || n == 0 || k == 0) return 0;
  const i64 item = item_size(dtype), bytes = n * n * item, side = n * k * item;
  if (small(dtype, n, k)) {
    const auto kernel = row_kernels().solve[dtype == kF64];
    over_groups(dtype, batch, n * (n + k), [&](i64 first, i64 count) {
      kernel(n, k, count, offset(a, first * bytes), offset(b, first * side),
             offset(out, first * side));
    });
    return 0;
  }
  if (in_blocks(n)) {
    return each_matrix(batch, [&](i64 i) {
      return solve_by_factors(dtype, n, k, offset(a, i * bytes), offset(b, i * side),
                              offset(out, i * side));
    });
  }
  if (!has_lapack(Lapack::solve, dtype)) return kUnsupported;
  const SerialBlas serial;
  run_lapack(Lapack::solve, dtype, batch, {n, k},
             {matrices(a, item, n, n), matrices(b, item, n, k), matrices(out, item, n, k)});
  return 0;
}

int triangular_solve(i64 dtype, i64 batch, i64 n, i64 k, i64 left, i64 lower, i64 transposed,
                     i64 unit, i64 conjugated, const void* a, const void* b, void* out) {
  if (batch == 0 || n == 0 || k == 0) return 0;
  const TriangularKind kind{left != 0, lower != 0, transposed != 0, unit != 0};
  const i64 item = item_size(dtype), bytes = n * n * item, side = n * k * item;
  if (small(dtype, n, k)) {
    const auto kernel = row_kernels().triangular_solve[dtype == kF64];
    over_groups(dtype, batch, n * (n + k), [&](i64 first, i64 count) {
      kernel(kind, n, k, count, offset(a, first * bytes), offset(b, first * side),
             offset(out, first * side));
    });
    return 0;
  }
  if (is_real(dtype) && n <= kSmallMatrix) {
    const auto kernel = row_kernels().triangular_columns[dtype == kF64];
    const i64 lanes = row_kernels().lane_bytes / item, groups = (k + lanes - 1) / lanes;
    parallel_pieces(batch * groups, std::max<i64>(1, 4096 / (n * lanes)), [&](i64 begin, i64 end) {
      for (i64 g = begin; g < end; ++g) {
        const i64 i = g / groups, first = g % groups * lanes;
        kernel(kind, n, k, first, std::min(lanes, k - first), offset(a, i * bytes),
               offset(b, i * side), offset(out, i * side));
      }
    });
    return 0;
  }
  if (!can_block()) return kUnsupported;
  return each_matrix(batch, [&](i64 i) {
    return blocked_substitution(dtype, kind, conjugated != 0, n, k, offset(a, i * bytes),
                                offset(b, i * side), offset(out, i * side));
  });
}

int lu(i64 dtype, i64 batch, i64 m, i64 n, const void* a, void* factors, std::int32_t* pivots,
       std::int32_t* permutation) {
  if (!can_block()) return kUnsupported;
  const i64 k = std::min(m, n), bytes = m * n * item_size(dtype);
  return each_matrix(batch, [&](i64 i) {
    if (k > 0 && !blocked_lu(dtype, m, n, offset(a, i * bytes), offset(factors, i * bytes),
                             pivots + i * k)) {
      return false;
    }
    std::int32_t* order = permutation + i * m;
    for (i64 r = 0; r < m; ++r) order[r] = static_cast<std::int32_t>(r);
    for (i64 r = 0; r < k; ++r) std::swap(order[r], order[pivots[i * k + r]]);
    return true;
  });
}

int det(i64 dtype, i64 batch, i64 n, const void* a, void* out) {
  const i64 item = item_size(dtype);
  if (small(dtype, n, 1) && n > 0) {
    const auto kernel = row_kernels().det[dtype == kF64];
    over_groups(dtype, batch, n * n, [&](i64 first, i64 count) {
      kernel(n, count, offset(a, first * n * n * item), offset(out, first * item), nullptr);
    });
    return 0;
  }
  if (in_blocks(n)) {
    return each_matrix(batch, [&](i64 i) {
      return determinant(dtype, n, offset(a, i * n * n * item), offset(out, i * item), nullptr);
    });
  }
  if (!has_lapack(Lapack::det, dtype)) return kUnsupported;
  if (batch > 0) {
    const SerialBlas serial;
    run_lapack(Lapack::det, dtype, batch, {n}, {matrices(a, item, n, n), numbers(out, item)});
  }
  return 0;
}

int slogdet(i64 dtype, i64 batch, i64 n, const void* a, void* sign, void* log) {
  const i64 item = item_size(dtype), real = real_size(dtype);
  if (small(dtype, n, 1) && n > 0) {
    const auto kernel = row_kernels().det[dtype == kF64];
    over_groups(dtype, batch, n * n, [&](i64 first, i64 count) {
      kernel(n, count, offset(a, first * n * n * item), offset(sign, first * item),
             offset(log, first * item));
    });
    return 0;
  }
  if (in_blocks(n)) {
    return each_matrix(batch, [&](i64 i) {
      return determinant(dtype, n, offset(a, i * n * n * item), offset(sign, i * item),
                         offset(log, i * real));
    });
  }
  if (!has_lapack(Lapack::slogdet, dtype)) return kUnsupported;
  if (batch > 0) {
    const SerialBlas serial;
    run_lapack(Lapack::slogdet, dtype, batch, {n},
               {matrices(a, item, n, n), numbers(sign, item), numbers(log, real)});
  }
  return 0;
}

template <typename To, typename From>
void convert(const void* from, void* to, i64 count) {
  std::copy_n(static_cast<const From*>(from), count, static_cast<To*>(to));
}

// One input and outputs, in double precision whatever the dtype, as NumPy does: eigenvectors and
// singular vectors then have the signs that they have there.
int run_in_double(Lapack function, i64 dtype, i64 batch, std::initializer_list<i64> core,
                  std::initializer_list<Stack> stacks) {
  const bool complex = !is_real(dtype);
  const i64 type = complex ? kC128 : kF64;
  if (!has_lapack(function, type)) return kUnsupported;
  if (batch == 0) return 0;
  if (type == dtype) return run_lapack(function, type, batch, core, stacks), 0;
  i64 total = 0;
  Stack wide[4] = {};
  i64 count = 0;
  for (const Stack& stack : stacks) {
    wide[count] = stack;
    wide[count++].item *= 2;
    total += round_up(2 * batch * stack.bytes(), 64);
  }
  Scratch scratch(total);
  if (!scratch) return kOutOfMemory;
  total = 0;
  for (i64 i = 0; i < count; ++i) {
    wide[i].data = scratch.as<char>(total);
    total += round_up(batch * wide[i].bytes(), 64);
  }
  const Stack* narrow = stacks.begin();
  convert<double, float>(narrow[0].data, const_cast<void*>(wide[0].data),
                         batch * narrow[0].bytes() / 4);
  if (count == 2) {
    run_lapack(function, type, batch, core, {wide[0], wide[1]});
  } else if (count == 3) {
    run_lapack(function, type, batch, core, {wide[0], wide[1], wide[2]});
  } else {
    run_lapack(function, type, batch, core, {wide[0], wide[1], wide[2], wide[3]});
  }
  for (i64 i = 1; i < count; ++i) {
    convert<float, double>(wide[i].data, const_cast<void*>(narrow[i].data),
                           batch * narrow[i].bytes() / 4);
  }
  return 0;
}

int eigh(i64 dtype, i64 batch, i64 n, const void* a, void* w, void* v) {
  if (batch == 0 || n == 0) return 0;
  const i64 item = item_size(dtype);
  const Stack in = matrices(a, item, n, n), values = vectors(w, real_size(dtype), n);
  if (v == nullptr) return run_in_double(Lapack::eigvalsh, dtype, batch, {n}, {in, values});
  return run_in_double(Lapack::eigh, dtype, batch, {n}, {in, values, matrices(v, item, n, n)});
}

int eig(i64 dtype, i64 batch, i64 n, const void* a, void* w, void* v) {
  if (batch == 0 || n == 0) return 0;
  const i64 wide = complex_size(dtype);
  const Stack in = matrices(a, item_size(dtype), n, n), values = vectors(w, wide, n);
  if (v == nullptr) return run_in_double(Lapack::eigvals, dtype, batch, {n}, {in, values});
  return run_in_double(Lapack::eig, dtype, batch, {n}, {in, values, matrices(v, wide, n, n)});
}

int svd(i64 dtype, i64 batch, i64 m, i64 n, i64 full, const void* a, void* s, void* u, void* vh) {
  const i64 k = std::min(m, n), item = item_size(dtype);
  if (k == 0) return kUnsupported;
  const Stack in = matrices(a, item, m, n), values = vectors(s, real_size(dtype), k);
  if (u == nullptr) return run_in_double(Lapack::svd_values, dtype, batch, {m, n}, {in, values});
  const i64 left = full != 0 ? m : k, right = full != 0 ? n : k;
  return run_in_double(full != 0 ? Lapack::svd_full : Lapack::svd_reduced, dtype, batch, {m, n},
                       {in, matrices(u, item, m, left), values, matrices(vh, item, right, n)});
}

// NumPy factors in double precision, whatever the dtype.
int qr(i64 dtype, i64 batch, i64 m, i64 n, i64 full, const void* a, void* q, void* r) {
  const bool complex = !is_real(dtype), narrow = real_size(dtype) == 4;
  const i64 type = complex ? kC128 : kF64, item = complex ? 16 : 8, parts = complex ? 2 : 1;
  const i64 k = std::min(m, n), columns = full != 0 ? m : k;
  const bool complete = full != 0 && m > n;
  const Lapack second = complete ? Lapack::qr_complete : Lapack::qr_reduced;
  if (!has_lapack(Lapack::qr_raw, type) || !has_lapack(second, type) || k == 0) return kUnsupported;
  if (batch == 0) return 0;
  const i64 raw_bytes = round_up(batch * m * n * item, 64);
  const i64 tau_bytes = round_up(batch * k * item, 64);
  Scratch scratch(raw_bytes + tau_bytes + (narrow ? batch * m * columns * item : 0));
  if (!scratch) return kOutOfMemory;
  char *raw = scratch.as<char>(), *tau = raw + raw_bytes;
  void* wide_q = narrow ? static_cast<void*>(tau + tau_bytes) : q;
  const i64 size = item_size(dtype);
  narrow ? convert<double, float>(a, raw, batch * m * n * parts)
         : convert<double, double>(a, raw, batch * m * n * parts);
  run_lapack(Lapack::qr_raw, type, batch, {m, n},
             {matrices(raw, item, m, n), vectors(tau, item, k)});
  if (complete) {
    run_lapack(second, type, batch, {m, n},
               {matrices(raw, item, m, n), vectors(tau, item, n), matrices(wide_q, item, m, m)});
  } else {
    run_lapack(second, type, batch, {m, n, k},
               {matrices(raw, item, m, n), vectors(tau, item, k), matrices(wide_q, item, m, k)});
  }
  if (narrow) convert<float, double>(wide_q, q, batch * m * columns * parts);
  for (i64 i = 0; i < batch; ++i) {
    for (i64 row = 0; row < columns; ++row) {
      const i64 zeros = std::min(row, n), kept = (n - zeros) * parts;
      char* to = static_cast<char*>(r) + (i * columns + row) * n * size;
      const char* from = raw + ((i * m + row) * n + zeros) * item;
      std::memset(to, 0, zeros * size);
      narrow ? convert<float, double>(from, to + zeros * size, kept)
             : convert<double, double>(from, to + zeros * size, kept);
    }
  }
  return 0;
}

// The exchanges of `pivots` by each stack, in order, of the numbers below `size`. Exchanges with rows
// that are not there are with the first or the last one.
template <typename T>
void follow_exchanges(i64 batch, i64 k, i64 size, const T* pivots, std::int32_t* out) {
  parallel_pieces(batch, std::max<i64>(1, 16384 / (size + k + 1)), [&](i64 begin, i64 end) {
    for (i64 b = begin; b < end; ++b) {
      std::int32_t* order = out + b * size;
      for (i64 i = 0; i < size; ++i) order[i] = static_cast<std::int32_t>(i);
      for (i64 i = 0; i < k; ++i) {
        const T pivot = pivots[b * k + i];
        i64 row = 0;
        if (pivot > T{0}) {
          row = static_cast<std::uint64_t>(pivot) < static_cast<std::uint64_t>(size)
                    ? static_cast<i64>(pivot) : size - 1;
        }
        std::swap(order[i], order[row]);
      }
    }
  });
}

int permutation(i64 dtype, i64 batch, i64 k, i64 size, const void* pivots, void* out) {
  const auto run = [&](auto zero) {
    follow_exchanges(batch, k, size, static_cast<const decltype(zero)*>(pivots),
                     static_cast<std::int32_t*>(out));
    return 0;
  };
  switch (dtype) {
    case kI8: return run(std::int8_t{});
    case kI16: return run(std::int16_t{});
    case kI32: return run(std::int32_t{});
    case kI64: return run(std::int64_t{});
    case kU8: return run(std::uint8_t{});
    case kU16: return run(std::uint16_t{});
    case kU32: return run(std::uint32_t{});
    case kU64: return run(std::uint64_t{});
    default: return kUnsupported;
  }
}

}  // namespace

void register_linalg_library() {
  init_lapack();
  const auto add = [](const char* name, auto* function) {
    register_library(name, reinterpret_cast<void*>(function));
  };
  add("cholesky", &cholesky);
  add("solve", &solve);
  add("triangular_solve", &triangular_solve);
  add("det", &det);
  add("permutation", &permutation);
  add("slogdet", &slogdet);
  if (can_block()) add("lu", &lu);
  if (has_lapack(Lapack::eigh, kF64)) add("eigh", &eigh);
  if (has_lapack(Lapack::eig, kF64)) add("eig", &eig);
  if (has_lapack(Lapack::svd_full, kF64)) add("svd", &svd);
  if (has_lapack(Lapack::qr_raw, kF64)) add("qr", &qr);
}

}  // namespace functrans
