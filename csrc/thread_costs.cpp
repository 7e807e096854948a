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

constexpr std::int64_t kMost = 0x7fffffff;  // nanoseconds that are told apart

// Less is taken at once, and an eighth of what is more: pages that are new, and neighbours, delay a
// loop now and then, and nothing hastens it.
std::uint32_t moved(std::int64_t before, std::int64_t now) noexcept {
  now = std::clamp<std::int64_t>(now, 1, kMost);
  if (before > 0 && now > before) now = before + std::min(now - before, before) / 8;
  return static_cast<std::uint32_t>(now);
}

}  // namespace

// Two threads may write at once, and a time may meet the key of another loop: either is measured
// again by later runs.
LoopCost::LoopCost(RangeFn body, std::int64_t n, std::int64_t grain, std::int64_t estimate,
                   int threads) noexcept {
  constexpr std::uint64_t kOdd = 0x9e3779b97f4a7c15;
  std::uint64_t key = reinterpret_cast<std::uintptr_t>(body);
  for (const std::int64_t part : {n, grain, estimate, std::int64_t{threads}}) {
    key = (key ^ static_cast<std::uint64_t>(part)) * kOdd;
    key ^= key >> 32;
  }
  entry_ = &table_[key >> 20 & 0xfff];
  key |= 1;  // that of no empty place
  if (entry_->key.load(std::memory_order_relaxed) != key) {
    entry_->samples.store(0, std::memory_order_relaxed);
    entry_->runs.store(0, std::memory_order_relaxed);
    entry_->alone.store(0, std::memory_order_relaxed);
    for (std::atomic<std::uint32_t>& took : entry_->took) {
      took.store(0, std::memory_order_relaxed);
    }
    entry_->key.store(key, std::memory_order_relaxed);
  }
  const std::int64_t alone = entry_->alone.load(std::memory_order_relaxed);
  known_ = alone != 0;
  alone_ = known_ ? alone : estimate;
  run_ = entry_->runs.load(std::memory_order_relaxed) + 1;
  entry_->runs.store(run_, std::memory_order_relaxed);
}

// The level that is worth its threads, of those which were measured; 0 where only one thread was,
// and -1 where nothing was.
int LoopCost::best_level(int top) const noexcept {
  int best = -1;
  double least = 0, weight = 1;
  for (int level = 0; level <= top; ++level) {
    const double cost = static_cast<double>(took(level)) * weight;
    weight *= 1 + kGain / 100.0;
    if (samples(level) < (level == 0 ? 1 : kSamples)) continue;
    if (best < 0 || cost < least) best = level, least = cost;
  }
  return best;
}

LoopCost::Choice LoopCost::choose(std::int64_t most, bool uncertain) const noexcept {
  const int top = level_of(most);
  bool together = false;  // whether it was measured on several threads
  for (int level = 1; level <= top; ++level) together |= samples(level) >= kSamples;
  const int best = together ? best_level(top)
                            : level_of(std::clamp<std::int64_t>(alone_ / kAwakeShare, 1, most));
  Choice choice{0, threads_of(best, most), 0};
  if (known_ && best > 0) {
    choice.saved = together ? std::max<std::int64_t>(alone_ - took(best), 0) : alone_ / 2;
  }
  choice.now = choice.best;
  const bool power = (run_ & (run_ - 1)) == 0;
  const bool measures = run_ == 2 || (power && (run_ & 0x55555555) != 0);  // 1, 2, 4, 16, 64, ...
  if ((uncertain || alone_ < kShort) && measures) {
    choice.now = 1;
    return choice;
  }
  if (!together) return choice;
  const auto worth = [this, top](int level) {
    return level >= 0 && level <= top && alone_ >> level >= kPieceTime;
  };
  for (const int other : {best + 1, best - 1}) {
    if (worth(other) && samples(other) < kSamples) {
      choice.now = threads_of(other, most);
      return choice;
    }
  }
  if (run_ % kTryAgain == kTryAgain - 1) {
    const int other = best + (run_ / kTryAgain % 2 == 0 ? 1 : -1);
    if (worth(other)) choice.now = threads_of(other, most);
  }
  return choice;
}

void LoopCost::note(int level, std::int64_t nanoseconds) noexcept {
  std::atomic<std::uint32_t>& took = entry_->took[level];
  took.store(moved(took.load(std::memory_order_relaxed), nanoseconds), std::memory_order_relaxed);
  if (samples(level) < kSamples) {
    const std::uint64_t all = entry_->samples.load(std::memory_order_relaxed);
    entry_->samples.store(all + (std::uint64_t{1} << (4 * level)), std::memory_order_relaxed);
  }
}

void LoopCost::note_alone(std::int64_t nanoseconds) noexcept {
  note(0, nanoseconds);
  entry_->alone.store(static_cast<std::uint32_t>(took(0)), std::memory_order_relaxed);
}

void LoopCost::note_together(std::int64_t nanoseconds, std::int64_t threads,
                             std::int64_t most) noexcept {
  const int level = level_of(threads);
  if (threads_of(level, most) == threads) note(level, nanoseconds);
}

void LoopCost::note_spent(std::int64_t nanoseconds) noexcept {
  const std::int64_t before = entry_->alone.load(std::memory_order_relaxed);
  entry_->alone.store(moved(before, nanoseconds), std::memory_order_relaxed);
}

}  // namespace functrans
