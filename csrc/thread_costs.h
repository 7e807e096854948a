// How long loops take, and how many threads they are worth: the one place that decides it.
//
// A loop is known by its function, its range, its grain and the caller's estimate. What it takes on
// one thread is remembered, so that from its second run on the decision is about measured time,
// whatever the estimate was; and what it takes on several, so that a loop which gains nothing from
// them, because its data move between caches, is left to one. Constants are from 16 cores of a Xeon
// (Sapphire Rapids, a virtual machine), us of a loop of so much work on 1, 2, 4, 8 and 16 threads:
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
// A loop that several threads did not make faster tries them again after so many runs, which are
// fewer at first: the threads may just have been started. Faster is by a third: what several threads
// have written, steps that follow on one fetch from their caches, which no loop's time shows.
constexpr std::uint32_t kTryAgain = 64, kTryAgainAtFirst = 16;
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

// What is remembered of a loop. Another one with the same place in the table replaces it.
class LoopCost {
 public:
  LoopCost(RangeFn body, std::int64_t n, std::int64_t grain, std::int64_t estimate) noexcept;

  // Nanoseconds of the whole loop on one thread.
  std::int64_t alone() const noexcept { return alone_; }
  // What several threads save, once it was measured: 0 or less where they are no faster.
  std::int64_t saved() const noexcept {
    return !known_ ? 0 : together_ == 0 ? alone_ / 2 : alone_ - together_;
  }
  // Whether this run is to be on one thread, whatever the loop is worth. One that is `uncertain`,
  // because its threads repeat some of the work, is measured however long it is.
  bool wants_one(bool uncertain) const noexcept;

  // What this run took on one thread (or that and all others' time, where that is not known), ...
  void note_alone(std::int64_t nanoseconds) noexcept;
  // ... and on several that were awake.
  void note_together(std::int64_t nanoseconds) noexcept;

 private:
  struct Entry {
    std::atomic<std::uint64_t> key{0};
    std::atomic<std::int64_t> alone{0};
    std::atomic<std::int64_t> together{0};  // 0: not known
    std::atomic<std::uint32_t> runs{0};
  };
  static Entry table_[1 << 12];

  bool tries_again() const noexcept {
    const std::uint32_t often = run_ < 4 * kTryAgain ? kTryAgainAtFirst : kTryAgain;
    return run_ % often == often - 1;
  }

  Entry* entry_;
  std::int64_t alone_;
  std::int64_t together_ = 0;
  std::uint32_t run_ = 1;
  bool known_;
};

// Threads that a loop of so many nanoseconds is worth, at least 1: if they are awake, ...
inline std::int64_t threads_awake(std::int64_t time) noexcept {
  return time < 2 * kAwakeShare ? 1 : time / kAwakeShare;
}
// ... and if they have to be woken.
inline std::int64_t threads_asleep(std::int64_t time) noexcept {
  return time < kWorthWaking ? 1 : time / kAsleepShare;
}

}  // namespace functrans
