// Fourier transforms of as many lines as a vector has lanes: point i of all of them is a vector of
// real parts and one of imaginary parts. Compiled for each instruction set (fft_avx512.cpp ...).
// Passes are those of Stockham's autosort algorithm (Cochran et al. 1967; C. Van Loan,
// Computational Frameworks for the Fast Fourier Transform, 1992, section 1.7).

template <typename T>
struct Fft {
  static constexpr int lanes = kVectorBytes / sizeof(T);
  typedef T Vector __attribute__((vector_size(kVectorBytes)));
  using Integer = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;
  typedef Integer Places __attribute__((vector_size(kVectorBytes)));

  struct Number {
    Vector re, im;
  };

  static FUNCTRANS_INLINE Vector splat(T x) { return x - Vector{}; }

  template <int... L>
  static FUNCTRANS_INLINE Vector shuffled(Vector a, Vector b, std::integer_sequence<int, L...>) {
#if defined(__clang__)
    return __builtin_shufflevector(a, b, L...);
#else
    return __builtin_shuffle(a, b, Places{L...});
#endif
  }
  template <int... L>
  static constexpr auto low(std::integer_sequence<int, L...>) {
    return std::integer_sequence<int, (L % 2 * lanes + L / 2)...>();
  }
  template <int... L>
  static constexpr auto high(std::integer_sequence<int, L...>) {
    return std::integer_sequence<int, (L % 2 * lanes + (L + lanes) / 2)...>();
  }
  template <int First, int... L>
  static constexpr auto every_other(std::integer_sequence<int, L...>) {
    return std::integer_sequence<int, (2 * L + First)...>();
  }
  using All = std::make_integer_sequence<int, lanes>;
  static FUNCTRANS_INLINE Vector low_halves(Vector a, Vector b) { return shuffled(a, b, low(All())); }
  static FUNCTRANS_INLINE Vector high_halves(Vector a, Vector b) {
    return shuffled(a, b, high(All()));
  }

  // A square of numbers: interleaving halves as often as two divides its side transposes it.
  static FUNCTRANS_INLINE void transpose(Vector* x) {
    Vector y[lanes];
    for (int size = 1; size < lanes; size *= 2) {
      for (int i = 0; i < lanes / 2; ++i) {
        y[2 * i] = low_halves(x[i], x[i + lanes / 2]);
        y[2 * i + 1] = high_halves(x[i], x[i + lanes / 2]);
      }
      for (int i = 0; i < lanes; ++i) x[i] = y[i];
    }
  }

  // ---------------------------------------------------------------- in and out

  static void load_lines(const FftGroup<T>& g, i64 points, Vector* to) {
    const int re = g.exchanged_in, im = 1 - re;
    i64 i = 0;
    for (; i + lanes / 2 <= points; i += lanes / 2) {
      Vector x[lanes];
      for (int l = 0; l < lanes; ++l) {
        std::memcpy(&x[l], g.in.data + 2 * (std::min<i64>(l, g.count - 1) * g.in.line + i),
                    sizeof(Vector));
      }
      transpose(x);
      for (int k = 0; k < lanes / 2; ++k) {
        to[2 * (i + k) + re] = x[2 * k];
        to[2 * (i + k) + im] = x[2 * k + 1];
      }
    }
    for (; i < points; ++i) {
      for (int l = 0; l < lanes; ++l) {
        const T* from = g.in.data + 2 * (std::min<i64>(l, g.count - 1) * g.in.line + i);
        to[2 * i + re][l] = from[0];
        to[2 * i + im][l] = from[1];
      }
    }
  }

  static void load_columns(const FftGroup<T>& g, i64 points, Vector* to) {
    const int re = g.exchanged_in, im = 1 - re;
    for (i64 i = 0; i < points; ++i) {
      const T* from = g.in.data + 2 * i * g.in.point;
      Vector x[2] = {Vector{}, Vector{}};
      std::memcpy(x, from, g.count == lanes ? sizeof x : 2 * g.count * sizeof(T));
      to[2 * i + re] = shuffled(x[0], x[1], every_other<0>(All()));
      to[2 * i + im] = shuffled(x[0], x[1], every_other<1>(All()));
    }
  }

