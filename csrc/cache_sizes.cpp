#include "cache_sizes.h"

#include <algorithm>

#include <unistd.h>

namespace functrans {
namespace {

// What is out of these bounds is a virtual machine's mistake.
std::int64_t size_of(int name, std::int64_t least, std::int64_t most,
                     std::int64_t usual) {
  const long bytes = sysconf(name);
  return bytes <= 0 ? usual : std::clamp<std::int64_t>(bytes, least, most);
}

}  // namespace

const CacheSizes& cache_sizes() noexcept {
#ifdef _SC_LEVEL2_CACHE_SIZE
  static const CacheSizes sizes{size_of(_SC_LEVEL1_DCACHE_SIZE, 16 << 10, 128 << 10, 48 << 10),
                                size_of(_SC_LEVEL2_CACHE_SIZE, 256 << 10, 4 << 20, 1 << 20),
                                size_of(_SC_LEVEL3_CACHE_SIZE, 4 << 20, 1 << 30, 32 << 20)};
#else
  static const CacheSizes sizes{48 << 10, 1 << 20, 32 << 20};
#endif
  return sizes;
}

}  // namespace functrans
