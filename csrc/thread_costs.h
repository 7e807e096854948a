// How long loops take, and how many threads they are worth: the one place that decides it.
//
// A loop is known by its function, its range, its grain and the caller's estimate. What it takes on
// 1, 2, 4, ... threads is remembered apart (a level each), from its ordinary runs: the first ones
// are on one thread, whatever the estimate was; then its neighbours' levels are tried, and the best
// is kept, with which a neighbour is compared again now and then. The level before it has to take a
// tenth longer, since more threads cost others something, too: what several threads have written,
// the next step fetches from their caches, and other processes need the CPUs.
// Constants are from 16 cores of a Xeon (Sapphire Rapids, a virtual machine), us of a loop of so
// much work on 1, 2, 4, 8 and 16 threads; they only say which level is tried first:
//
//   work   helpers awake                  asleep since 0.1 ms            asleep since 1 ms
//      5     7.6  4.3  2.8  2.9  4.3       6.3  8.5 10.7 12.7 12.6       6.2  8.5 10.5 11.8 11.8
//     20    22.4 13.2  8.7 11.0  5.2      22.0 22.8 19.8 15.4 15.8      21.4 23.7 23.3 25.5 25.7
//     50    52.5 29.8 16.4 13.4  6.3      51.8 37.8 28.3 18.6 18.3      51.6 44.6 34.0 32.6 31.9
//    100   103.0 54.2 29.6 18.1  9.0     101.7 62.8 41.0 24.6 21.9     101.5 70.1 47.1 39.8 40.2
//    500   502.3  254  130 69.2 34.2     502.3  276  148 77.7 50.5     502.3  276  151 92.2 74.2
//
// A thread that is awake joins within 1 to 2 us, one that sleeps after 5 to 25, and to wake it costs
// the caller 2. These loops share no data; where they do, lines move between caches.
#pragma once

#include "threads.h"

#include <atomic>
#include <cstdint>

namespace functrans {

// Nanoseconds that each thread is to have of a loop if it is awake, and if it has to be woken.
constexpr std::int64_t kAwakeShare = 10000;
constexpr std::int64_t kAsleepShare = 15000;
// Shorter loops wake nobody, and ...
constexpr std::int64_t kWorthWaking = 45000;
// ... these run on one thread while others need the CPUs: a thread that loses its own holds up all.
constexpr std::int64_t kWorthCrowding = 200000;
// Loops of less are run on one thread first, and again at the runs 2, 4, 16, 64, ..., to measure them.
constexpr std::int64_t kShort = 200000;
// Times of a level before it is compared, and after how many runs a neighbour is tried again: its
// twice the time at most is 1.6 % of theirs.
constexpr std::uint32_t kSamples = 2, kTryAgain = 64;
// Percent by which half of the threads have to take longer than a level that is chosen.
constexpr std::int64_t kGain = 10;
// Loops of less are run without a look at signals.
constexpr std::int64_t kUnasked = 1000000;
// What a piece takes at least: to ask for one costs 0.1.
constexpr std::int64_t kPieceTime = 1000;
// What a grain of a generated loop is taken to need (`grain_work` of cpu_target.py), ...
constexpr std::int64_t kGrainTime = 2000;
// ... and a piece that nobody has estimated or measured: library functions cut theirs
// by 5 to 100 us.
constexpr std::int64_t kUnknownPiece = 20000;

// Nanoseconds of a clock that only moves forward.
std::int64_t clock_nanoseconds() noexcept;

// Levels of threads: 1, 2, 4, ... and all of them.
constexpr int kLevels = 10;
inline int level_of(std::int64_t threads) noexcept {
  return threads <= 1 ? 0 : 64 - __builtin_clzll(static_cast<unsigned long long>(threads - 1));
}
inline std::int64_t threads_of(int level, std::int64_t most) noexcept {
  const std::int64_t all = std::int64_t{1} << level;
  return all < most ? all : most;
}

// What is remembered of a loop. Another one with the same place in the table replaces it.
class LoopCost {
 public:
  // `threads`: how many there are, of which a program may be held to fewer.
  LoopCost(RangeFn body, std::int64_t n, std::int64_t grain, std::int64_t estimate,
           int threads) noexcept;

  // Nanoseconds of the whole loop on one thread.
  std::int64_t alone() const noexcept { return alone_; }

  struct Choice {
    std::int64_t now;    // on how many threads this run is to be, if they are awake, ...
    std::int64_t best;   // ... on how many the loop is best, ...
    std::int64_t saved;  // ... and what they save, as far as it is known
  };
  // At most `most` threads. A loop that is `uncertain`, because its threads repeat some of the work,
  // is measured on one however long it is.
  Choice choose(std::int64_t most, bool uncertain) const noexcept;

  // What this run took on one thread, ...
  void note_alone(std::int64_t nanoseconds) noexcept;
  // ... on several, of at most `most`, ...
  void note_together(std::int64_t nanoseconds, std::int64_t threads, std::int64_t most) noexcept;
  // ... and on all of them together, where nobody measures it on one.
  void note_spent(std::int64_t nanoseconds) noexcept;

 private:
  struct alignas(64) Entry {
    std::atomic<std::uint64_t> key{0};
    std::atomic<std::uint64_t> samples{0};  // of each level, four bits
    std::atomic<std::uint32_t> runs{0};
    std::atomic<std::uint32_t> alone{0};  // nanoseconds, 0: not known
    std::atomic<std::uint32_t> took[kLevels]{};
  };
  static Entry table_[1 << 12];

  std::uint32_t samples(int level) const noexcept {
    return entry_->samples.load(std::memory_order_relaxed) >> (4 * level) & 15;
  }
  std::int64_t took(int level) const noexcept {
    return entry_->took[level].load(std::memory_order_relaxed);
  }
  int best_level(int top) const noexcept;
  void note(int level, std::int64_t nanoseconds) noexcept;

  Entry* entry_;
  std::int64_t alone_;
  std::uint32_t run_;
  bool known_;
};

// Threads that a loop of so many nanoseconds is worth if they have to be woken, at least 1.
inline std::int64_t threads_asleep(std::int64_t time) noexcept {
  return time < kWorthWaking ? 1 : time / kAsleepShare;
}

}  // namespace functrans
