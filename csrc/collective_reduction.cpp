#include "collective_reduction.h"

#include <algorithm>
#include <complex>
#include <cstring>
#include <type_traits>

namespace functrans {
namespace {

#include "half.h"

using i64 = std::int64_t;

// bfloat16 as float32 and back.
float from_bfloat(std::uint16_t bits) {
  const std::uint32_t wide = std::uint32_t{bits} << 16;
  float x;
  std::memcpy(&x, &wide, sizeof x);
  return x;
}
std::uint16_t to_bfloat(float value) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  if (value != value) return static_cast<std::uint16_t>((bits >> 16) | 0x40);
  return static_cast<std::uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

template <typename T>
struct Plain {
  using Stored = T;
  using Computed = T;
  static T load(T x) { return x; }
  static T store(T x) { return x; }
};
struct Half {
  using Stored = std::uint16_t;
  using Computed = float;
  static float load(Stored x) { return float_of_half(x); }
  static Stored store(float x) { return half_of_float(x); }
};
struct Bfloat {
  using Stored = std::uint16_t;
  using Computed = float;
  static float load(Stored x) { return from_bfloat(x); }
  static Stored store(float x) { return to_bfloat(x); }
};

template <typename T>
bool precedes(T a, T b) {
  return a < b;
}
template <typename T>
bool precedes(std::complex<T> a, std::complex<T> b) {
  return a.real() < b.real() || (a.real() == b.real() && a.imag() < b.imag());
}
template <typename T>
bool is_nan(T x) {
  return x != x;
}

template <Communicator::Op op, typename T>
T combine(T a, T b) {
  if constexpr (op == Communicator::kSum) {
    if constexpr (std::is_same_v<T, bool>) return a || b;
    else if constexpr (std::is_integral_v<T>) {
      using U = std::make_unsigned_t<T>;  // overflow wraps
      return static_cast<T>(static_cast<U>(static_cast<U>(a) + static_cast<U>(b)));
    } else return a + b;
  } else if constexpr (op == Communicator::kProduct) {
    if constexpr (std::is_same_v<T, bool>) return a && b;
    else if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
    } else return a * b;
  } else if constexpr (op == Communicator::kMax) {
    return is_nan(a) || (!is_nan(b) && !precedes(a, b)) ? a : b;
  } else {
    return is_nan(a) || (!is_nan(b) && !precedes(b, a)) ? a : b;
  }
}

template <typename Format, Communicator::Op op>
void reduce(const void* const* in, int members, i64 first, i64 count, void* out) {
  using Stored = typename Format::Stored;
  using Computed = typename Format::Computed;
  constexpr i64 kBlock = 512;
  Computed sums[kBlock];
  auto* target = static_cast<Stored*>(out);
  for (i64 begin = 0; begin < count; begin += kBlock) {
    const i64 n = std::min(kBlock, count - begin);
    const auto* source = static_cast<const Stored*>(in[0]) + first + begin;
    for (i64 i = 0; i < n; ++i) sums[i] = Format::load(source[i]);
    for (int m = 1; m < members; ++m) {
      source = static_cast<const Stored*>(in[m]) + first + begin;
      for (i64 i = 0; i < n; ++i) sums[i] = combine<op, Computed>(sums[i], Format::load(source[i]));
    }
    for (i64 i = 0; i < n; ++i) target[begin + i] = Format::store(sums[i]);
  }
}

template <typename Format>
Reduce reduce_by(Communicator::Op op) {
  switch (op) {
    case Communicator::kMax: return reduce<Format, Communicator::kMax>;
    case Communicator::kMin: return reduce<Format, Communicator::kMin>;
    case Communicator::kProduct: return reduce<Format, Communicator::kProduct>;
    default: return reduce<Format, Communicator::kSum>;
  }
}

}  // namespace

Reduce reduce_of(Communicator::Op op, Communicator::Type type) {
  switch (type) {
    case Communicator::kBool: return reduce_by<Plain<bool>>(op);
    case Communicator::kInt8: return reduce_by<Plain<std::int8_t>>(op);
    case Communicator::kInt16: return reduce_by<Plain<std::int16_t>>(op);
    case Communicator::kInt32: return reduce_by<Plain<std::int32_t>>(op);
    case Communicator::kInt64: return reduce_by<Plain<std::int64_t>>(op);
    case Communicator::kUint8: return reduce_by<Plain<std::uint8_t>>(op);
    case Communicator::kUint16: return reduce_by<Plain<std::uint16_t>>(op);
    case Communicator::kUint32: return reduce_by<Plain<std::uint32_t>>(op);
    case Communicator::kUint64: return reduce_by<Plain<std::uint64_t>>(op);
    case Communicator::kFloat16: return reduce_by<Half>(op);
    case Communicator::kBfloat16: return reduce_by<Bfloat>(op);
    case Communicator::kFloat64: return reduce_by<Plain<double>>(op);
    case Communicator::kComplex64: return reduce_by<Plain<std::complex<float>>>(op);
    case Communicator::kComplex128: return reduce_by<Plain<std::complex<double>>>(op);
    default: return reduce_by<Plain<float>>(op);
  }
}

i64 element_size(Communicator::Type type) {
  constexpr i64 kSizes[] = {1, 1, 2, 4, 8, 1, 2, 4, 8, 2, 2, 4, 8, 8, 16};
  static_assert(sizeof kSizes / sizeof *kSizes == Communicator::kTypes);
  return kSizes[type];
}

}  // namespace functrans
