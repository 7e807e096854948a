// Communicators of processes over MPI: nonblocking calls of the library that mpi4py has loaded, polled, so
// that a member that waits for one that comes no more can be told so.
#include "collective_reduction.h"
#include "communicator_type.h"

#include <atomic>
#include <chrono>
#include <climits>
#include <cstring>
#include <memory>
#include <new>

#include <dlfcn.h>
#include <sched.h>
#include <time.h>

namespace functrans {
namespace {

using i64 = std::int64_t;
using Clock = std::chrono::steady_clock;
// A handle is an int in MPICH and a pointer in Open MPI. Both pass as a word of 64 bits: who takes an
// int reads the lower half of the register, or of the place on the stack (little-endian).
using Handle = std::uintptr_t;

struct Library {
  int (*iallreduce)(const void*, void*, int, Handle, Handle, Handle, Handle*);
  int (*iallgather)(const void*, int, Handle, void*, int, Handle, Handle, Handle*);
  int (*ialltoall)(const void*, int, Handle, void*, int, Handle, Handle, Handle*);
  int (*ireduce_scatter)(const void*, void*, int, Handle, Handle, Handle, Handle*);
  int (*ibcast)(void*, int, Handle, int, Handle, Handle*);
  int (*isend)(const void*, int, Handle, int, int, Handle, Handle*);
  int (*irecv)(void*, int, Handle, int, int, Handle, Handle*);
  int (*ibarrier)(Handle, Handle*);
  int (*test)(Handle*, int*, void*);
  Handle types[Communicator::kTypes];  // 0 where MPI has none
  Handle ops[4];
  bool crowded;  // more processes than CPUs: who waits gives its CPU away at once
};

Library mpi;

// What this process is doing, for the thread that watches it.
std::atomic<i64> waiting_since{0};  // nanoseconds, 0 where it does not wait
std::atomic<i64> calls{0};          // collectives begun
std::atomic<int> kind_of_last{0};   // which kind of collective that was
std::atomic<int> last_error{0};
std::atomic<bool> broken{false};

i64 now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch())
      .count();
}

// The numbers of `_KINDS` in functrans/distributed/watch.py.
enum Kind : int { kBarrier, kGather, kAllToAll, kPermute, kBroadcast, kReduce, kScatter };

// The requests of one call.
class Pending {
 public:
  Pending(Kind kind, i64 bytes) : bytes_(bytes) {
    calls.fetch_add(1, std::memory_order_relaxed);
    kind_of_last.store(kind, std::memory_order_relaxed);
  }

  Handle* next() { return &requests_[count_++]; }

  bool begun(int code) {
    if (code == 0) return true;
    last_error.store(code);
    return false;
  }

  // Without returning while the members come: false where they do not.
  bool finish() {
    for (int k = 0; k < count_; ++k) {
      if (!finish(&requests_[k])) return false;
    }
    return true;
  }

 private:
  bool finish(Handle* request) {
    alignas(16) char status[128];
    for (int spins = 0;; ++spins) {
      int done = 0;
      if (!begun(mpi.test(request, &done, status))) return stopped();
      if (done) break;
      if (broken.load(std::memory_order_relaxed)) return stopped();
      if (spins < (mpi.crowded ? 0 : 1000)) continue;
      rest();
    }
    if (since_ != 0) waiting_since.store(since_ = 0, std::memory_order_relaxed);
    return true;
  }

  bool stopped() {
    waiting_since.store(0, std::memory_order_relaxed);
    return false;
  }

  // Messages move while `test` is called: sleep once those of this size should be there.
  void rest() {
    const i64 time = now();
    if (since_ == 0) {
      since_ = time;
      waiting_since.store(time, std::memory_order_relaxed);
    }
    const i64 waited = time - since_;
    if (waited < 20'000'000 + bytes_ * 5) {
      sched_yield();
    } else {
      const timespec moment{0, waited < 1'000'000'000 ? 50'000 : 500'000};
      nanosleep(&moment, nullptr);
    }
  }

  Handle requests_[2] = {0, 0};
  int count_ = 0;
  i64 since_ = 0;
  const i64 bytes_;
};

// So many bytes as elements of which an int counts the number: 0 where none is large enough.
struct Elements {
  explicit Elements(i64 bytes) {
    for (const Communicator::Type type : {Communicator::kUint8, Communicator::kUint32, Communicator::kUint64}) {
      const i64 size = element_size(type);
      if (bytes % size == 0 && bytes / size <= INT_MAX) {
        count = static_cast<int>(bytes / size);
        type_handle = mpi.types[type];
        return;
      }
    }
    last_error.store(-1);
  }
  explicit operator bool() const { return count >= 0; }

  int count = -1;
  Handle type_handle = 0;
};

// Those of MPI pass over NaN in max and min, and know no floats of 16 bits.
bool is_native(Communicator::Op op, Communicator::Type type) {
  if (mpi.types[type] == 0 || type == Communicator::kBool) return false;
  return type < Communicator::kFloat16 || op == Communicator::kSum || op == Communicator::kProduct;
}

constexpr int kTag = 1;
constexpr i64 kSmallBytes = 8192;
constexpr i64 kMostElements = 1 << 30;

class MpiCommunicator final : public Communicator {
 public:
  MpiCommunicator(Handle handle, int members) : comm_(handle), members_(members) {}

