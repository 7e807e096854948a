#include "cuda/share.h"

#include "cuda/buffer.h"
#include "cuda/dlpack_types.h"

#include <new>
#include <vector>

namespace functrans::cuda {
namespace {

constexpr const char* kOld = "dltensor";
constexpr const char* kNew = "dltensor_versioned";
// Streams that every thread has; other handles may be gone when shared memory comes back.
constexpr std::uintptr_t kLastCommonStream = 2;

struct NamedType {
  PyArray_Descr* descr;  // owned for ever
  DLDataType type;
};

std::vector<NamedType>& types() {
  static auto* table = new std::vector<NamedType>();
  return *table;
}

CUstream stream_of(std::uintptr_t handle) { return reinterpret_cast<CUstream>(handle); }

// `later` runs behind what `first` was given so far.
void order(Device& device, CUstream first, CUstream later) {
  const CUevent event = device.timeline.take_event();
  FT_CU(EventRecord(event, first));
  FT_CU(StreamWaitEvent(later, event, 0));
  device.timeline.give_event(event);
}

// What another library got.
struct Lent {
  DeviceBuffer* buffer;
  std::uintptr_t stream;
  bool ordered;  // it was told which stream to follow, and uses the memory there
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides;
  union {
    DLManagedTensor old;
    DLManagedTensorVersioned versioned;
  };
};

// The other library's work on the memory comes before whatever uses it next.
void take_back(Lent* lent) noexcept {
  if (!forked && lent->ordered) {
    try {
      Device& device = *lent->buffer->device;
      const Current current(device);
      if (lent->stream <= kLastCommonStream) {
        order(device, stream_of(lent->stream), device.compute);
        device.timeline.advance();
      } else {
        FT_CU(CtxSynchronize());
      }
    } catch (const Failure&) {
      // the device is lost
    }
  }
  release(lent->buffer);
  delete lent;
}

void delete_old(DLManagedTensor* self) { take_back(static_cast<Lent*>(self->context)); }
void delete_versioned(DLManagedTensorVersioned* self) {
  take_back(static_cast<Lent*>(self->context));
}

// A capsule that nobody took over.
void free_capsule(PyObject* capsule) {
  if (PyCapsule_IsValid(capsule, kOld)) {
    auto* tensor = static_cast<DLManagedTensor*>(PyCapsule_GetPointer(capsule, kOld));
    if (tensor->deleter != nullptr) tensor->deleter(tensor);
  } else if (PyCapsule_IsValid(capsule, kNew)) {
    auto* tensor = static_cast<DLManagedTensorVersioned*>(PyCapsule_GetPointer(capsule, kNew));
    if (tensor->deleter != nullptr) tensor->deleter(tensor);
  }
}

bool type_of(PyArray_Descr* descr, DLDataType& type) {
  for (const NamedType& one : types()) {
    if (!PyArray_EquivTypes(one.descr, descr)) continue;
    type = one.type;
    return true;
  }
  PyErr_Format(PyExc_BufferError, "DLPack has no name for the dtype %S", descr);
  return false;
}

PyArray_Descr* descr_of(const DLDataType& type) {
  for (const NamedType& one : types()) {
    if (one.type.code == type.code && one.type.bits == type.bits && type.lanes == 1) {
      return one.descr;
    }
  }
  PyErr_Format(PyExc_BufferError, "a DLPack tensor of type code %d with %d bits and %d lanes "
               "is no array here", type.code, type.bits, type.lanes);
  return nullptr;
}

void destroy_old(void* tensor) {
  auto* self = static_cast<DLManagedTensor*>(tensor);
  if (self->deleter != nullptr) self->deleter(self);
}

void destroy_versioned(void* tensor) {
  auto* self = static_cast<DLManagedTensorVersioned*>(tensor);
  if (self->deleter != nullptr) self->deleter(self);
}

void destroy_object(void* object) {
  const PyGILState_STATE state = PyGILState_Ensure();
  Py_DECREF(static_cast<PyObject*>(object));
  PyGILState_Release(state);
}

BufferRef foreign_buffer(Device& device, CUdeviceptr pointer, std::size_t bytes) {
  BufferRef buffer(new DeviceBuffer());
  buffer->device = &device;
  buffer->pointer = pointer;
  buffer->bytes = bytes;
  // What the owner made our stream wait for stands before this position.
  buffer->written = device.timeline.advance();
  return buffer;
}

PyObject* import_tensor(const DLTensor& tensor, void* managed, void (*destroy)(void*)) {
  if (tensor.device.type != kDLCuda) {
    PyErr_Format(PyExc_BufferError, "a DLPack tensor on device type %d is not on a CUDA device",
                 tensor.device.type);
    return nullptr;
  }
  PyArray_Descr* descr = descr_of(tensor.dtype);
  if (descr == nullptr) return nullptr;
  if (tensor.ndim > NPY_MAXDIMS) {
    PyErr_Format(PyExc_BufferError, "a DLPack tensor has %d axes", tensor.ndim);
    return nullptr;
  }
  npy_intp dims[NPY_MAXDIMS];
  std::int64_t count = 1;
  for (int i = 0; i < tensor.ndim; ++i) count *= dims[i] = tensor.shape[i];
  std::int64_t step = 1;
  for (int i = tensor.ndim - 1; i >= 0 && tensor.strides != nullptr && count > 0; --i) {
    if (dims[i] != 1 && tensor.strides[i] != step) {
      PyErr_SetString(PyExc_BufferError, "the memory of a device array must be contiguous, in C "
                      "order: make the tensor contiguous first");
      return nullptr;
    }
    step *= dims[i];
  }
  Device& device = get_device(tensor.device.id);
  BufferRef buffer = foreign_buffer(
      device, reinterpret_cast<CUdeviceptr>(tensor.data) + tensor.byte_offset,
      static_cast<std::size_t>(count) * static_cast<std::size_t>(PyDataType_ELSIZE(descr)));
  DeviceBuffer* raw = buffer.get();
  PyObject* array = new_device_array(std::move(buffer), descr, tensor.ndim, dims, false);
  if (array == nullptr) return nullptr;
  raw->owner = managed;
  raw->destroy = destroy;
  return array;
}

PyObject* export_checked(ArrayObject* array, PyObject* stream, bool versioned, bool copied) {
  DLDataType type;
  if (!type_of(PyArray_DESCR(array->np), type)) return nullptr;
  require_driver();
  DeviceBuffer* buffer = buffer_of(array);
  Device& device = *buffer->device;
  auto* lent = new Lent{retain(buffer), 0, false, {}, {}, {}};
  BufferRef held(lent->buffer);
  lent->stream = stream == Py_None ? 0 : PyLong_AsVoidPtr(stream) == nullptr && PyErr_Occurred()
                     ? 0 : reinterpret_cast<std::uintptr_t>(PyLong_AsVoidPtr(stream));
  if (PyErr_Occurred()) {
    delete lent;
    return nullptr;
  }
  try {
    const Current current(device);
    settle(*lent->buffer);
    lent->ordered = lent->stream != 0 && stream_of(lent->stream) != device.compute;
    if (lent->ordered) order(device, device.compute, stream_of(lent->stream));
  } catch (...) {
    delete lent;
    throw;
  }
  const int ndim = PyArray_NDIM(array->np);
  lent->shape.assign(PyArray_DIMS(array->np), PyArray_DIMS(array->np) + ndim);
  lent->strides.assign(static_cast<std::size_t>(ndim), 1);
  for (int i = ndim - 2; i >= 0; --i) {
    lent->strides[i] = lent->strides[i + 1] * lent->shape[i + 1];
  }
  const DLTensor tensor{reinterpret_cast<void*>(lent->buffer->pointer),
                        {kDLCuda, device.ordinal}, ndim, type, lent->shape.data(),
                        lent->strides.data(), 0};
  PyObject* capsule;
  if (versioned) {
    lent->versioned = {1, 0, lent, delete_versioned, kDLReadOnly | (copied ? kDLCopied : 0),
                       tensor};
    capsule = PyCapsule_New(&lent->versioned, kNew, free_capsule);
  } else {
    lent->old = {tensor, lent, delete_old};
    capsule = PyCapsule_New(&lent->old, kOld, free_capsule);
  }
  if (capsule == nullptr) {
    delete lent;
    return nullptr;
  }
  held.release();  // the capsule has the reference
  return capsule;
}

}  // namespace

PyObject* set_dlpack_types(PyObject*, PyObject* table) {
  Ref items(PySequence_Tuple(table));
  if (!items) return nullptr;
  std::vector<NamedType> made;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(items.get()); ++i) {
    PyArray_Descr* descr = nullptr;
    int code, bits;
    if (!PyArg_ParseTuple(PyTuple_GET_ITEM(items.get(), i), "O&ii", PyArray_DescrConverter, &descr,
                          &code, &bits)) {
      return nullptr;
    }
    made.push_back({descr, {static_cast<std::uint8_t>(code), static_cast<std::uint8_t>(bits), 1}});
  }
  types() = std::move(made);
  Py_RETURN_NONE;
}

