// On how many threads a program runs best, all its loops together: from the time of its runs.
//
// What one of its loops gains from threads, the next may lose: what several have written it fetches
// from their caches, which no loop's own time shows. So a program is held to fewer threads for some
// runs: to half of those it has, to twice as many, to one, to all. Where fewer are no slower it
// stays with them, where more are faster with those. A trial that is clearly slower ends at once,
// and where all were slower the next one waits until the runs since have taken 50 times what the
// trials cost. Nothing is tried while runs differ: in what they do, or by more than noise.
#pragma once

#include <atomic>
#include <cstdint>

namespace functrans {

class ProgramThreads {
 public:
  // The helpers that were to be awake in its last run.
  std::atomic<int> helpers{0};

  // A run begins where there are so many threads: a number for `cap` and `end`.
  int begin(int threads) noexcept;
  // The threads that the run is held to; 0 for all.
  int cap(int ticket) const noexcept;
  // The run took so long. `work` is the same number for runs that do the same, 0 for those without
  // a loop; the time of a run that is not `sound` says nothing.
  void end(int ticket, std::int64_t nanoseconds, std::uint64_t work, bool sound) noexcept;

 private:
  static constexpr int kRuns = 3, kCounts = 4;
  // What is known for a number of threads.
  struct State {
    int threads = 0;
    int top = 0, level = 0;             // levels (thread_costs.h): all threads, and those it has
    int trial = -1, step = 0;           // a level that is tried, and its runs so far
    int known = 0;                      // times in `recent`, ...
    bool follows = false;               // ... which begin with the second run at a level
    unsigned tried = 0;                 // levels, a bit each
    bool scales = false;                // whether half of the threads were clearly slower
    std::int64_t recent[kRuns]{}, trials[kRuns]{};
    std::int64_t base = 0;              // of `recent`, when the trial began
    std::int64_t least = 0;             // of all since the first trial of a series
    std::int64_t settled = 0;           // what the level took when it was chosen
    std::int64_t excess = 0;            // what a series of trials cost
    std::int64_t run = 0, next = 0;     // a trial begins at that run at the earliest
    std::uint64_t work = 0;
  };
  static void note(State& state, std::int64_t nanoseconds) noexcept;
  static void note_trial(State& state, std::int64_t nanoseconds) noexcept;
  static void forget(State& state) noexcept;
  static void begin_trial(State& state) noexcept;
  static void end_trial(State& state, std::int64_t taken) noexcept;

  std::atomic<bool> taken_{false};   // a run has `states_`
  std::atomic<bool> shared_{false};  // another one began meanwhile
  std::atomic<int> held_{0};         // the threads of the last run
  State states_[kCounts];
  int replaced_ = 0;
};

}  // namespace functrans
