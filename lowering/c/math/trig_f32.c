/* sin, cos and tan in float32: Cody and Waite for |x| < 2^17, where one rounded product with 2/pi
   still finds the multiple, and Payne and Hanek lane by lane above; minimax polynomials on pi/4. */
//: two_over_pi_V
/* 2/pi in 32-bit words after one of zeros: word i counts 2^(-32 i) */
static const u32 two_over_pi_V[] = {0, 
  0xa2f9836eu, 0x4e441529u, 0xfc2757d1u, 0xf534ddc0u, 0xdb629599u, 0x3c439041u, 0xfe5163abu,
  0xdebbc561u};
//: turn_V needs two_over_pi_V
/* |x| 2/pi modulo 4, times 2^62 (Payne and Hanek): the 24 bits of x times 96 bits of 2/pi; what
   stands before these is a multiple of 4, what follows is too small to count */
static u64 turn_V(float x) {
  union { float f; u32 i; } u = {x};
  int place = (int)(u.i >> 23 & 0xff) - 150 - 2 + 32, shift = place & 31;
  u64 m = (u.i & 0x7fffff) | 0x800000;
  const u32 *w = two_over_pi_V + (place >> 5);
  u64 a = (u64)w[0] << 32 | w[1], b = (u64)w[2] << 32 | w[3];
  u64 high = shift ? a << shift | b >> (64 - shift) : a, low = b << shift >> 32;
  return m * high + (m * low >> 32);
}
//: huge_angle_V needs turn_V
/* x modulo pi/2, in two parts, and the multiple (modulo 4) where x >= 2^17 */
static __attribute__((noinline)) void huge_angle_V(const F *x, F *r, F *lo, I *n) {
  float a[L], b[L], c[L];
  int k[L];
  __builtin_memcpy(a, x, sizeof a), __builtin_memcpy(b, r, sizeof b);
  __builtin_memcpy(c, lo, sizeof c), __builtin_memcpy(k, n, sizeof k);
  for (int l = 0; l < L; l++) {
    if (!(a[l] >= 0x1p17f)) continue;
    u64 t = turn_V(a[l]);
    double d = (double)(i64)(t << 2) * 0x1.921fb54442d18p-64;
    b[l] = (float)d + (a[l] - a[l]);   /* NaN for infinities */
    c[l] = (float)(d - b[l]);
    k[l] = (int)((t + (1ull << 61)) >> 62);
  }
  __builtin_memcpy(r, b, sizeof b), __builtin_memcpy(lo, c, sizeof c);
  __builtin_memcpy(n, k, sizeof k);
}
//: angle_V needs fma_V splat_V ge_V any_V bits_V huge_angle_V
/* a = n pi/2 + (r + lo), |r| <= 0.8, n modulo 4; pi/2 in three parts (Cody and Waite): the first
   product is taken away exactly */
INL F angle_V(F a, F *lo, I *n) {
  F t = fma_V(a, splat_V(0x1.45f306p-1f), splat_V(0x1.8p23f)), k = t - 0x1.8p23f;
  F r1 = fma_V(k, splat_V(-0x1.921fb6p+0f), a), p = k * splat_V(-0x1.777a5cp-25f), s = r1 - p;
  F r = fma_V(k, splat_V(0x1.ee59dap-50f), fma_V(k, splat_V(0x1.777a5cp-25f), r1));
  F less = fma_V(k, splat_V(-0x1.ee59dap-50f), fma_V(k, splat_V(-0x1.777a5cp-25f), -p));
  F rest = (s - r) + (((r1 - s) - p) - less);
  I m = bits_V(t);
  if (__builtin_expect(any_V(ge_V(a, splat_V(0x1p17f))), 0)) {
    F rare = r, rare_lo = rest;
    I rare_m = m;
    huge_angle_V(&a, &rare, &rare_lo, &rare_m);
    r = rare, rest = rare_lo, m = rare_m;
  }
  *lo = rest, *n = m;
  return r;
}
//: sines_V needs fma_V splat_V
/* sin r and cos r */
INL void sines_V(F r, F *s, F *c) {
  F z = r * r;
  F p = splat_V(-0x1.990f7cp-13f); p = fma_V(p, z, splat_V(0x1.1106aep-7f));
  p = fma_V(p, z, splat_V(-0x1.555544p-3f));
  F q = splat_V(0x1.99d832p-16f); q = fma_V(q, z, splat_V(-0x1.6c0c08p-10f));
  q = fma_V(q, z, splat_V(0x1.55554ap-5f));
  *s = fma_V(r * z, p, r), *c = fma_V(fma_V(q, z, splat_V(-0.5f)), z, splat_V(1.0f));
}
//: sin_or_cos_V needs sines_V select_V splati_V eqi_V
/* sin(r + n pi/2) but for the sign */
INL F sin_or_cos_V(F r, I n) {
  F s, c;
  sines_V(r, &s, &c);
  return select_V(eqi_V(n & 1, splati_V(0)), s, c);
}
//: sin_and_cos_V needs bits_V float_V abs_V angle_V sines_V select_V splati_V eqi_V
/* of one angle, with the bits that they have alone */
INL void sin_and_cos_V(F x, F *sine, F *cosine) {
  I n;
  F s, c, lo, r = angle_V(abs_V(x), &lo, &n);
  sines_V(r, &s, &c);
  M even = eqi_V(n & 1, splati_V(0));
  *sine = float_V(bits_V(select_V(even, s, c)) ^ ((n << 30 ^ bits_V(x)) & (-0x7fffffff - 1)));
  *cosine = float_V(bits_V(select_V(even, c, s)) ^ ((n + 1) << 30 & (-0x7fffffff - 1)));
}
//: tan_small_V needs fma_V splat_V
/* tan(r + lo), |r| <= 0.8 */
INL F tan_small_V(F r, F lo) {
  F z = r * r;
  F p = splat_V(0x1.2c2c1cp-8f); p = fma_V(p, z, splat_V(-0x1.4e875p-12f));
  p = fma_V(p, z, splat_V(0x1.6d7974p-7f)); p = fma_V(p, z, splat_V(0x1.5ab75p-6f));
  p = fma_V(p, z, splat_V(0x1.bb0bap-5f)); p = fma_V(p, z, splat_V(0x1.110c88p-3f));
  p = fma_V(p, z, splat_V(0x1.555564p-2f));
  F t = r * z * p, u = r + t;
  return r + fma_V(lo, fma_V(u, u, splat_V(1.0f)), t);
}
