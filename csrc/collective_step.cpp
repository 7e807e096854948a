#include "collective_step.h"

#include "collective_reduction.h"
#include "interrupts.h"
#include "library.h"
#include "program.h"

#include <utility>

namespace functrans {
namespace {

using i64 = std::int64_t;

// The numbers of `KINDS` in the lowering of collectives.
enum Kind : i64 { kAllReduce, kAllGather, kReduceScatter, kAllToAll, kPermute };

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
  const i64 bytes = count * element_size(static_cast<Communicator::Type>(type));
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
  Communicator& communicator = *group.communicator;
  const i64 bytes = count * element_size(static_cast<Communicator::Type>(type));
  switch (kind) {
    case kAllReduce:
      return communicator.all_reduce(group.member, in, count, out,
                                     static_cast<Communicator::Op>(op),
                                     static_cast<Communicator::Type>(type));
    case kReduceScatter:
      return communicator.reduce_scatter(group.member, in, count, out,
                                         static_cast<Communicator::Op>(op),
                                         static_cast<Communicator::Type>(type));
    case kAllGather: return communicator.all_gather(group.member, in, bytes, out);
    case kAllToAll: return communicator.all_to_all(group.member, in, bytes, out);
    default: {
      i64 source = -1, destination = -1;
      for (i64 p = 0; p < pairs; ++p) {
        if (ends[2 * p + 1] == group.member) source = ends[2 * p];
        if (ends[2 * p] == group.member) destination = ends[2 * p + 1];
      }
      return communicator.permute(group.member, in, bytes, out, static_cast<int>(source),
                             static_cast<int>(destination));
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
    if (group.communicator == nullptr) {
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

}  // namespace

void set_groups_of_thread(const Groups& groups) { groups_here = groups; }
const Groups& groups_of_thread() { return groups_here; }

void register_collective() {
  register_library("collective", reinterpret_cast<void*>(collective));
}

}  // namespace functrans
