// Our own pool, because libgomp's threads spin while they wait (one busy neighbour process then
// stops every barrier for a scheduler's slice) and do not survive a fork.
#include "threads.h"

#include "threads_openmp.h"

#include "common.h"
#include "cpu_count.h"
#include "interrupts.h"
#include "library.h"
#include "thread_costs.h"

#include <algorithm>
#include <atomic>
#include <new>
#include <utility>

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace functrans {
namespace {

constexpr int kMaxThreads = 512;
// Pieces per thread: one that loses its CPU to a neighbour holds up a piece, not its whole share.
constexpr std::int64_t kPieces = 12;
// Nanoseconds that a thread watches memory before it sleeps: after a loop, and while a program runs
// whose loops want it awake. Kernels of one program follow one another in less.
constexpr std::int64_t kWatch = 30000;
constexpr std::int64_t kWatchInProgram = 200000;
// ... and at most while others are not yet done with a loop: one that sleeps meanwhile comes late to
// the next loop, by 30 to 80 us on a virtual machine, so that others wait for it and sleep in turn.
constexpr std::int64_t kWatchOthers = 1000000;
// A thread that watches offers its CPU to others so often. Where one takes it, which shows as a gap,
// threads watch as if no program ran for a while.
constexpr std::int64_t kYieldAfter = 4000;
constexpr std::int64_t kGap = 400000;
constexpr std::int64_t kCrowded = 20000000;
// What awake threads have to save a program, all its loops together, to be woken when it begins.
constexpr std::int64_t kWorthWatching = 40000;
// How long a thread works, and its caller waits, without asking whether the loop is to end.
constexpr std::int64_t kAskAfter = 8;  // milliseconds
constexpr timespec kWaitAtMost{0, 100000000};
constexpr std::size_t kStackBytes = std::size_t{4} << 20;
// How long a thread keeps to a CPU that it moved to, and how long at least if it is shared, too.
constexpr std::int64_t kKeep = 100000000;
constexpr std::int64_t kMoveAfter = 2000000;
// A caller wakes this many, each of which wakes two: waking takes two microseconds apiece.
constexpr int kFirstWakes = 4;

constexpr std::uint32_t kEpoch = 1024;  // more than there are helpers
// Of short loops one in so many looks for CPUs of their own, for which helpers write to one line.
constexpr std::uint32_t kShortPlaces = 8;

// `state` of a job: whether threads may still join, whether the caller sleeps, how many work.
constexpr std::uint32_t kOpen = 1u << 31;
constexpr std::uint32_t kCallerSleeps = 1u << 30;
constexpr std::uint32_t kWorking = kCallerSleeps - 1;

// The share of one thread: it begins there, so that loops that follow one another find their data in
// the cache of the same core, and goes on with what is left of the others' shares.
struct alignas(64) Share {
  std::atomic<std::int64_t> next{0};
  std::int64_t end = 0;
};

// Helpers have numbers from 1; a loop is for those up to a number, so that those which are often
// wanted stay awake, with their share of the data in their caches.
struct alignas(64) Helper {
  std::atomic<std::uint32_t> asleep{0};  // 1: it sleeps on this word
};

// Trivially destructible and never destroyed: threads may look at it while the process exits.
struct Pool {
  std::atomic<bool> taken{false};  // a caller has the pool; it alone writes the job
  // counts jobs, in its lower bits up to which number helpers are for the last one: who is not needs
  // to read no more
  alignas(64) std::atomic<std::uint32_t> epoch{0};
  alignas(64) std::atomic<std::uint32_t> state{0};
  alignas(64) RangeFn body = nullptr;
  void* arg = nullptr;
  std::int64_t piece = 1;
  std::int64_t step = 1;
  StopFn stops = nullptr;  // null: the loop is always done to its end
  void* context = nullptr;
  std::atomic<int> helpers{0};           // up to which number they may join
  bool places = false;                   // whether helpers look for a CPU of their own
  alignas(64) std::atomic<std::int64_t> spent{0};  // nanoseconds of the helpers on the job
  std::atomic<int> joined{0};                      // how many they are
  std::atomic<int> started{0};           // these two are written by who has the pool
  bool refused = false;                  // the system gave no more threads
  std::atomic<int> count{0};  // 0: not yet known
  alignas(64) std::atomic<int> programs{0};  // that run and want helpers awake, ...
  std::atomic<int> watching{0};              // ... up to this number
  std::atomic<std::int64_t> ended{0};        // when the last of them was done
  std::atomic<std::int64_t> done{0};         // when the last loop was
  std::atomic<std::int64_t> crowded{0};      // until when others are taken to need the CPUs
  std::atomic<std::uint64_t> busy[CPU_SETSIZE / 64]{};  // CPUs on which threads of the job run
  Share shares[kMaxThreads];
  Helper each[kMaxThreads];
};

Pool pool;

void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t value,
                const timespec* at_most = nullptr) {
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, value, at_most, nullptr, 0);
}

