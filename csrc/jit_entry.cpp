#include "jit_entry.h"

#include "array.h"
#include "cuda/device_program.h"
#include "inline_vector.h"
#include "program.h"

namespace functrans {
namespace {

// One result of the program as an Array with the weak flag of its entry.
PyObject* wrap_output(PyObject* value, bool weak) {
  if (is_exact_array(value)) {
    ArrayObject* array = as_array(value);
    if (array->loop_type == kDonated && !raise_donated(array)) return nullptr;
    if (array->weak_type == weak) return Py_NewRef(value);
    return share_array(array, weak, array->place);
  }
  if (PyArray_CheckExact(value)) {
    Py_INCREF(value);
    return wrap_ndarray(reinterpret_cast<PyArrayObject*>(value), weak);
  }
  if (PyArray_Check(value) || PyArray_CheckScalar(value))
    return wrap_object(value, weak, array_type);
  PyErr_Format(PyExc_TypeError, "a jit program returned %.200s where an array was expected",
               Py_TYPE(value)->tp_name);
  return nullptr;
}

// The outputs of a call, in the user's containers.
PyObject* build_result(const Entry& entry, PyObject* const* outputs, std::size_t count) {
  if (entry.structure != nullptr) return entry.structure->build(outputs);
  Ref list(PyList_New(static_cast<Py_ssize_t>(count)));
  if (!list) return nullptr;
  for (std::size_t i = 0; i < count; ++i) {
    PyList_SET_ITEM(list.get(), static_cast<Py_ssize_t>(i), Py_NewRef(outputs[i]));
  }
  return PyObject_CallOneArg(entry.unflatten.get(), list.get());
}

using Leaves = InlineVector<PyObject*, 32>;

// The inputs of a call: the bound ones and then the leaves.
PyObject* const* all_inputs(const Entry& entry, const Signature& signature, Leaves& inputs) {
  if (entry.bound.empty()) return signature.leaves.data();
  for (const Ref& one : entry.bound) inputs.push_back(one.get());
  for (PyObject* leaf : signature.leaves) inputs.push_back(leaf);
  return inputs.data();
}

// A program on a device: its outputs are Arrays.
PyObject* run_on_device(const Entry& entry, const Signature& signature) {
  cuda::CudaProgram& program = cuda::as_cuda_program(entry.program.get());
  Leaves inputs, outputs;
  PyObject* const* leaves = all_inputs(entry, signature, inputs);
  for (std::size_t i = 0; i < program.outputs.size(); ++i) outputs.push_back(nullptr);
  if (!cuda::run_cuda_program(program, leaves, &entry.weak, outputs.data())) return nullptr;
  PyObject* result = build_result(entry, outputs.data(), outputs.size());
  for (PyObject* one : outputs) Py_DECREF(one);
  return result;
}

// A compiled program: from leaves to Arrays without lists or Python in between.
PyObject* run_compiled(const Entry& entry, const Signature& signature) {
  const Program& program = as_program(entry.program.get());
  Leaves inputs;
  PyObject* const* leaves = all_inputs(entry, signature, inputs);
  const std::size_t count = program.outputs.size();
  InlineVector<PyObject*, 32> outputs;
  for (std::size_t i = 0; i < count; ++i) outputs.push_back(nullptr);
  if (!run_program(program, leaves, outputs.data())) return nullptr;
  bool ok = true;
  for (std::size_t i = 0; i < count; ++i) {
    outputs[i] = wrap_ndarray(reinterpret_cast<PyArrayObject*>(outputs[i]), entry.weak[i]);
    ok &= outputs[i] != nullptr;
  }
  PyObject* result = ok ? build_result(entry, outputs.data(), count) : nullptr;
  for (PyObject* one : outputs) Py_XDECREF(one);
  return result;
}

// Whether the results of a call are Arrays on the memory of arguments.
bool is_forwarded(const Entry& entry, const Signature& signature) {
  for (std::size_t leaf : entry.forwarded) {
    if (!is_exact_array(signature.leaves[leaf])) return false;
  }
  return !entry.forwarded.empty();
}

PyObject* forward(const Entry& entry, const Signature& signature) {
  InlineVector<PyObject*, 32> outputs;
  bool ok = true;
  for (std::size_t i = 0; ok && i < entry.forwarded.size(); ++i) {
    ArrayObject* array = as_array(signature.leaves[entry.forwarded[i]]);
    PyObject* output = has_data(array) ? share_array(array, entry.weak[i], kAnywhere) : nullptr;
    ok = output != nullptr;
    if (ok) outputs.push_back(output);
  }
  PyObject* result = ok ? build_result(entry, outputs.data(), outputs.size()) : nullptr;
  for (PyObject* one : outputs) Py_DECREF(one);
  return result;
}

bool read_forwarded(PyObject* numbers, Entry& entry) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(numbers); ++i) {
    const Py_ssize_t leaf = PyNumber_AsSsize_t(PyTuple_GET_ITEM(numbers, i), PyExc_OverflowError);
    if (leaf == -1 && PyErr_Occurred()) return false;
    if (leaf < 0 || static_cast<std::size_t>(leaf) >= entry.key.leaves) {
      PyErr_Format(PyExc_ValueError, "insert: leaf %zd of a call with %zu", leaf, entry.key.leaves);
      return false;
    }
    entry.forwarded.push_back(static_cast<std::size_t>(leaf));
  }
  if (entry.forwarded.empty() || entry.forwarded.size() == entry.weak.size()) return true;
  PyErr_SetString(PyExc_ValueError, "insert: as many weak flags as results are needed");
  return false;
}

