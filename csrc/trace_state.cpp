#include "trace_state.h"

namespace functrans {

// A thread that ends with a trace still set leaks that one object: its destructor would need the
// GIL.
thread_local ThreadState thread_state;

PyObject* get_trace(PyObject*, PyObject*) {
  PyObject* trace = thread_state.trace;
  return Py_NewRef(trace == nullptr ? Py_None : trace);
}

PyObject* set_trace(PyObject*, PyObject* trace) {
  PyObject* previous = thread_state.trace;
  thread_state.trace = trace == Py_None ? nullptr : Py_NewRef(trace);
  return previous == nullptr ? Py_NewRef(Py_None) : previous;  // the reference goes to the caller
}

}  // namespace functrans
