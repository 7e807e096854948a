// JitFunction: the call path of jit, and the state that all of them share.
#pragma once

#include "common.h"

namespace functrans {

bool init_jit_function(PyObject* module);
PyObject* bump_epoch(PyObject*, PyObject*);
PyObject* set_context_token(PyObject*, PyObject* token);
PyObject* get_context_token(PyObject*, PyObject*);

}  // namespace functrans
