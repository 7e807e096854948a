// Threefry-2x32, 20 rounds: J. Salmon, M. Moraes, R. Dror, D. Shaw, "Parallel random numbers: as
// easy as 1, 2, 3", SC 2011. Counter-based: every element is independent, so lanes vectorise.
#include "special_ufuncs.h"
#include "word_lanes.h"

#include <algorithm>
#include <cstdint>

namespace functrans {
namespace {

constexpr std::uint32_t kParity = 0x1BD11BDA;
constexpr int kRotations[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};

FUNCTRANS_CLONES
void threefry_block(const std::uint32_t* k0, const std::uint32_t* k1, std::uint32_t* x0,
                    std::uint32_t* x1) {
  for (int lane = 0; lane < kLanes; ++lane) {
    const std::uint32_t keys[3] = {k0[lane], k1[lane], k0[lane] ^ k1[lane] ^ kParity};
    std::uint32_t a = x0[lane] + keys[0];
    std::uint32_t b = x1[lane] + keys[1];
#pragma GCC unroll 5
    for (int group = 0; group < 5; ++group) {
#pragma GCC unroll 4
      for (int round = 0; round < 4; ++round) {
        const int r = kRotations[group % 2][round];
        a += b;
        b = ((b << r) | (b >> (32 - r))) ^ a;
      }
      a += keys[(group + 1) % 3];
      b += keys[(group + 2) % 3] + static_cast<std::uint32_t>(group + 1);
    }
    x0[lane] = a;
    x1[lane] = b;
  }
}

}  // namespace

void threefry_loop(char** args, const npy_intp* dims, const npy_intp* strides, void*) {
  alignas(64) std::uint32_t words[4][kLanes] = {};
  for (npy_intp start = 0; start < dims[0]; start += kLanes) {
    const npy_intp count = std::min<npy_intp>(kLanes, dims[0] - start);
    for (int i = 0; i < 4; ++i) gather(args[i] + start * strides[i], strides[i], count, words[i]);
    threefry_block(words[0], words[1], words[2], words[3]);
    scatter(words[2], strides[4], count, args[4] + start * strides[4]);
    scatter(words[3], strides[5], count, args[5] + start * strides[5]);
  }
}

}  // namespace functrans
