#include "cuda/nccl.h"

#include "collective_reduction.h"
#include "collective_step.h"

#include <climits>
#include <cstdlib>
#include <string>
#include <thread>
#include <utility>

namespace functrans::cuda {
namespace {

enum NcclType : int {
  kInt8 = 0, kUint8 = 1, kInt32 = 2, kUint32 = 3, kInt64 = 4, kUint64 = 5, kFloat16 = 6,
  kFloat32 = 7, kFloat64 = 8, kBfloat16 = 9
};
enum NcclOp : int { kSum = 0, kProduct = 1, kMax = 2, kMin = 3 };

// X(member, symbol, parameters): all give a status.
#define FT_NCCL_FUNCTIONS(X)                                                                     \
  X(unique_id, "ncclGetUniqueId", (NcclId*))                                                     \
  X(init_rank, "ncclCommInitRank", (NcclComm*, int, NcclId, int))                                \
  X(split, "ncclCommSplit", (NcclComm, int, int, NcclComm*, NcclConfig*))                              \
  X(rank, "ncclCommUserRank", (NcclComm, int*))                                                  \
  X(size, "ncclCommCount", (NcclComm, int*))                                                     \
  X(abort, "ncclCommAbort", (NcclComm))                                                          \
  X(group_start, "ncclGroupStart", ())                                                           \
  X(group_end, "ncclGroupEnd", ())                                                               \
  X(all_reduce, "ncclAllReduce",                                                                 \
    (const void*, void*, std::size_t, int, int, NcclComm, CUstream))                             \
  X(all_gather, "ncclAllGather", (const void*, void*, std::size_t, int, NcclComm, CUstream))     \
  X(reduce_scatter, "ncclReduceScatter",                                                         \
    (const void*, void*, std::size_t, int, int, NcclComm, CUstream))                             \
  X(broadcast, "ncclBroadcast",                                                                  \
    (const void*, void*, std::size_t, int, int, NcclComm, CUstream))                             \
  X(send, "ncclSend", (const void*, std::size_t, int, int, NcclComm, CUstream))                  \
  X(receive, "ncclRecv", (void*, std::size_t, int, int, NcclComm, CUstream))

// As of NCCL 2.18; newer ones take it.
struct NcclConfig {
  std::size_t size = sizeof(NcclConfig);
  unsigned magic = 0xcafebeef;
  unsigned version = 21801;
  int blocking = INT_MIN, cluster = INT_MIN, least_programs = INT_MIN, most_programs = INT_MIN;
  const char* net = nullptr;
  int share = INT_MIN;
};

struct Nccl {
#define X(name, symbol, parameters) int(*name) parameters = nullptr;
  FT_NCCL_FUNCTIONS(X)
#undef X
  const char* (*text)(int) = nullptr;
  const char* (*last_error)(NcclComm) = nullptr;  // not in old versions
  bool is_open = false;
} nccl;

std::atomic<std::uint64_t> serials{0};

void check_nccl(int status, const char* call, int device, NcclComm comm = nullptr) {
  if (status == 0) return;
  std::string note = nccl.text(status);
  const char* more = nccl.last_error == nullptr ? nullptr : nccl.last_error(comm);
  if (more != nullptr && *more != '\0') note += std::string(", ") + more;
  throw Failure{Cause::library, kSuccess, call, note, device, 0};
}
#define FT_NCCL(call, device) check_nccl(nccl.call, "NCCL: " #call, device)

// Ends a group of calls that was begun; a failure in between is told, not that of the end.
class NcclGroup {
 public:
  explicit NcclGroup(int device) : device_(device) {
    if (!nccl.is_open) throw Failure{Cause::library, kSuccess, "NCCL", "it is not open", device, 0};
    FT_NCCL(group_start(), device);
  }
  ~NcclGroup() {
    if (!ended_) nccl.group_end();
  }
  void end() {
    ended_ = true;
    FT_NCCL(group_end(), device_);
  }
  NcclGroup(const NcclGroup&) = delete;
  NcclGroup& operator=(const NcclGroup&) = delete;

