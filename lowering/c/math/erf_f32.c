/* The error function in float32, its complement and its inverse. */
//: erf_small_V needs fma_V splat_V
/* erf x / x - 1 for |x| < 0.92, z = x^2 */
INL F erf_small_V(F z) {
  F p = splat_V(0x1.4f2b62p-14f); p = fma_V(p, z, splat_V(-0x1.a5fe14p-11f));
  p = fma_V(p, z, splat_V(0x1.544954p-8f)); p = fma_V(p, z, splat_V(-0x1.b80112p-6f));
  p = fma_V(p, z, splat_V(0x1.ce2d64p-4f)); p = fma_V(p, z, splat_V(-0x1.81274p-2f));
  p = fma_V(p, z, splat_V(0x1.06eba8p-3f));
  return p;
}
//: erf_V needs fma_V select_V splat_V lt_V gt_V bits_V float_V abs_V copysign_V erf_small_V
/* 1 - 2^-p(|x|) from 0.92 on; 1 beyond 4 */
INL F erf_V(F x) {
  F a = abs_V(x), c = select_V(gt_V(a, splat_V(4.0f)), splat_V(4.0f), a);
  F l = splat_V(0x1.16edd6p-16f); l = fma_V(l, c, splat_V(-0x1.eca8fcp-12f));
  l = fma_V(l, c, splat_V(0x1.59765ep-8f)); l = fma_V(l, c, splat_V(-0x1.191c1p-5f));
  l = fma_V(l, c, splat_V(0x1.39f838p-3f)); l = fma_V(l, c, splat_V(0x1.d5263cp-1f));
  l = fma_V(l, c, splat_V(0x1.a0d854p+0f));
  l = l * c;
  F t = splat_V(0x1.8p23f) - l, r = (splat_V(0x1.8p23f) - t) - l;
  F e = splat_V(0x1.b3c06ap-17f); e = fma_V(e, r, splat_V(0x1.44175ep-13f));
  e = fma_V(e, r, splat_V(0x1.5dc64ep-10f)); e = fma_V(e, r, splat_V(0x1.3b2a54p-7f));
  e = fma_V(e, r, splat_V(0x1.c6b058p-5f)); e = fma_V(e, r, splat_V(0x1.ebfbep-3f));
  e = fma_V(e, r, splat_V(0x1.62e43p-1f));
  e = fma_V(e, r, splat_V(1.0f)) * float_V((bits_V(t) << 23) + 0x3f800000);
  F y = select_V(lt_V(a, splat_V(0.92f)), fma_V(a, erf_small_V(a * a), a), splat_V(1.0f) - e);
  return copysign_V(y, x);
}
//: erfc_V needs fma_V select_V splat_V lt_V gt_V bits_V float_V abs_V reduced_exp_V erf_small_V
/* e^-a^2 p(q) / (a + b) with q = (a - b) / (a + b) for a = |x| > 0.9; a^2 and 1 / (a + b) in two
   parts. b = 37/16 makes the constant of p nearly a float */
INL F erfc_V(F x) {
  F a = abs_V(x), c = select_V(gt_V(a, splat_V(10.1f)), splat_V(10.1f), a), one = splat_V(1.0f);
  F d = c + 2.3125f, w = one / d, lost = c - (d - 2.3125f);
  F wl = w * (fma_V(-w, d, one) - w * lost), u = c - 2.3125f;
  F q = fma_V(u, w, u * wl), ql = fma_V(u, w, -q) + u * wl;
  F i = splat_V(0x1.b5bc62p-13f); i = fma_V(i, q, splat_V(0x1.27a2fep-12f));
  i = fma_V(i, q, splat_V(-0x1.87e9dp-10f)); i = fma_V(i, q, splat_V(-0x1.f94338p-10f));
  i = fma_V(i, q, splat_V(0x1.8049c2p-7f)); i = fma_V(i, q, splat_V(0x1.a3ccf6p-9f));
  i = fma_V(i, q, splat_V(-0x1.e522c2p-4f)); i = fma_V(i, q, splat_V(0x1.927986p-2f));
  i = fma_V(i, q, splat_V(-0x1.8845bp-1f));
  F p0 = splat_V(0x1.0b3444p+0f), p = fma_V(i, q, p0), pl = fma_V(i, q, p0 - p) + i * ql;
  F g = p * w, h = fma_V(p, wl, fma_V(pl, w, fma_V(p, w, -g)));
  F s = c * c, sl = fma_V(c, c, -s), t, lo, rh = reduced_exp_V(-s, &t, &lo);
  lo = lo + sl;
  F r = rh - lo;
  F e = splat_V(0x1.6a4922p-10f); e = fma_V(e, r, splat_V(0x1.123f96p-7f));
  e = fma_V(e, r, splat_V(0x1.55589cp-5f)); e = fma_V(e, r, splat_V(0x1.555488p-3f));
  e = fma_V(e, r, splat_V(0x1.fffffcp-2f));
  F v = fma_V(e, r * r, -lo), y = g + fma_V(g, rh, fma_V(g, v, fma_V(h, rh + v, h)));
  I n = bits_V(t), m = n >> 1;
  y = y * float_V((m << 23) + 0x3f800000) * float_V(((n - m) << 23) + 0x3f800000);
  y = select_V(lt_V(x, splat_V(0.0f)), splat_V(2.0f) - y, y);
  return select_V(lt_V(a, splat_V(0.9f)), fma_V(-x, erf_small_V(x * x), one - x), y);
}
//: erf_inv_V needs fma_V select_V splat_V lt_V gt_V eq_V copysign_V log_V sqrt_V
/* x times a polynomial in x^2 < 1/2, in w = -log(1 - x^2) < 5 or in sqrt w (the last two variables
   are those of M. Giles, "Approximating the erfinv function", GPU Computing Gems 2, 2011); its last
   step i v + c without rounding. The centres make c nearly a float */