void futex_wake(std::atomic<std::uint32_t>& word, int count) {
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, count, nullptr, nullptr, 0);
}

inline void relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb" ::: "memory");
#endif
}

bool is_crowded(std::int64_t now) {
  return now < pool.crowded.load(std::memory_order_relaxed);
}

// Watches for `done` until `end()`; whether it came. The CPU is offered to others now and then.
template <typename Done, typename End>
bool watch_until(Done done, End end) {
  std::int64_t yielded = clock_nanoseconds(), seen = yielded;
  for (;;) {
    for (int i = 0; i < 16; ++i) {
      if (done()) return true;
      relax();
    }
    const std::int64_t now = clock_nanoseconds();
    if (now - seen > kGap) pool.crowded.store(now + kCrowded, std::memory_order_relaxed);
    if (now >= end()) return done();
    seen = now;
    if (now - yielded < kYieldAfter) continue;
    sched_yield();
    yielded = now;
  }
}

// Runs a loop in steps between which it asks whether to stop: steps grow until one takes
// `kAskAfter`.
struct Steps {
  // Whether [begin, end) was done.
  bool run(std::int64_t begin, std::int64_t end) {
    while (begin < end) {
      const std::int64_t to = step < end - begin ? begin + step : end;
      body(arg, begin, to);
      begin = to;
      const std::int64_t now = coarse_milliseconds();
      if (now - asked < kAskAfter) {
        if (step < end) step *= 2;
        continue;
      }
      asked = now;
      if (stops(context) != 0) return false;
    }
    return true;
  }

  RangeFn body;
  void* arg;
  StopFn stops;
  void* context;
  std::int64_t step;  // a multiple of the grain, or at least the range
  std::int64_t asked = coarse_milliseconds();
};

// `first`: the share to begin with; `count`: how many there are.
void run_shares(std::uint32_t first, std::uint32_t count) {
  Steps steps{pool.body, pool.arg, pool.stops, pool.context, pool.step};
  for (std::uint32_t k = 0, at = first; k < count; ++k, at = at + 1 == count ? 0 : at + 1) {
    Share& share = pool.shares[at];
    for (;;) {
      if (share.next.load(std::memory_order_relaxed) >= share.end) break;
      const std::int64_t begin = share.next.fetch_add(pool.piece, std::memory_order_relaxed);
      if (begin >= share.end) break;
      const std::int64_t end = std::min(share.end, begin + pool.piece);
      if (steps.stops == nullptr) {
        pool.body(pool.arg, begin, end);
      } else if (!steps.run(begin, end)) {
        return;
      }
    }
  }
}

// Notes that a thread of the job runs on a CPU; whether none did.
bool claim(int cpu) {
  if (cpu < 0 || cpu >= CPU_SETSIZE) return true;
  const std::uint64_t bit = std::uint64_t{1} << (cpu % 64);
  return (pool.busy[cpu / 64].fetch_or(bit, std::memory_order_relaxed) & bit) == 0;
}

