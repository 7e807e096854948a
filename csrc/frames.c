/* C, because CPython's frame headers are not C++. Up to 3.13 the interpreter's own frames are read
   directly: PyFrame_GetBack makes a frame object for every level it passes, 60 ns each. */
#define PY_SSIZE_T_CLEAN
#define Py_BUILD_CORE_MODULE 1
#include "frames.h"

#include <stdbool.h>
#include <string.h>

#if PY_VERSION_HEX < 0x030E0000 && !defined(Py_GIL_DISABLED)
#define FUNCTRANS_DIRECT_FRAMES 1
#include <internal/pycore_frame.h>
#endif

enum { max_prefixes = 16, max_frames = 1024 };

static PyObject* prefixes[max_prefixes]; /* str, ASCII or not, kept alive */
static const char* prefix_text[max_prefixes];
static Py_ssize_t prefix_length[max_prefixes];
static int prefix_count = 0;

static bool is_internal(PyCodeObject* code) {
  Py_ssize_t length = 0;
  const char* name = PyUnicode_AsUTF8AndSize(code->co_filename, &length);
  if (name == NULL) { /* lone surrogates: no file of ours */
    PyErr_Clear();
    return false;
  }
  for (int i = 0; i < prefix_count; ++i) {
    if (length >= prefix_length[i] && memcmp(name, prefix_text[i], prefix_length[i]) == 0)
      return true;
  }
  return false;
}

static PyObject* make_pair(PyCodeObject* code, int lasti) {
  PyObject* index = PyLong_FromLong(lasti);
  if (index == NULL) return NULL;
  PyObject* pair = PyTuple_Pack(2, (PyObject*)code, index);
  Py_DECREF(index);
  return pair;
}

#ifdef FUNCTRANS_DIRECT_FRAMES

static struct _PyInterpreterFrame* top_frame(void) {
  PyThreadState* state = PyThreadState_Get();
#if PY_VERSION_HEX < 0x030D0000
  return state->cframe->current_frame;
#else
  return state->current_frame;
#endif
}

/* The code of a frame that runs Python and has begun to, or NULL. */
static PyCodeObject* frame_code(struct _PyInterpreterFrame* frame) {
#if PY_VERSION_HEX < 0x030C0000
  return _PyFrame_IsIncomplete(frame) ? NULL : frame->f_code;
#elif PY_VERSION_HEX < 0x030D0000
  return frame->owner == FRAME_OWNED_BY_CSTACK || _PyFrame_IsIncomplete(frame) ? NULL
                                                                               : frame->f_code;
#else
  if (frame->owner == FRAME_OWNED_BY_CSTACK || _PyFrame_IsIncomplete(frame)) return NULL;
  return PyCode_Check(frame->f_executable) ? (PyCodeObject*)frame->f_executable : NULL;
#endif
}

static bool collect(PyObject** found, int limit, int* count) {
  for (struct _PyInterpreterFrame* frame = top_frame(); frame != NULL && *count < limit;
       frame = frame->previous) {
    PyCodeObject* code = frame_code(frame);
    if (code == NULL || is_internal(code)) continue;
    const int lasti = _PyInterpreterFrame_LASTI(frame) * (int)sizeof(_Py_CODEUNIT);
    if ((found[*count] = make_pair(code, lasti)) == NULL) return false;
    ++*count;
  }
  return true;
}

#else

static bool collect(PyObject** found, int limit, int* count) {
  PyFrameObject* frame = PyEval_GetFrame();
  Py_XINCREF(frame);
  while (frame != NULL && *count < limit) {
    PyCodeObject* code = PyFrame_GetCode(frame);
    bool ok = true;
    if (!is_internal(code)) {
      found[*count] = make_pair(code, PyFrame_GetLasti(frame));
      ok = found[*count] != NULL;
      *count += ok;
    }
    Py_DECREF(code);
    PyFrameObject* back = ok ? PyFrame_GetBack(frame) : NULL;
    Py_DECREF(frame);
    if (!ok) return false;
    frame = back;
  }
  Py_XDECREF(frame);
  return true;
}

#endif

PyObject* functrans_user_frames(PyObject* module, PyObject* const* args, Py_ssize_t nargs,
                                PyObject* kwnames) {
  (void)module;
  const Py_ssize_t keywords = kwnames == NULL ? 0 : PyTuple_GET_SIZE(kwnames);
  if (nargs + keywords > 1 || (keywords == 1 && PyUnicode_CompareWithASCIIString(
                                                    PyTuple_GET_ITEM(kwnames, 0), "limit") != 0)) {
    PyErr_SetString(PyExc_TypeError, "user_frames takes (limit=1)");
    return NULL;
  }
  long limit = 1;
  if (nargs + keywords == 1) {
    limit = PyLong_AsLong(args[0]);
    if (limit == -1 && PyErr_Occurred()) return NULL;
  }
  if (limit < 0) limit = 0;
  if (limit > max_frames) limit = max_frames;
  PyObject* found[max_frames];
  int count = 0;
  bool ok = collect(found, (int)limit, &count);
  PyObject* result = ok ? PyTuple_New(count) : NULL;
  for (int i = 0; i < count; ++i) {
    if (result != NULL) {
      PyTuple_SET_ITEM(result, i, found[i]);
    } else {
      Py_DECREF(found[i]);
    }
  }
  return result;
}

PyObject* functrans_set_internal_prefixes(PyObject* module, PyObject* sequence) {
  (void)module;
  PyObject* items = PySequence_Tuple(sequence);
  if (items == NULL) return NULL;
  const Py_ssize_t count = PyTuple_GET_SIZE(items);
  if (count > max_prefixes) {
    PyErr_Format(PyExc_ValueError, "at most %d prefixes", (int)max_prefixes);
    Py_DECREF(items);
    return NULL;
  }
  const char* text[max_prefixes];
  Py_ssize_t length[max_prefixes];
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject* item = PyTuple_GET_ITEM(items, i);
    text[i] = PyUnicode_Check(item) ? PyUnicode_AsUTF8AndSize(item, &length[i]) : NULL;
    if (text[i] == NULL) {
      if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "prefixes must be strings");
      Py_DECREF(items);
      return NULL;
    }
  }
  PyObject* old[max_prefixes];
  const int old_count = prefix_count;
  memcpy(old, prefixes, sizeof old);
  for (Py_ssize_t i = 0; i < count; ++i) {
    prefixes[i] = Py_NewRef(PyTuple_GET_ITEM(items, i));
    prefix_text[i] = text[i];
    prefix_length[i] = length[i];
  }
  prefix_count = (int)count;
  for (int i = 0; i < old_count; ++i) Py_DECREF(old[i]);
  Py_DECREF(items);
  Py_RETURN_NONE;
}
