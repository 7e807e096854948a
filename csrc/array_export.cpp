// How an Array's data leaves: __array__, buffer protocol, DLPack, pickle.
#include "array.h"

#include "allocator.h"

#include "cuda/buffer.h"
#include "hooks.h"
#include "key_dtype.h"

namespace functrans {
namespace {

PyObject* numpy_object(PyArrayObject* np) { return reinterpret_cast<PyObject*>(np); }

// A new view on the same data, held alive by the internal array; never writeable unless asked.
PyObject* view_of(PyArrayObject* np, bool writeable) {
  PyArray_Descr* descr = PyArray_DESCR(np);
  Py_INCREF(descr);
  PyObject* view = PyArray_NewFromDescr(&PyArray_Type, descr, PyArray_NDIM(np), PyArray_DIMS(np),
                                        PyArray_STRIDES(np), PyArray_DATA(np),
                                        writeable ? NPY_ARRAY_WRITEABLE : 0, nullptr);
  if (view == nullptr) return nullptr;
  auto* result = reinterpret_cast<PyArrayObject*>(view);
  Py_INCREF(np);
  if (PyArray_SetBaseObject(result, numpy_object(np)) < 0) {
    Py_DECREF(view);
    return nullptr;
  }
  PyArray_UpdateFlags(result, NPY_ARRAY_ALIGNED | NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_F_CONTIGUOUS);
  return view;
}

// The keywords of __dlpack__ mean more on a device: the registered function reads them.
PyObject* device_dlpack(PyObject* self, PyObject* const* values, PyObject* kwnames) {
  Ref keywords(PyDict_New());
  const Py_ssize_t count = kwnames == nullptr ? 0 : PyTuple_GET_SIZE(kwnames);
  for (Py_ssize_t i = 0; keywords && i < count; ++i) {
    if (PyDict_SetItem(keywords.get(), PyTuple_GET_ITEM(kwnames, i), values[i]) < 0) return nullptr;
  }
  if (!keywords) return nullptr;
  PyObject* args[] = {self, keywords.get()};
  return call_hook(Hook::dlpack, args, 2);
}

}  // namespace

bool has_numbers(PyObject* self) {
  if (!holds_keys(as_array(self)->np)) return true;
  Ref(call_hook(Hook::keys, &self, 1));
  return false;
}

PyObject* array_array(PyObject* self, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  PyObject* dtype = nargs > 0 ? args[0] : Py_None;
  PyObject* copy = nargs > 1 ? args[1] : Py_None;
  if (nargs > 2) {
    PyErr_SetString(PyExc_TypeError, "__array__ takes (dtype=None, copy=None)");
    return nullptr;
  }
  const Py_ssize_t keywords = kwnames == nullptr ? 0 : PyTuple_GET_SIZE(kwnames);
  for (Py_ssize_t i = 0; i < keywords; ++i) {
    PyObject* name = PyTuple_GET_ITEM(kwnames, i);
    if (PyUnicode_CompareWithASCIIString(name, "dtype") == 0) {
      dtype = args[nargs + i];
    } else if (PyUnicode_CompareWithASCIIString(name, "copy") == 0) {
      copy = args[nargs + i];
    } else {
      PyErr_Format(PyExc_TypeError, "__array__ got an unexpected argument %R", name);
      return nullptr;
    }
  }
  if (!has_numbers(self) || !has_data(as_array(self))) return nullptr;
  PyArrayObject* np = as_array(self)->np;
  PyArray_Descr* descr = nullptr;
  if (dtype != Py_None && PyArray_DescrConverter(dtype, &descr) == 0) return nullptr;
  // complex32 of ml_dtypes: others compute with complex64, and to them it is no complex number
  if (descr == nullptr && PyArray_DESCR(np)->kind == 'W') {
    descr = PyArray_DescrFromType(NPY_CFLOAT);
  }
  Ref owned_descr(reinterpret_cast<PyObject*>(descr));
  const bool convert = descr != nullptr && !PyArray_EquivTypes(descr, PyArray_DESCR(np));
  const int wants_copy = copy == Py_None ? 0 : PyObject_IsTrue(copy);
  if (wants_copy < 0) return nullptr;
  if (convert && copy != Py_None && wants_copy == 0) {
    PyErr_Format(PyExc_ValueError,
                 "an array of dtype %S cannot become %S without a copy "
                 "(copy=False)",
                 PyArray_DESCR(np), descr);
    return nullptr;
  }
  if (convert) {
    owned_descr.release();  // PyArray_CastToType steals it
    return PyArray_CastToType(np, descr, 0);
  }
  return wants_copy ? PyArray_NewCopy(np, NPY_CORDER) : view_of(np, false);
}

int array_getbuffer(PyObject* self, Py_buffer* view, int flags) {
  if ((flags & PyBUF_WRITABLE) == PyBUF_WRITABLE) {
    view->obj = nullptr;
    PyErr_SetString(PyExc_BufferError, "a functrans array is immutable: its buffer is read-only");
    return -1;
  }
  if (!has_numbers(self) || !has_data(as_array(self))) {
    view->obj = nullptr;
    return -1;
  }
  return PyObject_GetBuffer(numpy_object(as_array(self)->np), view, flags);
}

PyObject* array_dlpack(PyObject* self, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  if (nargs != 0) {
    PyErr_SetString(PyExc_TypeError, "__dlpack__ takes keyword arguments only");
    return nullptr;
  }
  if (!has_numbers(self)) return nullptr;
  if (buffer_of(as_array(self)) != nullptr) return device_dlpack(self, args, kwnames);
  // NumPy refuses to export read-only memory to consumers that cannot be told so (before
  // DLPack 1.0).
  bool versioned = false;
  const Py_ssize_t keywords = kwnames == nullptr ? 0 : PyTuple_GET_SIZE(kwnames);
  for (Py_ssize_t i = 0; i < keywords; ++i) {
    if (PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(kwnames, i), "max_version") == 0) {
      versioned = args[i] != Py_None;
    }
  }
  if (!has_data(as_array(self))) return nullptr;
  Ref view(view_of(as_array(self)->np, !versioned));
  if (!view) return nullptr;
  Ref method(PyObject_GetAttrString(view.get(), "__dlpack__"));
  if (!method) return nullptr;
  return PyObject_Vectorcall(method.get(), args, 0, kwnames);
}

