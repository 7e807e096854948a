#include "cuda/transfer.h"

#include "threads.h"

#include <algorithm>
#include <cstring>

namespace functrans::cuda {
namespace {

constexpr std::int64_t kCopyGrain = std::int64_t{512} << 10;  // bytes a thread copies at a time
constexpr std::size_t kFew = 4096;  // bytes that take less time than an event between two streams

struct HostCopy {
  char* target;
  const char* source;
};

void copy_range(void* argument, std::int64_t begin, std::int64_t end) {
  const auto* copy = static_cast<const HostCopy*>(argument);
  std::memcpy(copy->target + begin, copy->source + begin, static_cast<std::size_t>(end - begin));
}

// One thread copies at 10 GB/s or so, the bus takes 50.
void copy_host(void* target, const void* source, std::size_t bytes) {
  HostCopy copy{static_cast<char*>(target), static_cast<const char*>(source)};
  parallel_for(copy_range, &copy, static_cast<std::int64_t>(bytes), kCopyGrain);
}

// Pinned chunks of the device, one user at a time.
class Chunks {
 public:
  explicit Chunks(Device& device) : device_(device), lock_(device.staging.mutex) {
    Staging& staging = device.staging;
    for (std::size_t i = 0; i < staging.chunks.size(); ++i) {
      if (staging.chunks[i] == nullptr) {
        FT_CU(MemHostAlloc(&staging.chunks[i], Staging::kChunk, kHostAllocPortable));
      }
      if (staging.events[i] == nullptr) staging.events[i] = device.timeline.take_event();
    }
  }
  // The chunk, once the copy that uses it has ended.
  void* take(std::size_t i) {
    Staging& staging = device_.staging;
    if (staging.busy[i]) {
      FT_CU(EventSynchronize(staging.events[i]));
      staging.busy[i] = false;
    }
    return staging.chunks[i];
  }
  void* at(std::size_t i) const { return device_.staging.chunks[i]; }
  void give(std::size_t i, CUstream stream) {
    FT_CU(EventRecord(device_.staging.events[i], stream));
    device_.staging.busy[i] = true;
  }

 private:
  Device& device_;
  std::lock_guard<std::mutex> lock_;
};

void push(Device& device, CUstream stream, CUdeviceptr target, const void* source,
          std::size_t bytes) {
  Chunks chunks(device);
  const char* from = static_cast<const char*>(source);
  for (std::size_t at = 0, k = 0; at < bytes; at += Staging::kChunk, k ^= 1) {
    const std::size_t n = std::min(Staging::kChunk, bytes - at);
    void* chunk = chunks.take(k);
    copy_host(chunk, from + at, n);
    FT_CU(MemcpyHtoDAsync(target + at, chunk, n, stream));
    chunks.give(k, stream);
  }
}

// While one chunk is copied out of pinned memory, the next is under way.
void pull(Device& device, CUstream stream, void* target, CUdeviceptr source, std::size_t bytes) {
  Chunks chunks(device);
  char* to = static_cast<char*>(target);
  const std::size_t count = (bytes + Staging::kChunk - 1) / Staging::kChunk;
  const auto size = [bytes](std::size_t i) {
    return std::min(Staging::kChunk, bytes - i * Staging::kChunk);
  };
  const auto begin = [&](std::size_t i) {
    void* chunk = chunks.take(i & 1);
    FT_CU(MemcpyDtoHAsync(chunk, source + i * Staging::kChunk, size(i), stream));
    chunks.give(i & 1, stream);
  };
  if (count > 0) begin(0);
  for (std::size_t i = 0; i < count; ++i) {
    if (i + 1 < count) begin(i + 1);
    void* chunk = chunks.take(i & 1);
    copy_host(to + i * Staging::kChunk, chunk, size(i));
  }
}

}  // namespace

void upload_small(DeviceBuffer& target, const void* source) {
  Device& device = *target.device;
  if (target.bytes != 0) {
    check(driver.MemcpyHtoDAsync(target.pointer, source, target.bytes, device.compute),
          "MemcpyHtoDAsync", device.ordinal);
  }
  target.written = device.timeline.advance();
}

void upload_large(DeviceBuffer& target, const void* source) {
  Device& device = *target.device;
  const Current current(device);
  // The block may still be in use by what ran with it before.
  device.timeline.order(device.copy, target.block->used_until);
  push(device, device.copy, target.pointer, source, target.bytes);
  const CUevent event = device.timeline.take_event();
  check(driver.EventRecord(event, device.copy), "EventRecord", device.ordinal);
  target.ready.store(event, std::memory_order_release);
}

void download(void* target, DeviceBuffer& source) {
  if (source.bytes == 0) return;
  Device& device = *source.device;
  const Current current(device);
  const std::uint64_t written = source.written;
  // What was written last is copied behind it, if that is soon done; else nobody waits for the copy.
  const bool follows = source.bytes <= kFew && written == device.timeline.now();
  if (!follows) device.timeline.order(device.copy, written);
  pull(device, follows ? device.compute : device.copy, target, source.pointer, source.bytes);
  if (follows) device.timeline.reached(written);
}

void copy_between(DeviceBuffer& target, DeviceBuffer& source) {
  Device& to = *target.device;
  Device& from = *source.device;
  settle(source);
  {
    const Current current(from);
    from.timeline.order(to.compute, std::max(source.written.load(), from.timeline.now()));
  }
  const Current current(to);
  if (target.bytes != 0) {
    FT_CU(MemcpyPeerAsync(target.pointer, to.context, source.pointer, from.context, target.bytes,
                          to.compute));
  }
  target.written = to.timeline.advance();
  // Whoever gets the source's memory next comes behind the copy.
  to.timeline.order(from.compute, target.written);
  from.timeline.advance();
}

void read_now(Device& device, void* target, CUdeviceptr source, std::size_t bytes) {
  if (bytes != 0) pull(device, device.compute, target, source, bytes);
}

void read_copied(Device& device, void* target, CUdeviceptr source, std::size_t bytes) {
  pull(device, device.copy, target, source, bytes);
}

void write_now(Device& device, CUdeviceptr target, const void* source, std::size_t bytes) {
  if (bytes == 0) return;
  if (bytes <= kDirectBytes) {
    check(driver.MemcpyHtoDAsync(target, source, bytes, device.compute), "MemcpyHtoDAsync",
          device.ordinal);
  } else {
    push(device, device.compute, target, source, bytes);
  }
}

}  // namespace functrans::cuda