PyObject* export_dlpack(PyObject*, PyObject* args) {
  PyObject *array, *stream;
  int versioned, copied;
  if (!PyArg_ParseTuple(args, "OOpp", &array, &stream, &versioned, &copied)) return nullptr;
  if (!is_array(array) || buffer_of(as_array(array)) == nullptr) {
    PyErr_SetString(PyExc_TypeError, "export_dlpack takes an Array on a device");
    return nullptr;
  }
  return guarded([&] {
    return export_checked(as_array(array), stream, versioned != 0, copied != 0);
  });
}

PyObject* import_dlpack(PyObject*, PyObject* capsule) {
  return guarded([&]() -> PyObject* {
    PyObject* array = nullptr;
    if (PyCapsule_IsValid(capsule, kNew)) {
      auto* tensor = static_cast<DLManagedTensorVersioned*>(PyCapsule_GetPointer(capsule, kNew));
      if (tensor->major > 1) {
        PyErr_Format(PyExc_BufferError, "a DLPack capsule of version %u.%u is too new",
                     tensor->major, tensor->minor);
        return nullptr;
      }
      array = import_tensor(tensor->tensor, tensor, destroy_versioned);
      if (array != nullptr) PyCapsule_SetName(capsule, "used_dltensor_versioned");
    } else if (PyCapsule_IsValid(capsule, kOld)) {
      auto* tensor = static_cast<DLManagedTensor*>(PyCapsule_GetPointer(capsule, kOld));
      array = import_tensor(tensor->tensor, tensor, destroy_old);
      if (array != nullptr) PyCapsule_SetName(capsule, "used_dltensor");
    } else {
      PyErr_SetString(PyExc_TypeError, "import_dlpack takes a DLPack capsule that is not used");
    }
    return array;
  });
}

