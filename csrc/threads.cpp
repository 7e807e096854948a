// Our own pool, because libgomp's threads spin while they wait (one busy neighbour process then
// stops every barrier for a scheduler's slice) and do not survive a fork.
#include "threads.h"

#include "threads_openmp.h"

#include "common.h"
#include "interrupts.h"
#include "library.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cinttypes>
#include <climits>
#include <cstdio>
#include <cstring>
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
// How long a thread watches memory before it sleeps. A sleeping thread starts 5 us (quiet) to 50 us
// (virtual machine) after it is woken; kernels of one program follow one another in less.
constexpr std::chrono::nanoseconds kSpin{15000};
// How long a thread works, and its caller waits, without asking whether the loop is to end.
constexpr std::int64_t kAskAfter = 8;  // milliseconds
constexpr timespec kWaitAtMost{0, 100000000};
constexpr std::size_t kStackBytes = std::size_t{4} << 20;
// How long a thread keeps to a CPU that it moved to, and how long at least if it is shared, too.
constexpr std::chrono::milliseconds kKeep{100};
constexpr std::chrono::milliseconds kMoveAfter{2};
// A caller wakes this many, each of which wakes two: waking takes a microsecond apiece.
constexpr std::uint32_t kFirstWakes = 4;

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

// Trivially destructible and never destroyed: threads may look at it while the process exits.
struct Pool {
  std::atomic<bool> taken{false};  // a caller has the pool; it alone writes the job
  alignas(64) std::atomic<std::uint32_t> epoch{0};  // counts jobs; threads sleep on it
  std::atomic<int> sleepers{0};
  std::atomic<bool> waking{false};  // threads were woken and none has run since
  alignas(64) std::atomic<std::uint32_t> state{0};
  alignas(64) RangeFn body = nullptr;
  void* arg = nullptr;
  std::int64_t piece = 1;
  std::int64_t grain = 1;
  StopFn stops = nullptr;  // null: the loop is always done to its end
  void* context = nullptr;
  std::atomic<std::uint32_t> helpers{0};  // threads that may join, the caller left out
  int started = 0;                        // these two are written by who has the pool
  bool refused = false;                   // the system gave no more threads
  std::uint32_t unwoken = 0;              // jobs that woke nobody
  std::atomic<int> count{0};  // 0: not yet known
  std::atomic<std::uint64_t> busy[CPU_SETSIZE / 64]{};  // CPUs on which threads of the job run
  Share shares[kMaxThreads];
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

// Watches for `done` for a short while; whether it came.
template <typename Done>
bool spin_until(Done done) {
  const auto end = std::chrono::steady_clock::now() + kSpin;
  do {
    for (int i = 0; i < 16; ++i) {
      if (done()) return true;
      relax();
    }
  } while (std::chrono::steady_clock::now() < end);
  return done();
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
  std::int64_t step;  // a multiple of the grain
  std::int64_t asked = coarse_milliseconds();
};

// `first`: the share to begin with; `count`: how many there are.
void run_shares(std::uint32_t first, std::uint32_t count) {
  Steps steps{pool.body, pool.arg, pool.stops, pool.context, pool.grain};
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
    const auto now = std::chrono::steady_clock::now();
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
  std::chrono::steady_clock::time_point since_;
  cpu_set_t allowed_;
  cpu_set_t own_;
};

// Takes part in the job of the moment; whether there was one that wanted help.
bool help(std::uint32_t number, Place& place) {
  std::uint32_t state = pool.state.load(std::memory_order_acquire);
  std::uint32_t helpers;
  do {
    helpers = pool.helpers.load(std::memory_order_relaxed);
    if ((state & kOpen) == 0 || (state & kWorking) >= helpers) return false;
  } while (!pool.state.compare_exchange_weak(state, state + 1, std::memory_order_acq_rel));
  helpers = pool.helpers.load(std::memory_order_relaxed);  // of the job that was joined
  if (helpers > kFirstWakes && (state & kWorking) + 1 < helpers &&
      pool.sleepers.load(std::memory_order_relaxed) > 0) {
    futex_wake(pool.epoch, 2);
  }
  place.find();
  run_shares(number % (helpers + 1), helpers + 1);
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
  const auto number = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(argument));
  take_short_turns();
  Place place;
  for (;;) {
    const std::uint32_t seen = pool.epoch.load(std::memory_order_acquire);
    auto called = [seen] { return pool.epoch.load(std::memory_order_acquire) != seen; };
    // Who came too late has a busy CPU, perhaps that of the caller, and does not watch on it.
    if (help(number, place) ? spin_until(called) : called()) continue;
    pool.sleepers.fetch_add(1);
    futex_wait(pool.epoch, seen);
    pool.sleepers.fetch_sub(1);
    pool.waking.store(false, std::memory_order_relaxed);
  }
  return nullptr;
}

