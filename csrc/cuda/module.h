// What functrans._runtime offers of CUDA.
#pragma once

#include "common.h"

namespace functrans::cuda {

bool init_cuda(PyObject* module);

// A new reference to an Array, once it is computed; null with an exception.
PyObject* wait_for(PyObject* array);

}  // namespace functrans::cuda
