// Direct use of a ufunc's inner loops: resolved once per dtype, run without NumPy's dispatch, error
// state and casting machinery.
#pragma once

#include "common.h"

#include <cstdint>

namespace functrans {

constexpr int kMaxOperands = 8;  // inputs and outputs of one ufunc

enum class Outcome { done, error, not_applicable };

struct Loop {
  PyUFuncGenericFunction function = nullptr;
  void* data = nullptr;
  PyArray_Descr* out[kMaxOperands] = {};  // owned
  bool resolved = false;
};

class LoopTable {
 public:
  // `kinds`: letters of the dtype kinds allowed, out of "biufc".
  void init(PyUFuncObject* ufunc, const char* kinds);
  void clear();
  int nin() const { return nin_; }
  int nout() const { return nout_; }
  PyUFuncObject* ufunc() const { return ufunc_; }
  const Loop* find(int type_num) {
    Loop& loop = loops_[type_num];
    if (!loop.resolved) resolve(loop, type_num);
    return loop.function == nullptr ? nullptr : &loop;
  }

 private:
  void resolve(Loop& loop, int type_num);
  PyUFuncObject* ufunc_ = nullptr;  // owned
  int nin_ = 0;
  int nout_ = 0;
  std::uint32_t kinds_ = 0;
  Loop loops_[NPY_CDOUBLE + 2] = {};
};

// Runs the table's loop on Arrays of one dtype and Python scalars that take it. `not_applicable`
// leaves no exception set. With `broadcast` false, shapes must be equal or of rank 0.
// One output comes back as an Array, several as a tuple of them.
Outcome run_loops(LoopTable& table, PyObject* const* args, bool broadcast, PyObject** result);

// A Python scalar of exact type bool, int, float or complex in the given dtype; only values that
// the dtype takes without changing its kind.
Outcome store_scalar(PyObject* scalar, int type_num, void* target);

}  // namespace functrans
