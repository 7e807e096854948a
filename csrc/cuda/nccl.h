// Collectives among GPUs by NCCL, which is loaded when it is asked for; its few functions that are
// used here are declared from the public documentation.
#pragma once

#include "cuda/device.h"
#include "cuda/libraries.h"

#include <array>
#include <atomic>
#include <cstdint>
#include <vector>

namespace functrans::cuda {

using NcclComm = struct ncclComm*;

// Bytes by which the members of a new group find each other.
struct NcclId {
  std::array<char, 128> bytes{};
};

// The membership of one GPU in a group. Calls of all members are in the same order.
struct Communicator {
  NcclComm handle = nullptr;
  Device* device = nullptr;
  int rank = 0;
  int size = 1;
  std::uint64_t serial = 0;  // no other has it: graphs know by it for which group they are made
  std::atomic<bool> aborted{false};
};

// One of several collectives that are given to a stream together.
struct CollectiveCall {
  const CollectiveNumbers& numbers;
  CUdeviceptr in, out;
};

// Added to the key of a group: the members of it that take few programs.
constexpr std::int64_t kBeside = std::int64_t{1} << 32;

// Gives collectives of the groups of this thread to a stream, as one launch where NCCL joins them.
// The context of the device is current. Throws Failure.
void give_collectives(const Device& device, const std::vector<CollectiveCall>& calls,
                      CUstream stream);
// The same of one member whose communicator is known.
void give_collective(const Communicator& member, const CollectiveCall& call, CUstream stream);

void open_nccl(Symbols& symbols);
extern const std::vector<LibraryFunction> nccl_functions;

// Without the GIL. All throw Failure.
NcclId new_nccl_id();
// Communicators of those members of a new group of `size` that this process has, with their ranks.
std::vector<Communicator*> connect_members(const NcclId& id, int size,
                                           const std::vector<std::pair<int, int>>& members);
// Those of the parts of a group: members of one color are a new group, in the order of the keys,
// whose collectives take at most so many programs of each GPU; 0: as many as NCCL likes.
std::vector<Communicator*> split_members(const std::vector<Communicator*>& members,
                                         const std::vector<int>& colors,
                                         const std::vector<int>& keys, int most_programs);
// What waits in a collective of the group on this device goes on with results of no meaning, and
// the group is of no more use. Does not wait.
void abort_member(Communicator& member) noexcept;

// Changes with the communicators of the groups of this thread; 0 where there are none.
std::uint64_t serial_of_groups();

// What the failure of a member says whose group others gave up.
inline constexpr char kGivenUp[] = "the group was given up after a failure";

bool init_nccl(PyObject* module);

}  // namespace functrans::cuda
