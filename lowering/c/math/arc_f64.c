/* Inverse circular functions in float64: minimax polynomials in x^2. */
//: arcsine_V needs fma_V splat_V
/* (asin s - s) / s for z = s^2 <= 1/4 */
INL F arcsine_V(F z) {
  F px = z * z;
  F p = splat_V(-0x1.09c0c14bc4a81p-6); p = fma_V(p, px, splat_V(0x1.abe297c8dcb69p-8));
  p = fma_V(p, px, splat_V(0x1.c6fe2340a57f1p-7)); p = fma_V(p, px, splat_V(0x1.6e89f49eb8ab3p-6));
  p = fma_V(p, px, splat_V(0x1.6db6db4288728p-5)); p = fma_V(p, px, splat_V(0x1.5555555555391p-3));
  F po = splat_V(0x1.056774c3d6f54p-5); po = fma_V(po, px, splat_V(0x1.3fe83fc0c0f21p-6));
  po = fma_V(po, px, splat_V(0x1.8ec0a0ea15adp-7));
  po = fma_V(po, px, splat_V(0x1.1c6bdc67fa48ep-6));
  po = fma_V(po, px, splat_V(0x1.f1c72c34c4e26p-6));
  po = fma_V(po, px, splat_V(0x1.333333336e687p-4));
  p = fma_V(po, z, p);
  return p * z;
}
//: asin_V needs fma_V select_V splat_V gt_V abs_V copysign_V sqrt_V arcsine_V
/* pi/2 - 2 asin(sqrt((1 - |x|) / 2)) for |x| > 1/2 */
INL F asin_V(F x) {
  F a = abs_V(x), half = splat_V(0.5);
  M big = gt_V(a, half);
  F z = select_V(big, fma_V(a, -half, half), a * a), s = select_V(big, sqrt_V(z), a);
  F t = s * arcsine_V(z);
  F high = splat_V(0x1.921fb54442d18p+0), u = high - (s + s), lost = (high - u) - (s + s);
  F y = u - (fma_V(t, splat_V(2.0), splat_V(-0x1.1a62633145c07p-54)) - lost);
  return copysign_V(select_V(big, y, s + t), x);
}
//: acos_V needs fma_V select_V splat_V lt_V gt_V abs_V copysign_V sqrt_V arcsine_V
INL F acos_V(F x) {
  F a = abs_V(x), half = splat_V(0.5);
  M big = gt_V(a, half), negative = lt_V(x, splat_V(0.0));
  F z = select_V(big, fma_V(a, -half, half), a * a), s = select_V(big, sqrt_V(z), a);
  F t = s * arcsine_V(z);
  F near_one = (s + t) + (s + t);
  F low = splat_V(-0x1.1a62633145c07p-54), t2 = fma_V(t, splat_V(2.0), low + low);
  F near_minus_one = splat_V(0x1.921fb54442d18p+1) - (s + s + t2);
  F middle = splat_V(0x1.921fb54442d18p+0) - (copysign_V(s, x) + (copysign_V(t, x) + low));
  return select_V(big, select_V(negative, near_minus_one, near_one), middle);
}
//: arctangent_V needs fma_V select_V splat_V gt_V
/* high + low + s atan(num / den) with s = -1 where `minus`, 0 <= num <= den: for num > den / 2
   from pi/4, by (num - den) / (num + den), whose rounding is put back by the remainder */
INL F arctangent_V(F num, F den, F high, F low, M minus) {
  M steep = gt_V(num, den * 0.5);
  F sum = num + den, lost = num - (sum - den);
  F n = select_V(steep, num - den, num), d = select_V(steep, sum, den), q = n / d, z = q * q;
  F rest = fma_V(-q, lost, fma_V(-q, d, n)) / d;
  F px = z * z;
  F p = splat_V(-0x1.c1a5670ae253p-6); p = fma_V(p, px, splat_V(-0x1.a39d0b3de557fp-5));
  p = fma_V(p, px, splat_V(-0x1.10f3345a1de02p-4));
  p = fma_V(p, px, splat_V(-0x1.745cf4eb5d546p-4));
  p = fma_V(p, px, splat_V(-0x1.249249215fbd4p-3));
  p = fma_V(p, px, splat_V(-0x1.5555555555516p-2));
  F po = splat_V(0x1.4bb5b82a7a6ap-7); po = fma_V(po, px, splat_V(0x1.5702268d4da3dp-5));
  po = fma_V(po, px, splat_V(0x1.dfea8f4a3de12p-5));
  po = fma_V(po, px, splat_V(0x1.3b113fd56d284p-4));
  po = fma_V(po, px, splat_V(0x1.c71c7091fbcfep-4));
  po = fma_V(po, px, splat_V(0x1.9999999991133p-3));
  p = fma_V(po, z, p);
  F r = fma_V(z * q, p, select_V(steep, rest + 0x1.1a62633145c07p-55, splat_V(0.0)));
  F base = select_V(steep, splat_V(0x1.921fb54442d18p-1), splat_V(0.0));
  F back = select_V(steep, splat_V(-0x1.921fb54442d18p-1), splat_V(0.0));
  high = select_V(minus, high + back, high + base);
  return high + (select_V(minus, -q, q) + (select_V(minus, -r, r) + low));
}
//: atan_V needs select_V splat_V gt_V abs_V copysign_V arctangent_V
/* pi/2 - atan(1/|x|) for |x| > 1 */
INL F atan_V(F x) {
  F a = abs_V(x), one = splat_V(1.0), zero = splat_V(0.0);
  M big = gt_V(a, one);
  F num = select_V(big, one, a), den = select_V(big, a, one);
  F high = select_V(big, splat_V(0x1.921fb54442d18p+0), zero);
  F low = select_V(big, splat_V(0x1.1a62633145c07p-54), zero);
  return copysign_V(arctangent_V(num, den, high, low, big), x);
}
//: atan2_V needs select_V splat_V splati_V lt_V gt_V eq_V lti_V mxor_V bits_V abs_V copysign_V
//:+ arctangent_V
/* from the angle to the nearer axis */
INL F atan2_V(F y, F x) {
  F a = abs_V(x), b = abs_V(y), zero = splat_V(0.0), one = splat_V(1.0);
  M steep = gt_V(b, a), left = lti_V(bits_V(x), splati_V(0));
  F num = select_V(steep, a, b), den = select_V(steep, b, a);
  M equal = eq_V(num, den);
  num = select_V(equal, select_V(eq_V(den, zero), zero, one), num);
  den = select_V(equal, one, den);
  F scale = select_V(gt_V(den, splat_V(0x1p1000)), splat_V(0x1p-60), one);
  scale = select_V(lt_V(den, splat_V(0x1p-900)), splat_V(0x1p100), scale);
  F high = select_V(left, splat_V(0x1.921fb54442d18p+1), zero);
  high = select_V(steep, splat_V(0x1.921fb54442d18p+0), high);
  F low = select_V(left, splat_V(0x1.1a62633145c07p-53), zero);
  low = select_V(steep, splat_V(0x1.1a62633145c07p-54), low);
  return copysign_V(arctangent_V(num * scale, den * scale, high, low, mxor_V(steep, left)), y);
}