  int members() const override { return members_; }

  bool barrier(int) override {
    Pending call(kBarrier, 0);
    return ready() && call.begun(mpi.ibarrier(comm_, call.next())) && call.finish();
  }

  bool all_gather(int, const void* in, i64 bytes, void* out) override {
    const Elements n(bytes);
    Pending call(kGather, bytes * members_);
    return ready() && n &&
           call.begun(mpi.iallgather(in, n.count, n.type_handle, out, n.count, n.type_handle, comm_,
                                     call.next())) &&
           call.finish();
  }

  bool all_to_all(int, const void* in, i64 bytes, void* out) override {
    const Elements n(bytes);
    Pending call(kAllToAll, bytes * members_);
    return ready() && n &&
           call.begun(mpi.ialltoall(in, n.count, n.type_handle, out, n.count, n.type_handle, comm_,
                                    call.next())) &&
           call.finish();
  }

  bool permute(int member, const void* in, i64 bytes, void* out, int source,
               int destination) override {
    const Elements n(bytes);
    Pending call(kPermute, bytes);
    if (!ready() || !n) return false;
    if (source < 0) {
      std::memset(out, 0, static_cast<std::size_t>(bytes));
    } else if (source == member) {
      std::memcpy(out, in, static_cast<std::size_t>(bytes));
    } else if (!call.begun(mpi.irecv(out, n.count, n.type_handle, source, kTag, comm_,
                                     call.next()))) {
      return false;
    }
    if (destination >= 0 && destination != member &&
        !call.begun(mpi.isend(in, n.count, n.type_handle, destination, kTag, comm_, call.next()))) {
      return false;
    }
    return call.finish();
  }

  bool broadcast(int member, const void* in, i64 bytes, void* out, int source) override {
    const Elements n(bytes);
    Pending call(kBroadcast, bytes);
    if (!ready() || !n) return false;
    if (member == source) std::memcpy(out, in, static_cast<std::size_t>(bytes));
    return call.begun(mpi.ibcast(out, n.count, n.type_handle, source, comm_, call.next())) &&
           call.finish();
  }

  bool all_reduce(int member, const void* in, i64 count, void* out, Op op, Type type) override {
    const i64 size = element_size(type);
    if (!is_native(op, type)) return reduce_here(member, in, count, out, op, type);
    if (!ready()) return false;
    for (i64 begin = 0; begin < count || begin == 0; begin += kMostElements) {
      const int n = static_cast<int>(count - begin < kMostElements ? count - begin : kMostElements);
      Pending call(kReduce, n * size);
      if (!call.begun(mpi.iallreduce(static_cast<const char*>(in) + begin * size,
                                     static_cast<char*>(out) + begin * size, n, mpi.types[type],
                                     mpi.ops[op], comm_, call.next())) ||
          !call.finish()) {
        return false;
      }
    }
    return true;
  }

  bool reduce_scatter(int member, const void* in, i64 count, void* out, Op op, Type type) override {
    if (is_native(op, type) && count <= INT_MAX) {
      Pending call(kScatter, count * element_size(type) * members_);
      return ready() &&
             call.begun(mpi.ireduce_scatter(in, out, static_cast<int>(count), mpi.types[type],
                                            mpi.ops[op], comm_, call.next())) &&
             call.finish();
    }
    return scatter_here(member, in, count, out, op, type);
  }

 private:
  bool ready() const { return !broken.load(std::memory_order_relaxed); }

  static std::unique_ptr<char[]> scratch(i64 bytes) {
    std::unique_ptr<char[]> found(new (std::nothrow) char[static_cast<std::size_t>(bytes) + 1]);
    if (!found) last_error.store(-2);
    return found;
  }

  // The blocks of all members, added up here in the order of the members.
  void combine(const char* blocks, i64 count, void* out, Op op, Type type) const {
    const std::unique_ptr<const void*[]> sources(new const void*[static_cast<std::size_t>(members_)]);
    for (int m = 0; m < members_; ++m) sources[m] = blocks + m * count * element_size(type);
    reduce_of(op, type)(sources.get(), members_, 0, count, out);
  }

  bool scatter_here(int member, const void* in, i64 count, void* out, Op op, Type type) {
    const i64 bytes = count * element_size(type);
    const auto blocks = scratch(bytes * members_);
    if (!blocks || !all_to_all(member, in, bytes, blocks.get())) return false;
    combine(blocks.get(), count, out, op, type);
    return true;
  }

