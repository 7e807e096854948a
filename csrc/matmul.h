// Matrix products of Arrays through the inner loops of numpy.matmul (BLAS where NumPy has it).
#pragma once

#include "loops.h"

namespace functrans {

// a @ b for two strong Arrays of one floating or complex dtype, without broadcasting of batch axes
// beyond equal ones. `not_applicable` leaves no exception set.
Outcome run_matmul(PyObject* a, PyObject* b, PyObject** result);

bool init_matmul(PyObject* numpy);

}  // namespace functrans
