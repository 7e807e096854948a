// Rows combined into other rows. Part of row_kernels.h.

// bfloat16 and float16 add and multiply as float32, rounded to nearest even.
struct BFloat16 {
  std::uint16_t bits;
  static FUNCTRANS_INLINE float number(BFloat16 x) {
    const std::uint32_t bits = std::uint32_t{x.bits} << 16;
    float y;
    std::memcpy(&y, &bits, sizeof y);
    return y;
  }
  static FUNCTRANS_INLINE BFloat16 from(float y) {
    std::uint32_t bits;
    std::memcpy(&bits, &y, sizeof y);
    const std::uint32_t rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16;
    return {static_cast<std::uint16_t>(y != y ? (bits >> 16) | 0x40 : rounded)};
  }
};

struct SetOp {
  template <typename V>
  static FUNCTRANS_INLINE V combine(V, V b) { return b; }
};

template <typename Op, typename T>
FUNCTRANS_INLINE void update_row(T* y, const T* x, i64 n) {
  i64 i = 0;
  if constexpr (std::is_same_v<T, BFloat16>) {
    for (; i < n; ++i) {
      y[i] = BFloat16::from(Op::combine(BFloat16::number(y[i]), BFloat16::number(x[i])));
    }
  } else {
    using V = VectorOf<T>;
    for (; i + V::lanes <= n; i += V::lanes) {
      typename V::Vector a, b;
      std::memcpy(&a, y + i, sizeof a);
      std::memcpy(&b, x + i, sizeof b);
      a = Op::combine(a, b);
      std::memcpy(y + i, &a, sizeof a);
    }
    for (; i < n; ++i) y[i] = Op::combine(y[i], x[i]);
  }
}

constexpr i64 kAhead = 12;  // rows whose memory is fetched before their turn

template <typename Op, typename T, bool listed>
FUNCTRANS_INLINE void update_range(const UpdateRange& range) {
  auto* out = reinterpret_cast<T*>(range.out);
  const auto* updates = reinterpret_cast<const T*>(range.updates);
  const bool wide = range.wide_index;
  const i64 width = range.width;
  const auto row_at = [&](i64 k) { return listed ? i64{range.chosen[k]} : k; };
  const auto inside = [&](i64 target) {
    return static_cast<std::uint64_t>(target) < static_cast<std::uint64_t>(range.targets);
  };
  if (width == 1 && !listed) {
    for (i64 r = range.begin; r < range.end; ++r) {
      const i64 target = index_at(range.index, wide, r);
      if (inside(target)) update_row<Op, T>(out + target, updates + r, 1);
    }
    return;
  }
  const i64 lines = std::min<i64>(4, (width * i64{sizeof(T)} + 63) / 64);
  for (i64 k = range.begin; k < range.end; ++k) {
    if (k + kAhead < range.end) {
      const i64 row = row_at(k + kAhead);
      const i64 target = index_at(range.index, wide, row);
      if (inside(target)) {
        const auto* place = reinterpret_cast<const char*>(out + target * width);
        for (i64 line = 0; line < lines; ++line) __builtin_prefetch(place + 64 * line, 1);
      }
      if (listed) {  // else they follow one another, as the processor expects
        const auto* place = reinterpret_cast<const char*>(updates + row * width);
        for (i64 line = 0; line < lines; ++line) __builtin_prefetch(place + 64 * line);
      }
    }
    const i64 row = row_at(k);
    const i64 target = index_at(range.index, wide, row);
    if (inside(target)) update_row<Op, T>(out + target * width, updates + row * width, width);
  }
}

template <typename Op, typename T>
void update_rows(const UpdateRange& range) {
  range.chosen != nullptr ? update_range<Op, T, true>(range) : update_range<Op, T, false>(range);
}

template <typename T>
Update update_of_type(i64 op) {
  switch (op) {
    case kAdd: return update_rows<AddOp, T>;
    case kMul: return update_rows<MulOp, T>;
    case kMax: return update_rows<MaxOp, T>;
    case kMin: return update_rows<MinOp, T>;
    default: return nullptr;
  }
}

Update update_of(i64 op, i64 dtype) {
  if (op == kSet) {
    switch (item_size(dtype)) {
      case 1: return update_rows<SetOp, std::uint8_t>;
      case 2: return update_rows<SetOp, std::uint16_t>;
      case 4: return update_rows<SetOp, std::uint32_t>;
      case 8: return update_rows<SetOp, std::uint64_t>;
      default: return nullptr;
    }
  }
  const bool wraps = op == kAdd || op == kMul;
  switch (dtype) {
    case kF32: return update_of_type<float>(op);
    case kF64: return update_of_type<double>(op);
    case kBF16: return update_of_type<BFloat16>(op);
    case kI32: return wraps ? update_of_type<std::uint32_t>(op) : update_of_type<std::int32_t>(op);
    case kI64: return wraps ? update_of_type<std::uint64_t>(op) : update_of_type<std::int64_t>(op);
    case kU32: return update_of_type<std::uint32_t>(op);
    case kU64: return update_of_type<std::uint64_t>(op);
    default: return nullptr;
  }
}
