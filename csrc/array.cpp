#include "array.h"

#include "cuda/module.h"
#include "recycled.h"

#include <structmember.h>

namespace functrans {

PyTypeObject* array_base_type = nullptr;
PyTypeObject* array_type = nullptr;

namespace {

// Types whose inner loops NumPy exposes and that mean the same in functrans; the halves compute in
// float32 and never run here. `long long` is an alias of `long` that NumPy keeps apart.
bool has_native_loops(int type_num) {
  switch (type_num) {
    case NPY_BOOL:
    case NPY_BYTE:
    case NPY_UBYTE:
    case NPY_SHORT:
    case NPY_USHORT:
    case NPY_INT:
    case NPY_UINT:
    case NPY_LONG:
    case NPY_ULONG:
    case NPY_FLOAT:
    case NPY_DOUBLE:
    case NPY_CFLOAT:
    case NPY_CDOUBLE: return true;
    default: return false;
  }
}

// Instances alive whose type is garbage collected, that is, of subclasses that are not registered.
Py_ssize_t collected_instances = 0;

// All arrays, the latest first: 1.5 ns for each that is made.
ArrayObject* latest = nullptr;

void enlist(ArrayObject* array) {
  array->before = nullptr;
  array->behind = latest;
  if (latest != nullptr) latest->before = array;
  latest = array;
}

void unlist(ArrayObject* array) {
  (array->before != nullptr ? array->before->behind : latest) = array->behind;
  if (array->behind != nullptr) array->behind->before = array->before;
}

PyObject* array_new(PyTypeObject* type, PyObject*, PyObject*) {
  PyErr_Format(PyExc_TypeError,
               "%s cannot be called; make an array with functrans.numpy.array(...) "
               "or functrans.numpy.asarray(...)",
               type->tp_name);
  return nullptr;
}

void array_dealloc(PyObject* self) {
  ArrayObject* array = as_array(self);
  PyTypeObject* type = Py_TYPE(self);
  unlist(array);
  if (array->weakrefs != nullptr) PyObject_ClearWeakRefs(self);
  if (array->loop_type < 0 || !recycle(array->np)) Py_XDECREF(array->np);
  Py_XDECREF(array->aval);
  if (is_sharded(array)) {
    Py_CLEAR(shards_of(array));
  } else if (on_device(array)) {
    release_buffer(buffer_of(array));
  }
  if (type == array_type && !has_device_place(array)) {  // of no larger object
    recycle_shell(array);
  } else {
    if (PyType_IS_GC(type)) --collected_instances;
    type->tp_free(self);
  }
  Py_DECREF(type);
}

PyObject* get_np(PyObject* self, void*) {
  if (!has_data(as_array(self))) return nullptr;
  return Py_NewRef(reinterpret_cast<PyObject*>(as_array(self)->np));
}

PyObject* get_shape(PyObject* self, void*) {
  PyArrayObject* np = as_array(self)->np;
  return PyArray_IntTupleFromIntp(PyArray_NDIM(np), PyArray_DIMS(np));
}

PyObject* get_dtype(PyObject* self, void*) {
  return Py_NewRef(reinterpret_cast<PyObject*>(PyArray_DESCR(as_array(self)->np)));
}

PyObject* get_ndim(PyObject* self, void*) {
  return PyLong_FromLong(PyArray_NDIM(as_array(self)->np));
}

PyObject* get_size(PyObject* self, void*) {
  return PyLong_FromSsize_t(PyArray_SIZE(as_array(self)->np));
}

PyObject* get_nbytes(PyObject* self, void*) {
  return PyLong_FromSsize_t(PyArray_NBYTES(as_array(self)->np));
}

PyObject* get_itemsize(PyObject* self, void*) {
  return PyLong_FromSsize_t(PyArray_ITEMSIZE(as_array(self)->np));
}

PyObject* get_weak_type(PyObject* self, void*) {
  return PyBool_FromLong(as_array(self)->weak_type);
}

PyObject* get_donated(PyObject* self, void*) {
  return PyBool_FromLong(as_array(self)->loop_type == kDonated);
}

PyObject* get_place(PyObject* self, void*) { return PyLong_FromLong(as_array(self)->place); }

PyObject* get_aval(PyObject* self, void*) {
  ArrayObject* array = as_array(self);
  if (array->aval == nullptr) {
    Ref shape(get_shape(self, nullptr));
    if (!shape) return nullptr;
    PyObject* args[] = {shape.get(), reinterpret_cast<PyObject*>(PyArray_DESCR(array->np)),
                        array->weak_type ? Py_True : Py_False};
    PyObject* aval = call_hook(Hook::aval, args, 3);
    if (aval == nullptr) return nullptr;
    Py_XSETREF(array->aval, aval);
  }
  return Py_NewRef(array->aval);
}

PyGetSetDef array_getset[] = {
    {"_np", get_np, nullptr, "The read-only ndarray that holds the data.", nullptr},
    {"shape", get_shape, nullptr, "Extents, a tuple of ints.", nullptr},
    {"dtype", get_dtype, nullptr, "NumPy dtype of the elements.", nullptr},
    {"ndim", get_ndim, nullptr, "Number of axes.", nullptr},
    {"size", get_size, nullptr, "Number of elements.", nullptr},
    {"nbytes", get_nbytes, nullptr, "Bytes of all elements.", nullptr},
    {"itemsize", get_itemsize, nullptr, "Bytes of one element.", nullptr},
    {"weak_type", get_weak_type, nullptr, "Whether the dtype gives way as a Python scalar's does.",
     nullptr},
    {"_donated", get_donated, nullptr, "Whether the data went to a jitted call.", nullptr},
    {"_place", get_place, nullptr,
     "0 on the CPU, 127 where it was put there, n + 1 on the device of number n.", nullptr},
    {"aval", get_aval, nullptr, "Abstract value: shape, dtype and weak type.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

PyMemberDef array_members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(ArrayObject, weakrefs), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr}};

// Parses (object, weak_type=False) for wrap and _wrap.
bool parse_wrap(PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames, int& weak_type) {
  weak_type = 0;
  const Py_ssize_t keywords = kwnames == nullptr ? 0 : PyTuple_GET_SIZE(kwnames);
  PyObject* weak = nargs == 2 ? args[1] : nullptr;
  bool valid = nargs + keywords <= 2 && nargs >= 1;
  if (valid && keywords == 1) {
    valid = PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(kwnames, 0), "weak_type") == 0;
    weak = args[nargs];
  }
  if (!valid) {
    PyErr_SetString(PyExc_TypeError, "expected (array, weak_type=False)");
    return false;
  }
  if (weak != nullptr) weak_type = PyObject_IsTrue(weak);
  return weak_type >= 0;
}

PyObject* array_wrap(PyObject* cls, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  int weak_type = 0;
  if (!parse_wrap(args, nargs, kwnames, weak_type)) return nullptr;
  return wrap_object(args[0], weak_type != 0, reinterpret_cast<PyTypeObject*>(cls));
}

// Another Array on the same memory, which is nobody's to take while both are there.
PyObject* array_another(PyObject* self, PyObject*) {
  ArrayObject* array = as_array(self);
  return share_array(array, array->weak_type, array->place);
}

PyObject* array_block_until_ready(PyObject* self, PyObject*) {
  const ArrayObject* array = as_array(self);
  return array->loop_type >= -1 && !has_device_place(array) ? Py_NewRef(self) : cuda::wait_for(self);
}

PyObject* array_format(PyObject* self, PyObject* spec) {
  PyObject* args[] = {self, spec};
  return call_hook(Hook::format, args, 2);
}

PyObject* array_repr(PyObject* self) { return call_hook(Hook::repr, &self, 1); }
PyObject* array_str(PyObject* self) { return call_hook(Hook::str, &self, 1); }

template <typename Function>
PyCFunction as_cfunction(Function function) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}

