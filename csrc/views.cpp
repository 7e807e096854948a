#include "views.h"

#include "allocator.h"
#include "array.h"
#include "matmul.h"
#include "sums.h"

#include <algorithm>
#include <cstring>

namespace functrans {
namespace {

PyUFuncObject* add_ufunc = nullptr;
constexpr npy_intp kReleaseElements = 16 << 10;
constexpr npy_intp kMostRows = 256;  // that are added in sequence by numpy.add
constexpr npy_intp kOwnRows = 16;    // of a sum over columns, from which ours is as fast
constexpr npy_intp kOwnSum = 1024;  // rows of this length: 25 GB/s by numpy.add, 60 by ours

PyObject* not_implemented() { return Py_NewRef(Py_NotImplemented); }

// The ints of an exact tuple; -1 where it is something else or longer than an array has axes.
int read_ints(PyObject* tuple, npy_intp* out) {
  if (!PyTuple_CheckExact(tuple) || PyTuple_GET_SIZE(tuple) > NPY_MAXDIMS) return -1;
  const int n = static_cast<int>(PyTuple_GET_SIZE(tuple));
  for (int i = 0; i < n; ++i) {
    PyObject* item = PyTuple_GET_ITEM(tuple, i);
    if (!PyLong_CheckExact(item)) return -1;
    out[i] = PyLong_AsSsize_t(item);
    if (out[i] < 0) {
      PyErr_Clear();
      return -1;
    }
  }
  return n;
}

// A read-only view on the data of `x`, which it keeps alive.
PyObject* make_view(ArrayObject* x, int ndim, const npy_intp* shape, const npy_intp* strides) {
  if (!has_data(x)) return nullptr;
  PyArray_Descr* descr = PyArray_DESCR(x->np);
  Py_INCREF(descr);
  PyObject* view = PyArray_NewFromDescr(&PyArray_Type, descr, ndim, shape, strides,
                                        PyArray_DATA(x->np), 0, nullptr);
  if (view == nullptr) return nullptr;
  auto* np = reinterpret_cast<PyArrayObject*>(view);
  if (PyArray_SetBaseObject(np, Py_NewRef(reinterpret_cast<PyObject*>(x->np))) < 0) {
    Py_DECREF(view);
    return nullptr;
  }
  return wrap_ndarray(np, x->weak_type);
}

// An Array on the memory of `x`, which is on a device, where arrays have no strides.
PyObject* on_same_memory(ArrayObject* x, int ndim, const npy_intp* shape) {
  PyArrayObject* np = shape_only(PyArray_DESCR(x->np), ndim, shape);
  if (np == nullptr) return nullptr;
  return wrap_buffer(np, x->weak_type, x->place, retain_buffer(buffer_of(x)));
}

}  // namespace

PyObject* broadcast_view(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
  npy_intp shape[NPY_MAXDIMS], dims[NPY_MAXDIMS], strides[NPY_MAXDIMS] = {};
  if (nargs != 3 || !is_exact_array(args[0])) return not_implemented();
  ArrayObject* x = as_array(args[0]);
  if (on_device(x)) return not_implemented();
  const int ndim = read_ints(args[1], shape);
  const int given = read_ints(args[2], dims);
  if (ndim < 0 || given != PyArray_NDIM(x->np)) return not_implemented();
  for (int i = 0; i < given; ++i) {
    const npy_intp size = PyArray_DIM(x->np, i);
    if (dims[i] >= ndim || (i > 0 && dims[i] <= dims[i - 1])) return not_implemented();
    if (size == shape[dims[i]]) {
      strides[dims[i]] = PyArray_STRIDE(x->np, i);
    } else if (size != 1) {
      return not_implemented();
    }
  }
  return make_view(x, ndim, shape, strides);
}

PyObject* transpose_view(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
  npy_intp order[NPY_MAXDIMS], shape[NPY_MAXDIMS], strides[NPY_MAXDIMS];
  bool seen[NPY_MAXDIMS] = {};
  if (nargs != 2 || !is_exact_array(args[0])) return not_implemented();
  ArrayObject* x = as_array(args[0]);
  if (on_device(x)) return not_implemented();
  const int ndim = read_ints(args[1], order);
  if (ndim != PyArray_NDIM(x->np)) return not_implemented();
  for (int i = 0; i < ndim; ++i) {
    if (order[i] >= ndim || seen[order[i]]) return not_implemented();
    seen[order[i]] = true;
    shape[i] = PyArray_DIM(x->np, static_cast<int>(order[i]));
    strides[i] = PyArray_STRIDE(x->np, static_cast<int>(order[i]));
  }
  return make_view(x, ndim, shape, strides);
}

PyObject* reshape_view(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
  npy_intp shape[NPY_MAXDIMS], strides[NPY_MAXDIMS];
  if (nargs != 2 || !is_exact_array(args[0])) return not_implemented();
  ArrayObject* x = as_array(args[0]);
  if (is_sharded(x)) return not_implemented();
  const int ndim = read_ints(args[1], shape);
  if (ndim < 0 || !(on_device(x) || x->c_contiguous)) return not_implemented();
  npy_intp step = PyArray_ITEMSIZE(x->np);
  npy_intp count = 1;
  for (int i = ndim - 1; i >= 0; --i) {
    if (shape[i] == 0 || shape[i] > PyArray_SIZE(x->np)) return not_implemented();
    strides[i] = step;
    step *= shape[i];
    count *= shape[i];
    if (count > PyArray_SIZE(x->np)) return not_implemented();
  }
  if (count != PyArray_SIZE(x->np)) return not_implemented();
  return on_device(x) ? on_same_memory(x, ndim, shape) : make_view(x, ndim, shape, strides);
}

PyObject* matmul(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
  PyObject* result = nullptr;
  if (nargs != 2 || run_matmul(args[0], args[1], &result) == Outcome::not_applicable)
    return not_implemented();
  return result;
}

// The sum over adjacent axes of a contiguous floating array, by the inner loop of numpy.add, which
// sums pairwise with the output as first operand; long ones by ours.
PyObject* sum_over(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
  npy_intp axes[NPY_MAXDIMS];
  if (nargs != 2 || !is_exact_array(args[0])) return not_implemented();
  ArrayObject* x = as_array(args[0]);
  const int reduced = read_ints(args[1], axes);
  const int ndim = PyArray_NDIM(x->np);
  if (reduced < 1 || reduced > ndim || !x->c_contiguous || x->loop_type < NPY_FLOAT ||
      has_device_place(x) || PyArray_SIZE(x->np) == 0) {
    return not_implemented();
  }
  const bool trailing = axes[reduced - 1] == ndim - 1;
  const int before = static_cast<int>(axes[0]);
  for (int i = 0; i < reduced; ++i) {
    if (before < 0 || axes[i] != before + i || axes[i] >= ndim) return not_implemented();
  }
  int loop = -1;
  for (int i = 0; i < add_ufunc->ntypes && loop < 0; ++i) {
    const char* types = add_ufunc->types + 3 * i;
    if (types[0] == x->loop_type && types[1] == x->loop_type && types[2] == x->loop_type) loop = i;
  }
  if (loop < 0) return not_implemented();
  const bool own = x->loop_type == NPY_FLOAT || x->loop_type == NPY_DOUBLE;

  npy_intp shape[NPY_MAXDIMS];
  const int kept = ndim - reduced;
  npy_intp rows = 1, parts = 1;  // matrices whose columns are added up
  for (int i = 0; i < kept; ++i) shape[i] = PyArray_DIM(x->np, i < before ? i : reduced + i);
  for (int i = 0; i < reduced && !trailing; ++i) rows *= PyArray_DIM(x->np, before + i);
  for (int i = 0; i < before && !trailing; ++i) parts *= PyArray_DIM(x->np, i);
  if (rows > kMostRows && !own) return not_implemented();
  PyArray_Descr* descr = PyArray_DESCR(x->np);
  Py_INCREF(descr);
  Ref out(reinterpret_cast<PyObject*>(new_ndarray(descr, kept, shape, false)));
  if (!out) return nullptr;
  auto* np = reinterpret_cast<PyArrayObject*>(out.get());
  const npy_intp item = PyArray_ITEMSIZE(np);
  const npy_intp outer = PyArray_SIZE(np);
  const npy_intp total = PyArray_SIZE(x->np);
  std::memset(PyArray_DATA(np), 0, static_cast<std::size_t>(outer * item));
  void* data = add_ufunc->data == nullptr ? nullptr : const_cast<void*>(add_ufunc->data[loop]);
  PyUFuncGenericFunction add = add_ufunc->functions[loop];
  const Ref held = hold_data(x);  // another thread may donate x meanwhile
  PyThreadState* saved = total > kReleaseElements ? PyEval_SaveThread() : nullptr;
  if (trailing) {
    const npy_intp inner = total / outer;
    const npy_intp strides[3] = {0, item, 0};
    const char* lines = PyArray_BYTES(x->np);
    for (npy_intp i = 0; i < outer; ++i) {
      if (inner >= kOwnSum && x->loop_type == NPY_FLOAT) {
        reinterpret_cast<float*>(PyArray_BYTES(np))[i] =
            sum(reinterpret_cast<const float*>(lines) + i * inner, inner);
        continue;
      }
      if (inner >= kOwnSum && x->loop_type == NPY_DOUBLE) {
        reinterpret_cast<double*>(PyArray_BYTES(np))[i] =
            sum(reinterpret_cast<const double*>(lines) + i * inner, inner);
        continue;
      }
      char* pointers[3] = {PyArray_BYTES(np) + i * item, PyArray_BYTES(x->np) + i * inner * item,
                           PyArray_BYTES(np) + i * item};
      add(pointers, &inner, strides, data);
    }
  } else {
    const npy_intp strides[3] = {item, item, item};
    const npy_intp width = outer / parts;
    for (npy_intp part = 0; part < parts; ++part) {
      char* to = PyArray_BYTES(np) + part * width * item;
      char* from = PyArray_BYTES(x->np) + part * rows * width * item;
      if (own && rows >= kOwnRows && x->loop_type == NPY_FLOAT) {
        column_sums(reinterpret_cast<const float*>(from), rows, width, reinterpret_cast<float*>(to));
        continue;
      }
      if (own && rows >= kOwnRows) {
        column_sums(reinterpret_cast<const double*>(from), rows, width,
                    reinterpret_cast<double*>(to));
        continue;
      }
      for (npy_intp i = 0; i < rows; ++i) {
        char* pointers[3] = {to, from + i * width * item, to};
        add(pointers, &width, strides, data);
      }
    }
  }
  if (saved != nullptr) restore_thread(saved);
  return wrap_ndarray(reinterpret_cast<PyArrayObject*>(out.release()), x->weak_type);
}

bool init_views(PyObject* numpy) {
  Ref ufunc(PyObject_GetAttrString(numpy, "add"));
  if (!ufunc) return false;
  if (!PyObject_TypeCheck(ufunc.get(), &PyUFunc_Type)) {
    PyErr_SetString(PyExc_ImportError, "numpy.add is not a ufunc");
    return false;
  }
  add_ufunc = reinterpret_cast<PyUFuncObject*>(ufunc.release());
  return true;
}

}  // namespace functrans
