// Running sums, products and extrema of one row or of columns, in vector registers: shifted copies
// of a vector are combined log2(lanes) times, then with what came before. Part of row_kernels.h.

// combine(earlier, later) on numbers and on vectors of them; `identity` changes no later value.
struct AddOp {
  template <typename T>
  static constexpr T identity() {
    return std::is_floating_point_v<T> ? static_cast<T>(-0.0) : T{0};  // 0 + -0 is 0
  }
  template <typename V>
  static FUNCTRANS_INLINE V combine(V a, V b) { return a + b; }
};
struct MulOp {
  template <typename T>
  static constexpr T identity() { return T{1}; }
  template <typename V>
  static FUNCTRANS_INLINE V combine(V a, V b) { return a * b; }
};
struct MaxOp {  // NaN stays; of zeros of both signs the later one counts, as in NumPy
  template <typename T>
  static constexpr T identity() {
    using Limits = std::numeric_limits<T>;
    return Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
  }
  template <typename V>
  static FUNCTRANS_INLINE V combine(V a, V b) { return a > b ? a : (a != a ? a : b); }
};
struct MinOp {
  template <typename T>
  static constexpr T identity() {
    using Limits = std::numeric_limits<T>;
    return Limits::has_infinity ? Limits::infinity() : Limits::max();
  }
  template <typename V>
  static FUNCTRANS_INLINE V combine(V a, V b) { return a < b ? a : (a != a ? a : b); }
};
struct LogAddExpOp {
  template <typename T>
  static constexpr T identity() { return -std::numeric_limits<T>::infinity(); }
  template <typename T>
  static T combine(T a, T b) {
    if (a == b) return a + static_cast<T>(0.693147180559945309);  // infinities too
    const T gap = a - b;
    if (gap > 0) return a + std::log1p(std::exp(-gap));
    return gap <= 0 ? b + std::log1p(std::exp(gap)) : gap;  // NaN
  }
};

template <typename T>
struct VectorOf {
  static constexpr int lanes = kVectorBytes / static_cast<int>(sizeof(T));
  typedef T Vector __attribute__((vector_size(kVectorBytes)));
  using Index = std::conditional_t<sizeof(T) == 8, std::int64_t, std::int32_t>;
  typedef Index Indices __attribute__((vector_size(kVectorBytes)));
};

// x moved by `shift` lanes away from where the row starts; `fill` moves in.
template <typename T, int shift, bool reverse, int... lane>
FUNCTRANS_INLINE typename VectorOf<T>::Vector moved(
    typename VectorOf<T>::Vector x, typename VectorOf<T>::Vector fill,
    std::integer_sequence<int, lane...>) {
  constexpr int n = VectorOf<T>::lanes;
  if constexpr (reverse) {
    return __builtin_shuffle(x, fill, typename VectorOf<T>::Indices{(lane + shift)...});
  }
  return __builtin_shuffle(
      x, fill, typename VectorOf<T>::Indices{(lane >= shift ? lane - shift : n + lane)...});
}

template <typename Op, typename T, bool reverse, int shift = 1>
FUNCTRANS_INLINE typename VectorOf<T>::Vector scan_lanes(
    typename VectorOf<T>::Vector x, typename VectorOf<T>::Vector fill) {
  constexpr int n = VectorOf<T>::lanes;
  if constexpr (shift >= n) {
    return x;
  } else {
    x = Op::combine(
        moved<T, shift, reverse>(x, fill, std::make_integer_sequence<int, n>()), x);
    return scan_lanes<Op, T, reverse, 2 * shift>(x, fill);
  }
}

// One row from `carry` on; returns the last result. out may be null: then only that is wanted.
template <typename Op, typename T, bool reverse>
FUNCTRANS_INLINE T scan_row(const T* in, T* out, i64 n, T carry) {
  using V = VectorOf<T>;
  using Vector = typename V::Vector;
  const Vector fill = Op::template identity<T>() - Vector{};  // -0 - 0 is -0
  const i64 whole = n - n % V::lanes;
  for (i64 i = 0; i < whole; i += V::lanes) {
    const i64 at = reverse ? n - i - V::lanes : i;
    Vector x;
    std::memcpy(&x, in + at, sizeof x);
    x = scan_lanes<Op, T, reverse>(x, fill);
    if (out != nullptr) {
      const Vector result = Op::combine(carry - Vector{}, x);
      std::memcpy(out + at, &result, sizeof x);
    }
    carry = Op::combine(carry, x[reverse ? 0 : V::lanes - 1]);
  }
  for (i64 i = whole; i < n; ++i) {
    const i64 at = reverse ? n - i - 1 : i;
    carry = Op::combine(carry, in[at]);
    if (out != nullptr) out[at] = carry;
  }
  return carry;
}

