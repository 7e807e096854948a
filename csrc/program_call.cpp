// One call of a Program: leaves to buffers, outputs and arena, the generated code, errors.
#include "allocator.h"
#include "array.h"
#include "inline_vector.h"
#include "interrupts.h"
#include "loops.h"
#include "program.h"
#include "thread_costs.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <optional>

namespace functrans {
namespace {

// Arenas up to here lie on the stack: an allocation less, 30 ns.
constexpr std::size_t kStackArena = 4096;

PyObject* object(PyArrayObject* np) { return reinterpret_cast<PyObject*>(np); }
PyArrayObject* ndarray(PyObject* np) { return reinterpret_cast<PyArrayObject*>(np); }

struct ScalarSlot {
  alignas(16) char bytes[16];
};

// All that a call holds, on the stack for usual sizes.
struct Call {
  explicit Call(const Program& p) : program(p) { context.program = &p; }
  ~Call();
  bool gather(PyObject* const* leaves);
  bool make_outputs(PyObject* const* leaves);
  bool make_arena();
  bool fill_aliased(PyObject* const* leaves);
  bool run();

  const Program& program;
  CallContext context{};
  InlineVector<char*, 48> buffers;
  InlineVector<PyObject*, 48> held;     // what the buffers of inputs lie in, owned; null for scalars
  InlineVector<PyObject*, 32> outputs;  // owned; null until the memory of an input is taken
  InlineVector<ScalarSlot, 8> scalars;  // Python scalars in the dtype of their input
  InlineVector<std::int64_t, 16> sizes;
  InlineVector<std::int64_t, 64> dims;  // of all outputs, where some are symbolic
  std::int64_t arena_bytes = 0;
  char* arena = nullptr;
  bool arena_on_stack = false;
  alignas(64) char stack[kStackArena];
};

// Memory of a call that somebody else still looks at: through an array that a host call borrowed
// and that the frames of a traceback hold, as a rule.
struct Kept {
  std::vector<PyObject*> objects;
  char* arena = nullptr;
};

void free_kept(PyObject* capsule) {
  auto* kept = static_cast<Kept*>(PyCapsule_GetPointer(capsule, nullptr));
  for (PyObject* one : kept->objects) Py_XDECREF(one);
  deallocate(kept->arena);
  delete kept;
}

Call::~Call() {
  if (context.kept != nullptr) {
    auto* kept = static_cast<Kept*>(PyCapsule_GetPointer(context.kept, nullptr));
    try {
      kept->objects.reserve(held.size() + outputs.size() + program.constants.size());
    } catch (const std::bad_alloc&) {
      return;  // leaked: better than memory that is freed while in use
    }
    for (PyObject* one : held) kept->objects.push_back(one);
    for (PyObject* one : outputs) kept->objects.push_back(one);
    for (PyObject* one : program.constants) kept->objects.push_back(Py_NewRef(one));
    kept->arena = arena;
    Py_DECREF(context.kept);
    return;
  }
  if (!arena_on_stack) deallocate(arena);
  for (PyObject* one : held) Py_XDECREF(one);
  for (PyObject* one : outputs) Py_XDECREF(one);
}

void raise_misfit(std::size_t index, const ArraySpec& spec, PyArrayObject* np) {
  Ref shape(PyArray_IntTupleFromIntp(PyArray_NDIM(np), PyArray_DIMS(np)));
  Ref expected(PyList_New(0));
  if (!shape || !expected) return;
  for (npy_intp dim : spec.dims) {
    Ref item(dim == kSymbolic ? Py_NewRef(Py_None) : PyLong_FromSsize_t(dim));
    if (!item || PyList_Append(expected.get(), item.get()) < 0) return;
  }
  PyErr_Format(PyExc_TypeError, "input %zu of the program must have shape %R, not %R", index,
               expected.get(), shape.get());
}

bool matches(const ArraySpec& spec, PyArrayObject* np) {
  PyArray_Descr* descr = PyArray_DESCR(np);
  return (descr == spec.descr ||
          (descr->type_num == spec.descr->type_num && PyArray_EquivTypes(descr, spec.descr))) &&
         PyArray_ISCARRAY_RO(np);
}

bool Call::gather(PyObject* const* leaves) {
  const std::size_t count = program.inputs.size();
  for (std::size_t i = 0; i < count; ++i) {
    const ArraySpec& spec = program.inputs[i];
    PyObject* leaf = leaves[i];
    PyArrayObject* np = nullptr;
    if (is_exact_array(leaf)) {
      if (!has_data(as_array(leaf))) return false;
      np = as_array(leaf)->np;
    } else if (PyArray_CheckExact(leaf)) {
      np = ndarray(leaf);
    } else if (spec.dims.empty() && program.hosts.empty()) {  // host calls may keep what they see
      ScalarSlot slot;
      const Outcome stored = store_scalar(leaf, spec.descr->type_num, slot.bytes);
      if (stored == Outcome::error) return false;
      if (stored == Outcome::done) {
        scalars.push_back(slot);
        buffers.push_back(nullptr);  // filled in below: the slots may still move
        held.push_back(nullptr);
        continue;
      }
    }
    if (np != nullptr && matches(spec, np)) {
      Py_INCREF(np);
    } else {
      if (is_array(leaf)) {
        if (!has_data(as_array(leaf))) return false;
        leaf = object(as_array(leaf)->np);
      }
      Py_INCREF(spec.descr);
      np = ndarray(PyArray_FromAny(leaf, spec.descr, 0, 0,
                                   NPY_ARRAY_CARRAY_RO | NPY_ARRAY_NOTSWAPPED |
                                       NPY_ARRAY_FORCECAST | NPY_ARRAY_ENSUREARRAY,
                                   nullptr));
      if (np == nullptr) return false;
    }
    held.push_back(object(np));
    buffers.push_back(PyArray_BYTES(np));
    if (!spec.fits(np)) {
      raise_misfit(i, spec, np);
      return false;
    }
  }
  for (std::size_t i = 0, slot = 0; slot < scalars.size(); ++i) {
    if (held[i] == nullptr) buffers[i] = scalars[slot++].bytes;
  }
  for (PyObject* constant : program.constants) {
    buffers.push_back(PyArray_BYTES(ndarray(constant)));
  }
  for (const auto& [input, axis] : program.sizes) {
    sizes.push_back(PyArray_DIM(ndarray(held[input]), axis));
  }
  return true;
}

// Whether output i can have the ndarray of the donated leaf that it replaces: it is nobody else's,
// the Array holds it once and we hold it once.
bool can_take(const ArraySpec& out, const npy_intp* shape, PyObject* leaf, PyObject* held) {
  if (held == nullptr || !is_exact_array(leaf) || object(as_array(leaf)->np) != held) return false;
  auto* np = ndarray(held);
  return Py_REFCNT(held) == 2 && PyArray_CHKFLAGS(np, NPY_ARRAY_OWNDATA) &&
         PyArray_BASE(np) == nullptr && PyArray_DESCR(np) == out.descr &&
         PyArray_NDIM(np) == out.ndim() &&
         PyArray_CompareLists(PyArray_DIMS(np), shape, out.ndim());
}

bool Call::make_outputs(PyObject* const* leaves) {
  arena_bytes = program.arena_bytes;
  if (program.shapes != nullptr) {
    for (std::size_t i = 0; i < program.out_dims; ++i) dims.push_back(0);
    program.shapes(sizes.data(), dims.data(), &arena_bytes);
    if (arena_bytes < 0) {
      PyErr_SetString(PyExc_SystemError, "a program asked for an arena of negative size");
      return false;
    }
  }
  std::size_t at = 0;
  for (const ArraySpec& spec : program.outputs) {
    const npy_intp* shape = spec.dims.data();
    if (program.shapes != nullptr) {
      shape = reinterpret_cast<const npy_intp*>(dims.data() + at);
      at += spec.dims.size();
      for (int k = 0; k < spec.ndim(); ++k) {
        if (shape[k] >= 0 && (spec.dims[k] == kSymbolic || spec.dims[k] == shape[k])) continue;
        PyErr_Format(PyExc_ValueError, "the sizes of this call give an output of %zd elements "
                     "along axis %d", static_cast<Py_ssize_t>(shape[k]), k);
        return false;
      }
    }
    if (spec.alias >= 0 && program.donated[spec.alias] &&
        can_take(spec, shape, leaves[spec.alias], held[spec.alias])) {
      outputs.push_back(nullptr);
      buffers.push_back(buffers[spec.alias]);
      continue;
    }
    Py_INCREF(spec.descr);
    PyArrayObject* np = new_ndarray(spec.descr, spec.ndim(), shape, true);
    if (np == nullptr) return false;
    outputs.push_back(object(np));
    buffers.push_back(PyArray_BYTES(np));
  }
  return true;
}

bool Call::make_arena() {
  if (arena_bytes == 0) return true;
  // Host calls may keep what lies in the arena: it must be able to outlive this frame.
  if (static_cast<std::size_t>(arena_bytes) <= kStackArena && program.hosts.empty()) {
    arena = stack;
    arena_on_stack = true;
    return true;
  }
  arena = static_cast<char*>(allocate(static_cast<std::size_t>(arena_bytes)));
  if (arena != nullptr) return true;
  PyErr_Format(PyExc_MemoryError, "out of memory: %lld bytes were asked for temporaries",
               static_cast<long long>(arena_bytes));
  return false;
}

// Aliased outputs take their input's memory, or begin as a copy of it. Done with the GIL held and
// before anything runs, so that no other thread can still reach memory that is written to; and
// after all that can fail for want of memory, so that no array is lost by that.
bool Call::fill_aliased(PyObject* const* leaves) {
  for (std::size_t i = 0; i < program.outputs.size(); ++i) {
    const npy_intp j = program.outputs[i].alias;
    if (j < 0) continue;
    if (outputs[i] == nullptr) {
      PyArrayObject* taken = take_data(as_array(leaves[j]));
      if (taken == nullptr) return false;
      PyArray_ENABLEFLAGS(taken, NPY_ARRAY_WRITEABLE);
      outputs[i] = object(taken);
      continue;
    }
    const npy_intp bytes = PyArray_NBYTES(ndarray(outputs[i]));
    const npy_intp given = held[j] != nullptr ? PyArray_NBYTES(ndarray(held[j]))
                                              : PyDataType_ELSIZE(program.inputs[j].descr);
    if (given != bytes) {
      PyErr_SetString(PyExc_SystemError,
                      "a program's output has another size than the input it replaces");
      return false;
    }
    std::memcpy(PyArray_DATA(ndarray(outputs[i])), buffers[j], static_cast<std::size_t>(bytes));
  }
  return true;
}

bool Call::run() {
  CallContext* outer = nullptr;
  if (program.heavy) {
    outer = std::exchange(running_call, &context);
    context.thread = PyEval_SaveThread();
  }
  int status;
  {
    std::optional<ProgramRun> threads;
    if (program.heavy) threads.emplace(program.threads);
    const ProgramEntry entry = program.entry.load(std::memory_order_acquire);
    status = entry(&program.api, &context, buffers.data(), arena, sizes.data());
  }
  if (program.heavy) {
    restore_thread(context.thread);
    running_call = outer;
  }
  if (PyErr_Occurred()) return false;
  if (status == 0) return true;
  if (status == 2) {
    PyErr_SetString(PyExc_MemoryError, "out of memory: a program could not allocate temporaries");
  } else {
    PyErr_Format(PyExc_SystemError, "a program failed with status %d and no exception", status);
  }
  return false;
}

// Donated arrays are gone whether or not their memory could be used: what a program does to its
// caller's arrays must not hang on who else looks at them.
bool delete_donated(const Program& program, PyObject* const* leaves) {
  for (std::size_t i = 0; i < program.inputs.size(); ++i) {
    if (!program.donated[i] || !is_exact_array(leaves[i])) continue;
    if (as_array(leaves[i])->loop_type == kDonated) continue;
    PyArrayObject* taken = take_data(as_array(leaves[i]));
    if (taken == nullptr) return false;
    Py_DECREF(taken);
  }
  return true;
}

// Calls the watcher of a program by whose time it is due. False with an exception set.
bool note_time(const Program& program, std::int64_t nanoseconds) {
  nanoseconds = std::max<std::int64_t>(nanoseconds, 1);
  const std::int64_t left = program.unwatched.fetch_sub(nanoseconds);
  if (left <= 0 || left > nanoseconds) return true;
  Ref watcher(std::exchange(program.watcher, nullptr));
  if (!watcher) return true;
  Ref done(PyObject_CallOneArg(watcher.get(), program.self));
  return static_cast<bool>(done);
}

}  // namespace

PyObject* make_kept() noexcept {
  auto* kept = new (std::nothrow) Kept();
  PyObject* capsule = kept == nullptr ? nullptr : PyCapsule_New(kept, nullptr, free_kept);
  if (capsule == nullptr) delete kept;
  return capsule;
}

bool run_program(const Program& program, PyObject* const* leaves, PyObject** results) {
  const bool is_watched = program.unwatched.load(std::memory_order_relaxed) > 0;
  const std::int64_t begin = is_watched ? clock_nanoseconds() : 0;
  Call call(program);
  if (!call.gather(leaves) || !call.make_outputs(leaves) || !call.make_arena()) return false;
  if (program.any_alias && !call.fill_aliased(leaves)) return false;
  if (!call.run()) return false;
  if (program.any_donated && !delete_donated(program, leaves)) return false;
  if (is_watched && !note_time(program, clock_nanoseconds() - begin)) return false;
  for (std::size_t i = 0; i < call.outputs.size(); ++i) {
    results[i] = std::exchange(call.outputs[i], nullptr);
    if (call.context.kept != nullptr) call.outputs[i] = Py_NewRef(results[i]);
  }
  return true;
}

}  // namespace functrans
