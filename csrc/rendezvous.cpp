#include "rendezvous.h"

#include "interrupts.h"
#include "library.h"
#include "program.h"

#include <algorithm>
#include <chrono>
#include <complex>
#include <cstring>
#include <new>
#include <utility>
#include <vector>

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace functrans {
namespace {

using i64 = std::int64_t;

// All members reduce all elements of arrays up to here; of larger ones each a part, which the others
// copy: one meeting more.
constexpr i64 kSmallBytes = 32768;
constexpr std::chrono::nanoseconds kSpin{15000};

// Floats of 16 bits as float32 and back.
float from_half(std::uint16_t bits) {
  _Float16 x;
  std::memcpy(&x, &bits, sizeof x);
  return static_cast<float>(x);
}
std::uint16_t to_half(float value) {
  const auto x = static_cast<_Float16>(value);
  std::uint16_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  return bits;
}
float from_bfloat(std::uint16_t bits) {
  const std::uint32_t wide = std::uint32_t{bits} << 16;
  float x;
  std::memcpy(&x, &wide, sizeof x);
  return x;
}
std::uint16_t to_bfloat(float value) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  if (value != value) return static_cast<std::uint16_t>((bits >> 16) | 0x40);
  return static_cast<std::uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

template <typename T>
struct Plain {
  using Stored = T;
  using Computed = T;
  static T load(T x) { return x; }
  static T store(T x) { return x; }
};
struct Half {
  using Stored = std::uint16_t;
  using Computed = float;
  static float load(Stored x) { return from_half(x); }
  static Stored store(float x) { return to_half(x); }
};
struct Bfloat {
  using Stored = std::uint16_t;
  using Computed = float;
  static float load(Stored x) { return from_bfloat(x); }
  static Stored store(float x) { return to_bfloat(x); }
};

template <typename T>
bool precedes(T a, T b) {
  return a < b;
}
template <typename T>
bool precedes(std::complex<T> a, std::complex<T> b) {
  return a.real() < b.real() || (a.real() == b.real() && a.imag() < b.imag());
}
template <typename T>
bool is_nan(T x) {
  return x != x;
}

template <Rendezvous::Op op, typename T>
T combine(T a, T b) {
  if constexpr (op == Rendezvous::kSum) {
    if constexpr (std::is_same_v<T, bool>) return a || b;
    else if constexpr (std::is_integral_v<T>) {
      using U = std::make_unsigned_t<T>;  // overflow wraps
      return static_cast<T>(static_cast<U>(static_cast<U>(a) + static_cast<U>(b)));
    } else return a + b;
  } else if constexpr (op == Rendezvous::kProduct) {
    if constexpr (std::is_same_v<T, bool>) return a && b;
    else if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
    } else return a * b;
  } else if constexpr (op == Rendezvous::kMax) {
    return is_nan(a) || (!is_nan(b) && !precedes(a, b)) ? a : b;
  } else {
    return is_nan(a) || (!is_nan(b) && !precedes(b, a)) ? a : b;
  }
}

// out[i] = in[0][i] op in[1][i] op ..., always in this order: all members get the same bits.
template <typename Format, Rendezvous::Op op>
void reduce(const void* const* in, int members, i64 first, i64 count, void* out) {
  using Stored = typename Format::Stored;
  using Computed = typename Format::Computed;
  constexpr i64 kBlock = 512;
  Computed sums[kBlock];
  auto* target = static_cast<Stored*>(out);
  for (i64 begin = 0; begin < count; begin += kBlock) {
    const i64 n = std::min(kBlock, count - begin);
    const auto* source = static_cast<const Stored*>(in[0]) + first + begin;
    for (i64 i = 0; i < n; ++i) sums[i] = Format::load(source[i]);
    for (int m = 1; m < members; ++m) {
      source = static_cast<const Stored*>(in[m]) + first + begin;
      for (i64 i = 0; i < n; ++i) sums[i] = combine<op, Computed>(sums[i], Format::load(source[i]));
    }
    for (i64 i = 0; i < n; ++i) target[begin + i] = Format::store(sums[i]);
  }
}

using Reduce = void (*)(const void* const*, int, i64, i64, void*);

template <typename Format>
Reduce reduce_by(Rendezvous::Op op) {
  switch (op) {
    case Rendezvous::kMax: return reduce<Format, Rendezvous::kMax>;
    case Rendezvous::kMin: return reduce<Format, Rendezvous::kMin>;
    case Rendezvous::kProduct: return reduce<Format, Rendezvous::kProduct>;
    default: return reduce<Format, Rendezvous::kSum>;
  }
}

Reduce reduce_of(Rendezvous::Op op, Rendezvous::Type type) {
  switch (type) {
    case Rendezvous::kBool: return reduce_by<Plain<bool>>(op);
    case Rendezvous::kInt8: return reduce_by<Plain<std::int8_t>>(op);
    case Rendezvous::kInt16: return reduce_by<Plain<std::int16_t>>(op);
    case Rendezvous::kInt32: return reduce_by<Plain<std::int32_t>>(op);
    case Rendezvous::kInt64: return reduce_by<Plain<std::int64_t>>(op);
    case Rendezvous::kUint8: return reduce_by<Plain<std::uint8_t>>(op);
    case Rendezvous::kUint16: return reduce_by<Plain<std::uint16_t>>(op);
    case Rendezvous::kUint32: return reduce_by<Plain<std::uint32_t>>(op);
    case Rendezvous::kUint64: return reduce_by<Plain<std::uint64_t>>(op);
    case Rendezvous::kFloat16: return reduce_by<Half>(op);
    case Rendezvous::kBfloat16: return reduce_by<Bfloat>(op);
    case Rendezvous::kFloat64: return reduce_by<Plain<double>>(op);
    case Rendezvous::kComplex64: return reduce_by<Plain<std::complex<float>>>(op);
    case Rendezvous::kComplex128: return reduce_by<Plain<std::complex<double>>>(op);
    default: return reduce_by<Plain<float>>(op);
  }
}

constexpr i64 kSizes[] = {1, 1, 2, 4, 8, 1, 2, 4, 8, 2, 2, 4, 8, 8, 16};

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

bool Rendezvous::barrier() {
  // The round first: who breaks up after that begins a new one.
  const std::uint32_t round = round_.load();
  if (broken_.load()) return false;
  const auto all = static_cast<std::uint32_t>(members_);
  const std::uint32_t arrived = arrived_.fetch_add(1) + 1;
  const std::uint32_t left = left_.load();
  if (left > 0 && arrived + left >= all) {
    break_up();
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
  if (arrived > 0 && arrived + left >= static_cast<std::uint32_t>(members_)) break_up();
}

void Rendezvous::break_up() {
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

bool Rendezvous::permute(int member, const void* in, i64 bytes, void* out, int source) {
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
  const i64 size = kSizes[type];
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

// --- what compiled programs call

namespace {

enum Kind : i64 { kAllReduce, kAllGather, kReduceScatter, kAllToAll, kPermute };

// The groups of the rank that a thread runs, by the numbers that programs know them by.
struct Group {
  i64 key;
  Rendezvous* meeting;  // null where Python connects the members
  int member;
  int size;
};
struct Groups {
  const Group* entries = nullptr;
  std::size_t count = 0;
  PyObject* python = nullptr;  // (kind, key, op, type, count, x, out, pairs) of other engines
  PyObject* broken = nullptr;  // the class of the error of a meeting that was broken up
};
thread_local Groups groups_here;

// With the GIL held, whether or not the running program has released it.
template <typename Run>
bool with_gil(Run run) {
  if (PyGILState_Check()) return run();
  CallContext* const call = std::exchange(running_call, nullptr);
  restore_thread(call->thread);
  const bool ok = run();
  // an exception stays with the thread state until the call has unwound to Python
  call->thread = PyEval_SaveThread();
  running_call = call;
  return ok;
}

PyObject* bytes_at(const void* data, i64 bytes, bool writeable) {
  npy_intp dims[] = {static_cast<npy_intp>(bytes)};
  return PyArray_NewFromDescr(&PyArray_Type, PyArray_DescrFromType(NPY_UBYTE), 1, dims, nullptr,
                              const_cast<void*>(data),
                              writeable ? NPY_ARRAY_CARRAY : NPY_ARRAY_CARRAY_RO, nullptr);
}

bool through_python(const Group& group, i64 kind, i64 op, i64 type, i64 count, i64 pairs,
                    const i64* ends, const void* in, void* out) {
  const i64 bytes = count * kSizes[type];
  const i64 n = group.size;
  return with_gil([&] {
    Ref x(bytes_at(in, kind == kReduceScatter || kind == kAllToAll ? bytes * n : bytes, false));
    Ref y(bytes_at(out, kind == kAllGather || kind == kAllToAll ? bytes * n : bytes, true));
    Ref list(PyList_New(0));
    for (i64 p = 0; list && p < pairs; ++p) {
      Ref pair(Py_BuildValue("(LL)", static_cast<long long>(ends[2 * p]),
                             static_cast<long long>(ends[2 * p + 1])));
      if (!pair || PyList_Append(list.get(), pair.get()) < 0) return false;
    }
    if (!x || !y || !list) return false;
    Ref done(PyObject_CallFunction(groups_here.python, "LLLLOOO", static_cast<long long>(kind),
                                   static_cast<long long>(group.key), static_cast<long long>(op),
                                   static_cast<long long>(type), x.get(), y.get(), list.get()));
    return static_cast<bool>(done);
  });
}

bool through_memory(const Group& group, i64 kind, i64 op, i64 type, i64 count, i64 pairs,
                    const i64* ends, const void* in, void* out) {
  Rendezvous& meeting = *group.meeting;
  const i64 bytes = count * kSizes[type];
  switch (kind) {
    case kAllReduce:
      return meeting.all_reduce(group.member, in, count, out, static_cast<Rendezvous::Op>(op),
                                static_cast<Rendezvous::Type>(type));
    case kReduceScatter:
      return meeting.reduce_scatter(group.member, in, count, out, static_cast<Rendezvous::Op>(op),
                                    static_cast<Rendezvous::Type>(type));
    case kAllGather: return meeting.all_gather(group.member, in, bytes, out);
    case kAllToAll: return meeting.all_to_all(group.member, in, bytes, out);
    default: {
      i64 source = -1;
      for (i64 p = 0; p < pairs; ++p) {
        if (ends[2 * p + 1] == group.member) source = ends[2 * p];
      }
      return meeting.permute(group.member, in, bytes, out, static_cast<int>(source));
    }
  }
}

// `count`: elements of one part. Nonzero with an exception set.
int collective(i64 kind, i64 key, i64 op, i64 type, i64 count, i64 pairs, const i64* ends,
               const void* in, void* out) {
  const Groups here = groups_here;
  for (std::size_t k = 0; k < here.count; ++k) {
    const Group& group = here.entries[k];
    if (group.key != key) continue;
    if (group.meeting == nullptr) {
      return through_python(group, kind, op, type, count, pairs, ends, in, out) ? 0 : 1;
    }
    PyThreadState* const held = PyGILState_Check() ? PyEval_SaveThread() : nullptr;
    const bool met = through_memory(group, kind, op, type, count, pairs, ends, in, out);
    if (held != nullptr) PyEval_RestoreThread(held);
    if (met) return 0;
    with_gil([&] {
      PyErr_SetNone(here.broken);
      return false;
    });
    return 1;
  }
  with_gil([] {
    PyErr_SetString(PyExc_RuntimeError,
                    "a program of several devices ran outside of the run of its mesh");
    return false;
  });
  return 1;
}

PyObject* rendezvous_type = nullptr;

// The groups of a rank, as Python lists them.
struct GroupTable {
  std::vector<Group> groups;
  std::vector<PyObject*> held;
};

void free_table(PyObject* capsule) {
  auto* table = static_cast<GroupTable*>(PyCapsule_GetPointer(capsule, nullptr));
  for (PyObject* one : table->held) Py_DECREF(one);
  delete table;
}

}  // namespace

// --- the class of Python

namespace {

struct RendezvousObject {
  PyObject_HEAD Rendezvous* meeting;
};

Rendezvous& meeting_of(PyObject* self) {
  return *reinterpret_cast<RendezvousObject*>(self)->meeting;
}

PyObject* make(PyTypeObject* type, PyObject* args, PyObject*) {
  int members = 0;
  if (!PyArg_ParseTuple(args, "i:Rendezvous", &members)) return nullptr;
  if (members < 1 || members > Rendezvous::kMostMembers) {
    PyErr_Format(PyExc_ValueError, "a group has 1 to %d members, got %d",
                 Rendezvous::kMostMembers, members);
    return nullptr;
  }
  PyObject* self = type->tp_alloc(type, 0);
  if (self == nullptr) return nullptr;
  auto* object = reinterpret_cast<RendezvousObject*>(self);
  object->meeting = new (std::nothrow) Rendezvous(members);
  if (object->meeting == nullptr) {
    Py_DECREF(self);
    return PyErr_NoMemory();
  }
  return self;
}

void dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  delete reinterpret_cast<RendezvousObject*>(self)->meeting;
  type->tp_free(self);
  Py_DECREF(type);
}

struct Buffers {
  int member = 0;
  PyArrayObject *in = nullptr, *out = nullptr;
  int first = 0, second = 0;  // what else a call says

  // `factor`: how often the smaller of the two goes into the other, 0 where sizes are equal.
  bool parse(PyObject* self, PyObject* args, const char* format) {
    PyObject *in_object, *out_object;
    if (!PyArg_ParseTuple(args, format, &member, &in_object, &out_object, &first, &second)) {
      return false;
    }
    if (!PyArray_CheckExact(in_object) || !PyArray_CheckExact(out_object)) {
      PyErr_SetString(PyExc_TypeError, "a collective takes ndarrays");
      return false;
    }
    in = reinterpret_cast<PyArrayObject*>(in_object);
    out = reinterpret_cast<PyArrayObject*>(out_object);
    if (!PyArray_ISCARRAY_RO(in) || !PyArray_ISCARRAY(out)) {
      PyErr_SetString(PyExc_ValueError, "a collective takes contiguous arrays");
      return false;
    }
    if (member < 0 || member >= meeting_of(self).members()) {
      PyErr_Format(PyExc_ValueError, "a group of %d has no member %d",
                   meeting_of(self).members(), member);
      return false;
    }
    return true;
  }
  bool has_sizes(i64 in_parts, i64 out_parts) const {
    if (PyArray_NBYTES(in) * out_parts == PyArray_NBYTES(out) * in_parts) return true;
    PyErr_Format(PyExc_ValueError, "a collective of %zd bytes has a result of %zd",
                 static_cast<Py_ssize_t>(PyArray_NBYTES(in)),
                 static_cast<Py_ssize_t>(PyArray_NBYTES(out)));
    return false;
  }
  bool has_type(i64& count) const {
    if (first < 0 || first > Rendezvous::kProduct || second < 0 || second >= Rendezvous::kTypes ||
        kSizes[second] != PyArray_ITEMSIZE(out)) {
      PyErr_Format(PyExc_ValueError, "no reduction %d of the dtype %d", first, second);
      return false;
    }
    count = PyArray_SIZE(out);
    return true;
  }
};

// True, or False where the meeting was broken up.
template <typename Run>
PyObject* meet(Run run) {
  bool whole;
  Py_BEGIN_ALLOW_THREADS
  whole = run();
  Py_END_ALLOW_THREADS
  return PyBool_FromLong(whole);
}

PyObject* py_barrier(PyObject* self, PyObject*) {
  return meet([&] { return meeting_of(self).barrier(); });
}

PyObject* py_all_gather(PyObject* self, PyObject* args) {
  Buffers b;
  Rendezvous& r = meeting_of(self);
  if (!b.parse(self, args, "iOO") || !b.has_sizes(1, r.members())) return nullptr;
  const void* in = PyArray_DATA(b.in);
  void* out = PyArray_DATA(b.out);
  const i64 bytes = PyArray_NBYTES(b.in);
  return meet([&] { return r.all_gather(b.member, in, bytes, out); });
}

PyObject* py_all_to_all(PyObject* self, PyObject* args) {
  Buffers b;
  Rendezvous& r = meeting_of(self);
  if (!b.parse(self, args, "iOO") || !b.has_sizes(1, 1)) return nullptr;
  const void* in = PyArray_DATA(b.in);
  void* out = PyArray_DATA(b.out);
  const i64 bytes = PyArray_NBYTES(b.in) / r.members();
  return meet([&] { return r.all_to_all(b.member, in, bytes, out); });
}

PyObject* py_permute(PyObject* self, PyObject* args) {
  Buffers b;
  Rendezvous& r = meeting_of(self);
  if (!b.parse(self, args, "iOOi") || !b.has_sizes(1, 1)) return nullptr;
  if (b.first < -1 || b.first >= r.members()) {
    PyErr_Format(PyExc_ValueError, "a group of %d has no member %d", r.members(), b.first);
    return nullptr;
  }
  const void* in = PyArray_DATA(b.in);
  void* out = PyArray_DATA(b.out);
  const i64 bytes = PyArray_NBYTES(b.in);
  return meet([&] { return r.permute(b.member, in, bytes, out, b.first); });
}

PyObject* py_all_reduce(PyObject* self, PyObject* args) {
  Buffers b;
  i64 count;
  Rendezvous& r = meeting_of(self);
  if (!b.parse(self, args, "iOOii") || !b.has_sizes(1, 1) || !b.has_type(count)) return nullptr;
  const void* in = PyArray_DATA(b.in);
  void* out = PyArray_DATA(b.out);
  return meet([&] {
    return r.all_reduce(b.member, in, count, out, static_cast<Rendezvous::Op>(b.first),
                        static_cast<Rendezvous::Type>(b.second));
  });
}

PyObject* py_reduce_scatter(PyObject* self, PyObject* args) {
  Buffers b;
  i64 count;
  Rendezvous& r = meeting_of(self);
  if (!b.parse(self, args, "iOOii") || !b.has_sizes(r.members(), 1) || !b.has_type(count)) {
    return nullptr;
  }
  const void* in = PyArray_DATA(b.in);
  void* out = PyArray_DATA(b.out);
  return meet([&] {
    return r.reduce_scatter(b.member, in, count, out, static_cast<Rendezvous::Op>(b.first),
                            static_cast<Rendezvous::Type>(b.second));
  });
}

PyObject* py_leave(PyObject* self, PyObject*) {
  meeting_of(self).leave();
  Py_RETURN_NONE;
}

PyObject* py_break_up(PyObject* self, PyObject*) {
  meeting_of(self).break_up();
  Py_RETURN_NONE;
}

PyObject* py_reset(PyObject* self, PyObject*) {
  meeting_of(self).reset();
  Py_RETURN_NONE;
}

// group_table([(key, Rendezvous or None, member, size), ...]): for set_groups.
PyObject* group_table(PyObject*, PyObject* list) {
  Ref items(PySequence_Fast(list, "group_table takes a sequence"));
  if (!items) return nullptr;
  auto* table = new (std::nothrow) GroupTable();
  if (table == nullptr) return PyErr_NoMemory();
  PyObject* capsule = PyCapsule_New(table, nullptr, free_table);
  if (capsule == nullptr) {
    delete table;
    return nullptr;
  }
  for (Py_ssize_t k = 0; k < PySequence_Fast_GET_SIZE(items.get()); ++k) {
    long long key;
    PyObject* meeting;
    int member, size;
    if (!PyArg_ParseTuple(PySequence_Fast_GET_ITEM(items.get(), k), "LOii", &key, &meeting,
                          &member, &size)) {
      Py_DECREF(capsule);
      return nullptr;
    }
    const bool own = Py_TYPE(meeting) == reinterpret_cast<PyTypeObject*>(rendezvous_type);
    if (own) table->held.push_back(Py_NewRef(meeting));
    table->groups.push_back(Group{key, own ? &meeting_of(meeting) : nullptr, member, size});
  }
  return capsule;
}

// set_groups(table or None, python, broken): of the rank that this thread runs from now on.
PyObject* set_groups(PyObject*, PyObject* args) {
  PyObject *table, *python, *broken;
  if (!PyArg_ParseTuple(args, "OOO:set_groups", &table, &python, &broken)) return nullptr;
  if (table == Py_None) {
    groups_here = Groups();
    Py_RETURN_NONE;
  }
  auto* found = static_cast<GroupTable*>(PyCapsule_GetPointer(table, nullptr));
  if (found == nullptr) return nullptr;
  groups_here = Groups{found->groups.data(), found->groups.size(), python, broken};  // borrowed
  Py_RETURN_NONE;
}

PyMethodDef functions[] = {
    {"group_table", group_table, METH_O,
     "group_table([(key, Rendezvous or None, member, size)]): the groups of a rank."},
    {"set_groups", set_groups, METH_VARARGS,
     "set_groups(table, python, broken): those of the rank that this thread runs; None for none."},
    {nullptr, nullptr, 0, nullptr}};

PyMethodDef methods[] = {
    {"barrier", py_barrier, METH_NOARGS, "barrier(): once all members are here."},
    {"all_gather", py_all_gather, METH_VARARGS, "all_gather(member, x, out)"},
    {"all_to_all", py_all_to_all, METH_VARARGS, "all_to_all(member, x, out)"},
    {"permute", py_permute, METH_VARARGS, "permute(member, x, out, source): -1 for zeros"},
    {"all_reduce", py_all_reduce, METH_VARARGS, "all_reduce(member, x, out, op, type)"},
    {"reduce_scatter", py_reduce_scatter, METH_VARARGS, "reduce_scatter(member, x, out, op, type)"},
    {"leave", py_leave, METH_NOARGS, "leave(): a member comes no more."},
    {"break_up", py_break_up, METH_NOARGS, "break_up(): all members get False."},
    {"reset", py_reset, METH_NOARGS, "reset(): begin anew, while nobody is here."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

bool init_rendezvous(PyObject* module) {
  PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void*>(make)},
                         {Py_tp_dealloc, reinterpret_cast<void*>(dealloc)},
                         {Py_tp_methods, methods},
                         {0, nullptr}};
  PyType_Spec spec = {"functrans._runtime.Rendezvous", sizeof(RendezvousObject), 0,
                      Py_TPFLAGS_DEFAULT, slots};
  const Ref type(PyType_FromSpec(&spec));
  if (!type) return false;
  rendezvous_type = Py_NewRef(type.get());
  register_library("collective", reinterpret_cast<void*>(collective));
  return PyModule_AddFunctions(module, functions) == 0 &&
         PyModule_AddObjectRef(module, "Rendezvous", type.get()) == 0;
}

}  // namespace functrans