// Where a helper runs. The scheduler may wake it on the CPU of another thread of its job while others
// are idle, and leaves both there for some milliseconds: a loop of 1.8 ms then takes 2.4, and one of
// 0.5 ms 0.7 to 1.1. Such a thread keeps to an idle CPU for a while, and is free again after that.
class Place {
 public:
  // A CPU of its own for this thread, where there is one.
  void find() {
    const bool alone = claim(sched_getcpu());
    if (alone && !kept_) return;
    const std::int64_t now = clock_nanoseconds();
    if (kept_ && now - since_ >= kKeep) leave();
    if (alone || now - since_ < kMoveAfter) return;
    if (!kept_ && sched_getaffinity(0, sizeof allowed_, &allowed_) != 0) return;
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (!CPU_ISSET(cpu, &allowed_) || !claim(cpu)) continue;
      CPU_ZERO(&own_);
      CPU_SET(cpu, &own_);
      kept_ = sched_setaffinity(0, sizeof own_, &own_) == 0;
      since_ = now;
      return;
    }
  }

 private:
  void leave() {
    cpu_set_t now;
    kept_ = false;
    // unless somebody else has said meanwhile where it may run
    if (sched_getaffinity(0, sizeof now, &now) == 0 && CPU_EQUAL(&now, &own_)) {
      sched_setaffinity(0, sizeof allowed_, &allowed_);
    }
  }

  bool kept_ = false;
  std::int64_t since_ = 0;
  cpu_set_t allowed_;
  cpu_set_t own_;
};

// Wakes a helper if it sleeps. One that was woken counts as awake, even if it has no CPU yet: while
// other processes have the CPUs, waking it again for every loop would cost 1 to 4 us each.
void wake(int number) {
  std::atomic<std::uint32_t>& asleep = pool.each[number].asleep;
  if (asleep.load(std::memory_order_seq_cst) == 0 || asleep.exchange(0) == 0) return;
  futex_wake(asleep, 1);
}

// Wakes the first of the helpers up to a number, and the two that one of them has to wake.
void wake_first(int helpers) {
  for (int k = 1; k <= std::min(helpers, kFirstWakes); ++k) wake(k);
}

void wake_next(int number, int helpers) {
  const int next = kFirstWakes + 2 * number - 1;
  for (int k = next; k <= std::min(helpers, next + 1); ++k) wake(k);
}

// Whether a program runs that wants this helper awake.
bool is_watched(int number) {
  return pool.programs.load(std::memory_order_relaxed) > 0 &&
         number <= pool.watching.load(std::memory_order_relaxed);
}

// Takes part in the job of the moment, whose number is `epoch`; whether it wanted this helper.
bool help(int number, std::uint32_t epoch, Place& place) {
  if (number > static_cast<int>(epoch % kEpoch)) return false;
  std::uint32_t state = pool.state.load(std::memory_order_acquire);
  do {
    if ((state & kOpen) == 0 || number > pool.helpers.load(std::memory_order_relaxed)) return false;
  } while (!pool.state.compare_exchange_weak(state, state + 1, std::memory_order_acq_rel));
  const int helpers = pool.helpers.load(std::memory_order_relaxed);  // of the job that was joined
  if (number <= helpers) {
    wake_next(number, helpers);
    const std::int64_t begin = clock_nanoseconds();
    if (pool.places) place.find();
    run_shares(static_cast<std::uint32_t>(number), static_cast<std::uint32_t>(helpers) + 1);
    pool.spent.fetch_add(clock_nanoseconds() - begin, std::memory_order_relaxed);
    pool.joined.fetch_add(1, std::memory_order_relaxed);
  }
  state = pool.state.fetch_sub(1, std::memory_order_acq_rel) - 1;
  if (state == kCallerSleeps) futex_wake(pool.state, 1);
  return true;
}