PyMethodDef array_methods[] = {
    {"_wrap", as_cfunction(array_wrap), METH_CLASS | METH_FASTCALL | METH_KEYWORDS,
     "_wrap(ndarray, weak_type=False): wrap without copying; the caller gives the data up."},
    {"__array__", as_cfunction(array_array), METH_FASTCALL | METH_KEYWORDS, nullptr},
    {"__dlpack__", as_cfunction(array_dlpack), METH_FASTCALL | METH_KEYWORDS, nullptr},
    {"__dlpack_device__", array_dlpack_device, METH_NOARGS, nullptr},
    {"__reduce__", array_reduce, METH_NOARGS, nullptr},
    {"__copy__", array_another, METH_NOARGS, nullptr},
    {"__deepcopy__", array_another, METH_O, nullptr},
    {"__complex__", array_complex, METH_NOARGS, nullptr},
    {"block_until_ready", array_block_until_ready, METH_NOARGS,
     "block_until_ready($self, /)\n--\n\n"
     "The array itself, once it is computed; on the CPU that is at once."},
    {"__format__", array_format, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr}};

template <typename Function>
void* slot(Function function) {
  return reinterpret_cast<void*>(function);
}

}  // namespace

bool raise_donated(ArrayObject* array) {
  auto* self = reinterpret_cast<PyObject*>(array);
  if (has_hook(Hook::donated)) {
    Ref(call_hook(Hook::donated, &self, 1));
    if (PyErr_Occurred()) return false;
  }
  PyErr_SetString(PyExc_RuntimeError, "the array was donated to a jitted call: its data is gone");
  return false;
}