// Threads up to `wanted`, as far as the system gives them. The pool is taken by the caller.
void start_threads(int wanted) {
  if (pool.started >= wanted || pool.refused) return;
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0) return;
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_attr_setstacksize(&attributes, kStackBytes);
  sigset_t all, before;
  sigfillset(&all);  // signals are for the threads that run Python
  pthread_sigmask(SIG_SETMASK, &all, &before);
  while (pool.started < wanted) {
    pthread_t thread;
    pool.refused = pthread_create(&thread, &attributes, work,
                                  reinterpret_cast<void*>(std::uintptr_t(pool.started) + 1)) != 0;
    if (pool.refused) break;
    pthread_setname_np(thread, "functrans");
    ++pool.started;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_attr_destroy(&attributes);
}

std::atomic<ThreadLayer> layer{ThreadLayer::kOwn};
thread_local int share_of_thread = 0;

// --- how many

// CPUs that a cgroup's quota pays for, rounded up; kMaxThreads where it sets none.
int quota_of(const char* directory) {
  char path[PATH_MAX + 32];
  std::snprintf(path, sizeof path, "%s/cpu.max", directory);
  std::int64_t quota = -1;
  std::int64_t period = -1;
  if (std::FILE* file = std::fopen(path, "re")) {  // version 2: "max 100000" or "150000 100000"
    if (std::fscanf(file, "%" SCNd64 " %" SCNd64, &quota, &period) != 2) quota = -1;
    std::fclose(file);
  } else {
    const char* names[] = {"cpu.cfs_quota_us", "cpu.cfs_period_us"};
    std::int64_t* values[] = {&quota, &period};
    for (int i = 0; i < 2; ++i) {
      std::snprintf(path, sizeof path, "%s/%s", directory, names[i]);
      file = std::fopen(path, "re");
      if (file == nullptr) return kMaxThreads;
      if (std::fscanf(file, "%" SCNd64, values[i]) != 1) quota = -1;
      std::fclose(file);
    }
  }
  if (quota <= 0 || period <= 0) return kMaxThreads;
  return static_cast<int>(std::min<std::int64_t>((quota + period - 1) / period, kMaxThreads));
}

// The least quota on the way from this process's cgroup to the root.
int cgroup_quota() {
  int least = std::min(quota_of("/sys/fs/cgroup"), quota_of("/sys/fs/cgroup/cpu"));
  std::FILE* file = std::fopen("/proc/self/cgroup", "re");
  if (file == nullptr) return least;
  char line[PATH_MAX];
  while (std::fgets(line, sizeof line, file) != nullptr) {
    line[std::strcspn(line, "\n")] = 0;
    char* controllers = std::strchr(line, ':');
    char* path = controllers == nullptr ? nullptr : std::strchr(controllers + 1, ':');
    if (path == nullptr) continue;
    *path++ = 0;
    const bool unified = controllers[1] == 0;
    if (!unified && std::strstr(controllers + 1, "cpu") == nullptr) continue;
    while (char* slash = std::strrchr(path, '/')) {
      if (slash[1] != 0) {
        char directory[PATH_MAX + 64];
        std::snprintf(directory, sizeof directory, "/sys/fs/cgroup%s%s", unified ? "" : "/cpu",
                      path);
        least = std::min(least, quota_of(directory));
      }
      *slash = 0;
    }
  }
  std::fclose(file);
  return least;
}

int available_cpus() {
  int cpus = 0;
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) cpus = CPU_COUNT(&set);
  if (cpus == 0) cpus = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));  // more than 1024 CPUs
  return std::clamp(std::min(cpus, cgroup_quota()), 1, kMaxThreads);
}

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
  if (share_of_thread > 0) return share_of_thread;
  int count = pool.count.load(std::memory_order_relaxed);
  if (count == 0) {
    count = available_cpus();
    pool.count.store(count, std::memory_order_relaxed);
  }
  return count;
}

int set_thread_share(int count) noexcept { return std::exchange(share_of_thread, count); }

void set_thread_count(int count) noexcept {
  pool.count.store(std::clamp(count, 0, kMaxThreads), std::memory_order_relaxed);
}

