"""Block sizes of matrix products: which are best on this processor.

    python benchmarks/gemm_blocks.py [--seconds S] [--peers] [--json FILE]

from the repository's root, on a processor with AVX-512; those of bfloat16 need AMX. Each size is
changed alone until none helps, for each product; the best of all are compared over all products.
`--peers` compares what was found with PyTorch and JAX.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import astuple, dataclass, replace
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

import functrans as ft  # noqa: E402
from functrans import _runtime  # noqa: E402
from tests.runtime.library_calls import TYPES, gemm_call, library  # noqa: E402

HALF, SINGLE = (np.dtype(t) for t in (ml_dtypes.bfloat16, np.float32))
MANY = 1 << 30
NDArray = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Blocks:
    """What is swept: `Blocking` of csrc/gemm_isa.h, and how the operands are read."""

    depth_bytes: int
    tile_rows: int
    tile_bytes: int
    least_panels: int
    own_threads: int
    own_tasks: int
    own_aspect: int
    form: int        # of csrc's rows_block: none, without prefetching, with it

    def kernels(self, blocks: ctypes.CDLL, dtype: np.dtype[Any]) -> int:
        sizes = (ctypes.c_longlong * 7)(*astuple(self)[:7])
        found: int = blocks.kernels(TYPES[dtype], sizes, self.form)
        return found


CHOICES: dict[np.dtype[Any], dict[str, tuple[int, ...]]] = {
    HALF: {"form": (0, 1, 2), "own_threads": (4, MANY), "depth_bytes": (512, 1024, 2048),
           "tile_rows": (128, 256, 512, 1024), "tile_bytes": (512, 1024, 2048, 4096),
           "own_tasks": (1, 2, 4), "own_aspect": (1, 2, 4), "least_panels": (1, 2, 4)},
    SINGLE: {"own_threads": (4, MANY), "depth_bytes": (1024, 1536, 2304, 3072),
             "tile_rows": (48, 96, 144, 192, 288), "tile_bytes": (1024, 2048, 4096),
             "own_tasks": (1, 2, 4), "own_aspect": (1, 2), "least_panels": (1, 2, 4)},
}
# those of csrc with a second cache of 2 MiB and 1 MiB
NOW = {HALF: Blocks(2048, 128, 512, 4, 4, 1, 4, 2), SINGLE: Blocks(2304, 144, 2048, 4, 16, 4, 1, 2)}
# m, n, k, batches
SHAPES = ((1024, 1024, 1024, 1), (2048, 2048, 2048, 1), (4096, 4096, 4096, 1), (512, 512, 512, 1),
          (256, 256, 256, 1), (1000, 1000, 1000, 1), (777, 1333, 555, 1), (4096, 64, 4096, 1),
          (4096, 4096, 64, 1), (16, 4096, 4096, 1), (64, 4096, 1024, 1), (512, 64, 512, 32),
          (96, 96, 96, 256))


def built(folder: Path) -> ctypes.CDLL:
    csrc, path = HERE.parent / "csrc", folder / "blocks.so"
    subprocess.run(["c++", "-std=gnu++17", "-O3", "-shared", "-fPIC", "-fvisibility=hidden",
                    "-Wno-psabi", "-fno-math-errno", f"-I{csrc}", str(HERE / "gemm_blocks.cpp"),
                    str(csrc / "gemm_amx.cpp"), str(csrc / "gemm_avx512.cpp"), "-o", str(path)],
                   check=True)
    made = ctypes.CDLL(str(path))
    made.kernels.restype = ctypes.c_void_p
    made.kernels.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_int]
    return made


def burst(call: Callable[[], None], seconds: float) -> float:
    """Seconds of a call, of several in a row."""
    start = time.perf_counter()
    call()
    once = time.perf_counter() - start
    number = max(1, min(20, int(seconds / max(once, 1e-7))))
    start = time.perf_counter()
    for _ in range(number):
        call()
    return (time.perf_counter() - start) / number


def placed(x: NDArray, offset: int) -> NDArray:
    base = np.empty(x.nbytes + 128, np.uint8)
    start = -base.ctypes.data % 64 + offset
    moved = base[start:start + x.nbytes].view(x.dtype).reshape(x.shape)
    moved[...] = x
    return moved


class Sweep:
    """The products of one type."""

    def __init__(self, blocks: ctypes.CDLL, dtype: np.dtype[Any]) -> None:
        self.blocks, self.dtype = blocks, dtype
        self.pointers: dict[Blocks, int] = {}

    def use(self, blocks: Blocks | None) -> None:
        if blocks is not None and blocks not in self.pointers:
            self.pointers[blocks] = blocks.kernels(self.blocks, self.dtype)
        library.ft_gemm_use_groups(TYPES[self.dtype], blocks and self.pointers[blocks])

    def product(self, shape: tuple[int, ...], offset: int = 0) -> Callable[[], None]:
        """Operands begin `offset` bytes after a line of the cache."""
        m, n, k, batch = shape
        rng = np.random.default_rng(0)
        a, b, c = (placed(rng.standard_normal((batch, *s), np.float32).astype(self.dtype), offset)
                   for s in ((m, k), (k, n), (m, n)))
        return gemm_call(a, b, c)

    def compare(self, call: Callable[[], None], all_blocks: list[Blocks], seconds: float,
                rounds: int) -> list[float]:
        """The fastest of interleaved rounds, of each."""
        times = np.full((rounds, len(all_blocks)), np.inf)
        for turn in range(rounds):
            for i in range(len(all_blocks)):
                at = (i + turn) % len(all_blocks)
                self.use(all_blocks[at])
                times[turn, at] = burst(call, seconds)
        return [float(t) for t in times.min(axis=0)]

    def descend(self, shape: tuple[int, ...], end: float) -> tuple[Blocks, float]:
        call, best = self.product(shape), NOW[self.dtype]
        time_of = np.inf
        for _ in range(2):
            before = best
            for name, values in CHOICES[self.dtype].items():
                others = [replace(best, **{name: v}) for v in values if v != getattr(best, name)]
                tried = [best, *others]
                times = self.compare(call, tried, 0.002, 4)
                first = int(np.argmin(times))
                if times[first] < 0.98 * times[0]:
                    best = tried[first]
                time_of = min(times)
                if time.perf_counter() > end:
                    return best, time_of
            if best == before:
                break
        return best, time_of


def rate(shape: tuple[int, ...], seconds: float) -> float:
    return 2e-9 * float(np.prod(shape)) / seconds


def sweep(blocks: ctypes.CDLL, dtype: np.dtype[Any], seconds: float
          ) -> tuple[Sweep, dict[tuple[int, ...], Blocks], Blocks]:
    """The best blocks of each product, and those that are best for all."""
    made, found = Sweep(blocks, dtype), {}
    print(f"{dtype}: best of each product, GFLOP/s", flush=True)
    last = time.perf_counter() + 0.7 * seconds
    for left, shape in zip(range(len(SHAPES), 0, -1), SHAPES, strict=True):
        now = time.perf_counter()
        end = now + min(last - now, 2 * (last - now) / left)
        found[shape], best = made.descend(shape, end)
        print(f"  {shape!s:26} {rate(shape, best):8.0f}  {astuple(found[shape])}", flush=True)
    candidates = list(dict.fromkeys([NOW[dtype], *found.values()]))
    times = []
    for shape in SHAPES:
        times.append(made.compare(made.product(shape), candidates, 0.001, 4))
        rates = " ".join(f"{rate(shape, t):6.0f}" for t in times[-1])
        print(f"  {shape!s:26} {rates}", flush=True)
    table = np.array(times)
    for offset in (0, 16):
        call = made.product(SHAPES[0], offset)
        rates = " ".join(f"{rate(SHAPES[0], t):6.0f}"
                         for t in made.compare(call, candidates, 0.001, 4))
        print(f"  {SHAPES[0]!s:26} {rates}, {offset} bytes after a line", flush=True)
    means = np.exp(np.log(table / table.min(axis=1, keepdims=True)).mean(axis=0))
    for one, mean in sorted(zip(candidates, means, strict=True), key=lambda p: float(p[1])):
        print(f"  {mean:6.3f} of the best  {astuple(one)}", flush=True)
    return made, found, candidates[int(np.argmin(means))]


def peers(made: Sweep, found: dict[tuple[int, ...], Blocks], common: Blocks, seconds: float
          ) -> None:
    """The blocks of now, the common ones and each product's own, beside the peers."""
    import gemm  # noqa: PLC0415 - with torch and jax, whose threads would disturb the sweep
    from bounds import SUBJECT, Best  # noqa: PLC0415
    from harness import Case, Timing, measure  # noqa: PLC0415

    ours = {"now": NOW[made.dtype], "common": common}
    name = " bfloat16" if made.dtype == HALF else ""
    titles = {f"1024^3{name}": (1024,) * 3,
              f"gelu(x @ w + b) 1024 x 1024 x 1024{name}": (1024,) * 3,
              f"2048^3{name}": (2048,) * 3, f"4096^3{name}": (4096,) * 3}
    if made.dtype == HALF:
        titles |= {"64 x 1024 x 4096 bfloat16": (64, 4096, 1024),
                   "1024^3 bfloat16 a.T": (1024,) * 3, "1024^3 bfloat16 b.T": (1024,) * 3,
                   "attention p v bfloat16": (512, 64, 512),
                   "gelu(x @ w + b) 2048 x 1024 x 4096 bfloat16": (2048,) * 3}
    print(f"{made.dtype}: GFLOP/s, median (fastest)")
    for title, shape in titles.items():
        amount, calls = gemm.CASES[title]()
        call = calls.pop(SUBJECT)
        best = next((b for s, b in found.items() if s[:3] == shape), common)

        def timed(blocks: Blocks, call: Callable[[], Any] = call) -> Callable[[], Any]:
            def run() -> Any:
                made.use(blocks)
                return call()
            return run

        subjects = {SUBJECT: timed(best), **{n: timed(b) for n, b in ours.items()}, **calls}
        row = measure(Case(title, {n: Timing("call()", {"call": c}) for n, c in subjects.items()},
                           Best(0.95), 1.0, "GFLOP/s", 1e9 * amount),
                      rounds=100, seconds=seconds, least=5, rest=0.01)
        print(f"  {title:44} " + "  ".join(
            f"{n} {amount / row.seconds[n]:.0f} ({amount / row.minima[n]:.0f})"
            for n in subjects), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60, help="of the sweep of a type")
    parser.add_argument("--peers", type=float, default=0, help="seconds of each row with peers")
    parser.add_argument("--json", type=Path, help="where to keep what was found")
    given = parser.parse_args()
    library.ft_gemm_use_groups.argtypes = [ctypes.c_int, ctypes.c_void_p]
    library.ft_gemm_use_groups.restype = None
    with tempfile.TemporaryDirectory() as folder:
        blocks = built(Path(folder))
    print("threads", _runtime.get_num_threads())
    dtypes = [HALF, SINGLE] if blocks.permitted() else [SINGLE]
    results = [sweep(blocks, dtype, given.seconds / (1 if dtype == HALF else 3))
               for dtype in dtypes]
    if given.json is not None:
        given.json.write_text(json.dumps({str(made.dtype): {str(s): astuple(b)
                                          for s, b in [*found.items(), ("common", common)]}
                                          for made, found, common in results}))
    for made, found, common in results:
        if given.peers > 0:
            with ft.config.default_device("cpu"):
                peers(made, found, common, given.peers)


if __name__ == "__main__":
    main()
