// Indexing, length and iteration of ArrayBase. An int or a slice on the first axis is done here;
// everything else is a registered Python function.
#include "array.h"

#include "allocator.h"
#include "trace_state.h"

#include <cstring>

namespace functrans {
namespace {

// A smaller result is copied: the copy is aligned and does not keep the whole array alive.
constexpr npy_intp kCopyBytes = 1024;

PyTypeObject* iterator_type = nullptr;

struct IteratorObject {
  PyObject_HEAD PyObject* array;
  npy_intp index;
};

// The part of `array` that starts `offset` bytes in, with the given first-axis extent and stride;
// extent -1 drops the axis.
PyObject* first_axis_part(ArrayObject* array, npy_intp offset, npy_intp extent, npy_intp stride) {
  if (!has_data(array)) return nullptr;
  PyArrayObject* np = array->np;
  const int drop = extent < 0 ? 1 : 0;
  const int ndim = PyArray_NDIM(np) - drop;
  npy_intp dims[NPY_MAXDIMS];
  npy_intp strides[NPY_MAXDIMS];
  npy_intp bytes = PyArray_ITEMSIZE(np);
  for (int i = 0; i < ndim; ++i) {
    dims[i] = PyArray_DIM(np, i + drop);
    strides[i] = PyArray_STRIDE(np, i + drop);
    if (drop == 0 && i == 0) {
      dims[0] = extent;
      strides[0] = stride;
    }
    bytes *= dims[i];
  }
  PyArray_Descr* descr = PyArray_DESCR(np);
  Py_INCREF(descr);
  char* data = PyArray_BYTES(np) + offset;
  if (bytes <= kCopyBytes && array->c_contiguous &&
      (drop != 0 || stride == PyArray_STRIDE(np, 0)) && !PyDataType_REFCHK(descr)) {
    PyArrayObject* copy = new_ndarray(descr, ndim, dims, false);
    if (copy == nullptr) return nullptr;
    std::memcpy(PyArray_DATA(copy), data, static_cast<std::size_t>(bytes));
    return wrap_ndarray(copy, array->weak_type, Py_TYPE(array));
  }
  PyObject* view =
      PyArray_NewFromDescr(&PyArray_Type, descr, ndim, dims, strides, data, 0, nullptr);
  if (view == nullptr) return nullptr;
  auto* result = reinterpret_cast<PyArrayObject*>(view);
  Py_INCREF(np);
  if (PyArray_SetBaseObject(result, reinterpret_cast<PyObject*>(np)) < 0) {
    Py_DECREF(view);
    return nullptr;
  }
  PyArray_UpdateFlags(result, NPY_ARRAY_UPDATE_ALL);
  return wrap_ndarray(result, array->weak_type, Py_TYPE(array));
}

PyObject* iterator_next(PyObject* self) {
  auto* it = reinterpret_cast<IteratorObject*>(self);
  ArrayObject* array = as_array(it->array);
  if (it->index >= PyArray_DIM(array->np, 0)) return nullptr;
  const npy_intp index = it->index++;
  if (!tracing()) {
    if (!has_data(array)) return nullptr;
    return first_axis_part(array, index * PyArray_STRIDE(array->np, 0), -1, 0);
  }
  Ref key(PyLong_FromSsize_t(index));
  if (!key) return nullptr;
  PyObject* args[] = {it->array, key.get()};
  return call_hook(Hook::getitem, args, 2);
}

PyObject* iterator_length_hint(PyObject* self, PyObject*) {
  auto* it = reinterpret_cast<IteratorObject*>(self);
  return PyLong_FromSsize_t(PyArray_DIM(as_array(it->array)->np, 0) - it->index);
}

void iterator_dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  Py_DECREF(reinterpret_cast<IteratorObject*>(self)->array);
  type->tp_free(self);
  Py_DECREF(type);
}

PyMethodDef iterator_methods[] = {{"__length_hint__", iterator_length_hint, METH_NOARGS, nullptr},
                                  {nullptr, nullptr, 0, nullptr}};

}  // namespace

Py_ssize_t array_length(PyObject* self) {
  PyArrayObject* np = as_array(self)->np;
  if (PyArray_NDIM(np) == 0) {
    PyErr_SetString(PyExc_TypeError, "len() of an array of shape ()");
    return -1;
  }
  return PyArray_DIM(np, 0);
}

PyObject* array_iter(PyObject* self) {
  if (PyArray_NDIM(as_array(self)->np) == 0) {
    PyErr_SetString(PyExc_TypeError, "iteration over an array of shape ()");
    return nullptr;
  }
  auto* it = PyObject_New(IteratorObject, iterator_type);
  if (it == nullptr) return nullptr;
  it->array = Py_NewRef(self);
  it->index = 0;
  return reinterpret_cast<PyObject*>(it);
}

PyObject* array_subscript(PyObject* self, PyObject* key) {
  ArrayObject* array = as_array(self);
  PyArrayObject* np = array->np;
  if (!tracing() && PyArray_NDIM(np) > 0 && !on_device(array)) {
    const npy_intp extent = PyArray_DIM(np, 0);
    const npy_intp stride = PyArray_STRIDE(np, 0);
    if (PyLong_CheckExact(key)) {
      int overflow = 0;
      long long index = PyLong_AsLongLongAndOverflow(key, &overflow);
      if (index < 0) index += extent;
      if (overflow == 0 && index >= 0 && index < extent) {
        return first_axis_part(array, index * stride, -1, 0);
      }
    } else if (PySlice_Check(key)) {
      Py_ssize_t start, stop, step;
      auto* slice = reinterpret_cast<PySliceObject*>(key);
      const bool plain = (slice->start == Py_None || PyLong_CheckExact(slice->start)) &&
                         (slice->stop == Py_None || PyLong_CheckExact(slice->stop)) &&
                         (slice->step == Py_None || PyLong_CheckExact(slice->step));
      if (plain) {
        if (PySlice_Unpack(key, &start, &stop, &step) < 0) return nullptr;
        const Py_ssize_t length = PySlice_AdjustIndices(extent, &start, &stop, step);
        if (length == extent && step == 1) return Py_NewRef(self);
        return first_axis_part(array, length == 0 ? 0 : start * stride, length, stride * step);
      }
    }
  }
  PyObject* args[] = {self, key};
  return call_hook(Hook::getitem, args, 2);
}

int array_ass_subscript(PyObject* self, PyObject* key, PyObject* value) {
  PyObject* args[] = {self, key, value};
  Ref result(value == nullptr ? call_hook(Hook::delitem, args, 2)
                              : call_hook(Hook::setitem, args, 3));
  return result ? 0 : -1;
}

bool init_array_index() {
  PyType_Slot slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(iterator_dealloc)},
                         {Py_tp_iter, reinterpret_cast<void*>(PyObject_SelfIter)},
                         {Py_tp_iternext, reinterpret_cast<void*>(iterator_next)},
                         {Py_tp_methods, iterator_methods},
                         {0, nullptr}};
  PyType_Spec spec = {"functrans._runtime.ArrayIterator", sizeof(IteratorObject), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
  iterator_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  return iterator_type != nullptr;
}

}  // namespace functrans
