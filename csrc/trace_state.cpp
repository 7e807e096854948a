#include "trace_state.h"

namespace functrans {

// A thread that ends leaks the settings that it saw last, and a trace that is still set: a
// destructor would need the GIL.
thread_local ThreadState thread_state;

namespace {

// Owned until the process ends.
PyObject* config_variable = nullptr;
PyObject* process_config = nullptr;

}  // namespace

PyObject* current_config(PyObject*, PyObject*) {
  PyObject* config = nullptr;
  if (config_variable != nullptr && PyContextVar_Get(config_variable, nullptr, &config) < 0) {
    return nullptr;
  }
  return config != nullptr ? config : Py_NewRef(process_config == nullptr ? Py_None : process_config);
}

PyObject* set_process_config(PyObject*, PyObject* args) {
  PyObject *variable = nullptr, *config = nullptr;
  if (!PyArg_ParseTuple(args, "O!O", &PyContextVar_Type, &variable, &config)) return nullptr;
  Py_XSETREF(config_variable, Py_NewRef(variable));
  Py_XSETREF(process_config, Py_NewRef(config));
  Py_RETURN_NONE;
}

bool update_context_token() {
  Ref config(current_config(nullptr, nullptr));
  if (!config) return false;
  if (config.get() == thread_state.config) return true;
  Ref token(PyObject_GetAttrString(config.get(), "token"));
  if (!token) return false;
  const long long value = PyLong_AsLongLong(token.get());
  if (value == -1 && PyErr_Occurred()) return false;
  thread_state.context_token = value;
  Py_XSETREF(thread_state.config, Py_NewRef(config.get()));
  return true;
}

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
