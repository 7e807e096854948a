// What the descriptions of programs have in common, on CPUs and GPUs.
#pragma once

#include "program.h"

namespace functrans {

// Calls `read(item)` on every item of a sequence; false with an exception set.
template <typename Read>
bool each(PyObject* sequence, Read read) {
  Ref items(PySequence_Tuple(sequence));
  if (!items) return false;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(items.get()); ++i) {
    if (!read(PyTuple_GET_ITEM(items.get(), i))) return false;
  }
  return true;
}

inline bool read_int(PyObject* object, npy_intp& value) {
  value = PyNumber_AsSsize_t(object, PyExc_OverflowError);
  return value != -1 || !PyErr_Occurred();
}

template <typename AnyProgram>
bool read_constant(PyObject* object, AnyProgram& program) {
  Ref array(PyArray_FromAny(object, nullptr, 0, 0,
                            NPY_ARRAY_CARRAY_RO | NPY_ARRAY_NOTSWAPPED | NPY_ARRAY_ENSUREARRAY,
                            nullptr));
  if (!array) return false;
  program.constants.push_back(array.release());
  return true;
}

template <typename AnyProgram>
bool read_donated(PyObject* object, AnyProgram& program) {
  npy_intp input;
  if (!read_int(object, input)) return false;
  if (input < 0 || static_cast<std::size_t>(input) >= program.inputs.size()) {
    PyErr_Format(PyExc_ValueError, "input %zd cannot be donated: there are %zu",
                 static_cast<Py_ssize_t>(input), program.inputs.size());
    return false;
  }
  program.donated[static_cast<std::size_t>(input)] = true;
  program.any_donated = true;
  return true;
}

// The leaves that a program is called with, as a tuple; null with an exception set.
inline PyObject* read_leaves(PyObject* const* args, std::size_t nargsf, PyObject* kwnames,
                             std::size_t inputs) {
  if (PyVectorcall_NARGS(nargsf) != 1 || (kwnames != nullptr && PyTuple_GET_SIZE(kwnames) != 0)) {
    PyErr_SetString(PyExc_TypeError, "a program takes one list of leaves");
    return nullptr;
  }
  Ref leaves(PySequence_Tuple(args[0]));
  if (!leaves) return nullptr;
  if (static_cast<std::size_t>(PyTuple_GET_SIZE(leaves.get())) == inputs) return leaves.release();
  PyErr_Format(PyExc_TypeError, "a program with %zu inputs was called with %zd leaves", inputs,
               PyTuple_GET_SIZE(leaves.get()));
  return nullptr;
}

}  // namespace functrans
