#include "program_threads.h"

#include "thread_costs.h"

#include <algorithm>
#include <utility>

namespace functrans {
namespace {

// Runs before the first trial, in which loops learn their own times: fewer of long programs.
constexpr std::int64_t kSettle = 12, kSettleLong = 4;
constexpr std::int64_t kLong = 10000000;  // nanoseconds
// Runs between series of trials, at least, and as many times what a series cost.
constexpr std::int64_t kAtLeast = 64, kCostTimes = 50;
// Percent of the best time that fewer threads may take, and that more have to get below.
constexpr std::int64_t kFewer = 101, kMore = 96;
// Runs that are compared take so many percent of each other at most, ...
constexpr std::int64_t kSpread = 130;
// ... a trial that takes so many is over, and a program that takes so many is another one.
constexpr std::int64_t kHopeless = 140, kAnother = 200;
// Where half of the threads take so many percent, one thread is not tried: it would take long.
constexpr std::int64_t kScales = 120;

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
  states_[k].next = kSettle;
  return k;
}

int ProgramThreads::cap(int ticket) const noexcept {
  if (ticket < 0) return held_.load(std::memory_order_relaxed);
  const State& state = states_[ticket];
  return static_cast<int>(threads_of(state.trial >= 0 ? state.trial : state.level, state.threads));
}

// Times are of another level or of other work from now on.
void ProgramThreads::forget(State& state) noexcept {
  state.known = 0;
  state.follows = false;
  state.next = std::max(state.next, state.run + kRuns + 1);
}

void ProgramThreads::begin_trial(State& state) noexcept {
  const auto [low, high] = std::minmax_element(state.recent, state.recent + kRuns);
  if (*high * 100 > *low * kSpread) {
    state.next = state.run + 2;
    return;
  }
  for (const int level : {state.level - 1, state.level + 1, 0, state.top}) {
    const bool is_another = level >= 0 && level <= state.top && level != state.level;
    if (!is_another || (state.tried >> level & 1) != 0) continue;
    if (state.scales && level < state.level - 1) continue;
    state.tried |= 1u << level;
    state.trial = level;
    state.step = 0;
    state.base = *low;
    state.least = state.least == 0 ? *low : std::min(state.least, *low);
    return;
  }
  const std::int64_t cost = kCostTimes * state.excess / std::max<std::int64_t>(*low, 1);
  state.next = state.run + std::max(kAtLeast, cost);
  state.tried = 0;
  state.scales = false;
  state.excess = state.least = 0;
}

void ProgramThreads::end_trial(State& state, std::int64_t taken) noexcept {
  const bool better = state.trial < state.level ? taken * 100 <= state.least * kFewer
                                                : taken * 100 <= state.base * kMore;
  state.scales = !better && (state.scales || (state.trial == state.level - 1 &&
                                              taken * 100 > state.base * kScales));
  if (better) {
    state.tried |= 1u << state.level;
    state.level = state.trial;
    state.least = std::min(state.least, taken);
    state.settled = taken;
    std::copy(state.trials, state.trials + kRuns, state.recent);
  } else {
    forget(state);
  }
  state.trial = -1;
}

void ProgramThreads::note_trial(State& state, std::int64_t nanoseconds) noexcept {
  state.excess += std::max<std::int64_t>(nanoseconds - state.base, 0);
  // the first run of a short program moves data between caches
  if (state.step++ == 0) {
    if (state.base > kLong && nanoseconds * 100 > state.base * kHopeless) {
      end_trial(state, nanoseconds);
    }
    return;
  }
  state.trials[state.step - 2] = nanoseconds;
  if (nanoseconds * 100 > state.base * kHopeless) {
    end_trial(state, nanoseconds);
  } else if (state.step > kRuns) {
    end_trial(state, *std::min_element(state.trials, state.trials + kRuns));
  }
}

void ProgramThreads::note(State& state, std::int64_t nanoseconds) noexcept {
  if (!std::exchange(state.follows, true)) return;
  std::copy(state.recent + 1, state.recent + kRuns, state.recent);
  state.recent[kRuns - 1] = nanoseconds;
  if (++state.known < kRuns) return;
  state.known = kRuns;
  const std::int64_t least = *std::min_element(state.recent, state.recent + kRuns);
  if (state.level < state.top && least * 100 > state.settled * kAnother) {
    state.level = state.top;
    state.tried = 0;
    state.scales = false;
    state.excess = state.least = 0;
    state.next = state.run + kSettle;
    forget(state);
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
