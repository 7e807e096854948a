/* Exponential and hyperbolic functions in float32: x = n ln 2 + r, where adding 1.5 * 2^23 rounds
   to n, a polynomial in |r| <= 0.35, and 2^n by the bits of the exponent. The coefficients of all
   templates are minimax fits (Remez exchange), rounded one after the other. */
//: reduced_exp_V needs fma_V splat_V
/* x = n ln 2 + (rh - lo), rh exact, |rh - lo| <= 0.35 (Cody and Waite); 2^23 + 2^22 + n is in t */
INL F reduced_exp_V(F x, F *t, F *lo) {
  *t = fma_V(x, splat_V(0x1.715476p+0f), splat_V(0x1.8p23f));
  F n = *t - 0x1.8p23f;
  *lo = n * splat_V(-0x1.05c61p-29f);
  return fma_V(n, splat_V(-0x1.62e43p-1f), x);
}
//: exp_V needs fma_V splat_V clip_V scale_V reduced_exp_V
INL F exp_V(F x) {
  F t, lo, c = clip_V(x, splat_V(-104.0f), splat_V(89.0f));
  F rh = reduced_exp_V(c, &t, &lo), r = rh - lo;
  F q = splat_V(0x1.6a4922p-10f); q = fma_V(q, r, splat_V(0x1.123f96p-7f));
  q = fma_V(q, r, splat_V(0x1.55589cp-5f)); q = fma_V(q, r, splat_V(0x1.555488p-3f));
  q = fma_V(q, r, splat_V(0x1.fffffcp-2f));
  F y = rh + fma_V(q, r * r, -lo) + 1.0f;
  return scale_V(y, t);
}
//: exp2_V needs fma_V splat_V clip_V scale_V
INL F exp2_V(F x) {
  F c = clip_V(x, splat_V(-151.0f), splat_V(129.0f));
  F t = c + 0x1.8p23f, r = c - (t - 0x1.8p23f);
  F q = splat_V(0x1.b3c06ap-17f); q = fma_V(q, r, splat_V(0x1.44175ep-13f));
  q = fma_V(q, r, splat_V(0x1.5dc64ep-10f)); q = fma_V(q, r, splat_V(0x1.3b2a54p-7f));
  q = fma_V(q, r, splat_V(0x1.c6b058p-5f)); q = fma_V(q, r, splat_V(0x1.ebfbep-3f));
  q = fma_V(q, r, splat_V(0x1.62e43p-1f));
  F y = fma_V(q, r, splat_V(1.0f));
  return scale_V(y, t);
}
//: expm1_V needs fma_V select_V splat_V lt_V clip_V bits_V float_V abs_V reduced_exp_V
/* 2^(n-1) (e^r - 1) + (2^(n-1) - 1/2), twice: the double would overflow early */
INL F expm1_V(F x) {
  F t, lo, c = clip_V(x, splat_V(-20.0f), splat_V(89.0f));
  F rh = reduced_exp_V(c, &t, &lo), r = rh - lo;
  F q = splat_V(0x1.9c8daap-13f); q = fma_V(q, r, splat_V(0x1.6d4be2p-10f));
  q = fma_V(q, r, splat_V(0x1.1113a2p-7f)); q = fma_V(q, r, splat_V(0x1.5554eap-5f));
  q = fma_V(q, r, splat_V(0x1.555554p-3f)); q = fma_V(q, r, splat_V(0x1p-1f));
  F g = fma_V(q, r * r, -lo), s = float_V((bits_V(t) << 23) + 0x3f000000);
  F y = fma_V(s, g, fma_V(s, rh, s - 0.5f));
  return select_V(lt_V(abs_V(x), splat_V(0x1p-60f)), x, y + y);
}
//: tanh_V needs fma_V select_V splat_V lt_V gt_V bits_V float_V abs_V copysign_V
/* 1 - 2 / (e^2|x| + 1) and, where that cancels, a polynomial; one part of ln 2 is enough because
   2 / (e^2|x| + 1) falls faster than the error of the exponent grows */
INL F tanh_V(F x) {
  F a = abs_V(x), c = select_V(gt_V(a, splat_V(10.0f)), splat_V(10.0f), a), z = a * a;
  F t = fma_V(c, splat_V(0x1.715476p+1f), splat_V(0x1.8p23f)), n = t - 0x1.8p23f;
  F r = fma_V(n, splat_V(-0x1.62e43p-2f), c);
  F q = splat_V(0x1.9c8daap-7f); q = fma_V(q, r, splat_V(0x1.6d4be2p-5f));
  q = fma_V(q, r, splat_V(0x1.1113a2p-3f)); q = fma_V(q, r, splat_V(0x1.5554eap-2f));
  q = fma_V(q, r, splat_V(0x1.555554p-1f)); q = fma_V(q, r, splat_V(0x1p+0f));
  F e = fma_V(fma_V(q, r * r, r), splat_V(2.0f), splat_V(1.0f));
  e = fma_V(e, float_V((bits_V(t) << 23) + 0x3f800000), splat_V(1.0f));
  F p = splat_V(-0x1.992188p-8f); p = fma_V(p, z, splat_V(0x1.58e516p-6f));
  p = fma_V(p, z, splat_V(-0x1.b91e7ep-5f)); p = fma_V(p, z, splat_V(0x1.110ceep-3f));
  p = fma_V(p, z, splat_V(-0x1.55554ap-2f));
  F y = select_V(lt_V(a, splat_V(0.55f)), fma_V(a * z, p, a), splat_V(1.0f) - splat_V(2.0f) / e);
  return copysign_V(y, x);
}
//: logistic_V needs fma_V select_V splat_V lt_V abs_V exp_V
/* e / (1 + e) or 1 / (1 + e) with e = e^-|x|, corrected by the remainder, 1 + e being two parts */
INL F logistic_V(F x) {
  F one = splat_V(1.0f), e = exp_V(-abs_V(x)), d = e + 1.0f, lost = e - (d - 1.0f);
  M negative = lt_V(x, splat_V(0.0f));
  F num = select_V(negative, e, one), y = num / d, inverse = select_V(negative, one - y, y);
  return fma_V(fma_V(-y, lost, fma_V(-y, d, num)), inverse, y);
}
//: sinh_cosh_V needs fma_V select_V splat_V selecti_V splati_V gt_V gti_V bits_V float_V
//:+ reduced_exp_V
/* a = n ln 2 + r: up = 2^(n-2), down = 2^(-n-2), g = sinh r - rh, d = cosh r - 1 */
INL void sinh_cosh_V(F a, F *up, F *down, F *rh, F *g, F *d) {
  F t, lo, c = select_V(gt_V(a, splat_V(89.5f)), splat_V(89.5f), a);
  *rh = reduced_exp_V(c, &t, &lo);
  F r = *rh - lo, z = r * r;
  F p = splat_V(0x1.122934p-7f); p = fma_V(p, z, splat_V(0x1.5554aep-3f));
  F q = splat_V(0x1.6d51ecp-10f); q = fma_V(q, z, splat_V(0x1.5554e4p-5f));
  q = fma_V(q, z, splat_V(0x1p-1f));
  I n = bits_V(t) - 0x4b400000, m = selecti_V(gti_V(n, splati_V(60)), splati_V(60), n);
  *up = float_V((n << 23) + 0x3e800000), *down = float_V(0x3e800000 - (m << 23));
  *g = fma_V(r * z, p, -lo), *d = q * z;
}
