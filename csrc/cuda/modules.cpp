#include "cuda/modules.h"

namespace functrans::cuda {

Module* Modules::take(const Kernel& kernel, int ordinal) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto [found, is_new] =
      loaded_.try_emplace(std::to_string(kernel.shared) + " " + kernel.image);
  Module& module = found->second;
  if (is_new) {
    try {
      check(driver.ModuleLoadData(&module.handle, kernel.image.c_str()), "ModuleLoadData", ordinal);
    } catch (const Failure&) {
      loaded_.erase(found);
      throw;
    }
    module.key = &found->first;
  }
  ++module.users;
  return &module;
}

void Modules::give(Module* module) noexcept {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (--module->users > 0) return;
  driver.ModuleUnload(module->handle);
  loaded_.erase(*module->key);
}

}  // namespace functrans::cuda
