// The tape of reverse mode: recording operations on tangents, and the walk back along it.
#pragma once

#include "common.h"

namespace functrans {

// set_tape_types(trace, tracer, equation, linear, aval, helpers): Python's classes and functions.
PyObject* set_tape_types(PyObject*, PyObject* const* args, Py_ssize_t nargs);

// tape_process(trace, primitive, args, params): LinearTrace.process.
PyObject* tape_process(PyObject*, PyObject* const* args, Py_ssize_t nargs);

// tape_backwards(trace, cotangents, masked): from the end of the tape to its start.
PyObject* tape_backwards(PyObject*, PyObject* const* args, Py_ssize_t nargs);

}  // namespace functrans