// Asks the scheduler (Linux 6.12 and later) for short turns. The share of the CPU stays what it was,
// but beside a busy process a thread no longer waits 3 ms for its next turn with a piece in its
// hands that all the others wait for: measured beside one such process, a loop of 7 ms took twice as
// long, with short turns 1.3 times.
void take_short_turns() {
  struct Attributes {
    std::uint32_t size, policy;
    std::uint64_t flags;
    std::int32_t nice;
    std::uint32_t priority;
    std::uint64_t runtime, deadline, period;
  } attributes{};
#if defined(SYS_sched_getattr) && defined(SYS_sched_setattr)
  constexpr std::uint64_t kTurn = 100000;  // nanoseconds, the shortest that there is
  if (syscall(SYS_sched_getattr, 0, &attributes, sizeof attributes, 0) != 0) return;
  if (attributes.policy != SCHED_OTHER) return;
  attributes.size = sizeof attributes;
  attributes.runtime = kTurn;
  syscall(SYS_sched_setattr, 0, &attributes, 0);
#endif
}

void* work(void* argument) {
  const int number = static_cast<int>(reinterpret_cast<std::intptr_t>(argument));
  std::atomic<std::uint32_t>& asleep = pool.each[number].asleep;
  take_short_turns();
  Place place;
  std::int64_t used = clock_nanoseconds();  // when it helped or was woken
  for (;;) {
    const std::uint32_t seen = pool.epoch.load(std::memory_order_acquire);
    if (help(number, seen, place)) used = clock_nanoseconds();
    const auto called = [seen] { return pool.epoch.load(std::memory_order_acquire) != seen; };
    const bool was_wanted = number <= static_cast<int>(seen % kEpoch);
    const auto end = [number, used, was_wanted] {
      if (is_crowded(used)) return used + kWatch / 2;
      const bool others = was_wanted && pool.state.load(std::memory_order_relaxed) != 0;
      if (others) return used + kWatchOthers;
      if (is_watched(number)) return used + kWatchInProgram;
      const bool was_watched = number <= pool.watching.load(std::memory_order_relaxed);
      std::int64_t last = used;
      if (was_watched) last = std::max(last, pool.ended.load(std::memory_order_relaxed));
      if (was_wanted) last = std::max(last, pool.done.load(std::memory_order_relaxed));
      return kWatch + std::min(last, used + kWatchOthers);
    };
    if (watch_until(called, end)) continue;
    asleep.store(1, std::memory_order_seq_cst);
    if (pool.epoch.load(std::memory_order_seq_cst) != seen) {
      asleep.store(0, std::memory_order_relaxed);
      continue;
    }
    while (asleep.load(std::memory_order_acquire) == 1) futex_wait(asleep, 1);
    used = clock_nanoseconds();
    if (is_watched(number)) wake_next(number, pool.watching.load(std::memory_order_relaxed));
  }
  return nullptr;
}

// Threads up to `wanted`, as far as the system gives them. The pool is taken by the caller.
void start_threads(int wanted) {
  int started = pool.started.load(std::memory_order_relaxed);
  if (started >= wanted || pool.refused) return;
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0) return;
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_attr_setstacksize(&attributes, kStackBytes);
  sigset_t all, before;
  sigfillset(&all);  // signals are for the threads that run Python
  pthread_sigmask(SIG_SETMASK, &all, &before);
  while (started < wanted) {
    pthread_t thread;
    pool.refused = pthread_create(&thread, &attributes, work,
                                  reinterpret_cast<void*>(std::intptr_t{started} + 1)) != 0;
    if (pool.refused) break;
    pthread_setname_np(thread, "functrans");
    pool.started.store(++started, std::memory_order_relaxed);
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_attr_destroy(&attributes);
}

std::atomic<ThreadLayer> layer{ThreadLayer::kOwn};
thread_local int share_of_thread = 0;
thread_local int cap_of_run = 0;  // 0: none