// Whether the entry of a compiled program fits it: run_compiled trusts that.
bool check_program(const Entry& entry) {
  PyObject* program = entry.program.get();
  std::size_t needed, given;
  if (is_program(program)) {
    needed = as_program(program).inputs.size();
    given = as_program(program).outputs.size();
  } else if (cuda::is_cuda_program(program)) {
    needed = cuda::as_cuda_program(program).inputs.size();
    given = cuda::as_cuda_program(program).outputs.size();
  } else {
    if (entry.bound.empty()) return true;
    PyErr_SetString(PyExc_TypeError, "insert: only a Program takes bound arguments");
    return false;
  }
  const std::size_t inputs = entry.bound.size() + entry.key.leaves;
  if (needed == inputs && given == entry.weak.size()) return true;
  PyErr_Format(PyExc_ValueError,
               "insert: the program has %zu inputs and %zu outputs, the call %zu and %zu", needed,
               given, inputs, entry.weak.size());
  return false;
}

}  // namespace

PyObject* run_entry(const Entry& entry, Signature& signature) {
  if (is_forwarded(entry, signature)) return forward(entry, signature);
  if (is_program(entry.program.get())) return run_compiled(entry, signature);
  if (cuda::is_cuda_program(entry.program.get())) return run_on_device(entry, signature);
  Ref leaves(PyList_New(static_cast<Py_ssize_t>(signature.leaves.size())));
  if (!leaves) return nullptr;
  for (std::size_t i = 0; i < signature.leaves.size(); ++i) {
    PyList_SET_ITEM(leaves.get(), static_cast<Py_ssize_t>(i), signature.leaves[i]);
  }
  signature.leaves.clear();  // the list took them over
  Ref result(PyObject_CallOneArg(entry.program.get(), leaves.get()));
  if (!result) return nullptr;
  if (!PyList_CheckExact(result.get()) && !PyTuple_CheckExact(result.get())) {
    PyErr_Format(PyExc_TypeError, "a jit program must return a list of arrays, got %.200s",
                 Py_TYPE(result.get())->tp_name);
    return nullptr;
  }
  const std::size_t count = static_cast<std::size_t>(PySequence_Fast_GET_SIZE(result.get()));
  if (count != entry.weak.size()) {
    PyErr_Format(PyExc_ValueError, "a jit program returned %zu arrays, its entry was made for %zu",
                 count, entry.weak.size());
    return nullptr;
  }
  Ref outputs(PyList_New(static_cast<Py_ssize_t>(count)));
  if (!outputs) return nullptr;
  for (std::size_t i = 0; i < count; ++i) {
    const Py_ssize_t at = static_cast<Py_ssize_t>(i);
    if (at >= PySequence_Fast_GET_SIZE(result.get())) {  // a list that somebody else shortened
      PyErr_SetString(PyExc_RuntimeError, "the result of a jit program changed while it was read");
      return nullptr;
    }
    Ref value = Ref::borrow(PySequence_Fast_GET_ITEM(result.get(), at));
    PyObject* array = wrap_output(value.get(), entry.weak[i]);
    if (array == nullptr) return nullptr;
    PyList_SET_ITEM(outputs.get(), at, array);
  }
  if (entry.structure == nullptr) {
    return PyObject_CallOneArg(entry.unflatten.get(), outputs.get());
  }
  PyObject* const* next = PySequence_Fast_ITEMS(outputs.get());
  return entry.structure->build(next);
}

bool set_program(Entry& entry, PyObject* program, PyObject* forwarded) {
  entry.program = Ref::borrow(program);
  return read_forwarded(forwarded, entry) && check_program(entry);
}

}  // namespace functrans
