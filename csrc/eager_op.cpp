#include "eager_op.h"

#include "array.h"
#include "hooks.h"
#include "loops.h"
#include "trace_state.h"

#include <structmember.h>

#include <string_view>

namespace functrans {
namespace {

struct EagerOpObject {
  PyObject_HEAD vectorcallfunc vectorcall;
  PyObject* fallback;
  PyObject* dict;
  PyObject* weakrefs;
  LoopTable* table;
  bool broadcast;
};

EagerOpObject* as_op(PyObject* object) { return reinterpret_cast<EagerOpObject*>(object); }

// Whether the current trace has nothing to do with operations on these arguments: they are arrays
// and Python numbers, and it and its parents leave such operations alone.
bool evaluates(PyObject* const* args, Py_ssize_t nargs) {
  if (!tracing()) return true;
  bool arrays = false;
  for (Py_ssize_t i = 0; i < nargs; ++i) {
    if (is_exact_array(args[i])) {
      arrays = true;
    } else if (!PyFloat_CheckExact(args[i]) && !PyLong_CheckExact(args[i])) {
      return false;
    }
  }
  if (!arrays) return false;
  static PyObject* const name = PyUnicode_InternFromString("evaluates");
  Ref found(PyObject_GetAttr(thread_state.trace, name));
  if (!found) PyErr_Clear();
  return found.get() == Py_True;
}

PyObject* eager_op_call(PyObject* self, PyObject* const* args, std::size_t nargsf,
                        PyObject* kwnames) {
  EagerOpObject* op = as_op(self);
  const Py_ssize_t nargs = PyVectorcall_NARGS(nargsf);
  if (kwnames == nullptr && nargs == op->table->nin() && evaluates(args, nargs)) {
    PyObject* result = nullptr;
    if (run_loops(*op->table, args, op->broadcast, &result) != Outcome::not_applicable)
      return leave(result);
  }
  Ref fallback = Ref::borrow(op->fallback);  // the call may replace it
  return leave(PyObject_Vectorcall(fallback.get(), args, nargsf, kwnames));
}

PyObject* eager_op_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  static const char* keywords[] = {"ufunc", "fallback",  "name", "doc",
                                   "kinds", "broadcast", nullptr};
  PyObject *ufunc, *fallback, *name, *doc = Py_None;
  const char* kinds = "biufc";
  int broadcast = 1;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!OU|Osp:EagerOp", const_cast<char**>(keywords),
                                   &PyUFunc_Type, &ufunc, &fallback, &name, &doc, &kinds,
                                   &broadcast)) {
    return nullptr;
  }
  if (!PyCallable_Check(fallback)) {
    PyErr_SetString(PyExc_TypeError, "EagerOp: the fallback must be callable");
    return nullptr;
  }
  for (const char* k = kinds; *k != 0; ++k) {
    if (std::string_view("biufc").find(*k) == std::string_view::npos) {
      PyErr_Format(PyExc_ValueError, "EagerOp: kinds must be letters out of 'biufc', got '%s'",
                   kinds);
      return nullptr;
    }
  }
  Ref self(type->tp_alloc(type, 0));
  if (!self) return nullptr;
  EagerOpObject* op = as_op(self.get());
  op->vectorcall = eager_op_call;
  op->fallback = Py_NewRef(fallback);
  op->broadcast = broadcast != 0;
  op->table = new LoopTable();
  op->table->init(reinterpret_cast<PyUFuncObject*>(ufunc), kinds);
  op->dict = PyDict_New();
  if (op->dict == nullptr || PyDict_SetItemString(op->dict, "__name__", name) < 0 ||
      PyDict_SetItemString(op->dict, "__qualname__", name) < 0 ||
      PyDict_SetItemString(op->dict, "__doc__", doc) < 0 ||
      PyDict_SetItemString(op->dict, "__wrapped__", fallback) < 0) {
    return nullptr;
  }
  return self.release();
}

int eager_op_traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(as_op(self)->fallback);
  Py_VISIT(as_op(self)->dict);
  return 0;
}

