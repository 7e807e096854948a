// DLPack's structures, of version 1 and before.
#pragma once

#include <cstdint>

namespace functrans::cuda {

constexpr std::int32_t kDLCuda = 2;
constexpr std::uint64_t kDLReadOnly = 1;
constexpr std::uint64_t kDLCopied = 2;

struct DLDevice {
  std::int32_t type;
  std::int32_t id;
};

struct DLDataType {
  std::uint8_t code;
  std::uint8_t bits;
  std::uint16_t lanes;
};

struct DLTensor {
  void* data;
  DLDevice device;
  std::int32_t ndim;
  DLDataType dtype;
  std::int64_t* shape;
  std::int64_t* strides;
  std::uint64_t byte_offset;
};

struct DLManagedTensor {
  DLTensor tensor;
  void* context;
  void (*deleter)(DLManagedTensor*);
};

struct DLManagedTensorVersioned {
  std::uint32_t major;
  std::uint32_t minor;
  void* context;
  void (*deleter)(DLManagedTensorVersioned*);
  std::uint64_t flags;
  DLTensor tensor;
};

}  // namespace functrans::cuda
