// Whether a scatter makes lists of its rows: decided from measured time.
//
// Threads that walk all rows repeat each other's work, and lists of rows by slices cost about 3 ns a
// row in all, which pays from some number of threads on. From which one depends on the rows' width,
// on how many cores there are to run the threads, and on what is in caches. So either way is run
// for a while, in which its loops learn on how many threads they are best (thread_costs.h), and the
// faster one is kept, with which the other is compared again now and then.
#pragma once

#include <atomic>
#include <cstdint>

namespace functrans {

class ListChoice {
 public:
  // Fewer threads take as long to make lists as to walk all rows, ...
  static constexpr int kLeastThreads = 3;
  // ... and as many begin with lists.
  static constexpr int kBeginsWithLists = 8;
  // Runs of each way at first, ...
  static constexpr std::uint32_t kTrial = 12;
  // ... of which so many suffice of one that takes 1.4 times as long.
  static constexpr std::uint32_t kHopeless = 5;
  // Of so many runs, two are of the other way.
  static constexpr std::uint32_t kPeriod = 256;
  // Percent by which lists have to be faster, since they take more memory, and other CPUs.
  static constexpr std::int64_t kGain = 10;

  // The entry of a loop, which another one with the same place in the table replaces.
  static ListChoice& of(std::uint64_t loop) noexcept {
    static ListChoice table[1 << 8];
    constexpr std::uint64_t kOdd = 0x9e3779b97f4a7c15;
    const std::uint64_t key = (loop ^ loop >> 32) * kOdd | 1;  // that of no empty place
    ListChoice& entry = table[key >> 40 & 0xff];
    if (entry.key_.load(std::memory_order_relaxed) != key) {
      entry.runs_.store(0, std::memory_order_relaxed);
      for (auto& took : entry.took_) took.store(0, std::memory_order_relaxed);
      entry.key_.store(key, std::memory_order_relaxed);
    }
    return entry;
  }

  // Whether the next run on all of so many threads makes lists.
  bool next(int threads) noexcept {
    const std::uint32_t run = runs_.fetch_add(1, std::memory_order_relaxed);
    const bool first = threads >= kBeginsWithLists;
    if (run < kTrial) return first;
    if (run < 2 * kTrial) {
      const bool hopeless = run >= kTrial + kHopeless && 10 * took(!first) > 14 * took(first);
      return hopeless ? first : !first;
    }
    return run % kPeriod < 2 ? !best(threads) : best(threads);
  }

  // The faster way, as far as it is known.
  bool best(int threads) const noexcept {
    if (took(false) == 0 || took(true) == 0) return threads >= kBeginsWithLists;
    return took(true) * (100 + kGain) < took(false) * 100;
  }

  // What a run took. Less is taken at once, and an eighth of what is more, as in thread_costs.cpp.
  void note(bool lists, std::int64_t nanoseconds) noexcept {
    constexpr std::int64_t kMost = 0x7fffffff;
    const std::int64_t before = took(lists);
    std::int64_t now = nanoseconds < 1 ? 1 : nanoseconds > kMost ? kMost : nanoseconds;
    if (before > 0 && now > before) {
      now = before + (now - before < before ? now - before : before) / 8;
    }
    took_[lists].store(static_cast<std::uint32_t>(now), std::memory_order_relaxed);
  }

 private:
  std::int64_t took(bool lists) const noexcept {
    return took_[lists].load(std::memory_order_relaxed);
  }

  std::atomic<std::uint64_t> key_{0};
  std::atomic<std::uint32_t> runs_{0};
  std::atomic<std::uint32_t> took_[2]{};  // nanoseconds, 0: not known
};

}  // namespace functrans
