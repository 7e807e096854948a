#include "loops.h"

#include "allocator.h"
#include "array.h"

#include <complex>
#include <cstring>
#include <limits>

namespace functrans {
namespace {

// Below this, giving the GIL up costs more than it helps.
constexpr std::size_t kReleaseBytes = 64 << 10;

char kind_of(int type_num) {
  if (type_num == NPY_BOOL) return 'b';
  if (PyTypeNum_ISUNSIGNED(type_num)) return 'u';
  if (PyTypeNum_ISSIGNED(type_num)) return 'i';
  if (PyTypeNum_ISFLOAT(type_num)) return 'f';
  if (PyTypeNum_ISCOMPLEX(type_num)) return 'c';
  return '?';
}

std::uint32_t kind_bit(char kind) { return std::uint32_t{1} << (kind - 'a'); }

template <typename T>
bool store_int(long long value, void* target) {
  if (value < 0 && std::numeric_limits<T>::min() == 0) return false;
  if (value < 0 ? value < static_cast<long long>(std::numeric_limits<T>::min())
                : static_cast<unsigned long long>(value) >
                      static_cast<unsigned long long>(std::numeric_limits<T>::max())) {
    return false;
  }
  const T narrowed = static_cast<T>(value);
  std::memcpy(target, &narrowed, sizeof narrowed);
  return true;
}

bool store_integer(int type_num, long long value, void* target) {
  switch (type_num) {
    case NPY_BYTE: return store_int<npy_byte>(value, target);
    case NPY_UBYTE: return store_int<npy_ubyte>(value, target);
    case NPY_SHORT: return store_int<npy_short>(value, target);
    case NPY_USHORT: return store_int<npy_ushort>(value, target);
    case NPY_INT: return store_int<npy_int>(value, target);
    case NPY_UINT: return store_int<npy_uint>(value, target);
    case NPY_LONG: return store_int<npy_long>(value, target);
    case NPY_ULONG: return store_int<npy_ulong>(value, target);
    default: return false;
  }
}

bool store_inexact(int type_num, std::complex<double> value, void* target) {
  switch (type_num) {
    case NPY_FLOAT: {
      const float x = static_cast<float>(value.real());
      std::memcpy(target, &x, sizeof x);
      return true;
    }
    case NPY_DOUBLE: {
      const double x = value.real();
      std::memcpy(target, &x, sizeof x);
      return true;
    }
    case NPY_CFLOAT: {
      const float x[2] = {static_cast<float>(value.real()), static_cast<float>(value.imag())};
      std::memcpy(target, x, sizeof x);
      return true;
    }
    case NPY_CDOUBLE: {
      const double x[2] = {value.real(), value.imag()};
      std::memcpy(target, x, sizeof x);
      return true;
    }
    default: return false;
  }
}

struct Operands {
  int nin = 0;
  ArrayObject* arrays[kMaxOperands] = {};  // null for a scalar
  alignas(16) char scalars[kMaxOperands][16];
  const void* data[kMaxOperands];
};

bool same_shape(PyArrayObject* a, PyArrayObject* b) {
  const int ndim = PyArray_NDIM(a);
  if (ndim != PyArray_NDIM(b)) return false;
  const npy_intp* x = PyArray_DIMS(a);
  const npy_intp* y = PyArray_DIMS(b);
  for (int i = 0; i < ndim; ++i) {
    if (x[i] != y[i]) return false;
  }
  return true;
}

bool new_outputs(const LoopTable& table, const Loop& loop, int ndim, const npy_intp* dims,
                 bool fortran, Ref* outputs) {
  for (int i = 0; i < table.nout(); ++i) {
    Py_INCREF(loop.out[i]);
    outputs[i] =
        Ref(reinterpret_cast<PyObject*>(new_ndarray(loop.out[i], ndim, dims, false, fortran)));
    if (!outputs[i]) return false;
  }
  return true;
}

PyArrayObject* ndarray(const Ref& ref) { return reinterpret_cast<PyArrayObject*>(ref.get()); }

// All operands share one dense layout (or are single values): one call over the whole buffer.
bool run_flat(const LoopTable& table, const Loop& loop, const Operands& in, PyArrayObject* model,
              bool fortran, Ref* outputs) {
  if (!new_outputs(table, loop, PyArray_NDIM(model), PyArray_DIMS(model), fortran, outputs)) {
    return false;
  }
  char* data[kMaxOperands];
  npy_intp strides[kMaxOperands];
  npy_intp count = PyArray_SIZE(model);
  if (count == 0) return true;
  const npy_intp itemsize = PyArray_ITEMSIZE(model);
  const bool scalar_model = PyArray_NDIM(model) == 0;
  for (int i = 0; i < in.nin; ++i) {
    const bool whole =
        in.arrays[i] != nullptr && (scalar_model || PyArray_NDIM(in.arrays[i]->np) != 0);
    data[i] = static_cast<char*>(const_cast<void*>(in.data[i]));
    strides[i] = whole ? itemsize : 0;
  }
  for (int i = 0; i < table.nout(); ++i) {
    data[in.nin + i] = static_cast<char*>(PyArray_DATA(ndarray(outputs[i])));
    strides[in.nin + i] = PyArray_ITEMSIZE(ndarray(outputs[i]));
  }
  if (static_cast<std::size_t>(count * itemsize) >= kReleaseBytes) {
    Ref held[kMaxOperands];  // another thread may donate an operand meanwhile
    for (int i = 0; i < in.nin; ++i) {
      if (in.arrays[i] != nullptr) held[i] = hold_data(in.arrays[i]);
    }
    PyThreadState* thread = PyEval_SaveThread();
    loop.function(data, &count, strides, loop.data);
    restore_thread(thread);
  } else {
    loop.function(data, &count, strides, loop.data);
  }
  return true;
}

// The broadcast shape of all operands; false when they do not fit.
bool broadcast_shape(const Operands& in, int& ndim, npy_intp* dims) {
  ndim = 0;
  for (int i = 0; i < in.nin; ++i) {
    if (in.arrays[i] != nullptr) ndim = std::max(ndim, PyArray_NDIM(in.arrays[i]->np));
  }
  for (int d = 0; d < ndim; ++d) dims[d] = 1;
  for (int i = 0; i < in.nin; ++i) {
    if (in.arrays[i] == nullptr) continue;
    PyArrayObject* np = in.arrays[i]->np;
    const int shift = ndim - PyArray_NDIM(np);
    for (int d = 0; d < PyArray_NDIM(np); ++d) {
      const npy_intp extent = PyArray_DIM(np, d);
      if (extent == 1 || extent == dims[shift + d]) continue;
      if (dims[shift + d] != 1) return false;
      dims[shift + d] = extent;
    }
  }
  return true;
}

// Anything else: NumPy's iterator orders and coalesces the axes, the loop runs on its inner axis.
bool run_strided(const LoopTable& table, const Loop& loop, const Operands& in, int type_num,
                 int ndim, const npy_intp* dims, Ref* outputs) {
  if (!new_outputs(table, loop, ndim, dims, false, outputs)) return false;
  if (PyArray_SIZE(ndarray(outputs[0])) == 0) return true;
  const int nop = in.nin + table.nout();
  Ref temporaries[kMaxOperands];
  PyArrayObject* operands[kMaxOperands];
  npy_uint32 op_flags[kMaxOperands];
  for (int i = 0; i < in.nin; ++i) {
    op_flags[i] = NPY_ITER_READONLY;
    if (in.arrays[i] != nullptr) {
      operands[i] = in.arrays[i]->np;
      continue;
    }
    PyArray_Descr* descr = PyArray_DescrFromType(type_num);
    temporaries[i] =
        Ref(PyArray_NewFromDescr(&PyArray_Type, descr, 0, nullptr, nullptr,
                                 const_cast<void*>(in.data[i]), NPY_ARRAY_ALIGNED, nullptr));
    if (!temporaries[i]) return false;
    operands[i] = ndarray(temporaries[i]);
  }
  for (int i = 0; i < table.nout(); ++i) {
    operands[in.nin + i] = ndarray(outputs[i]);
    PyArray_ENABLEFLAGS(operands[in.nin + i], NPY_ARRAY_WRITEABLE);
    op_flags[in.nin + i] = NPY_ITER_WRITEONLY;
  }
  NpyIter* iterator =
      NpyIter_MultiNew(nop, operands, NPY_ITER_EXTERNAL_LOOP | NPY_ITER_DELAY_BUFALLOC,
                       NPY_KEEPORDER, NPY_NO_CASTING, op_flags, nullptr);
  if (iterator == nullptr) return false;
  bool ok = false;
  if (NpyIter_IterNextFunc* next = NpyIter_GetIterNext(iterator, nullptr)) {
    char** data = NpyIter_GetDataPtrArray(iterator);
    const npy_intp* strides = NpyIter_GetInnerStrideArray(iterator);
    const npy_intp* count = NpyIter_GetInnerLoopSizePtr(iterator);
    const bool release = PyArray_NBYTES(ndarray(outputs[0])) >= npy_intp{kReleaseBytes};
    PyThreadState* saved = release ? PyEval_SaveThread() : nullptr;
    char* pointers[kMaxOperands];
    do {
      std::memcpy(pointers, data, sizeof(char*) * nop);  // loops may advance their pointers
      loop.function(pointers, count, strides, loop.data);
    } while (next(iterator));
    if (saved != nullptr) restore_thread(saved);
    ok = true;
  }
  ok = NpyIter_Deallocate(iterator) == NPY_SUCCEED && ok;
  for (int i = 0; i < table.nout(); ++i) {
    PyArray_CLEARFLAGS(ndarray(outputs[i]), NPY_ARRAY_WRITEABLE);
  }
  return ok;
}

PyObject* wrap_outputs(const LoopTable& table, Ref* outputs) {
  if (table.nout() == 1) {
    return wrap_ndarray(reinterpret_cast<PyArrayObject*>(outputs[0].release()));
  }
  Ref tuple(PyTuple_New(table.nout()));
  if (!tuple) return nullptr;
  for (int i = 0; i < table.nout(); ++i) {
    PyObject* array = wrap_ndarray(reinterpret_cast<PyArrayObject*>(outputs[i].release()));
    if (array == nullptr) return nullptr;
    PyTuple_SET_ITEM(tuple.get(), i, array);
  }
  return tuple.release();
}

}  // namespace

void LoopTable::init(PyUFuncObject* ufunc, const char* kinds) {
  Py_INCREF(ufunc);
  ufunc_ = ufunc;
  nin_ = ufunc->nin;
  nout_ = ufunc->nout;
  kinds_ = 0;
  for (const char* k = kinds; *k != 0; ++k) kinds_ |= kind_bit(*k);
  // Generalised ufuncs and overlong signatures never take the fast path.
  if (ufunc->core_enabled || nin_ + nout_ > kMaxOperands || nout_ == 0) kinds_ = 0;
}

void LoopTable::clear() {
  for (Loop& loop : loops_) {
    for (PyArray_Descr*& descr : loop.out) Py_CLEAR(descr);
    loop.function = nullptr;
    loop.resolved = true;
  }
  Py_CLEAR(ufunc_);
}

void LoopTable::resolve(Loop& loop, int type_num) {
  loop.resolved = true;
  if ((kinds_ & kind_bit(kind_of(type_num))) == 0) return;
  const int nargs = nin_ + nout_;
  for (int i = 0; i < ufunc_->ntypes; ++i) {
    // numbers, below 0 for types without one; of char the sign depends on the processor
    const auto* types = reinterpret_cast<const signed char*>(ufunc_->types + i * nargs);
    bool match = ufunc_->functions[i] != nullptr;
    for (int k = 0; k < nin_; ++k) match &= types[k] == type_num;
    for (int k = nin_; k < nargs; ++k) match &= types[k] >= 0 && types[k] <= NPY_CDOUBLE + 1;
    if (!match) continue;
    for (int k = 0; k < nout_; ++k) loop.out[k] = PyArray_DescrFromType(types[nin_ + k]);
    loop.data = ufunc_->data == nullptr ? nullptr : const_cast<void*>(ufunc_->data[i]);
    loop.function = ufunc_->functions[i];
    return;
  }
}

Outcome store_scalar(PyObject* scalar, int type_num, void* target) {
  const char kind = kind_of(type_num);
  if (PyFloat_CheckExact(scalar)) {
    return store_inexact(type_num, PyFloat_AS_DOUBLE(scalar), target) ? Outcome::done
                                                                      : Outcome::not_applicable;
  }
  if (PyLong_CheckExact(scalar)) {
    int overflow = 0;
    const long long value = PyLong_AsLongLongAndOverflow(scalar, &overflow);
    constexpr long long exact = 1LL << 53;  // beyond, the conversion to float has its own rules
    if (overflow != 0) return Outcome::not_applicable;
    const bool stored = kind == 'i' || kind == 'u'
                            ? store_integer(type_num, value, target)
                            : value >= -exact && value <= exact &&
                                  store_inexact(type_num, static_cast<double>(value), target);
    return stored ? Outcome::done : Outcome::not_applicable;
  }
  if (PyComplex_CheckExact(scalar) && kind == 'c') {
    const Py_complex z = PyComplex_AsCComplex(scalar);
    store_inexact(type_num, {z.real, z.imag}, target);
    return Outcome::done;
  }
  return Outcome::not_applicable;
}

Outcome run_loops(LoopTable& table, PyObject* const* args, bool broadcast, PyObject** result) {
  Operands in;
  in.nin = table.nin();
  int type_num = -1;
  bool strong = false;
  ArrayObject* model = nullptr;  // the array of the highest rank
  for (int i = 0; i < in.nin; ++i) {
    if (!is_exact_array(args[i])) continue;
    ArrayObject* array = as_array(args[i]);
    if (array->loop_type < 0 || (type_num >= 0 && array->loop_type != type_num)) {
      return Outcome::not_applicable;
    }
    type_num = array->loop_type;
    strong |= !array->weak_type;
    in.arrays[i] = array;
    in.data[i] = PyArray_DATA(array->np);
    if (model == nullptr || PyArray_NDIM(array->np) > PyArray_NDIM(model->np)) model = array;
  }
  if (model == nullptr || !strong) return Outcome::not_applicable;
  const Loop* loop = table.find(type_num);
  if (loop == nullptr) return Outcome::not_applicable;
  bool flat = true;
  bool c_order = true;
  bool f_order = true;
  for (int i = 0; i < in.nin; ++i) {
    ArrayObject* array = in.arrays[i];
    if (array == nullptr) {
      const Outcome stored = store_scalar(args[i], type_num, in.scalars[i]);
      if (stored != Outcome::done) return stored;
      in.data[i] = in.scalars[i];
    } else if (array == model || same_shape(array->np, model->np)) {
      c_order &= array->c_contiguous;
      f_order &= PyArray_IS_F_CONTIGUOUS(array->np) != 0;
    } else if (PyArray_NDIM(array->np) != 0) {
      flat = false;
    }
  }
  if (!flat && !broadcast) return Outcome::not_applicable;
  Ref outputs[kMaxOperands];
  bool ok;
  if (flat && (c_order || f_order)) {
    ok = run_flat(table, *loop, in, model->np, !c_order, outputs);
  } else {
    int ndim = 0;
    npy_intp dims[NPY_MAXDIMS];
    if (!broadcast_shape(in, ndim, dims)) return Outcome::not_applicable;
    ok = run_strided(table, *loop, in, type_num, ndim, dims, outputs);
  }
  // A loop may raise, as integer powers do.
  if (!ok || PyErr_Occurred()) return Outcome::error;
  *result = wrap_outputs(table, outputs);
  return *result == nullptr ? Outcome::error : Outcome::done;
}

}  // namespace functrans
