// The communicator as a class of Python, and the groups of a rank that Python gives to its thread.
#include "communicator_type.h"

#include "collective_reduction.h"
#include "collective_step.h"

#include <new>
#include <vector>

namespace functrans {

PyTypeObject* communicator_type = nullptr;

namespace {

using i64 = std::int64_t;

struct GroupTable {
  std::vector<Group> groups;
  std::vector<PyObject*> held;
};

void free_table(PyObject* capsule) {
  auto* table = static_cast<GroupTable*>(PyCapsule_GetPointer(capsule, nullptr));
  for (PyObject* one : table->held) Py_DECREF(one);
  delete table;
}

void dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  delete reinterpret_cast<CommunicatorObject*>(self)->communicator;
  type->tp_free(self);
  Py_DECREF(type);
}

struct Buffers {
  int member = 0;
  PyArrayObject *in = nullptr, *out = nullptr;
  int first = 0, second = 0;  // what else a call says

  // `factor`: how often the smaller of the two goes into the other, 0 where sizes are equal.
  bool parse(PyObject* self, PyObject* args, const char* format) {
    PyObject *in_object, *out_object;
    if (!PyArg_ParseTuple(args, format, &member, &in_object, &out_object, &first, &second)) {
      return false;
    }
    if (!PyArray_CheckExact(in_object) || !PyArray_CheckExact(out_object)) {
      PyErr_SetString(PyExc_TypeError, "a collective takes ndarrays");
      return false;
    }
    in = reinterpret_cast<PyArrayObject*>(in_object);
    out = reinterpret_cast<PyArrayObject*>(out_object);
    if (!PyArray_ISCARRAY_RO(in) || !PyArray_ISCARRAY(out)) {
      PyErr_SetString(PyExc_ValueError, "a collective takes contiguous arrays");
      return false;
    }
    if (member < 0 || member >= communicator_of(self).members()) {
      PyErr_Format(PyExc_ValueError, "a group of %d has no member %d",
                   communicator_of(self).members(), member);
      return false;
    }
    return true;
  }
  bool has_sizes(i64 in_parts, i64 out_parts) const {
    if (PyArray_NBYTES(in) * out_parts == PyArray_NBYTES(out) * in_parts) return true;
    PyErr_Format(PyExc_ValueError, "a collective of %zd bytes has a result of %zd",
                 static_cast<Py_ssize_t>(PyArray_NBYTES(in)),
                 static_cast<Py_ssize_t>(PyArray_NBYTES(out)));
    return false;
  }
  // With an exception set where there is no such member.
  bool lacks(int member, int least, const Communicator& r) const {
    if (member >= least && member < r.members()) return false;
    PyErr_Format(PyExc_ValueError, "a group of %d has no member %d", r.members(), member);
    return true;
  }
  bool has_type(i64& count) const {
    if (first < 0 || first > Communicator::kProduct || second < 0 ||
        second >= Communicator::kTypes ||
        element_size(static_cast<Communicator::Type>(second)) != PyArray_ITEMSIZE(out)) {
      PyErr_Format(PyExc_ValueError, "no reduction %d of the dtype %d", first, second);
      return false;
    }
    count = PyArray_SIZE(out);
    return true;
  }
};

// True, or False where the communicator was aborted.
template <typename Run>
PyObject* meet(Run run) {
  bool whole;
  Py_BEGIN_ALLOW_THREADS
  whole = run();
  Py_END_ALLOW_THREADS
  return PyBool_FromLong(whole);
}

PyObject* py_barrier(PyObject* self, PyObject* args) {
  int member;
  if (!PyArg_ParseTuple(args, "i", &member)) return nullptr;
  return meet([&] { return communicator_of(self).barrier(member); });
}

PyObject* py_all_gather(PyObject* self, PyObject* args) {
  Buffers b;
  Communicator& r = communicator_of(self);
  if (!b.parse(self, args, "iOO") || !b.has_sizes(1, r.members())) return nullptr;
  const void* in = PyArray_DATA(b.in);
  void* out = PyArray_DATA(b.out);
  const i64 bytes = PyArray_NBYTES(b.in);
  return meet([&] { return r.all_gather(b.member, in, bytes, out); });
}

PyObject* py_all_to_all(PyObject* self, PyObject* args) {
  Buffers b;
  Communicator& r = communicator_of(self);
  if (!b.parse(self, args, "iOO") || !b.has_sizes(1, 1)) return nullptr;
  const void* in = PyArray_DATA(b.in);
  void* out = PyArray_DATA(b.out);
  const i64 bytes = PyArray_NBYTES(b.in) / r.members();
  return meet([&] { return r.all_to_all(b.member, in, bytes, out); });
}

PyObject* py_permute(PyObject* self, PyObject* args) {
  Buffers b;
  Communicator& r = communicator_of(self);
  if (!b.parse(self, args, "iOOii") || !b.has_sizes(1, 1)) return nullptr;
  if (b.lacks(b.first, -1, r) || b.lacks(b.second, -1, r)) return nullptr;
  const void* in = PyArray_DATA(b.in);
  void* out = PyArray_DATA(b.out);
  const i64 bytes = PyArray_NBYTES(b.in);
  return meet([&] { return r.permute(b.member, in, bytes, out, b.first, b.second); });
}

PyObject* py_broadcast(PyObject* self, PyObject* args) {
  Buffers b;
  Communicator& r = communicator_of(self);
  if (!b.parse(self, args, "iOOi") || !b.has_sizes(1, 1) || b.lacks(b.first, 0, r)) return nullptr;
  const void* in = PyArray_DATA(b.in);
  void* out = PyArray_DATA(b.out);
  const i64 bytes = PyArray_NBYTES(b.in);
  return meet([&] { return r.broadcast(b.member, in, bytes, out, b.first); });
}

PyObject* py_all_reduce(PyObject* self, PyObject* args) {
  Buffers b;
  i64 count;
  Communicator& r = communicator_of(self);
  if (!b.parse(self, args, "iOOii") || !b.has_sizes(1, 1) || !b.has_type(count)) return nullptr;
  const void* in = PyArray_DATA(b.in);
  void* out = PyArray_DATA(b.out);
  return meet([&] {
    return r.all_reduce(b.member, in, count, out, static_cast<Communicator::Op>(b.first),
                        static_cast<Communicator::Type>(b.second));
  });
}

PyObject* py_reduce_scatter(PyObject* self, PyObject* args) {
  Buffers b;
  i64 count;
  Communicator& r = communicator_of(self);
  if (!b.parse(self, args, "iOOii") || !b.has_sizes(r.members(), 1) || !b.has_type(count)) {
    return nullptr;
  }
  const void* in = PyArray_DATA(b.in);
  void* out = PyArray_DATA(b.out);
  return meet([&] {
    return r.reduce_scatter(b.member, in, count, out, static_cast<Communicator::Op>(b.first),
                            static_cast<Communicator::Type>(b.second));
  });
}

// group_table([(key, Communicator, NcclCommunicator or None, member, size), ...]): for set_groups.
PyObject* group_table(PyObject*, PyObject* list) {
  Ref items(PySequence_Fast(list, "group_table takes a sequence"));
  if (!items) return nullptr;
  auto* table = new (std::nothrow) GroupTable();
  if (table == nullptr) return PyErr_NoMemory();
  PyObject* capsule = PyCapsule_New(table, nullptr, free_table);
  if (capsule == nullptr) {
    delete table;
    return nullptr;
  }
  for (Py_ssize_t k = 0; k < PySequence_Fast_GET_SIZE(items.get()); ++k) {
    long long key;
    PyObject* communicator;
    int member, size;
    if (!PyArg_ParseTuple(PySequence_Fast_GET_ITEM(items.get(), k), "LOii", &key, &communicator,
                          &member, &size)) {
      Py_DECREF(capsule);
      return nullptr;
    }
    const bool own = PyObject_TypeCheck(communicator, communicator_type);
    if (own && (member < 0 || member >= communicator_of(communicator).members())) {
      PyErr_Format(PyExc_ValueError, "a group of %d has no member %d",
                   communicator_of(communicator).members(), member);
      Py_DECREF(capsule);
      return nullptr;
    }
    cuda::Communicator* const nccl = cuda::communicator_of(communicator);
    if (own || nccl != nullptr) table->held.push_back(Py_NewRef(communicator));
    table->groups.push_back(
        Group{key, own ? &communicator_of(communicator) : nullptr, member, size, nccl});
  }
  return capsule;
}

// set_groups(table or None, python, broken): of the rank that this thread runs from now on.
PyObject* set_groups(PyObject*, PyObject* args) {
  PyObject *table, *python, *broken;
  if (!PyArg_ParseTuple(args, "OOO:set_groups", &table, &python, &broken)) return nullptr;
  if (table == Py_None) {
    set_groups_of_thread(Groups());
    Py_RETURN_NONE;
  }
  const std::vector<Group>* const found = groups_in(table);
  if (found == nullptr) return nullptr;
  set_groups_of_thread(Groups{found->data(), found->size(), python, broken});
  Py_RETURN_NONE;
}

PyMethodDef functions[] = {
    {"group_table", group_table, METH_O,
     "group_table([(key, communicator or None, member, size)]): those of a rank."},
    {"set_groups", set_groups, METH_VARARGS,
     "set_groups(table, python, broken): those of the rank that this thread runs; None for none."},
    {nullptr, nullptr, 0, nullptr}};

PyMethodDef methods[] = {
    {"barrier", py_barrier, METH_VARARGS, "barrier(member): once all members are here."},
    {"all_gather", py_all_gather, METH_VARARGS, "all_gather(member, x, out)"},
    {"all_to_all", py_all_to_all, METH_VARARGS, "all_to_all(member, x, out)"},
    {"permute", py_permute, METH_VARARGS,
     "permute(member, x, out, source, destination): source -1 for zeros, destination -1 for none"},
    {"broadcast", py_broadcast, METH_VARARGS, "broadcast(member, x, out, source)"},
    {"all_reduce", py_all_reduce, METH_VARARGS, "all_reduce(member, x, out, op, type)"},
    {"reduce_scatter", py_reduce_scatter, METH_VARARGS, "reduce_scatter(member, x, out, op, type)"},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

const std::vector<Group>* groups_in(PyObject* capsule) {
  auto* table = static_cast<GroupTable*>(PyCapsule_GetPointer(capsule, nullptr));
  return table == nullptr ? nullptr : &table->groups;
}

PyObject* new_communicator(PyTypeObject* type, Communicator* communicator) {
  if (communicator == nullptr) return PyErr_NoMemory();
  PyObject* self = type->tp_alloc(type, 0);
  if (self == nullptr) {
    delete communicator;
    return nullptr;
  }
  reinterpret_cast<CommunicatorObject*>(self)->communicator = communicator;
  return self;
}

bool init_communicator(PyObject* module) {
  PyType_Slot slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(dealloc)},
                         {Py_tp_methods, methods},
                         {0, nullptr}};
  PyType_Spec spec = {"functrans._runtime.Communicator", sizeof(CommunicatorObject), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE |
                          Py_TPFLAGS_DISALLOW_INSTANTIATION,
                      slots};
  communicator_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  if (communicator_type == nullptr) return false;
  register_collective();
  return PyModule_AddFunctions(module, functions) == 0 &&
         PyModule_AddObjectRef(module, "Communicator",
                               reinterpret_cast<PyObject*>(communicator_type)) == 0 &&
         init_rendezvous(module) && init_mpi_communicator(module);
}

}  // namespace functrans