template <typename Op, typename T, bool reverse>
struct Scans {
  static constexpr bool vectors = sizeof(T) >= 4 && !std::is_same_v<Op, LogAddExpOp>;

  static void row(const void* in, void* out, i64 n, void* carry) {
    const auto* x = static_cast<const T*>(in);
    auto* y = static_cast<T*>(out);
    T so_far;
    std::memcpy(&so_far, carry, sizeof so_far);
    if constexpr (vectors) {
      so_far = scan_row<Op, T, reverse>(x, y, n, so_far);
    } else {
      for (i64 i = 0; i < n; ++i) {
        const i64 at = reverse ? n - i - 1 : i;
        so_far = Op::combine(so_far, x[at]);
        if (y != nullptr) y[at] = so_far;
      }
    }
    std::memcpy(carry, &so_far, sizeof so_far);
  }

  // Columns [begin, end) of n rows of `width`.
  static void columns(const void* in, void* out, i64 n, i64 width, i64 begin, i64 end) {
    for (i64 i = 0; i < n; ++i) {
      const i64 row = reverse ? n - i - 1 : i;
      const T* x = static_cast<const T*>(in) + row * width;
      T* y = static_cast<T*>(out) + row * width;
      const T* before = y + (reverse ? width : -width);
      i64 j = begin;
      if (i == 0) {
        std::memcpy(y + begin, x + begin, (end - begin) * sizeof(T));
        continue;
      }
      if constexpr (vectors) {
        using V = VectorOf<T>;
        for (; j + V::lanes <= end; j += V::lanes) {
          typename V::Vector a, b;
          std::memcpy(&a, before + j, sizeof a);
          std::memcpy(&b, x + j, sizeof b);
          a = Op::combine(a, b);
          std::memcpy(y + j, &a, sizeof a);
        }
      }
      for (; j < end; ++j) y[j] = Op::combine(before[j], x[j]);
    }
  }

  static void append(void* carry, const void* later) {
    T a, b;
    std::memcpy(&a, carry, sizeof a);
    std::memcpy(&b, later, sizeof b);
    a = Op::combine(a, b);
    std::memcpy(carry, &a, sizeof a);
  }

  static Scan table() {
    Scan scan{row, columns, append, {}};
    const T identity = Op::template identity<T>();
    std::memcpy(scan.identity, &identity, sizeof identity);
    return scan;
  }
};

template <typename T>
Scan scan_of_type(i64 op, bool reverse) {
  const auto pick = [&](auto kind) {
    using Op = decltype(kind);
    return reverse ? Scans<Op, T, true>::table() : Scans<Op, T, false>::table();
  };
  switch (op) {
    case kAdd: return pick(AddOp{});
    case kMul: return pick(MulOp{});
    case kMax: return pick(MaxOp{});
    case kMin: return pick(MinOp{});
    default:
      if constexpr (std::is_floating_point_v<T>) return pick(LogAddExpOp{});
      return {};
  }
}

// Sums and products of signed integers wrap as those of unsigned ones.
Scan scan_of(i64 op, i64 dtype, bool reverse) {
  const bool wraps = op == kAdd || op == kMul;
  const auto pick = [&](auto zero) { return scan_of_type<decltype(zero)>(op, reverse); };
  switch (dtype) {
    case kF32: return pick(float{});
    case kF64: return pick(double{});
    case kI8: return wraps ? pick(std::uint8_t{}) : pick(std::int8_t{});
    case kI16: return wraps ? pick(std::uint16_t{}) : pick(std::int16_t{});
    case kI32: return wraps ? pick(std::uint32_t{}) : pick(std::int32_t{});
    case kI64: return wraps ? pick(std::uint64_t{}) : pick(std::int64_t{});
    case kU16: return pick(std::uint16_t{});
    case kU32: return pick(std::uint32_t{});
    case kU64: return pick(std::uint64_t{});
    default: return pick(std::uint8_t{});  // also the extrema of bools
  }
}
