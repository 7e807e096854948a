// The Python type NcclCommunicator: the membership of one GPU in a group.
#include "cuda/buffer.h"
#include "cuda/nccl.h"

#include <new>

namespace functrans::cuda {
namespace {

struct CommunicatorObject {
  PyObject_HEAD Communicator* member;
};

PyTypeObject* communicator_type = nullptr;

Communicator& member_of(PyObject* object) {
  return *reinterpret_cast<CommunicatorObject*>(object)->member;
}

PyObject* wrapped(const std::vector<Communicator*>& members) {
  Ref list(PyList_New(static_cast<Py_ssize_t>(members.size())));
  for (std::size_t k = 0; list && k < members.size(); ++k) {
    PyObject* object = communicator_type->tp_alloc(communicator_type, 0);
    if (object == nullptr) return nullptr;
    reinterpret_cast<CommunicatorObject*>(object)->member = members[k];
    PyList_SET_ITEM(list.get(), static_cast<Py_ssize_t>(k), object);
  }
  return list ? list.release() : nullptr;
}

void dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

PyObject* unique_id(PyObject*, PyObject*) {
  return guarded([] {
    NcclId id;
    {
      const Unlocked unlocked;
      id = new_nccl_id();
    }
    return PyBytes_FromStringAndSize(id.bytes.data(), static_cast<Py_ssize_t>(id.bytes.size()));
  });
}

// nccl_connect(id, size, [(rank, device), ...])
PyObject* connect(PyObject*, PyObject* args) {
  const char* bytes;
  Py_ssize_t length;
  int size;
  PyObject* list;
  if (!PyArg_ParseTuple(args, "y#iO!:nccl_connect", &bytes, &length, &size, &PyList_Type, &list)) {
    return nullptr;
  }
  NcclId id;
  if (static_cast<std::size_t>(length) != id.bytes.size()) {
    PyErr_SetString(PyExc_ValueError, "nccl_connect: that is no id");
    return nullptr;
  }
  std::copy(bytes, bytes + length, id.bytes.begin());
  std::vector<std::pair<int, int>> members;
  for (Py_ssize_t k = 0; k < PyList_GET_SIZE(list); ++k) {
    int rank, device;
    if (!PyArg_ParseTuple(PyList_GET_ITEM(list, k), "ii", &rank, &device)) return nullptr;
    members.emplace_back(rank, device);
  }
  return guarded([&] {
    std::vector<Communicator*> made;
    {
      const Unlocked unlocked;
      made = connect_members(id, size, members);
    }
    return wrapped(made);
  });
}

// nccl_split([communicator], [color], [key], most_programs=0)
PyObject* split(PyObject*, PyObject* args) {
  PyObject *list, *colors, *keys;
  int most_programs = 0;
  if (!PyArg_ParseTuple(args, "O!O!O!|i:nccl_split", &PyList_Type, &list, &PyList_Type, &colors,
                        &PyList_Type, &keys, &most_programs)) {
    return nullptr;
  }
  std::vector<Communicator*> members;
  std::vector<int> of_color, of_key;
  const Py_ssize_t count = PyList_GET_SIZE(list);
  if (PyList_GET_SIZE(colors) != count || PyList_GET_SIZE(keys) != count) {
    PyErr_SetString(PyExc_ValueError, "nccl_split: a color and a key for each communicator");
    return nullptr;
  }
  for (Py_ssize_t k = 0; k < count; ++k) {
    PyObject* one = PyList_GET_ITEM(list, k);
    if (Py_TYPE(one) != communicator_type) {
      PyErr_SetString(PyExc_TypeError, "nccl_split takes NcclCommunicators");
      return nullptr;
    }
    members.push_back(&member_of(one));
    of_color.push_back(static_cast<int>(PyLong_AsLong(PyList_GET_ITEM(colors, k))));
    of_key.push_back(static_cast<int>(PyLong_AsLong(PyList_GET_ITEM(keys, k))));
    if (PyErr_Occurred()) return nullptr;
  }
  return guarded([&] {
    std::vector<Communicator*> made;
    {
      const Unlocked unlocked;
      made = split_members(members, of_color, of_key, most_programs);
    }
    return wrapped(made);
  });
}

// run(numbers, x, out): on the compute stream of its device, where both arrays are.
PyObject* run(PyObject* self, PyObject* args) {
  PyObject *numbers, *x, *out;
  if (!PyArg_ParseTuple(args, "O!OO:run", &PyTuple_Type, &numbers, &x, &out)) return nullptr;
  Communicator& member = member_of(self);
  std::vector<std::int64_t> read;
  for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(numbers); ++k) {
    read.push_back(PyLong_AsLongLong(PyTuple_GET_ITEM(numbers, k)));
  }
  if (PyErr_Occurred()) return nullptr;
  if (read.size() < kCollectiveNumbers || !is_exact_array(x) || !is_exact_array(out) ||
      buffer_of(as_array(out)) == nullptr) {
    PyErr_SetString(PyExc_TypeError, "run takes numbers and two Arrays on the device");
    return nullptr;
  }
  return guarded([&]() -> PyObject* {
    BufferRef source = buffer_on(x, *member.device);
    if (source.get() == nullptr) return nullptr;
    BufferRef target(retain(buffer_of(as_array(out))));
    {
      const Unlocked unlocked;
      const Current current(*member.device);
      settle(*source.get());
      const CollectiveNumbers n(read);
      give_collective(member, {n, source->pointer, target->pointer}, member.device->compute);
      target->written = member.device->timeline.advance();
    }
    return Py_NewRef(Py_None);
  });
}

PyObject* abort_now(PyObject* self, PyObject*) {
  abort_member(member_of(self));
  Py_RETURN_NONE;
}

PyObject* get_rank(PyObject* self, void*) { return PyLong_FromLong(member_of(self).rank); }
PyObject* get_size(PyObject* self, void*) { return PyLong_FromLong(member_of(self).size); }
PyObject* get_device(PyObject* self, void*) {
  return PyLong_FromLong(member_of(self).device->ordinal);
}
PyObject* get_aborted(PyObject* self, void*) { return PyBool_FromLong(member_of(self).aborted); }

PyMethodDef methods[] = {
    {"run", run, METH_VARARGS, "run(numbers, x, out): a collective, on the compute stream."},
    {"abort", abort_now, METH_NOARGS, "abort(): who waits in a collective here goes on."},
    {nullptr, nullptr, 0, nullptr}};

PyGetSetDef getset[] = {
    {"rank", get_rank, nullptr, "Its place in the group.", nullptr},
    {"size", get_size, nullptr, "How many members there are.", nullptr},
    {"device", get_device, nullptr, "The number of its GPU.", nullptr},
    {"aborted", get_aborted, nullptr, "Whether the group was given up.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

PyMethodDef functions[] = {
    {"nccl_unique_id", unique_id, METH_NOARGS,
     "nccl_unique_id(): bytes by which the members of a new group find each other."},
    {"nccl_connect", connect, METH_VARARGS,
     "nccl_connect(id, size, [(rank, device)]): NcclCommunicators of members of this process."},
    {"nccl_split", split, METH_VARARGS,
     "nccl_split([communicator], [color], [key], most_programs=0): those of the parts of a group."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

Communicator* communicator_of(PyObject* object) {
  return communicator_type != nullptr && Py_TYPE(object) == communicator_type
             ? &member_of(object)
             : nullptr;
}

bool init_nccl(PyObject* module) {
  PyType_Slot slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(dealloc)},
                         {Py_tp_methods, methods},
                         {Py_tp_getset, getset},
                         {0, nullptr}};
  PyType_Spec spec = {"functrans._runtime.NcclCommunicator", sizeof(CommunicatorObject), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
  communicator_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  return communicator_type != nullptr && PyModule_AddFunctions(module, functions) == 0 &&
         PyModule_AddObjectRef(module, "NcclCommunicator",
                               reinterpret_cast<PyObject*>(communicator_type)) == 0;
}

}  // namespace functrans::cuda
