// The Python type CudaEvent: a point on a device's compute stream, for timing.
#pragma once

#include "common.h"

namespace functrans::cuda {

bool init_event(PyObject* module);

}  // namespace functrans::cuda