// In the child of a fork: none of our threads came along, and who had the pool did not either.
// OpenMP's threads did not come either, and it would wait for them.
void reset_after_fork() {
  layer.store(ThreadLayer::kOwn);
  const int count = pool.count.load();
  new (&pool) Pool();
  pool.count.store(count);
}

std::int64_t library_thread_count() { return thread_count(); }

}  // namespace

int thread_count() noexcept {
  const int most = threads_at_most();
  return cap_of_run > 0 && cap_of_run < most ? cap_of_run : most;
}

int threads_at_most() noexcept {
  if (share_of_thread > 0) return share_of_thread;
  int count = pool.count.load(std::memory_order_relaxed);
  if (count == 0) {
    count = available_cpus(kMaxThreads);
    pool.count.store(count, std::memory_order_relaxed);
  }
  return count;
}

bool loops_run_alone() noexcept {
  return thread_count() == 1 || pool.taken.load(std::memory_order_relaxed);
}

int set_thread_share(int count) noexcept { return std::exchange(share_of_thread, count); }

void set_thread_count(int count) noexcept {
  pool.count.store(std::clamp(count, 0, kMaxThreads), std::memory_order_relaxed);
}

ThreadLayer thread_layer() noexcept { return layer.load(); }

void set_thread_layer(ThreadLayer wanted) noexcept { layer.store(wanted); }

namespace {

thread_local ProgramRun* running = nullptr;

// The helpers, from the first on, that are awake, of so many.
int awake_among(std::int64_t helpers) {
  const int most = static_cast<int>(
      std::min<std::int64_t>(helpers, pool.started.load(std::memory_order_relaxed)));
  int awake = 0;
  while (awake < most && pool.each[awake + 1].asleep.load(std::memory_order_relaxed) == 0) ++awake;
  return awake;
}

// A loop on this thread, at first `step` indices at a time; whether it was done to its end.
bool run_alone(RangeFn body, void* arg, std::int64_t n, std::int64_t step, StopFn stops,
               void* context) {
  if (stops != nullptr) return Steps{body, arg, stops, context, step}.run(0, n);
  body(arg, 0, n);
  return true;
}

// The job of the pool, which the caller has: on this thread and so many helpers, in pieces each of
// which is begun with `step` indices.
bool run_on_pool(RangeFn body, void* arg, std::int64_t n, std::int64_t step, std::int64_t piece,
                 int helpers, bool is_long, StopFn stops, void* context) {
  static thread_local const bool short_turns = (take_short_turns(), true);
  static_cast<void>(short_turns);
  pool.body = body;
  pool.arg = arg;
  pool.piece = piece;
  pool.step = step;
  pool.stops = stops;
  pool.context = context;
  pool.helpers.store(helpers, std::memory_order_relaxed);
  pool.spent.store(0, std::memory_order_relaxed);
  pool.joined.store(0, std::memory_order_relaxed);
  const std::int64_t pieces = (n - 1) / pool.piece + 1;
  const std::int64_t share = (pieces - 1) / (helpers + 1) + 1;
  for (int k = 0; k <= helpers; ++k) {
    pool.shares[k].next.store(std::min(n, k * share * pool.piece), std::memory_order_relaxed);
    pool.shares[k].end = std::min(n, (k + 1) * share * pool.piece);
  }
  const std::uint32_t last = pool.epoch.load(std::memory_order_relaxed);
  const std::uint32_t epoch = last - last % kEpoch + kEpoch + static_cast<std::uint32_t>(helpers);
  pool.places = is_long || epoch / kEpoch % kShortPlaces == 0;
  if (pool.places) {
    for (std::atomic<std::uint64_t>& cpus : pool.busy) cpus.store(0, std::memory_order_relaxed);
    claim(sched_getcpu());
  }
  pool.state.store(kOpen, std::memory_order_release);
  pool.epoch.store(epoch);
  wake_first(helpers);
  const std::int64_t begin = clock_nanoseconds();
  run_shares(0, static_cast<std::uint32_t>(helpers) + 1);
  const std::int64_t end = clock_nanoseconds();
  // Who has not joined by now is not waited for.
  std::uint32_t state = pool.state.fetch_and(~kOpen, std::memory_order_acq_rel) & ~kOpen;
  const std::int64_t waits = std::clamp(end - begin, kWatch, kWatchInProgram);
  if (state != 0 && !watch_until([] { return pool.state.load(std::memory_order_acquire) == 0; },
                                 [=] { return end + (is_crowded(end) ? kWatch : waits); })) {
    state = pool.state.fetch_or(kCallerSleeps, std::memory_order_acq_rel) | kCallerSleeps;
    while (state != kCallerSleeps) {
      futex_wait(pool.state, state, stops == nullptr ? nullptr : &kWaitAtMost);
      if (stops != nullptr) stops(context);  // the others ask, too, and learn of it
      state = pool.state.load(std::memory_order_acquire);
    }
  }
  const std::int64_t now = clock_nanoseconds();
  // a helper that holds a piece for so much longer has lost its CPU
  if (now - end > kGap + (end - begin)) {
    pool.crowded.store(now + kCrowded, std::memory_order_relaxed);
  }
  pool.done.store(now, std::memory_order_relaxed);
  pool.state.store(0, std::memory_order_relaxed);
  pool.spent.fetch_add(end - begin, std::memory_order_relaxed);
  return stops == nullptr || stops(context) == 0;
}

}  // namespace

