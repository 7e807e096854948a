#include "thread_costs.h"

#include <algorithm>
#include <ctime>

namespace functrans {

LoopCost::Entry LoopCost::table_[1 << 14];

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

// A time with its level in the lowest bits: 0 for none.
std::uint32_t packed(std::int64_t nanoseconds, int level) noexcept {
  return static_cast<std::uint32_t>((nanoseconds & ~std::int64_t{15}) | level);
}
int level_in(std::uint32_t packed) noexcept { return static_cast<int>(packed & 15); }
std::int64_t time_in(std::uint32_t packed) noexcept { return packed & ~15u; }

template <typename T>
T read(const std::atomic<T>& value) noexcept {
  return value.load(std::memory_order_relaxed);
}
template <typename T, typename Value>
void write(std::atomic<T>& to, Value value) noexcept {
  to.store(static_cast<T>(value), std::memory_order_relaxed);
}

std::uint64_t mixed(std::uint64_t key, std::int64_t part) noexcept {
  constexpr std::uint64_t kOdd = 0x9e3779b97f4a7c15;
  key = (key ^ static_cast<std::uint64_t>(part)) * kOdd;
  return key ^ key >> 32;
}

bool is_far(std::int64_t now, std::int64_t before) noexcept {
  return now > 2 * before || 2 * now < before;
}

}  // namespace

LoopCost::Entry* LoopCost::found(std::uint64_t key) noexcept {
  Entry* first = first_place(key);
  for (Entry* entry = first; entry < first + kPlaces; ++entry) {
    if (read(entry->key) == key) return entry;
  }
  return nullptr;
}

LoopCost::Entry* LoopCost::replaced(std::uint64_t key) noexcept {
  Entry* first = first_place(key);
  Entry* fewest = first;
  for (Entry* entry = first; entry < first + kPlaces; ++entry) {
    if (read(entry->runs) < read(fewest->runs)) fewest = entry;
  }
  return fewest;
}

// Two threads may write at once, and a time may meet the key of another loop: either is measured
// again by later runs.
LoopCost::LoopCost(RangeFn body, std::int64_t n, std::int64_t grain, std::int64_t estimate,
                   int threads, int cap) noexcept
    : top_(level_of(cap)) {
  std::uint64_t key = reinterpret_cast<std::uintptr_t>(body);
  for (const std::int64_t part : {n, grain, estimate, std::int64_t{threads}}) {
    key = mixed(key, part);
  }
  const std::uint64_t uncapped = key | 1;  // that of no empty place
  key = cap < threads ? mixed(key, cap) | 1 : uncapped;
  entry_ = found(key);
  if (entry_ == nullptr) {
    entry_ = replaced(key);
    forget();
    write(entry_->relearned, 0);
    write(entry_->key, key);
    const Entry* known = cap < threads ? found(uncapped) : nullptr;
    if (known != nullptr && read(known->alone) != 0) {
      write(entry_->runs, 4);  // it was measured on one thread
      write(entry_->alone, read(known->alone));
      write(entry_->took[0], read(known->took[0]));
      set_samples(0, read(known->samples) & 15);
    }
  }
  const std::int64_t alone = read(entry_->alone);
  known_ = alone != 0;
  alone_ = known_ ? alone : estimate;
  run_ = read(entry_->runs) + 1;
  write(entry_->runs, run_);
}

void LoopCost::forget() noexcept {
  write(entry_->samples, 0);
  for (std::atomic<std::uint32_t>& took : entry_->took) write(took, 0);
  for (std::atomic<std::uint32_t>* each :
       {&entry_->runs, &entry_->alone, &entry_->level, &entry_->trials, &entry_->next,
        &entry_->before, &entry_->changed, &entry_->fastest, &entry_->doubts, &entry_->doubted,
        &entry_->retried}) {
    write(*each, 0);
  }
}

// The level that is worth its threads, of those which were measured; 0 where only one thread was,
// and -1 where nothing was.
int LoopCost::best_level(int top) const noexcept {
  const int in_use = static_cast<int>(read(entry_->level));
  const auto cost = [&](int level) {  // or nothing where it is not known
    if (samples(level) < (level == 0 ? 1 : kSamples)) return 0.0;
    return static_cast<double>(took(level)) * (level == in_use ? 1 - kStays / 100.0 : 1);
  };
  const bool is_short = alone_ < kShort;
  const double gain = 1 + (is_short ? kGainShort : kGain) / 100.0;
  int best = -1;
  double least = 0, weight = 1;
  for (int level = 0; level <= top; ++level) {
    const double now = cost(level) * weight;
    if (is_short) weight *= gain;
    if (now > 0 && (best < 0 || now < least)) best = level, least = now;
  }
  for (int level = 0; !is_short && level < best; ++level) {
    if (const double now = cost(level); now > 0 && now <= least * gain) return level;
  }
  return best;
}

