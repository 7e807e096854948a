/* Roots and powers in float32. */
//: cbrt_V needs fma_V select_V splat_V lt_V gt_V mand_V bits_V float_V abs_V copysign_V toint_V
//:+ fromint_V
/* r = a^(-1/3): a third of the bits is right to 4 %, two steps of third order in h = 1 - a r^3;
   then a r^2 and one step of Newton */
INL F cbrt_V(F x) {
  F a = abs_V(x);
  M small = lt_V(a, splat_V(0x1p-126f));
  F v = select_V(small, a * 0x1p24f, a);
  F r = float_V(0x54a21d2a - toint_V(fromint_V(bits_V(v)) * splat_V(0x1.555556p-2f)));
  F h = fma_V(-(v * r), r * r, splat_V(1.0f));
  F k = fma_V(h, splat_V(0x1.61f9aep-3f), splat_V(0x1.c71c72p-3f));
  r = fma_V(r * h, fma_V(h, k, splat_V(0x1.555556p-2f)), r);
  h = fma_V(-(v * r), r * r, splat_V(1.0f));
  r = fma_V(r * h, splat_V(0x1.555556p-2f), r);
  F s = r * r, y = v * s;
  y = fma_V(fma_V(-(y * y), y, v), s * splat_V(0x1.555556p-2f), y);
  y = copysign_V(select_V(small, y * 0x1p-8f, y), x);
  return select_V(mand_V(gt_V(a, splat_V(0.0f)), lt_V(a, splat_V(__builtin_inff()))), y, x);
}
//: pow_V needs fma_V splat_V bits_V float_V abs_V todouble_V log_split_V tofloat_V power_ends_V
//:+ fma_D select_D splat_D lt_D gt_D round_D
/* 2^(y log2 |x|): the logarithm and the product in double, 2^-38 being enough, the rest in float */
INL F pow_V(F x, F y) {
  F n;
  D f = todouble_V(log_split_V(abs_V(x), &n));
  D px = f * f;
  D p = splat_D(0x1.432bafced36bap-3); p = fma_D(p, px, splat_D(0x1.f9c3490ee1829p-4));
  p = fma_D(p, px, splat_D(0x1.4986f4a68c0cdp-3)); p = fma_D(p, px, splat_D(0x1.a60ad5f3d3579p-3));
  p = fma_D(p, px, splat_D(0x1.2776e33cee2abp-2)); p = fma_D(p, px, splat_D(0x1.ec709d8d68739p-2));
  p = fma_D(p, px, splat_D(0x1.71547652bc274p+0));
  D po = splat_D(-0x1.3459b259a2bbdp-3); po = fma_D(po, px, splat_D(-0x1.c9a7d584b3b03p-4));
  po = fma_D(po, px, splat_D(-0x1.28fcd477ac8b4p-3));
  po = fma_D(po, px, splat_D(-0x1.7142731456635p-3));
  po = fma_D(po, px, splat_D(-0x1.ec710a1ec284p-3));
  po = fma_D(po, px, splat_D(-0x1.715475c3e433ep-2));
  po = fma_D(po, px, splat_D(-0x1.71547652ee5dcp-1));
  p = fma_D(po, f, p);
  D t = fma_D(p, f, todouble_V(n)) * todouble_V(y);
  t = select_D(gt_D(t, splat_D(130.0)), splat_D(130.0), t);
  t = select_D(lt_D(t, splat_D(-152.0)), splat_D(-152.0), t);
  D k = round_D(t);
  F r = tofloat_V(t - k);
  F e = splat_V(0x1.b3c06ap-17f); e = fma_V(e, r, splat_V(0x1.44175ep-13f));
  e = fma_V(e, r, splat_V(0x1.5dc64ep-10f)); e = fma_V(e, r, splat_V(0x1.3b2a54p-7f));
  e = fma_V(e, r, splat_V(0x1.c6b058p-5f)); e = fma_V(e, r, splat_V(0x1.ebfbep-3f));
  e = fma_V(e, r, splat_V(0x1.62e43p-1f));
  I i = bits_V(tofloat_V(k) + 0x1.8p23f), h = i >> 1;
  F v = fma_V(e, r, splat_V(1.0f)) * float_V((h << 23) + 0x3f800000);
  return power_ends_V(x, y, v * float_V(((i - h) << 23) + 0x3f800000));
}
