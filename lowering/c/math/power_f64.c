/* Roots and powers in float64. */
//: cbrt_V needs fma_V select_V splat_V lt_V gt_V mand_V bits_V float_V abs_V copysign_V round_V
//:+ fromint_V toint_V
/* r = a^(-1/3): a third of the bits is right to 4 %, two steps of fourth order in h = 1 - a r^3;
   then a r^2 and one step of Newton. The upper halves of the bits are enough, and 64-bit integers
   do not fit the conversions of AVX2 */
INL F cbrt_V(F x) {
  F a = abs_V(x);
  M small = lt_V(a, splat_V(0x1p-1022));
  F v = select_V(small, a * 0x1p54, a);
  F c1 = splat_V(0x1.5555555555555p-2), c2 = splat_V(0x1.c71c71c71c71cp-3);
  F c3 = splat_V(0x1.61f9add3c0ca4p-3);
  F t = round_V(fromint_V((I)((U)bits_V(v) >> 32)) * c1);
  F r = float_V((0x553ef0ff - toint_V(t)) << 32);
  F h = fma_V(-(v * r), r * r, splat_V(1.0));
  F k = fma_V(fma_V(h, c3, c2), h, c1);
  r = fma_V(r * h, k, r);
  h = fma_V(-(v * r), r * r, splat_V(1.0));
  k = fma_V(fma_V(h, c3, c2), h, c1);
  r = fma_V(r * h, k, r);
  F s = r * r, y = v * s;
  y = fma_V(fma_V(-(y * y), y, v), s * c1, y);
  y = copysign_V(select_V(small, y * 0x1p-18, y), x);
  return select_V(mand_V(gt_V(a, splat_V(0.0)), lt_V(a, splat_V(__builtin_inf()))), y, x);
}
//: pow_V needs fma_V select_V splat_V gt_V bits_V float_V abs_V log_split_V
//:+ exp2_near_V power_ends_V
/* 2^(y log2 |x|), the logarithm to 2^-66: 2 / ln 2 (s + s^3 / 3 + s^5 p(s^2)) with s = f / (2 + f),
   where s, s^2, 1/3 and the sums are in two parts */
INL F pow_V(F x, F y) {
  F n, f = log_split_V(abs_V(x), &n), d = f + 2.0;
  F s = f / d, sl = fma_V(-s, f - (d - 2.0), fma_V(-s, d, f)) / d;
  F z = s * s, zl = fma_V(s, s, -z) + (s + s) * sl;
  F p = splat_V(0x1.0e409a46379b8p-4); p = fma_V(p, z, splat_V(0x1.0f80254ef4cbap-4));
  p = fma_V(p, z, splat_V(0x1.3b1ee95d3176cp-4)); p = fma_V(p, z, splat_V(0x1.745ce9f2d8dd9p-4));
  p = fma_V(p, z, splat_V(0x1.c71c722d37cc9p-4)); p = fma_V(p, z, splat_V(0x1.2492492457f71p-3));
  p = fma_V(p, z, splat_V(0x1.9999999999b2fp-3));
  F v = p * (z * z), t = z * splat_V(0x1.5555555555555p-2);
  F tl = fma_V(z, splat_V(0x1.5555555555555p-56), zl * splat_V(0x1.5555555555555p-2));
  tl = tl + fma_V(z, splat_V(0x1.5555555555555p-2), -t);
  F u = t + v, ul = (t - u) + v + tl;
  F g = s * u, gl = fma_V(s, u, -g) + fma_V(s, ul, sl * u);
  F a = s + g, al = (s - a) + g + (gl + sl);
  F b = a * splat_V(0x1.71547652b82fep+1), bl = fma_V(a, splat_V(0x1.71547652b82fep+1), -b);
  bl = bl + fma_V(a, splat_V(0x1.777d0ffda0d24p-55), al * splat_V(0x1.71547652b82fep+1));
  F l = n + b, ll = (n - l) + b + bl;
  F e = y * l, el = fma_V(y, l, -e) + y * ll;
  M far = gt_V(abs_V(e), splat_V(1100.0));
  e = select_V(far, select_V(gt_V(e, splat_V(0.0)), splat_V(1100.0), splat_V(-1100.0)), e);
  F k = e + 0x1.8p52, r = (e - (k - 0x1.8p52)) + select_V(far, splat_V(0.0), el);
  I i = bits_V(k), h = (I)((U)i >> 1);
  F w = exp2_near_V(r) * float_V((h << 52) + 0x3ff0000000000000);
  return power_ends_V(x, y, w * float_V(((i - h) << 52) + 0x3ff0000000000000));
}
