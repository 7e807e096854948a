#include "rendezvous.h"

#include "collective_reduction.h"

#include <chrono>
#include <cstring>

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace functrans {
namespace {

using i64 = std::int64_t;

// Up to here all members reduce all elements; of larger arrays each reduces a part, which others
// copy: one barrier more.
constexpr i64 kSmallBytes = 32768;
constexpr std::chrono::nanoseconds kSpin{15000};

void futex(std::atomic<std::uint32_t>& word, int operation, std::uint32_t value) {
  syscall(SYS_futex, &word, operation, value, nullptr, nullptr, 0);
}

inline void relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb" ::: "memory");
#endif
}

// CPUs of this process: members that are more than them do not watch memory, they sleep at once.
int cpus() {
  static const int found = [] {
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
  }();
  return found;
}

}  // namespace

bool Rendezvous::barrier(int) { return barrier(); }

bool Rendezvous::barrier() {
  // The round first: who breaks up after that begins a new one.
  const std::uint32_t round = round_.load();
  if (broken_.load()) return false;
  const auto all = static_cast<std::uint32_t>(members_);
  const std::uint32_t arrived = arrived_.fetch_add(1) + 1;
  const std::uint32_t left = left_.load();
  if (left > 0 && arrived + left >= all) {
    abort();
    return false;
  }
  if (arrived == all) {
    arrived_.store(0, std::memory_order_relaxed);
    round_.fetch_add(1, std::memory_order_acq_rel);
    if (members_ > 1) futex(round_, FUTEX_WAKE_PRIVATE, members_);
    return !broken_.load(std::memory_order_acquire);
  }
  if (members_ <= cpus()) {
    const auto end = std::chrono::steady_clock::now() + kSpin;
    do {
      for (int i = 0; i < 16 && round_.load(std::memory_order_acquire) == round; ++i) relax();
    } while (round_.load(std::memory_order_acquire) == round &&
             std::chrono::steady_clock::now() < end);
  }
  while (round_.load(std::memory_order_acquire) == round) {
    futex(round_, FUTEX_WAIT_PRIVATE, round);
  }
  return !broken_.load(std::memory_order_acquire);
}

void Rendezvous::leave() {
  const std::uint32_t left = left_.fetch_add(1) + 1;
  const std::uint32_t arrived = arrived_.load();
  if (arrived > 0 && arrived + left >= static_cast<std::uint32_t>(members_)) abort();
}

void Rendezvous::abort() {
  broken_.store(true);
  round_.fetch_add(1);
  futex(round_, FUTEX_WAKE_PRIVATE, kMostMembers);
}

void Rendezvous::reset() {
  arrived_.store(0, std::memory_order_relaxed);
  left_.store(0, std::memory_order_relaxed);
  broken_.store(false, std::memory_order_release);
}

bool Rendezvous::all_gather(int member, const void* in, i64 bytes, void* out) {
  slots_[member].in = in;
  if (!barrier()) return false;
  for (int m = 0; m < members_; ++m) {
    std::memcpy(static_cast<char*>(out) + m * bytes, slots_[m].in, static_cast<std::size_t>(bytes));
  }
  return barrier();
}

bool Rendezvous::all_to_all(int member, const void* in, i64 bytes, void* out) {
  slots_[member].in = in;
  if (!barrier()) return false;
  for (int m = 0; m < members_; ++m) {
    std::memcpy(static_cast<char*>(out) + m * bytes,
                static_cast<const char*>(slots_[m].in) + member * bytes,
                static_cast<std::size_t>(bytes));
  }
  return barrier();
}

bool Rendezvous::permute(int member, const void* in, i64 bytes, void* out, int source, int) {
  slots_[member].in = in;
  if (!barrier()) return false;
  if (source < 0) {
    std::memset(out, 0, static_cast<std::size_t>(bytes));
  } else {
    std::memcpy(out, slots_[source].in, static_cast<std::size_t>(bytes));
  }
  return barrier();
}

bool Rendezvous::reduce_scatter(int member, const void* in, i64 count, void* out, Op op,
                                Type type) {
  slots_[member].in = in;
  if (!barrier()) return false;
  const void* sources[kMostMembers];
  for (int m = 0; m < members_; ++m) sources[m] = slots_[m].in;
  reduce_of(op, type)(sources, members_, member * count, count, out);
  return barrier();
}

bool Rendezvous::all_reduce(int member, const void* in, i64 count, void* out, Op op, Type type) {
  slots_[member] = {in, out};
  if (!barrier()) return false;
  const void* sources[kMostMembers];
  for (int m = 0; m < members_; ++m) sources[m] = slots_[m].in;
  const i64 size = element_size(type);
  const auto begin = [&](int m) { return count * m / members_; };
  if (count * size <= kSmallBytes) {
    reduce_of(op, type)(sources, members_, 0, count, out);
    return barrier();
  }
  reduce_of(op, type)(sources, members_, begin(member), begin(member + 1) - begin(member),
                      static_cast<char*>(out) + begin(member) * size);
  if (!barrier()) return false;
  for (int m = 0; m < members_; ++m) {
    if (m == member) continue;
    std::memcpy(static_cast<char*>(out) + begin(m) * size,
                static_cast<const char*>(slots_[m].out) + begin(m) * size,
                static_cast<std::size_t>((begin(m + 1) - begin(m)) * size));
  }
  return barrier();
}

}  // namespace functrans
