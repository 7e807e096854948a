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

namespace {

// What is more than known is taken for twice as much at most: pages that are new, and neighbours,
// delay a loop now and then, and nothing hastens it.
void note(std::atomic<std::int64_t>& known, std::int64_t before, std::int64_t now) {
  now = std::max<std::int64_t>(now, 1);
  if (before > 0) {
    now = std::min(now, 2 * before);
  }
  known.store(now, std::memory_order_relaxed);
}

}  // namespace

// Two threads may write at once, and a time may meet the key of another loop: either is measured
// again by later runs.
LoopCost::LoopCost(RangeFn body, std::int64_t n, std::int64_t grain,
                   std::int64_t estimate) noexcept {
  constexpr std::uint64_t kOdd = 0x9e3779b97f4a7c15;
  std::uint64_t key = reinterpret_cast<std::uintptr_t>(body);
  for (const std::int64_t part : {n, grain, estimate}) {
    key = (key ^ static_cast<std::uint64_t>(part)) * kOdd;
    key ^= key >> 32;
  }
  entry_ = &table_[key >> 20 & 0xfff];
  key |= 1;  // that of no empty place
  if (entry_->key.load(std::memory_order_relaxed) != key) {
    entry_->alone.store(0, std::memory_order_relaxed);
    entry_->together.store(0, std::memory_order_relaxed);
    entry_->runs.store(0, std::memory_order_relaxed);
    entry_->key.store(key, std::memory_order_relaxed);
  }
  const std::int64_t alone = entry_->alone.load(std::memory_order_relaxed);
  known_ = alone != 0;
  alone_ = known_ ? alone : estimate;
  together_ = entry_->together.load(std::memory_order_relaxed);
  run_ = entry_->runs.load(std::memory_order_relaxed) + 1;
  entry_->runs.store(run_, std::memory_order_relaxed);
}

bool LoopCost::wants_one(bool uncertain) const noexcept {
  const bool power = (run_ & (run_ - 1)) == 0;
  const bool measures = run_ == 2 || (power && (run_ & 0x55555555) != 0);  // 1, 2, 4, 16, 64, ...
  if ((uncertain || alone_ < kShort) && measures) return true;
  return together_ > 0 && 3 * together_ > 2 * alone_ && !tries_again();
}

void LoopCost::note_alone(std::int64_t nanoseconds) noexcept {
  note(entry_->alone, entry_->alone.load(std::memory_order_relaxed), nanoseconds);
}

void LoopCost::note_together(std::int64_t nanoseconds) noexcept {
  // the moment of the last try may have been a slow one
  note(entry_->together, tries_again() ? 0 : together_, nanoseconds);
}

}  // namespace functrans
