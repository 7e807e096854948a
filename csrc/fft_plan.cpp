#include "fft_plan.h"

#include "fft_isa.h"

#include <cmath>
#include <map>
#include <mutex>

namespace functrans {
namespace {

constexpr std::size_t kMostPlans = 128;
constexpr long double kPi = 3.141592653589793238462643383279502884L;

// exp(-2 pi i k / n), by the angle in the first octant
template <typename T>
void root_of_unity(i64 k, i64 n, T* real, T* imag) {
  k %= n;
  const i64 eighth = 8 * k / n;
  const i64 from = (eighth + 1) / 2;  // quarters of a turn to the nearest axis
  const long double angle =
      kPi * static_cast<long double>(4 * k - from * n) / (2 * static_cast<long double>(n));
  const long double c = std::cos(angle), s = std::sin(angle);
  const long double x[4] = {c, -s, -c, s}, y[4] = {s, c, -s, -c};
  *real = static_cast<T>(x[from % 4]);
  *imag = static_cast<T>(-y[from % 4]);
}

std::vector<int> radices_of(i64 n) {
  std::vector<int> found;
  for (const int radix : {4, 2, 3, 5, 7, 11, 13}) {
    while (n % radix == 0) {
      found.push_back(radix);
      n /= radix;
    }
  }
  return n == 1 ? found : std::vector<int>{};
}

template <typename T>
void add_halves(FftPlan<T>& plan) {
  plan.halves.resize(2 * (plan.points + 1));
  for (i64 k = 0; k <= plan.points; ++k) {
    root_of_unity(k, 2 * plan.points, &plan.halves[2 * k], &plan.halves[2 * k + 1]);
  }
}

template <typename T>
std::shared_ptr<const FftPlan<T>> make(i64 n) {
  auto plan = std::make_shared<FftPlan<T>>();
  plan->points = n;
  plan->radices = radices_of(n);
  if (plan->radices.empty() && n > 1) return nullptr;
  add_halves(*plan);
  if (n >= kLongTransform) {
    i64 first = 1;  // the divisor next to the root
    for (i64 d = 2; d * d <= n; ++d) {
      if (n % d == 0) first = d;
    }
    plan->columns = fft_plan<T>(first);
    plan->rows = fft_plan<T>(n / first);
    if (plan->columns == nullptr || plan->rows == nullptr) return nullptr;
    const i64 width = n / first;
    plan->real.assign(n + kFftLanes, T(0));
    plan->imag.assign(n + kFftLanes, T(0));
    for (i64 k = 0; k < first; ++k) {
      for (i64 j = 0; j < width; ++j) {
        root_of_unity(k * j, n, &plan->real[k * width + j], &plan->imag[k * width + j]);
      }
    }
  }
  for (const int radix : plan->radices) {
    for (i64 p = 0; p < n / radix; ++p) {
      for (int k = 1; k < radix; ++k) {
        T parts[2];
        root_of_unity(p * k, n, &parts[0], &parts[1]);
        plan->roots.insert(plan->roots.end(), parts, parts + 2);
      }
    }
    n /= radix;
  }
  return plan;
}

}  // namespace

template <typename T>
std::shared_ptr<const FftPlan<T>> fft_plan(i64 points) {
  static std::mutex mutex;
  static std::map<i64, std::shared_ptr<const FftPlan<T>>> plans;
  {
    const std::lock_guard<std::mutex> lock(mutex);
    const auto found = plans.find(points);
    if (found != plans.end()) return found->second;
  }
  auto plan = make<T>(points);
  const std::lock_guard<std::mutex> lock(mutex);
  if (plans.size() >= kMostPlans) plans.clear();
  return plans.emplace(points, std::move(plan)).first->second;
}

template std::shared_ptr<const FftPlan<float>> fft_plan(i64);
template std::shared_ptr<const FftPlan<double>> fft_plan(i64);

}  // namespace functrans
