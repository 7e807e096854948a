#include "special_ufuncs.h"

#include "special.h"

#include <cfenv>
#include <cmath>

namespace functrans {
namespace {

using Unary = double (*)(double);
using Binary = double (*)(double, double);

double error_function(double x) { return std::erf(x); }
double complementary_error(double x) { return std::erfc(x); }

// float32 computes in float64 and rounds once: right to the last bit nearly always. The functions
// answer by infinities and NaN, so the status flags are cleared and NumPy has nothing to warn
// about.
template <typename T, Unary function>
void unary_loop(char** args, const npy_intp* dims, const npy_intp* strides, void*) {
  const char* in = args[0];
  char* out = args[1];
  for (npy_intp i = 0; i < dims[0]; ++i, in += strides[0], out += strides[1]) {
    const T x = *reinterpret_cast<const T*>(in);
    *reinterpret_cast<T*>(out) = static_cast<T>(function(static_cast<double>(x)));
  }
  std::feclearexcept(FE_ALL_EXCEPT);
}

template <typename T, Binary function>
void binary_loop(char** args, const npy_intp* dims, const npy_intp* strides, void*) {
  const char* a = args[0];
  const char* b = args[1];
  char* out = args[2];
  for (npy_intp i = 0; i < dims[0]; ++i, a += strides[0], b += strides[1], out += strides[2]) {
    const double x = static_cast<double>(*reinterpret_cast<const T*>(a));
    const double y = static_cast<double>(*reinterpret_cast<const T*>(b));
    *reinterpret_cast<T*>(out) = static_cast<T>(function(x, y));
  }
  std::feclearexcept(FE_ALL_EXCEPT);
}

void erf_inv_float_loop(char** args, const npy_intp* dims, const npy_intp* strides, void*) {
  erf_inverse_float(args[0], args[1], dims[0], strides[0], strides[1]);
  std::feclearexcept(FE_ALL_EXCEPT);
}

PyUFuncGenericFunction erf_inv_loops[] = {erf_inv_float_loop, unary_loop<double, erf_inverse>};

template <Unary function>
PyUFuncGenericFunction unary_loops[] = {unary_loop<float, function>, unary_loop<double, function>};
template <Binary function>
PyUFuncGenericFunction binary_loops[] = {binary_loop<float, function>,
                                         binary_loop<double, function>};
PyUFuncGenericFunction threefry_loops[] = {threefry_loop};
PyUFuncGenericFunction philox_loops[] = {philox_loop};

const char unary_types[] = {NPY_FLOAT, NPY_FLOAT, NPY_DOUBLE, NPY_DOUBLE};
const char binary_types[] = {NPY_FLOAT, NPY_FLOAT, NPY_FLOAT, NPY_DOUBLE, NPY_DOUBLE, NPY_DOUBLE};
const char threefry_types[] = {NPY_UINT32, NPY_UINT32, NPY_UINT32,
                               NPY_UINT32, NPY_UINT32, NPY_UINT32};
const char philox_types[] = {NPY_UINT32, NPY_UINT32, NPY_UINT32, NPY_UINT32, NPY_UINT32,
                             NPY_UINT32, NPY_UINT32, NPY_UINT32, NPY_UINT32, NPY_UINT32};
void* no_data[] = {nullptr, nullptr};

struct Definition {
  const char* name;
  PyUFuncGenericFunction* loops;
  const char* types;
  int ntypes, nin, nout;
  const char* doc;
};

template <Unary function>
Definition unary(const char* name, const char* doc) {
  return {name, unary_loops<function>, unary_types, 2, 1, 1, doc};
}

template <Binary function>
Definition binary(const char* name, const char* doc) {
  return {name, binary_loops<function>, binary_types, 2, 2, 1, doc};
}

}  // namespace

bool init_special(PyObject* module) {
  const Definition definitions[] = {
      unary<error_function>("erf", "Error function, elementwise."),
      unary<complementary_error>("erfc", "Complementary error function 1 - erf(x), elementwise."),
      {"erf_inv", erf_inv_loops, unary_types, 2, 1, 1, "Inverse of erf on [-1, 1], elementwise."},
      unary<log_gamma>("lgamma", "Logarithm of |Gamma(x)|, elementwise."),
      unary<digamma>("digamma", "Derivative of log Gamma; NaN at its poles."),
      unary<bessel_i0e>("bessel_i0e", "exp(-|x|) I0(x), elementwise."),
      unary<bessel_i1e>("bessel_i1e", "exp(-|x|) I1(x), elementwise."),
      binary<igamma>("igamma", "Regularised lower incomplete gamma function P(a, x)."),
      binary<igammac>("igammac", "Regularised upper incomplete gamma function Q(a, x)."),
      binary<random_gamma_grad>("random_gamma_grad",
                                "Derivative of a standard gamma sample in its shape: (a, sample)."),
      binary<hurwitz_zeta>("zeta", "Hurwitz zeta function: sum over k >= 0 of (q + k)^-x; (x, q)."),
      {"threefry2x32", threefry_loops, threefry_types, 1, 4, 2,
       "Threefry-2x32 with 20 rounds: (key0, key1, counter0, counter1) -> two uint32 words."},
      {"philox4x32", philox_loops, philox_types, 1, 6, 4,
       "Philox-4x32 with 10 rounds: (key0, key1, counter0, ..., counter3) -> four uint32 words."},
  };
  for (const Definition& d : definitions) {
    Ref ufunc(PyUFunc_FromFuncAndData(d.loops, no_data, const_cast<char*>(d.types), d.ntypes, d.nin,
                                      d.nout, PyUFunc_None, d.name, d.doc, 0));
    if (!ufunc || PyModule_AddObjectRef(module, d.name, ufunc.get()) < 0) return false;
  }
  return true;
}

}  // namespace functrans
