/* Exponential and hyperbolic functions in float64, as in float32 with longer polynomials. */
//: reduced_exp_V needs fma_V splat_V
/* x = n ln 2 + (rh - lo), rh exact, |rh - lo| <= 0.35 (Cody and Waite); 2^52 + 2^51 + n is in t */
INL F reduced_exp_V(F x, F *t, F *lo) {
  *t = fma_V(x, splat_V(0x1.71547652b82fep+0), splat_V(0x1.8p52));
  F n = *t - 0x1.8p52;
  *lo = n * splat_V(0x1.abc9e3b39803fp-56);
  return fma_V(n, splat_V(-0x1.62e42fefa39efp-1), x);
}
//: exp_V needs fma_V splat_V clip_V scale_V reduced_exp_V
INL F exp_V(F x) {
  F t, lo, c = clip_V(x, splat_V(-746.0), splat_V(710.0));
  F rh = reduced_exp_V(c, &t, &lo), r = rh - lo;
  F qx = r * r;
  F q = splat_V(0x1.28b0fcb6d0859p-22); q = fma_V(q, qx, splat_V(0x1.a019967f0a80ep-16));
  q = fma_V(q, qx, splat_V(0x1.6c16c18553b8ap-10));
  q = fma_V(q, qx, splat_V(0x1.5555555550434p-5)); q = fma_V(q, qx, splat_V(0x1.000000000000ap-1));
  F qo = splat_V(0x1.ab2fa7965bfd9p-26); qo = fma_V(qo, qx, splat_V(0x1.71e08ca71d70ep-19));
  qo = fma_V(qo, qx, splat_V(0x1.a01a00912c278p-13));
  qo = fma_V(qo, qx, splat_V(0x1.1111111142511p-7));
  qo = fma_V(qo, qx, splat_V(0x1.5555555555498p-3));
  q = fma_V(qo, r, q);
  F y = rh + fma_V(q, r * r, -lo) + 1.0;
  return scale_V(y, t);
}
//: exp2_near_V needs fma_V splat_V
/* 2^r, |r| <= 1/2 */
INL F exp2_near_V(F r) {
  F qx = r * r;
  F q = splat_V(0x1.ebd2b4c1970d9p-32); q = fma_V(q, qx, splat_V(0x1.b5239043a597fp-24));
  q = fma_V(q, qx, splat_V(0x1.ffcbfd2331554p-17));
  q = fma_V(q, qx, splat_V(0x1.5d87fe787a3f9p-10));
  q = fma_V(q, qx, splat_V(0x1.c6b08d704a1c2p-5)); q = fma_V(q, qx, splat_V(0x1.62e42fefa39efp-1));
  F qo = splat_V(0x1.fa965f0d0c3a6p-36); qo = fma_V(qo, qx, splat_V(0x1.e4abff4b670abp-28));
  qo = fma_V(qo, qx, splat_V(0x1.62c02a6774618p-20));
  qo = fma_V(qo, qx, splat_V(0x1.430912f6cee0dp-13));
  qo = fma_V(qo, qx, splat_V(0x1.3b2ab6fba527ap-7));
  qo = fma_V(qo, qx, splat_V(0x1.ebfbdff82c58ep-3));
  q = fma_V(qo, r, q);
  return fma_V(q, r, splat_V(1.0));
}
//: exp2_V needs splat_V clip_V scale_V exp2_near_V
INL F exp2_V(F x) {
  F c = clip_V(x, splat_V(-1076.0), splat_V(1025.0));
  F t = c + 0x1.8p52, r = c - (t - 0x1.8p52);
  F y = exp2_near_V(r);
  return scale_V(y, t);
}
//: expm1_V needs fma_V select_V splat_V lt_V clip_V bits_V float_V abs_V reduced_exp_V
/* 2^(n-1) (e^r - 1) + (2^(n-1) - 1/2), twice: the double would overflow early */
INL F expm1_V(F x) {
  F t, lo, c = clip_V(x, splat_V(-40.0), splat_V(710.0));
  F rh = reduced_exp_V(c, &t, &lo), r = rh - lo;
  F qx = r * r;
  F q = splat_V(0x1.e0f83c36da8edp-30); q = fma_V(q, qx, splat_V(0x1.2805190a252d3p-22));
  q = fma_V(q, qx, splat_V(0x1.a019f18f5b994p-16));
  q = fma_V(q, qx, splat_V(0x1.6c16c16f995cfp-10));
  q = fma_V(q, qx, splat_V(0x1.5555555554b53p-5)); q = fma_V(q, qx, splat_V(0x1.0000000000001p-1));
  F qo = splat_V(0x1.af540cc08818fp-26); qo = fma_V(qo, qx, splat_V(0x1.71ddff74ede8cp-19));
  qo = fma_V(qo, qx, splat_V(0x1.a01a01acab2cp-13));
  qo = fma_V(qo, qx, splat_V(0x1.111111110ffbap-7));
  qo = fma_V(qo, qx, splat_V(0x1.5555555555557p-3));
  q = fma_V(qo, r, q);
  F g = fma_V(q, r * r, -lo), s = float_V((bits_V(t) << 52) + 0x3fe0000000000000);
  F y = fma_V(s, g, fma_V(s, rh, s - 0.5));
  return select_V(lt_V(abs_V(x), splat_V(0x1p-60)), x, y + y);
}
//: tanh_V needs fma_V select_V splat_V lt_V gt_V bits_V float_V abs_V copysign_V
/* 1 - 2 / (e^2|x| + 1) and, where that cancels, a polynomial; one part of ln 2 is enough because
   2 / (e^2|x| + 1) falls faster than the error of the exponent grows */
