#include "cuda/module.h"

#include "array.h"
#include "cuda/buffer.h"
#include "cuda/event.h"
#include "cuda/device_program.h"
#include "cuda/libraries.h"
#include "cuda/nccl.h"
#include "cuda/share.h"
#include "cuda/together.h"

#include <chrono>
#include <new>

namespace functrans::cuda {
namespace {

PyObject* cuda_open(PyObject*, PyObject* args) {
  const char* path = nullptr;
  if (!PyArg_ParseTuple(args, "|z:cuda_open", &path)) return nullptr;
  bool open;
  {
    const Unlocked unlocked;
    open = !forked && open_driver(path);
  }
  return PyBool_FromLong(open);
}

PyObject* cuda_require(PyObject*, PyObject*) {
  return guarded([] {
    require_driver();
    return Py_NewRef(Py_None);
  });
}

PyObject* cuda_error(PyObject*, PyObject*) {
  if (driver_is_open()) Py_RETURN_NONE;
  const Failure& failure = driver_failure();
  return PyUnicode_FromFormat("%s: %s", failure.call.c_str(), failure.note.c_str());
}

PyObject* cuda_load_library(PyObject*, PyObject* args) {
  const char *name, *path;
  if (!PyArg_ParseTuple(args, "ss:cuda_load_library", &name, &path)) return nullptr;
  std::string why;
  {
    const Unlocked unlocked;
    why = open_library(name, path);
  }
  if (why.empty()) Py_RETURN_NONE;
  return PyUnicode_FromString(why.c_str());
}

PyObject* cuda_devices(PyObject*, PyObject*) {
  return guarded([]() -> PyObject* {
    Ref list(PyList_New(0));
    for (int i = 0; list && i < device_count(); ++i) {
      CUdevice device;
      char name[128] = {};
      int major = 0, minor = 0, count = 0, shared = 0;
      std::size_t bytes = 0;
      FT_CU(DeviceGet(&device, i));
      FT_CU(DeviceGetName(name, sizeof name - 1, device));
      FT_CU(DeviceGetAttribute(&major, kComputeCapabilityMajor, device));
      FT_CU(DeviceGetAttribute(&minor, kComputeCapabilityMinor, device));
      FT_CU(DeviceGetAttribute(&count, kMultiprocessorCount, device));
      FT_CU(DeviceGetAttribute(&shared, kMaxSharedMemoryOptIn, device));
      FT_CU(DeviceTotalMem(&bytes, device));
      Ref item(Py_BuildValue("(siiini)", name, major, minor, count,
                             static_cast<Py_ssize_t>(bytes), shared));
      if (!item || PyList_Append(list.get(), item.get()) < 0) return nullptr;
    }
    return list.release();
  });
}

PyObject* cuda_memory_stats(PyObject*, PyObject* number) {
  const int ordinal = static_cast<int>(PyLong_AsLong(number));
  if (PyErr_Occurred()) return nullptr;
  return guarded([ordinal] {
    get_device(ordinal);
    return device_stats(ordinal);
  });
}

PyObject* cuda_release_cached(PyObject*, PyObject* number) {
  const int ordinal = static_cast<int>(PyLong_AsLong(number));
  if (PyErr_Occurred()) return nullptr;
  return guarded([ordinal] {
    Device& device = get_device(ordinal);
    device.run_deferred();
    std::size_t freed;
    {
      const Unlocked unlocked;
      freed = device.pool.release_cached();
    }
    return PyLong_FromSize_t(freed);
  });
}

PyObject* cuda_synchronize(PyObject*, PyObject* number) {
  const int ordinal = static_cast<int>(PyLong_AsLong(number));
  if (PyErr_Occurred()) return nullptr;
  return guarded([ordinal] {
    Device& device = get_device(ordinal);
    {
      const Unlocked unlocked;
      device.synchronize();
    }
    device.run_deferred();
    return Py_NewRef(Py_None);
  });
}

PyObject* cuda_synchronous(PyObject*, PyObject* flag) {
  const int value = PyObject_IsTrue(flag);
  if (value < 0) return nullptr;
  synchronous = value != 0;
  Py_RETURN_NONE;
}

bool check_array(PyObject* object, const char* function) {
  if (is_exact_array(object)) return true;
  PyErr_Format(PyExc_TypeError, "%s takes an Array, not %.200s", function,
               Py_TYPE(object)->tp_name);
  return false;
}

PyObject* place_on_host(ArrayObject* array) {
  if (!has_data(array)) return nullptr;
  Py_INCREF(array->np);
  PyObject* copy = wrap_ndarray(array->np, array->weak_type);
  if (copy != nullptr) as_array(copy)->place = kPutOnCpu;
  return copy;
}

PyObject* place_array(PyObject*, PyObject* args) {
  PyObject* object;
  int place;
  if (!PyArg_ParseTuple(args, "Oi:place_array", &object, &place) ||
      !check_array(object, "place_array")) {
    return nullptr;
  }
  ArrayObject* array = as_array(object);
  if (array->place == place && array->loop_type != kDonated) return Py_NewRef(object);
  if (place == kPutOnCpu) return place_on_host(array);
  return guarded([&]() -> PyObject* {
    BufferRef buffer = buffer_on(object, get_device(place - 1));
    if (buffer.get() == nullptr) return nullptr;
    return new_device_array(std::move(buffer), PyArray_DESCR(array->np), PyArray_NDIM(array->np),
                            PyArray_DIMS(array->np), array->weak_type);
  });
}

PyObject* with_weak_type(PyObject*, PyObject* args) {
  PyObject* object;
  int weak;
  if (!PyArg_ParseTuple(args, "Op:with_weak_type", &object, &weak) ||
      !check_array(object, "with_weak_type")) {
    return nullptr;
  }
  ArrayObject* array = as_array(object);
  if (array->loop_type == kDonated && !raise_donated(array)) return nullptr;
  if (array->weak_type == (weak != 0)) return Py_NewRef(object);
  return share_array(array, weak != 0, array->place);
}

PyObject* cuda_empty(PyObject*, PyObject* args) {
  PyObject* shape;
  PyArray_Descr* descr = nullptr;
  int ordinal = 0;
  if (!PyArg_ParseTuple(args, "OO&|i:cuda_empty", &shape, PyArray_DescrConverter, &descr,
                        &ordinal)) {
    return nullptr;
  }
  const Ref held(reinterpret_cast<PyObject*>(descr));
  PyArray_Dims dims{nullptr, 0};
  if (!PyArray_IntpConverter(shape, &dims)) return nullptr;
  PyObject* result = guarded([&] {
    const auto bytes = static_cast<std::size_t>(PyArray_MultiplyList(dims.ptr, dims.len)) *
                       static_cast<std::size_t>(PyDataType_ELSIZE(descr));
    return new_device_array(new_buffer(get_device(ordinal), bytes), descr, dims.len, dims.ptr,
                            false);
  });
  PyDimMem_FREE(dims.ptr);
  return result;
}

PyObject* wait_for_parts(PyObject* object) {
  const Ref shards(get_shards(nullptr, object));
  if (shards.get() == Py_None) return Py_NewRef(object);
  const Ref parts(PyObject_GetAttrString(shards.get(), "parts"));
  const Ref iterator(parts ? PyObject_GetIter(parts.get()) : nullptr);
  if (!iterator) return nullptr;
  while (true) {
    const Ref part(PyIter_Next(iterator.get()));
    if (!part) break;
    if (!check_array(part.get(), "block_until_ready")) return nullptr;
    const Ref waited(wait_for(part.get()));
    if (!waited) return nullptr;
  }
  return PyErr_Occurred() != nullptr ? nullptr : Py_NewRef(object);
}

PyObject* cuda_pointer(PyObject*, PyObject* object) {
  if (!check_array(object, "cuda_pointer")) return nullptr;
  ArrayObject* array = as_array(object);
  if (array->loop_type == kDonated && !raise_donated(array)) return nullptr;
  if (buffer_of(array) == nullptr) Py_RETURN_NONE;
  return guarded([&] {
    require_driver();
    DeviceBuffer& buffer = *buffer_of(array);
    settle(buffer);
    return Py_BuildValue("(KK)", static_cast<unsigned long long>(buffer.pointer),
                         static_cast<unsigned long long>(
                             reinterpret_cast<std::uintptr_t>(buffer.device->compute)));
  });
}

PyObject* cuda_stream(PyObject*, PyObject* number) {
  const int ordinal = static_cast<int>(PyLong_AsLong(number));
  if (PyErr_Occurred()) return nullptr;
  return guarded([ordinal] { return PyLong_FromVoidPtr(get_device(ordinal).compute); });
}

// Nanoseconds of one allocation and release, for the benchmark of it.
PyObject* cuda_time_pool(PyObject*, PyObject* args) {
  int ordinal;
  Py_ssize_t bytes, rounds;
  if (!PyArg_ParseTuple(args, "inn:cuda_time_pool", &ordinal, &bytes, &rounds)) return nullptr;
  return guarded([&] {
    Device& device = get_device(ordinal);
    const auto start = std::chrono::steady_clock::now();
    for (Py_ssize_t i = 0; i < rounds; ++i) {
      device.release(device.allocate(static_cast<std::size_t>(bytes)));
    }
    const std::chrono::duration<double, std::nano> spent = std::chrono::steady_clock::now() - start;
    return PyFloat_FromDouble(spent.count() / static_cast<double>(rounds));
  });
}

PyMethodDef functions[] = {
    {"cuda_open", cuda_open, METH_VARARGS,
     "cuda_open(path=None): whether there is a CUDA driver with a device; loads it."},
    {"cuda_require", cuda_require, METH_NOARGS, "cuda_require(): raise where there is none."},
    {"cuda_error", cuda_error, METH_NOARGS, "cuda_error(): why cuda_open() was False, or None."},
    {"cuda_load_library", cuda_load_library, METH_VARARGS,
     "cuda_load_library(name, path): None once cufft, cublas, cusolver or nccl is open, or why not."},
    {"cuda_devices", cuda_devices, METH_NOARGS,
     "cuda_devices(): [(name, major, minor, multiprocessors, bytes, shared bytes of a block)]."},
    {"cuda_memory_stats", cuda_memory_stats, METH_O, "cuda_memory_stats(device): a dict."},
    {"cuda_release_cached", cuda_release_cached, METH_O,
     "cuda_release_cached(device): give free memory back to the driver; how many bytes."},
    {"cuda_synchronize", cuda_synchronize, METH_O, "cuda_synchronize(device): wait for it."},
    {"cuda_synchronous", cuda_synchronous, METH_O,
     "cuda_synchronous(flag): wait for every launch, so that a fault names its kernel."},
    {"cuda_run_together", run_together, METH_VARARGS,
     "cuda_run_together([CudaProgram], [leaves], [table]): the results of each, one program on all."},
    {"place_array", place_array, METH_VARARGS,
     "place_array(x, place): x on the CPU (127) or on the device of number place - 1."},
    {"with_weak_type", with_weak_type, METH_VARARGS,
     "with_weak_type(x, weak): the same data, where it is, of a weak or a strong dtype."},
    {"cuda_empty", cuda_empty, METH_VARARGS,
     "cuda_empty(shape, dtype, device=0): an Array on uninitialised device memory."},
    {"cuda_pointer", cuda_pointer, METH_O,
     "cuda_pointer(x): (address, stream), or None where x is on the CPU."},
    {"cuda_stream", cuda_stream, METH_O, "cuda_stream(device): the handle of its compute stream."},
    {"cuda_time_pool", cuda_time_pool, METH_VARARGS,
     "cuda_time_pool(device, bytes, rounds): nanoseconds of an allocation and its release."},
    {"set_dlpack_types", set_dlpack_types, METH_O,
     "set_dlpack_types([(dtype, code, bits)]): how DLPack names dtypes."},
    {"cuda_export_dlpack", export_dlpack, METH_VARARGS,
     "cuda_export_dlpack(x, stream, versioned, copied): a DLPack capsule."},
    {"cuda_import_dlpack", import_dlpack, METH_O,
     "cuda_import_dlpack(capsule): an Array on its memory."},
    {"cuda_import_memory", import_memory, METH_VARARGS,
     "cuda_import_memory(pointer, dtype, shape, stream, owner): an Array on that memory."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

PyObject* wait_for(PyObject* object) {
  ArrayObject* array = as_array(object);
  if (array->loop_type == kDonated && !raise_donated(array)) return nullptr;
  if (is_sharded(array)) return wait_for_parts(object);
  if (buffer_of(array) == nullptr) return Py_NewRef(object);
  return guarded([&] {
    require_driver();
    const BufferRef buffer(retain(buffer_of(array)));
    Device& device = *buffer->device;
    {
      const Unlocked unlocked;
      const Current current(device);
      settle(*buffer.get());
      device.timeline.synchronize(buffer->written);
    }
    return Py_NewRef(object);
  });
}

bool init_cuda(PyObject* module) {
  return PyModule_AddFunctions(module, functions) == 0 && init_event(module) &&
         init_program(module) && init_nccl(module);
}

}  // namespace functrans::cuda
