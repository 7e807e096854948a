// Where the programs of the devices of one process meet: collectives among threads.
#pragma once

#include "common.h"

#include <atomic>
#include <cstdint>

namespace functrans {

// One group of members, which all make the same calls in the same order. Nothing here needs the GIL.
class Rendezvous {
 public:
  enum Op : int { kSum, kMax, kMin, kProduct };
  // The numbers of dtypes are those of `DTYPES` in functrans/distributed/local.py.
  enum Type : int {
    kBool, kInt8, kInt16, kInt32, kInt64, kUint8, kUint16, kUint32, kUint64, kFloat16, kBfloat16,
    kFloat32, kFloat64, kComplex64, kComplex128, kTypes
  };
  static constexpr int kMostMembers = 256;

  explicit Rendezvous(int members) : members_(members) {}

  int members() const { return members_; }
  // Each is false where the meeting was broken up. Sources and results are distinct memory.
  bool barrier();
  bool all_gather(int member, const void* in, std::int64_t bytes, void* out);
  bool all_to_all(int member, const void* in, std::int64_t bytes, void* out);
  // `source`: the member whose buffer is taken, -1 for zeros.
  bool permute(int member, const void* in, std::int64_t bytes, void* out, int source);
  bool all_reduce(int member, const void* in, std::int64_t count, void* out, Op op, Type type);
  // `count`: elements of the result, of which `in` has as many blocks as there are members.
  bool reduce_scatter(int member, const void* in, std::int64_t count, void* out, Op op, Type type);
  // A member comes no more: who waits for it gets false.
  void leave();
  void break_up();  // who waits, and who comes, gets false
  void reset();     // while nobody is here

 private:
  struct alignas(64) Slot {
    const void* in = nullptr;
    void* out = nullptr;
  };

  const int members_;
  alignas(64) std::atomic<std::uint32_t> arrived_{0};
  alignas(64) std::atomic<std::uint32_t> round_{0};
  std::atomic<std::uint32_t> left_{0};
  std::atomic<bool> broken_{false};
  Slot slots_[kMostMembers];
};

bool init_rendezvous(PyObject* module);

}  // namespace functrans