  bool reduce_here(int member, const void* in, i64 count, void* out, Op op, Type type) {
    const i64 size = element_size(type), bytes = count * size;
    if (bytes <= kSmallBytes) {
      const auto blocks = scratch(bytes * members_);
      if (!blocks || !all_gather(member, in, bytes, blocks.get())) return false;
      combine(blocks.get(), count, out, op, type);
      return true;
    }
    const i64 part = (count + members_ - 1) / members_, padded = part * members_ * size;
    const auto all = scratch(padded), mine = scratch(part * size);
    if (!all || !mine) return false;
    std::memcpy(all.get(), in, static_cast<std::size_t>(bytes));
    std::memset(all.get() + bytes, 0, static_cast<std::size_t>(padded - bytes));
    if (!scatter_here(member, all.get(), part, mine.get(), op, type) ||
        !all_gather(member, mine.get(), part * size, all.get())) {
      return false;
    }
    std::memcpy(out, all.get(), static_cast<std::size_t>(bytes));
    return true;
  }

  const Handle comm_;
  const int members_;
};

PyObject* make(PyTypeObject* type, PyObject* args, PyObject*) {
  unsigned long long handle;
  int members;
  if (!PyArg_ParseTuple(args, "Ki:MpiCommunicator", &handle, &members)) return nullptr;
  if (mpi.test == nullptr || members < 1) {
    PyErr_SetString(PyExc_ValueError, "mpi_open comes first, and a group has members");
    return nullptr;
  }
  return new_communicator(type, new (std::nothrow) MpiCommunicator(static_cast<Handle>(handle),
                                                         members));
}

// mpi_open(path, types, ops, crowded): the library that the extension module at `path` is linked to,
// and its handles in the order of `Type` and of `Op`.
PyObject* mpi_open(PyObject*, PyObject* args) {
  const char* path;
  PyObject *types, *ops;
  int crowded;
  if (!PyArg_ParseTuple(args, "sO!O!p:mpi_open", &path, &PyTuple_Type, &types, &PyTuple_Type, &ops,
                        &crowded)) {
    return nullptr;
  }
  if (PyTuple_GET_SIZE(types) != Communicator::kTypes || PyTuple_GET_SIZE(ops) != 4) {
    PyErr_SetString(PyExc_ValueError, "mpi_open takes a handle for each type and operation");
    return nullptr;
  }
  void* const module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (module == nullptr) {
    PyErr_Format(PyExc_OSError, "%s", dlerror());
    return nullptr;
  }
  Library found{};
  const std::pair<const char*, void*> symbols[] = {
      {"MPI_Iallreduce", &found.iallreduce}, {"MPI_Iallgather", &found.iallgather},
      {"MPI_Ialltoall", &found.ialltoall}, {"MPI_Ireduce_scatter_block", &found.ireduce_scatter},
      {"MPI_Ibcast", &found.ibcast}, {"MPI_Isend", &found.isend}, {"MPI_Irecv", &found.irecv},
      {"MPI_Ibarrier", &found.ibarrier}, {"MPI_Test", &found.test}};
  for (const auto& [name, place] : symbols) {
    void* const symbol = dlsym(module, name);
    if (symbol == nullptr) {
      PyErr_Format(PyExc_OSError, "%s has no %s", path, name);
      return nullptr;
    }
    std::memcpy(place, &symbol, sizeof symbol);
  }
  for (int k = 0; k < Communicator::kTypes; ++k) {
    found.types[k] = static_cast<Handle>(PyLong_AsUnsignedLongLong(PyTuple_GET_ITEM(types, k)));
  }
  for (int k = 0; k < 4; ++k) {
    found.ops[k] = static_cast<Handle>(PyLong_AsUnsignedLongLong(PyTuple_GET_ITEM(ops, k)));
  }
  if (PyErr_Occurred()) return nullptr;
  found.crowded = crowded != 0;
  mpi = found;
  Py_RETURN_NONE;
}

// mpi_state(): (seconds that this process has waited, collectives begun, kind of the last one, code
// of the last error).
PyObject* mpi_state(PyObject*, PyObject*) {
  const i64 since = waiting_since.load();
  return Py_BuildValue("(dLii)", since == 0 ? 0.0 : static_cast<double>(now() - since) * 1e-9,
                       static_cast<long long>(calls.load()), kind_of_last.load(), last_error.load());
}

// mpi_abort(): who waits, and who comes, gets False from now on.
PyObject* mpi_abort(PyObject*, PyObject*) {
  broken.store(true);
  Py_RETURN_NONE;
}

PyMethodDef functions[] = {
    {"mpi_open", mpi_open, METH_VARARGS, "mpi_open(path, types, ops, crowded)"},
    {"mpi_state", mpi_state, METH_NOARGS,
     "mpi_state(): (seconds waited, collectives begun, kind of the last, last error)."},
    {"mpi_abort", mpi_abort, METH_NOARGS, "mpi_abort(): all collectives get False."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

bool init_mpi_communicator(PyObject* module) {
  PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void*>(make)}, {0, nullptr}};
  PyType_Spec spec = {"functrans._runtime.MpiCommunicator", sizeof(CommunicatorObject), 0,
                      Py_TPFLAGS_DEFAULT, slots};
  const Ref type(PyType_FromSpecWithBases(&spec, reinterpret_cast<PyObject*>(communicator_type)));
  return type && PyModule_AddFunctions(module, functions) == 0 &&
         PyModule_AddObjectRef(module, "MpiCommunicator", type.get()) == 0;
}

}  // namespace functrans
