// Keys of every dtype as unsigned integers in the same order: zeros of both signs are equal, NaN
// of any sign comes last. With such keys all dtypes are sorted by the same few functions.
#pragma once

#include "rows.h"

#include <cstring>

namespace functrans {

template <typename Bits>
struct UnsignedKey {
  using Key = Bits;
  static constexpr bool is_float = false;
  static Key ordered(Key bits) { return bits; }
};

template <typename Bits>
struct SignedKey {
  using Key = Bits;
  static constexpr bool is_float = false;
  static Key ordered(Key bits) { return bits ^ (Key{1} << (8 * sizeof(Key) - 1)); }
};

template <typename Bits, Bits kInfinity>
struct FloatKey {
  using Key = Bits;
  static constexpr bool is_float = true;
  static constexpr Key kSign = Key{1} << (8 * sizeof(Key) - 1);
  // With -0 before +0, invertible but for the payload of NaN.
  static Key apart(Key bits) {
    const Key flip = (bits & kSign) != 0 ? static_cast<Key>(~Key{0}) : kSign;
    const bool nan = static_cast<Key>(bits & ~kSign) > kInfinity;
    return nan ? static_cast<Key>(~Key{0}) : static_cast<Key>(bits ^ flip);
  }
  static Key from_apart(Key key) {
    return (key & kSign) != 0 ? static_cast<Key>(key ^ kSign) : static_cast<Key>(~key);
  }
  static Key ordered(Key bits) { return apart(bits == kSign ? Key{0} : bits); }
};

using KeyF64 = FloatKey<std::uint64_t, 0x7FF0000000000000u>;
using KeyF32 = FloatKey<std::uint32_t, 0x7F800000u>;
using KeyF16 = FloatKey<std::uint16_t, 0x7C00u>;
using KeyBF16 = FloatKey<std::uint16_t, 0x7F80u>;

// visit(traits) with the traits of a real dtype.
template <typename Visit>
auto with_key(i64 dtype, Visit&& visit) {
  switch (dtype) {
    case kF32: return visit(KeyF32{});
    case kF64: return visit(KeyF64{});
    case kF16: return visit(KeyF16{});
    case kBF16: return visit(KeyBF16{});
    case kI8: return visit(SignedKey<std::uint8_t>{});
    case kI16: return visit(SignedKey<std::uint16_t>{});
    case kI32: return visit(SignedKey<std::uint32_t>{});
    case kI64: return visit(SignedKey<std::uint64_t>{});
    case kU16: return visit(UnsignedKey<std::uint16_t>{});
    case kU32: return visit(UnsignedKey<std::uint32_t>{});
    case kU64: return visit(UnsignedKey<std::uint64_t>{});
    default: return visit(UnsignedKey<std::uint8_t>{});
  }
}

}  // namespace functrans