void parallel_for(RangeFn body, void* arg, std::int64_t n, std::int64_t grain,
                  std::int64_t estimate) noexcept {
  parallel_for_until(body, arg, n, grain, nullptr, nullptr, estimate);
}

bool parallel_for_until(RangeFn body, void* arg, std::int64_t n, std::int64_t grain, StopFn stops,
                        void* context, std::int64_t estimate) noexcept {
  if (n <= 0) return true;
  // who goes on after a loop that was abandoned, as library functions do, does nothing more
  if (stops != nullptr && stops(context) != 0) return false;
  const bool few = grain < 0;
  grain = std::max<std::int64_t>(few ? -grain : grain, 1);
  const std::int64_t grains = (n - 1) / grain + 1;
  const std::int64_t most = std::min<std::int64_t>(grains, thread_count());
  // within another loop threads are busy, and times are not those of the loop alone
  if (most == 1 || loops_run_alone()) {
    return run_alone(body, arg, n, few ? n : grain, stops, context);
  }
  LoopCost cost(body, n, grain, estimate > 0 ? estimate : grains * kUnknownPiece,
                threads_at_most(), thread_count());
  const std::int64_t time = cost.alone(), begin = clock_nanoseconds();
  const bool crowded = is_crowded(begin);
  const LoopsMay may = running == nullptr ? LoopsMay::kTry : running->loops_may();
  const auto [wanted, best, saved] = cost.choose(most, few, may);
  if (running != nullptr && std::max(best, wanted) > 1) {
    running->could_save(saved, static_cast<int>(std::max(best, wanted)) - 1);
  }
  std::int64_t threads = 1;
  if (wanted > 1 && !(crowded && time < kWorthCrowding)) {
    threads = std::max<std::int64_t>(1 + (crowded ? 0 : awake_among(wanted - 1)),
                                     std::min(wanted, threads_asleep(time)));
  }
  const std::int64_t step = few || time < kUnasked ? n : grain;
  const bool takes = threads > 1;
  if (takes && pool.taken.exchange(true, std::memory_order_acquire)) {
    if (running != nullptr) running->disturb();
    return run_alone(body, arg, n, step, stops, context);
  }
  if (threads > 1) start_threads(static_cast<int>(threads) - 1);
  const bool openmp = layer.load(std::memory_order_relaxed) == ThreadLayer::kOpenMP;
  if (!openmp) threads = std::min<std::int64_t>(threads, pool.started.load() + 1);
  std::int64_t pieces = threads;
  if (!few) pieces = std::clamp(time / kPieceTime, threads, threads * kPieces);
  const std::int64_t each = (grains - 1) / pieces + 1;
  const bool awake = openmp || awake_among(threads - 1) + 1 == threads;
  // a trial with more threads than the loop is usually on wakes some, and is repeated
  const bool usual = threads <= best || awake_among(best - 1) + 1 < best;
  bool whole;
  if (threads == 1) {
    whole = run_alone(body, arg, n, step, stops, context);
  } else if (openmp) {
    whole = openmp_for(body, arg, n, each * grain, grain, static_cast<int>(threads), stops,
                       context) && (stops == nullptr || stops(context) == 0);
  } else {
    whole = run_on_pool(body, arg, n, step, each * grain, static_cast<int>(threads) - 1,
                        time >= kShort, stops, context);
  }
  if (whole) {
    const std::int64_t taken = clock_nanoseconds() - begin;
    const bool is_long = time >= kShort && !few;
    if (threads == 1) cost.note_alone(taken);
    if (threads > 1 && is_long) cost.note_spent(openmp ? taken * threads : pool.spent.load());
    const bool all = openmp || 2 * pool.joined.load() >= threads - 1;
    if (threads > 1) {
      cost.note_together(taken, threads, most,
                         (awake || few || (is_long && usual)) && !crowded && all);
    }
  } else if (running != nullptr) {
    running->disturb();
  }
  if (takes) pool.taken.store(false, std::memory_order_release);
  return whole;
}

