"""How accurate and how fast the vector math of generated C is; writes the table of its page.

    python benchmarks/math_accuracy.py [--gpu] [--step N] [--points N] [--write] [functions...]

float32 functions of one argument are compared with the float64 template of the same function on
every N-th of all 2^32 floats (N = 1: all of them); float64 functions, and those of two arguments,
with mpmath on random points over all exponents, in the interesting ranges and at their borders.

With --gpu it is the table of the functions in kernels of a GPU, whose float32 is compared with its
float64 in the same way.
"""

from __future__ import annotations

import argparse
import ctypes
import functools
import re
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

import mpmath
import numpy as np

import functrans as ft
import functrans.numpy as jnp
from functrans import lax
from functrans.lowering.c.isa import COMMON_FLAGS, Isa, host_isa
from functrans.lowering.c.prelude import Prelude

PAGE = Path(__file__).parent.parent / "docs" / "reference" / "math_accuracy.md"
FLOATS = {"f32": np.float32, "f64": np.float64}
C_TYPES = {"f32": "float", "f64": "double"}
WORKING_DIGITS = 50

# the exact functions ------------------------------------------------------------------------------

mp = mpmath.mp


def _lgamma(x: mpmath.mpf) -> mpmath.mpf:
    # far below 0 loggamma follows the sum of its branches; only the real part is meant
    return mp.re(mp.loggamma(x))


def _cbrt(x: mpmath.mpf) -> mpmath.mpf:
    return mp.sign(x) * mp.cbrt(abs(x))


def _erfc(x: mpmath.mpf) -> mpmath.mpf:
    return mp.erfc(x) if abs(x) < 1000 else 1 - mp.sign(x)   # mpmath fails at 1e300


def _erf_inv(x: mpmath.mpf) -> mpmath.mpf:
    return mp.erfinv(x) if abs(x) <= 1 else mp.nan


REFERENCES: dict[str, Callable[..., mpmath.mpf]] = {
    "exp": mp.exp, "exp2": lambda x: mp.power(2, x), "expm1": mp.expm1,
    "log": mp.log, "log2": lambda x: mp.log(x, 2), "log1p": mp.log1p,
    "sin": mp.sin, "cos": mp.cos, "tan": mp.tan,
    "asin": mp.asin, "acos": mp.acos, "atan": mp.atan, "atan2": mp.atan2,
    "sinh": mp.sinh, "cosh": mp.cosh, "tanh": mp.tanh,
    "asinh": mp.asinh, "acosh": mp.acosh, "atanh": mp.atanh,
    "pow": mp.power, "cbrt": _cbrt, "rsqrt": lambda x: 1 / mp.sqrt(x),
    "logistic": lambda x: 1 / (1 + mp.exp(-x)),
    "erf": mp.erf, "erfc": _erfc, "erf_inv": _erf_inv,
    "lgamma": _lgamma, "digamma": mp.digamma,
}
BINARY = ("atan2", "pow")
# Where a function is not constant, infinite or its own argument; the first range is timed.
RANGES: dict[str, list[tuple[float, float]]] = {
    "exp": [(-8, 8), (-110, 90), (-750, 710)], "exp2": [(-8, 8), (-151, 129), (-1080, 1025)],
    "expm1": [(-8, 8), (-1, 1), (-40, 710)], "log": [(0, 8), (0.6, 1.5)],
    "log2": [(0, 8), (0.6, 1.5)], "log1p": [(-0.9, 8), (-1, 1)],
    "asin": [(-1, 1)], "acos": [(-1, 1)], "atan": [(-3, 3)],
    "sinh": [(-8, 8), (-1, 1), (-711, 711)], "cosh": [(-8, 8), (-1, 1), (-711, 711)],
    "tanh": [(-8, 8), (-1, 1)], "asinh": [(-3, 3)], "acosh": [(1, 8), (1, 1.5)],
    "atanh": [(-1, 1)], "pow": [(0, 8), (0.9, 1.1)], "rsqrt": [(0, 8)],
    "logistic": [(-8, 8), (-110, 20), (-750, 40)], "erf": [(-3, 3), (-6, 6)],
    "erfc": [(-3, 3), (0, 11), (0, 28)], "erf_inv": [(-1, 1), (0.99, 1)],
    "lgamma": [(0, 10), (0.9, 3.1)], "digamma": [(0, 10), (1, 3.1)],
}
EXPONENTS = {"f32": (-149, 127), "f64": (-1074, 1023)}


