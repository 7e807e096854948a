// A CUDA device: its primary context, its two streams, its memory, and what ran on it lately.
#pragma once

#include "cuda/driver.h"
#include "cuda/modules.h"
#include "cuda/pool.h"
#include "cuda/timeline.h"

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace functrans::cuda {

// Pinned memory that copies between host and device go through, two chunks in flight.
struct Staging {
  static constexpr std::size_t kChunk = std::size_t{4} << 20;
  std::mutex mutex;  // taken without the GIL only
  std::array<void*, 2> chunks{};
  std::array<CUevent, 2> events{};
  std::array<bool, 2> busy{};
};

// Memory of another library that work on this device may still use.
struct Deferred {
  std::uint64_t position;
  void (*destroy)(void*);
  void* argument;
};

class Device final : private MemorySource {
 public:
  explicit Device(int ordinal);

  // A block for use on the compute stream; throws Failure where there is not enough memory.
  Block* allocate(std::size_t bytes);
  void release(Block* block) { pool.release(block, timeline.now()); }
  // Calls destroy(argument) once the work given so far has run: by run_deferred, now or later.
  void defer(void (*destroy)(void*), void* argument);
  void run_deferred();

  // Remembers what was launched, for the message should a kernel fail.
  void log(std::shared_ptr<const std::string> label, std::uint64_t position);
  // Returns when everything given to both streams has run; without the GIL.
  void synchronize();

  int ordinal;
  CUdevice handle = 0;
  CUcontext context = nullptr;
  CUstream compute = nullptr;
  CUstream copy = nullptr;
  // Collectives beside the kernels, and where what they launch is captured: made when first used,
  // of the highest priority, so that they get multiprocessors before waiting kernels do.
  CUstream communication();
  CUstream capture();
  std::mutex capture_mutex;  // held while something is captured
  Timeline timeline;
  Pool pool;
  Modules modules;
  Staging staging;

  std::vector<std::string> launches();  // not known to have ended, oldest first

 private:
  CUstream urgent_stream(std::atomic<CUstream>& stream);
  std::atomic<CUstream> communication_{};
  std::atomic<CUstream> capture_{};
  CUdeviceptr take(std::size_t bytes) override;
  void give(CUdeviceptr pointer) override;
  void settle() override;

  struct Launched {
    std::shared_ptr<const std::string> label;
    std::uint64_t position = 0;
  };
  std::mutex log_mutex_;
  std::array<Launched, 32> log_;
  std::size_t logged_ = 0;
  std::mutex deferred_mutex_;
  std::vector<Deferred> deferred_;
};

// The device of this number, made when it is first used; throws Failure.
Device& get_device(int ordinal);
// The device if it was used before, else null.
Device* used_device(int ordinal) noexcept;

// Makes the context of a device current in a scope. A thread that has none keeps it: pushing and
// popping costs more than the call in between.
class Current {
 public:
  explicit Current(const Device& device) {
    CUcontext now = nullptr;
    FT_CU(CtxGetCurrent(&now));
    if (now == device.context) return;
    if (now == nullptr) {
      FT_CU(CtxSetCurrent(device.context));
    } else {
      FT_CU(CtxPushCurrent(device.context));
      pushed_ = true;
    }
  }
  ~Current() {
    CUcontext popped;
    if (pushed_) driver.CtxPopCurrent(&popped);
  }
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;

 private:
  bool pushed_ = false;
};

// Every launch is waited for, so that a failing kernel is named; for debugging.
extern bool synchronous;

// With the GIL: a new dict of memory statistics, a new list of labels; null with an exception set.
PyObject* device_stats(int ordinal);
PyObject* recent_launches(int ordinal);

}  // namespace functrans::cuda
