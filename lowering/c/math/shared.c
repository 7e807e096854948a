/* Functions that are the same in float32 and in float64, but for constants: those are of type S, and
   the sign of a number is the highest bit of an SI. */
//: rsqrt_V needs splat_V sqrt_V
INL F rsqrt_V(F x) { return splat_V(1.0) / sqrt_V(x); }
//: power_ends_V needs select_V splat_V splati_V lt_V eq_V ne_V lti_V mand_V mor_V mxor_V mandnot_V
//:+ isnan_V bits_V abs_V trunc_V
/* x^y from v = |x|^y, which is right where |x| is neither 0 nor infinite nor 1 */
INL F power_ends_V(F x, F y, F v) {
  F a = abs_V(x), zero = splat_V(0.0), one = splat_V(1.0), inf = splat_V(__builtin_inf());
  M empty = eq_V(a, zero), full = eq_V(a, inf);
  v = select_V(mor_V(empty, full), select_V(mxor_V(empty, lt_V(y, zero)), zero, inf), v);
  F half = y * (S)0.5;
  M whole = eq_V(trunc_V(y), y), odd = mand_V(whole, ne_V(trunc_V(half), half));
  v = select_V(mand_V(odd, lti_V(bits_V(x), splati_V(0))), -v, v);
  M undefined = mandnot_V(mandnot_V(lt_V(x, zero), full), whole);
  v = select_V(mor_V(undefined, mor_V(isnan_V(x), isnan_V(y))), splat_V(__builtin_nan("")), v);
  M is_one = mor_V(eq_V(x, one), mor_V(eq_V(y, zero), mand_V(eq_V(a, one), eq_V(abs_V(y), inf))));
  return select_V(is_one, one, v);
}
//: sinh_V needs fma_V select_V splat_V lt_V abs_V copysign_V sinh_cosh_V
INL F sinh_V(F x) {
  F a = abs_V(x), up, down, rh, g, d;
  sinh_cosh_V(a, &up, &down, &rh, &g, &d);
  F ch = up + down, sh = up - down;
  F y = fma_V(ch, rh, sh) + fma_V(ch, g, d * sh);
  return select_V(lt_V(a, splat_V(0x1p-60)), x, copysign_V(y + y, x));
}
//: cosh_V needs fma_V abs_V sinh_cosh_V
INL F cosh_V(F x) {
  F up, down, rh, g, d;
  sinh_cosh_V(abs_V(x), &up, &down, &rh, &g, &d);
  F ch = up + down, sh = up - down;
  F y = up + fma_V(sh, rh, fma_V(sh, g, fma_V(d, ch, down)));
  return y + y;
}
//: log_ends_V needs select_V splat_V lt_V gt_V eq_V
/* of x <= 0, infinity and NaN, whatever y was computed */
INL F log_ends_V(F x, F y) {
  y = select_V(lt_V(x, splat_V(__builtin_inf())), y, x);
  F bad = select_V(eq_V(x, splat_V(0.0)), splat_V(-__builtin_inf()), splat_V(__builtin_nan("")));
  return select_V(gt_V(x, splat_V(0.0)), y, bad);
}
//: asinh_V needs fma_V select_V splat_V lt_V gt_V abs_V copysign_V sqrt_V log1p_plus_V
/* log1p(a + a^2 / (1 + sqrt(1 + a^2))), and log a + log 2 for large a */
INL F asinh_V(F x) {
  F a = abs_V(x), z = a * a;
  M big = gt_V(a, splat_V(sizeof(S) == 4 ? 0x1p30 : 0x1p60));
  F zero = splat_V(0.0), v = z / (sqrt_V(fma_V(a, a, splat_V(1.0))) + (S)1);
  F u = select_V(big, a, a + v), lo = select_V(big, zero, v - (u - a));
  F y = log1p_plus_V(u, lo, select_V(big, splat_V(1.0), zero));
  y = select_V(lt_V(a, splat_V(__builtin_inf())), y, a);
  return select_V(lt_V(a, splat_V(0x1p-60)), x, copysign_V(y, x));
}
//: acosh_V needs fma_V select_V splat_V lt_V gt_V sqrt_V log1p_plus_V
/* log1p(t + sqrt(t (t + 2))) with t = x - 1 */
INL F acosh_V(F x) {
  F t = x - (S)1;
  M big = gt_V(x, splat_V(sizeof(S) == 4 ? 0x1p30 : 0x1p60));
  F zero = splat_V(0.0), w = fma_V(t, t, t + t), v = sqrt_V(w), u = select_V(big, x, t + v);
  F rest = fma_V(-v, v, w) / (v + v + (S)0x1p-100);   /* of the root; 0 for x = 1 */
  F lo = select_V(big, zero, (t - (u - v)) + rest);
  F y = log1p_plus_V(u, lo, select_V(big, splat_V(1.0), zero));
  y = select_V(lt_V(x, splat_V(__builtin_inf())), y, x);
  return select_V(lt_V(x, splat_V(1.0)), splat_V(__builtin_nan("")), y);
}
//: sin_V needs bits_V float_V abs_V angle_V sin_or_cos_V
INL F sin_V(F x) {
  I n;
  F lo, r = angle_V(abs_V(x), &lo, &n), y = sin_or_cos_V(r, n);
  return float_V(bits_V(y) ^ ((n << (SI)(8 * sizeof(S) - 2) ^ bits_V(x)) & ((SI)1 << (8 * sizeof(S) - 1))));
}
//: cos_V needs bits_V float_V abs_V angle_V sin_or_cos_V
INL F cos_V(F x) {
  I n;
  F lo, r = angle_V(abs_V(x), &lo, &n), y = sin_or_cos_V(r, n = n + 1);
  return float_V(bits_V(y) ^ (n << (SI)(8 * sizeof(S) - 2) & ((SI)1 << (8 * sizeof(S) - 1))));
}
//: tan_V needs select_V splat_V splati_V eqi_V bits_V float_V abs_V angle_V tan_small_V
/* -1 / tan r for odd n */
INL F tan_V(F x) {
  I n;
  F lo, r = angle_V(abs_V(x), &lo, &n), y = tan_small_V(r, lo);
  M even = eqi_V(n & 1, splati_V(0));
  y = select_V(even, y, splat_V(-1.0)) / select_V(even, splat_V(1.0), y);
  return float_V(bits_V(y) ^ (bits_V(x) & ((SI)1 << (8 * sizeof(S) - 1))));
}
