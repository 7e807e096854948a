// The communicator of threads as a class of Python.
#include "communicator_type.h"
#include "rendezvous.h"

#include <new>

namespace functrans {
namespace {

PyObject* make(PyTypeObject* type, PyObject* args, PyObject*) {
  int members = 0;
  if (!PyArg_ParseTuple(args, "i:Rendezvous", &members)) return nullptr;
  if (members < 1 || members > Rendezvous::kMostMembers) {
    PyErr_Format(PyExc_ValueError, "a group has 1 to %d members, got %d",
                 Rendezvous::kMostMembers, members);
    return nullptr;
  }
  return new_communicator(type, new (std::nothrow) Rendezvous(members));
}

Rendezvous& rendezvous_of(PyObject* self) { return static_cast<Rendezvous&>(communicator_of(self)); }

PyObject* py_leave(PyObject* self, PyObject*) {
  rendezvous_of(self).leave();
  Py_RETURN_NONE;
}

PyObject* py_abort(PyObject* self, PyObject*) {
  rendezvous_of(self).abort();
  Py_RETURN_NONE;
}

PyObject* py_reset(PyObject* self, PyObject*) {
  rendezvous_of(self).reset();
  Py_RETURN_NONE;
}

PyMethodDef methods[] = {
    {"leave", py_leave, METH_NOARGS, "leave(): a member comes no more."},
    {"abort", py_abort, METH_NOARGS, "abort(): all members get False."},
    {"reset", py_reset, METH_NOARGS, "reset(): begin anew, while nobody is here."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

bool init_rendezvous(PyObject* module) {
  PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void*>(make)},
                         {Py_tp_methods, methods},
                         {0, nullptr}};
  PyType_Spec spec = {"functrans._runtime.Rendezvous", sizeof(CommunicatorObject), 0,
                      Py_TPFLAGS_DEFAULT, slots};
  const Ref type(PyType_FromSpecWithBases(&spec, reinterpret_cast<PyObject*>(communicator_type)));
  return type && PyModule_AddObjectRef(module, "Rendezvous", type.get()) == 0;
}

}  // namespace functrans
