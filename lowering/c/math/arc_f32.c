/* Inverse circular functions in float32: minimax polynomials in x^2. */
//: arcsine_V needs fma_V splat_V
/* (asin s - s) / s for z = s^2 <= 1/4 */
INL F arcsine_V(F z) {
  F p = splat_V(0x1.595a9cp-5f); p = fma_V(p, z, splat_V(0x1.8c3fe2p-6f));
  p = fma_V(p, z, splat_V(0x1.747ba2p-5f)); p = fma_V(p, z, splat_V(0x1.330204p-4f));
  p = fma_V(p, z, splat_V(0x1.5555c8p-3f));
  return p * z;
}
//: asin_V needs fma_V select_V splat_V gt_V abs_V copysign_V sqrt_V arcsine_V
/* pi/2 - 2 asin(sqrt((1 - |x|) / 2)) for |x| > 1/2 */
INL F asin_V(F x) {
  F a = abs_V(x), half = splat_V(0.5f);
  M big = gt_V(a, half);
  F z = select_V(big, fma_V(a, -half, half), a * a), s = select_V(big, sqrt_V(z), a);
  F t = s * arcsine_V(z);
  F high = splat_V(0x1.921fb6p+0f), u = high - (s + s), lost = (high - u) - (s + s);
  F y = u - (fma_V(t, splat_V(2.0f), splat_V(0x1.777a5cp-25f)) - lost);
  return copysign_V(select_V(big, y, s + t), x);
}
//: acos_V needs fma_V select_V splat_V lt_V gt_V abs_V copysign_V sqrt_V arcsine_V
INL F acos_V(F x) {
  F a = abs_V(x), half = splat_V(0.5f);
  M big = gt_V(a, half), negative = lt_V(x, splat_V(0.0f));
  F z = select_V(big, fma_V(a, -half, half), a * a), s = select_V(big, sqrt_V(z), a);
  F t = s * arcsine_V(z);
  F near_one = (s + t) + (s + t);
  F low = splat_V(0x1.777a5cp-25f), t2 = fma_V(t, splat_V(2.0f), low + low);
  F near_minus_one = splat_V(0x1.921fb6p+1f) - (s + s + t2);
  F middle = splat_V(0x1.921fb6p+0f) - (copysign_V(s, x) + (copysign_V(t, x) + low));
  return select_V(big, select_V(negative, near_minus_one, near_one), middle);
}
//: arctangent_V needs fma_V splat_V
/* (atan q - q) / q for z = q^2 <= 1 */
INL F arctangent_V(F z) {
  F p = splat_V(0x1.7ebbf4p-9f); p = fma_V(p, z, splat_V(-0x1.0c2038p-6f));
  p = fma_V(p, z, splat_V(0x1.61f37cp-5f)); p = fma_V(p, z, splat_V(-0x1.3551f8p-4f));
  p = fma_V(p, z, splat_V(0x1.b4dec6p-4f)); p = fma_V(p, z, splat_V(-0x1.230a8ap-3f));
  p = fma_V(p, z, splat_V(0x1.9978eap-3f)); p = fma_V(p, z, splat_V(-0x1.5554dcp-2f));
  return p * z;
}
//: atan_V needs fma_V select_V splat_V gt_V abs_V copysign_V arctangent_V
/* pi/2 - atan(1/|x|) for |x| > 1 */
INL F atan_V(F x) {
  F a = abs_V(x), one = splat_V(1.0f), zero = splat_V(0.0f);
  M big = gt_V(a, one);
  F q = select_V(big, -one, a) / select_V(big, a, one);
  F r = q + fma_V(q, arctangent_V(q * q), select_V(big, splat_V(-0x1.777a5cp-25f), zero));
  return copysign_V(select_V(big, splat_V(0x1.921fb6p+0f), zero) + r, x);
}
//: atan2_V needs fma_V select_V splat_V splati_V gt_V eq_V lti_V mxor_V bits_V abs_V copysign_V
//:+ arctangent_V
/* from the angle to the nearer axis */
INL F atan2_V(F y, F x) {
  F a = abs_V(x), b = abs_V(y), zero = splat_V(0.0f);
  M steep = gt_V(b, a), left = lti_V(bits_V(x), splati_V(0));
  F num = select_V(steep, a, b), den = select_V(steep, b, a), q = num / den;
  q = select_V(eq_V(num, den), select_V(eq_V(den, zero), zero, splat_V(1.0f)), q);
  F high = select_V(steep, splat_V(0x1.921fb6p+0f), select_V(left, splat_V(0x1.921fb6p+1f), zero));
  F low = select_V(left, splat_V(-0x1.777a5cp-24f), zero);
  low = select_V(steep, splat_V(-0x1.777a5cp-25f), low);
  F s = select_V(mxor_V(steep, left), -q, q);
  F r = high + (s + fma_V(s, arctangent_V(q * q), low));
  return copysign_V(r, y);
}
