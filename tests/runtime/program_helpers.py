"""Programs for tests: C text becomes a shared object that `_runtime.Program` runs."""

import itertools
import subprocess

import numpy as np

from functrans import _runtime as rt

HEAD = """
typedef long long i64;
typedef void (*ft_range)(void *, i64, i64);
typedef struct {
  i64 version;
  int (*parallel)(void *, ft_range, void *, i64, i64);
  int (*host)(void *, i64, void *const *, const i64 *);
  void *(*allocate)(i64);
  void (*release)(void *);
  void *const *lib;
  int (*stops)(void *);
} ft_api;
const i64 ft_abi = 2;
#define PROGRAM int ft_program(const ft_api *api, void *ctx, char *const *b, char *arena, \\
                               const i64 *sizes)
#define F32(k) ((float *)b[k])
"""
SPEC8 = (np.float32, (8,))
OUT8 = (np.float32, (8,), -1)
ADD_ONE = "PROGRAM { for (int i = 0; i < 8; i++) F32(1)[i] = F32(0)[i] + 1; return 0; }"
CALL_HOST = "PROGRAM { void *p[] = {b[0], b[1]}; return api->host(ctx, 0, p, 0); }"
# doubles every element in parallel and adds one with the second loop
PARALLEL = """
typedef struct { float *x, *y; } two;
static void twice(void *a, i64 i, i64 n) { two *t = a; for (; i < n; i++) t->y[i] = 2 * t->x[i]; }
static void one(void *a, i64 i, i64 n) { two *t = a; for (; i < n; i++) t->y[i] += 1; }
PROGRAM {
  two t = {F32(0), F32(1)};
  for (int k = 0; k < 20; k++) {
    api->parallel(ctx, twice, &t, sizes[0], 64);
    api->parallel(ctx, one, &t, sizes[0], 64);
  }
  return 0;
}
void ft_shapes(const i64 *sizes, i64 *dims, i64 *arena) { dims[0] = sizes[0]; *arena = 0; }
"""
_numbers = itertools.count()


def compile_c(folder, source, head=HEAD):
    base = folder / f"program{next(_numbers)}"
    text, shared = base.with_suffix(".c"), base.with_suffix(".so")
    text.write_text(head + source)
    subprocess.run(
        ["gcc", "-O1", "-w", "-shared", "-fPIC", "-o", str(shared), str(text)], check=True
    )
    return str(shared)


def make_program(folder, source, inputs=(SPEC8,), outputs=(OUT8,), **options):
    """A Program of this C text; by default float32[8] -> float32[8]."""
    given = {"constants": [], "arena_bytes": 0, "sizes": [], "libs": [], "hosts": [],
             "heavy": False, **options}
    return rt.Program(compile_c(folder, source), list(inputs), outputs=list(outputs), **given)


def make_parallel(folder):
    """float32[n] -> 2 x + 1, each call forty loops of the pool."""
    return make_program(folder, PARALLEL, [(np.float32, (None,))], [(np.float32, (None,), -1)],
                        sizes=[(0, 0)], heavy=True)
