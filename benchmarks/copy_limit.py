"""The most bytes a second that this machine copies and reads, on all its cores, with pages kept.

    python benchmarks/copy_limit.py

The limits are C: NumPy's copies on threads lose a few percent to the interpreter, and its sums do
not read as fast as memory delivers. "copy limit" is a copy by ordinary stores, which read the lines
that they overwrite; stores past the caches (streaming) save that third of the traffic and are shown
beside it. Both count each byte that the program reads or writes once.
"""

from __future__ import annotations

import ctypes
import functools
import os
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from bounds import COPY, LIMIT_BYTES, READ, STREAM

SOURCE = r"""
#include <pthread.h>
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif
enum { MOST = 256 };
typedef float block __attribute__((vector_size(64)));
typedef struct { char *to; const char *from; long bytes; int kind; float sum; } piece;

static void stream(char *to, const char *from, long bytes) {
#if defined(__AVX512F__)
  for (long i = 0; i < bytes; i += 64)
    _mm512_stream_ps((float *)(to + i), _mm512_loadu_ps((const float *)(from + i)));
  _mm_sfence();
#elif defined(__AVX__)
  for (long i = 0; i < bytes; i += 32)
    _mm256_stream_ps((float *)(to + i), _mm256_loadu_ps((const float *)(from + i)));
  _mm_sfence();
#else
  memcpy(to, from, bytes);
#endif
}

static void copy(char *to, const char *from, long bytes) {
  block *y = (block *)to;
  const block *x = (const block *)from;
  for (long i = 0; i < bytes / 64; i++) {
    y[i] = x[i];
    __asm__ volatile("" ::: "memory"); /* or gcc calls memcpy, which streams */
  }
}

static float total(const char *from, long bytes) {
  const block *x = (const block *)from;
  block a = {0}, b = {0}, c = {0}, d = {0};
  for (long i = 0; i + 4 <= bytes / 64; i += 4)
    a += x[i], b += x[i + 1], c += x[i + 2], d += x[i + 3];
  a += b + c + d;
  float sum = 0;
  for (int i = 0; i < 16; i++) sum += a[i];
  return sum;
}

static void *work(void *argument) {
  piece *p = argument;
  if (p->kind == 0) stream(p->to, p->from, p->bytes);
  else if (p->kind == 1) copy(p->to, p->from, p->bytes);
  else p->sum = total(p->from, p->bytes);
  return 0;
}

/* kind 0 streams, 1 copies by ordinary stores, 2 reads; buffers begin on 64 bytes */
float run(char *to, const char *from, long bytes, int kind, int threads) {
  pthread_t ids[MOST];
  piece pieces[MOST];
  long step = bytes / threads / 4096 * 4096;
  if (threads > MOST) threads = MOST;
  for (int t = 0; t < threads; t++) {
    long begin = t * step, size = t + 1 == threads ? bytes - begin : step;
    pieces[t] = (piece){to + begin, from + begin, size, kind, 0};
    if (t && pthread_create(&ids[t], 0, work, &pieces[t])) ids[t] = 0, work(&pieces[t]);
  }
  work(&pieces[0]);
  float sum = pieces[0].sum;
  for (int t = 1; t < threads; t++) {
    if (ids[t]) pthread_join(ids[t], 0);
    sum += pieces[t].sum;
  }
  return sum;
}
"""


@functools.cache
def library() -> ctypes.CDLL | None:
    """The compiled loops, or None where there is no C compiler."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        print("(no C compiler: copies of NumPy stand for the limits, which are higher)")
        return None
    with tempfile.TemporaryDirectory() as folder:
        source, binary = Path(folder, "limit.c"), Path(folder, "limit.so")
        source.write_text(SOURCE)
        flags = ["-O2", "-march=native", "-shared", "-fPIC", "-pthread"]
        subprocess.run([compiler, *flags, str(source), "-o", str(binary)], check=True)
        loaded = ctypes.CDLL(str(binary))
    loaded.run.restype = ctypes.c_float
    pointer, number = ctypes.c_void_p, ctypes.c_int
    loaded.run.argtypes = [pointer, pointer, ctypes.c_long, number, number]
    return loaded


def aligned(count: int) -> np.ndarray:
    """`count` bytes from a 64-byte boundary, their pages touched."""
    room = np.ones(count + 64, np.uint8)
    start = -room.ctypes.data % 64
    return room[start : start + count]


@functools.cache
def limits() -> dict[str, Callable[[], object]]:
    """For each limit a call that moves LIMIT_BYTES."""
    source, target = aligned(LIMIT_BYTES), aligned(LIMIT_BYTES // 2)
    loaded = library()
    if loaded is None:
        return {
            COPY: lambda: np.copyto(target, source[: target.size]),
            READ: lambda: source.view(np.int64).sum(),
        }
    threads = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    call = functools.partial(loaded.run, target.ctypes.data, source.ctypes.data)
    stream, copy = (functools.partial(call, target.size, kind, threads) for kind in (0, 1))
    read = functools.partial(call, source.size, 2, threads)
    read.buffers = source, target  # type: ignore[attr-defined]  # they live as long as the calls
    return {COPY: copy, READ: read, STREAM: stream}


def median_seconds(call: Callable[[], object], passes: int = 7) -> float:
    """The median time of a call."""
    times = []
    for _ in range(passes):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def main() -> None:
    for name, call in limits().items():
        print(f"{name}: {LIMIT_BYTES / median_seconds(call, 25) / 1e9:.1f} GB/s")


if __name__ == "__main__":
    main()
