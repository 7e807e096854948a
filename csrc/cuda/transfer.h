// Copies between host and device, through pinned memory, on the copy stream.
#pragma once

#include "cuda/buffer.h"

namespace functrans::cuda {

// Up to here the driver takes the bytes along with the command: on the compute stream, in order.
constexpr std::size_t kDirectBytes = std::size_t{64} << 10;

// The contexts of the buffers' devices are current, or made so. All throw Failure. Those that may
// wait are called without the GIL.
void upload_small(DeviceBuffer& target, const void* source);
void upload_large(DeviceBuffer& target, const void* source);
void download(void* target, DeviceBuffer& source);
void copy_between(DeviceBuffer& target, DeviceBuffer& source);  // of two devices

// For a running program: what is at `source` once the compute stream has come to where it is now.
void read_now(Device& device, void* target, CUdeviceptr source, std::size_t bytes);
// What is at `source` once the copy stream has come to where it is now.
void read_copied(Device& device, void* target, CUdeviceptr source, std::size_t bytes);
// Behind what the compute stream was given so far; `source` is free afterwards.
void write_now(Device& device, CUdeviceptr target, const void* source, std::size_t bytes);

}  // namespace functrans::cuda