ProgramRun::ProgramRun(ProgramThreads& threads) noexcept
    : threads_(threads), outer_(running), begin_(clock_nanoseconds()), cap_before_(cap_of_run) {
  running = this;
  if (outer_ == nullptr) {
    ticket_ = threads.begin(threads_at_most());
    cap_of_run = threads.cap(ticket_);
    loops_may_ = threads.loops_may(ticket_);
  } else {
    loops_may_ = outer_->loops_may_;
  }
  const int helpers = std::min(threads.helpers.load(std::memory_order_relaxed), thread_count() - 1);
  if (helpers <= 0 || layer.load(std::memory_order_relaxed) != ThreadLayer::kOwn ||
      is_crowded(begin_)) {
    return;
  }
  if (pool.started.load(std::memory_order_relaxed) < helpers && !pool.taken.exchange(true)) {
    start_threads(helpers);
    pool.taken.store(false, std::memory_order_release);
  }
  pool.watching.store(helpers, std::memory_order_relaxed);
  pool.programs.fetch_add(1);
  counted_ = true;
  wake_first(std::min(helpers, pool.started.load(std::memory_order_relaxed)));
}

ProgramRun::~ProgramRun() {
  running = outer_;
  const std::int64_t now = clock_nanoseconds();
  if (outer_ == nullptr) {
    cap_of_run = cap_before_;
    threads_.end(ticket_, now - begin_, work_,
                 !disturbed_ && !is_crowded(begin_) && !is_crowded(now));
  }
  threads_.helpers.store(saved_ >= kWorthWatching ? most_ : 0, std::memory_order_relaxed);
  if (!counted_) return;
  pool.ended.store(now, std::memory_order_relaxed);
  if (pool.programs.fetch_sub(1) <= 0) pool.programs.store(0);  // after a fork
}

void ProgramRun::could_save(std::int64_t nanoseconds, int helpers) noexcept {
  if (nanoseconds <= 0) return;
  saved_ += nanoseconds;
  most_ = std::max(most_, helpers);
}

ProgramRun* program_run() noexcept { return running; }

bool init_threads() {
  if (pthread_atfork(nullptr, nullptr, reset_after_fork) != 0) {
    PyErr_SetString(PyExc_RuntimeError, "functrans: pthread_atfork failed");
    return false;
  }
  register_library("thread_count", reinterpret_cast<void*>(library_thread_count));
  return true;
}

}  // namespace functrans
