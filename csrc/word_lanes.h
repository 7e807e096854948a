// What the hashes of random numbers share: words of 32 bits by lanes that vectorise.
#pragma once

#include <cstdint>
#include <cstring>

#include "common.h"

#if defined(__x86_64__) && defined(__gnu_linux__) && !defined(__clang__)
#define FUNCTRANS_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define FUNCTRANS_CLONES
#endif

namespace functrans {

constexpr int kLanes = 64;

inline void gather(const char* source, npy_intp stride, npy_intp count, std::uint32_t* target) {
  if (stride == sizeof(std::uint32_t)) {
    std::memcpy(target, source, sizeof(std::uint32_t) * static_cast<std::size_t>(count));
    return;
  }
  for (npy_intp i = 0; i < count; ++i) {
    target[i] = *reinterpret_cast<const std::uint32_t*>(source + i * stride);
  }
}

inline void scatter(const std::uint32_t* source, npy_intp stride, npy_intp count, char* target) {
  if (stride == sizeof(std::uint32_t)) {
    std::memcpy(target, source, sizeof(std::uint32_t) * static_cast<std::size_t>(count));
    return;
  }
  for (npy_intp i = 0; i < count; ++i) {
    *reinterpret_cast<std::uint32_t*>(target + i * stride) = source[i];
  }
}

}  // namespace functrans
