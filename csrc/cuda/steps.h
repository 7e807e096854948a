// The steps of a CudaProgram and how one is given to a stream.
#pragma once

#include "cuda/driver_api.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace functrans::cuda {

struct Kernel {
  std::string name;
  std::string image;  // a cubin, or PTX text
  std::string kinds;  // of the arguments: p pointer, i int32, l int64, f float32, d float64
  unsigned shared = 0;
  unsigned threads = 0;
  std::int64_t scratch = 0;  // bytes of global memory for each program of the grid
  bool waits = false;  // by an instruction, for the kernel before: it may be launched early
  bool prefers_l1 = false;  // to shared memory, which it has none of
  CUfunction function = nullptr;
};

// A place in one of the call's buffers; `stride` bytes further in each round of a loop.
struct Place {
  std::size_t base = 0;
  std::int64_t offset = 0;
  std::int64_t stride = 0;
  CUdeviceptr in(const CUdeviceptr* bases) const {
    return bases[base] + static_cast<CUdeviceptr>(offset);
  }
};

struct PointerArgument {
  std::size_t argument;
  Place place;
};

// The numbers of kinds in functrans/lowering/rules/collectives.py.
enum class CollectiveKind : std::int64_t {
  all_reduce, all_gather, reduce_scatter, all_to_all, permute, broadcast
};

// What a step says of a collective: kind, key of the group, reduction, dtype, elements of a part,
// and the ends of the pairs of a permutation, or the source of a broadcast.
struct CollectiveNumbers {
  explicit CollectiveNumbers(const std::vector<std::int64_t>& n)
      : kind(static_cast<CollectiveKind>(n[0])), key(n[1]), op(n[2]), type(n[3]), count(n[4]),
        rest(n.begin() + 5, n.end()) {}
  CollectiveKind kind;
  std::int64_t key, op, type, count;
  std::vector<std::int64_t> rest;
};
constexpr std::size_t kCollectiveNumbers = 5;

// A collective of a step, and where it reads and writes.
struct CollectivePart {
  CollectiveNumbers numbers;
  Place source, target;
};

enum class StepKind { launch, fill, copy, host, library, rounds, until, collective, wait };

// A function of a library (libraries.h): its name, how many numbers and pointers it takes.
struct LibraryCall;
struct LibraryFunction {
  const char* name;
  std::size_t numbers;  // at least
  std::size_t pointers;
  void (*run)(const LibraryCall&);
};

struct Step {
  StepKind kind = StepKind::launch;
  // launch
  std::size_t kernel = 0;
  std::array<unsigned, 3> grid{};
  std::vector<std::uint64_t> values;  // of the arguments, eight bytes each
  std::vector<void*> parameters;      // point to the values
  std::vector<PointerArgument> pointers;
  // fill and copy
  Place target, source;
  std::size_t bytes = 0;
  unsigned char value = 0;
  // host
  std::size_t host = 0;
  // host and library
  std::vector<Place> places;  // of its inputs, then of its outputs
  // library
  const LibraryFunction* function = nullptr;
  std::vector<std::int64_t> numbers;
  // rounds and until (loops.h)
  std::vector<std::vector<Step>> parts;
  std::int64_t count = 0;  // or of `collective` its number, of `wait` that of what it waits for
  std::vector<CollectivePart> collectives;  // given together
  bool ahead = false;
  std::int64_t turns = 0;  // of `until`, those that the host has driven

  // Puts the addresses of a call into the values.
  void bind(const CUdeviceptr* bases) {
    for (const PointerArgument& one : pointers) values[one.argument] = one.place.in(bases);
  }
  // Moves the places that go on with each round.
  void go_on(std::int64_t rounds);
  // Whether an address that the step uses differs.
  bool differs(const CUdeviceptr* a, const CUdeviceptr* b) const;
};

KernelNodeParams kernel_node(const Step& step, const Kernel& kernel);
MemsetNodeParams memset_node(const Step& step, const CUdeviceptr* bases);
MemcpyParams memcpy_node(const Step& step, const CUdeviceptr* bases);

// Gives a launch, fill or copy to a stream; throws Failure.
void enqueue(Step& step, const Kernel* kernels, const CUdeviceptr* bases, CUstream stream);

}  // namespace functrans::cuda
