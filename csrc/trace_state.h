// The current trace, one Python object per thread, None for plain evaluation; and the settings that
// hold there.
#pragma once

#include "common.h"

#include <cstdint>

namespace functrans {

struct ThreadState {
  PyObject* trace = nullptr;  // owned; null stands for None
};

extern thread_local ThreadState thread_state;

inline bool tracing() { return thread_state.trace != nullptr; }

PyObject* get_trace(PyObject*, PyObject*);
PyObject* set_trace(PyObject*, PyObject* trace);

// Settings are those of a context variable, which tasks and the threads that asyncio starts have of
// their own, and of the process where it has none. The token is looked up when a program is called:
// kept by those who change settings, it would be that of another task.
PyObject* current_config(PyObject*, PyObject*);
PyObject* set_process_config(PyObject*, PyObject* args);
bool read_context_token(std::int64_t& token);  // part of every jit key; false with an exception

}  // namespace functrans
