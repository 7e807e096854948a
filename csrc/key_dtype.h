// The dtype of random keys, `key<fry>`: eight bytes, the two words of a threefry key.
#pragma once

#include "common.h"

namespace functrans {

// The number under which NumPy knows the dtype.
extern int key_type_number;

inline bool holds_keys(PyArrayObject* np) { return PyArray_TYPE(np) == key_type_number; }

bool init_key_dtype(PyObject* module);

}  // namespace functrans
