// Python callables that the array type falls back on, by name.
#pragma once

#include "common.h"

namespace functrans {

#define FUNCTRANS_BINARY_HOOKS(X)                                                                  \
  X(add)                                                                                           \
  X(sub)                                                                                           \
  X(mul) X(truediv) X(floordiv) X(mod) X(pow) X(matmul) X(divmod) X(and_) X(or_) X(xor_) X(lshift) \
      X(rshift)
#define FUNCTRANS_REFLECTED_HOOKS(X)                                                            \
  X(radd)                                                                                       \
  X(rsub)                                                                                       \
  X(rmul) X(rtruediv) X(rfloordiv) X(rmod) X(rpow) X(rmatmul) X(rdivmod) X(rand) X(ror) X(rxor) \
      X(rlshift) X(rrshift)
#define FUNCTRANS_OTHER_HOOKS(X)                                                                \
  X(neg)                                                                                        \
  X(pos)                                                                                        \
  X(abs) X(invert) X(lt) X(le) X(eq) X(ne) X(gt) X(ge) X(getitem) X(setitem) X(delitem) X(repr) \
      X(str) X(format) X(aval) X(donated) X(cuda) X(dlpack) X(keys)
#define FUNCTRANS_HOOKS(X) \
  FUNCTRANS_BINARY_HOOKS(X) FUNCTRANS_REFLECTED_HOOKS(X) FUNCTRANS_OTHER_HOOKS(X)

enum class Hook : int {
#define X(name) name,
  FUNCTRANS_HOOKS(X)
#undef X
      count
};

// Calls the registered callable; RuntimeError when none is registered.
PyObject* call_hook(Hook hook, PyObject* const* args, Py_ssize_t nargs);
bool has_hook(Hook hook);

PyObject* set_operator_fallbacks(PyObject*, PyObject* table);

// Passes the pending exception, which is about to reach the user, through the registered filter.
void filter_error();
PyObject* set_error_filter(PyObject*, PyObject* callable);

// The result of a public call; an exception is filtered on its way out.
inline PyObject* leave(PyObject* result) {
  if (result == nullptr) filter_error();
  return result;
}

}  // namespace functrans