  static void store_lines(const FftGroup<T>& g, i64 points, const Vector* from) {
    const int re = g.exchanged_out, im = 1 - re;
    const Vector scale = splat(g.scale);
    i64 i = 0;
    for (; i + lanes / 2 <= points; i += lanes / 2) {
      Vector x[lanes];
      for (int k = 0; k < lanes / 2; ++k) {
        x[2 * k] = from[2 * (i + k) + re] * scale;
        x[2 * k + 1] = from[2 * (i + k) + im] * scale;
      }
      transpose(x);
      for (i64 l = 0; l < g.count; ++l) {
        std::memcpy(g.out.data + 2 * (l * g.out.line + i), &x[l], sizeof(Vector));
      }
    }
    for (; i < points; ++i) {
      for (i64 l = 0; l < g.count; ++l) {
        T* to = g.out.data + 2 * (l * g.out.line + i);
        to[0] = from[2 * i + re][l] * g.scale;
        to[1] = from[2 * i + im][l] * g.scale;
      }
    }
  }

  static void store_columns(const FftGroup<T>& g, i64 points, const Vector* from) {
    const int re = g.exchanged_out, im = 1 - re;
    const Vector scale = splat(g.scale);
    for (i64 i = 0; i < points; ++i) {
      const Vector real = from[2 * i + re] * scale, imag = from[2 * i + im] * scale;
      const Vector x[2] = {low_halves(real, imag), high_halves(real, imag)};
      std::memcpy(g.out.data + 2 * i * g.out.point, x,
                  g.count == lanes ? sizeof x : 2 * g.count * sizeof(T));
    }
  }

  // ---------------------------------------------------------------- passes

  static FUNCTRANS_INLINE Number times(Number x, T re, T im) {
    return {x.re * re - x.im * im, x.re * im + x.im * re};
  }
  static FUNCTRANS_INLINE Number sum(Number x, Number y) { return {x.re + y.re, x.im + y.im}; }
  static FUNCTRANS_INLINE Number difference(Number x, Number y) {
    return {x.re - y.re, x.im - y.im};
  }
  static FUNCTRANS_INLINE Number minus_i(Number x) { return {x.im, -x.re}; }

  template <int Radix>
  struct Turns {
    T cosine[Radix], sine[Radix];
    Turns() {
      constexpr long double turn = 6.283185307179586476925286766559005768L;
      for (int k = 0; k < Radix; ++k) {
        cosine[k] = static_cast<T>(std::cos(turn * k / Radix));
        sine[k] = static_cast<T>(std::sin(turn * k / Radix));
      }
    }
  };

  template <int Radix>
  static FUNCTRANS_INLINE void butterfly(Number* x, const Turns<Radix>& turns) {
    if constexpr (Radix == 2) {
      const Number a = x[0];
      x[0] = sum(a, x[1]);
      x[1] = difference(a, x[1]);
    } else if constexpr (Radix == 4) {
      const Number a = sum(x[0], x[2]), b = difference(x[0], x[2]);
      const Number c = sum(x[1], x[3]), d = minus_i(difference(x[1], x[3]));
      x[0] = sum(a, c);
      x[1] = sum(b, d);
      x[2] = difference(a, c);
      x[3] = difference(b, d);
    } else {  // an odd one: of two terms with opposite angles the sum and the difference are shared
      constexpr int half = Radix / 2;
      Number plus[half], minus[half], total = x[0];
      for (int j = 0; j < half; ++j) {
        plus[j] = sum(x[j + 1], x[Radix - 1 - j]);
        minus[j] = minus_i(difference(x[j + 1], x[Radix - 1 - j]));
        total = sum(total, plus[j]);
      }
      const Number first = x[0];
      x[0] = total;
      for (int k = 1; k <= half; ++k) {
        Number even = first, odd = {Vector{}, Vector{}};
        for (int j = 0; j < half; ++j) {
          const int turn = (j + 1) * k % Radix;
          even.re += plus[j].re * turns.cosine[turn];
          even.im += plus[j].im * turns.cosine[turn];
          odd.re += minus[j].re * turns.sine[turn];
          odd.im += minus[j].im * turns.sine[turn];
        }
        x[k] = sum(even, odd);
        x[Radix - k] = difference(even, odd);
      }
    }
  }

  // Blocks of `step` neighbours; `points` are those of a block's transform.
  template <int Radix>
  static void pass(i64 points, i64 step, const T* roots, const Vector* from, Vector* to) {
    static const Turns<Radix> turns;
    const i64 m = points / Radix;
    for (i64 p = 0; p < m; ++p, roots += 2 * (Radix - 1)) {
      for (i64 q = 0; q < step; ++q) {
        Number x[Radix];
        for (int j = 0; j < Radix; ++j) {
          const Vector* at = from + 2 * (q + step * (p + j * m));
          x[j] = {at[0], at[1]};
        }
        butterfly<Radix>(x, turns);
        for (int k = 0; k < Radix; ++k) {
          // a root of 1 would make NaN of infinity
          const Number y = k == 0 || p == 0 ? x[k]
                                            : times(x[k], roots[2 * k - 2], roots[2 * k - 1]);
          Vector* at = to + 2 * (q + step * (Radix * p + k));
          at[0] = y.re;
          at[1] = y.im;
        }
      }
    }
  }

