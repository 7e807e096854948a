// The pool of threads that loops of programs and library functions run on.
#pragma once

#include "program_threads.h"

#include <atomic>
#include <cstdint>

namespace functrans {

using RangeFn = void (*)(void* arg, std::int64_t begin, std::int64_t end);
using StopFn = int (*)(void* context);

// Runs `body` on disjoint pieces of [0, n), on this thread and on those of the pool; every piece
// but the last is a multiple of `grain`, and they are handed out as threads ask for them. A negative
// grain: the fewest pieces, one for each thread, since each costs something besides its work. The
// loop is taken to need `estimate` nanoseconds on one thread, until it was measured; 0 where nobody
// knows. On how many threads it runs is decided by thread_costs.h. Serial where the range is one
// piece, inside another parallel_for, and while another thread has the pool. Needs no GIL; the body
// must neither take it nor throw.
void parallel_for(RangeFn body, void* arg, std::int64_t n, std::int64_t grain,
                  std::int64_t estimate = 0) noexcept;

// The same until `stops(context)`, which all threads ask between pieces of some milliseconds and the
// caller while it waits, too: the rest is left undone, and false returned.
bool parallel_for_until(RangeFn body, void* arg, std::int64_t n, std::int64_t grain, StopFn stops,
                        void* context, std::int64_t estimate = 0) noexcept;

// While one lives a program runs on this thread, on as many threads as `ProgramThreads` says. If its
// loops could have saved time in its last run, the threads that they want are woken at once, and
// watch for the next loop between two of them.
class ProgramRun {
 public:
  explicit ProgramRun(ProgramThreads& threads) noexcept;
  ~ProgramRun();
  ProgramRun(const ProgramRun&) = delete;
  ProgramRun& operator=(const ProgramRun&) = delete;
  // Notes a loop that so many helpers make so much shorter, if they are awake.
  void could_save(std::int64_t nanoseconds, int helpers) noexcept;
  // The time of this run says nothing: a loop of it was abandoned, or others have the threads.
  void disturb() noexcept { disturbed_ = true; }
  // Notes that the program ran a loop of so many indices.
  void note_work(std::int64_t n) noexcept { work_ = work_ * 31 + n; }
  LoopsMay loops_may() const noexcept { return loops_may_; }

 private:
  ProgramThreads& threads_;
  ProgramRun* outer_;
  std::int64_t begin_;
  std::int64_t saved_ = 0;  // nanoseconds
  std::uint64_t work_ = 0;
  int most_ = 0, cap_before_ = 0;
  int ticket_ = -1;
  bool counted_ = false, disturbed_ = false;
  LoopsMay loops_may_ = LoopsMay::kTry;
};

// The run of a program that this thread is in, or nullptr.
ProgramRun* program_run() noexcept;

// How many threads a parallel_for may use, the caller included.
int thread_count() noexcept;
// The same without what the program that runs is held to.
int threads_at_most() noexcept;
// Whether a parallel_for of this thread would run on it alone now.
bool loops_run_alone() noexcept;
// At least 1; 0 returns to the number of CPUs that this process may use.
void set_thread_count(int count) noexcept;

// Whose threads loops run on: this pool's, or those of OpenMP, which is loaded then.
enum class ThreadLayer { kOwn, kOpenMP };
ThreadLayer thread_layer() noexcept;
void set_thread_layer(ThreadLayer wanted) noexcept;

// The most threads that loops of this thread use, as one of several programs that run side by side;
// 0 for as many as there are. Returns what held before.
int set_thread_share(int count) noexcept;

bool init_threads();  // once at import; false with an exception set

}  // namespace functrans
