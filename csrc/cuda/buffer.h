// The data of an Array on a device, shared by counting, and the way from Arrays to it and back.
#pragma once

#include "array.h"
#include "cuda/device.h"

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace functrans::cuda {

struct DeviceBuffer {
  std::atomic<int> references{1};
  Device* device = nullptr;
  CUdeviceptr pointer = 0;
  std::size_t bytes = 0;
  Block* block = nullptr;            // of our pool; null for memory of another library
  std::atomic<CUevent> ready{};      // on the copy stream, while an upload may be under way
  std::atomic<std::uint64_t> written{0};  // position on the timeline of the work that wrote it
  void (*destroy)(void*) = nullptr;  // of another library's memory; takes the GIL if it needs it
  void* owner = nullptr;
};

inline DeviceBuffer* retain(DeviceBuffer* buffer) {
  buffer->references.fetch_add(1, std::memory_order_relaxed);
  return buffer;
}
// Any thread, with or without the GIL.
void release(DeviceBuffer* buffer) noexcept;

// Owns one reference.
class BufferRef {
 public:
  BufferRef() = default;
  explicit BufferRef(DeviceBuffer* owned) : buffer_(owned) {}
  BufferRef(BufferRef&& other) noexcept : buffer_(std::exchange(other.buffer_, nullptr)) {}
  BufferRef& operator=(BufferRef&& other) noexcept {
    std::swap(buffer_, other.buffer_);
    return *this;
  }
  ~BufferRef() {
    if (buffer_ != nullptr) cuda::release(buffer_);
  }
  DeviceBuffer* get() const { return buffer_; }
  DeviceBuffer* operator->() const { return buffer_; }
  DeviceBuffer* release() { return std::exchange(buffer_, nullptr); }

 private:
  DeviceBuffer* buffer_ = nullptr;
};

// Uninitialised memory for use on the compute stream; throws Failure.
BufferRef new_buffer(Device& device, std::size_t bytes);
// Work given to the compute stream from now on runs behind the upload of this buffer.
void settle(DeviceBuffer& buffer);

// An Array on a buffer, C-contiguous; takes over both references. With the GIL.
PyObject* new_device_array(BufferRef buffer, PyArray_Descr* descr, int ndim, const npy_intp* dims,
                           bool weak_type);
// The Array's buffer on that device, shared or copied there. Throws Failure; null with a Python
// exception set. With the GIL, which is released while large data moves.
BufferRef buffer_on(PyObject* array, Device& device);
// The same of an ndarray that is C-contiguous.
BufferRef upload(Device& device, PyArrayObject* np);

}  // namespace functrans::cuda