 private:
  int device_;
  bool ended_ = false;
};

struct Reduced {
  int type;
  int op;
  std::size_t numbers;  // of an element
};

// How NCCL calls a reduction of a dtype. A sum of booleans is `or`, that of complex numbers of pairs.
Reduced reduced(std::int64_t op, std::int64_t type, const Device& device) {
  static constexpr int ops[] = {kSum, kMax, kMin, kProduct};
  using R = functrans::Communicator;
  const int plain = ops[op];
  switch (type) {
    case R::kBool: return {kUint8, op == R::kSum ? kMax : op == R::kProduct ? kMin : plain, 1};
    case R::kInt8: return {kInt8, plain, 1};
    case R::kUint8: return {kUint8, plain, 1};
    case R::kInt32: return {kInt32, plain, 1};
    case R::kUint32: return {kUint32, plain, 1};
    case R::kInt64: return {kInt64, plain, 1};
    case R::kUint64: return {kUint64, plain, 1};
    case R::kFloat16: return {kFloat16, plain, 1};
    case R::kBfloat16: return {kBfloat16, plain, 1};
    case R::kFloat32: return {kFloat32, plain, 1};
    case R::kFloat64: return {kFloat64, plain, 1};
    case R::kComplex64:
      if (op == R::kSum) return {kFloat32, kSum, 2};
      break;
    case R::kComplex128:
      if (op == R::kSum) return {kFloat64, kSum, 2};
      break;
    default: break;
  }
  throw Failure{Cause::library, kSuccess, "NCCL", "it has no such reduction of this dtype",
                device.ordinal, 0};
}

void exchange(const Communicator& c, const CollectiveCall& call, std::size_t bytes,
              CUstream stream) {
  const int device = c.device->ordinal;
  for (int peer = 0; peer < c.size; ++peer) {
    const std::size_t at = bytes * static_cast<std::size_t>(peer);
    FT_NCCL(send(address(call.in + at), bytes, kInt8, peer, c.handle, stream), device);
    FT_NCCL(receive(address(call.out + at), bytes, kInt8, peer, c.handle, stream), device);
  }
}

void permute(const Communicator& c, const CollectiveCall& call, std::size_t bytes,
             CUstream stream) {
  const int device = c.device->ordinal;
  const std::vector<std::int64_t>& ends = call.numbers.rest;
  bool receives = false;
  for (std::size_t p = 0; p + 1 < ends.size(); p += 2) {
    const int source = static_cast<int>(ends[p]), target = static_cast<int>(ends[p + 1]);
    receives = receives || target == c.rank;
    if (source == c.rank && target == c.rank) {
      FT_CU(MemcpyDtoDAsync(call.out, call.in, bytes, stream));
    } else if (source == c.rank) {
      FT_NCCL(send(address(call.in), bytes, kInt8, target, c.handle, stream), device);
    } else if (target == c.rank) {
      FT_NCCL(receive(address(call.out), bytes, kInt8, source, c.handle, stream), device);
    }
  }
  if (!receives) FT_CU(MemsetD8Async(call.out, 0, bytes, stream));
}

// Within a group of calls.
void give(const Communicator& c, const CollectiveCall& call, CUstream stream) {
  const CollectiveNumbers& n = call.numbers;
  const int device = c.device->ordinal;
  if (c.aborted) {
    throw Failure{Cause::library, kSuccess, "NCCL", kGivenUp, device, 0};
  }
  const auto count = static_cast<std::size_t>(n.count);
  if (count == 0) return;
  const std::size_t bytes =
      count * static_cast<std::size_t>(element_size(static_cast<functrans::Communicator::Type>(n.type)));
  const void* in = address(call.in);
  void* out = address(call.out);
  switch (n.kind) {
    case CollectiveKind::all_reduce: {
      const Reduced r = reduced(n.op, n.type, *c.device);
      FT_NCCL(all_reduce(in, out, count * r.numbers, r.type, r.op, c.handle, stream), device);
      return;
    }
    case CollectiveKind::reduce_scatter: {
      const Reduced r = reduced(n.op, n.type, *c.device);
      FT_NCCL(reduce_scatter(in, out, count * r.numbers, r.type, r.op, c.handle, stream), device);
      return;
    }
    case CollectiveKind::all_gather:
      FT_NCCL(all_gather(in, out, bytes, kInt8, c.handle, stream), device);
      return;
    case CollectiveKind::all_to_all: exchange(c, call, bytes, stream); return;
    case CollectiveKind::permute: permute(c, call, bytes, stream); return;
    case CollectiveKind::broadcast: {
      const int source = n.rest.empty() ? 0 : static_cast<int>(n.rest[0]);
      FT_NCCL(broadcast(in, out, bytes, kInt8, source, c.handle, stream), device);
      return;
    }
  }
}

const Communicator& member_of(std::int64_t key, const Device& device) {
  const Groups& here = groups_of_thread();
  for (std::size_t k = 0; k < here.count; ++k) {
    const Group& group = here.entries[k];
    if (group.key == key && group.nccl != nullptr) return *group.nccl;
  }
  if (key >= kBeside) return member_of(key - kBeside, device);
  throw Failure{Cause::library, kSuccess, "a collective",
                "a program of several GPUs ran outside of the run of its mesh", device.ordinal, 0};
}

// A collective as a step among others: in loops, where nothing runs beside it.
void run_collective(const LibraryCall& call) {
  const CollectiveNumbers numbers(call.numbers);
  give_collectives(call.device, {{numbers, call.pointer(0), call.pointer(1)}},
                   call.device.compute);
}

Communicator* member(NcclComm handle, Device& device) {
  auto* made = new Communicator();  // kept for ever: graphs and threads may know it
  made->handle = handle;
  made->device = &device;
  made->serial = ++serials;
  FT_NCCL(rank(handle, &made->rank), device.ordinal);
  FT_NCCL(size(handle, &made->size), device.ordinal);
  return made;
}

}  // namespace

const std::vector<LibraryFunction> nccl_functions = {
    {"collective", kCollectiveNumbers, 2, run_collective}};

void open_nccl(Symbols& symbols) {
  // Multicast by NVLink's switches takes memory of all GPUs of a host at each start. Buffers that
  // graphs know are not registered: members would have to agree on when that happens.
  setenv("NCCL_NVLS_ENABLE", "0", 0);
  setenv("NCCL_GRAPH_REGISTER", "0", 0);
#define X(name, symbol, parameters) \
  nccl.name = reinterpret_cast<int(*) parameters>(symbols.find(symbol));
  FT_NCCL_FUNCTIONS(X)
#undef X
  nccl.text = reinterpret_cast<const char* (*)(int)>(symbols.find("ncclGetErrorString"));
  Symbols newer{symbols.handle, ""};
  nccl.last_error = reinterpret_cast<const char* (*)(NcclComm)>(newer.find("ncclGetLastError"));
  nccl.is_open = symbols.absent.empty();
}

void give_collectives(const Device& device, const std::vector<CollectiveCall>& calls,
                      CUstream stream) {
  NcclGroup group(device.ordinal);
  for (const CollectiveCall& call : calls) {
    give(member_of(call.numbers.key, device), call, stream);
  }
  group.end();
}

void give_collective(const Communicator& c, const CollectiveCall& call, CUstream stream) {
  NcclGroup group(c.device->ordinal);
  give(c, call, stream);
  group.end();
}

NcclId new_nccl_id() {
  require_library(nccl.is_open, "NCCL", get_device(0));
  NcclId id;
  FT_NCCL(unique_id(&id), -1);
  return id;
}

std::vector<Communicator*> connect_members(const NcclId& id, int size,
                                           const std::vector<std::pair<int, int>>& members) {
  std::vector<NcclComm> handles(members.size());
  NcclGroup group(-1);
  for (std::size_t k = 0; k < members.size(); ++k) {
    const Current current(get_device(members[k].second));
    FT_NCCL(init_rank(&handles[k], size, id, members[k].first), members[k].second);
  }
  group.end();
  std::vector<Communicator*> made;
  for (std::size_t k = 0; k < members.size(); ++k) {
    made.push_back(member(handles[k], get_device(members[k].second)));
  }
  return made;
}

std::vector<Communicator*> split_members(const std::vector<Communicator*>& members,
                                         const std::vector<int>& colors,
                                         const std::vector<int>& keys, int most_programs) {
  NcclConfig config;
  if (most_programs > 0) config.most_programs = most_programs;
  std::vector<NcclComm> handles(members.size());
  NcclGroup group(-1);
  for (std::size_t k = 0; k < members.size(); ++k) {
    const Current current(*members[k]->device);
    FT_NCCL(split(members[k]->handle, colors[k], keys[k], &handles[k], most_programs > 0 ? &config : nullptr),
            members[k]->device->ordinal);
  }
  group.end();
  std::vector<Communicator*> made;
  for (std::size_t k = 0; k < members.size(); ++k) {
    made.push_back(member(handles[k], *members[k]->device));
  }
  return made;
}

void abort_member(Communicator& c) noexcept {
  if (c.aborted.exchange(true) || forked) return;
  // It first tells the kernels to end, and then waits for graphs that know the group: not we.
  try {
    std::thread([handle = c.handle, device = c.device] {
      try {
        const Current current(*device);
        nccl.abort(handle);
      } catch (const Failure&) {
        // the device is lost, and what waits there
      }
    }).detach();
  } catch (const std::exception&) {
    // no thread is to be had: the kernels wait on
  }
}

std::uint64_t serial_of_groups() {
  const Groups& here = groups_of_thread();
  std::uint64_t found = 0;
  for (std::size_t k = 0; k < here.count; ++k) {
    if (here.entries[k].nccl != nullptr) {
      found = found * 0x9e3779b97f4a7c15 + here.entries[k].nccl->serial;
    }
  }
  return found;
}

}  // namespace functrans::cuda