  // All passes, between two buffers; the results are in the first when it returns.
  static void passes(const FftPlan<T>& plan, Vector*& x, Vector*& y) {
    i64 points = plan.points, step = 1;
    const T* roots = plan.roots.data();
    for (const int radix : plan.radices) {
      switch (radix) {
        case 2: pass<2>(points, step, roots, x, y); break;
        case 3: pass<3>(points, step, roots, x, y); break;
        case 4: pass<4>(points, step, roots, x, y); break;
        case 5: pass<5>(points, step, roots, x, y); break;
        case 7: pass<7>(points, step, roots, x, y); break;
        case 11: pass<11>(points, step, roots, x, y); break;
        default: pass<13>(points, step, roots, x, y); break;
      }
      std::swap(x, y);
      points /= radix;
      roots += 2 * points * (radix - 1);
      step *= radix;
    }
  }

  // ---------------------------------------------------------------- real lines

  // Points 0 ... n of the transform of 2 n real numbers, from that of n complex ones.
  static void real_from_complex(const FftPlan<T>& plan, const Vector* z, Vector* x) {
    const i64 n = plan.points;
    for (i64 k = 1; k < n; ++k) {
      const Vector *a = z + 2 * k, *b = z + 2 * (n - k);
      const T c = plan.halves[2 * k], s = plan.halves[2 * k + 1];
      const Vector re = T(0.5) * (a[0] + b[0]), im = T(0.5) * (a[1] - b[1]);
      const Vector odd_re = T(0.5) * (a[1] + b[1]), odd_im = T(0.5) * (b[0] - a[0]);
      x[2 * k] = re + (odd_re * c - odd_im * s);
      x[2 * k + 1] = im + (odd_re * s + odd_im * c);
    }
    x[0] = z[0] + z[1];
    x[2 * n] = z[0] - z[1];
    x[1] = x[2 * n + 1] = Vector{};
  }

  // Its inverse but for a factor of two, with exchanged parts.
  static void complex_from_real(const FftPlan<T>& plan, const Vector* x, Vector* z) {
    const i64 n = plan.points;
    for (i64 k = 1; k < n; ++k) {
      const Vector *a = x + 2 * k, *b = x + 2 * (n - k);
      const T c = plan.halves[2 * k], s = -plan.halves[2 * k + 1];
      const Vector re = a[0] - b[0], im = a[1] + b[1];
      z[2 * k + 1] = (a[0] + b[0]) - (re * s + im * c);
      z[2 * k] = (a[1] - b[1]) + (re * c - im * s);
    }
    z[1] = x[0] + x[2 * n];
    z[0] = x[0] - x[2 * n];
  }

  // ---------------------------------------------------------------- a group

  static void run(const FftGroup<T>& g) {
    const i64 n = g.plan->points;
    const auto address = (reinterpret_cast<std::uintptr_t>(g.scratch) + 63) / 64 * 64;
    Vector* x = reinterpret_cast<Vector*>(address);
    Vector* y = x + 2 * (n + 1);
    const i64 given = g.kind == FftKind::kRealInverse ? n + 1 : n;
    if (g.in.point == 1) {
      load_lines(g, given, x);
    } else {
      load_columns(g, given, x);
    }
    if (g.kind == FftKind::kRealInverse) {
      complex_from_real(*g.plan, x, y);
      std::swap(x, y);
    }
    passes(*g.plan, x, y);
    if (g.kind == FftKind::kRealForward) {
      real_from_complex(*g.plan, x, y);
      std::swap(x, y);
    }
    if (g.real != nullptr) {
      for (i64 k = 1; k < n; ++k) {
        Vector re, im;
        std::memcpy(&re, g.real + k * g.root_step, sizeof re);
        std::memcpy(&im, g.imag + k * g.root_step, sizeof im);
        const Number z = {x[2 * k], x[2 * k + 1]};
        x[2 * k] = z.re * re - z.im * im;
        x[2 * k + 1] = z.re * im + z.im * re;
      }
    }
    const i64 found = g.kind == FftKind::kRealForward ? n + 1 : n;
    if (g.out.point == 1) {
      store_lines(g, found, x);
    } else {
      store_columns(g, found, x);
    }
  }
};

const FftKernels kFftKernels = {kVectorBytes, Fft<float>::run, Fft<double>::run};
