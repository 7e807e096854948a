// Discrete Fourier transforms by cuFFT. Plans are kept: making one takes milliseconds.
#include "cuda/libraries.h"

#include <list>
#include <map>

namespace functrans::cuda {
namespace {

using Plan = int;
constexpr int kNoMemory = 2;
constexpr std::size_t kPlans = 64;  // kept on each device
enum Kind : std::int64_t { forward, inverse, from_real, to_real };

#define FT_CUFFT_FUNCTIONS(X)                                                                  \
  X(Create, "cufftCreate", (Plan*))                                                            \
  X(Destroy, "cufftDestroy", (Plan))                                                           \
  X(SetStream, "cufftSetStream", (Plan, CUstream))                                             \
  X(SetAutoAllocation, "cufftSetAutoAllocation", (Plan, int))                                  \
  X(SetWorkArea, "cufftSetWorkArea", (Plan, void*))                                            \
  X(MakePlanMany, "cufftMakePlanMany64",                                                       \
    (Plan, int, long long*, long long*, long long, long long, long long*, long long, long long, \
     int, long long, std::size_t*))                                                            \
  X(ExecC2C, "cufftExecC2C", (Plan, void*, void*, int))                                        \
  X(ExecZ2Z, "cufftExecZ2Z", (Plan, void*, void*, int))                                        \
  X(ExecR2C, "cufftExecR2C", (Plan, void*, void*))                                             \
  X(ExecD2Z, "cufftExecD2Z", (Plan, void*, void*))                                             \
  X(ExecC2R, "cufftExecC2R", (Plan, void*, void*))                                             \
  X(ExecZ2D, "cufftExecZ2D", (Plan, void*, void*))

struct {
#define X(name, symbol, parameters) int(*name) parameters;
  FT_CUFFT_FUNCTIONS(X)
#undef X
} cufft;

#define FT_FFT(call, device) check_library(cufft.call, "cuFFT: " #call, kNoMemory, device)

// The type of a transform, as cuFFT names it.
int type_of(std::int64_t kind, bool wide) {
  const int narrow = kind == from_real ? 0x2a : kind == to_real ? 0x2c : 0x29;
  return wide ? narrow + 0x40 : narrow;
}

struct Made {
  std::vector<std::int64_t> key;
  Plan plan;
  std::size_t work;
};

// The plans of a device, those used last first.
std::list<Made>& plans_of(const Device& device) {
  static std::map<int, std::list<Made>> plans;
  static std::mutex mutex;
  std::lock_guard<std::mutex> lock(mutex);
  return plans[device.ordinal];
}

const Made& plan_for(const LibraryCall& call) {
  require_library(cufft.ExecZ2D != nullptr, "cuFFT", call.device);
  std::list<Made>& plans = plans_of(call.device);
  std::vector<std::int64_t> key = call.numbers;
  if (key[0] == inverse) key[0] = forward;  // the direction is an argument of each transform
  for (auto at = plans.begin(); at != plans.end(); ++at) {
    if (at->key != key) continue;
    plans.splice(plans.begin(), plans, at);
    return plans.front();
  }
  if (plans.size() >= kPlans) {
    call.device.synchronize();  // work that was given may use its tables
    cufft.Destroy(plans.back().plan);
    plans.pop_back();
  }
  Made made{std::move(key), 0, 0};
  std::vector<long long> lengths(call.numbers.begin() + 3, call.numbers.end());
  const auto rank = static_cast<int>(lengths.size());
  FT_FFT(Create(&made.plan), call.device);
  try {
    FT_FFT(SetAutoAllocation(made.plan, 0), call.device);
    FT_FFT(MakePlanMany(made.plan, rank, lengths.data(), nullptr, 1, 0, nullptr, 1, 0,
                        type_of(call.number(0), call.number(1) != 0), call.number(2), &made.work),
           call.device);
    FT_FFT(SetStream(made.plan, call.device.compute), call.device);
  } catch (...) {
    cufft.Destroy(made.plan);
    throw;
  }
  plans.push_front(std::move(made));
  return plans.front();
}

// numbers: kind, wide, batch, lengths; pointers: operand, result
void transform(const LibraryCall& call) {
  const Made& made = plan_for(call);
  const std::int64_t kind = call.number(0);
  const bool wide = call.number(1) != 0;
  std::size_t spoiled = 0;  // the transform to real numbers writes into its operand
  if (kind == to_real) {
    std::int64_t count = call.number(2) * (call.numbers.back() / 2 + 1);
    for (std::size_t i = 3; i + 1 < call.numbers.size(); ++i) count *= call.number(i);
    spoiled = static_cast<std::size_t>(count) * (wide ? 16 : 8);
  }
  const Workspace work(call.device, made.work);
  const Workspace copy(call.device, spoiled);
  FT_FFT(SetWorkArea(made.plan, address(work.pointer())), call.device);
  void* x = address(call.pointer(0));
  void* out = address(call.pointer(1));
  if (spoiled != 0) {
    FT_CU(MemcpyDtoDAsync(copy.pointer(), call.pointer(0), spoiled, call.device.compute));
    x = address(copy.pointer());
  }
  const int direction = kind == inverse ? 1 : -1;
  if (kind == from_real) {
    if (wide) {
      FT_FFT(ExecD2Z(made.plan, x, out), call.device);
    } else {
      FT_FFT(ExecR2C(made.plan, x, out), call.device);
    }
  } else if (kind == to_real) {
    if (wide) {
      FT_FFT(ExecZ2D(made.plan, x, out), call.device);
    } else {
      FT_FFT(ExecC2R(made.plan, x, out), call.device);
    }
  } else if (wide) {
    FT_FFT(ExecZ2Z(made.plan, x, out, direction), call.device);
  } else {
    FT_FFT(ExecC2C(made.plan, x, out, direction), call.device);
  }
}

}  // namespace

void open_cufft(Symbols& symbols) {
#define X(name, symbol, parameters) \
  cufft.name = reinterpret_cast<int(*) parameters>(symbols.find(symbol));
  FT_CUFFT_FUNCTIONS(X)
#undef X
}

const std::vector<LibraryFunction> cufft_functions = {{"fft", 4, 2, transform}};

}  // namespace functrans::cuda
