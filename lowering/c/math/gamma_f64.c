/* The logarithm of the gamma function and its derivative in float64. Fractions are
   weighted least squares on Chebyshev points, in variables for which nothing cancels. */
//: log_pair_V needs fma_V splat_V log_split_V log_mantissa_V
/* log x in two parts, 0 < x < infinity */
INL F log_pair_V(F x, F *lo) {
  F n, f = log_split_V(x, &n), g = f - fma_V(n, splat_V(-0x1.abc9e3b39803fp-56), log_mantissa_V(f));
  F y = fma_V(n, splat_V(0x1.62e42fefa39efp-1), g);
  *lo = fma_V(n, splat_V(0x1.62e42fefa39efp-1), -y) + g;
  return y;
}
//: lgamma_small_V needs fma_V splat_V
/* (z - 1) (z - 2) (1/2 + p / q) for z in [0.6, 3], which is right at its zeros */
INL F lgamma_small_V(F z) {
  F b = z - 1.0, c = z - 2.0, t = b * c, tl = fma_V(b, c, -t), s = z - 0x1.2p-1;
  F px = s * s;
  F p = splat_V(-0x1.2653eeb459495p-10); p = fma_V(p, px, splat_V(-0x1.354c1b1b00dfap-2));
  p = fma_V(p, px, splat_V(-0x1.9a6e77616e12p+0)); p = fma_V(p, px, splat_V(0x1.cfa459f0ce589p-1));
  p = fma_V(p, px, splat_V(0x1.d59659031d427p-3));
  F po = splat_V(-0x1.15ecf27a287b4p-5); po = fma_V(po, px, splat_V(-0x1.14417d076619ep+0));
  po = fma_V(po, px, splat_V(-0x1.1d6558203c1a3p-1));
  po = fma_V(po, px, splat_V(0x1.cb9bec5628622p-1));
  p = fma_V(po, s, p);
  F qx = s * s;
  F q = splat_V(0x1.2f658000cbe1bp-9); q = fma_V(q, qx, splat_V(0x1.ecd60d8c64403p-1));
  q = fma_V(q, qx, splat_V(0x1.a16cc5fca72c9p+3)); q = fma_V(q, qx, splat_V(0x1.df1098d7dd527p+3));
  q = fma_V(q, qx, splat_V(0x1p+0));
  F qo = splat_V(-0x1.13580f9c7b2e3p-21); qo = fma_V(qo, qx, splat_V(0x1.577ff39813da1p-4));
  qo = fma_V(qo, qx, splat_V(0x1.3c220982c67c8p+2));
  qo = fma_V(qo, qx, splat_V(0x1.2d8ad6c8647ap+4));
  qo = fma_V(qo, qx, splat_V(0x1.874114ef022b2p+2));
  q = fma_V(qo, s, q);
  return fma_V(t, splat_V(0.5), fma_V(t, p / q, tl * 0.5));
}
//: lgamma_positive_V needs fma_V select_V splat_V lt_V ge_V eq_V mor_V log_pair_V lgamma_small_V
/* a < 0.6: from a + 1; [3, 8): down to [2, 3) by recurrence; from 8 on Stirling's series, a minimax
   polynomial in 1 / a^2 */
INL F lgamma_positive_V(F a) {
  F one = splat_V(1.0), inf = splat_V(__builtin_inf()), three = splat_V(3.0);
  M low = lt_V(a, splat_V(0.6)), big = ge_V(a, splat_V(8.0));
  F z = select_V(big, splat_V(2.0), a), product = one;
  for (int i = 0; i < 5; i++) {
    M step = ge_V(z, three);
    z = select_V(step, z - 1.0, z);
    product = select_V(step, product * z, product);
  }
  z = select_V(low, a + 1.0, z);
  F lo, l = log_pair_V(select_V(mor_V(low, big), a, product), &lo), y = lgamma_small_V(z);
  y = select_V(low, -l, l) + (y + select_V(low, -lo, lo));
  F u = one / a, v = u * u;
  F p = splat_V(0x1.4036579d42cc2p-8); p = fma_V(p, v, splat_V(-0x1.ed0e88bd8cb2ap-10));
  p = fma_V(p, v, splat_V(0x1.b911d9cf45a5fp-11));
  p = fma_V(p, v, splat_V(-0x1.38130930b42aep-11));
  p = fma_V(p, v, splat_V(0x1.a01a01254c5cfp-11)); p = fma_V(p, v, splat_V(-0x1.6c16c16c077e2p-9));
  p = fma_V(p, v, splat_V(0x1.5555555555554p-4));
  F m = l - 1.0, s = a * m;
  F rest = fma_V(u, p, fma_V(l, splat_V(-0.5), splat_V(0x1.d67f1c864beb5p-1)));
  F w = s + (fma_V(a, m, -s) + fma_V(a, lo, rest));
  y = select_V(big, select_V(ge_V(s, inf), inf, w), y);
  return select_V(eq_V(a, splat_V(0.0)), inf, y);
}
//: lgamma_V needs select_V splat_V lt_V gt_V eq_V mand_V any_V abs_V lgamma_positive_V sinpi_V
//:+ round_V log_V
/* for x < 0 log(pi / |x sin(pi x)|) - lgamma(-x): relative to the larger of these two */
INL F lgamma_V(F x) {
  F a = abs_V(x), y = lgamma_positive_V(a), inf = splat_V(__builtin_inf());
  M negative = mand_V(lt_V(x, splat_V(0.0)), gt_V(a, splat_V(0x1p-60)));
  if (__builtin_expect(any_V(negative), 0)) {
    F q = a * sinpi_V(abs_V(a - round_V(a))), z = (splat_V(0x1.250d048e7a1bdp+0) - log_V(q)) - y;
    z = select_V(eq_V(q, splat_V(0.0)), inf, select_V(lt_V(a, inf), z, inf));
    y = select_V(negative, z, y);
  }
  return y;
}
//: sinpi_V needs select_V splat_V selecti_V splati_V gt_V sin_or_cos_V
/* sin(pi r), 0 <= r <= 1/2 */
INL F sinpi_V(F r) {
  M swap = gt_V(r, splat_V(0.25));
  F h = select_V(swap, splat_V(0.5) - r, r);
  return sin_or_cos_V(h * splat_V(0x1.921fb54442d18p+1), selecti_V(swap, splati_V(1), splati_V(0)));
}
//: cotpi_V needs fma_V select_V splat_V gt_V abs_V copysign_V tan_small_V
/* pi cot(pi r), |r| <= 1/2 */
INL F cotpi_V(F r) {
  F a = abs_V(r);
  M swap = gt_V(a, splat_V(0.25));
  F h = select_V(swap, splat_V(0.5) - a, a), pi = splat_V(0x1.921fb54442d18p+1), b = h * pi;
  F t = tan_small_V(b, fma_V(h, splat_V(0x1.1a62633145c07p-53), fma_V(h, pi, -b)));
  t = select_V(swap, t, pi) * select_V(swap, pi, splat_V(1.0) / t);
  return copysign_V(t, r);
}
//: digamma_V needs fma_V select_V splat_V lt_V le_V gt_V eq_V any_V abs_V log_V round_V cotpi_V
/* up to 3 (x - zero) (13/16 + p / q), the zero in two parts; then
   log(x - 1/2) + v p(v), v = (x - 1/2)^-2, a minimax polynomial instead of the asymptotic series.
   digamma(x) = digamma(x + 1) - 1/x below 1; at -x it is digamma(x) + 1/x + pi cot(pi x) */
