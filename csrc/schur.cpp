#include "schur.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <type_traits>
#include <utility>

namespace functrans {
namespace {

using Complex = std::complex<double>;

constexpr double kEpsilon = std::numeric_limits<double>::epsilon();
constexpr double kTiny = std::numeric_limits<double>::min();
constexpr i64 kStalled = 10;    // steps without deflation after which shifts are exceptional
constexpr i64 kMostSteps = 30;  // for each eigenvalue

// Products without the special cases of C's for infinities, which cost a call.
inline double times(double x, double y) { return x * y; }
inline Complex times(Complex x, Complex y) {
  return {x.real() * y.real() - x.imag() * y.imag(), x.real() * y.imag() + x.imag() * y.real()};
}
inline double conjugate(double x) { return x; }
inline Complex conjugate(Complex x) { return std::conj(x); }
inline double size(double x) { return std::fabs(x); }
inline double size(Complex x) { return std::fabs(x.real()) + std::fabs(x.imag()); }
inline double real_part(double x) { return x; }
inline double real_part(Complex x) { return x.real(); }
inline double squared(double x) { return x * x; }
inline double squared(Complex x) { return x.real() * x.real() + x.imag() * x.imag(); }

// y += a x
template <typename T>
inline void axpy(i64 n, T a, const T* x, T* y) {
  for (i64 i = 0; i < n; ++i) y[i] += times(a, x[i]);
}

// The reflector H = 1 - tau v v*, v[0] = 1, with H* x = (beta, 0, ...) and a real beta. Elements of x
// stand `step` apart; x[0] becomes beta and the others v.
template <typename T>
T reflector(i64 n, T* x, i64 step) {
  double rest = 0, scale = 0;
  for (i64 i = 1; i < n; ++i) scale = std::max(scale, size(x[i * step]));
  const double imaginary = std::imag(Complex(x[0]));
  if (scale == 0 && imaginary == 0) return T{};
  scale = std::max(scale, size(x[0]));
  if (!(scale <= std::numeric_limits<double>::max())) {
    scale = 1;
  } else {  // a power of two, so that nothing is rounded
    scale = std::ldexp(1.0, std::clamp(std::ilogb(scale), -1000, 1000));
  }
  for (i64 i = 1; i < n; ++i) rest += squared(x[i * step] / scale);
  const T alpha = x[0] / scale;
  const double norm = std::sqrt(squared(alpha) + rest);
  const double beta = real_part(alpha) >= 0 ? -norm : norm;
  const T tau = (beta - alpha) / beta;
  const T divisor = T(1) / (alpha - beta);
  for (i64 i = 1; i < n; ++i) x[i * step] = times(x[i * step] / scale, divisor);
  x[0] = beta * scale;
  return tau;
}

// Rows of b, of `columns` elements: b -= tau v (v* b), v in a column of a whose first element is 1.
template <typename T>
void reflect_rows(i64 rows, i64 columns, T tau, const T* v, i64 step, T* b, i64 row, T* work) {
  if (tau == T{}) return;
  std::copy_n(b, columns, work);
  for (i64 i = 1; i < rows; ++i) axpy(columns, conjugate(v[i * step]), b + i * row, work);
  axpy(columns, -tau, work, b);
  for (i64 i = 1; i < rows; ++i) axpy(columns, -times(tau, v[i * step]), work, b + i * row);
}

// b -= tau (b v) v*
template <typename T>
void reflect_columns(i64 rows, i64 columns, T tau, const T* v, T* b, i64 row) {
  if (tau == T{}) return;
  for (i64 i = 0; i < rows; ++i) {
    T* line = b + i * row;
    T sums[4] = {};
    i64 j = 0;
    for (; j + 4 <= columns; j += 4) {
      for (i64 u = 0; u < 4; ++u) sums[u] += times(line[j + u], v[j + u]);
    }
    for (; j < columns; ++j) sums[0] += times(line[j], v[j]);
    const T sum = times(tau, (sums[0] + sums[1]) + (sums[2] + sums[3]));
    for (j = 0; j < columns; ++j) line[j] -= times(sum, conjugate(v[j]));
  }
}

}  // namespace

template <typename T>
void hessenberg(i64 n, i64 row, T* a, T* taus, T* work) {
  for (i64 k = 0; k + 1 < n; ++k) {
    T* column = a + (k + 1) * row + k;
    const i64 count = n - k - 1;
    const T tau = taus[k] = reflector(count, column, row);
    // gathered with its one; the columns right of k first, then rows from the left by H*
    work[0] = 1;
    for (i64 i = 1; i < count; ++i) work[i] = column[i * row];
    reflect_columns(n, count, tau, work, a + k + 1, row);
    reflect_rows(count, count, conjugate(tau), column, row, a + (k + 1) * row + k + 1, row, work);
  }
}

template <typename T>
void reflected_qr(i64 m, i64 n, T* a, T* taus, T* work) {
  for (i64 k = 0; k < std::min(m, n); ++k) {
    T* column = a + k * n + k;
    taus[k] = reflector(m - k, column, n);
    reflect_rows(m - k, n - k - 1, conjugate(taus[k]), column, n, column + 1, n, work);
  }
}

template <typename T>
void tridiagonal(i64 n, T* a, double* d, double* e, T* taus, T* work) {
  T *v = work, *w = work + n;
  for (i64 k = 0; k < n; ++k) d[k] = real_part(a[k * n + k]);
  for (i64 k = 0; k + 1 < n; ++k) {
    T* column = a + (k + 1) * n + k;
    T* rest = column + 1;
    const i64 count = n - k - 1;
    const T tau = taus[k] = reflector(count, column, n);
    e[k] = real_part(column[0]);
    if (tau != T{}) {
      // w = tau A v - (tau / 2) (w* v) v, and A -= v w* + w v*, of which the lower triangle is kept
      v[0] = 1;
      for (i64 i = 1; i < count; ++i) v[i] = column[i * n];
      std::fill_n(w, count, T{});
      for (i64 i = 0; i < count; ++i) {
        const T* line = rest + i * n;
        T sum = times(T(real_part(line[i])), v[i]);
        for (i64 j = 0; j < i; ++j) {
          sum += times(line[j], v[j]);
          w[j] += times(conjugate(line[j]), v[i]);
        }
        w[i] += sum;
      }
      T inner{};
      for (i64 i = 0; i < count; ++i) {
        w[i] = times(tau, w[i]);
        inner += times(conjugate(w[i]), v[i]);
      }
      axpy(count, times(tau, inner) * -0.5, v, w);
      for (i64 i = 0; i < count; ++i) {
        T* line = rest + i * n;
        for (i64 j = 0; j <= i; ++j) {
          line[j] -= times(v[i], conjugate(w[j])) + times(w[i], conjugate(v[j]));
        }
      }
    }
    d[k + 1] = real_part(rest[0]);
    rest[0] = d[k + 1];
  }
}

namespace {

// Whether the subdiagonal element of row k is negligible: M. Ahues and F. Tisseur, A new deflation
// criterion for the QR algorithm, LAPACK Working Note 122 (1997).
template <typename T>
bool negligible(i64 n, i64 row, i64 k, const T* h, i64 first, i64 last) {
  const double below = size(h[k * row + k - 1]);
  const double small = kTiny * (static_cast<double>(n) / kEpsilon);
  if (below <= small) return true;
  const double upper = size(h[(k - 1) * row + k - 1]), lower = size(h[k * row + k]);
  double around = upper + lower;
  if (around == 0) {
    if (k - 2 >= first) around += size(h[(k - 1) * row + k - 2]);
    if (k + 1 <= last) around += size(h[(k + 1) * row + k]);
  }
  if (below > kEpsilon * around) return false;
  const double above = size(h[(k - 1) * row + k]);
  const double gap = size(h[(k - 1) * row + k - 1] - h[k * row + k]);
  const double ab = std::max(below, above), ba = std::min(below, above);
  const double aa = std::max(lower, gap), bb = std::min(lower, gap), s = aa + ab;
  return ba * (ab / s) <= std::max(small, kEpsilon * (bb * (aa / s)));
}

// Rows p and q of `count` elements by the rotation (c, s; -conj(s), c).
template <typename T>
inline void rotate(i64 count, double c, T s, T* p, T* q) {
  const T minus = -conjugate(s);
  for (i64 j = 0; j < count; ++j) {
    const T x = p[j], y = q[j];
    p[j] = c * x + times(s, y);
    q[j] = times(minus, x) + c * y;
  }
}

// Columns j and j + 1 of rows 0 to count - 1, by the adjoint from the right.
template <typename T>
inline void rotate_columns(i64 row, i64 count, double c, T s, T* p) {
  const T adjoint = conjugate(s);
  for (i64 i = 0; i < count; ++i, p += row) {
    const T x = p[0], y = p[1];
    p[0] = c * x + times(adjoint, y);
    p[1] = c * y - times(s, x);
  }
}

// zt holds the transpose of Z: what the columns of Z undergo, its rows do.
template <typename T>
inline void rotate_vectors(i64 n, i64 row, double c, T s, T* zt, i64 k) {
  if (zt != nullptr) rotate(n, c, conjugate(s), zt + k * row, zt + (k + 1) * row);
}

// The block (a, b; c, d) to a triangle, or to equal diagonals with b c < 0, by the rotation (c, s).
struct Block {
  double a, b, c, d, cosine = 1, sine = 0;

