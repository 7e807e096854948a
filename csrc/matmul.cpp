#include "matmul.h"

#include "allocator.h"
#include "array.h"
#include "sums.h"

#include <algorithm>

namespace functrans {
namespace {

PyUFuncObject* matmul_ufunc = nullptr;
constexpr npy_intp kReleaseFlops = 64 << 10;
// Products of vectors this long are ours: BLAS adds 2e7 hundredths 7e-3 too low.
constexpr npy_intp kOwnDot = 4096;

int find_loop(int type_num) {
  for (int i = 0; i < matmul_ufunc->ntypes; ++i) {
    const char* types = matmul_ufunc->types + 3 * i;
    if (types[0] == type_num && types[1] == type_num && types[2] == type_num) return i;
  }
  return -1;
}

}  // namespace

Outcome run_matmul(PyObject* a, PyObject* b, PyObject** result) {
  if (!is_exact_array(a) || !is_exact_array(b)) return Outcome::not_applicable;
  ArrayObject* x = as_array(a);
  ArrayObject* y = as_array(b);
  const int type_num = x->loop_type;
  if (type_num != y->loop_type || type_num < NPY_FLOAT || (x->weak_type && y->weak_type)) {
    return Outcome::not_applicable;
  }
  const int nx = PyArray_NDIM(x->np);
  const int ny = PyArray_NDIM(y->np);
  if (nx < 1 || ny < 1 || (nx > 2 && ny > 2 && nx != ny) || nx > 3 || ny > 3) {
    return Outcome::not_applicable;
  }
  const npy_intp* dx = PyArray_DIMS(x->np);
  const npy_intp* dy = PyArray_DIMS(y->np);
  const npy_intp* sx = PyArray_STRIDES(x->np);
  const npy_intp* sy = PyArray_STRIDES(y->np);
  // (batch, m, n) @ (batch, n, p); a vector is a matrix with one row or one column.
  const npy_intp m = nx == 1 ? 1 : dx[nx - 2];
  const npy_intp n = dx[nx - 1];
  const npy_intp p = ny == 1 ? 1 : dy[ny - 1];
  if (n != dy[ny == 1 ? 0 : ny - 2]) return Outcome::not_applicable;
  if (nx == 3 && ny == 3 && dx[0] != dy[0]) return Outcome::not_applicable;
  const npy_intp batch = nx == 3 ? dx[0] : ny == 3 ? dy[0] : 1;
  const int loop = find_loop(type_num);
  if (loop < 0) return Outcome::not_applicable;

  npy_intp shape[3];
  int ndim = 0;
  if (nx == 3 || ny == 3) shape[ndim++] = batch;
  if (nx > 1) shape[ndim++] = m;
  if (ny > 1) shape[ndim++] = p;
  PyArray_Descr* descr = PyArray_DESCR(x->np);
  Py_INCREF(descr);
  Ref out(reinterpret_cast<PyObject*>(new_ndarray(descr, ndim, shape, false)));
  if (!out) return Outcome::error;
  auto* np = reinterpret_cast<PyArrayObject*>(out.get());
  const npy_intp item = PyArray_ITEMSIZE(np);
  char* data[3] = {PyArray_BYTES(x->np), PyArray_BYTES(y->np), PyArray_BYTES(np)};
  const npy_intp dims[4] = {batch, m, n, p};
  const npy_intp strides[9] = {nx == 3 ? sx[0] : 0,
                               ny == 3 ? sy[0] : 0,
                               m * p * item,
                               nx == 1 ? n * item : sx[nx - 2],
                               sx[nx - 1],
                               ny == 1 ? sy[0] : sy[ny - 2],
                               ny == 1 ? item : sy[ny - 1],
                               p * item,
                               item};
  if (batch * m * p != 0) {
    void* loop_data =
        matmul_ufunc->data == nullptr ? nullptr : const_cast<void*>(matmul_ufunc->data[loop]);
    const bool release = batch * m * p > kReleaseFlops / std::max<npy_intp>(n, 1);
    const Ref held_x = hold_data(x);  // another thread may donate an operand meanwhile
    const Ref held_y = hold_data(y);
    PyThreadState* saved = release ? PyEval_SaveThread() : nullptr;
    if (m == 1 && p == 1 && batch == 1 && n >= kOwnDot && type_num == NPY_FLOAT &&
        strides[4] == item && strides[5] == item) {
      *reinterpret_cast<float*>(data[2]) = dot(reinterpret_cast<const float*>(data[0]),
                                               reinterpret_cast<const float*>(data[1]), n);
    } else {
      matmul_ufunc->functions[loop](data, dims, strides, loop_data);
    }
    if (saved != nullptr) restore_thread(saved);
  }
  *result = wrap_ndarray(reinterpret_cast<PyArrayObject*>(out.release()));
  return *result == nullptr ? Outcome::error : Outcome::done;
}

bool init_matmul(PyObject* numpy) {
  Ref ufunc(PyObject_GetAttrString(numpy, "matmul"));
  if (!ufunc) return false;
  if (!PyObject_TypeCheck(ufunc.get(), &PyUFunc_Type)) {
    PyErr_SetString(PyExc_ImportError, "numpy.matmul is not a ufunc");
    return false;
  }
  matmul_ufunc = reinterpret_cast<PyUFuncObject*>(ufunc.release());
  return true;
}

}  // namespace functrans
