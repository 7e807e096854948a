/* sin, cos and tan in float64, as in float32; Payne and Hanek from 2^30 on. */
//: two_over_pi_V
/* 2/pi in 64-bit words after one of zeros: word i counts 2^(-64 i) */
static const u64 two_over_pi_V[] = {0, 
  0xa2f9836e4e441529ull, 0xfc2757d1f534ddc0ull, 0xdb6295993c439041ull, 0xfe5163abdebbc561ull,
  0xb7246e3a424dd2e0ull, 0x06492eea09d1921cull, 0xfe1deb1cb129a73eull, 0xe88235f52ebb4484ull,
  0xe99c7026b45f7e41ull, 0x3991d639835339f4ull, 0x9c845f8bbdf9283bull, 0x1ff897ffde05980full,
  0xef2f118b5a0a6d1full, 0x6d367ecf27cb09b7ull, 0x4f463f669e5fea2dull, 0x7527bac7ebe5f17bull,
  0x3d0739f78a5292eaull, 0x6bfb5fb11f8d5d08ull, 0x56033046fc7b6babull, 0xf0cfbc209af4361dull};
//: turn_V needs two_over_pi_V
/* |x| 2/pi modulo 4, times 2^126 (Payne and Hanek): the 53 bits of x times 192 bits of 2/pi; what
   stands before these is a multiple of 4, what follows is too small to count */
static unsigned __int128 turn_V(double x) {
  union { double f; u64 i; } u = {x};
  int place = (int)(u.i >> 52 & 0x7ff) - 1075 - 2 + 64, shift = place & 63;
  u64 m = (u.i & 0xfffffffffffffll) | 0x10000000000000ll, v[3];
  const u64 *w = two_over_pi_V + (place >> 6);
  for (int i = 0; i < 3; i++) v[i] = shift ? w[i] << shift | w[i + 1] >> (64 - shift) : w[i];
  unsigned __int128 high = (unsigned __int128)v[0] << 64 | v[1];
  return m * high + ((unsigned __int128)m * v[2] >> 64);
}
//: huge_angle_V needs turn_V
/* x modulo pi/2, in two parts, and the multiple (modulo 4) where x >= 2^30 */
static __attribute__((noinline)) void huge_angle_V(const F *x, F *r, F *lo, I *n) {
  double a[L], b[L], c[L];
  i64 k[L];
  __builtin_memcpy(a, x, sizeof a), __builtin_memcpy(b, r, sizeof b);
  __builtin_memcpy(c, lo, sizeof c), __builtin_memcpy(k, n, sizeof k);
  for (int l = 0; l < L; l++) {
    if (!(a[l] >= 0x1p30)) continue;
    unsigned __int128 t = turn_V(a[l]), f = t << 2;
    i64 top = (i64)(f >> 64);
    double high = (double)(top & ~2047ll);   /* exact */
    double low = (double)(top & 2047) + (double)(u64)f * 0x1p-64, d = high + low;
    double p = d * 0x1.921fb54442d18p+0, q = __builtin_fma(d, 0x1.921fb54442d18p+0, -p);
    q += d * 0x1.1a62633145c07p-54 + ((high - d) + low) * 0x1.921fb54442d18p+0;
    b[l] = p * 0x1p-64 + (a[l] - a[l]);   /* NaN for infinities */
    c[l] = q * 0x1p-64;
    k[l] = (i64)((t + ((unsigned __int128)1 << 125)) >> 126);
  }
  __builtin_memcpy(r, b, sizeof b), __builtin_memcpy(lo, c, sizeof c);
  __builtin_memcpy(n, k, sizeof k);
}
//: angle_V needs fma_V splat_V ge_V any_V bits_V huge_angle_V
/* a = n pi/2 + (r + lo), |r| <= 0.8, n modulo 4; pi/2 in three parts (Cody and Waite): the first
   product is taken away exactly */
