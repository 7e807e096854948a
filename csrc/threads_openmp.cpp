// Loops on the threads of GNU's OpenMP: its entry points are looked up when they are asked for, so
// that nothing here needs the library, and a program that has it loaded already shares its threads.
#include "threads_openmp.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>

#include <dlfcn.h>

namespace functrans {
namespace {

using ParallelFn = void (*)(void (*)(void*), void*, unsigned, unsigned);

std::atomic<ParallelFn> parallel{nullptr};

struct Loop {
  RangeFn body;
  void* arg;
  std::int64_t n, piece, grain;
  StopFn stops;
  void* context;
  std::atomic<std::int64_t> next{0};
  std::atomic<bool> stopped{false};
};

// What each thread of a team does: pieces as it asks for them.
void take_pieces(void* data) {
  Loop& loop = *static_cast<Loop*>(data);
  while (!loop.stopped.load(std::memory_order_relaxed)) {
    const std::int64_t begin = loop.next.fetch_add(loop.piece, std::memory_order_relaxed);
    if (begin >= loop.n) return;
    loop.body(loop.arg, begin, std::min(loop.n, begin + loop.piece));
    if (loop.stops != nullptr && loop.stops(loop.context) != 0) loop.stopped.store(true);
  }
}

}  // namespace

const char* load_openmp() noexcept {
  if (parallel.load() != nullptr) return nullptr;
  setenv("OMP_WAIT_POLICY", "passive", 0);  // read once, when the library is loaded
  void* library = dlopen("libgomp.so.1", RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) return "libgomp.so.1 was not found";
  const auto found = reinterpret_cast<ParallelFn>(dlsym(library, "GOMP_parallel"));
  if (found == nullptr) return "libgomp.so.1 has no GOMP_parallel";
  parallel.store(found);
  return nullptr;
}

bool openmp_for(RangeFn body, void* arg, std::int64_t n, std::int64_t piece, std::int64_t grain,
                int threads, StopFn stops, void* context) noexcept {
  Loop loop{body, arg, n, piece, grain, stops, context};
  const std::int64_t pieces = (n - 1) / piece + 1;
  const auto team = static_cast<unsigned>(std::min<std::int64_t>(threads, pieces));
  parallel.load()(take_pieces, &loop, team, 0);
  return !loop.stopped.load();
}

}  // namespace functrans
