// Views of Arrays without Python: the movement operations that eager code uses most.
#pragma once

#include "common.h"

namespace functrans {

// Each returns NotImplemented where it does not apply; the Python rule then says why or does it.
PyObject* broadcast_view(PyObject*, PyObject* const* args, Py_ssize_t nargs);  // x, shape, dims
PyObject* transpose_view(PyObject*, PyObject* const* args, Py_ssize_t nargs);  // x, permutation
PyObject* reshape_view(PyObject*, PyObject* const* args, Py_ssize_t nargs);    // x, shape
PyObject* matmul(PyObject*, PyObject* const* args, Py_ssize_t nargs);          // x, y
PyObject* sum_over(PyObject*, PyObject* const* args, Py_ssize_t nargs);        // x, axes

bool init_views(PyObject* numpy);

}  // namespace functrans