PyObject* import_memory(PyObject*, PyObject* args) {
  unsigned long long pointer;
  PyArray_Descr* descr = nullptr;
  PyObject *shape, *stream, *owner;
  if (!PyArg_ParseTuple(args, "KO&OOO", &pointer, PyArray_DescrConverter, &descr, &shape, &stream,
                        &owner)) {
    return nullptr;
  }
  const Ref held(reinterpret_cast<PyObject*>(descr));
  PyArray_Dims dims{nullptr, 0};
  if (!PyArray_IntpConverter(shape, &dims)) return nullptr;
  PyObject* result = guarded([&]() -> PyObject* {
    require_driver();
    int ordinal = 0;
    if (pointer != 0) {
      Device& any = get_device(0);
      const Current current(any);
      FT_CU(PointerGetAttribute(&ordinal, kPointerDeviceOrdinal, pointer));
    }
    Device& device = get_device(ordinal);
    if (stream != Py_None) {
      auto* handle = static_cast<CUstream>(PyLong_AsVoidPtr(stream));
      if (PyErr_Occurred()) return nullptr;
      const Current current(device);
      if (handle != device.compute) order(device, handle, device.compute);
    }
    const auto bytes = static_cast<std::size_t>(PyArray_MultiplyList(dims.ptr, dims.len)) *
                       static_cast<std::size_t>(PyDataType_ELSIZE(descr));
    BufferRef buffer = foreign_buffer(device, pointer, bytes);
    DeviceBuffer* raw = buffer.get();
    PyObject* array = new_device_array(std::move(buffer), descr, dims.len, dims.ptr, false);
    if (array == nullptr) return nullptr;
    raw->owner = Py_NewRef(owner);
    raw->destroy = destroy_object;
    return array;
  });
  PyDimMem_FREE(dims.ptr);
  return result;
}

}  // namespace functrans::cuda
