/* The error function in float64, its complement and its inverse. */
//: erf_small_V needs fma_V splat_V
/* erf x / x - 1 for |x| < 0.92, z = x^2 */
INL F erf_small_V(F z) {
  F px = z * z;
  F p = splat_V(0x1.188ba8f6a18a7p-34); p = fma_V(p, px, splat_V(0x1.f97eb65874183p-27));
  p = fma_V(p, px, splat_V(0x1.b9e32eb549ca5p-20));
  p = fma_V(p, px, splat_V(0x1.f9a325369c52fp-14)); p = fma_V(p, px, splat_V(0x1.565bcd0e3e6cp-8));
  p = fma_V(p, px, splat_V(0x1.ce2f21a042bc1p-4)); p = fma_V(p, px, splat_V(0x1.06eba8214db69p-3));
  F po = splat_V(-0x1.3ec554a2d738dp-30); po = fma_V(po, px, splat_V(-0x1.5f45072773cb4p-23));
  po = fma_V(po, px, splat_V(-0x1.f4d22b90435bcp-17));
  po = fma_V(po, px, splat_V(-0x1.c02db3f548fb9p-11));
  po = fma_V(po, px, splat_V(-0x1.b82ce31287e37p-6));
  po = fma_V(po, px, splat_V(-0x1.812746b0379e7p-2));
  p = fma_V(po, z, p);
  return p;
}
//: erfc_tail_V needs fma_V select_V splat_V gt_V bits_V float_V reduced_exp_V
/* e^-a^2 p(q) / (a + b) with q = (a - b) / (a + b) for a > 0.9; a^2 and 1 / (a + b) in two
   parts. b = 197/64 makes the constant of p nearly a float */
