// How long loops take, and how many threads they are worth: the one place that decides it.
//
// A loop is known by its function, its range, its grain and the caller's estimate. What it takes on
// 1, 2, 4, ... threads is remembered apart (a level each), from its ordinary runs: the first ones
// are on one thread, whatever the estimate was; then its neighbours' levels are tried, and the best
// is kept, with which a neighbour is compared again after twice as many runs each time. Those are the
// fewest threads that take a twentieth more than the fastest at most, since more of them cost others
// something, too: what several threads have written, the next step fetches from their caches, and
// other processes need the CPUs. Short loops are kept on fewer.
// A loop that takes twice or half of its time in two runs in a row on one thread, or in eight on
// several, is measured anew as if it were another one.
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
// Loops of less are run on one thread first, and again at the runs 2 and 4, to measure them.
constexpr std::int64_t kShort = 200000;
// Times of a level before it is compared, and so many times what it costs pass until a neighbour is
// tried again (3 % of their time at first): twice as many after each trial, up to the power of two
// that is `kMostDoubled`, and as few again where another level became the best.
constexpr std::uint32_t kSamples = 2, kTryAgain = 32, kMostDoubled = 7;
// Runs in a row whose threads were late or had no CPU for a while, until the fastest of them counts
// all the same: with more threads than cores there are no others. A trial is repeated at once so
// often, since its first run on more threads wakes some of them.
constexpr std::uint32_t kDoubts = 3;
// Runs in a row that take twice or half of what is known, until all is measured anew: on one thread,
// and on several, which others delay more often and for longer. Of a loop that is often measured
// anew twice as many each time, up to the power that is `kMostRelearned`: one whose data is in caches
// for some runs and in memory for others.
constexpr std::uint32_t kChanged = 2, kChangedTogether = 8, kMostRelearned = 6;
// Percent of the fastest level's time that fewer threads may take more: a tenth for each level left a
// loop on 4 of 16 threads that took 1.2 times as long so. Of short loops, whose times vary the more
// the more threads they have, it is still so much by which half of the threads have to be slower.
constexpr std::int64_t kGain = 5, kGainShort = 10;
// Percent of its time by which another level has to be faster than the one that is in use.
constexpr std::int64_t kStays = 3;
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

// What is remembered of a loop. Others with the same places in the table may replace it.
class LoopCost {
 public:
  // `threads`: how many there are, of which a program is held to `cap`. With each cap it is another
  // loop, as what it takes depends on where those before it have left their data; what it takes on
  // one thread is known from the loop without a cap.
  LoopCost(RangeFn body, std::int64_t n, std::int64_t grain, std::int64_t estimate, int threads,
           int cap) noexcept;

  // Nanoseconds of the whole loop on one thread.
  std::int64_t alone() const noexcept { return alone_; }

  struct Choice {
    std::int64_t now;    // on how many threads this run is to be, if they are awake, ...
    std::int64_t best;   // ... on how many the loop is best, ...
    std::int64_t saved;  // ... and what they save, as far as it is known
  };
  // At most `most` threads. A loop that is `uncertain`, because its threads repeat some of the
  // work, is measured on one however long it is.
  Choice choose(std::int64_t most, bool uncertain, LoopsMay may = LoopsMay::kTry) noexcept;

  // What this run took on one thread, ...
  void note_alone(std::int64_t nanoseconds) noexcept;
  // ... on several, of at most `most`, all of which were there for it if it is `sound`, ...
  void note_together(std::int64_t nanoseconds, std::int64_t threads, std::int64_t most,
                     bool sound) noexcept;
  // ... and on all of them together, where nobody measures it on one.
  void note_spent(std::int64_t nanoseconds) noexcept;

 private:
  struct alignas(64) Entry {
    std::atomic<std::uint64_t> key{0};
    std::atomic<std::uint64_t> samples{0};  // of each level, four bits
    std::atomic<std::uint32_t> runs{0};
    std::atomic<std::uint32_t> alone{0};  // nanoseconds, 0: not known
    std::atomic<std::uint32_t> took[kLevels]{};
    std::atomic<std::uint32_t> level{0};      // the best one of all, ...
    std::atomic<std::uint32_t> trials{0};     // ... trials since it is, ...
    std::atomic<std::uint32_t> next{0};       // ... and the run of the next one
    std::atomic<std::uint32_t> before{0};     // what a level took until runs changed, ...
    std::atomic<std::uint32_t> changed{0};    // ... so many of them by now
    std::atomic<std::uint32_t> relearned{0};  // how often all was measured anew
    std::atomic<std::uint32_t> fastest{0};    // of the doubtful runs of a level, ...
    std::atomic<std::uint32_t> doubts{0};     // ... so many by now
    std::atomic<std::uint32_t> doubted{0};    // levels known by such runs alone, a bit each
    std::atomic<std::uint32_t> retried{0};    // the level that the next run is on: 0 for none
  };
  static Entry table_[1 << 14];  // only pages in use take memory

  std::uint32_t samples(int level) const noexcept {
    return entry_->samples.load(std::memory_order_relaxed) >> (4 * level) & 15;
  }
  std::int64_t took(int level) const noexcept {
    return entry_->took[level].load(std::memory_order_relaxed);
  }
  void set_samples(int level, std::uint64_t count) noexcept {
    const std::uint64_t all = entry_->samples.load(std::memory_order_relaxed);
    entry_->samples.store((all & ~(std::uint64_t{15} << (4 * level))) | count << (4 * level),
                          std::memory_order_relaxed);
  }
  // A loop may be in any of some places that follow one another: two that took turns in one would
  // never be known.
  static constexpr std::uint64_t kPlaces = 4;
  static Entry* first_place(std::uint64_t key) noexcept { return table_ + (key >> 20 & 0x3ffc); }
  // What is remembered under a key, or nullptr.
  static Entry* found(std::uint64_t key) noexcept;
  // A place for it: of the loop with the fewest runs.
  static Entry* replaced(std::uint64_t key) noexcept;
  // Nothing is known any more.
  void forget() noexcept;
  int best_level(int top) const noexcept;
  // Whether a level is tried in this run, and which: -1 for none.
  int trial_level(int best, int top, bool tries_one) noexcept;
  bool is_another_loop(int level, std::int64_t nanoseconds) noexcept;
  void note(int level, std::int64_t nanoseconds) noexcept;

  Entry* entry_;
  int top_;  // the level of all threads
  std::int64_t alone_;
  std::uint32_t run_;
  bool known_;
  bool tries_ = false;  // this run is not on the best level
};

// Threads that a loop of so many nanoseconds is worth if they have to be woken, at least 1.
inline std::int64_t threads_asleep(std::int64_t time) noexcept {
  return time < kWorthWaking ? 1 : time / kAsleepShare;
}

}  // namespace functrans