PyArrayObject* shape_only(PyArray_Descr* descr, int ndim, const npy_intp* dims) {
  // Should a reader miss the check, zero strides over a static element keep it within memory of
  // ours.
  alignas(64) static char element[256] = {};
  npy_intp strides[NPY_MAXDIMS] = {};
  Py_INCREF(descr);
  return reinterpret_cast<PyArrayObject*>(PyArray_NewFromDescr(
      &PyArray_Type, descr, ndim, dims, strides, element, 0, nullptr));
}

PyArrayObject* take_data(ArrayObject* array) {
  PyArrayObject* rest = shape_only(PyArray_DESCR(array->np), PyArray_NDIM(array->np),
                                   PyArray_DIMS(array->np));
  if (rest == nullptr) return nullptr;
  array->loop_type = kDonated;
  array->c_contiguous = false;
  if (is_sharded(array)) {
    Py_CLEAR(shards_of(array));
  } else if (on_device(array)) {
    release_buffer(std::exchange(reinterpret_cast<DeviceArrayObject*>(array)->buffer, nullptr));
  }
  return std::exchange(array->np, rest);
}

namespace {

// An array whose elements are elsewhere than in `np`, which it takes; null with a MemoryError.
template <typename Object>
Object* wrap_elsewhere(PyArrayObject* np, bool weak_type, std::uint8_t place) {
  auto* object = static_cast<Object*>(PyObject_Malloc(sizeof(Object)));
  if (object == nullptr) {
    Py_DECREF(np);
    PyErr_NoMemory();
    return nullptr;
  }
  PyObject_Init(reinterpret_cast<PyObject*>(object), array_type);
  object->array.np = np;
  object->array.aval = object->array.weakrefs = nullptr;
  object->array.loop_type = kOnDevice;
  object->array.weak_type = weak_type;
  object->array.c_contiguous = false;
  object->array.place = place;
  enlist(&object->array);
  return object;
}

}  // namespace

PyObject* wrap_buffer(PyArrayObject* np, bool weak_type, std::uint8_t place,
                      cuda::DeviceBuffer* buffer) {
  auto* object = wrap_elsewhere<DeviceArrayObject>(np, weak_type, place);
  if (object == nullptr) {
    release_buffer(buffer);
    return nullptr;
  }
  object->buffer = buffer;
  return reinterpret_cast<PyObject*>(object);
}

PyObject* wrap_shards(PyArrayObject* np, bool weak_type, PyObject* shards) {
  auto* object = wrap_elsewhere<ShardedArrayObject>(np, weak_type, kSharded);
  if (object == nullptr) return nullptr;
  object->shards = Py_NewRef(shards);
  return reinterpret_cast<PyObject*>(object);
}

