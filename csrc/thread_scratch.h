// Memory that a thread works in for a moment: operands in another order, unfinished sums.
// Each thread keeps what it used last, because the allocator of arrays has one lock: 64 products of
// 64^3 bfloat16, with five such buffers each, made 198 GFLOP/s on one thread and 294 on 16.
#pragma once

#include <cstddef>
#include <utility>

namespace functrans {

// 64-byte aligned; null when there is no memory, but not of no bytes. The thread that took it gives
// it back.
class ThreadScratch {
 public:
  explicit ThreadScratch(long long bytes) noexcept;
  ThreadScratch(const ThreadScratch&) = delete;
  ThreadScratch& operator=(ThreadScratch&& other) noexcept {
    std::swap(data_, other.data_);
    return *this;
  }
  ~ThreadScratch();
  char* get() const noexcept { return data_; }

 private:
  char* data_;
};

}  // namespace functrans
