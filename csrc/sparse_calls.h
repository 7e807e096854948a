// Sparse products and layouts on Arrays of known values, without a program: each gives
// NotImplemented for operands that it is not for.
#pragma once

#include "common.h"

namespace functrans {

PyObject* csr_product(PyObject*, PyObject* const* args, Py_ssize_t nargs);
PyObject* csr_times_csr(PyObject*, PyObject* const* args, Py_ssize_t nargs);
PyObject* rows_of_coordinates(PyObject*, PyObject* const* args, Py_ssize_t nargs);
PyObject* sum_coordinates(PyObject*, PyObject* const* args, Py_ssize_t nargs);
PyObject* coordinates_of_rows(PyObject*, PyObject* const* args, Py_ssize_t nargs);

}  // namespace functrans