INL F erf_inv_V(F x) {
  F z = x * x, w = -log_V(fma_V(-x, x, splat_V(1.0f)));
  F u = w - 0x1.5p+1f, s = sqrt_V(w) - 0x1.76p+1f;
  F ix = z * z;
  F i = splat_V(0x1.e28f86p-2f); i = fma_V(i, ix, splat_V(0x1.1351fap-1f));
  i = fma_V(i, ix, splat_V(0x1.97339ap-4f)); i = fma_V(i, ix, splat_V(0x1.64a9bcp-4f));
  i = fma_V(i, ix, splat_V(0x1.db2a1ep-3f));
  F io = splat_V(-0x1.55fb0ep-1f); io = fma_V(io, ix, splat_V(-0x1.43697cp-3f));
  io = fma_V(io, ix, splat_V(0x1.dd565p-5f)); io = fma_V(io, ix, splat_V(0x1.0531bap-3f));
  i = fma_V(io, z, i);
  F jx = u * u;
  F j = splat_V(-0x1.0be746p-27f); j = fma_V(j, jx, splat_V(0x1.fc81c2p-22f));
  j = fma_V(j, jx, splat_V(-0x1.ee4d24p-18f)); j = fma_V(j, jx, splat_V(-0x1.2c080ep-10f));
  j = fma_V(j, jx, splat_V(0x1.f6dd1ep-3f));
  F jo = splat_V(0x1.a20adep-27f); jo = fma_V(jo, jx, splat_V(-0x1.97605cp-19f));
  jo = fma_V(jo, jx, splat_V(0x1.c1b262p-13f)); jo = fma_V(jo, jx, splat_V(-0x1.2f3872p-8f));
  j = fma_V(jo, u, j);
  F kx = s * s;
  F k = splat_V(0x1.7d7694p-13f); k = fma_V(k, kx, splat_V(0x1.83c308p-14f));
  k = fma_V(k, kx, splat_V(-0x1.179e28p-8f)); k = fma_V(k, kx, splat_V(-0x1.3c4646p-7f));
  k = fma_V(k, kx, splat_V(0x1.000324p+0f));
  F ko = splat_V(-0x1.d8b85p-16f); ko = fma_V(ko, kx, splat_V(-0x1.a39bfcp-12f));
  ko = fma_V(ko, kx, splat_V(0x1.85fcdap-10f)); ko = fma_V(ko, kx, splat_V(0x1.d8f96ap-8f));
  ko = fma_V(ko, kx, splat_V(0x1.779c96p-7f));
  k = fma_V(ko, s, k);
  M inner = lt_V(z, splat_V(0.5f)), tail = gt_V(w, splat_V(5.0f));
  F v = select_V(inner, z, select_V(tail, s, u));
  i = select_V(inner, i, select_V(tail, k, j));
  F c = select_V(tail, splat_V(0x1.609cb6p+1f), splat_V(0x1.883c68p+0f));
  c = select_V(inner, splat_V(0x1.c5bf8ap-1f), c);
  F p = fma_V(i, v, c), y = fma_V(x, p, x * fma_V(i, v, c - p));
  M one = eq_V(z, splat_V(1.0f));
  return select_V(one, copysign_V(splat_V(__builtin_inff()), x), y);
}
