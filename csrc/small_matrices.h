// Matrices of at most 16 rows, as many at a time as a vector has lanes: element (i, j) of all of
// them is one vector. Part of row_kernels.h.

template <typename T>
struct Small {
  using V = VectorOf<T>;
  using Vector = typename V::Vector;
  using Mask = typename V::Indices;
  static constexpr i64 lanes = V::lanes;

  static FUNCTRANS_INLINE Vector splat(T x) { return x - Vector{}; }
  static FUNCTRANS_INLINE Vector root(Vector x) {
    for (i64 l = 0; l < lanes; ++l) x[l] = std::sqrt(x[l]);
    return x;
  }
  static FUNCTRANS_INLINE Vector magnitude(Vector x) { return x < 0 ? -x : x; }
  static FUNCTRANS_INLINE bool any(Mask mask) {
    typename V::Index all = 0;
    for (i64 l = 0; l < lanes; ++l) all |= mask[l];
    return all != 0;
  }

  // `count` matrices of `elements`; lanes without one repeat the last.
  static void load(const T* in, i64 elements, i64 count, Vector* out) {
    T* to = reinterpret_cast<T*>(out);
    for (i64 l = 0; l < lanes; ++l) {
      const T* from = in + std::min(l, count - 1) * elements;
      for (i64 e = 0; e < elements; ++e) to[e * lanes + l] = from[e];
    }
  }
  static void store(const Vector* in, i64 elements, i64 count, T* out) {
    const T* from = reinterpret_cast<const T*>(in);
    for (i64 l = 0; l < count; ++l) {
      for (i64 e = 0; e < elements; ++e) out[l * elements + e] = from[e * lanes + l];
    }
  }

  static void cholesky(i64 n, i64 count, const void* in, void* out) {
    Vector a[kSmallMatrix * kSmallMatrix];
    load(static_cast<const T*>(in), n * n, count, a);
    Mask healthy = Mask{} == 0;
    for (i64 j = 0; j < n; ++j) {
      Vector d = a[j * n + j];
      for (i64 p = 0; p < j; ++p) d -= a[j * n + p] * a[j * n + p];
      healthy &= d > 0;
      const Vector diagonal = root(d);
      a[j * n + j] = diagonal;
      const Vector inverse = 1 / diagonal;
      for (i64 i = j + 1; i < n; ++i) {
        Vector x = a[i * n + j];
        for (i64 p = 0; p < j; ++p) x -= a[i * n + p] * a[j * n + p];
        a[i * n + j] = x * inverse;
        a[j * n + i] = Vector{};
      }
    }
    const Vector nan = splat(std::numeric_limits<T>::quiet_NaN());
    for (i64 i = 0; i < n; ++i) {
      for (i64 j = 0; j <= i; ++j) a[i * n + j] = healthy ? a[i * n + j] : nan;
    }
    store(a, n * n, count, static_cast<T*>(out));
  }

  // Elimination with partial pivoting of a (n x n), the rows of b (n x k) exchanged along; the sign
  // of the exchanges.
  static FUNCTRANS_INLINE Vector eliminate(i64 n, i64 k, Vector* a, Vector* b) {
    Vector sign = splat(1);
    for (i64 j = 0; j < n; ++j) {
      Vector largest = magnitude(a[j * n + j]);
      Mask at = Mask{} + static_cast<typename V::Index>(j);
      for (i64 i = j + 1; i < n; ++i) {
        const Vector x = magnitude(a[i * n + j]);
        const Mask larger = x > largest;
        largest = larger ? x : largest;
        at = larger ? Mask{} + static_cast<typename V::Index>(i) : at;
      }
      for (i64 i = j + 1; i < n; ++i) {
        const Mask swap = at == static_cast<typename V::Index>(i);
        if (!any(swap)) continue;
        sign = swap ? -sign : sign;
        for (i64 c = j; c < n; ++c) exchange(swap, a[j * n + c], a[i * n + c]);
        for (i64 c = 0; c < k; ++c) exchange(swap, b[j * k + c], b[i * k + c]);
      }
      const Vector pivot = a[j * n + j];
      const Vector inverse = 1 / (pivot == 0 ? splat(1) : pivot);
      for (i64 i = j + 1; i < n; ++i) {
        const Vector factor = a[i * n + j] * inverse;
        for (i64 c = j + 1; c < n; ++c) a[i * n + c] -= factor * a[j * n + c];
        for (i64 c = 0; c < k; ++c) b[i * k + c] -= factor * b[j * k + c];
      }
    }
    return sign;
  }
  static FUNCTRANS_INLINE void exchange(Mask swap, Vector& x, Vector& y) {
    const Vector kept = x;
    x = swap ? y : x;
    y = swap ? kept : y;
  }