ThreadLayer thread_layer() noexcept { return layer.load(); }

void set_thread_layer(ThreadLayer wanted) noexcept { layer.store(wanted); }

void parallel_for(RangeFn body, void* arg, std::int64_t n, std::int64_t grain) noexcept {
  parallel_for_until(body, arg, n, grain, nullptr, nullptr);
}

bool parallel_for_until(RangeFn body, void* arg, std::int64_t n, std::int64_t grain, StopFn stops,
                        void* context) noexcept {
  if (n <= 0) return true;
  // who goes on after a loop that was abandoned, as library functions do, does nothing more
  if (stops != nullptr && stops(context) != 0) return false;
  grain = std::max<std::int64_t>(grain, 1);
  const int threads = n <= grain ? 1 : thread_count();
  if (threads == 1 || pool.taken.load(std::memory_order_relaxed) ||
      pool.taken.exchange(true, std::memory_order_acquire)) {
    if (stops != nullptr) return Steps{body, arg, stops, context, grain}.run(0, n);
    body(arg, 0, n);
    return true;
  }
  const std::int64_t grains = (n - 1) / grain + 1;
  const std::int64_t each = (grains - 1) / (threads * kPieces) + 1;
  const std::int64_t pieces = (grains - 1) / each + 1;
  if (layer.load(std::memory_order_relaxed) == ThreadLayer::kOpenMP) {
    const bool whole = openmp_for(body, arg, n, each * grain, grain, threads, stops, context);
    pool.taken.store(false, std::memory_order_release);
    return whole && (stops == nullptr || stops(context) == 0);
  }
  start_threads(threads - 1);
  static thread_local const bool short_turns = (take_short_turns(), true);
  static_cast<void>(short_turns);
  pool.body = body;
  pool.arg = arg;
  pool.piece = each * grain;
  pool.grain = grain;
  pool.stops = stops;
  pool.context = context;
  const auto helpers = static_cast<std::uint32_t>(
      std::min<std::int64_t>(std::min(threads - 1, pool.started), pieces - 1));
  pool.helpers.store(helpers, std::memory_order_relaxed);
  const std::int64_t share = (pieces - 1) / (helpers + 1) + 1;
  for (std::uint32_t k = 0; k <= helpers; ++k) {
    pool.shares[k].next.store(std::min(n, k * share * pool.piece), std::memory_order_relaxed);
    pool.shares[k].end = std::min(n, (k + 1) * share * pool.piece);
  }
  for (std::atomic<std::uint64_t>& cpus : pool.busy) cpus.store(0, std::memory_order_relaxed);
  claim(sched_getcpu());
  pool.state.store(kOpen, std::memory_order_release);
  pool.epoch.fetch_add(1);
  // While other processes have the CPUs, a woken thread runs much later: waking it again for every
  // loop would cost 1 to 4 us each. Now and then it is done, since `waking` may be out of date.
  if (pool.sleepers.load() > 0 &&
      (!pool.waking.exchange(true, std::memory_order_relaxed) || ++pool.unwoken % 8 == 0)) {
    futex_wake(pool.epoch, static_cast<int>(std::min(helpers, kFirstWakes)));
  }
  run_shares(0, helpers + 1);
  // Who has not joined by now is not waited for.
  std::uint32_t state = pool.state.fetch_and(~kOpen, std::memory_order_acq_rel) & ~kOpen;
  if (state != 0 && !spin_until([] { return pool.state.load(std::memory_order_acquire) == 0; })) {
    state = pool.state.fetch_or(kCallerSleeps, std::memory_order_acq_rel) | kCallerSleeps;
    while (state != kCallerSleeps) {
      futex_wait(pool.state, state, stops == nullptr ? nullptr : &kWaitAtMost);
      if (stops != nullptr) stops(context);  // the others ask, too, and learn of it
      state = pool.state.load(std::memory_order_acquire);
    }
  }
  pool.state.store(0, std::memory_order_relaxed);
  pool.taken.store(false, std::memory_order_release);
  return stops == nullptr || stops(context) == 0;
}

bool init_threads() {
  if (pthread_atfork(nullptr, nullptr, reset_after_fork) != 0) {
    PyErr_SetString(PyExc_RuntimeError, "functrans: pthread_atfork failed");
    return false;
  }
  register_library("thread_count", reinterpret_cast<void*>(library_thread_count));
  return true;
}

}  // namespace functrans