INL F angle_V(F a, F *lo, I *n) {
  F t = fma_V(a, splat_V(0x1.45f306dc9c883p-1), splat_V(0x1.8p52)), k = t - 0x1.8p52;
  F r1 = fma_V(k, splat_V(-0x1.921fb54442d18p+0), a);
  F p = k * splat_V(0x1.1a62633145c07p-54), s = r1 - p;
  F r = fma_V(k, splat_V(0x1.f1976b7ed8fbcp-110), fma_V(k, splat_V(-0x1.1a62633145c07p-54), r1));
  F less = fma_V(k, splat_V(-0x1.f1976b7ed8fbcp-110), fma_V(k, splat_V(0x1.1a62633145c07p-54), -p));
  F rest = (s - r) + (((r1 - s) - p) - less);
  I m = bits_V(t);
  if (__builtin_expect(any_V(ge_V(a, splat_V(0x1p30))), 0)) {
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
  F p = splat_V(0x1.5d8b6a091c6f8p-33); p = fma_V(p, z, splat_V(-0x1.ae5e4bc2464e5p-26));
  p = fma_V(p, z, splat_V(0x1.71de35556ddc4p-19));
  p = fma_V(p, z, splat_V(-0x1.a01a019be95acp-13)); p = fma_V(p, z, splat_V(0x1.111111110f731p-7));
  p = fma_V(p, z, splat_V(-0x1.5555555555548p-3));
  F q = splat_V(-0x1.8fb1253b8a8f9p-37); q = fma_V(q, z, splat_V(0x1.1ee9f142f3b51p-29));
  q = fma_V(q, z, splat_V(-0x1.27e4f812a9383p-22));
  q = fma_V(q, z, splat_V(0x1.a01a019cbf5bap-16));
  q = fma_V(q, z, splat_V(-0x1.6c16c16c1521fp-10)); q = fma_V(q, z, splat_V(0x1.555555555554cp-5));
  *s = fma_V(r * z, p, r), *c = fma_V(fma_V(q, z, splat_V(-0.5)), z, splat_V(1.0));
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
  *sine = float_V(bits_V(select_V(even, s, c)) ^ ((n << 62 ^ bits_V(x)) & (-0x7fffffffffffffff - 1)));
  *cosine = float_V(bits_V(select_V(even, c, s)) ^ ((n + 1) << 62 & (-0x7fffffffffffffff - 1)));
}
//: tan_small_V needs fma_V splat_V
/* tan(r + lo), |r| <= 0.8 */
INL F tan_small_V(F r, F lo) {
  F z = r * r;
  F px = z * z;
  F p = splat_V(-0x1.782acd3f43b89p-15); p = fma_V(p, px, splat_V(-0x1.b9630cf463bd8p-16));
  p = fma_V(p, px, splat_V(0x1.d26dd91b451cfp-13));
  p = fma_V(p, px, splat_V(0x1.7d5b5aae6b5efp-10));
  p = fma_V(p, px, splat_V(0x1.226e125dca22ap-7)); p = fma_V(p, px, splat_V(0x1.ba1ba1b46d119p-5));
  p = fma_V(p, px, splat_V(0x1.55555555554f2p-2));
  F po = splat_V(0x1.5de5dd42537c2p-16); po = fma_V(po, px, splat_V(0x1.76e90eafa9c07p-14));
  po = fma_V(po, px, splat_V(0x1.1e30f19cda60dp-13));
  po = fma_V(po, px, splat_V(0x1.37fab4a98fef9p-11));
  po = fma_V(po, px, splat_V(0x1.d6d93395783a2p-9));
  po = fma_V(po, px, splat_V(0x1.664f49a836687p-6));
  po = fma_V(po, px, splat_V(0x1.11111111182adp-3));
  p = fma_V(po, z, p);
  F t = r * z * p, u = r + t;
  return r + fma_V(lo, fma_V(u, u, splat_V(1.0)), t);
}
