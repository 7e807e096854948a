#include "program_threads.h"

#include "thread_costs.h"

#include <algorithm>
#include <utility>

namespace functrans {
namespace {

// Runs before the first trial, in which loops learn their own times: fewer of long programs, ...
constexpr std::int64_t kSettle = 12, kSettleLong = 4;
// ... of which some from this one on are on all threads, ...
constexpr std::int64_t kTogether = 5;
// ... and those of a trial before times count: at a level where loops have not been, at one where
// they have, when helpers wake and data moves between caches.
constexpr int kLearn = 3, kMove = 2;
constexpr std::int64_t kLong = 10000000;  // nanoseconds
// Runs whose median is compared, of short and of long programs.
constexpr int kShortRuns = 5, kLongRuns = 3;
// Runs between series of trials, twice as many after each one, up to the power of two that is
// `kMostSeries`; and as many times what a series cost.
constexpr std::int64_t kAtLeast = 64, kCostTimes = 50;
constexpr int kMostSeries = 6;
// Percent of the best time that fewer threads may take, and that more have to get below.
constexpr std::int64_t kFewer = 104, kMore = 95;
// Runs that are compared take so many percent of each other at most, ...
constexpr std::int64_t kSpread = 130;
// ... a trial that takes so many is over, and a program that takes so many is another one.
constexpr std::int64_t kHopeless = 140, kAnother = 200;
// Where half of the threads take so many percent, one thread is not tried: it would take long.
constexpr std::int64_t kScales = 120;

int runs_compared(std::int64_t nanoseconds) noexcept {
  return nanoseconds > kLong ? kLongRuns : kShortRuns;
}

// Sorts so many of the times; the one in the middle. By a heap: GCC 12 takes the longer runs that
// std::sort has a case for to be read here.
std::int64_t median(std::int64_t* times, int count) noexcept {
  std::partial_sort(times, times + count, times + count);
  return times[count / 2];
}

}  // namespace

int ProgramThreads::begin(int threads) noexcept {
  if (threads == 1) return -1;
  if (taken_.exchange(true, std::memory_order_acquire)) {
    shared_.store(true, std::memory_order_relaxed);
    return -1;
  }
  for (int k = 0; k < kCounts; ++k) {
    if (states_[k].threads == threads) return k;
  }
  const int k = replaced_++ % kCounts;
  states_[k] = State{};
  states_[k].threads = threads;
  states_[k].top = states_[k].level = level_of(threads);
  states_[k].learnt = 1u << states_[k].top;
  states_[k].next = kSettle;
  return k;
}

int ProgramThreads::cap(int ticket) const noexcept {
  if (ticket < 0) return held_.load(std::memory_order_relaxed);
  const State& state = states_[ticket];
  return static_cast<int>(threads_of(state.trial >= 0 ? state.trial : state.level, state.threads));
}

int ProgramThreads::learning_runs(const State& state) noexcept {
  const bool known = state.trial <= 0 || (state.learnt >> state.trial & 1) != 0;
  return known || state.base > kLong ? kMove : kLearn;
}

LoopsMay ProgramThreads::loops_may(int ticket) const noexcept {
  if (ticket < 0) return LoopsMay::kTry;
  const State& state = states_[ticket];
  if (state.trial < 0) {
    const bool first = state.next == kSettle && state.run >= kTogether &&
                       state.run < kTogether + kLearn;
    return first ? LoopsMay::kLearnTogether : LoopsMay::kTry;
  }
  return state.step < learning_runs(state) ? LoopsMay::kLearnTogether : LoopsMay::kKeep;
}

// Times are of another level or of other work from now on.
void ProgramThreads::forget(State& state) noexcept {
  state.known = 0;
  state.follows = false;
}

void ProgramThreads::end_series(State& state) noexcept {
  state.tried = 0;
  state.scales = state.moved = false;
  state.excess = state.least = 0;
}

void ProgramThreads::begin_trial(State& state) noexcept {
  std::int64_t times[kRuns] = {};
  std::copy(state.recent, state.recent + state.known, times);
  const std::int64_t middle = median(times, state.known);
  // one of five may be an accident
  if (times[state.known - 1 - state.known / kShortRuns] * 100 > times[0] * kSpread) {
    state.next = state.run + 2;
    return;
  }
  state.settled = middle;
  for (const int level : {state.level - 1, state.level + 1, 0, state.top}) {
    const bool is_another = level >= 0 && level <= state.top && level != state.level;
    if (!is_another || (state.tried >> level & 1) != 0) continue;
    if (state.scales && level < state.level - 1) continue;
    state.tried |= 1u << level;
    state.trial = level;
    state.step = state.slow = 0;
    state.base = middle;
    state.least = state.least == 0 ? middle : std::min(state.least, middle);
    return;
  }
  const std::int64_t cost = kCostTimes * state.excess / std::max<std::int64_t>(middle, 1);
  state.series = state.moved ? 0 : state.series + 1;
  const int doubled = std::clamp(state.series - 1, 0, kMostSeries);
  state.next = state.run + std::max(kAtLeast << doubled, cost);
  end_series(state);
}

void ProgramThreads::end_trial(State& state, std::int64_t taken) noexcept {
  const bool better = state.trial < state.level ? taken * 100 <= state.least * kFewer
                                                : taken * 100 <= state.base * kMore;
  state.scales = !better && (state.scales || (state.trial == state.level - 1 &&
                                              taken * 100 > state.base * kScales));
  if (better) {
    state.tried |= 1u << state.level;
    state.level = state.trial;
    state.moved = true;
    state.least = std::min(state.least, taken);
    state.settled = taken;
    state.known = runs_compared(state.base);
    std::copy(state.trials, state.trials + state.known, state.recent);
    state.next = state.run;
  } else {
    forget(state);
  }
  state.trial = -1;
}

void ProgramThreads::note_trial(State& state, std::int64_t nanoseconds) noexcept {
  state.excess += std::max<std::int64_t>(nanoseconds - state.base, 0);
  const bool is_long = state.base > kLong, hopeless = nanoseconds * 100 > state.base * kHopeless;
  const int learns = learning_runs(state), compared = state.step++ - learns;
  if (compared < 0) {
    if (is_long && hopeless) end_trial(state, nanoseconds);
    return;
  }
  state.learnt |= 1u << state.trial;
  state.trials[compared] = nanoseconds;
  state.slow += hopeless;
  if (state.slow > (is_long ? 0 : 1)) {
    end_trial(state, nanoseconds);
  } else if (compared + 1 == runs_compared(state.base)) {
    std::int64_t times[kRuns];
    std::copy(state.trials, state.trials + compared + 1, times);
    end_trial(state, median(times, compared + 1));
  }
}

void ProgramThreads::note(State& state, std::int64_t nanoseconds) noexcept {
  if (!std::exchange(state.follows, true)) return;
  const int runs = runs_compared(nanoseconds);
  if (state.known >= runs) {
    std::copy(state.recent + state.known - runs + 1, state.recent + state.known, state.recent);
    state.known = runs - 1;
  }
  state.recent[state.known++] = nanoseconds;
  if (state.known < runs) return;
  std::int64_t times[kRuns] = {};
  std::copy(state.recent, state.recent + runs, times);
  const std::int64_t middle = median(times, runs);
  const bool grew = middle * 100 > state.settled * kAnother;
  if (state.settled > 0 && (grew || middle * kAnother < state.settled * 100)) {
    if (grew && state.level < state.top) {
      state.level = state.top;
      forget(state);
    }
    state.settled = middle;
    state.series = 0;
    state.next = state.run + kSettle;
    end_series(state);
  } else if (state.run >= state.next) {
    begin_trial(state);
  }
}

void ProgramThreads::end(int ticket, std::int64_t nanoseconds, std::uint64_t work,
                         bool sound) noexcept {
  if (ticket < 0) return;
  State& state = states_[ticket];
  sound = !shared_.exchange(false) && sound;
  if (++state.run == kSettleLong && nanoseconds > kLong) state.next = state.run;
  if (!sound || work != state.work) {
    state.work = work;
    if (state.trial >= 0) state.tried &= ~(1u << state.trial);
    state.trial = -1;
    forget(state);
  } else if (state.trial >= 0) {
    note_trial(state, nanoseconds);
  } else if (work != 0) {
    note(state, nanoseconds);
  }
  held_.store(static_cast<int>(threads_of(state.level, state.threads)), std::memory_order_relaxed);
  taken_.store(false, std::memory_order_release);
}

}  // namespace functrans
