// The regularised incomplete gamma functions and the derivative of gamma samples in their shape.
// Power series left of the peak, continued fraction right of it (DLMF 8.11.4 and 8.9.2), Temme's
// uniform expansion for huge shapes (DLMF 8.12.3), where both would need sqrt(a) terms.
#include "special.h"

#include <cmath>
#include <limits>

namespace functrans {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kPi = 3.141592653589793238;
constexpr double kPrecision = 1e-17;
constexpr double kHugeShape = 1e7;

// log(1 + m) - m without cancellation: with r = m / (2 + m), log1p(m) = 2 atanh(r), 2r - m = -r m.
double log1p_minus(double m) {
  if (m < -0.6 || m > 1.5) return std::log1p(m) - m;
  const double r = m / (2 + m);
  const double r2 = r * r;
  double power = r2 * r;
  double sum = 0;
  for (int k = 3; k < 80; k += 2) {
    const double term = power / k;
    sum += term;
    if (std::fabs(term) < 1e-18 * std::fabs(r * m)) break;
    power *= r2;
  }
  return 2 * sum - r * m;
}

// log Gamma(a) - ((a - 1/2) log a - a + log(2 pi)/2) for a >= 10.
double stirling_error(double a) {
  constexpr double coefficients[] = {0.083333333333333333333,   -0.0027777777777777777778,
                                     0.00079365079365079365079, -0.0005952380952380952381,
                                     0.00084175084175084175084, -0.0019175269175269175269,
                                     0.0064102564102564102564,  -0.02955065359477124183};
  const double inverse = 1 / (a * a);
  double sum = 0;
  for (int k = 7; k > 0; --k) sum = (sum + coefficients[k]) * inverse;
  return (sum + coefficients[0]) / a;
}

// log Gamma(1 + a), for a near 0 by its series, as 1 + a has not the digits of a.
double log_gamma_after_one(double a) {
  if (a > 1e-3) return log_gamma(1 + a);
  return a * (-0.57721566490153286061 +
              a * (0.82246703342411321824 +
                   a * (-0.40068563438653142847 +
                        a * (0.27058080842778454788 - a * 0.20738555102867398527))));
}

// x^a e^-x / Gamma(a + 1).
double prefactor(double a, double x) {
  if (a < 10) {
    // Below 170 Gamma is representable; the power is more exact than a difference of logarithms.
    if (x < 600) return std::pow(x, a) * std::exp(-x) / std::tgamma(a + 1);
    return std::exp(a * std::log(x) - x) / std::tgamma(a + 1);
  }
  const double m = (x - a) / a;
  // of an x far below a, 1 + m has not the digits of x
  const double away = m < -0.6 ? std::log(x / a) - m : log1p_minus(m);
  const double exponent = a * away - stirling_error(a);
  return std::exp(exponent) / std::sqrt(2 * kPi * a);
}

// A value and its derivative in the shape a.
struct Dual {
  double value;
  double slope;
};

// Sum over n of x^n / ((a+1) ... (a+n)).
Dual lower_series(double a, double x) {
  double term = 1, log_slope = 0;
  Dual sum{1, 0};
  for (int n = 1; n < 200000; ++n) {
    term *= x / (a + n);
    log_slope -= 1 / (a + n);
    sum.value += term;
    sum.slope += term * log_slope;
    if (term * (1 - log_slope) < kPrecision * sum.value && a + n > x) break;
  }
  return sum;
}

// 1 / (x+1-a - 1(1-a) / (x+3-a - 2(2-a) / (x+5-a - ...))) by the modified Lentz algorithm.
Dual upper_fraction(double a, double x) {
  constexpr double tiny = 1e-300;
  double b = x + 1 - a;
  Dual c{1 / tiny, 0};
  Dual d{1 / b, 1 / (b * b)};
  Dual h = d;
  for (int n = 1; n < 200000; ++n) {
    const double numerator = -n * (n - a);
    const double numerator_slope = n;
    b += 2;
    Dual next{numerator * d.value + b, numerator_slope * d.value + numerator * d.slope - 1};
    if (next.value == 0) next.value = tiny;
    d.value = 1 / next.value;
    d.slope = -next.slope * d.value * d.value;
    Dual front{b + numerator / c.value,
               -1 + (numerator_slope - numerator * c.slope / c.value) / c.value};
    if (front.value == 0) front.value = tiny;
    c = front;
    const Dual delta{c.value * d.value, c.slope * d.value + c.value * d.slope};
    h.slope = h.slope * delta.value + h.value * delta.slope;
    h.value *= delta.value;
    if (std::fabs(delta.value - 1) < 2e-16 &&
        std::fabs(h.value * delta.slope) <= 2e-16 * std::fabs(h.slope)) {
      break;
    }
  }
  return h;
}

// P - 1/2 - ... for huge a: returns Q, or P when `lower`.
double uniform(double a, double x, bool lower) {
  const double m = (x - a) / a;
  const double half = -log1p_minus(m);  // eta^2 / 2
  const double eta = std::copysign(std::sqrt(2 * half), m);
  const double c0 = std::fabs(m) < 1e-2
                        ? -1.0 / 3 + eta * (1.0 / 12 + eta * (-2.0 / 135 + eta / 864))
                        : 1 / m - 1 / eta;
  const double correction = std::exp(-a * half) / std::sqrt(2 * kPi * a) * c0;
  const double z = eta * std::sqrt(0.5 * a);
  return lower ? 0.5 * std::erfc(-z) - correction : 0.5 * std::erfc(z) + correction;
}

bool left_of_peak(double a, double x) { return x <= 1 || x < a; }

double regularised(double a, double x, bool lower) {
  if (std::isnan(a) || std::isnan(x) || a < 0 || x < 0 || (a == 0 && x == 0)) return kNaN;
  if (a == 0 || x == kInf) return a == kInf ? kNaN : (lower ? 1 : 0);
  if (x == 0 || a == kInf) return lower ? 0 : 1;
  if (a > kHugeShape && std::fabs(x - a) < 0.3 * a) return uniform(a, x, lower);
  if (left_of_peak(a, x)) {
    const double front = prefactor(a, x);
    if (lower) return front == 0 ? 0 : std::fmin(front * lower_series(a, x).value, 1);
    if (a < 1 && x <= 1) {
      // 1 - P loses digits when P is near one: 1 - x^a/Gamma(a+1) + x^a/Gamma(a+1) (1 - e^-x S)
      const double log_power = a * std::log(x) - log_gamma_after_one(a);
      double term = 1, sum = 0;  // a * sum over n >= 1 of (-x)^n / (n! (a + n))
      for (int n = 1; n < 100; ++n) {
        term *= -x / n;
        sum += term / (a + n);
        if (std::fabs(term) < 1e-18) break;
      }
      return -std::expm1(log_power) - std::exp(log_power) * a * sum;
    }
    return front == 0 ? 1 : std::fmax(1 - front * lower_series(a, x).value, 0);
  }
  const double front = prefactor(a, x);
  const double upper = front == 0 ? 0 : front * a * upper_fraction(a, x).value;
  return lower ? 1 - upper : upper;
}

}  // namespace

double igamma(double a, double x) { return regularised(a, x, true); }
double igammac(double a, double x) { return regularised(a, x, false); }

// By the implicit function theorem on P(a, z) = const: dz/da = -(dP/da) / (dP/dz), where the common
// factor x^(a-1) e^-x / Gamma(a) of both cancels and nothing can underflow.
double random_gamma_grad(double a, double x) {
  if (std::isnan(a) || std::isnan(x) || !(a > 0) || x < 0) return kNaN;
  if (x == 0) return 0;
  if (std::isinf(a) || std::isinf(x)) return kNaN;
  if (a > kHugeShape) {
    const double t = x - a;  // z = a + n sqrt(a) + (n^2 - 1) / 3 + ... at a fixed normal deviate n
    return 1 + (t - (t * t / a - 1) / 3) / (2 * a);
  }
  if (left_of_peak(a, x)) {
    const Dual s = lower_series(a, x);
    return -(x / a) * (s.value * (std::log(x) - digamma(a + 1)) + s.slope);
  }
  const Dual k = upper_fraction(a, x);
  return x * (k.value * (std::log(x) - digamma(a)) + k.slope);
}

}  // namespace functrans
