// The dtypes of random keys: eight bytes, the two words of a key. There is one for each generator.
#pragma once

#include "common.h"

namespace functrans {

constexpr int kGenerators = 2;  // threefry, `key<fry>`, and philox, `key<philox>`

// The numbers under which NumPy knows the dtypes.
extern int key_type_numbers[kGenerators];

inline bool holds_keys(PyArrayObject* np) {
  const int type = PyArray_TYPE(np);
  return type == key_type_numbers[0] || type == key_type_numbers[1];
}

bool init_key_dtypes(PyObject* module);

}  // namespace functrans
