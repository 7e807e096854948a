/* Cheap capture of the user's frames: (code, lasti) pairs, resolved to lines later in Python. */
#pragma once

#include <Python.h>

#ifdef __cplusplus
extern "C" {
#endif

PyObject* functrans_user_frames(PyObject*, PyObject* const* args, Py_ssize_t nargs,
                                PyObject* kwnames);
PyObject* functrans_set_internal_prefixes(PyObject*, PyObject* prefixes);

#ifdef __cplusplus
}
#endif
