// The CUDA driver, loaded when it is first asked for: its functions, and how its errors are raised.
#pragma once

#include "common.h"
#include "cuda/driver_api.h"

#include <cstdint>
#include <new>
#include <string>

namespace functrans::cuda {

struct Driver {
#define X(name, symbol, parameters) CUresult(*name) parameters = nullptr;
  FT_CUDA_FUNCTIONS(X)
  FT_CUDA_NEWER_FUNCTIONS(X)
#undef X
};
extern Driver driver;

// Kernels are compiled for drivers of CUDA 12: older ones lack the graph functions used here.
constexpr int kOldestDriver = 12000;

enum class Cause {
  none, missing, version, no_device, forked, memory, fault, image, library, other
};

// What a failed call says. Thrown where the GIL may be released; becomes a Python exception by
// raise_failure.
struct Failure {
  Cause cause = Cause::other;
  CUresult code = kSuccess;
  std::string call;       // what failed, as text
  std::string note;       // anything that helps: a library's message, a kernel's name
  int device = -1;
  std::size_t bytes = 0;  // asked for, of `memory`
};

[[noreturn]] void fail(CUresult code, const char* call, int device = -1);
inline void check(CUresult code, const char* call, int device = -1) {
  if (code != kSuccess) [[unlikely]] fail(code, call, device);
}
#define FT_CU(call) ::functrans::cuda::check(::functrans::cuda::driver.call, #call)

// Loads the library and initialises it, once; false where there is none, and `driver_failure` says
// why. A path opens another library in its place as long as none is open.
bool open_driver(const char* path) noexcept;
bool driver_is_open() noexcept;
const Failure& driver_failure() noexcept;
int driver_version() noexcept;
int device_count() noexcept;

// The process is a fork of one that had the driver open: nothing of the driver works here.
extern bool forked;
// Throws unless the driver is open and usable in this process.
void require_driver();

// With the GIL: sets the Python exception (through the hook "cuda", which makes functrans' own).
void raise_failure(const Failure& failure);

// What `run` returns, or null with the exception of Python for a failure in it.
template <typename Run>
PyObject* guarded(Run run) {
  try {
    return run();
  } catch (const Failure& failure) {
    raise_failure(failure);
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  }
  return nullptr;
}

// Releases the GIL in a scope, also when a Failure passes through.
class Unlocked {
 public:
  Unlocked() : thread_(PyEval_SaveThread()) {}
  ~Unlocked() { restore_thread(thread_); }
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;

 private:
  PyThreadState* thread_;
};

}  // namespace functrans::cuda
