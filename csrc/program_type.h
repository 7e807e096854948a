// What the types of programs have in common: they hold callables of the host, and are called.
#pragma once

#include "program.h"

#include <cstddef>
#include <cstring>
#include <new>

#include <structmember.h>

namespace functrans {

// `Object` begins as a PyObject and has `vectorcall` and `program`, a pointer to what has `hosts`.
template <typename Object>
struct ProgramType {
  using Make = PyObject* (*)(PyTypeObject*, PyObject*, PyObject*);

  // The type called `name`, in a module under the last part of that; null on error. `extra` is one
  // slot more.
  template <Make make, vectorcallfunc call>
  static PyTypeObject* add(PyObject* module, const char* name, PyType_Slot extra) {
    static PyMemberDef members[] = {
        {"__vectorcalloffset__", T_PYSSIZET, offsetof(Object, vectorcall), READONLY, nullptr},
        {nullptr, 0, 0, 0, nullptr}};
    PyType_Slot slots[] = {slot(Py_tp_new, create<make, call>),
                           slot(Py_tp_dealloc, dealloc),
                           slot(Py_tp_traverse, traverse),
                           slot(Py_tp_clear, clear),
                           slot(Py_tp_call, PyVectorcall_Call),
                           {Py_tp_members, members},
                           extra,
                           {0, nullptr}};
    PyType_Spec spec = {name, sizeof(Object), 0,
                        Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
                        slots};
    PyObject* type = PyType_FromSpec(&spec);
    if (type == nullptr || PyModule_AddObjectRef(module, std::strrchr(name, '.') + 1, type) != 0) {
      return nullptr;
    }
    return reinterpret_cast<PyTypeObject*>(type);
  }

 private:
  template <typename Function>
  static PyType_Slot slot(int id, Function function) {
    return {id, reinterpret_cast<void*>(function)};
  }

  template <Make make, vectorcallfunc call>
  static PyObject* create(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
    try {
      PyObject* object = make(type, args, kwargs);
      if (object != nullptr) reinterpret_cast<Object*>(object)->vectorcall = call;
      return object;
    } catch (const std::bad_alloc&) {
      return PyErr_NoMemory();
    }
  }

  static int traverse(PyObject* object, visitproc visit, void* arg) {
    Py_VISIT(Py_TYPE(object));
    const auto* program = reinterpret_cast<Object*>(object)->program;
    if (program == nullptr) return 0;
    for (const auto& host : program->hosts) Py_VISIT(host.callable);
    return 0;
  }

  static int clear(PyObject* object) {
    auto* program = reinterpret_cast<Object*>(object)->program;
    if (program == nullptr) return 0;
    for (auto& host : program->hosts) Py_XSETREF(host.callable, Py_NewRef(Py_None));
    return 0;
  }

  static void dealloc(PyObject* object) {
    PyTypeObject* type = Py_TYPE(object);
    PyObject_GC_UnTrack(object);
    delete reinterpret_cast<Object*>(object)->program;
    type->tp_free(object);
    Py_DECREF(type);
  }
};

}  // namespace functrans
