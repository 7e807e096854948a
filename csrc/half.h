// float16 by its bits, for compilers that have no such type: gcc 12 has none for ARM in C++. Included
// within the namespace of an instruction set as well (gemm_pack.h), hence static functions and no
// header of the standard library.

// Shifted into place and scaled by 2**112; infinity and NaN get the wider exponent.
static inline float float_of_half(unsigned short half) {
  const unsigned int magnitude = (half & 0x7fffu) << 13;
  float scaled;
  __builtin_memcpy(&scaled, &magnitude, 4);
  scaled *= 0x1p112f;
  unsigned int bits;
  __builtin_memcpy(&bits, &scaled, 4);
  bits = (half & 0x7c00u) == 0x7c00u ? (magnitude | 0x7f800000u) : bits;
  bits |= (half & 0x8000u) << 16;
  __builtin_memcpy(&scaled, &bits, 4);
  return scaled;
}

// Rounded to the nearest, ties to even.
static inline unsigned short half_of_float(float x) {
  unsigned int bits;
  __builtin_memcpy(&bits, &x, 4);
  const unsigned int sign = (bits >> 16) & 0x8000u;
  const unsigned int magnitude = bits & 0x7fffffffu;
  // below 2**-14 the addition of 1/2 leaves the rounded denormal in the low bits
  float shifted;
  __builtin_memcpy(&shifted, &magnitude, 4);
  shifted += 0.5f;
  unsigned int small;
  __builtin_memcpy(&small, &shifted, 4);
  small -= 0x3f000000u;
  unsigned int normal = (magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13) & 1)) >> 13;
  normal = normal > 0x7c00u ? 0x7c00u : normal;
  unsigned int half = magnitude < 0x38800000u ? small : normal;
  half = magnitude > 0x7f800000u ? 0x7e00u : half;
  return static_cast<unsigned short>(half | sign);
}
