/* Logarithms and inverse hyperbolic functions in float32: x = 2^n (1 + f), |f| <= 1/3, a minimax
   polynomial in f, and ln 2 in two parts. */
//: log_mantissa_V needs fma_V splat_V
/* (log(1 + f) - f) / f^2, |f| <= 1/3 */
INL F log_mantissa_V(F f) {
  F p = splat_V(-0x1.07fbc4p-3f); p = fma_V(p, f, splat_V(0x1.1e70dap-3f));
  p = fma_V(p, f, splat_V(-0x1.f3148p-4f)); p = fma_V(p, f, splat_V(0x1.1ed4bep-3f));
  p = fma_V(p, f, splat_V(-0x1.559dcp-3f)); p = fma_V(p, f, splat_V(0x1.99d056p-3f));
  p = fma_V(p, f, splat_V(-0x1.fffefp-3f)); p = fma_V(p, f, splat_V(0x1.555506p-2f));
  return fma_V(p, f, splat_V(-0.5f));
}
//: log_split_V needs select_V splat_V lt_V bits_V float_V fromint_V
/* x = 2^n (1 + f), 2/3 <= 1 + f < 4/3; denormals are scaled first */
INL F log_split_V(F x, F *n) {
  M small = lt_V(x, splat_V(0x1p-126f));
  I b = bits_V(select_V(small, x * 0x1p23f, x)), e = b - 0x3f2aaaab;
  *n = fromint_V(e >> 23) - select_V(small, splat_V(23.0f), splat_V(0.0f));
  return float_V(b - (e & (-0x7fffffff - 1 >> 8))) - 1.0f;
}
//: log_V needs fma_V splat_V log_split_V log_mantissa_V log_ends_V
INL F log_V(F x) {
  F n, f = log_split_V(x, &n);
  F y = fma_V(log_mantissa_V(f), f * f, f);
  y = fma_V(n, splat_V(0x1.62e43p-1f), fma_V(n, splat_V(-0x1.05c61p-29f), y));
  return log_ends_V(x, y);
}
//: log2_V needs fma_V splat_V log_split_V log_mantissa_V log_ends_V
INL F log2_V(F x) {
  F n, f = log_split_V(x, &n);
  F g = log_mantissa_V(f) * (f * f) * splat_V(0x1.715476p+0f);
  F y = fma_V(f, splat_V(0x1.715476p+0f), fma_V(f, splat_V(0x1.4ae0cp-26f), g)) + n;
  return log_ends_V(x, y);
}
//: log1p_plus_V needs fma_V splat_V bits_V float_V fromint_V log_mantissa_V
/* log(1 + x + lo) + k ln 2 for finite x > -1: 1 + x = 2^n (1 + f), where f = 2^-n x + (2^-n - 1) is
   rounded once, and f = x for n = 0 */
INL F log1p_plus_V(F x, F lo, F k) {
  I b = bits_V(x + 1.0f) - 0x3f2aaaab;
  F n = fromint_V(b >> 23), s = float_V(0x40800000 - (b & (-0x7fffffff - 1 >> 8)));
  F f = fma_V(x * 0.25f, s, fma_V(s, splat_V(0.25f), splat_V(-1.0f)));
  n = n + k;
  F low = fma_V(n, splat_V(-0x1.05c61p-29f), lo * (s * 0.25f));
  return fma_V(n, splat_V(0x1.62e43p-1f), f + fma_V(log_mantissa_V(f), f * f, low));
}
//: log1p_V needs select_V splat_V lt_V gt_V eq_V abs_V log1p_plus_V
INL F log1p_V(F x) {
  F zero = splat_V(0.0f), y = log1p_plus_V(x, zero, zero);
  y = select_V(lt_V(x, splat_V(__builtin_inff())), y, x);
  F inf = splat_V(__builtin_inff()), nan = splat_V(__builtin_nanf(""));
  F bad = select_V(eq_V(x, splat_V(-1.0f)), -inf, nan);
  y = select_V(gt_V(x, splat_V(-1.0f)), y, bad);
  return select_V(lt_V(abs_V(x), splat_V(0x1p-60f)), x, y);
}
//: atanh_V needs fma_V select_V splat_V lt_V eq_V abs_V copysign_V log1p_plus_V
INL F atanh_V(F x) {
  F a = abs_V(x), z = a * a;
  F zero = splat_V(0.0f), y = log1p_plus_V((a + a) / (splat_V(1.0f) - a), zero, zero) * 0.5f;
  F p = splat_V(0x1.692b66p-3f); p = fma_V(p, z, splat_V(0x1.a6e4fcp-5f));
  p = fma_V(p, z, splat_V(0x1.e3faf8p-4f)); p = fma_V(p, z, splat_V(0x1.234dd8p-3f));
  p = fma_V(p, z, splat_V(0x1.99a674p-3f)); p = fma_V(p, z, splat_V(0x1.55554p-2f));
  y = select_V(lt_V(a, splat_V(0.5f)), fma_V(a * z, p, a), y);
  F bad = select_V(eq_V(a, splat_V(1.0f)), splat_V(__builtin_inff()), splat_V(__builtin_nanf("")));
  y = copysign_V(select_V(lt_V(a, splat_V(1.0f)), y, bad), x);
  return select_V(lt_V(a, splat_V(0x1p-60f)), x, y);
}
