// JitFunction: the call path of jit, and the state that all of them share.
#pragma once

#include "common.h"

namespace functrans {

bool init_jit_function(PyObject* module);
PyObject* bump_epoch(PyObject*, PyObject*);

}  // namespace functrans
