// What collectives of one group of members are called on, whatever connects the members.
#pragma once

#include <cstdint>

namespace functrans {

// All members make the same calls in the same order. Nothing here needs the GIL. Each call is false
// where the others come no more. Sources and results are distinct memory.
class Communicator {
 public:
  enum Op : int { kSum, kMax, kMin, kProduct };
  // The numbers of dtypes are those of `TYPES` in functrans/core/communicator.py.
  enum Type : int {
    kBool, kInt8, kInt16, kInt32, kInt64, kUint8, kUint16, kUint32, kUint64, kFloat16, kBfloat16,
    kFloat32, kFloat64, kComplex64, kComplex128, kTypes
  };

  virtual ~Communicator() = default;

  virtual int members() const = 0;
  virtual bool barrier(int member) = 0;
  virtual bool all_gather(int member, const void* in, std::int64_t bytes, void* out) = 0;
  virtual bool all_to_all(int member, const void* in, std::int64_t bytes, void* out) = 0;
  // `source`: the member whose buffer is taken, -1 for zeros; `destination`: the one that takes that
  // of this member, -1 for none.
  virtual bool permute(int member, const void* in, std::int64_t bytes, void* out, int source,
                       int destination) = 0;
  virtual bool broadcast(int member, const void* in, std::int64_t bytes, void* out, int source) = 0;
  virtual bool all_reduce(int member, const void* in, std::int64_t count, void* out, Op op,
                          Type type) = 0;
  // `count`: elements of the result, of which `in` has as many blocks as there are members.
  virtual bool reduce_scatter(int member, const void* in, std::int64_t count, void* out, Op op,
                              Type type) = 0;
};

}  // namespace functrans
