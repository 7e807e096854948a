// Where the programs of the devices of one process meet: collectives among threads.
#pragma once

#include "common.h"
#include "communicator.h"

#include <atomic>
#include <cstdint>

namespace functrans {

// One group of members, each of which is a thread.
class Rendezvous final : public Communicator {
 public:
  static constexpr int kMostMembers = 256;

  explicit Rendezvous(int members) : members_(members) {}

  int members() const override { return members_; }
  // Each is false where the communicator was aborted.
  bool barrier(int member) override;
  bool all_gather(int member, const void* in, std::int64_t bytes, void* out) override;
  bool all_to_all(int member, const void* in, std::int64_t bytes, void* out) override;
  bool permute(int member, const void* in, std::int64_t bytes, void* out, int source,
               int destination) override;
  bool broadcast(int member, const void* in, std::int64_t bytes, void* out, int source) override {
    return permute(member, in, bytes, out, source, -1);
  }
  bool all_reduce(int member, const void* in, std::int64_t count, void* out, Op op,
                  Type type) override;
  bool reduce_scatter(int member, const void* in, std::int64_t count, void* out, Op op,
                      Type type) override;
  // A member comes no more: who waits for it gets false.
  void leave();
  void abort();  // who waits, and who comes, gets false
  void reset();     // while nobody is here

 private:
  struct alignas(64) Slot {
    const void* in = nullptr;
    void* out = nullptr;
  };

  bool barrier();

  const int members_;
  alignas(64) std::atomic<std::uint32_t> arrived_{0};
  alignas(64) std::atomic<std::uint32_t> round_{0};
  std::atomic<std::uint32_t> left_{0};
  std::atomic<bool> broken_{false};
  Slot slots_[kMostMembers];
};


}  // namespace functrans
