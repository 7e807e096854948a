// Loops on the threads of GNU's OpenMP, for programs that share them with other libraries.
#pragma once

#include <cstdint>

#include "threads.h"

namespace functrans {

// Loads libgomp, whose threads then sleep while they wait unless OMP_WAIT_POLICY says otherwise;
// the reason in words where there is none, else nullptr.
const char* load_openmp() noexcept;

// Runs `body` on pieces of [0, n), on at most `threads` threads of OpenMP, and returns whether all
// were run: false where `stops(context)` held (it may be nullptr). OpenMP is loaded.
bool openmp_for(RangeFn body, void* arg, std::int64_t n, std::int64_t piece, std::int64_t grain,
                int threads, StopFn stops, void* context) noexcept;

}  // namespace functrans
