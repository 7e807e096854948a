/* Functions with as many terms as their operands ask for: a vector goes on until none of its lanes
   needs another one. Power series left of the peak and continued fraction right of it (DLMF 8.11.4
   and 8.9.2), Temme's uniform expansion for huge shapes (DLMF 8.12.3), Euler and Maclaurin's sum. */
//: log1p_minus_V needs select_V splat_V lt_V gt_V mor_V log1p_V
/* log(1 + m) - m: with r = m / (2 + m), log1p(m) = 2 atanh(r) and 2 r - m = -r m */
INL F log1p_minus_V(F m) {
  F r = m / (m + 2.0), s = r * r, t = splat_V(0.0);
  for (int k = 49; k > 2; k -= 2) t = t * s + 1.0 / k;
  M far = mor_V(lt_V(m, splat_V(-0.6)), gt_V(m, splat_V(1.5)));
  return select_V(far, log1p_V(m) - m, t * s * r * 2.0 - r * m);
}
//: stirling_error_V
/* log Gamma(a) - ((a - 1/2) log a - a + log(2 pi) / 2) for a >= 10 */
INL F stirling_error_V(F a) {
  F z = 1.0 / (a * a);
  return (1.0 / 12 - z * (1.0 / 360 - z * (1.0 / 1260 - z * (1.0 / 1680 - z * (1.0 / 1188 - z * (
      691.0 / 360360 - z * (1.0 / 156 - z * (3617.0 / 122400)))))))) / a;
}
//: gamma_power_V needs select_V splat_V lt_V min_V max_V pow_V exp_V log_V lgamma_V sqrt_V
//:+ log1p_minus_V stirling_error_V
/* x^a e^-x / Gamma(a + 1) */
INL F gamma_power_V(F a, F x) {
  F small = min_V(max_V(a, splat_V(0.0)), splat_V(10.0));
  F near = select_V(lt_V(x, splat_V(600.0)), pow_V(x, small) * exp_V(-x),
                    exp_V(small * log_V(x) - x)) * exp_V(-lgamma_V(small + 1.0));
  F m = (x - a) / a;
  /* of an x far below a, 1 + m has not the digits of x */
  F away = select_V(lt_V(m, splat_V(-0.6)), log_V(x / a) - m, log1p_minus_V(m));
  F far = exp_V(a * away - stirling_error_V(a));
  return select_V(lt_V(a, splat_V(10.0)), near, far / sqrt_V(a * 6.283185307179586));
}
//: lower_series_V needs splat_V ge_V le_V mand_V mor_V any_V
/* the sum over n of x^n / ((a+1) ... (a+n)), and where it is asked for its derivative in a */
INL F lower_series_V(F a, F x, M lanes, S precision, F *slope) {
  F value = splat_V(1.0), term = value, logs = splat_V(0.0), total = logs;
  for (S n = 0; n < 200000 && any_V(lanes);) {
    for (int k = 0; k < 4; k++) {
      F step = 1.0 / (a + (n += 1));
      term *= x * step;
      value += term;
      if (slope) logs -= step, total += term * logs;
    }
    lanes = mand_V(lanes, mor_V(ge_V(term * (1.0 - logs), value * precision), le_V(a + n, x)));
  }
  if (slope) *slope = total;
  return value;
}
//: upper_fraction_V needs select_V splat_V eq_V ge_V gt_V mand_V mor_V abs_V any_V
/* 1 / (x+1-a - 1(1-a) / (x+3-a - 2(2-a) / (x+5-a - ...))) by the modified Lentz algorithm, and
   where it is asked for its derivative in a */
