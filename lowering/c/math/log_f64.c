/* Logarithms and inverse hyperbolic functions in float64: x = 2^n (1 + f) with 1 + f in
   [sqrt 1/2, sqrt 2), log(1 + f) = 2 atanh s = f - s (f - p(s^2)) with s = f / (2 + f). */
//: log_mantissa_V needs fma_V splat_V
/* f - log(1 + f) */
INL F log_mantissa_V(F f) {
  F s = f / (f + 2.0), z = s * s;
  F p = splat_V(0x1.2f03f66725612p-3); p = fma_V(p, z, splat_V(0x1.39a1e2f4de79p-3));
  p = fma_V(p, z, splat_V(0x1.74663d24d0471p-3)); p = fma_V(p, z, splat_V(0x1.c71c521359decp-3));
  p = fma_V(p, z, splat_V(0x1.24924941e24d6p-2)); p = fma_V(p, z, splat_V(0x1.999999997ff0fp-2));
  p = fma_V(p, z, splat_V(0x1.5555555555592p-1));
  return s * fma_V(-z, p, f);
}
//: log_split_V needs select_V splat_V lt_V bits_V float_V fromint_V
/* x = 2^n (1 + f); denormals are scaled first. AVX2 has no arithmetic shift of 64 bits, therefore
   exponents with their bias */
INL F log_split_V(F x, F *n) {
  M small = lt_V(x, splat_V(0x1p-1022));
  I b = bits_V(select_V(small, x * 0x1p52, x)), e = b + 0x95f619980c433;
  *n = fromint_V((I)((U)e >> 52)) - select_V(small, splat_V(1075.0), splat_V(1023.0));
  return float_V(b - (e & ~0xfffffffffffff) + 0x3ff0000000000000) - 1.0;
}
//: log_V needs fma_V splat_V log_split_V log_mantissa_V log_ends_V
INL F log_V(F x) {
  F n, f = log_split_V(x, &n);
  F g = f - fma_V(n, splat_V(-0x1.abc9e3b39803fp-56), log_mantissa_V(f));
  F y = fma_V(n, splat_V(0x1.62e42fefa39efp-1), g);
  return log_ends_V(x, y);
}
//: log2_V needs fma_V splat_V log_split_V log_mantissa_V log_ends_V
INL F log2_V(F x) {
  F n, f = log_split_V(x, &n);
  F g = log_mantissa_V(f) * splat_V(-0x1.71547652b82fep+0);
  F y = fma_V(f, splat_V(0x1.71547652b82fep+0), fma_V(f, splat_V(0x1.777d0ffda0d24p-56), g)) + n;
  return log_ends_V(x, y);
}
//: log1p_plus_V needs fma_V splat_V bits_V float_V fromint_V log_mantissa_V
/* log(1 + x + lo) + k ln 2 for finite x > -1: 1 + x = 2^n (1 + f), where f = 2^-n x + (2^-n - 1) is
   rounded once, and f = x for n = 0 */
INL F log1p_plus_V(F x, F lo, F k) {
  I e = bits_V(x + 1.0) + 0x95f619980c433;
  F n = fromint_V((I)((U)e >> 52)) - 1023.0;
  F s = float_V((-0x7fffffffffffffff - 1) - (e & ~0xfffffffffffff));
  F f = fma_V(x * 0.25, s, fma_V(s, splat_V(0.25), splat_V(-1.0)));
  n = n + k;
  F g = f - fma_V(lo, s * -0.25, fma_V(n, splat_V(-0x1.abc9e3b39803fp-56), log_mantissa_V(f)));
  return fma_V(n, splat_V(0x1.62e42fefa39efp-1), g);
}
//: log1p_V needs select_V splat_V lt_V gt_V eq_V abs_V log1p_plus_V
INL F log1p_V(F x) {
  F zero = splat_V(0.0), y = log1p_plus_V(x, zero, zero);
  y = select_V(lt_V(x, splat_V(__builtin_inf())), y, x);
  F inf = splat_V(__builtin_inf()), nan = splat_V(__builtin_nan(""));
  F bad = select_V(eq_V(x, splat_V(-1.0)), -inf, nan);
  y = select_V(gt_V(x, splat_V(-1.0)), y, bad);
  return select_V(lt_V(abs_V(x), splat_V(0x1p-60)), x, y);
}
//: atanh_V needs fma_V select_V splat_V lt_V eq_V abs_V copysign_V log1p_plus_V
INL F atanh_V(F x) {
  F a = abs_V(x), z = a * a;
  F zero = splat_V(0.0), y = log1p_plus_V((a + a) / (splat_V(1.0) - a), zero, zero) * 0.5;
  F px = z * z;
  F p = splat_V(0x1.cc3b63a31c9a1p-3); p = fma_V(p, px, splat_V(0x1.28a7a0bf439a5p-3));
  p = fma_V(p, px, splat_V(0x1.e9fec5ae04504p-5)); p = fma_V(p, px, splat_V(0x1.11870d4011ce7p-4));
  p = fma_V(p, px, splat_V(0x1.745d80accac79p-4)); p = fma_V(p, px, splat_V(0x1.2492492c35705p-3));
  p = fma_V(p, px, splat_V(0x1.55555555555cbp-2));
  F po = splat_V(-0x1.38edd8f29f967p-3); po = fma_V(po, px, splat_V(0x1.de6828068b26bp-7));
  po = fma_V(po, px, splat_V(0x1.d90dfed824bcdp-5));
  po = fma_V(po, px, splat_V(0x1.3b0b3113731f9p-4));
  po = fma_V(po, px, splat_V(0x1.c71c6e822b3fdp-4));
  po = fma_V(po, px, splat_V(0x1.9999999987a96p-3));
  p = fma_V(po, z, p);
  y = select_V(lt_V(a, splat_V(0.5)), fma_V(a * z, p, a), y);
  F bad = select_V(eq_V(a, splat_V(1.0)), splat_V(__builtin_inf()), splat_V(__builtin_nan("")));
  y = copysign_V(select_V(lt_V(a, splat_V(1.0)), y, bad), x);
  return select_V(lt_V(a, splat_V(0x1p-60)), x, y);
}
