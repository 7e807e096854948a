// The caches of this processor.
#pragma once

#include <cstdint>

namespace functrans {

// Bytes of the first-level cache for data and of the second-level one, each of one core, and of the
// third; what most processors have where the system does not say it.
struct CacheSizes {
  std::int64_t first, second, third;
};

const CacheSizes& cache_sizes() noexcept;

}  // namespace functrans
