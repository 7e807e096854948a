// Where the compute stream stands: positions that count the work given to it, and events between
// them that other streams and the host wait for.
#pragma once

#include "cuda/driver.h"

#include <atomic>
#include <cstdint>
#include <deque>
#include <mutex>
#include <vector>

namespace functrans::cuda {

class Timeline {
 public:
  void init(CUstream stream) { stream_ = stream; }

  // The position after everything given to the stream so far.
  std::uint64_t now() const { return given_.load(std::memory_order_acquire); }
  // To be called after work has been given to the stream; the position after it.
  std::uint64_t advance() { return given_.fetch_add(1, std::memory_order_acq_rel) + 1; }

  // Work given to `stream` from now on runs behind this position.
  void order(CUstream stream, std::uint64_t position);
  // Returns when the stream has passed the position; without the GIL.
  void synchronize(std::uint64_t position);
  bool passed(std::uint64_t position);
  // What ran on the stream behind this position has ended.
  void reached(std::uint64_t position);
  std::uint64_t last_passed() const { return passed_.load(std::memory_order_relaxed); }

  // Events without timing, used again.
  CUevent take_event();
  void give_event(CUevent event);

 private:
  struct Marker {
    std::uint64_t position;
    CUevent event;
  };
  CUevent event_after(std::uint64_t position);  // null when it is passed; the mutex is held
  void pass(std::uint64_t position);
  void poll();
  CUevent take();

  CUstream stream_ = nullptr;
  std::atomic<std::uint64_t> given_{0};
  std::atomic<std::uint64_t> passed_{0};
  std::mutex mutex_;
  std::deque<Marker> markers_;
  std::vector<CUevent> events_;
};

}  // namespace functrans::cuda