INL F tanh_V(F x) {
  F a = abs_V(x), c = select_V(gt_V(a, splat_V(20.0)), splat_V(20.0), a), z = a * a;
  F t = fma_V(c, splat_V(0x1.71547652b82fep+1), splat_V(0x1.8p52)), n = t - 0x1.8p52;
  F r = fma_V(n, splat_V(-0x1.62e42fefa39efp-2), c);
  F qx = r * r;
  F q = splat_V(0x1.e0f83c36da8edp-19); q = fma_V(q, qx, splat_V(0x1.2805190a252d3p-13));
  q = fma_V(q, qx, splat_V(0x1.a019f18f5b994p-9)); q = fma_V(q, qx, splat_V(0x1.6c16c16f995cfp-5));
  q = fma_V(q, qx, splat_V(0x1.5555555554b53p-2)); q = fma_V(q, qx, splat_V(0x1.0000000000001p+0));
  F qo = splat_V(0x1.af540cc08818fp-16); qo = fma_V(qo, qx, splat_V(0x1.71ddff74ede8cp-11));
  qo = fma_V(qo, qx, splat_V(0x1.a01a01acab2cp-7));
  qo = fma_V(qo, qx, splat_V(0x1.111111110ffbap-3));
  qo = fma_V(qo, qx, splat_V(0x1.5555555555557p-1));
  q = fma_V(qo, r, q);
  F e = fma_V(fma_V(q, r * r, r), splat_V(2.0), splat_V(1.0));
  e = fma_V(e, float_V((bits_V(t) << 52) + 0x3ff0000000000000), splat_V(1.0));
  F px = z * z;
  F p = splat_V(-0x1.b90c5531469dfp-13); p = fma_V(p, px, splat_V(-0x1.7cf3cfe0820f6p-10));
  p = fma_V(p, px, splat_V(-0x1.226ddd57c4625p-7));
  p = fma_V(p, px, splat_V(-0x1.ba1ba1ad74f17p-5));
  p = fma_V(p, px, splat_V(-0x1.555555555549ep-2));
  F po = splat_V(0x1.ac080d1908f7p-15); po = fma_V(po, px, splat_V(0x1.2fa2f222c6d6ap-11));
  po = fma_V(po, px, splat_V(0x1.d6c61f9d1664ep-9));
  po = fma_V(po, px, splat_V(0x1.664f45c376e9ep-6));
  po = fma_V(po, px, splat_V(0x1.11111111029c6p-3));
  p = fma_V(po, z, p);
  F y = select_V(lt_V(a, splat_V(0.55)), fma_V(a * z, p, a), splat_V(1.0) - splat_V(2.0) / e);
  return copysign_V(y, x);
}
//: logistic_V needs fma_V select_V splat_V lt_V abs_V exp_V
/* e / (1 + e) or 1 / (1 + e) with e = e^-|x|, corrected by the remainder, 1 + e being two parts */
INL F logistic_V(F x) {
  F one = splat_V(1.0), e = exp_V(-abs_V(x)), d = e + 1.0, lost = e - (d - 1.0);
  M negative = lt_V(x, splat_V(0.0));
  F num = select_V(negative, e, one), y = num / d, inverse = select_V(negative, one - y, y);
  return fma_V(fma_V(-y, lost, fma_V(-y, d, num)), inverse, y);
}
//: sinh_cosh_V needs fma_V select_V splat_V selecti_V splati_V gt_V gti_V bits_V float_V
//:+ reduced_exp_V
/* a = n ln 2 + r: up = 2^(n-2), down = 2^(-n-2), g = sinh r - rh, d = cosh r - 1 */
INL void sinh_cosh_V(F a, F *up, F *down, F *rh, F *g, F *d) {
  F t, lo, c = select_V(gt_V(a, splat_V(710.5)), splat_V(710.5), a);
  *rh = reduced_exp_V(c, &t, &lo);
  F r = *rh - lo, z = r * r;
  F p = splat_V(0x1.af6014bc51008p-26); p = fma_V(p, z, splat_V(0x1.71ddf7a0f826ep-19));
  p = fma_V(p, z, splat_V(0x1.a01a01b024887p-13)); p = fma_V(p, z, splat_V(0x1.111111110f624p-7));
  p = fma_V(p, z, splat_V(0x1.5555555555559p-3));
  F q = splat_V(0x1.28b1c067f5a06p-22); q = fma_V(q, z, splat_V(0x1.a01994fd01199p-16));
  q = fma_V(q, z, splat_V(0x1.6c16c1863eea8p-10)); q = fma_V(q, z, splat_V(0x1.555555554fd65p-5));
  q = fma_V(q, z, splat_V(0x1.000000000000cp-1));
  I n = bits_V(t) - 0x4338000000000000, m = selecti_V(gti_V(n, splati_V(100)), splati_V(100), n);
  *up = float_V((n << 52) + 0x3fd0000000000000), *down = float_V(0x3fd0000000000000 - (m << 52));
  *g = fma_V(r * z, p, -lo), *d = q * z;
}