// sharded_array(shape, dtype, weak_type, shards): an Array whose data `shards.gather()` gives.
PyObject* sharded_array(PyObject*, PyObject* args) {
  PyObject *shape, *shards;
  PyArray_Descr* descr = nullptr;
  int weak = 0;
  if (!PyArg_ParseTuple(args, "OO&pO:sharded_array", &shape, PyArray_DescrConverter, &descr, &weak,
                        &shards)) {
    return nullptr;
  }
  const Ref held(reinterpret_cast<PyObject*>(descr));
  PyArray_Dims dims{nullptr, 0};
  if (!PyArray_IntpConverter(shape, &dims)) return nullptr;
  PyArrayObject* np = shape_only(descr, dims.len, dims.ptr);
  PyDimMem_FREE(dims.ptr);
  return np == nullptr ? nullptr : wrap_shards(np, weak != 0, shards);
}

// get_shards(x): what was given to sharded_array; None of another object, and of a donated array.
PyObject* get_shards(PyObject*, PyObject* object) {
  if (!is_array(object) || !is_sharded(as_array(object))) Py_RETURN_NONE;
  PyObject* shards = shards_of(as_array(object));
  return Py_NewRef(shards == nullptr ? Py_None : shards);
}

// donate_array(x): its data goes to whoever holds it besides; nothing is done to one that is gone.
PyObject* donate_array(PyObject*, PyObject* object) {
  if (is_array(object) && as_array(object)->loop_type != kDonated) {
    PyArrayObject* taken = take_data(as_array(object));
    if (taken == nullptr) return nullptr;
    Py_DECREF(taken);
  }
  Py_RETURN_NONE;
}

PyObject* share_array(ArrayObject* array, bool weak_type, std::uint8_t place) {
  Py_INCREF(array->np);
  const bool device = on_device(array);
  PyObject* object =
      device && is_sharded(array) ? wrap_shards(array->np, weak_type, shards_of(array))
      : device ? wrap_buffer(array->np, weak_type, place, retain_buffer(buffer_of(array)))
             : wrap_ndarray(array->np, weak_type);
  if (object == nullptr) return nullptr;
  ArrayObject* other = as_array(object);
  other->loop_type = array->loop_type;
  other->c_contiguous = array->c_contiguous;
  // what is gone from a device has no room for a buffer
  if (!device && place == kPutOnCpu) other->place = place;
  return object;
}

PyObject* wrap_ndarray(PyArrayObject* np, bool weak_type, PyTypeObject* type) {
  ArrayObject* array;
  if (type == array_type) {  // known to be neither garbage collected nor larger than ArrayObject
    array = take_shell();
    if (array != nullptr) {
      PyObject_Init(reinterpret_cast<PyObject*>(array), type);
      array->aval = array->weakrefs = nullptr;
      array->place = kAnywhere;
    }
  } else {
    array = reinterpret_cast<ArrayObject*>(type->tp_alloc(type, 0));
    if (array != nullptr && PyType_IS_GC(type)) ++collected_instances;
  }
  if (array == nullptr) {
    Py_DECREF(np);
    return PyErr_Occurred() ? nullptr : PyErr_NoMemory();
  }
  PyArray_CLEARFLAGS(np, NPY_ARRAY_WRITEABLE);
  array->np = np;
  array->weak_type = weak_type;
  array->c_contiguous = PyArray_IS_C_CONTIGUOUS(np);
  const int type_num = PyArray_TYPE(np);
  const bool direct = has_native_loops(type_num) && PyArray_ISBEHAVED_RO(np);
  array->loop_type = static_cast<std::int16_t>(direct ? type_num : -1);
  enlist(array);
  return reinterpret_cast<PyObject*>(array);
}

PyObject* wrap_object(PyObject* object, bool weak_type, PyTypeObject* type) {
  PyArrayObject* np = nullptr;
  if (PyArray_CheckExact(object)) {
    np = reinterpret_cast<PyArrayObject*>(Py_NewRef(object));
  } else if (PyArray_Check(object)) {
    np = reinterpret_cast<PyArrayObject*>(
        PyArray_View(reinterpret_cast<PyArrayObject*>(object), nullptr, &PyArray_Type));
  } else if (PyArray_CheckScalar(object)) {
    np = reinterpret_cast<PyArrayObject*>(PyArray_FromScalar(object, nullptr));
  } else {
    PyErr_Format(PyExc_TypeError, "expected a numpy.ndarray or NumPy scalar to wrap, got %.200s",
                 Py_TYPE(object)->tp_name);
  }
  return np == nullptr ? nullptr : wrap_ndarray(np, weak_type, type);
}