  void rotate_by(double co, double si) {
    const double aa = a * co + b * si, bb = b * co - a * si, cc = c * co + d * si,
                 dd = d * co - c * si;
    a = aa * co + cc * si;
    b = bb * co + dd * si;
    c = cc * co - aa * si;
    d = dd * co - bb * si;
    const double before = cosine;
    cosine = before * co - sine * si;
    sine = sine * co + before * si;
  }

  void standardise() {
    if (c == 0) return;
    if (b == 0) {  // exchanged it is upper
      std::swap(a, d);
      b = -c;
      c = 0;
      cosine = 0;
      sine = 1;
      return;
    }
    const bool opposite = std::signbit(b) != std::signbit(c);
    if (a == d && opposite) return;
    const double half = 0.5 * (a - d);
    const double most = std::max(std::fabs(b), std::fabs(c));
    const double least = std::min(std::fabs(b), std::fabs(c)) * (opposite ? -1 : 1);
    const double scale = std::max(std::fabs(half), most);
    const double discriminant = half / scale * half + most / scale * least;
    if (discriminant >= 4 * kEpsilon) {  // two real eigenvalues
      const double root = std::sqrt(scale) * std::sqrt(discriminant);
      const double z = half + std::copysign(root, half);
      const double length = std::hypot(c, z);
      a = d + z;
      d -= most / z * least;
      b -= c;
      cosine = z / length;
      sine = c / length;
      c = 0;
      return;
    }
    // a complex pair, or two that are nearly equal: make the diagonal equal
    const double sum = b + c, length = std::hypot(sum, a - d);
    const double co = std::sqrt(0.5 * (1 + std::fabs(sum) / length));
    rotate_by(co, -(half / (length * co)) * std::copysign(1.0, sum));
    a = d = 0.5 * (a + d);
    if (c == 0) return;
    if (b == 0) {
      b = -c;
      c = 0;
      const double before = cosine;
      cosine = -sine;
      sine = before;
    } else if (std::signbit(b) == std::signbit(c)) {  // nearly equal, but real
      const double rb = std::sqrt(std::fabs(b)), rc = std::sqrt(std::fabs(c));
      const double p = std::copysign(rb * rc, c), norm = 1 / std::sqrt(std::fabs(b + c));
      a += p;
      d -= p;
      b -= c;
      c = 0;
      const double before = cosine;
      cosine = before * (rb * norm) - sine * (rc * norm);
      sine = before * (rc * norm) + sine * (rb * norm);
    }
  }
};

void standardise(i64 n, i64 row, i64 i, double* h, double* zt) {  // rows i - 1 and i
  double *corner = h + (i - 1) * row + i - 1, *below = corner + row;
  Block block{corner[0], corner[1], below[0], below[1]};
  block.standardise();
  rotate(n - i - 1, block.cosine, block.sine, corner + 2, below + 2);
  rotate_columns(row, i - 1, block.cosine, block.sine, h + i - 1);
  rotate_vectors(n, row, block.cosine, block.sine, zt, i - 1);
  corner[0] = block.a;
  corner[1] = block.b;
  below[0] = block.c;
  below[1] = block.d;
}

// One step of Francis with the two eigenvalues of a 2 x 2 block as shifts on rows first to last; at
// `stalled` steps without deflation with other shifts.
void step(i64 n, i64 row, i64 first, i64 last, i64 stalled, double* h, double* zt) {
  const auto at = [&](i64 r, i64 c) -> double& { return h[r * row + c]; };
  double h11, h12, h21, h22;
  if (stalled > 0 && stalled % kStalled == 0) {
    const bool below = stalled % (2 * kStalled) == 0;
    const double s = below ? std::fabs(at(last, last - 1)) + std::fabs(at(last - 1, last - 2))
                           : std::fabs(at(first + 1, first)) + std::fabs(at(first + 2, first + 1));
    h11 = h22 = 0.75 * s + (below ? at(last, last) : at(first, first));
    h12 = -0.4375 * s;
    h21 = s;
  } else {
    h11 = at(last - 1, last - 1), h12 = at(last - 1, last);
    h21 = at(last, last - 1), h22 = at(last, last);
  }
  double re1 = 0, im1 = 0, re2 = 0, im2 = 0;
  const double scale = std::fabs(h11) + std::fabs(h12) + std::fabs(h21) + std::fabs(h22);
  if (scale > 0) {
    const double mean = 0.5 * (h11 / scale + h22 / scale), apart = h11 / scale - mean;
    const double det = -apart * apart - h12 / scale * (h21 / scale);
    const double root = std::sqrt(std::fabs(det));
    if (det >= 0) {
      re1 = re2 = mean * scale;
      im1 = root * scale;
      im2 = -im1;
    } else {  // real: twice the one that is nearer to the last element
      const double one = (mean + root) * scale, two = (mean - root) * scale;
      re1 = re2 = std::fabs(one - h22) <= std::fabs(two - h22) ? one : two;
    }
  }
  double v[3] = {};
  i64 start = last - 2;
  for (;; --start) {  // the last row where two small subdiagonals in a row let the bulge begin
    const double below = at(start + 1, start), corner = at(start, start);
    const double s = std::fabs(corner - re2) + std::fabs(im2) + std::fabs(below);
    const double ratio = below / s;
    v[0] = ratio * at(start, start + 1) + (corner - re1) * ((corner - re2) / s) - im1 * (im2 / s);
    v[1] = ratio * (corner + at(start + 1, start + 1) - re1 - re2);
    v[2] = ratio * at(start + 2, start + 1);
    const double norm = std::fabs(v[0]) + std::fabs(v[1]) + std::fabs(v[2]);
    for (double& x : v) x /= norm;
    if (start == first) break;
    const double around = std::fabs(at(start - 1, start - 1)) + std::fabs(corner) +
                          std::fabs(at(start + 1, start + 1));
    if (std::fabs(at(start, start - 1)) * (std::fabs(v[1]) + std::fabs(v[2])) <=
        kEpsilon * std::fabs(v[0]) * around) break;
  }
  for (i64 k = start; k < last; ++k) {
    const i64 count = std::min<i64>(3, last - k + 1);
    if (k > start) {
      for (i64 r = 0; r < count; ++r) v[r] = at(k + r, k - 1);
    }
    const double tau = reflector(count, v, 1);
    if (k > start) {
      at(k, k - 1) = v[0];
      for (i64 r = 1; r < count; ++r) at(k + r, k - 1) = 0;
    } else if (start > first) {
      at(k, k - 1) *= 1 - tau;  // not negated: the two small elements have an error here
    }
    const double v1 = v[1], v2 = v[2];
    double *p = h + k * row, *q = p + row;
    double *zp = zt == nullptr ? nullptr : zt + k * row, *zq = zp == nullptr ? zp : zp + row;
    if (count == 3) {
      const auto rows = [&](double* x, double* y, double* z, i64 from) {
        for (i64 j = from; j < n; ++j) {
          const double sum = tau * (x[j] + v1 * y[j] + v2 * z[j]);
          x[j] -= sum;
          y[j] -= sum * v1;
          z[j] -= sum * v2;
        }
      };
      rows(p, q, q + row, k);
      double* column = h + k;
      for (i64 i = 0, stop = std::min(k + 3, last); i <= stop; ++i, column += row) {
        const double sum = tau * (column[0] + v1 * column[1] + v2 * column[2]);
        column[0] -= sum;
        column[1] -= sum * v1;
        column[2] -= sum * v2;
      }
      if (zt != nullptr) rows(zp, zq, zq + row, 0);
    } else {
      const auto rows = [&](double* x, double* y, i64 from) {
        for (i64 j = from; j < n; ++j) {
          const double sum = tau * (x[j] + v1 * y[j]);
          x[j] -= sum;
          y[j] -= sum * v1;
        }
      };
      rows(p, q, k);
      double* column = h + k;
      for (i64 i = 0; i <= last; ++i, column += row) {
        const double sum = tau * (column[0] + v1 * column[1]);
        column[0] -= sum;
        column[1] -= sum * v1;
      }
      if (zt != nullptr) rows(zp, zq, 0);
    }
  }
}

void standardise(i64, i64, i64, Complex*, Complex*) {}

// The eigenvalue of the last 2 x 2 block that is nearer to its last element (Wilkinson's shift).
Complex shift_of(Complex a, Complex b, Complex c, Complex d) {
  const Complex root = times(std::sqrt(b), std::sqrt(c));
  if (size(root) == 0) return d;
  const Complex half = 0.5 * (a - d);
  const double s = std::max(size(root), size(half));
  Complex y = s * std::sqrt(times(half / s, half / s) + times(root / s, root / s));
  if (half.real() * y.real() + half.imag() * y.imag() < 0) y = -y;
  return d - times(root, root / (half + y));
}

void step(i64 n, i64 row, i64 first, i64 last, i64 stalled, Complex* h, Complex* zt) {
  const auto at = [&](i64 r, i64 c) -> Complex& { return h[r * row + c]; };
  Complex shift;
  if (stalled > 0 && stalled % kStalled == 0) {
    shift = stalled % (2 * kStalled) == 0 ? at(last, last) + 0.75 * size(at(last, last - 1))
                                          : at(first, first) + 0.75 * size(at(first + 1, first));
  } else {
    shift = shift_of(at(last - 1, last - 1), at(last - 1, last), at(last, last - 1), at(last, last));
  }
  for (i64 k = first; k < last; ++k) {
    const Complex x = k == first ? at(k, k) - shift : at(k, k - 1);
    const Complex y = k == first ? at(k + 1, k) : at(k + 1, k - 1);
    const double scale = std::max(size(x), size(y));
    double c = 1;
    Complex s = 0, r = x;
    if (size(y) != 0) {  // (c, s; -conj(s), c) (x, y) = (r, 0)
      const Complex xs = x / scale, ys = y / scale;
      const double nx = std::sqrt(squared(xs)), norm = std::sqrt(squared(xs) + squared(ys));
      const Complex phase = nx == 0 ? Complex(1) : xs / nx;
      c = nx / norm;
      s = times(phase, std::conj(ys)) / norm;
      r = phase * (norm * scale);
    }
    if (k > first) {
      at(k, k - 1) = r;
      at(k + 1, k - 1) = 0;
    }
    rotate(n - k, c, s, h + k * row + k, h + (k + 1) * row + k);
    rotate_columns(row, std::min(k + 2, last) + 1, c, s, h + k);
    rotate_vectors(n, row, c, s, zt, k);
  }
}

}  // namespace

template <typename T>
i64 schur_row(i64 n) {
  constexpr i64 line = 64 / sizeof(T);
  const i64 lines = (n + line - 1) / line;
  return n < 8 ? n : (lines | 1) * line;
}

template <typename T>
bool schur(i64 n, T* a, T* z, T* work) {
  constexpr i64 block = std::is_same_v<T, double> ? 2 : 1;
  const i64 row = schur_row<T>(n);
  T *h = work, *zt = z == nullptr ? nullptr : h + n * row, *taus = h + 2 * n * row,
    *memory = taus + n;
  for (i64 i = 0; i < n * n; ++i) {
    if (!std::isfinite(size(a[i]))) return false;
  }
  for (i64 i = 0; i < n; ++i) std::copy_n(a + i * n, n, h + i * row);
  hessenberg(n, row, h, taus, memory);
  if (z != nullptr) {
    std::fill_n(z, n * n, T{});
    for (i64 i = 0; i < n; ++i) z[i * n + i] = 1;
    for (i64 k = n - 2; k >= 0; --k) {
      const i64 count = n - k - 1;
      reflect_rows(count, count, taus[k], h + (k + 1) * row + k, row, z + (k + 1) * n + k + 1, n,
                   memory);
    }
    for (i64 i = 0; i < n; ++i) {
      for (i64 j = 0; j < n; ++j) zt[j * row + i] = z[i * n + j];
    }
  }
  for (i64 i = 2; i < n; ++i) std::fill_n(h + i * row, i - 1, T{});
  i64 last = n - 1, stalled = 0, left = kMostSteps * std::max<i64>(n, 10);
  while (last >= 0) {
    i64 first = last;
    while (first > 0 && !negligible(n, row, first, h, 0, last)) --first;
    if (first > 0) h[first * row + first - 1] = T{};
    if (last - first < block) {
      if (last > first) standardise(n, row, last, h, zt);
      last = first - 1;
      stalled = 0;
      continue;
    }
    if (left-- == 0) return false;
    step(n, row, first, last, stalled++, h, zt);
  }
  for (i64 i = 0; i < n; ++i) {
    std::copy_n(h + i * row, n, a + i * n);
    for (i64 j = 0; z != nullptr && j < n; ++j) z[i * n + j] = zt[j * row + i];
  }
  return true;
}

template <typename T>
void triangular_sylvester(i64 m, i64 n, bool transposed, bool strict, const T* t, const T* s,
                          const T* f, T* x, T* work) {
  // rows of `lines` are columns of t where these are subtracted; those of `xt` are columns of x
  T *lines = work, *xt = work + m * m;
  for (i64 i = 0; i < m; ++i) {
    for (i64 j = 0; j < m; ++j) lines[i * m + j] = transposed ? t[i * m + j] : t[j * m + i];
  }
  for (i64 j = 0; j < n; ++j) {
    for (i64 i = 0; i < m; ++i) xt[j * m + i] = strict && i <= j ? T{} : f[i * n + j];
  }
  for (i64 step = 0; step < n; ++step) {
    const i64 j = transposed ? n - 1 - step : step;
    const i64 low = strict ? j + 1 : 0;
    if (low >= m) continue;
    T* column = xt + j * m;
    for (i64 k = transposed ? j + 1 : 0; k < (transposed ? n : j); ++k) {
      axpy(m - low, -(transposed ? s[j * n + k] : s[k * n + j]), xt + k * m + low, column + low);
    }
    const T shift = s[j * n + j];
    for (i64 count = 0; count < m - low; ++count) {
      const i64 i = transposed ? low + count : m - 1 - count;
      const T* line = lines + i * m;
      if (column[i] != T{}) column[i] /= line[i] + shift;  // not 0 / 0 where any number will do
      if (transposed) {
        axpy(m - i - 1, -column[i], line + i + 1, column + i + 1);
      } else {
        axpy(i - low, -column[i], line + low, column + low);
      }
    }
  }
  for (i64 i = 0; i < m; ++i) {
    for (i64 j = 0; j < n; ++j) x[i * n + j] = xt[j * m + i];
  }
}

template <typename T>
void triangular_root(i64 n, const T* t, T* x, T* work) {
  T* xt = work;  // rows are columns of x
  for (i64 j = 0; j < n; ++j) {
    T* column = xt + j * n;
    for (i64 i = 0; i < n; ++i) column[i] = i > j ? T{} : t[i * n + j];
    column[j] = std::sqrt(column[j]);
    for (i64 i = j - 1; i >= 0; --i) {
      const T sum = xt[i * n + i] + column[j];
      // 0 / 0 of a multiple eigenvalue 0: where there is a root at all, any number will do
      column[i] = column[i] == T{} ? T{} : column[i] / sum;
      axpy(i, -column[i], xt + i * n, column);
    }
  }
  for (i64 i = 0; i < n; ++i) {
    for (i64 j = 0; j < n; ++j) x[i * n + j] = xt[j * n + i];
  }
}

#define FUNCTRANS_INSTANTIATE(T)                                                     \
  template void hessenberg(i64, i64, T*, T*, T*);                                    \
  template i64 schur_row<T>(i64);                                                    \
  template void reflected_qr(i64, i64, T*, T*, T*);                                  \
  template void tridiagonal(i64, T*, double*, double*, T*, T*);                      \
  template bool schur(i64, T*, T*, T*);                                              \
  template void triangular_sylvester(i64, i64, bool, bool, const T*, const T*, const T*, T*, T*); \
  template void triangular_root(i64, const T*, T*, T*)
FUNCTRANS_INSTANTIATE(double);
FUNCTRANS_INSTANTIATE(Complex);

}  // namespace functrans
