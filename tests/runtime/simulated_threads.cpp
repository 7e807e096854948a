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

// The same of a loop that is known by a number and taken to need `estimate` nanoseconds; all of its
// threads are awake.
void simulated_loop(int number, int estimate, const double* times, int threads, int runs, double noise, int seed,
                    int* used) {
  Noise noisy{std::mt19937_64(seed), noise};
  for (int k = 0; k < runs; ++k) {
    LoopCost cost(body, number, 1, estimate, threads);
    used[k] = static_cast<int>(cost.choose(threads, false).now);
    const std::int64_t taken = noisy(times[level_of(used[k])]);
    if (used[k] == 1) {
      cost.note_alone(taken);
    } else {
      cost.note_together(taken, used[k], threads);
      if (cost.alone() >= kShort) cost.note_spent(taken * used[k]);
    }
  }
}

}  // extern "C"
