// The number protocol and comparisons of ArrayBase: inner loops first, registered Python functions
// for everything else.
#include "array.h"
#include "loops.h"
#include "matmul.h"
#include "views.h"
#include "trace_state.h"

#include <cfenv>

namespace functrans {
namespace {

// One table for each operator that has a ufunc; `kinds` are those where NumPy and functrans agree.
struct OperatorSpec {
  const char* ufunc;
  const char* kinds;
};

enum Operator {
  op_add,
  op_sub,
  op_mul,
  op_truediv,
  op_floordiv,
  op_mod,
  op_pow,
  op_square,
  op_and,
  op_or,
  op_xor,
  op_lshift,
  op_rshift,
  op_neg,
  op_abs,
  op_invert,
  op_lt,
  op_le,
  op_eq,
  op_ne,
  op_gt,
  op_ge,
  op_count
};

constexpr OperatorSpec specs[op_count] = {
    {"add", "biufc"},         {"subtract", "iufc"},    {"multiply", "biufc"},
    {"true_divide", "fc"},    {"floor_divide", "iuf"}, {"remainder", "iuf"},
    {"power", "f"},           {"square", "fc"},        {"bitwise_and", "biu"},
    {"bitwise_or", "biu"},    {"bitwise_xor", "biu"},  {"left_shift", "iu"},
    {"right_shift", "iu"},    {"negative", "iufc"},    {"absolute", "iufc"},
    {"invert", "biu"},        {"less", "biuf"},        {"less_equal", "biuf"},
    {"equal", "biufc"},       {"not_equal", "biufc"},  {"greater", "biuf"},
    {"greater_equal", "biuf"}};

LoopTable tables[op_count];

PyObject* hook2(Hook hook, PyObject* a, PyObject* b) {
  PyObject* args[] = {a, b};
  return call_hook(hook, args, 2);
}

inline PyObject* reflect(Hook hook, Hook reflected, PyObject* a, PyObject* b) {
  return is_array(a) ? hook2(hook, a, b) : hook2(reflected, b, a);
}

// NumPy's integer quotients by zero are 0 and ours are not; its loops raise the flag of a division by
// zero, which costs less to look at than the divisors do.
Outcome run_floor_divide(PyObject* const* args, PyObject** result) {
  if (std::fetestexcept(FE_DIVBYZERO)) std::feclearexcept(FE_DIVBYZERO);
  const Outcome outcome = run_loops(tables[op_floordiv], args, true, result);
  if (outcome != Outcome::done || !std::fetestexcept(FE_DIVBYZERO)) return outcome;
  if (PyTypeNum_ISFLOAT(PyArray_TYPE(as_array(*result)->np))) return outcome;
  Py_CLEAR(*result);
  return Outcome::not_applicable;
}

template <int op, Hook hook, Hook reflected>
PyObject* binary(PyObject* a, PyObject* b) {
  if (!tracing()) {
    PyObject* args[] = {a, b};
    PyObject* result = nullptr;
    const Outcome outcome = op == op_floordiv ? run_floor_divide(args, &result)
                                              : run_loops(tables[op], args, true, &result);
    if (outcome != Outcome::not_applicable) return leave(result);
  }
  return reflect(hook, reflected, a, b);
}

template <int op, Hook hook>
PyObject* unary(PyObject* a) {
  if (!tracing()) {
    PyObject* result = nullptr;
    const Outcome outcome = run_loops(tables[op], &a, true, &result);
    if (outcome != Outcome::not_applicable) return leave(result);
  }
  return call_hook(hook, &a, 1);
}

PyObject* array_power(PyObject* a, PyObject* b, PyObject* modulus) {
  if (modulus != Py_None) Py_RETURN_NOTIMPLEMENTED;
  if (!tracing()) {
    PyObject* args[] = {a, b};
    PyObject* result = nullptr;
    Outcome outcome = Outcome::not_applicable;
    if (!PyLong_CheckExact(b)) {
      outcome = run_loops(tables[op_pow], args, true, &result);
    } else if (Py_SIZE(b) == 1 && PyLong_AsLong(b) == 2) {
      // Other integer exponents are repeated products, which the fallback does.
      outcome = run_loops(tables[op_square], args, true, &result);
    }
    if (outcome != Outcome::not_applicable) return leave(result);
  }
  return reflect(Hook::pow, Hook::rpow, a, b);
}

PyObject* array_matmul(PyObject* a, PyObject* b) {
  if (!tracing()) {
    PyObject* result = nullptr;
    if (run_matmul(a, b, &result) != Outcome::not_applicable) return leave(result);
  }
  return reflect(Hook::matmul, Hook::rmatmul, a, b);
}

PyObject* array_divmod(PyObject* a, PyObject* b) {
  return reflect(Hook::divmod, Hook::rdivmod, a, b);
}

PyObject* array_positive(PyObject* a) {
  if (!tracing() && as_array(a)->loop_type > NPY_BOOL) return Py_NewRef(a);
  return call_hook(Hook::pos, &a, 1);
}

int array_bool(PyObject* self) {
  if (!has_numbers(self) || !has_data(as_array(self))) return -1;
  PyArrayObject* np = as_array(self)->np;
  const npy_intp size = PyArray_SIZE(np);
  if (size == 1) {
    Ref item(PyArray_GETITEM(np, PyArray_BYTES(np)));
    return item ? PyObject_IsTrue(item.get()) : -1;
  }
  Ref shape(PyArray_IntTupleFromIntp(PyArray_NDIM(np), PyArray_DIMS(np)));
  if (shape) {
    PyErr_Format(PyExc_ValueError,
                 "the truth value of an array of shape %S with %zd elements is "
                 "ambiguous; use .any() or .all()",
                 shape.get(), static_cast<Py_ssize_t>(size));
  }
  return -1;
}

// The element of a rank-0 array as a Python scalar (or a NumPy one where Python has none).
PyObject* scalar_item(PyObject* self, const char* function) {
  if (!has_numbers(self) || !has_data(as_array(self))) return nullptr;
  PyArrayObject* np = as_array(self)->np;
  if (PyArray_NDIM(np) == 0) return PyArray_GETITEM(np, PyArray_BYTES(np));
  Ref shape(PyArray_IntTupleFromIntp(PyArray_NDIM(np), PyArray_DIMS(np)));
  if (shape) {
    PyErr_Format(PyExc_TypeError,
                 "%s() takes an array of shape (), got one of shape %S; use .item() "
                 "or index it first",
                 function, shape.get());
  }
  return nullptr;
}

PyObject* array_int(PyObject* self) {
  Ref item(scalar_item(self, "int"));
  return item ? PyNumber_Long(item.get()) : nullptr;
}

PyObject* array_float(PyObject* self) {
  Ref item(scalar_item(self, "float"));
  return item ? PyNumber_Float(item.get()) : nullptr;
}

PyObject* array_index(PyObject* self) {
  if (!has_data(as_array(self))) return nullptr;
  PyArrayObject* np = as_array(self)->np;
  if (PyArray_NDIM(np) != 0 || !PyTypeNum_ISINTEGER(PyArray_TYPE(np))) {
    Ref shape(PyArray_IntTupleFromIntp(PyArray_NDIM(np), PyArray_DIMS(np)));
    if (shape) {
      PyErr_Format(PyExc_TypeError,
                   "an index must be an integer array of shape (), got shape %S and "
                   "dtype %S",
                   shape.get(), PyArray_DESCR(np));
    }
    return nullptr;
  }
  return PyArray_GETITEM(np, PyArray_BYTES(np));
}

template <typename Function>
void* slot(Function function) {
  return reinterpret_cast<void*>(function);
}

}  // namespace

PyObject* array_complex(PyObject* self, PyObject*) {
  Ref item(scalar_item(self, "complex"));
  if (!item) return nullptr;
  return PyObject_CallOneArg(reinterpret_cast<PyObject*>(&PyComplex_Type), item.get());
}

PyType_Slot array_number_slots[] = {
    {Py_nb_add, slot(binary<op_add, Hook::add, Hook::radd>)},
    {Py_nb_subtract, slot(binary<op_sub, Hook::sub, Hook::rsub>)},
    {Py_nb_multiply, slot(binary<op_mul, Hook::mul, Hook::rmul>)},
    {Py_nb_true_divide, slot(binary<op_truediv, Hook::truediv, Hook::rtruediv>)},
    {Py_nb_floor_divide, slot(binary<op_floordiv, Hook::floordiv, Hook::rfloordiv>)},
    {Py_nb_remainder, slot(binary<op_mod, Hook::mod, Hook::rmod>)},
    {Py_nb_and, slot(binary<op_and, Hook::and_, Hook::rand>)},
    {Py_nb_or, slot(binary<op_or, Hook::or_, Hook::ror>)},
    {Py_nb_xor, slot(binary<op_xor, Hook::xor_, Hook::rxor>)},
    {Py_nb_lshift, slot(binary<op_lshift, Hook::lshift, Hook::rlshift>)},
    {Py_nb_rshift, slot(binary<op_rshift, Hook::rshift, Hook::rrshift>)},
    {Py_nb_power, slot(array_power)},
    {Py_nb_matrix_multiply, slot(array_matmul)},
    {Py_nb_divmod, slot(array_divmod)},
    {Py_nb_negative, slot(unary<op_neg, Hook::neg>)},
    {Py_nb_absolute, slot(unary<op_abs, Hook::abs>)},
    {Py_nb_invert, slot(unary<op_invert, Hook::invert>)},
    {Py_nb_positive, slot(array_positive)},
    {Py_nb_bool, slot(array_bool)},
    {Py_nb_int, slot(array_int)},
    {Py_nb_float, slot(array_float)},
    {Py_nb_index, slot(array_index)},
    {0, nullptr}};

PyObject* array_richcompare(PyObject* a, PyObject* b, int op) {
  static constexpr Operator operators[] = {op_lt, op_le, op_eq, op_ne, op_gt, op_ge};
  static constexpr Hook fallbacks[] = {Hook::lt, Hook::le, Hook::eq, Hook::ne, Hook::gt, Hook::ge};
  if (!tracing()) {
    PyObject* args[] = {a, b};
    PyObject* result = nullptr;
    const Outcome outcome = run_loops(tables[operators[op]], args, true, &result);
    if (outcome != Outcome::not_applicable) return leave(result);
  }
  return hook2(fallbacks[op], a, b);
}

bool init_array_number() {
  Ref numpy(PyImport_ImportModule("numpy"));
  if (!numpy) return false;
  for (int op = 0; op < op_count; ++op) {
    Ref ufunc(PyObject_GetAttrString(numpy.get(), specs[op].ufunc));
    if (!ufunc) return false;
    if (!PyObject_TypeCheck(ufunc.get(), &PyUFunc_Type)) {
      PyErr_Format(PyExc_ImportError, "numpy.%s is not a ufunc", specs[op].ufunc);
      return false;
    }
    tables[op].init(reinterpret_cast<PyUFuncObject*>(ufunc.get()), specs[op].kinds);
  }
  return init_matmul(numpy.get()) && init_views(numpy.get());
}

}  // namespace functrans
