// Library functions: Hessenberg, tridiagonal and Schur forms of stacks of square matrices, and the
// triangular equations that functions of matrices need (primitives/schur.py, sylvester.py).
#include "library.h"
#include "schur.h"

#include <algorithm>
#include <complex>
#include <limits>

namespace functrans {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

template <typename To, typename From>
void convert(i64 count, const From* from, To* to) {
  std::transform(from, from + count, to, [](From x) { return static_cast<To>(x); });
}

// Calls run(number of the dtype, number in which it computes).
template <typename Run>
int with_numbers(i64 dtype, Run&& run) {
  switch (dtype) {
    case kF32: return run(0.0F, 0.0);
    case kF64: return run(0.0, 0.0);
    case kC64: return run(std::complex<float>(), std::complex<double>());
    case kC128: return run(std::complex<double>(), std::complex<double>());
    default: return 3;
  }
}

// one(i, memory) for each matrix, with memory of so many elements for each thread; `work` is about
// how many operations one takes.
template <typename Wide, typename One>
int each(i64 batch, i64 elements, double work, One&& one) {
  if (batch == 0) return 0;
  bool failed = false;
  const i64 grain = std::max<i64>(1, static_cast<i64>(50000 / (work + 1)));
  parallel_pieces(batch, grain, [&](i64 begin, i64 end) {
    Scratch scratch(elements * static_cast<i64>(sizeof(Wide)));
    if (!scratch) {
      __atomic_store_n(&failed, true, __ATOMIC_RELAXED);
      return;
    }
    for (i64 i = begin; i < end; ++i) one(i, scratch.as<Wide>());
  });
  return failed ? kOutOfMemory : 0;
}

double cube(i64 n) { return static_cast<double>(n) * n * n; }

int hessenberg_forms(i64 dtype, i64 batch, i64 n, const void* a, void* out, void* taus) {
  return with_numbers(dtype, [&](auto narrow, auto wide) {
    using N = decltype(narrow);
    using W = decltype(wide);
    return each<W>(batch, n * n + 2 * n, 3 * cube(n), [&](i64 i, W* memory) {
      W *h = memory, *t = h + n * n;
      convert(n * n, static_cast<const N*>(a) + i * n * n, h);
      hessenberg(n, n, h, t, t + n);
      convert(n * n, h, static_cast<N*>(out) + i * n * n);
      convert(n - 1, t, static_cast<N*>(taus) + i * (n - 1));
    });
  });
}

int reflected_forms(i64 dtype, i64 batch, i64 m, i64 n, const void* a, void* out, void* taus) {
  return with_numbers(dtype, [&](auto narrow, auto wide) {
    using N = decltype(narrow);
    using W = decltype(wide);
    const i64 k = std::min(m, n);
    return each<W>(batch, m * n + k + n, 2.0 * m * n * k, [&](i64 i, W* memory) {
      W *r = memory, *t = r + m * n;
      convert(m * n, static_cast<const N*>(a) + i * m * n, r);
      reflected_qr(m, n, r, t, t + k);
      convert(m * n, r, static_cast<N*>(out) + i * m * n);
      convert(k, t, static_cast<N*>(taus) + i * k);
    });
  });
}

int tridiagonal_forms(i64 dtype, i64 batch, i64 n, const void* a, void* out, void* d, void* e,
                      void* taus) {
  return with_numbers(dtype, [&](auto narrow, auto wide) {
    using N = decltype(narrow);
    using W = decltype(wide);
    using Real = decltype(std::real(narrow));
    return each<W>(batch, n * n + 5 * n, 2 * cube(n), [&](i64 i, W* memory) {
      W *h = memory, *t = h + n * n, *work = t + n;
      double *diagonal = reinterpret_cast<double*>(work + 2 * n), *below = diagonal + n;
      convert(n * n, static_cast<const N*>(a) + i * n * n, h);
      tridiagonal(n, h, diagonal, below, t, work);
      convert(n * n, h, static_cast<N*>(out) + i * n * n);
      convert(n, diagonal, static_cast<Real*>(d) + i * n);
      convert(n - 1, below, static_cast<Real*>(e) + i * (n - 1));
      convert(n - 1, t, static_cast<N*>(taus) + i * (n - 1));
    });
  });
}

int schur_forms(i64 dtype, i64 batch, i64 n, const void* a, void* t, void* z) {
  return with_numbers(dtype, [&](auto narrow, auto wide) {
    using N = decltype(narrow);
    using W = decltype(wide);
    const i64 elements = 2 * n * (n + schur_row<W>(n) + 1);
    return each<W>(batch, elements, 20 * cube(n), [&](i64 i, W* memory) {
      W *h = memory, *vectors = z == nullptr ? nullptr : h + n * n;
      convert(n * n, static_cast<const N*>(a) + i * n * n, h);
      if (!schur(n, h, vectors, h + 2 * n * n)) {
        std::fill_n(h, n * n, W(kNaN));
        if (vectors != nullptr) std::fill_n(vectors, n * n, W(kNaN));
      }
      convert(n * n, h, static_cast<N*>(t) + i * n * n);
      if (vectors != nullptr) convert(n * n, vectors, static_cast<N*>(z) + i * n * n);
    });
  });
}

int sylvester_equations(i64 dtype, i64 batch, i64 m, i64 n, i64 transposed, i64 strict,
                        const void* t, const void* s, const void* f, void* x) {
  return with_numbers(dtype, [&](auto narrow, auto wide) {
    using N = decltype(narrow);
    using W = decltype(wide);
    const i64 left = m * m, right = n * n, both = m * n;
    return each<W>(batch, 2 * left + right + 3 * both, static_cast<double>(both) * (m + n),
                   [&](i64 i, W* memory) {
      W *first = memory, *second = first + left, *third = second + right, *out = third + both;
      convert(left, static_cast<const N*>(t) + i * left, first);
      convert(right, static_cast<const N*>(s) + i * right, second);
      convert(both, static_cast<const N*>(f) + i * both, third);
      triangular_sylvester(m, n, transposed != 0, strict != 0, first, second, third, out,
                           out + both);
      convert(both, out, static_cast<N*>(x) + i * both);
    });
  });
}

int roots(i64 dtype, i64 batch, i64 n, const void* t, void* x) {
  return with_numbers(dtype, [&](auto narrow, auto wide) {
    using N = decltype(narrow);
    using W = decltype(wide);
    return each<W>(batch, 3 * n * n, cube(n), [&](i64 i, W* memory) {
      W *in = memory, *out = in + n * n;
      convert(n * n, static_cast<const N*>(t) + i * n * n, in);
      triangular_root(n, in, out, out + n * n);
      convert(n * n, out, static_cast<N*>(x) + i * n * n);
    });
  });
}

}  // namespace

void register_schur_library() {
  const auto add = [](const char* name, auto* function) {
    register_library(name, reinterpret_cast<void*>(function));
  };
  add("hessenberg", &hessenberg_forms);
  add("reflected_qr", &reflected_forms);
  add("tridiagonal", &tridiagonal_forms);
  add("schur", &schur_forms);
  add("triangular_sylvester", &sylvester_equations);
  add("triangular_root", &roots);
}

}  // namespace functrans