int LoopCost::trial_level(int best, int top, bool tries_one) noexcept {
  const auto worth = [this, top](int level) {
    return level >= 0 && level <= top && alone_ >> level >= kPieceTime;
  };
  int levels[3], count = 0;
  for (const int other : {best + 1, best - 1}) {
    if (!worth(other)) continue;
    if (samples(other) < kSamples) return other;
    levels[count++] = other;
  }
  if (tries_one && best > 1) levels[count++] = 0;
  const std::uint32_t next = read(entry_->next);
  if (count == 0 || run_ < next) return -1;
  const std::uint32_t trials = read(entry_->trials);
  const std::uint32_t made = next == 0 ? 0 : trials + 1;  // the first one is only planned
  const int following = levels[made % static_cast<std::uint32_t>(count)];
  const std::int64_t times = std::clamp<std::int64_t>(
      took(following) / std::max<std::int64_t>(took(best), 1), 1, 1 << 16);
  write(entry_->next, run_ + (kTryAgain * times << std::min(made, kMostDoubled)));
  write(entry_->trials, made);
  return next == 0 ? -1 : levels[trials % static_cast<std::uint32_t>(count)];
}

LoopCost::Choice LoopCost::choose(std::int64_t most, bool uncertain, LoopsMay may) noexcept {
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
  const bool tries_one = uncertain || alone_ < kShort;
  const bool measures = run_ == 1 || run_ == 2 || run_ == 4;
  const bool doubtful = samples(0) == 0 && read(entry_->doubted) != 0;
  if ((tries_one && measures) || doubtful) {
    choice.now = 1;
    return choice;
  }
  if (may == LoopsMay::kLearnTogether && known_ && alone_ >> top >= kPieceTime) {
    choice.best = choice.now = most;
    choice.saved = std::max(choice.saved, alone_ / 2);
    tries_ = true;
  }
  if (!together || may != LoopsMay::kTry) return choice;
  const int best_of_all = top == top_ ? best : best_level(top_);
  if (best_of_all != static_cast<int>(read(entry_->level))) {
    write(entry_->level, best_of_all);
    write(entry_->trials, 0);
    write(entry_->next, 0);
  }
  const int retried = static_cast<int>(read(entry_->retried));
  write(entry_->retried, 0);
  const bool again = retried > 0 && retried <= top && retried != best;
  const int other = again ? retried : trial_level(best, top, tries_one);
  tries_ = other >= 0;
  if (tries_) choice.now = threads_of(other, most);
  return choice;
}

// Whether this run and those before it, each on a level that was known, show that all which is known
// is of another loop.
bool LoopCost::is_another_loop(int level, std::int64_t nanoseconds) noexcept {
  const std::uint32_t before = read(entry_->before);
  const bool same = before != 0 && level_in(before) == level;
  if (!same && samples(level) < kSamples) return false;
  if (!is_far(nanoseconds, same ? time_in(before) : took(level))) {
    write(entry_->before, 0);
    write(entry_->changed, 0);
    return false;
  }
  if (!same) write(entry_->before, packed(took(level), level));
  const std::uint32_t changed = read(entry_->changed) + 1, relearned = read(entry_->relearned);
  write(entry_->changed, changed);
  const std::uint32_t least = level == 0 ? kChanged : kChangedTogether;
  if (changed < least << std::min(relearned, kMostRelearned)) return false;
  write(entry_->relearned, relearned + 1);
  return true;
}

void LoopCost::note(int level, std::int64_t nanoseconds) noexcept {
  if (!tries_ && is_another_loop(level, nanoseconds)) {
    forget();
    write(entry_->alone, std::clamp<std::int64_t>(nanoseconds << level, 1, kMost));
  }
  std::atomic<std::uint32_t>& took = entry_->took[level];
  write(took, moved(read(took), nanoseconds));
  if (samples(level) < kSamples) set_samples(level, samples(level) + 1);
}

void LoopCost::note_alone(std::int64_t nanoseconds) noexcept {
  note(0, nanoseconds);
  write(entry_->alone, took(0));
}

void LoopCost::note_together(std::int64_t nanoseconds, std::int64_t threads, std::int64_t most,
                             bool sound) noexcept {
  const int level = level_of(threads);
  if (threads_of(level, most) != threads) return;
  const std::uint32_t doubted = read(entry_->doubted), fastest = read(entry_->fastest);
  const bool same = fastest != 0 && level_in(fastest) == level;
  if (sound) {
    if (same) write(entry_->fastest, 0);
    if ((doubted >> level & 1) != 0 && 2 * nanoseconds < took(level)) {
      // the CPUs are free again: what was known without them is not
      for (int other = 1; other < kLevels; ++other) {
        if ((doubted >> other & 1) != 0) set_samples(other, 0), write(entry_->took[other], 0);
      }
      write(entry_->doubted, 0);
    }
    note(level, nanoseconds);
    return;
  }
  nanoseconds = std::clamp<std::int64_t>(nanoseconds, 16, kMost);
  const std::uint32_t doubts = same ? read(entry_->doubts) + 1 : 1;
  const std::int64_t least = same ? std::min(nanoseconds, time_in(fastest)) : nanoseconds;
  write(entry_->doubts, doubts);
  write(entry_->fastest, packed(least, level));
  if (doubts < kDoubts) {
    if (tries_) write(entry_->retried, level);
    return;
  }
  write(entry_->fastest, 0);
  write(entry_->doubted, doubted | 1u << level);
  write(entry_->took[level], least);
  set_samples(level, kSamples);
}

void LoopCost::note_spent(std::int64_t nanoseconds) noexcept {
  write(entry_->alone, moved(read(entry_->alone), nanoseconds));
}

}  // namespace functrans
