#include "special.h"

#include <cmath>
#include <limits>

#include <math.h>  // lgamma_r

namespace functrans {
namespace {

constexpr double kPi = 3.141592653589793238;
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// Sum of coefficients[k] T_k(t), |t| <= 1, by Clenshaw's recurrence.
template <int n>
double chebyshev(const double (&coefficients)[n], double t) {
  double b1 = 0, b2 = 0;
  for (int k = n - 1; k > 0; --k) {
    const double b0 = coefficients[k] + 2 * t * b1 - b2;
    b2 = b1;
    b1 = b0;
  }
  return coefficients[0] + t * b1 - b2;
}

// The tables below are Chebyshev coefficients computed with mpmath at 50 digits.

// digamma(x) / (x - root) on [1, 2].
constexpr double kDigammaRoot = 1.4616321449683622;
constexpr double kDigammaRootLow = 9.549995429965697e-17;
constexpr double kDigamma[] = {
    0.983570260441567,       -0.2270640863346444,     0.03336889902393011,
    -0.005320077271596548,   0.0008788656937820505,   -0.00014773492650606044,
    2.5060543468359146e-05,  -4.2721034029993324e-06, 7.302769272465923e-07,
    -1.2502886813559594e-07, 2.1425009322359472e-08,  -3.673295918565179e-09,
    6.299717236108931e-10,   -1.080593028883266e-10,  1.853735192053638e-11,
    -3.18023536582553e-12,   5.456147570322795e-13,   -9.360993131036438e-14,
    1.606064636295075e-14,   -2.7555431377438815e-15, 4.727736178601912e-16,
    -8.11148420346509e-17,   1.391707769474154e-17,   -2.3877901082188625e-18};

// sqrt(x) exp(-x) I0(x), and the same of I1, on 1/x in [0, 1/8].
constexpr double kBessel0[] = {
    0.4022452055070544,      0.0033691164782556943,   6.889758346916825e-05,
    2.8913705208347567e-06,  2.0489185894690638e-07,  2.266668990498178e-08,
    3.3962320257083865e-09,  4.94060238822497e-10,    1.1889147107846439e-11,
    -3.1499165279632416e-11, -1.3215811840447713e-11, -1.7941785315068062e-12,
    7.180124451383666e-13,   3.8527783827421426e-13,  1.54008621752141e-14,
    -4.150569347287222e-14,  -9.554846698828307e-15,  3.8116806693526224e-15,
    1.7725601330565263e-15,  -3.425485619677219e-16,  -2.8276239805165836e-16,
    3.461222867697461e-17,   4.46562142029676e-17,    -4.830504485944182e-18,
    -7.233180487874754e-18,  9.921475412173699e-19,   1.193650890845982e-18};
constexpr double kBessel1[] = {
    0.38928811750914005,     -0.009761097491361469,   -0.00011058893876262371,
    -3.882564808877691e-06,  -2.512236237870209e-07,  -2.6314688468895196e-08,
    -3.835380385964237e-09,  -5.589743462196584e-10,  -1.8974958123505413e-11,
    3.2526035830154884e-11,  1.4125807436613782e-11,  2.0356285441470896e-12,
    -7.198551776245908e-13,  -4.0835511110921974e-13, -2.1015418427726643e-14,
    4.272440016711951e-14,   1.0420276984128802e-14,  -3.8144030724370075e-15,
    -1.8803547755107825e-15, 3.3082023109209285e-16,  2.96262899764595e-16,
    -3.209525921993424e-17,  -4.6503053684893586e-17, 4.414348323071708e-18,
    7.517296310842105e-18,   -9.314178867326884e-19,  -1.242193275194891e-18};

// Bernoulli numbers: B_2k / 2k, and B_2k / (2k)!.
constexpr double kDigammaTail[] = {0.083333333333333333333,  -0.0083333333333333333333,
                                   0.003968253968253968254,  -0.0041666666666666666667,
                                   0.0075757575757575757576, -0.021092796092796092796,
                                   0.083333333333333333333,  -0.44325980392156862745};
constexpr double kZetaTail[] = {
    0.083333333333333333333,   -0.0013888888888888888889,  0.000033068783068783068783,
    -8.2671957671957671958e-7, 2.0876756987868098979e-8,   -5.2841901386874931848e-10,
    1.3382536530684678833e-11, -3.3896802963225828668e-13, 8.5860620562778445641e-15,
    -2.174868698558061873e-16, 5.5090028283602295152e-18,  -1.3954464685812523341e-19};

// Sum over k of (x^2/4)^k / (k! (k + order)!): all terms positive, no cancellation.
double bessel_series(double x, int order) {
  const double quarter = 0.25 * x * x;
  double term = 1, sum = 1;
  for (int k = 1; k < 64; ++k) {
    term *= quarter / (static_cast<double>(k) * (k + order));
    sum += term;
    if (term < 1e-17 * sum) break;
  }
  return sum;
}

constexpr double kBesselSwitch = 8;

}  // namespace

double erf_inverse(double x) {
  const double magnitude = std::fabs(x);
  if (!(magnitude < 1)) return magnitude == 1 ? std::copysign(kInf, x) : kNaN;
  if (magnitude < 1e-9) return x * (0.5 * std::sqrt(kPi));
  // Winitzki's closed form is right to 2e-3; each of Halley's steps cubes the error.
  constexpr double a = 0.147;
  const double rest = 1 - magnitude;  // exact where it is used below, from 1/2 on
  const double log_term = magnitude < 0.5 ? std::log1p(-x * x) : std::log(rest * (1 + magnitude));
  const double b = 2 / (kPi * a) + 0.5 * log_term;
  double y = std::sqrt((-log_term / a) / (std::sqrt(b * b - log_term / a) + b));
  for (int step = 0; step < 3; ++step) {
    const double error = magnitude < 0.5 ? std::erf(y) - magnitude : rest - std::erfc(y);
    const double newton = error * (0.5 * std::sqrt(kPi)) * std::exp(y * y);
    y -= newton / (1 + y * newton);
    if (std::fabs(newton) < 1e-6 * y) break;
  }
  return std::copysign(y, x);
}

double log_gamma(double x) {
  int sign;
  return lgamma_r(x, &sign);
}

double digamma(double x) {
  if (std::isnan(x) || x == kInf) return x;
  double shift = 0;
  if (x <= 0) {
    if (x == std::floor(x)) return kNaN;  // a pole, also -inf
    // digamma(x) = digamma(1 - x) - pi cot(pi x), with the fraction reduced first
    const double fraction = x - std::nearbyint(x);
    shift = -kPi / std::tan(kPi * fraction);
    x = 1 - x;
  }
  if (x >= 10) {
    const double inverse = 1 / (x * x);
    double tail = 0;
    for (int k = 7; k >= 0; --k) tail = (tail + kDigammaTail[k]) * inverse;
    return shift + (std::log(x) - 0.5 / x - tail);
  }
  while (x > 2) {
    x -= 1;
    shift += 1 / x;
  }
  if (x < 1) {
    shift -= 1 / x;
    x += 1;
    // 1 + x rounds: beside the pole term the loss is below its last bit.
  }
  return shift + ((x - kDigammaRoot) - kDigammaRootLow) * chebyshev(kDigamma, 2 * x - 3);
}

double bessel_i0e(double x) {
  x = std::fabs(x);
  if (std::isnan(x)) return x;
  if (x <= kBesselSwitch) return std::exp(-x) * bessel_series(x, 0);
  return chebyshev(kBessel0, 2 * kBesselSwitch / x - 1) / std::sqrt(x);
}

double bessel_i1e(double x) {
  const double z = std::fabs(x);
  if (std::isnan(x)) return x;
  if (z <= kBesselSwitch) return 0.5 * x * std::exp(-z) * bessel_series(z, 1);
  return std::copysign(chebyshev(kBessel1, 2 * kBesselSwitch / z - 1) / std::sqrt(z), x);
}

// Euler-Maclaurin: terms up to q + n, then the integral and the Bernoulli corrections.
double hurwitz_zeta(double x, double q) {
  if (std::isnan(x) || std::isnan(q) || x < 1) return kNaN;
  if (x == 1) return kInf;
  if (q <= 0) {
    if (q == std::floor(q)) return kInf;
    if (x != std::floor(x)) return kNaN;  // a negative number to a broken power
  }
  if (std::isinf(q)) return 0;
  double sum = 0;
  while (q < 0 && q > -1e6) {  // signed terms left of the origin
    sum += std::pow(q, -x);
    q += 1;
  }
  if (q < 0) return kNaN;  // more terms than anybody waits for
  while (q < 10 + x) {     // the corrections fall like (x / (2 pi q))^2
    const double term = std::pow(q, -x);
    sum += term;
    if (term <= 1e-18 * std::fabs(sum)) return sum;
    q += 1;
  }
  const double power = std::pow(q, -x);
  sum += power * q / (x - 1) + 0.5 * power;
  double factor = x;
  double scale = power / q;
  for (int k = 0; k < 12; ++k) {
    const double term = kZetaTail[k] * factor * scale;
    sum += term;
    if (std::fabs(term) < 1e-18 * std::fabs(sum)) break;
    factor *= (x + 2 * k + 1) * (x + 2 * k + 2);
    scale /= q * q;
  }
  return sum;
}

}  // namespace functrans