INL F digamma_V(F x) {
  F a = abs_V(x), zero = splat_V(0.0), one = splat_V(1.0);
  M low = lt_V(a, one), left = le_V(x, zero);
  F z = select_V(low, a + 1.0, a), lost = select_V(low, a - (z - 1.0), zero);
  F d = z - 0x1.762d86356be3fp+0, dl = lost - splat_V(0x1.b86a722197829p-54), s = z - 0x1.8p-1;
  F p = splat_V(-0x1.1f03fbd5750ep-12); p = fma_V(p, s, splat_V(-0x1.3b3f0a0beddf2p-7));
  p = fma_V(p, s, splat_V(-0x1.93d6c7cecec98p-4)); p = fma_V(p, s, splat_V(-0x1.7b0afcf49e141p-2));
  p = fma_V(p, s, splat_V(-0x1.8112796214734p-2)); p = fma_V(p, s, splat_V(0x1.e06edc2b25afp-2));
  p = fma_V(p, s, splat_V(0x1.6d3f564a962c7p-1));
  F q = splat_V(-0x1.5503a884b1562p-25); q = fma_V(q, s, splat_V(0x1.676a6eb04a0f3p-12));
  q = fma_V(q, s, splat_V(0x1.c2a8dcefa4726p-7)); q = fma_V(q, s, splat_V(0x1.64958c4a1974fp-3));
  q = fma_V(q, s, splat_V(0x1.e3ee4ac8fed9dp-1)); q = fma_V(q, s, splat_V(0x1.312eb6f3d52efp+1));
  q = fma_V(q, s, splat_V(0x1.545b35b3ef993p+1)); q = fma_V(q, s, splat_V(0x1p+0));
  F g = p / q, near = fma_V(d, splat_V(0.8125), fma_V(d, g, dl * (g + 0.8125)));
  F h = z - 0.5, v = one / (h * h);
  F tx = v * v;
  F t = splat_V(0x1.1eae8afcd4e7dp+4); t = fma_V(t, tx, splat_V(0x1.b30042507b9fbp+3));
  t = fma_V(t, tx, splat_V(0x1.6f54d43a82db4p+0)); t = fma_V(t, tx, splat_V(0x1.3ec8bc4bcac02p-4));
  t = fma_V(t, tx, splat_V(0x1.ef2021adb421bp-8)); t = fma_V(t, tx, splat_V(0x1.f7df734cfc612p-9));
  t = fma_V(t, tx, splat_V(0x1.5555555554c89p-5));
  F to = splat_V(-0x1.6cfd248c637adp+4); to = fma_V(to, tx, splat_V(-0x1.48dcdd90dcbbap+2));
  to = fma_V(to, tx, splat_V(-0x1.599b1ad98e79dp-2));
  to = fma_V(to, tx, splat_V(-0x1.55e77a659222fp-6));
  to = fma_V(to, tx, splat_V(-0x1.0eed16162faa5p-8));
  to = fma_V(to, tx, splat_V(-0x1.ddddddd5d9683p-8));
  t = fma_V(to, v, t);
  F y = select_V(gt_V(z, splat_V(3.0)), fma_V(v, t, log_V(h)), near);
  F u = one / a, ul = select_V(gt_V(a, splat_V(0x1p-500)), fma_V(-u, a, one) * u, zero);
  F w = select_V(low, (y - u) - ul, y);
  if (__builtin_expect(any_V(left), 0)) {
    F r = a - round_V(a), c = cotpi_V(r) + select_V(low, y, y + u);
    c = select_V(eq_V(r, zero), splat_V(__builtin_nan("")), c);
    w = select_V(left, c, w);
  }
  return w;
}