def points(name: str, dtype: str, count: int, seed: int = 0) -> list[np.ndarray]:
    """Operands of a function: in its ranges, over all exponents, near multiples of pi/2."""
    rng = np.random.default_rng(seed)

    def any_exponent(low: int, high: int) -> np.ndarray:
        return np.ldexp(rng.uniform(1, 2, count), rng.integers(low, high + 1, count))

    parts: list[np.ndarray] = [rng.uniform(a, b, count) for a, b in RANGES.get(name, [(-8, 8)])]
    parts += [s * any_exponent(*EXPONENTS[dtype]) for s in (1, -1)]
    parts += [s * any_exponent(-12, 8) for s in (1, -1)]
    if name in ("sin", "cos", "tan"):
        parts.append(rng.integers(1, 1 << 20, count) * (np.pi / 2))
    with np.errstate(over="ignore"):
        x = np.concatenate(parts).astype(FLOATS[dtype])
    if name not in BINARY:
        return [x]
    y = np.concatenate([rng.uniform(-9, 9, len(x) // 2), np.round(rng.uniform(-9, 9, len(x) // 4)),
                        np.ldexp(rng.uniform(-2, 2, len(x)), rng.integers(-30, 30, len(x)))])
    return [x, rng.permutation(y[:len(x)]).astype(FLOATS[dtype])]


def exact(name: str, *x: float) -> mpmath.mpf:
    """The value at finite operands; NaN outside of the domain, infinity at poles."""
    with mpmath.workdps(WORKING_DIGITS):
        try:
            value = REFERENCES[name](*(mpmath.mpf(float(v)) for v in x))
        except (ValueError, ZeroDivisionError):
            return mp.inf
        return value if isinstance(value, mpmath.mpf) else mp.nan


def ulps(y: float, value: mpmath.mpf, dtype: str) -> float:
    """The distance in units of the last place that a float near the exact value has."""
    info = np.finfo(FLOATS[dtype])  # type: ignore[type-var]
    digits, top = info.nmant + 1, mpmath.mpf(2) ** int(info.maxexp)
    if mpmath.isnan(value) or np.isnan(y):
        return 0.0 if mpmath.isnan(value) and np.isnan(y) else float("inf")
    y_, value = (max(-top, min(top, v)) for v in (mpmath.mpf(float(y)), value))
    exponent = mpmath.frexp(value)[1] if value else int(info.minexp) + 1
    exponent = max(exponent, int(info.minexp) + 1)
    with mpmath.workdps(WORKING_DIGITS):
        return float(abs(y_ - value) / mpmath.mpf(2) ** (exponent - digits))


# compiled templates ------------------------------------------------------------------------------

SWEEP = r"""
/* the largest distance in ulp over every `step`-th float32 from `first`, and where */
double sweep_NAME(u64 first, u64 step, u32 *worst) {
  static float x[4096], y[4096];
  static double z[4096], e[4096];
  double most = -1;
  for (u64 b = first; b < 1ull << 32;) {
    for (int i = 0; i < 4096; i++, b += step) {
      u32 u = b < 1ull << 32 ? (u32)b : 0;
      __builtin_memcpy(x + i, &u, 4);
      z[i] = x[i];
    }
    run_NAME_f32(x, x, y, 4096);
    run_NAME_f64(z, z, z, 4096);
    for (int i = 0; i < 4096; i++) {
      double r = z[i], v = y[i], top = 0x1p128;
      r = r > top ? top : r < -top ? -top : r;
      v = v > top ? top : v < -top ? -top : v;
      u64 u;
      __builtin_memcpy(&u, &r, 8);
      u64 exponent = u >> 52 & 0x7ff, last;
      last = (2046 + 23 - (exponent < 897 ? 897 : exponent)) << 52;
      double scale;
      __builtin_memcpy(&scale, &last, 8);
      double d = __builtin_fabs(v - r) * scale;
      e[i] = r != r || v != v ? (r != r && v != v ? 0 : 1e30) : d;
    }
    for (int i = 0; i < 4096; i++)
      if (e[i] > most) {
        most = e[i];
        __builtin_memcpy(worst, x + i, 4);
      }
  }
  return most;
}
"""
CLOCK = """
/* n dependent additions, one cycle each */
long clock_chain(long n) { for (long i = 0; i < n; i++) __asm__ volatile("" : "+r"(i)); return n; }
"""


Lanes = tuple[tuple[str, int], ...]


def text(names: Sequence[str], lanes: Lanes, isa: Isa) -> str:
    """C with run_<name>_<dtype>(x, y, out, n) for every function; n is a multiple of the lanes."""
    prelude = Prelude(isa)
    body = [CLOCK]
    for name in names:
        for dtype, width in lanes:
            args = [prelude.load(dtype, width, f"{v} + i") for v in "xy"[:1 + (name in BINARY)]]
            value = prelude.op(name, (dtype,) * len(args), args, width)
            store, c = prelude.store(dtype, width, "o + i", value), C_TYPES[dtype]
            body.append(f"void run_{name}_{dtype}(const {c} *x, const {c} *y, {c} *o, long n) {{ "
                        f"for (long i = 0; i < n; i += {width}) {{ {store}; }} }}\n")
        if name not in BINARY and len(lanes) == 2:
            body.append(SWEEP.replace("NAME", name))
    return prelude.source() + "".join(body)


@functools.cache
def compiled(names: tuple[str, ...], lanes: Lanes = (("f32", 16), ("f64", 8)),
             isa: Isa | None = None) -> ctypes.CDLL:
    """The functions of `text` for this machine."""
    isa = isa or host_isa()
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "math.c"), Path(folder, "math.so")
        source.write_text(text(names, lanes, isa))
        subprocess.run(["gcc", *COMMON_FLAGS, *isa.flags, "-shared", "-o", target, source, "-lm"],
                       check=True)
        library = ctypes.CDLL(str(target))
    return library


