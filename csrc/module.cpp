// functrans._runtime: registration of everything that csrc/ offers.
#define FUNCTRANS_IMPORT_NUMPY
#include <pybind11/pybind11.h>

#include "allocator.h"
#include "array.h"
#include "common.h"
#include "cuda/module.h"
#include "eager_op.h"
#include "frames.h"
#include "gemm.h"
#include "hooks.h"
#include "jit_function.h"
#include "key_dtype.h"
#include "library.h"
#include "library_functions.h"
#include "linear_tape.h"
#include "communicator_type.h"
#include "program.h"
#include "recycled.h"
#include "signature.h"
#include "sparse_calls.h"
#include "special_ufuncs.h"
#include "threads.h"
#include "threads_openmp.h"
#include "trace_state.h"
#include "views.h"

#include <algorithm>
#include <climits>
#include <cstring>

namespace py = pybind11;

namespace functrans {
namespace {

// empty(shape, dtype): the shape is checked before anything is allocated.
PyObject* empty(PyObject*, PyObject* args) {
  PyObject* shape = nullptr;
  PyObject* dtype = nullptr;
  if (!PyArg_ParseTuple(args, "OO:empty", &shape, &dtype)) return nullptr;
  if (dtype == Py_None) {
    PyErr_SetString(PyExc_TypeError, "empty needs a dtype, not None");
    return nullptr;
  }
  PyArray_Descr* descr = nullptr;
  if (PyArray_DescrConverter(dtype, &descr) == 0) return nullptr;
  Ref owned(reinterpret_cast<PyObject*>(descr));
  if (PyDataType_REFCHK(descr) || PyDataType_ELSIZE(descr) == 0 || PyDataType_HASSUBARRAY(descr)) {
    PyErr_Format(PyExc_TypeError, "an array cannot hold the dtype %S", descr);
    return nullptr;
  }
  npy_intp dims[NPY_MAXDIMS];
  int ndim = 0;
  if (PyLong_Check(shape)) {
    ndim = 1;
    dims[0] = PyLong_AsSsize_t(shape);
    if (dims[0] == -1 && PyErr_Occurred()) return nullptr;
  } else {
    Ref items(PySequence_Tuple(shape));
    if (!items) return nullptr;
    if (PyTuple_GET_SIZE(items.get()) > NPY_MAXDIMS) {
      PyErr_Format(PyExc_ValueError, "an array has at most %d axes, got %zd", NPY_MAXDIMS,
                   PyTuple_GET_SIZE(items.get()));
      return nullptr;
    }
    ndim = static_cast<int>(PyTuple_GET_SIZE(items.get()));
    for (int i = 0; i < ndim; ++i) {
      dims[i] = PyNumber_AsSsize_t(PyTuple_GET_ITEM(items.get(), i), PyExc_OverflowError);
      if (dims[i] == -1 && PyErr_Occurred()) return nullptr;
    }
  }
  for (int i = 0; i < ndim; ++i) {
    if (dims[i] < 0) {
      PyErr_Format(PyExc_ValueError, "negative extent in shape %S", shape);
      return nullptr;
    }
  }
  owned.release();
  return reinterpret_cast<PyObject*>(new_ndarray(descr, ndim, dims, true));
}

// set_num_threads(n): None for as many as there are CPUs.
PyObject* set_num_threads(PyObject*, PyObject* count) {
  Py_ssize_t threads = 0;
  if (count != Py_None) {
    threads = PyNumber_AsSsize_t(count, nullptr);
    if (threads == -1 && PyErr_Occurred()) return nullptr;
    if (threads < 1) {
      PyErr_Format(PyExc_ValueError, "the number of threads must be at least 1, got %S", count);
      return nullptr;
    }
  }
  set_thread_count(static_cast<int>(std::min<Py_ssize_t>(threads, INT_MAX)));
  Py_RETURN_NONE;
}

PyObject* get_num_threads(PyObject*, PyObject*) { return PyLong_FromLong(threads_at_most()); }

PyObject* set_thread_share_of_thread(PyObject*, PyObject* count) {
  const long threads = PyLong_AsLong(count);
  if (threads == -1 && PyErr_Occurred()) return nullptr;
  return PyLong_FromLong(set_thread_share(static_cast<int>(std::clamp(threads, 0L, 512L))));
}

// set_thread_layer(name): "functrans" or "openmp"; ImportError where there is no OpenMP.
PyObject* set_thread_layer_by_name(PyObject*, PyObject* name) {
  const char* text = PyUnicode_AsUTF8(name);
  if (text == nullptr) return nullptr;
  const bool openmp = std::strcmp(text, "openmp") == 0;
  if (!openmp && std::strcmp(text, "functrans") != 0) {
    PyErr_Format(PyExc_ValueError, "a thread layer is 'functrans' or 'openmp', not %R", name);
    return nullptr;
  }
  if (const char* reason = openmp ? load_openmp() : nullptr) {
    PyErr_SetString(PyExc_ImportError, reason);
    return nullptr;
  }
  set_thread_layer(openmp ? ThreadLayer::kOpenMP : ThreadLayer::kOwn);
  Py_RETURN_NONE;
}

PyObject* get_thread_layer(PyObject*, PyObject*) {
  return PyUnicode_FromString(thread_layer() == ThreadLayer::kOpenMP ? "openmp" : "functrans");
}

template <typename Function>
PyCFunction as_cfunction(Function function) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}

PyMethodDef functions[] = {
    {"get_trace", get_trace, METH_NOARGS, "get_trace(): this thread's current trace, or None."},
    {"set_trace", set_trace, METH_O,
     "set_trace(trace): make it current; returns the previous one."},
    {"live_arrays", live_arrays, METH_NOARGS,
     "live_arrays(): a list of the arrays whose data is there."},
    {"set_array_type", set_array_type, METH_O,
     "set_array_type(cls): what results are instances of."},
    {"set_operator_fallbacks", set_operator_fallbacks, METH_O,
     "set_operator_fallbacks({name: callable}): what ArrayBase calls beyond its fast paths."},
    {"wrap", as_cfunction(wrap), METH_FASTCALL | METH_KEYWORDS,
     "wrap(ndarray, weak_type=False): an Array on that memory, which the caller gives up."},
    {"_rebuild_array", as_cfunction(rebuild_array), METH_FASTCALL, "For pickle."},
    {"empty", empty, METH_VARARGS, "empty(shape, dtype): an ndarray on the caching allocator."},
    {"bump_epoch", bump_epoch, METH_NOARGS,
     "bump_epoch(): no jit entry made before is used again."},
    {"current_config", current_config, METH_NOARGS,
     "current_config(): the settings of the running thread or task."},
    {"set_process_config", set_process_config, METH_VARARGS,
     "set_process_config(variable, config): settings where the ContextVar has none."},
    {"register_node", register_node, METH_VARARGS,
     "register_node(cls, flatten): how JitFunction flattens instances of cls."},
    {"set_error_filter", set_error_filter, METH_O,
     "set_error_filter(callable): error -> the error that leaves the package in its place."},
    {"set_num_threads", set_num_threads, METH_O,
     "set_num_threads(n): how many threads one program uses; None for one per CPU."},
    {"get_num_threads", get_num_threads, METH_NOARGS,
     "get_num_threads(): how many threads one program uses."},
    {"set_thread_share", set_thread_share_of_thread, METH_O,
     "set_thread_share(n): the most threads of loops of this thread; 0 for all. Returns the last."},
    {"sharded_array", sharded_array, METH_VARARGS,
     "sharded_array(shape, dtype, weak_type, shards): an Array whose data shards.gather() gives."},
    {"donate_array", donate_array, METH_O, "donate_array(x): mark an Array as given to a call."},
    {"get_shards", get_shards, METH_O, "get_shards(x): those of a sharded Array, else None."},
    {"set_thread_layer", set_thread_layer_by_name, METH_O,
     "set_thread_layer(name): whose threads programs use, 'functrans' or 'openmp'."},
    {"get_thread_layer", get_thread_layer, METH_NOARGS,
     "get_thread_layer(): whose threads programs use."},
    {"broadcast_view", as_cfunction(broadcast_view), METH_FASTCALL,
     "broadcast_view(x, shape, dims): x repeated, or NotImplemented."},
    {"transpose_view", as_cfunction(transpose_view), METH_FASTCALL,
     "transpose_view(x, permutation): x with its axes reordered, or NotImplemented."},
    {"reshape_view", as_cfunction(reshape_view), METH_FASTCALL,
     "reshape_view(x, shape): contiguous x in another shape, or NotImplemented."},
    {"matmul", as_cfunction(matmul), METH_FASTCALL,
     "matmul(x, y): the product of Arrays, or NotImplemented."},
    {"csr_product", as_cfunction(csr_product), METH_FASTCALL,
     "csr_product(data, indices, indptr, x, columns, transpose): compressed rows times x, or "
     "NotImplemented."},
    {"csr_times_csr", as_cfunction(csr_times_csr), METH_FASTCALL,
     "csr_times_csr(data, indices, indptr, data, indices, indptr, columns): the compressed rows of "
     "a product, in order, or NotImplemented."},
    {"sum_coordinates", as_cfunction(sum_coordinates), METH_FASTCALL,
     "sum_coordinates(data, indices, rows, columns, nse): each place once, in order, and the sums "
     "there; as many as there are where nse is None, or NotImplemented"},
    {"rows_of_coordinates", as_cfunction(rows_of_coordinates), METH_FASTCALL,
     "rows_of_coordinates(data, indices, rows, columns, in_order): data, columns, pointers and the "
     "order in which elements stand then, None where they stay. Or NotImplemented."},
    {"coordinates_of_rows", as_cfunction(coordinates_of_rows), METH_FASTCALL,
     "coordinates_of_rows(indices, indptr): row and column of each element, or NotImplemented."},
    {"sum_over", as_cfunction(sum_over), METH_FASTCALL,
     "sum_over(x, axes): the sum over adjacent axes, or NotImplemented."},
    {"set_tape_types", as_cfunction(set_tape_types), METH_FASTCALL,
     "set_tape_types(LinearTrace, LinearTracer, LinearEquation, Linear, ShapedArray, evaluate, "
     "interpreted, user_source, selections, add_any)."},
    {"tape_process", as_cfunction(tape_process), METH_FASTCALL,
     "tape_process(trace, primitive, args, params): an operation on tangents onto the tape."},
    {"tape_backwards", as_cfunction(tape_backwards), METH_FASTCALL,
     "tape_backwards(trace, cotangents, masked): the walk back along the tape."},
    {"user_frames", as_cfunction(functrans_user_frames), METH_FASTCALL | METH_KEYWORDS,
     "user_frames(limit=1): (code, lasti) of the innermost frames outside the package."},
    {"set_internal_prefixes", functrans_set_internal_prefixes, METH_O,
     "set_internal_prefixes(paths): files below them are not the user's."},
    {nullptr, nullptr, 0, nullptr}};

bool import_numpy() {
  import_array1(false);
  import_umath1(false);
  return true;
}

py::dict stats_dict() {
  MemoryStats stats = memory_stats();
  const RecycledStats recycled = recycled_stats();
  stats.in_use -= std::min(recycled.bytes, stats.in_use);  // a resized array may lie in less
  stats.cached += recycled.bytes;
  stats.allocations += recycled.hits;
  stats.hits += recycled.hits;
  py::dict result;
  result["in_use"] = stats.in_use;
  result["peak"] = stats.peak;
  result["cached"] = stats.cached;
  result["limit"] = stats.limit;
  result["allocations"] = stats.allocations;
  result["hits"] = stats.hits;
  return result;
}

void clear_all_memory() {
  drop_recycled();
  py::gil_scoped_release release;
  clear_memory_cache();
}

}  // namespace
}  // namespace functrans

PYBIND11_MODULE(_runtime, m) {
  using namespace functrans;
  m.doc() = "C++ runtime of functrans: arrays, allocator, trace state, call fast paths.";
  if (!import_numpy() || !init_allocator() || !init_key_dtypes(m.ptr()) || !init_array(m.ptr()) ||
      !init_eager_op(m.ptr()) || !init_special(m.ptr()) || !init_communicator(m.ptr()) ||
      !init_threads() || !init_program(m.ptr()) || !init_jit_function(m.ptr()) ||
      !cuda::init_cuda(m.ptr()) || PyModule_AddFunctions(m.ptr(), functions) != 0) {
    throw py::error_already_set();
  }
  register_gemm_library();
  register_library_functions();
  m.def(
      "library_address",
      [](const char* name) { return reinterpret_cast<std::uintptr_t>(find_library(name)); },
      "library_address(name): of a function that compiled programs call; 0 when there is none.");
  m.def("memory_stats", stats_dict,
        "Bytes in use, peak, cached and their bound; counts of allocations.");
  m.def("clear_memory_cache", clear_all_memory,
        "Give every cached block back to the system.");
}