INL F upper_fraction_V(F a, F x, M lanes, S precision, F *slope) {
  F b = x + 1.0 - a, c = splat_V(1e300), d = 1.0 / b, value = d, zero = splat_V(0.0);
  F cs = zero, ds = d * d, total = ds, tiny = splat_V(1e-300);
  for (S n = 1; n < 200000 && any_V(lanes); n++) {
    F top = (a - n) * n, ratio = 1.0 / c;
    b += 2.0;
    F next = top * d + b, front = b + top * ratio;
    next = select_V(eq_V(next, zero), tiny, next);
    if (slope) ds = d * n + top * ds - 1.0, cs = (n - top * cs * ratio) * ratio - 1.0;
    d = 1.0 / next;
    c = select_V(eq_V(front, zero), tiny, front);
    F delta = c * d;
    M going = ge_V(abs_V(delta - 1.0), splat_V(precision));
    if (slope) {
      ds = -ds * d * d;
      F change = cs * d + c * ds;
      total = total * delta + value * change;
      going = mor_V(going, gt_V(abs_V(value * delta * change), abs_V(total) * precision));
    }
    value *= delta;
    lanes = mand_V(lanes, going);
  }
  if (slope) *slope = total;
  return value;
}
//: uniform_V needs select_V splat_V lt_V abs_V max_V sqrt_V copysign_V exp_V erfc_V log1p_minus_V
/* P or Q of a huge shape, near the peak */
INL F uniform_V(F a, F x, S sign) {
  F m = (x - a) / a, half = max_V(-log1p_minus_V(m), splat_V(0.0));
  F eta = copysign_V(sqrt_V(half * 2.0), m);
  F near = eta * (1.0 / 12 + eta * (-2.0 / 135 + eta * (1.0 / 864))) - 1.0 / 3;
  F front = select_V(lt_V(abs_V(m), splat_V(1e-2)), near, 1.0 / m - 1.0 / eta);
  F rest = exp_V(-a * half) / sqrt_V(a * 6.283185307179586) * front;
  return erfc_V(eta * sqrt_V(a * 0.5) * sign) * 0.5 + rest * sign;
}
//: near_one_V needs select_V gt_V splat_V log_V lgamma_V expm1_V exp_V
/* Q for a < 1 and x <= 1: 1 - P loses digits where P is near one */
INL F near_one_V(F a, F x) {
  /* log Gamma(1 + a), for a near 0 by its series, as 1 + a has not the digits of a */
  F series = a * (a * (a * (a * (0.27058080842778454788 - a * 0.20738555102867398527)
      - 0.40068563438653142847) + 0.82246703342411321824) - 0.57721566490153286061);
  F gamma = select_V(gt_V(a, splat_V(1e-3)), lgamma_V(a + 1.0), series);
  F power = a * log_V(x) - gamma, term = splat_V(1.0), total = splat_V(0.0);
  for (int n = 1; n < 20; n++) {
    term *= x * (-1.0 / n);
    total += term / (a + n);
  }
  return -expm1_V(power) - exp_V(power) * a * total;
}
//: regularized_V needs select_V splat_V lt_V le_V gt_V eq_V ne_V mand_V mor_V mandnot_V any_V isnan_V
//:+ min_V abs_V gamma_power_V lower_series_V upper_fraction_V uniform_V near_one_V
/* P (sign -1) or Q (sign 1) */
INL F regularized_V(F a, F x, S sign, S precision) {
  F zero = splat_V(0.0), one = splat_V(1.0), inf = splat_V(__builtin_inf());
  F edge = splat_V(sign < 0 ? 1.0 : 0.0);
  M undefined = mor_V(mor_V(isnan_V(a), isnan_V(x)), mor_V(lt_V(a, zero), lt_V(x, zero)));
  undefined = mor_V(undefined, mor_V(mand_V(eq_V(a, zero), eq_V(x, zero)),
                                     mand_V(eq_V(a, inf), eq_V(x, inf))));
  M whole = mor_V(eq_V(a, zero), eq_V(x, inf)), nothing = mor_V(eq_V(x, zero), eq_V(a, inf));
  M huge = mand_V(gt_V(a, splat_V(1e7)), lt_V(abs_V(x - a), a * 0.3));
  M left = mor_V(le_V(x, one), lt_V(x, a));
  F front = gamma_power_V(a, x);
  M lanes = mandnot_V(ne_V(front, zero), mor_V(mor_V(undefined, whole), mor_V(nothing, huge)));
  F series = lower_series_V(a, x, mand_V(lanes, left), precision, 0);
  F fraction = upper_fraction_V(a, x, mandnot_V(lanes, left), precision * 10, 0);
  M empty = eq_V(front, zero);
  F below = select_V(empty, zero, min_V(front * series, one));
  F above = select_V(empty, zero, front * a * fraction), found;
  if (sign < 0) {
    found = select_V(left, below, 1.0 - above);
  } else {
    M corner = mand_V(lt_V(a, one), le_V(x, one));
    below = 1.0 - below;
    if (any_V(corner)) below = select_V(corner, near_one_V(a, x), below);
    found = select_V(left, below, above);
  }
  if (any_V(huge)) found = select_V(huge, uniform_V(a, x, sign), found);
  found = select_V(whole, edge, select_V(nothing, 1.0 - edge, found));
  return select_V(undefined, splat_V(__builtin_nan("")), found);
}
//: igamma_V needs regularized_V
INL F igamma_V(F a, F x) { return regularized_V(a, x, -1.0, 1e-17); }
//: igammac_V needs regularized_V
INL F igammac_V(F a, F x) { return regularized_V(a, x, 1.0, 1e-17); }
//: gamma_slope_V needs select_V splat_V lt_V le_V gt_V eq_V mand_V mor_V mandnot_V log_V
//:+ digamma_V lower_series_V upper_fraction_V
/* dx/da of a sample at constant P(a, x): -(dP/da) / (dP/dx), where x^(a-1) e^-x cancels */
INL F gamma_slope_V(F a, F x, S precision) {
  F zero = splat_V(0.0), inf = splat_V(__builtin_inf()), slope;
  M inside = mand_V(gt_V(x, zero), mand_V(lt_V(a, inf), lt_V(x, inf)));
  M defined = mand_V(gt_V(a, zero), mor_V(eq_V(x, zero), inside));
  M huge = gt_V(a, splat_V(1e7)), left = mor_V(le_V(x, splat_V(1.0)), lt_V(x, a));
  M lanes = mandnot_V(mand_V(defined, gt_V(x, zero)), huge);
  F logarithm = log_V(x);
  F value = lower_series_V(a, x, mand_V(lanes, left), precision, &slope);
  F below = -(x / a) * (value * (logarithm - digamma_V(a + 1.0)) + slope);
  value = upper_fraction_V(a, x, mandnot_V(lanes, left), precision * 10, &slope);
  F above = x * (value * (logarithm - digamma_V(a)) + slope);
  /* x = a + n sqrt(a) + (n^2 - 1) / 3 + ... at a fixed normal deviate n */
  F t = x - a, far = 1.0 + (t - (t * t / a - 1.0) / 3.0) / (a * 2.0);
  F found = select_V(huge, far, select_V(left, below, above));
  found = select_V(eq_V(x, zero), zero, found);
  return select_V(defined, found, splat_V(__builtin_nan("")));
}
//: random_gamma_grad_V needs gamma_slope_V
INL F random_gamma_grad_V(F a, F x) { return gamma_slope_V(a, x, 1e-17); }
//: zeta_V needs select_V splat_V lt_V le_V eq_V ne_V mand_V mor_V mandnot_V any_V isnan_V abs_V
//:+ floor_V pow_V
/* the sum of (q + k)^-s over k >= 0: terms left of the origin, of either sign; ten terms, the
   integral, and Bernoulli's corrections */
