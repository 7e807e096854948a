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
//: log1p_giles_V needs fma_V splat_V
/* log(1 + t) for |t| < sqrt(2) - 1: t - t^2/2 + t^3 P(t)/Q(t), with the coefficients of Cephes */
INL F log1p_giles_V(F t) {
  F p = splat_V(4.5270000862445199635215e-5f);
  p = fma_V(p, t, splat_V(4.9854102823193375972212e-1f));
  p = fma_V(p, t, splat_V(6.5787325942061044846969f));
  p = fma_V(p, t, splat_V(29.911919328553073277375f));
  p = fma_V(p, t, splat_V(60.949667980987787057556f));
  p = fma_V(p, t, splat_V(57.112963590585538103336f));
  p = fma_V(p, t, splat_V(20.039553499201281259648f));
  F q = t + splat_V(15.062909083469192043167f);
  q = fma_V(q, t, splat_V(83.047565967967209469434f));
  q = fma_V(q, t, splat_V(221.76239823732856465394f));
  q = fma_V(q, t, splat_V(309.09872225312059774938f));
  q = fma_V(q, t, splat_V(216.42788614495947685003f));
  q = fma_V(q, t, splat_V(60.118660497603840919306f));
  F square = t * t;
  return t + fma_V(splat_V(-0.5f), square, t * square * (p / q));
}
//: log_giles_V needs fma_V splat_V select_V lt_V bits_V float_V fromint_V
/* log v for normal v in (0, 1]: v = 2^e m with m in [sqrt(1/2), sqrt(2)), x = m - 1 */
INL F log_giles_V(F v) {
  I bits = bits_V(v);
  F half = float_V((bits & 0x007fffff) | 0x3f000000), zero = splat_V(0.0f);
  M low = lt_V(half, splat_V(0.70710678f));
  F e = fromint_V((bits >> 23) - 126) - select_V(low, splat_V(1.0f), zero);
  F x = (half - splat_V(1.0f)) + select_V(low, half, zero);
  F square = x * x, cube = square * x;
  F a = fma_V(fma_V(splat_V(7.0376836292e-2f), x, splat_V(-1.1514610310e-1f)), x,
              splat_V(1.1676998740e-1f));
  F b = fma_V(fma_V(splat_V(-1.2420140846e-1f), x, splat_V(1.4249322787e-1f)), x,
              splat_V(-1.6668057665e-1f));
  F c = fma_V(fma_V(splat_V(2.0000714765e-1f), x, splat_V(-2.4999993993e-1f)), x,
              splat_V(3.3333331174e-1f));
  F tail = fma_V(fma_V(fma_V(a, cube, b), cube, c), cube, e * splat_V(-2.12194440e-4f));
  return fma_V(e, splat_V(0.693359375f), fma_V(splat_V(-0.5f), square, x) + tail);
}
//: erf_inv_V needs fma_V splat_V select_V lt_V gt_V eq_V sqrt_V log1p_giles_V log_giles_V
/* M. Giles, "Approximating the erfinv function", GPU Computing Gems 2, 2011. Every operation is
   that of the eager erf_inv (csrc/erf_inv_float.cpp), in its order: normal samples of compiled
   programs are those of eager ones to the last bit */
INL F erf_inv_V(F x) {
  F t = splat_V(0.0f) - x * x, v = t + splat_V(1.0f), least = splat_V(1.17549435e-38f);
  F far = log_giles_V(select_V(gt_V(v, least), v, least));
  F l = select_V(gt_V(t, splat_V(-0.41421356f)), log1p_giles_V(t), far);
  M central = gt_V(l, splat_V(-5.0f));
  F w = select_V(central, splat_V(-2.5f) - l, sqrt_V(splat_V(0.0f) - l) - splat_V(3.0f));
  F p = select_V(central, splat_V(2.81022636e-08f), splat_V(-0.000200214257f));
  p = fma_V(p, w, select_V(central, splat_V(3.43273939e-07f), splat_V(0.000100950558f)));
  p = fma_V(p, w, select_V(central, splat_V(-3.5233877e-06f), splat_V(0.00134934322f)));
  p = fma_V(p, w, select_V(central, splat_V(-4.39150654e-06f), splat_V(-0.00367342844f)));
  p = fma_V(p, w, select_V(central, splat_V(0.00021858087f), splat_V(0.00573950773f)));
  p = fma_V(p, w, select_V(central, splat_V(-0.00125372503f), splat_V(-0.0076224613f)));
  p = fma_V(p, w, select_V(central, splat_V(-0.00417768164f), splat_V(0.00943887047f)));
  p = fma_V(p, w, select_V(central, splat_V(0.246640727f), splat_V(1.00167406f)));
  p = fma_V(p, w, select_V(central, splat_V(1.50140941f), splat_V(2.83297682f)));
  p = select_V(eq_V(t, splat_V(-1.0f)), splat_V(__builtin_inff()), p);
  p = select_V(lt_V(t, splat_V(-1.0f)), splat_V(__builtin_nanf("")), p);
  return x * p;
}
