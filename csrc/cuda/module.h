// What functrans._runtime offers of CUDA.
#pragma once

#include "common.h"

namespace functrans::cuda {

bool init_cuda(PyObject* module);

}  // namespace functrans::cuda
