// Host calls: a running program calls a Python function on its buffers.
#include "allocator.h"
#include "array.h"
#include "interrupts.h"
#include "program.h"

#include <cstring>
#include <new>

namespace functrans {
namespace {

PyArrayObject* ndarray(PyObject* np) { return reinterpret_cast<PyArrayObject*>(np); }

// An ndarray on memory of the program.
PyObject* view(const ArraySpec& spec, const npy_intp* dims, void* data, bool writeable) {
  Py_INCREF(spec.descr);
  return PyArray_NewFromDescr(&PyArray_Type, spec.descr, spec.ndim(), dims, nullptr, data,
                              writeable ? NPY_ARRAY_CARRAY : NPY_ARRAY_CARRAY_RO, nullptr);
}

PyObject* argument(const HostCall& host, const ArraySpec& spec, const npy_intp* dims, void* data) {
  if (host.borrows) return view(spec, dims, data, false);
  Py_INCREF(spec.descr);
  PyArrayObject* copy = new_ndarray(spec.descr, spec.ndim(), dims, false);
  if (copy == nullptr) return nullptr;
  std::memcpy(PyArray_DATA(copy), data, static_cast<std::size_t>(PyArray_NBYTES(copy)));
  return reinterpret_cast<PyObject*>(copy);
}

PyObject* name_of(PyObject* callable) {
  PyObject* name = PyObject_GetAttrString(callable, "__qualname__");
  if (name != nullptr) return name;
  PyErr_Clear();
  return PyObject_Repr(callable);
}

void raise_result(const HostCall& host, std::size_t index, const ArraySpec& spec,
                  const npy_intp* dims, PyArrayObject* got) {
  Ref name(name_of(host.callable));
  Ref expected(PyArray_IntTupleFromIntp(spec.ndim(), dims));
  Ref shape(PyArray_IntTupleFromIntp(PyArray_NDIM(got), PyArray_DIMS(got)));
  if (!name || !expected || !shape) return;
  PyErr_Format(PyExc_TypeError, "%S returned as result %zu %S%S where the program expects %S%S",
               name.get(), index, PyArray_DESCR(got), shape.get(), spec.descr, expected.get());
}

// Copies one result into the program's buffer.
bool store(const HostCall& host, std::size_t index, PyObject* value, const ArraySpec& spec,
           const npy_intp* dims, void* target) {
  Ref scalar;
  if (is_array(value)) {
    if (!has_data(as_array(value))) return false;
    value = reinterpret_cast<PyObject*>(as_array(value)->np);
  } else if (PyArray_IsScalar(value, Generic)) {
    scalar = Ref(PyArray_FromScalar(value, nullptr));
    if (!scalar) return false;
    value = scalar.get();
  } else if (!PyArray_Check(value)) {
    Ref name(name_of(host.callable));
    if (name) {
      PyErr_Format(PyExc_TypeError, "%S returned as result %zu %.200s where an array was expected",
                   name.get(), index, Py_TYPE(value)->tp_name);
    }
    return false;
  }
  PyArrayObject* np = ndarray(value);
  if (!PyArray_EquivTypes(PyArray_DESCR(np), spec.descr) || PyArray_NDIM(np) != spec.ndim() ||
      !PyArray_CompareLists(PyArray_DIMS(np), dims, spec.ndim())) {
    raise_result(host, index, spec, dims, np);
    return false;
  }
  if (PyArray_ISCARRAY_RO(np)) {
    std::memmove(target, PyArray_DATA(np), static_cast<std::size_t>(PyArray_NBYTES(np)));
    return true;
  }
  Ref out(view(spec, dims, target, true));
  return out && PyArray_CopyInto(ndarray(out.get()), np) == 0;
}

// The dims of one operand: those of the call where it gives them. `at` moves on.
const npy_intp* dims_of(const ArraySpec& spec, const std::int64_t*& at) {
  if (at == nullptr) return spec.dims.data();
  const auto* dims = reinterpret_cast<const npy_intp*>(at);
  at += spec.dims.size();
  return dims;
}

// Calls and stores the results; nothing of them is alive afterwards.
bool invoke(const HostCall& host, PyObject* const* arguments, void* const* buffers,
            const std::int64_t* dims) {
  const std::size_t count = host.inputs.size();
  Ref callable = Ref::borrow(host.callable);
  Ref result(PyObject_Vectorcall(callable.get(), arguments, count, nullptr));
  if (!result) return false;
  if (!PyList_CheckExact(result.get()) && !PyTuple_CheckExact(result.get())) {
    Ref name(name_of(callable.get()));
    if (name) {
      PyErr_Format(PyExc_TypeError, "%S returned %.200s where the program expects a list of arrays",
                   name.get(), Py_TYPE(result.get())->tp_name);
    }
    return false;
  }
  result = Ref(PySequence_Tuple(result.get()));  // nobody else changes a tuple
  if (!result) return false;
  if (static_cast<std::size_t>(PyTuple_GET_SIZE(result.get())) != host.outputs.size()) {
    Ref name(name_of(callable.get()));
    if (name) {
      PyErr_Format(PyExc_TypeError, "%S returned %zd arrays where the program expects %zu",
                   name.get(), PyTuple_GET_SIZE(result.get()), host.outputs.size());
    }
    return false;
  }
  for (std::size_t i = 0; i < host.outputs.size(); ++i) {
    if (!store(host, i, PyTuple_GET_ITEM(result.get(), static_cast<Py_ssize_t>(i)),
               host.outputs[i], dims_of(host.outputs[i], dims), buffers[count + i])) {
      return false;
    }
  }
  return true;
}

// A borrowed argument that is still referenced (by the frames of a traceback, if by nobody else)
// keeps the memory of the call: it may show other values later, but never freed memory. So do its
// views, which hold it as their base.
void keep_borrowed(CallContext& context, const std::vector<Ref>& arguments) {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  for (const Ref& one : arguments) {
    if (Py_REFCNT(one.get()) == 1) continue;
    if (context.kept == nullptr) context.kept = make_kept();
    if (context.kept == nullptr) Py_FatalError("functrans: no memory for a reference");
    PyArray_SetBaseObject(ndarray(one.get()), Py_NewRef(context.kept));
  }
  PyErr_Restore(type, value, traceback);
}

bool call_checked(CallContext& context, const HostCall& host, void* const* buffers,
                  const std::int64_t* dims) {
  if (host.symbolic && dims == nullptr) {
    PyErr_SetString(PyExc_SystemError, "a host call of symbolic sizes was made without them");
    return false;
  }
  std::vector<Ref> arguments;
  std::vector<PyObject*> stack;
  arguments.reserve(host.inputs.size());
  stack.reserve(host.inputs.size());
  for (std::size_t i = 0; i < host.inputs.size(); ++i) {
    Ref one(argument(host, host.inputs[i], dims_of(host.inputs[i], dims), buffers[i]));
    if (!one) return false;
    stack.push_back(one.get());
    arguments.push_back(std::move(one));
  }
  const bool ok = invoke(host, stack.data(), buffers, dims);
  if (host.borrows) keep_borrowed(context, arguments);
  return ok;
}

}  // namespace

bool call_host_on(const HostCall& host, PyObject* const* arguments, void* const* buffers) {
  return invoke(host, arguments, buffers, nullptr);
}

int call_host(void* context, std::int64_t id, void* const* buffers, const std::int64_t* dims) {
  auto& call = *static_cast<CallContext*>(context);
  const bool released = call.thread != nullptr;
  CallContext* const outer = std::exchange(running_call, nullptr);
  if (released) restore_thread(call.thread);
  bool ok = false;
  try {
    if (id < 0 || static_cast<std::size_t>(id) >= call.program->hosts.size()) {
      PyErr_Format(PyExc_SystemError, "a program has no host call %lld",
                   static_cast<long long>(id));
    } else {
      ok = call_checked(call, call.program->hosts[static_cast<std::size_t>(id)], buffers, dims);
    }
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  }
  // An exception stays with the thread state until the call has unwound to Python.
  if (released) call.thread = PyEval_SaveThread();
  running_call = outer;
  return ok ? 0 : 1;
}

}  // namespace functrans
