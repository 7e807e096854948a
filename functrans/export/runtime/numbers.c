// Numbers of 16 bits, and the codes by which a program names the types of products.
#include "product_types.h"

static inline float ft_bits(u32 bits) { float x; memcpy(&x, &bits, 4); return x; }
static inline u32 ft_bits_of(float x) { u32 bits; memcpy(&bits, &x, 4); return bits; }
static inline float ft_from_bf16(u16 h) { return ft_bits((u32)h << 16); }

static inline float ft_from_f16(u16 h) {
  const u32 sign = (u32)(h & 0x8000) << 16, rest = h & 0x7fff;
  if (rest < 0x400) return ft_bits(sign | ft_bits_of((float)rest * 0x1p-24f));
  if (rest >= 0x7c00) return ft_bits(sign | 0x7f800000 | (rest & 0x3ff) << 13);
  return ft_bits(sign | ((rest << 13) + 0x38000000));
}

static inline u16 ft_to_bf16(float x) {
  const u32 bits = ft_bits_of(x);
  if (x != x) return (u16)(bits >> 16 | 0x40);
  return (u16)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static inline u16 ft_to_f16(float x) {
  const u32 bits = ft_bits_of(x), rest = bits & 0x7fffffff;
  const u16 sign = (u16)(bits >> 16 & 0x8000);
  if (rest > 0x7f800000) return sign | 0x7e00;
  if (rest >= 0x477ff000) return sign | 0x7c00;  // 65520 and above
  if (rest < 0x38800000)  // adding 0.5 rounds at the last bit that float16 has there
    return sign | (u16)(ft_bits_of(ft_bits(rest) + 0.5f) - 0x3f000000);
  return sign | (u16)((rest - 0x38000000 + 0xfff + (rest >> 13 & 1)) >> 13);
}
