#include "hooks.h"

#include <cstring>

namespace functrans {
namespace {

constexpr int kHooks = static_cast<int>(Hook::count);
PyObject* hooks[kHooks] = {};
const char* const hook_names[kHooks] = {
#define X(name) #name,
    FUNCTRANS_HOOKS(X)
#undef X
};

// "and_" and "or_" are keywords of C++ in the enum; Python says "and", "or", "xor".
int find_hook(const char* name) {
  const std::size_t length = std::strlen(name);
  for (int i = 0; i < kHooks; ++i) {
    const char* known = hook_names[i];
    const std::size_t n = std::strlen(known);
    const std::size_t stem = known[n - 1] == '_' ? n - 1 : n;
    if (stem == length && std::memcmp(known, name, stem) == 0) return i;
  }
  return -1;
}

}  // namespace

static PyObject* error_filter = nullptr;

void filter_error() {
  if (error_filter == nullptr || PyErr_Occurred() == nullptr) return;
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  if (traceback != nullptr) PyException_SetTraceback(value, traceback);
  Ref callable = Ref::borrow(error_filter);
  Ref filtered(PyObject_CallOneArg(callable.get(), value));
  if (filtered && PyExceptionInstance_Check(filtered.get())) {
    Py_DECREF(type);
    Py_DECREF(value);
    Py_XDECREF(traceback);
    traceback = PyException_GetTraceback(filtered.get());
    value = filtered.release();
    type = Py_NewRef(reinterpret_cast<PyObject*>(Py_TYPE(value)));
  } else {
    PyErr_Clear();  // the stack or the memory is exhausted: the error goes on as it is
  }
  PyErr_Restore(type, value, traceback);
}

PyObject* set_error_filter(PyObject*, PyObject* callable) {
  if (!PyCallable_Check(callable)) {
    PyErr_SetString(PyExc_TypeError, "set_error_filter expects a callable");
    return nullptr;
  }
  Py_XSETREF(error_filter, Py_NewRef(callable));
  Py_RETURN_NONE;
}

bool has_hook(Hook hook) { return hooks[static_cast<int>(hook)] != nullptr; }

PyObject* call_hook(Hook hook, PyObject* const* args, Py_ssize_t nargs) {
  const int index = static_cast<int>(hook);
  if (hooks[index] == nullptr) {
    PyErr_Format(PyExc_RuntimeError,
                 "functrans: no fallback is registered for '%s' "
                 "(functrans._runtime.set_operator_fallbacks)",
                 hook_names[index]);
    return nullptr;
  }
  Ref callable = Ref::borrow(hooks[index]);  // the call may replace the table
  return leave(PyObject_Vectorcall(callable.get(), args, nargs, nullptr));
}

PyObject* set_operator_fallbacks(PyObject*, PyObject* table) {
  if (!PyDict_Check(table)) {
    PyErr_Format(PyExc_TypeError, "set_operator_fallbacks expects a dict of callables, got %.200s",
                 Py_TYPE(table)->tp_name);
    return nullptr;
  }
  Ref items(PyDict_Copy(table));
  if (!items) return nullptr;
  for (int store = 0; store < 2; ++store) {  // all entries are checked before the first is stored
    PyObject* key = nullptr;
    PyObject* value = nullptr;
    Py_ssize_t position = 0;
    while (PyDict_Next(items.get(), &position, &key, &value)) {
      const char* name = PyUnicode_Check(key) ? PyUnicode_AsUTF8(key) : nullptr;
      if (name == nullptr) PyErr_Clear();
      const int index = name == nullptr ? -1 : find_hook(name);
      if (index < 0) {
        PyErr_Format(PyExc_ValueError, "unknown operator name %R", key);
        return nullptr;
      }
      if (!PyCallable_Check(value)) {
        PyErr_Format(PyExc_TypeError, "the fallback for '%s' is not callable", name);
        return nullptr;
      }
      if (store != 0) Py_XSETREF(hooks[index], Py_NewRef(value));
    }
  }
  Py_RETURN_NONE;
}

}  // namespace functrans
