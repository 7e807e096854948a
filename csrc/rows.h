// What the library functions of compiled programs share: dtype codes, scratch memory, and pieces
// of a range run in parallel. Generated C code calls these functions by plain C types; they return
// 0, or kOutOfMemory, and never touch Python.
#pragma once

#include "allocator.h"
#include "threads.h"

#include <cstdint>
#include <utility>

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define FUNCTRANS_WIDEST __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define FUNCTRANS_WIDEST
#endif
#define FUNCTRANS_INLINE inline __attribute__((always_inline))

namespace functrans {

using i64 = std::int64_t;

// The codes by which generated code names dtypes.
enum DType : i64 {
  kF32, kF64, kF16, kBF16, kI8, kI16, kI32, kI64, kU8, kU16, kU32, kU64, kBool, kC64, kC128,
};

constexpr int kOutOfMemory = 2;

inline i64 item_size(i64 dtype) {
  constexpr i64 sizes[] = {4, 8, 2, 2, 1, 2, 4, 8, 1, 2, 4, 8, 1, 8, 16};
  return sizes[dtype];
}

// Memory of the caching allocator for the time of one call.
class Scratch {
 public:
  explicit Scratch(i64 bytes) : data_(allocate(static_cast<std::size_t>(bytes > 0 ? bytes : 1))) {}
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() { deallocate(data_); }
  explicit operator bool() const { return data_ != nullptr; }
  template <typename T>
  T* as(i64 byte_offset = 0) const {
    return reinterpret_cast<T*>(static_cast<char*>(data_) + byte_offset);
  }

 private:
  void* data_;
};

// body(begin, end) on disjoint pieces of [0, n), the larger ones of `grain` indices or a multiple.
template <typename Body>
void parallel_pieces(i64 n, i64 grain, Body&& body) {
  using Plain = std::remove_reference_t<Body>;
  parallel_for([](void* arg, i64 begin, i64 end) { (*static_cast<Plain*>(arg))(begin, end); },
               const_cast<void*>(static_cast<const void*>(&body)), n, grain);
}

inline i64 round_up(i64 n, i64 multiple) { return (n + multiple - 1) / multiple * multiple; }

}  // namespace functrans