int eager_op_clear(PyObject* self) {
  // The fallback stays callable: a cleared op can still be reached from a finaliser.
  EagerOpObject* op = as_op(self);
  Py_XSETREF(op->fallback, Py_NewRef(Py_None));
  Py_CLEAR(op->dict);
  return 0;
}

void eager_op_dealloc(PyObject* self) {
  EagerOpObject* op = as_op(self);
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  if (op->weakrefs != nullptr) PyObject_ClearWeakRefs(self);
  Py_XDECREF(op->fallback);
  Py_XDECREF(op->dict);
  if (op->table != nullptr) op->table->clear();
  delete op->table;
  type->tp_free(self);
  Py_DECREF(type);
}

PyObject* eager_op_repr(PyObject* self) {
  Ref name(PyObject_GetAttrString(self, "__name__"));
  return name ? PyUnicode_FromFormat("<functrans operation %S>", name.get()) : nullptr;
}

// Pickled by its name in its module, as functions are.
PyObject* eager_op_reduce(PyObject* self, PyObject*) {
  return PyObject_GetAttrString(self, "__qualname__");
}

// evaluate(*args): the fast path whatever the current trace; NotImplemented where it does not apply.
PyObject* eager_op_evaluate(PyObject* self, PyObject* const* args, Py_ssize_t nargs) {
  EagerOpObject* op = as_op(self);
  PyObject* result = nullptr;
  if (nargs != op->table->nin() ||
      run_loops(*op->table, args, op->broadcast, &result) == Outcome::not_applicable) {
    return Py_NewRef(Py_NotImplemented);
  }
  return result;
}

PyObject* get_fallback(PyObject* self, void*) { return Py_NewRef(as_op(self)->fallback); }

int set_fallback(PyObject* self, PyObject* value, void*) {
  if (value == nullptr || !PyCallable_Check(value)) {
    PyErr_SetString(PyExc_TypeError, "EagerOp: the fallback must be callable");
    return -1;
  }
  Py_SETREF(as_op(self)->fallback, Py_NewRef(value));
  return 0;
}

PyObject* get_ufunc(PyObject* self, void*) {
  return Py_NewRef(reinterpret_cast<PyObject*>(as_op(self)->table->ufunc()));
}

PyGetSetDef eager_op_getset[] = {
    {"fallback", get_fallback, set_fallback, "Python callable for every other case.", nullptr},
    {"ufunc", get_ufunc, nullptr, "The NumPy ufunc whose inner loops run.", nullptr},
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

PyMemberDef eager_op_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(EagerOpObject, vectorcall), READONLY, nullptr},
    {"__dictoffset__", T_PYSSIZET, offsetof(EagerOpObject, dict), READONLY, nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(EagerOpObject, weakrefs), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr}};

PyMethodDef eager_op_methods[] = {{"__reduce__", eager_op_reduce, METH_NOARGS, nullptr},
                                  {"evaluate",
                                   reinterpret_cast<PyCFunction>(
                                       reinterpret_cast<void (*)()>(eager_op_evaluate)),
                                   METH_FASTCALL, "The fast path, or NotImplemented."},
                                  {nullptr, nullptr, 0, nullptr}};

template <typename Function>
void* slot(Function function) {
  return reinterpret_cast<void*>(function);
}

}  // namespace

bool init_eager_op(PyObject* module) {
  PyType_Slot slots[] = {
      {Py_tp_new, slot(eager_op_new)},           {Py_tp_dealloc, slot(eager_op_dealloc)},
      {Py_tp_traverse, slot(eager_op_traverse)}, {Py_tp_clear, slot(eager_op_clear)},
      {Py_tp_call, slot(PyVectorcall_Call)},     {Py_tp_repr, slot(eager_op_repr)},
      {Py_tp_getset, eager_op_getset},           {Py_tp_members, eager_op_members},
      {Py_tp_methods, eager_op_methods},         {0, nullptr}};
  PyType_Spec spec = {"functrans._runtime.EagerOp", sizeof(EagerOpObject), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL, slots};
  Ref type(PyType_FromSpec(&spec));
  return type && PyModule_AddObjectRef(module, "EagerOp", type.get()) == 0;
}

}  // namespace functrans
