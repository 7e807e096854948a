#include "cuda/driver.h"

#include "cuda/device.h"
#include "hooks.h"

#include <cstring>
#include <mutex>

#include <dlfcn.h>
#include <pthread.h>

namespace functrans::cuda {

Driver driver;
bool forked = false;

namespace {

struct Opened {
  std::mutex mutex;
  bool open = false;
  bool tried = false;
  int version = 0;
  int count = 0;
  Failure failure{Cause::missing, kSuccess, "dlopen", "it was not looked for", -1, 0};
};

// Never destroyed: arrays may die after the static destructors have run.
Opened& opened() {
  static Opened* instance = new Opened();
  return *instance;
}

void mark_forked() { forked = forked || opened().open; }

std::string name_of(const char* call) {
  const char* end = std::strchr(call, '(');
  return "cu" + std::string(call, end == nullptr ? std::strlen(call)
                                                 : static_cast<std::size_t>(end - call));
}

// Errors of a kernel that ran: the context is lost, every later call gives the same error.
bool is_fault(CUresult code) {
  switch (code) {
    case kEccUncorrectable:
    case kIllegalAddress:
    case kLaunchTimeout:
    case kAssert:
    case kHardwareStackError:
    case kIllegalInstruction:
    case kMisalignedAddress:
    case kInvalidAddressSpace:
    case kInvalidPc:
    case kLaunchFailed: return true;
    default: return false;
  }
}

Cause cause_of(CUresult code) {
  if (is_fault(code)) return Cause::fault;
  switch (code) {
    case kOutOfMemory: return Cause::memory;
    case kNoDevice: return Cause::no_device;
    case kInvalidImage:
    case kNoBinaryForGpu:
    case kInvalidPtx:
    case kUnsupportedPtxVersion: return Cause::image;
    default: return Cause::other;
  }
}

bool refuse(Opened& state, Cause cause, CUresult code, const char* call, std::string note) {
  state.failure = {cause, code, call, std::move(note), -1, 0};
  return false;
}

bool open_checked(Opened& state, const char* path) {
  void* handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* message = dlerror();
    return refuse(state, Cause::missing, kSuccess, "dlopen", message == nullptr ? path : message);
  }
  const char* absent = nullptr;
#define X(name, symbol, parameters)                                                    \
  driver.name = reinterpret_cast<CUresult(*) parameters>(dlsym(handle, symbol));       \
  if (driver.name == nullptr && absent == nullptr) absent = symbol;
  FT_CUDA_FUNCTIONS(X)
#undef X
#define X(name, symbol, parameters) \
  driver.name = reinterpret_cast<CUresult(*) parameters>(dlsym(handle, symbol));
  FT_CUDA_NEWER_FUNCTIONS(X)
#undef X
  if (driver.Init == nullptr || driver.DriverGetVersion == nullptr) {
    return refuse(state, Cause::missing, kSuccess, "dlsym", std::string(path) + " has no cuInit");
  }
  const CUresult result = driver.Init(0);
  if (result != kSuccess) {
    return refuse(state, result == kNoDevice ? Cause::no_device : Cause::missing, result, "cuInit",
                  "");
  }
  driver.DriverGetVersion(&state.version);
  if (state.version < kOldestDriver || absent != nullptr) {
    return refuse(state, Cause::version, kSuccess, "cuDriverGetVersion",
                  std::to_string(state.version / 1000) + "." +
                      std::to_string(state.version % 1000 / 10));
  }
  const CUresult counted = driver.DeviceGetCount(&state.count);
  if (counted != kSuccess || state.count == 0) {
    return refuse(state, Cause::no_device, counted, "cuDeviceGetCount", "");
  }
  return true;
}

const char* cause_name(Cause cause) {
  static constexpr const char* names[] = {"none",   "missing", "version", "no_device", "forked",
                                          "memory", "fault",   "image",   "library",   "other"};
  return names[static_cast<int>(cause)];
}

// The driver's own words; empty where it has none.
const char* text_of(CUresult (*lookup)(CUresult, const char**), CUresult code) {
  const char* text = nullptr;
  if (lookup == nullptr || code == kSuccess || lookup(code, &text) != kSuccess) return "";
  return text == nullptr ? "" : text;
}

}  // namespace

void fail(CUresult code, const char* call, int device) {
  throw Failure{cause_of(code), code, name_of(call), "", device, 0};
}

bool open_driver(const char* path) noexcept {
  Opened& state = opened();
  std::lock_guard<std::mutex> lock(state.mutex);
  if (state.open || (state.tried && path == nullptr)) return state.open;
  state.tried = true;
  state.open = open_checked(state, path == nullptr ? "libcuda.so.1" : path);
  if (state.open) {
    state.failure = Failure{Cause::none, kSuccess, "", "", -1, 0};
    pthread_atfork(nullptr, nullptr, mark_forked);
  }
  return state.open;
}

bool driver_is_open() noexcept { return opened().open; }
const Failure& driver_failure() noexcept { return opened().failure; }
int driver_version() noexcept { return opened().version; }
int device_count() noexcept { return opened().open && !forked ? opened().count : 0; }

void require_driver() {
  if (forked) throw Failure{Cause::forked, kSuccess, "", "", -1, 0};
  if (!open_driver(nullptr)) throw driver_failure();
}

void raise_failure(const Failure& failure) {
  if (PyErr_Occurred()) return;
  const char* name = text_of(driver.GetErrorName, failure.code);
  const char* words = text_of(driver.GetErrorString, failure.code);
  Ref stats, launches;
  if (failure.cause == Cause::memory && failure.device >= 0) {
    stats = Ref(device_stats(failure.device));
    if (!stats) return;
  }
  if (failure.cause == Cause::fault) {
    launches = Ref(recent_launches(failure.device));
    if (!launches) return;
  }
  if (has_hook(Hook::cuda)) {
    Ref detail(Py_BuildValue(
        "{s:s,s:i,s:s,s:s,s:s,s:i,s:n,s:O,s:O}", "call", failure.call.c_str(), "code", failure.code,
        "name", name, "words", words, "note", failure.note.c_str(), "device", failure.device,
        "bytes", static_cast<Py_ssize_t>(failure.bytes), "stats", stats ? stats.get() : Py_None,
        "launches", launches ? launches.get() : Py_None));
    Ref cause(PyUnicode_FromString(cause_name(failure.cause)));
    if (!detail || !cause) return;
    PyObject* args[] = {cause.get(), detail.get()};
    Ref(call_hook(Hook::cuda, args, 2));
    if (PyErr_Occurred()) return;
  }
  PyErr_Format(failure.cause == Cause::memory ? PyExc_MemoryError : PyExc_RuntimeError,
               "%s failed: %s %s %s", failure.call.c_str(), name, words, failure.note.c_str());
}

}  // namespace functrans::cuda
