// What a program needs besides its own text: threads and memory.
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#ifdef _OPENMP
#include <omp.h>
#endif

typedef long long i64;
typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
#include "api.h"

static i64 ft_least(i64 a, i64 b) { return a < b ? a : b; }
static i64 ft_round_up(i64 n, i64 multiple) { return (n + multiple - 1) / multiple * multiple; }

static i64 ft_threads(void) {
#ifdef _OPENMP
  return omp_in_parallel() ? 1 : omp_get_max_threads();
#else
  return 1;
#endif
}

// Pieces of [0, n) in parallel; each but the last is a multiple of `grain`. A negative grain: the
// fewest pieces, one for each thread.
static void ft_parallel(ft_range body, void *arg, i64 n, i64 grain) {
  const i64 threads = ft_threads(), pieces = grain < 0 ? threads : 4 * threads;
  const i64 step = ft_round_up((n + pieces - 1) / pieces, grain < 1 ? 1 : grain);
  if (threads == 1 || step >= n) {
    body(arg, 0, n);
    return;
  }
#ifdef _OPENMP
#pragma omp parallel for schedule(dynamic, 1)
#endif
  for (i64 begin = 0; begin < n; begin += step) body(arg, begin, ft_least(n, begin + step));
}

// What the program itself calls: nobody ends it early.
static int ft_parallel_to_end(void *ctx, ft_range body, void *arg, i64 n, i64 grain) {
  ft_parallel(body, arg, n, grain);
  return 0;
}

static int ft_never(void *ctx) { return 0; }

// Notes in a task that it could not be done; others may do so at once.
static inline void ft_fail(int *failed) {
#ifdef _OPENMP
#pragma omp atomic write
#endif
  *failed = 1;
}

// Memory in whole lines of the cache; NULL also for more than there are addresses.
static void *ft_allocate(i64 bytes) {
  if (bytes < 0 || (u64)bytes > SIZE_MAX - 64) return NULL;
  const size_t whole = (size_t)ft_round_up(bytes < 1 ? 1 : bytes, 64);
#ifdef _WIN32  // its C library has no aligned_alloc
  return _aligned_malloc(whole, 64);
#else
  return aligned_alloc(64, whole);
#endif
}

static void ft_release(void *memory) {
#ifdef _WIN32
  _aligned_free(memory);
#else
  free(memory);
#endif
}
