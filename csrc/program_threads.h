// On how many threads a program runs best, all its loops together: from the time of its runs.
//
// What one of its loops gains from threads, the next may lose: what several have written it fetches
// from their caches, which no loop's own time shows. So a program is held to fewer threads for some
// runs: to half of those it has, to twice as many, to one, to all. Medians are compared: the fewest
// threads are kept that take less than a twentieth more than the best, and more are taken again
// where they are faster by a twentieth. In the first runs of a trial all loops are on all threads
// that it has, since what a loop takes depends on where the one before has left its data: trying
// numbers by itself it finds the others in its way. In the runs that are compared each keeps to its
// best. A trial that is clearly slower ends early. Where no other number was better the next series
// begins after twice as many runs as the one before, and no sooner than the runs since have taken 50
// times what the trials cost. Nothing is tried while runs differ: in what they do, or by more than
// noise.
#pragma once

#include <atomic>
#include <cstdint>

namespace functrans {

// What loops do in a run: each tries other numbers of threads now and then, or all that are long
// enough learn what they take on as many as they may have, or each keeps to its best.
enum class LoopsMay { kTry, kLearnTogether, kKeep };

class ProgramThreads {
 public:
  // The helpers that were to be awake in its last run.
  std::atomic<int> helpers{0};

  // A run begins where there are so many threads: a number for `cap`, `loops_may` and `end`.
  int begin(int threads) noexcept;
  // The threads that the run is held to; 0 for all.
  int cap(int ticket) const noexcept;
  // How its loops choose in this run.
  LoopsMay loops_may(int ticket) const noexcept;
  // The run took so long. `work` is the same number for runs that do the same, 0 for those without
  // a loop; the time of a run that is not `sound` says nothing.
  void end(int ticket, std::int64_t nanoseconds, std::uint64_t work, bool sound) noexcept;

 private:
  static constexpr int kRuns = 5, kCounts = 4;
  // What is known for a number of threads.
  struct State {
    int threads = 0;
    int top = 0, level = 0;             // levels (thread_costs.h): all threads, and those it has
    int trial = -1, step = 0;           // a level that is tried, and its runs so far
    int known = 0;                      // times in `recent`, ...
    bool follows = false;               // ... which begin with the second run at a level
    unsigned tried = 0, learnt = 0;     // levels of this series, and of all, a bit each
    bool scales = false;                // whether half of the threads were clearly slower
    bool moved = false;                 // whether this series changed the level
    int slow = 0;                       // runs of the trial that were clearly slower
    int series = 0;                     // series since one did
    std::int64_t recent[kRuns]{}, trials[kRuns]{};
    std::int64_t base = 0;              // the median of `recent`, when the trial began
    std::int64_t least = 0;             // of all medians since the first trial of a series
    std::int64_t settled = 0;           // what the level took in the last series
    std::int64_t excess = 0;            // what a series of trials cost
    std::int64_t run = 0, next = 0;     // a trial begins at that run at the earliest
    std::uint64_t work = 0;
  };
  static void note(State& state, std::int64_t nanoseconds) noexcept;
  static void note_trial(State& state, std::int64_t nanoseconds) noexcept;
  static void forget(State& state) noexcept;
  static void end_series(State& state) noexcept;
  static void begin_trial(State& state) noexcept;
  static void end_trial(State& state, std::int64_t taken) noexcept;
  static int learning_runs(const State& state) noexcept;

  std::atomic<bool> taken_{false};   // a run has `states_`
  std::atomic<bool> shared_{false};  // another one began meanwhile
  std::atomic<int> held_{0};         // the threads of the last run
  State states_[kCounts];
  int replaced_ = 0;
};

}  // namespace functrans
