// Real NumPy ufuncs for the special functions and for the hashes of random numbers.
#pragma once

#include "common.h"

namespace functrans {

bool init_special(PyObject* module);

// threefry.cpp
void threefry_loop(char** args, const npy_intp* dims, const npy_intp* strides, void*);

// philox.cpp
void philox_loop(char** args, const npy_intp* dims, const npy_intp* strides, void*);

}  // namespace functrans
