#include "cuda/buffer.h"

#include "allocator.h"
#include "cuda/transfer.h"

#include <mutex>
#include <new>

namespace functrans {
namespace cuda {

namespace {

std::mutex settle_mutex;

void free_buffer(DeviceBuffer* buffer) {
  Device& device = *buffer->device;
  if (buffer->destroy != nullptr) {
    device.defer(buffer->destroy, buffer->owner);
  } else if (buffer->block != nullptr) {
    try {
      settle(*buffer);
    } catch (const Failure&) {
      // the device is lost, and with it whoever could write here
    }
    device.release(buffer->block);
  }
}

}  // namespace

void release(DeviceBuffer* buffer) noexcept {
  if (buffer->references.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  if (forked) return;  // the memory is the parent's
  try {
    free_buffer(buffer);
  } catch (const Failure&) {
  } catch (const std::bad_alloc&) {
  }
  delete buffer;
}

BufferRef new_buffer(Device& device, std::size_t bytes) {
  BufferRef buffer(new DeviceBuffer());
  buffer->device = &device;
  buffer->bytes = bytes;
  buffer->block = device.allocate(bytes);
  buffer->pointer = buffer->block->pointer;
  return buffer;
}

void settle(DeviceBuffer& buffer) {
  if (buffer.ready.load(std::memory_order_acquire) == nullptr) return;
  std::lock_guard<std::mutex> lock(settle_mutex);
  const CUevent event = buffer.ready.load(std::memory_order_relaxed);
  if (event == nullptr) return;
  Device& device = *buffer.device;
  const Current current(device);
  FT_CU(StreamWaitEvent(device.compute, event, 0));
  buffer.written = device.timeline.advance();
  buffer.ready.store(nullptr, std::memory_order_release);
  device.timeline.give_event(event);
}

PyObject* new_device_array(BufferRef buffer, PyArray_Descr* descr, int ndim, const npy_intp* dims,
                           bool weak_type) {
  PyArrayObject* shell = shape_only(descr, ndim, dims);
  if (shell == nullptr) return nullptr;
  const auto place = static_cast<std::uint8_t>(buffer->device->ordinal + 1);
  return wrap_buffer(shell, weak_type, place, buffer.release());
}

BufferRef upload(Device& device, PyArrayObject* np) {
  const auto bytes = static_cast<std::size_t>(PyArray_NBYTES(np));
  device.run_deferred();
  if (bytes <= kDirectBytes) {
    BufferRef buffer = new_buffer(device, bytes);
    const Current current(device);
    upload_small(*buffer.get(), PyArray_DATA(np));
    return buffer;
  }
  const Ref held = Ref::borrow(reinterpret_cast<PyObject*>(np));
  const Unlocked unlocked;
  BufferRef buffer = new_buffer(device, bytes);
  upload_large(*buffer.get(), PyArray_DATA(np));
  return buffer;
}

BufferRef buffer_on(PyObject* object, Device& device) {
  ArrayObject* array = as_array(object);
  if (array->loop_type == kDonated) {
    raise_donated(array);
    return {};
  }
  if (!on_device(array) || is_sharded(array)) {
    if (!has_data(array)) return {};
    Ref np(reinterpret_cast<PyObject*>(PyArray_GETCONTIGUOUS(array->np)));
    return np ? upload(device, reinterpret_cast<PyArrayObject*>(np.get())) : BufferRef();
  }
  BufferRef source(retain(buffer_of(array)));
  if (source->device == &device) return source;
  const Unlocked unlocked;
  BufferRef target = new_buffer(device, source->bytes);
  copy_between(*target.get(), *source.get());
  return target;
}

}  // namespace cuda

void release_buffer(cuda::DeviceBuffer* buffer) noexcept { cuda::release(buffer); }
cuda::DeviceBuffer* retain_buffer(cuda::DeviceBuffer* buffer) noexcept {
  return cuda::retain(buffer);
}

namespace {

// The data of an array in shards, on the host from now on.
bool gather_shards(ArrayObject* array) {
  const Ref shards = Ref::borrow(shards_of(array));
  Ref whole(PyObject_CallMethod(shards.get(), "gather", nullptr));
  if (!whole) return false;
  auto* np = reinterpret_cast<PyArrayObject*>(whole.get());
  if (!PyArray_CheckExact(whole.get()) || PyArray_DESCR(np) != PyArray_DESCR(array->np) ||
      PyArray_NDIM(np) != PyArray_NDIM(array->np) ||
      !PyArray_CompareLists(PyArray_DIMS(np), PyArray_DIMS(array->np), PyArray_NDIM(np))) {
    PyErr_SetString(PyExc_SystemError, "the shards of an array are not those of its type");
    return false;
  }
  if (array->loop_type == kDonated) return raise_donated(array);  // meanwhile
  if (array->loop_type != kOnDevice) return true;
  PyArray_CLEARFLAGS(np, NPY_ARRAY_WRITEABLE);
  array->loop_type = -1;
  array->c_contiguous = PyArray_IS_C_CONTIGUOUS(np);
  PyArrayObject* shell = std::exchange(array->np, np);
  whole.release();
  Py_DECREF(shell);
  return true;
}

}  // namespace

// The data of an array on a device, copied to the host once.
bool fetch_data(ArrayObject* array) {
  if (array->loop_type == kDonated) return raise_donated(array);
  if (is_sharded(array)) return gather_shards(array);
  PyArray_Descr* descr = PyArray_DESCR(array->np);
  Py_INCREF(descr);
  Ref host(reinterpret_cast<PyObject*>(
      new_ndarray(descr, PyArray_NDIM(array->np), PyArray_DIMS(array->np), false)));
  if (!host) return false;
  auto* np = reinterpret_cast<PyArrayObject*>(host.get());
  try {
    cuda::require_driver();
    const cuda::BufferRef buffer(cuda::retain(buffer_of(array)));
    const cuda::Unlocked unlocked;
    cuda::download(PyArray_DATA(np), *buffer.get());
  } catch (const cuda::Failure& failure) {
    cuda::raise_failure(failure);
    return false;
  }
  if (array->loop_type == kDonated) return raise_donated(array);  // meanwhile
  if (array->loop_type != kOnDevice) return true;
  PyArray_CLEARFLAGS(np, NPY_ARRAY_WRITEABLE);
  array->loop_type = -1;
  array->c_contiguous = true;
  PyArrayObject* shell = std::exchange(array->np, np);
  host.release();
  Py_DECREF(shell);
  return true;
}

}  // namespace functrans