PyObject* array_dlpack_device(PyObject* self, PyObject*) {
  const cuda::DeviceBuffer* buffer = buffer_of(as_array(self));
  return buffer == nullptr ? Py_BuildValue("(ii)", 1, 0)
                           : Py_BuildValue("(ii)", 2, buffer->device->ordinal);
}

PyObject* array_reduce(PyObject* self, PyObject*) {
  if (!has_data(as_array(self))) return nullptr;
  Ref module(PyImport_ImportModule("functrans._runtime"));
  if (!module) return nullptr;
  PyObject* rebuild = PyObject_GetAttrString(module.get(), "_rebuild_array");
  if (rebuild == nullptr) return nullptr;
  return Py_BuildValue("N(OO)", rebuild, numpy_object(as_array(self)->np),
                       as_array(self)->weak_type ? Py_True : Py_False);
}

PyObject* rebuild_array(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
  if (nargs != 2 || !PyArray_Check(args[0])) {
    PyErr_SetString(PyExc_TypeError, "_rebuild_array takes (ndarray, weak_type)");
    return nullptr;
  }
  const int weak_type = PyObject_IsTrue(args[1]);
  if (weak_type < 0) return nullptr;
  // Copied: the unpickler's array may lie on a buffer that others can write to.
  auto* source = reinterpret_cast<PyArrayObject*>(args[0]);
  if (PyDataType_REFCHK(PyArray_DESCR(source))) {
    PyErr_SetString(PyExc_TypeError, "_rebuild_array takes no arrays of Python objects");
    return nullptr;
  }
  PyArray_Descr* descr = PyArray_DESCR(source);
  Py_INCREF(descr);
  PyArrayObject* copy = new_ndarray(descr, PyArray_NDIM(source), PyArray_DIMS(source), true);
  if (copy == nullptr) return nullptr;
  if (PyArray_CopyInto(copy, source) < 0) {
    Py_DECREF(copy);
    return nullptr;
  }
  return wrap_ndarray(copy, weak_type != 0);
}

}  // namespace functrans
