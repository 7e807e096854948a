#include "cuda/libraries.h"

#include "cuda/nccl.h"

#include <dlfcn.h>

#include <array>
#include <cstring>
#include <map>

namespace functrans::cuda {
namespace {

std::mutex libraries_mutex;

struct Library {
  void (*open)(Symbols&);
  bool is_open = false;
};

std::map<std::string, Library>& libraries() {
  static std::map<std::string, Library> found = {
      {"cufft", {open_cufft}},
      {"cublas", {open_cublas}},
      {"cusolver", {open_cusolver}},
      {"nccl", {open_nccl}}};
  return found;
}

// One at a time on each device: plans and handles are shared.
std::mutex& mutex_of(const Device& device) {
  static std::array<std::mutex, 64> mutexes;
  return mutexes[static_cast<std::size_t>(device.ordinal) % mutexes.size()];
}

}  // namespace

void* Symbols::find(const char* symbol) {
  void* found = dlsym(handle, symbol);
  if (found == nullptr && absent.empty()) absent = symbol;
  return found;
}

std::string open_library(const std::string& name, const char* path) {
  std::lock_guard<std::mutex> lock(libraries_mutex);
  const auto at = libraries().find(name);
  if (at == libraries().end()) return "there is no library " + name;
  if (at->second.is_open) return "";
  void* handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* message = dlerror();
    return message == nullptr ? path : message;
  }
  Symbols symbols{handle, ""};
  at->second.open(symbols);
  if (!symbols.absent.empty()) return std::string(path) + " has no " + symbols.absent;
  at->second.is_open = true;
  return "";
}

const LibraryFunction* find_library_function(const std::string& name) {
  for (const auto* table : {&cufft_functions, &cusolver_functions, &nccl_functions}) {
    for (const LibraryFunction& function : *table) {
      if (name == function.name) return &function;
    }
  }
  return nullptr;
}

void run_library(Device& device, const Step& step, const CUdeviceptr* bases) {
  std::vector<CUdeviceptr> pointers;
  for (const Place& place : step.places) pointers.push_back(place.in(bases));
  std::lock_guard<std::mutex> lock(mutex_of(device));
  try {
    step.function->run({device, step.numbers, pointers});
  } catch (const Failure& failure) {
    // The libraries have memory of their own, which the pool may have taken.
    if (failure.cause != Cause::memory || device.pool.release_cached() == 0) throw;
    step.function->run({device, step.numbers, pointers});
  }
}

void check_library(int status, const char* call, int no_memory, const Device& device) {
  if (status == 0) return;
  throw Failure{status == no_memory ? Cause::memory : Cause::library, kSuccess,
                std::string(call, std::strcspn(call, "[(")), "status " + std::to_string(status),
                device.ordinal, 0};
}

}  // namespace functrans::cuda
