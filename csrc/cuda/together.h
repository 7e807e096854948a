// One program on several GPUs of this process, without a thread of Python for each.
#pragma once

#include "common.h"

namespace functrans::cuda {

// cuda_run_together([CudaProgram], [leaves], [group table]) -> [results of each].
PyObject* run_together(PyObject*, PyObject* args);

}  // namespace functrans::cuda