def call_here(library: ctypes.CDLL, function: str, *args: np.ndarray | int) -> None:
    """Call a function of a library of this process on arrays and integers."""
    library[function](*[v.ctypes.data_as(ctypes.c_void_p) if isinstance(v, np.ndarray)
                        else ctypes.c_longlong(v) for v in args])


def evaluate(library: Any, name: str, dtype: str, *operands: np.ndarray,
             call: Callable[..., object] = call_here) -> np.ndarray:
    """The compiled function on arrays of any length; `call` calls what is not in this process."""
    length = len(operands[0])
    padded = [np.concatenate([v, np.ones(-length % 16, v.dtype)]) for v in operands]
    out = np.empty_like(padded[0])
    call(library, f"run_{name}_{dtype}", padded[0], padded[-1], out, len(out))
    return out[:length]


# measurements ------------------------------------------------------------------------------

def sampled(name: str, dtype: str, count: int) -> float:
    """The largest error in ulp on random points, against mpmath."""
    operands = points(name, dtype, count)
    if name in ("lgamma", "digamma"):
        operands = [v[v > 0] for v in operands]
    results = evaluate(compiled((name,)), name, dtype, *operands)
    return max(ulps(y, exact(name, *x), dtype) for y, *x in zip(results, *operands))


def swept(name: str, step: int) -> float:
    """The largest error in ulp of float32 on every step-th float, against float64."""
    sweep = getattr(compiled((name,)), f"sweep_{name}")
    sweep.restype = ctypes.c_double
    worst = ctypes.c_uint32()
    return float(sweep(ctypes.c_uint64(0), ctypes.c_uint64(step), ctypes.byref(worst)))


def cycles(name: str, dtype: str) -> float:
    """Cycles per element in level-2 cache, of the fastest of many runs."""
    library, count = compiled((name,)), 1 << 14
    rng = np.random.default_rng(0)
    low, high = RANGES.get(name, [(-8, 8)])[0]
    buffers = []
    for values in (rng.uniform(low, high, count), rng.uniform(-3, 3, count), np.zeros(count)):
        values = values.astype(FLOATS[dtype])
        aligned = np.empty(values.nbytes + 64, np.uint8)
        start = -aligned.ctypes.data % 64
        buffers.append(aligned[start:start + values.nbytes].view(values.dtype))
        buffers[-1][:] = values
    if name not in BINARY:
        buffers[1] = buffers[0]
    pointers = [ctypes.c_void_p(v.ctypes.data) for v in buffers]
    function = getattr(library, f"run_{name}_{dtype}")
    run = fastest(lambda: function(*pointers, ctypes.c_long(count)))
    empty = fastest(lambda: function(*pointers, ctypes.c_long(0)))
    steps = 100_000
    clock = fastest(lambda: library.clock_chain(ctypes.c_long(steps)))
    return (run - empty) / count / (clock / steps)


