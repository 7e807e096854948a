// Programs and loops whose times are given by number of threads, for the laws of the choice.
#include "../../csrc/program_threads.cpp"
#include "../../csrc/thread_costs.cpp"

#include <random>

using namespace functrans;

namespace {

void body(void*, std::int64_t, std::int64_t) {}

// Noise as machines have it: nothing hastens a run, some are delayed by more.
struct Noise {
  std::mt19937_64 random;
  double scale;
  std::int64_t operator()(double nanoseconds) {
    return static_cast<std::int64_t>(
        nanoseconds * (1 + scale * std::exponential_distribution<double>()(random)));
  }
};

}  // namespace

extern "C" {

// Runs a program `runs` times where a run on level k takes `times[k]`; the threads of each are in
// `used`. The work of every `varies`-th run is another one, if that is not 0.
void simulated_program(void* program, const double* times, int threads, int runs, int varies,
                       double noise, int seed, int* used) {
  auto& chosen = *static_cast<ProgramThreads*>(program);
  Noise noisy{std::mt19937_64(seed), noise};
  for (int k = 0; k < runs; ++k) {
    const int ticket = chosen.begin(threads);
    used[k] = chosen.cap(ticket) > 0 ? chosen.cap(ticket) : threads;
    const std::uint64_t work = varies != 0 && k % varies == 0 ? 1 : 2;
    chosen.end(ticket, noisy(times[level_of(used[k])]), work, true);
  }
}

void* new_program() { return new ProgramThreads(); }
void delete_program(void* program) { delete static_cast<ProgramThreads*>(program); }

// The same of a loop that is known by a number and taken to need `estimate` nanoseconds. Its threads
// are awake, or late in all of its runs where it is not `sound`.
void simulated_loop(int number, int estimate, const double* times, int threads, int runs, int sound,
                    double noise, int seed, int* used) {
  Noise noisy{std::mt19937_64(seed), noise};
  for (int k = 0; k < runs; ++k) {
    LoopCost cost(body, number, 1, estimate, threads, threads);
    const std::int64_t alone = cost.alone();
    used[k] = static_cast<int>(cost.choose(threads, false).now);
    const std::int64_t taken = noisy(times[level_of(used[k])]);
    if (used[k] == 1) {
      cost.note_alone(taken);
    } else {
      if (alone >= kShort) cost.note_spent(taken * used[k]);
      cost.note_together(taken, used[k], threads, sound != 0);
    }
  }
}

// The same of one whose threads sleep after a run without them, and take `wake` more to come; of its
// runs the first `slow` on all threads take twice as long.
void simulated_waking_loop(int number, const double* times, double wake, int threads, int slow,
                           int runs, double noise, int seed, int* used) {
  Noise noisy{std::mt19937_64(seed), noise};
  int before = threads;
  for (int k = 0; k < runs; ++k) {
    LoopCost cost(body, number, 1, 1000000, threads, threads);
    const LoopCost::Choice choice = cost.choose(threads, false);
    used[k] = static_cast<int>(choice.now);
    const bool asleep = used[k] > before, late = used[k] == threads && slow-- > 0;
    before = used[k];
    const double needs = times[level_of(used[k])] * (late ? 2 : 1) + (asleep ? wake : 0);
    if (used[k] == 1) {
      cost.note_alone(noisy(needs));
    } else {
      cost.note_together(noisy(needs), used[k], threads, !asleep);
    }
  }
}

// A program of so many loops, known by numbers from `first` on, each of which takes `times[k]` on
// level k and `move` more after a loop on another one; the time of each run without noise is in
// `taken`.
void simulated_loops(void* program, int first, int loops, const double* times, double move,
                     int threads, int runs, double noise, int seed, double* taken) {
  auto& chosen = *static_cast<ProgramThreads*>(program);
  Noise noisy{std::mt19937_64(seed), noise};
  for (int k = 0; k < runs; ++k) {
    const int ticket = chosen.begin(threads), cap = chosen.cap(ticket);
    double measured = taken[k] = 0;
    int last = 0;
    for (int loop = first; loop < first + loops; ++loop) {
      if (cap == 1) {
        taken[k] += times[0];
        measured += noisy(times[0]);
        continue;
      }
      LoopCost cost(body, loop, 1, 100000, threads, cap);
      const int used = static_cast<int>(cost.choose(cap, false, chosen.loops_may(ticket)).now);
      const int level = level_of(used);
      const double needs = times[level] + (level == last ? 0 : move);
      last = level;
      const std::int64_t took = noisy(needs);
      taken[k] += needs;
      measured += took;
      if (used == 1) {
        cost.note_alone(took);
      } else {
        cost.note_together(took, used, cap, true);
      }
    }
    chosen.end(ticket, static_cast<std::int64_t>(measured), 1, true);
  }
}

}  // extern "C"
