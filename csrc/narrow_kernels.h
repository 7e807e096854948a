// Tiles of products with 8-bit weights, for the instruction set that is the target where this is
// included, beside its `sign_extended` and `zero_extended`: vectors of GCC are made into
// instructions of the function that they stand in.

FUNCTRANS_INLINE Floats as_floats(Words bits) {
  Floats out;
  std::memcpy(&out, &bits, sizeof out);
  return out;
}

FUNCTRANS_INLINE Words words_at(const std::uint8_t* place) {
  return (Words)zero_extended(place);
}

FUNCTRANS_INLINE Words bits_of(Floats x) {
  Words out;
  std::memcpy(&out, &x, sizeof out);
  return out;
}

struct Int8 {
  static FUNCTRANS_INLINE Floats load(const std::uint8_t* place) {
    return __builtin_convertvector(sign_extended(place), Floats);
  }
};

// An exponent of 4 bits and 3 of fraction; no infinity, NaN where all bits are set.
struct E4M3 {
  static FUNCTRANS_INLINE Floats load(const std::uint8_t* place) {
    const Words raw = words_at(place), t = raw & 0x7f;
    const Words small = bits_of(__builtin_convertvector((Ints)t, Floats) * 0x1p-9f);
    Words bits = t < 8 ? small : (t << 20) + (120u << 23);
    bits = t == 0x7f ? Words{} + 0x7fc00000u : bits;
    return as_floats(bits | (raw & 0x80) << 24);
  }
};

// An exponent of 5 bits and 2 of fraction: the upper half of a float16.
struct E5M2 {
  static FUNCTRANS_INLINE Floats load(const std::uint8_t* place) {
    const Words raw = words_at(place), t = raw & 0x7f;
    const Words small = bits_of(__builtin_convertvector((Ints)t, Floats) * 0x1p-16f);
    Words bits = t < 4 ? small : (t << 21) + (112u << 23);
    bits = t >= 0x7c ? (t << 21) + (224u << 23) : bits;
    return as_floats(bits | (raw & 0x80) << 24);
  }
};

// Adds `depth` rows of weights to R rows and N vectors of the result.
template <typename Format, int R, int N>
FUNCTRANS_INLINE void tile(i64 depth, const float* x, i64 x_row, const std::uint8_t* w, i64 w_row,
                           float* out, i64 out_row) {
  Floats sums[R][N];
  for (int r = 0; r < R; ++r) {
    for (int v = 0; v < N; ++v) {
      std::memcpy(&sums[r][v], out + r * out_row + v * kLanes, sizeof(Floats));
    }
  }
  for (i64 p = 0; p < depth; ++p) {
    Floats weights[N];
    const std::uint8_t* line = w + p * w_row;
    for (int v = 0; v < N; ++v) weights[v] = Format::load(line + v * kLanes);
    for (int v = 0; v < N; v += 4) __builtin_prefetch(line + v * kLanes + kAhead);
    for (int r = 0; r < R; ++r) {
      const float factor = x[r * x_row + p];
      for (int v = 0; v < N; ++v) sums[r][v] += factor * weights[v];
    }
  }
  for (int r = 0; r < R; ++r) {
    for (int v = 0; v < N; ++v) {
      std::memcpy(out + r * out_row + v * kLanes, &sums[r][v], sizeof(Floats));
    }
  }
}

template <typename Format, int R, int N>
FUNCTRANS_INLINE void row_group(const Product& p, i64 row, i64 from, i64 depth, i64 begin,
                                i64 end) {
  constexpr i64 kWidth = N * kLanes;
  const float* x = p.x + row * p.k + from;
  const std::uint8_t* w = p.w + from * p.n;
  float* out = p.out + row * p.n;
  i64 j = begin;
  for (; j + kWidth <= end; j += kWidth) {
    tile<Format, R, N>(depth, x, p.k, w + j, p.n, out + j, p.n);
  }
  if (j == end) return;
  // the last columns, beside zeros
  const i64 rest = end - j;
  std::uint8_t weights[kDepth * kWidth] = {};
  float sums[R * kWidth] = {};
  for (i64 q = 0; q < depth; ++q) std::memcpy(weights + q * kWidth, w + q * p.n + j, rest);
  for (int r = 0; r < R; ++r) std::memcpy(sums + r * kWidth, out + r * p.n + j, rest * 4);
  tile<Format, R, N>(depth, x, p.k, weights, kWidth, sums, kWidth);
  for (int r = 0; r < R; ++r) std::memcpy(out + r * p.n + j, sums + r * kWidth, rest * 4);
}

template <typename Format>
void columns(const Product& p, i64 begin, i64 end) {
  for (i64 r = 0; r < p.m; ++r) std::memset(p.out + r * p.n + begin, 0, (end - begin) * 4);
  for (i64 from = 0; from < p.k; from += kDepth) {
    const i64 depth = std::min(kDepth, p.k - from);
    i64 row = 0;
    for (; row + 8 <= p.m; row += 8) row_group<Format, 8, 2>(p, row, from, depth, begin, end);
    for (; row + 4 <= p.m; row += 4) row_group<Format, 4, 4>(p, row, from, depth, begin, end);
    for (; row < p.m; ++row) row_group<Format, 1, 8>(p, row, from, depth, begin, end);
  }
}

constexpr Columns kColumns[] = {columns<Int8>, columns<E4M3>, columns<E5M2>};
