// The current trace: one Python object per thread, None for plain evaluation.
#pragma once

#include "common.h"

#include <cstdint>

namespace functrans {

struct ThreadState {
  PyObject* trace = nullptr;       // owned; null stands for None
  std::int64_t context_token = 0;  // part of every jit key
};

extern thread_local ThreadState thread_state;

inline bool tracing() { return thread_state.trace != nullptr; }

PyObject* get_trace(PyObject*, PyObject*);
PyObject* set_trace(PyObject*, PyObject* trace);

}  // namespace functrans