  static void solve(i64 n, i64 k, i64 count, const void* a_in, const void* b_in, void* out) {
    Vector a[kSmallMatrix * kSmallMatrix], b[kSmallMatrix * kSmallMatrix];
    load(static_cast<const T*>(a_in), n * n, count, a);
    load(static_cast<const T*>(b_in), n * k, count, b);
    eliminate(n, k, a, b);
    for (i64 i = n - 1; i >= 0; --i) {
      for (i64 c = 0; c < k; ++c) {
        b[i * k + c] /= a[i * n + i];
        for (i64 r = 0; r < i; ++r) b[r * k + c] -= a[r * n + i] * b[i * k + c];
      }
    }
    store(b, n * k, count, static_cast<T*>(out));
  }

  static void triangular_solve(const TriangularKind& kind, i64 n, i64 k, i64 count,
                               const void* a_in, const void* b_in, void* out) {
    Vector a[kSmallMatrix * kSmallMatrix], b[kSmallMatrix * kSmallMatrix];
    load(static_cast<const T*>(a_in), n * n, count, a);
    load(static_cast<const T*>(b_in), n * k, count, b);
    // x op(a) = b is op(a)^T x^T = b^T
    const bool swapped = kind.transposed == kind.left;
    const bool lower = kind.lower != swapped;
    const i64 row = swapped ? 1 : n, column = swapped ? n : 1;
    const i64 unknown = kind.left ? k : 1, side = kind.left ? 1 : n;
    for (i64 step = 0; step < n; ++step) {
      const i64 i = lower ? step : n - 1 - step;
      const i64 begin = lower ? i + 1 : 0, end = lower ? n : i;
      const Vector diagonal = a[i * n + i];
      for (i64 c = 0; c < k; ++c) {
        Vector& x = b[i * unknown + c * side];
        if (!kind.unit) x /= diagonal;
        for (i64 r = begin; r < end; ++r) {
          b[r * unknown + c * side] -= a[r * row + i * column] * x;
        }
      }
    }
    store(b, n * k, count, static_cast<T*>(out));
  }

  // Systems of one matrix, one to a lane: columns of b next to each other, or rows of b.
  static void triangular_columns(const TriangularKind& kind, i64 n, i64 k, i64 first, i64 count,
                                 const void* a_in, const void* b_in, void* out) {
    const T* a = static_cast<const T*>(a_in);
    const T* b = static_cast<const T*>(b_in);
    T* x_out = static_cast<T*>(out);
    const i64 unknown = kind.left ? k : 1, side = kind.left ? 1 : n;
    Vector x[kSmallMatrix];
    for (i64 i = 0; i < n; ++i) {
      const T* from = b + i * unknown + first * side;
      if (kind.left && count == lanes) {
        std::memcpy(&x[i], from, sizeof x[i]);
      } else {
        for (i64 l = 0; l < lanes; ++l) x[i][l] = from[std::min(l, count - 1) * side];
      }
    }
    const bool swapped = kind.transposed == kind.left;
    const bool lower = kind.lower != swapped;
    const i64 row = swapped ? 1 : n, column = swapped ? n : 1;
    for (i64 step = 0; step < n; ++step) {
      const i64 i = lower ? step : n - 1 - step;
      const i64 begin = lower ? i + 1 : 0, end = lower ? n : i;
      if (!kind.unit) x[i] /= splat(a[i * n + i]);
      for (i64 r = begin; r < end; ++r) x[r] -= a[r * row + i * column] * x[i];
    }
    for (i64 i = 0; i < n; ++i) {
      T* to = x_out + i * unknown + first * side;
      if (kind.left && count == lanes) {
        std::memcpy(to, &x[i], sizeof x[i]);
      } else {
        for (i64 l = 0; l < count; ++l) to[l * side] = x[i][l];
      }
    }
  }

  // The determinant; or, where `log` is not null, its sign and the logarithm of its modulus.
  static void det(i64 n, i64 count, const void* in, void* out, void* log) {
    Vector a[kSmallMatrix * kSmallMatrix];
    load(static_cast<const T*>(in), n * n, count, a);
    Vector product = eliminate(n, 0, a, nullptr);
    if (log == nullptr) {
      for (i64 i = 0; i < n; ++i) product *= a[i * n + i];
      store(&product, 1, count, static_cast<T*>(out));
      return;
    }
    for (i64 l = 0; l < count; ++l) {
      double mantissa = 1, sign = product[l];
      i64 exponent = 0;
      for (i64 i = 0; i < n; ++i) {
        int power;
        mantissa *= std::frexp(static_cast<double>(a[i * n + i][l]), &power);
        exponent += power;
      }
      sign = mantissa > 0 ? sign : mantissa < 0 ? -sign : mantissa;
      const double value = std::log(std::abs(mantissa)) + exponent * 0.693147180559945309417;
      static_cast<T*>(out)[l] = static_cast<T>(sign);
      static_cast<T*>(log)[l] = static_cast<T>(value);
    }
  }
};