def fastest(call: Callable[[], object], rounds: int = 60) -> float:
    times = []
    for _ in range(rounds):
        start = perf_counter()
        call()
        times.append(perf_counter() - start)
    return min(times)


def rows(names: Sequence[str], step: int, count: int) -> Iterator[str]:
    for name in names:
        f32 = sampled(name, "f32", count) if name in BINARY else swept(name, step)
        f64 = sampled(name, "f64", count)
        speed = [f"{cycles(name, dtype):.2f}" for dtype in FLOATS]
        mark = " *" if name in ("lgamma", "digamma") else ""
        yield f"| {name} | {f32:.2f} | {f64:.2f}{mark} | {speed[0]} | {speed[1]} |"


# GPUs -----------------------------------------------------------------------------------------

BLOCK = 1 << 24  # floats at a time


def of_array(name: str) -> Callable[..., ft.Array]:
    """The function on arrays."""
    return getattr(lax, name, None) or getattr(jnp, name)  # type: ignore[no-any-return]


def worst_of_block(name: str, first: ft.Array, step: int) -> ft.Array:
    """The largest error in ulp of float32 on every step-th float of a block, against float64."""
    bits = first + step * jnp.arange(BLOCK, dtype=np.uint32)
    x = lax.bitcast_convert_type(bits, np.float32)
    top = 2.0**128
    y = jnp.clip(of_array(name)(x).astype(np.float64), -top, top)
    value = jnp.clip(of_array(name)(x.astype(np.float64)), -top, top)
    exponent = lax.bitcast_convert_type(value, np.int64) >> 52 & 0x7FF
    unit = lax.bitcast_convert_type(2069 - jnp.maximum(exponent, 897) << 52, np.float64)
    error = jnp.abs(y - value) * unit
    wrong = jnp.isnan(y) != jnp.isnan(value)
    return jnp.max(jnp.where(wrong, 1e30, jnp.where(jnp.isnan(value), 0.0, error)))


def swept_on_gpu(name: str, step: int) -> float:
    worst = ft.jit(lambda first: worst_of_block(name, first, step))
    end = 1 << (31 if name == "lgamma" else 32)  # of lgamma the positive ones
    found = [worst(np.uint32(first)) for first in range(0, end - BLOCK * step, BLOCK * step)]
    return max(map(float, found))


def sampled_on_gpu(name: str, dtype: str, count: int) -> float:
    operands = points(name, dtype, count)
    if name in ("lgamma", "digamma"):
        operands = [v[v > 0] for v in operands]
    results = np.asarray(ft.jit(of_array(name))(*operands))
    return max(ulps(y, exact(name, *x), dtype) for y, *x in zip(results, *operands))


def rows_of_gpu(names: Sequence[str], step: int, count: int) -> Iterator[str]:
    for name in names:
        f32 = sampled_on_gpu(name, "f32", count) if name in BINARY else swept_on_gpu(name, step)
        mark = " *" if name in ("lgamma", "digamma") else ""
        own = " *" if name == "lgamma" else ""
        yield f"| {name} | {f32:.2f}{own} | {sampled_on_gpu(name, 'f64', count):.2f}{mark} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=list(REFERENCES))
    parser.add_argument("--step", type=int, default=101)
    parser.add_argument("--points", type=int, default=500)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--gpu", action="store_true")
    options = parser.parse_args()
    table = ["| function | float32, ulp | float64, ulp | float32, cycles | float64, cycles |",
             "|---|---|---|---|---|"]
    if options.gpu:
        table = ["| on a GPU | float32, ulp | float64, ulp |", "|---|---|---|"]
    print("\n".join(table))
    for row in (rows_of_gpu if options.gpu else rows)(options.names, options.step, options.points):
        print(row, flush=True)
        table.append(row)
    if options.write:
        first = re.escape(table[0].partition(" | ")[0])
        page = re.sub(rf"{first} \|.*?\n\n", "\n".join(table) + "\n\n", PAGE.read_text(),
                      flags=re.DOTALL)
        PAGE.write_text(page)


if __name__ == "__main__":
    main()
