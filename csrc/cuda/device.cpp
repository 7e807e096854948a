#include "cuda/device.h"

#include <atomic>

namespace functrans::cuda {

bool synchronous = false;

namespace {

constexpr int kMaxDevices = 64;
std::array<std::atomic<Device*>, kMaxDevices> devices{};
std::mutex devices_mutex;

void add(PyObject* dict, const char* key, std::size_t value) {
  Ref number(PyLong_FromSize_t(value));
  if (number) PyDict_SetItemString(dict, key, number.get());
}

}  // namespace

Device::Device(int number) : ordinal(number), pool(static_cast<MemorySource&>(*this)) {
  FT_CU(DeviceGet(&handle, ordinal));
  FT_CU(DevicePrimaryCtxRetain(&context, handle));
  const Current current(*this);
  FT_CU(StreamCreate(&compute, kStreamNonBlocking));
  FT_CU(StreamCreate(&copy, kStreamNonBlocking));
  timeline.init(compute);
}

CUstream Device::urgent_stream(std::atomic<CUstream>& stream) {
  CUstream made = stream.load(std::memory_order_acquire);
  if (made != nullptr) return made;
  std::lock_guard<std::mutex> lock(devices_mutex);
  made = stream.load(std::memory_order_acquire);
  if (made != nullptr) return made;
  const Current current(*this);
  int least = 0, greatest = 0;
  FT_CU(CtxGetStreamPriorityRange(&least, &greatest));
  FT_CU(StreamCreateWithPriority(&made, kStreamNonBlocking, greatest));
  stream.store(made, std::memory_order_release);
  return made;
}

CUstream Device::communication() { return urgent_stream(communication_); }
CUstream Device::capture() { return urgent_stream(capture_); }

Block* Device::allocate(std::size_t bytes) {
  Block* block = pool.allocate(bytes);
  if (block == nullptr) {
    throw Failure{Cause::memory, kOutOfMemory, "cuMemAlloc", "", ordinal, bytes};
  }
  return block;
}

CUdeviceptr Device::take(std::size_t bytes) {
  const Current current(*this);
  CUdeviceptr pointer = 0;
  const CUresult result = driver.MemAlloc(&pointer, bytes);
  if (result == kOutOfMemory) return 0;
  check(result, "MemAlloc", ordinal);
  return pointer;
}

void Device::give(CUdeviceptr pointer) {
  const Current current(*this);
  driver.MemFree(pointer);
}

void Device::settle() { synchronize(); }

void Device::synchronize() {
  const Current current(*this);
  check(driver.StreamSynchronize(copy), "StreamSynchronize", ordinal);
  check(driver.StreamSynchronize(compute), "StreamSynchronize", ordinal);
}

void Device::defer(void (*destroy)(void*), void* argument) {
  {
    std::lock_guard<std::mutex> lock(deferred_mutex_);
    deferred_.push_back({timeline.now(), destroy, argument});
  }
  run_deferred();
}

void Device::run_deferred() {
  std::vector<Deferred> now;
  {
    std::lock_guard<std::mutex> lock(deferred_mutex_);
    if (deferred_.empty()) return;
    const Current current(*this);
    std::size_t ended = 0;
    while (ended < deferred_.size() && timeline.passed(deferred_[ended].position)) ++ended;
    now.assign(deferred_.begin(), deferred_.begin() + ended);
    deferred_.erase(deferred_.begin(), deferred_.begin() + ended);
  }
  for (const Deferred& one : now) one.destroy(one.argument);  // may come here again
}

void Device::log(std::shared_ptr<const std::string> label, std::uint64_t position) {
  std::lock_guard<std::mutex> lock(log_mutex_);
  Launched& slot = log_[logged_++ % log_.size()];
  slot.label = std::move(label);
  slot.position = position;
}

std::vector<std::string> Device::launches() {
  std::lock_guard<std::mutex> lock(log_mutex_);
  std::vector<std::string> result;
  for (std::size_t i = 0; i < log_.size(); ++i) {
    const Launched& one = log_[(logged_ + i) % log_.size()];
    if (one.label != nullptr && one.position > timeline.last_passed()) result.push_back(*one.label);
  }
  return result;
}

Device& get_device(int ordinal) {
  require_driver();
  if (ordinal < 0 || ordinal >= device_count() || ordinal >= kMaxDevices) {
    throw Failure{Cause::no_device, kNoDevice, "cuDeviceGet", std::to_string(ordinal), ordinal, 0};
  }
  Device* device = devices[ordinal].load(std::memory_order_acquire);
  if (device != nullptr) return *device;
  std::lock_guard<std::mutex> lock(devices_mutex);
  device = devices[ordinal].load(std::memory_order_acquire);
  if (device == nullptr) {
    device = new Device(ordinal);  // never destroyed: arrays may outlive static objects
    devices[ordinal].store(device, std::memory_order_release);
  }
  return *device;
}

Device* used_device(int ordinal) noexcept {
  if (forked || ordinal < 0 || ordinal >= kMaxDevices) return nullptr;
  return devices[ordinal].load(std::memory_order_acquire);
}

PyObject* device_stats(int ordinal) {
  Ref dict(PyDict_New());
  Device* device = used_device(ordinal);
  if (!dict) return nullptr;
  const PoolStats stats = device == nullptr ? PoolStats{} : device->pool.stats();
  std::size_t free = 0;
  std::size_t total = 0;
  if (device != nullptr) {
    try {
      const Current current(*device);
      if (driver.MemGetInfo(&free, &total) != kSuccess) free = total = 0;
    } catch (const Failure&) {
      free = total = 0;
    }
  }
  add(dict.get(), "bytes_in_use", stats.in_use);
  add(dict.get(), "peak_bytes_in_use", stats.peak);
  add(dict.get(), "bytes_reserved", stats.reserved);
  add(dict.get(), "peak_bytes_reserved", stats.peak_reserved);
  add(dict.get(), "num_allocs", stats.allocations);
  add(dict.get(), "num_segments", stats.segments);
  add(dict.get(), "largest_alloc_size", stats.largest);
  add(dict.get(), "largest_free_block_bytes", stats.largest_free);
  add(dict.get(), "bytes_free_on_device", free);
  add(dict.get(), "bytes_limit", total);
  return PyErr_Occurred() ? nullptr : dict.release();
}

PyObject* recent_launches(int ordinal) {
  Ref list(PyList_New(0));
  if (!list) return nullptr;
  for (int i = 0; i < kMaxDevices; ++i) {
    Device* device = ordinal < 0 || ordinal == i ? used_device(i) : nullptr;
    if (device == nullptr) continue;
    for (const std::string& label : device->launches()) {
      Ref text(PyUnicode_FromString(label.c_str()));
      if (!text || PyList_Append(list.get(), text.get()) < 0) return nullptr;
    }
  }
  return list.release();
}

}  // namespace functrans::cuda
