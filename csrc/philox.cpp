// Philox-4x32, 10 rounds: J. Salmon, M. Moraes, R. Dror, D. Shaw, "Parallel random numbers: as easy
// as 1, 2, 3", SC 2011. Counter-based, as threefry is: every element is independent.
#include "special_ufuncs.h"
#include "word_lanes.h"

#include <algorithm>
#include <cstdint>

namespace functrans {
namespace {

constexpr std::uint64_t kMultipliers[2] = {0xD2511F53, 0xCD9E8D57};
constexpr std::uint32_t kWeyl[2] = {0x9E3779B9, 0xBB67AE85};
constexpr int kRounds = 10;

FUNCTRANS_CLONES
void philox_block(const std::uint32_t* k0, const std::uint32_t* k1, std::uint32_t* x0,
                  std::uint32_t* x1, std::uint32_t* x2, std::uint32_t* x3) {
  for (int lane = 0; lane < kLanes; ++lane) {
    std::uint32_t a = x0[lane], b = x1[lane], c = x2[lane], d = x3[lane];
#pragma GCC unroll 10
    for (std::uint32_t round = 0; round < kRounds; ++round) {
      const std::uint64_t first = kMultipliers[0] * a;
      const std::uint64_t second = kMultipliers[1] * c;
      a = static_cast<std::uint32_t>(second >> 32) ^ b ^ (k0[lane] + round * kWeyl[0]);
      c = static_cast<std::uint32_t>(first >> 32) ^ d ^ (k1[lane] + round * kWeyl[1]);
      b = static_cast<std::uint32_t>(second);
      d = static_cast<std::uint32_t>(first);
    }
    x0[lane] = a;
    x1[lane] = b;
    x2[lane] = c;
    x3[lane] = d;
  }
}

}  // namespace

void philox_loop(char** args, const npy_intp* dims, const npy_intp* strides, void*) {
  alignas(64) std::uint32_t words[6][kLanes] = {};
  for (npy_intp start = 0; start < dims[0]; start += kLanes) {
    const npy_intp count = std::min<npy_intp>(kLanes, dims[0] - start);
    for (int i = 0; i < 6; ++i) gather(args[i] + start * strides[i], strides[i], count, words[i]);
    philox_block(words[0], words[1], words[2], words[3], words[4], words[5]);
    for (int i = 2; i < 6; ++i) {
      scatter(words[i], strides[i + 4], count, args[i + 4] + start * strides[i + 4]);
    }
  }
}

}  // namespace functrans