PyObject* wrap(PyObject*, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  int weak_type = 0;
  if (!parse_wrap(args, nargs, kwnames, weak_type)) return nullptr;
  return wrap_object(args[0], weak_type != 0, array_type);
}

PyObject* set_array_type(PyObject*, PyObject* type) {
  if (!PyType_Check(type) ||
      !PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(type), array_base_type)) {
    PyErr_SetString(PyExc_TypeError, "set_array_type expects a subclass of ArrayBase");
    return nullptr;
  }
  auto* t = reinterpret_cast<PyTypeObject*>(type);
  if (t->tp_basicsize != sizeof(ArrayObject) || t->tp_dictoffset != 0 || t->tp_itemsize != 0) {
    PyErr_SetString(PyExc_TypeError, "the array type must have __slots__ = () and no other base");
    return nullptr;
  }
  if (PyType_IS_GC(t)) {
    // Every Python class is garbage collected, but an array holds nothing that could close a cycle:
    // without the collector's header and its passes an array costs 40 ns less.
    if (collected_instances != 0) {
      PyErr_SetString(PyExc_RuntimeError,
                      "the array type must be registered before it has instances");
      return nullptr;
    }
    t->tp_flags &= ~Py_TPFLAGS_HAVE_GC;
    t->tp_traverse = nullptr;
    t->tp_clear = nullptr;
    t->tp_free = PyObject_Free;
    t->tp_dealloc = array_dealloc;
    PyType_Modified(t);
  }
  Py_INCREF(type);
  Py_SETREF(array_type, t);
  Py_RETURN_NONE;
}

PyObject* live_arrays(PyObject*, PyObject*) {
  Ref found(PyList_New(0));
  if (!found) return nullptr;
  // appending runs no code of others: the list of arrays stays as it is meanwhile
  for (ArrayObject* array = latest; array != nullptr; array = array->behind) {
    if (array->loop_type == kDonated) continue;
    if (PyList_Append(found.get(), reinterpret_cast<PyObject*>(array)) < 0) return nullptr;
  }
  return found.release();
}

bool init_array(PyObject* module) {
  // The number slots live in their own file; both lists become one specification.
  PyType_Slot own[] = {
      {Py_tp_doc, const_cast<char*>("Immutable n-dimensional array; see functrans.Array.")},
      {Py_tp_new, slot(array_new)},
      {Py_tp_dealloc, slot(array_dealloc)},
      {Py_tp_getset, array_getset},
      {Py_tp_members, array_members},
      {Py_tp_methods, array_methods},
      {Py_tp_repr, slot(array_repr)},
      {Py_tp_str, slot(array_str)},
      {Py_tp_hash, slot(PyObject_HashNotImplemented)},
      {Py_tp_richcompare, slot(array_richcompare)},
      {Py_tp_iter, slot(array_iter)},
      {Py_mp_length, slot(array_length)},
      {Py_mp_subscript, slot(array_subscript)},
      {Py_mp_ass_subscript, slot(array_ass_subscript)},
      {Py_bf_getbuffer, slot(array_getbuffer)},
  };
  PyType_Slot slots[64] = {};
  int count = 0;
  for (const PyType_Slot& s : own) slots[count++] = s;
  for (const PyType_Slot* s = array_number_slots; s->slot != 0; ++s) slots[count++] = *s;
  PyType_Spec spec = {"functrans._runtime.ArrayBase", sizeof(ArrayObject), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};
  PyObject* type = PyType_FromSpec(&spec);
  if (type == nullptr) return false;
  array_base_type = reinterpret_cast<PyTypeObject*>(type);
  array_type = reinterpret_cast<PyTypeObject*>(Py_NewRef(type));
  return init_array_number() && init_array_index() &&
         PyModule_AddObjectRef(module, "ArrayBase", type) == 0;
}

}  // namespace functrans
