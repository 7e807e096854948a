// Modules of machine code on a device, which programs share: those for other sizes have the same.
#pragma once

#include "cuda/driver.h"
#include "cuda/steps.h"

#include <cstddef>
#include <mutex>
#include <string>
#include <unordered_map>

namespace functrans::cuda {

struct Module {
  CUmodule handle = nullptr;
  std::size_t users = 0;
  const std::string* key = nullptr;
};

// With the context of the device current, and without the GIL.
class Modules {
 public:
  // The module of a kernel, loaded unless a program has it; throws Failure. Kernels with other
  // shared memory have another, since that is an attribute of its functions.
  Module* take(const Kernel& kernel, int ordinal);
  // Unloads it after its last user, of whom nothing runs any more.
  void give(Module* module) noexcept;

 private:
  std::mutex mutex_;
  std::unordered_map<std::string, Module> loaded_;
};

}  // namespace functrans::cuda
