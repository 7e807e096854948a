#include "thread_costs.h"

#include <algorithm>
#include <ctime>

namespace functrans {

LoopCost::Entry LoopCost::table_[1 << 12];

std::int64_t clock_nanoseconds() noexcept {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1000000000 + now.tv_nsec;
}

LoopCost::LoopCost(RangeFn body, std::int64_t n, std::int64_t grain,
                   std::int64_t estimate) noexcept {
  constexpr std::uint64_t kOdd = 0x9e3779b97f4a7c15;
  std::uint64_t key = reinterpret_cast<std::uintptr_t>(body);
  for (const std::int64_t part : {n, grain, estimate}) {
    key = (key ^ static_cast<std::uint64_t>(part)) * kOdd;
    key ^= key >> 32;
  }
  key_ = key | 1;  // of no empty place
  entry_ = &table_[key >> 20 & 0xfff];
  known_ = entry_->key.load(std::memory_order_relaxed) == key_;
  time_ = known_ ? entry_->time.load(std::memory_order_relaxed) : estimate;
}

// Two threads may write at once, and a time may meet the key of another loop: either is measured
// again by the next run.
void LoopCost::note(std::int64_t nanoseconds) noexcept {
  std::int64_t time = std::max<std::int64_t>(nanoseconds, 1);
  if (known_) {
    const std::int64_t more = time - time_;
    time = time_ + (more < 0 ? more / 2 : std::min(more, time_ / 16 + 1));
  } else {
    entry_->key.store(key_, std::memory_order_relaxed);
  }
  entry_->time.store(time, std::memory_order_relaxed);
}

}  // namespace functrans
