// EagerOp: a callable that runs a ufunc's inner loop on Arrays, or its Python fallback.
#pragma once

#include "common.h"

namespace functrans {

bool init_eager_op(PyObject* module);

}  // namespace functrans