INL F zeta_V(F s, F q) {
  F zero = splat_V(0.0), one = splat_V(1.0), a = q, total = zero;
  M pole = mand_V(le_V(q, zero), eq_V(floor_V(q), q));
  M undefined = mor_V(mor_V(isnan_V(s), isnan_V(q)), lt_V(s, one));
  M broken = mor_V(le_V(q, splat_V(-1e6)), ne_V(floor_V(s), s));
  broken = mandnot_V(mand_V(mand_V(le_V(q, zero), ne_V(s, one)), broken), pole);
  undefined = mor_V(undefined, broken);
  M infinite = mor_V(eq_V(s, one), pole);
  M lanes = mandnot_V(lt_V(a, zero), mor_V(undefined, infinite));
  while (any_V(lanes)) {
    total += select_V(lanes, pow_V(a, -s), zero);
    a = select_V(lanes, a + 1.0, a);
    lanes = mand_V(lanes, lt_V(a, zero));
  }
  for (int k = 0; k < 10; k++, a += 1.0) total += pow_V(a, -s);
  F power = pow_V(a, -s), z = 1.0 / (a * a);
  F t = (s + 21.0) * (s + 22.0) * z * -1.3954464685812523e-19 + 5.509002828360229e-18;
  t = (s + 19.0) * (s + 20.0) * z * t - 2.174868698558062e-16;
  t = (s + 17.0) * (s + 18.0) * z * t + 8.586062056277845e-15;
  t = (s + 15.0) * (s + 16.0) * z * t - 3.389680296322583e-13;
  t = (s + 13.0) * (s + 14.0) * z * t + 1.3382536530684679e-11;
  t = (s + 11.0) * (s + 12.0) * z * t - 5.284190138687493e-10;
  t = (s + 9.0) * (s + 10.0) * z * t + 2.08767569878681e-08;
  t = (s + 7.0) * (s + 8.0) * z * t - 8.267195767195768e-07;
  t = (s + 5.0) * (s + 6.0) * z * t + 3.306878306878307e-05;
  t = (s + 3.0) * (s + 4.0) * z * t - 1.0 / 720;
  t = (s + 1.0) * (s + 2.0) * z * t + 1.0 / 12;
  F rest = power * (a / (s - 1.0) + 0.5 + s * t / a);
  total = select_V(le_V(power, abs_V(total) * 1e-18), total, total + rest);
  total = select_V(infinite, splat_V(__builtin_inf()), total);
  return select_V(undefined, splat_V(__builtin_nan("")), total);
}
