/* Functions with as many terms as their operands ask for in float32: by float64, with terms that
   float32 shows. */
//: igamma_V needs tofloat_V todouble_V regularized_D
INL F igamma_V(F a, F x) {
  return tofloat_V(regularized_D(todouble_V(a), todouble_V(x), -1.0, 1e-10));
}
//: igammac_V needs tofloat_V todouble_V regularized_D
INL F igammac_V(F a, F x) {
  return tofloat_V(regularized_D(todouble_V(a), todouble_V(x), 1.0, 1e-10));
}
//: random_gamma_grad_V needs tofloat_V todouble_V gamma_slope_D
INL F random_gamma_grad_V(F a, F x) {
  return tofloat_V(gamma_slope_D(todouble_V(a), todouble_V(x), 1e-10));
}
//: zeta_V needs tofloat_V todouble_V zeta_D
INL F zeta_V(F s, F q) { return tofloat_V(zeta_D(todouble_V(s), todouble_V(q))); }