INL F erfc_tail_V(F a) {
  F c = select_V(gt_V(a, splat_V(27.3)), splat_V(27.3), a), one = splat_V(1.0);
  F d = c + 0x1.8ap+1, w = one / d, lost = c - (d - 0x1.8ap+1);
  F wl = w * (fma_V(-w, d, one) - w * lost), u = c - 0x1.8ap+1;
  F q = fma_V(u, w, u * wl), ql = fma_V(u, w, -q) + u * wl;
  F i = splat_V(-0x1.01f658391e579p-26); i = fma_V(i, q, splat_V(0x1.47e466351b50fp-26));
  i = fma_V(i, q, splat_V(0x1.c7169de761ep-24)); i = fma_V(i, q, splat_V(-0x1.a8819fb27cfacp-24));
  i = fma_V(i, q, splat_V(-0x1.409e0d7ab11d7p-21));
  i = fma_V(i, q, splat_V(0x1.34a4065917b1ap-22)); i = fma_V(i, q, splat_V(0x1.d062a67250ec7p-19));
  i = fma_V(i, q, splat_V(-0x1.ebb8cf52ff66ep-21));
  i = fma_V(i, q, splat_V(-0x1.66c70cc6a3884p-16));
  i = fma_V(i, q, splat_V(0x1.48ef0b199f9c4p-17)); i = fma_V(i, q, splat_V(0x1.29a8300140a31p-13));
  i = fma_V(i, q, splat_V(-0x1.793a387c1aa8ep-13));
  i = fma_V(i, q, splat_V(-0x1.d6245fcd3c5a6p-11)); i = fma_V(i, q, splat_V(0x1.884a9558fd892p-9));
  i = fma_V(i, q, splat_V(0x1.7da93baee383p-10)); i = fma_V(i, q, splat_V(-0x1.22257e8aebd9p-5));
  i = fma_V(i, q, splat_V(0x1.15d81edb935e4p-3)); i = fma_V(i, q, splat_V(-0x1.5317c3b751a82p-2));
  i = fma_V(i, q, splat_V(0x1.37801f7f88315p-1)); i = fma_V(i, q, splat_V(-0x1.c954f3d9bf4d9p-1));
  F p0 = splat_V(0x1.138f8bdbd5691p+0), p = fma_V(i, q, p0), pl = fma_V(i, q, p0 - p) + i * ql;
  F g = p * w, h = fma_V(p, wl, fma_V(pl, w, fma_V(p, w, -g)));
  F s = c * c, sl = fma_V(c, c, -s), t, lo, rh = reduced_exp_V(-s, &t, &lo);
  lo = lo + sl;
  F r = rh - lo;
  F ex = r * r;
  F e = splat_V(0x1.28b0fcb6d0859p-22); e = fma_V(e, ex, splat_V(0x1.a019967f0a80ep-16));
  e = fma_V(e, ex, splat_V(0x1.6c16c18553b8ap-10));
  e = fma_V(e, ex, splat_V(0x1.5555555550434p-5)); e = fma_V(e, ex, splat_V(0x1.000000000000ap-1));
  F eo = splat_V(0x1.ab2fa7965bfd9p-26); eo = fma_V(eo, ex, splat_V(0x1.71e08ca71d70ep-19));
  eo = fma_V(eo, ex, splat_V(0x1.a01a00912c278p-13));
  eo = fma_V(eo, ex, splat_V(0x1.1111111142511p-7));
  eo = fma_V(eo, ex, splat_V(0x1.5555555555498p-3));
  e = fma_V(eo, r, e);
  F v = fma_V(e, r * r, -lo), y = g + fma_V(g, rh, fma_V(g, v, fma_V(h, rh + v, h)));
  I n = bits_V(t), m = (I)((U)n >> 1);
  y = y * float_V((m << 52) + 0x3ff0000000000000);
  return y * float_V(((n - m) << 52) + 0x3ff0000000000000);
}
//: erf_V needs fma_V select_V splat_V lt_V abs_V copysign_V erf_small_V erfc_tail_V
INL F erf_V(F x) {
  F a = abs_V(x), y = fma_V(a, erf_small_V(a * a), a);
  y = select_V(lt_V(a, splat_V(0.9)), y, splat_V(1.0) - erfc_tail_V(a));
  return copysign_V(y, x);
}
//: erfc_V needs fma_V select_V splat_V lt_V abs_V erfc_tail_V erf_small_V
INL F erfc_V(F x) {
  F a = abs_V(x), y = erfc_tail_V(a);
  y = select_V(lt_V(x, splat_V(0.0)), splat_V(2.0) - y, y);
  return select_V(lt_V(a, splat_V(0.9)), fma_V(-x, erf_small_V(x * x), splat_V(1.0) - x), y);
}
//: erf_inv_tail_V needs fma_V select_V splat_V lt_V sqrt_V
/* c + i v, fractions in s = sqrt w < 3.75 and beyond */
INL F erf_inv_tail_V(F w, F *i, F *v) {
  F s = sqrt_V(w), near = s - 0x1.2p+1, far = s - 0x1.cp+1;
  M low = lt_V(s, splat_V(3.75));
  F ax = near * near;
  F a = splat_V(0x1.2142bab0b5145p-12); a = fma_V(a, ax, splat_V(0x1.b525d609a9bp-7));
  a = fma_V(a, ax, splat_V(0x1.31cd2270f7847p-3)); a = fma_V(a, ax, splat_V(0x1.56cb9ca61546p-1));
  a = fma_V(a, ax, splat_V(0x1.faa69c08185eep-1));
  F ao = splat_V(0x1.57ae695912599p-9); ao = fma_V(ao, ax, splat_V(0x1.94e8fe99c638cp-5));
  ao = fma_V(ao, ax, splat_V(0x1.30e36a982bd27p-2));
  ao = fma_V(ao, ax, splat_V(0x1.3bf5bc2eabe73p-1));
  a = fma_V(ao, near, a);
  F bx = near * near;
  F b = splat_V(0x1.248362a719418p-12); b = fma_V(b, bx, splat_V(0x1.c248589e243a6p-7));
  b = fma_V(b, bx, splat_V(0x1.3fb4115c0a80ep-3)); b = fma_V(b, bx, splat_V(0x1.618c3ab1495e8p-1));
  b = fma_V(b, bx, splat_V(0x1p+0));
  F bo = splat_V(0x1.4b005078f5d28p-9); bo = fma_V(bo, bx, splat_V(0x1.7bdd0284b025ep-5));
  bo = fma_V(bo, bx, splat_V(0x1.1c147ecb42efbp-2));
  bo = fma_V(bo, bx, splat_V(0x1.2d5a2e41d1c14p-1));
  b = fma_V(bo, near, b);
  F ex = far * far;
  F e = splat_V(0x1.27f251cf29a91p-11); e = fma_V(e, ex, splat_V(0x1.22fa22c7cb05dp-5));
  e = fma_V(e, ex, splat_V(0x1.b82367f985b9dp-2)); e = fma_V(e, ex, splat_V(0x1.63a50f2577cb6p+0));
  e = fma_V(e, ex, splat_V(0x1.027b21b460ef5p+0));
  F eo = splat_V(0x1.dcbcc1fc17088p-8); eo = fma_V(eo, ex, splat_V(0x1.38e515b1112edp-3));
  eo = fma_V(eo, ex, splat_V(0x1.c37846b375701p-1));
  eo = fma_V(eo, ex, splat_V(0x1.6fa3c16369cadp+0));
  e = fma_V(eo, far, e);
  F gx = far * far;
  F g = splat_V(0x1.27e0495eb1119p-11); g = fma_V(g, gx, splat_V(0x1.209fed4ac3913p-5));
  g = fma_V(g, gx, splat_V(0x1.b3cd0ad09657dp-2)); g = fma_V(g, gx, splat_V(0x1.600651b22678cp+0));
  g = fma_V(g, gx, splat_V(0x1p+0));
  F go = splat_V(0x1.d7f6671a0a4d2p-8); go = fma_V(go, gx, splat_V(0x1.35a61104234d7p-3));
  go = fma_V(go, gx, splat_V(0x1.beb715e339e8p-1));
  go = fma_V(go, gx, splat_V(0x1.6bc3e3bf0c45fp+0));
  g = fma_V(go, far, g);
  *v = s - select_V(low, splat_V(0x1.96p+1), splat_V(0x1.4dp+2));
  *i = select_V(low, a, e) / select_V(low, b, g);
  return select_V(low, splat_V(0x1.80b06fcdb3354p+1), splat_V(0x1.4387066f97d2bp+2));
}
//: erf_inv_V needs fma_V select_V splat_V lt_V gt_V eq_V any_V abs_V copysign_V log_V
//:+ erf_inv_tail_V
/* as in float32, with two ranges of sqrt w, rare enough to be skipped where no lane needs them */
INL F erf_inv_V(F x) {
  F z = x * x, w = -log_V(fma_V(-x, x, splat_V(1.0))), v = w - 0x1.4cp+1;
  F jx = z * z;
  F j = splat_V(-0x1.bdc840c059b0bp+4); j = fma_V(j, jx, splat_V(-0x1.181fa6ffd39c8p+6));
  j = fma_V(j, jx, splat_V(-0x1.34ca2b9d6e7f9p+5));
  j = fma_V(j, jx, splat_V(-0x1.b79e1eecd69b2p+2));
  j = fma_V(j, jx, splat_V(-0x1.b41b60255b881p-2));
  j = fma_V(j, jx, splat_V(0x1.1a67787a20375p-6)); j = fma_V(j, jx, splat_V(0x1.2a0330d9cb897p-5));
  j = fma_V(j, jx, splat_V(0x1.a7c7f1767e638p-5)); j = fma_V(j, jx, splat_V(0x1.62847c421b947p-4));
  j = fma_V(j, jx, splat_V(0x1.db29fb2fee59ep-3));
  F jo = splat_V(0x1.a5391645192ffp+2); jo = fma_V(jo, jx, splat_V(0x1.c024d167c6f1ap+5));
  jo = fma_V(jo, jx, splat_V(0x1.e613e1f16c38bp+5));
  jo = fma_V(jo, jx, splat_V(0x1.297bc6baceb52p+4));
  jo = fma_V(jo, jx, splat_V(0x1.0129df14250f2p+1));
  jo = fma_V(jo, jx, splat_V(0x1.a9995301d3e93p-4));
  jo = fma_V(jo, jx, splat_V(0x1.0cc38e4ea5e03p-5));
  jo = fma_V(jo, jx, splat_V(0x1.5ef592ff68bafp-5));
  jo = fma_V(jo, jx, splat_V(0x1.0a131a068f3fap-4));
  jo = fma_V(jo, jx, splat_V(0x1.053c2c0abf178p-3));
  j = fma_V(jo, z, j);
  F ix = v * v;
  F i = splat_V(-0x1.868a890e4d15ap-59); i = fma_V(i, ix, splat_V(0x1.8bd893fb2bd23p-50));
  i = fma_V(i, ix, splat_V(-0x1.57dd240bfdca3p-44));
  i = fma_V(i, ix, splat_V(0x1.b02914b6c4479p-40));
  i = fma_V(i, ix, splat_V(0x1.77a7657e43d7ep-34));
  i = fma_V(i, ix, splat_V(-0x1.562ab400cbea4p-27));
  i = fma_V(i, ix, splat_V(0x1.049ee67a66a4fp-21));
  i = fma_V(i, ix, splat_V(-0x1.ca4a43cc11cf6p-18));
  i = fma_V(i, ix, splat_V(-0x1.3310842ab8b6fp-10));
  i = fma_V(i, ix, splat_V(0x1.f772f2f0c025bp-3));
  F io = splat_V(-0x1.f92d8991bdcc4p-54); io = fma_V(io, ix, splat_V(-0x1.e9b4ae845b93ep-52));
  io = fma_V(io, ix, splat_V(0x1.e14bfa6b70b88p-42));
  io = fma_V(io, ix, splat_V(-0x1.044d13ea9a7c3p-35));
  io = fma_V(io, ix, splat_V(0x1.16699576d28fap-30));
  io = fma_V(io, ix, splat_V(0x1.3df073e4c068fp-28));
  io = fma_V(io, ix, splat_V(-0x1.a00f71db7243ep-19));
  io = fma_V(io, ix, splat_V(0x1.c3e088fc62be9p-13));
  io = fma_V(io, ix, splat_V(-0x1.281a70f675977p-8));
  i = fma_V(io, v, i);
  F c = splat_V(0x1.86453f982e54ep+0);
  M inner = lt_V(z, splat_V(0.5)), tail = gt_V(w, splat_V(5.0));
  if (__builtin_expect(any_V(tail), 0)) {
    F k, u, b = erf_inv_tail_V(w, &k, &u);
    i = select_V(tail, k, i), v = select_V(tail, u, v), c = select_V(tail, b, c);
  }
  v = select_V(inner, z, v), i = select_V(inner, j, i);
  c = select_V(inner, splat_V(0x1.c5bf891b4ef6bp-1), c);
  F p = fma_V(i, v, c), y = fma_V(x, p, x * fma_V(i, v, c - p));
  M one = eq_V(abs_V(x), splat_V(1.0));
  return select_V(one, copysign_V(splat_V(__builtin_inf()), x), y);
}
