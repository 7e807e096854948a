"""Matrix products and convolutions of csrc, against numpy, torch and jax.

    python benchmarks/gemm.py [--seconds S] [--budget S] [--write] [--more | --held-out] [words]

from the repository's root. Every round times every library once, when the threads of the one before
sleep, in calls of 2 ms after as many that are not timed; the median and the best of the rounds are
printed. `--write` keeps them in benchmarks/results/. Products with an epilogue are programs of
`jit`; of all others the library's function is called alone.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

import jax
import jax.numpy as jnp
import torch
from bounds import SUBJECT, Best
from gemm_products import (
    HELD_OUT,
    MORE,
    Calls,
    NDArray,
    dense,
    half,
    integers,
    normal,
    product,
    to_torch,
)
from harness import (
    Case,
    Row,
    Timing,
    load,
    measure,
    print_header,
    print_row,
    read_results,
    write_results,
)

import functrans as ft
from tests.runtime.library_calls import conv_call


def convolution(batch: int, size: int, features: int, out_features: int, kernel: int,
                stride: int, layout: str, part: str) -> tuple[float, Calls]:
    """`part`: forward, or the gradient for x or for w. torch has its own layout, NCHW."""
    pad = kernel // 2
    spec = {"NHWC": ((0, 3, 1, 2), (3, 2, 0, 1), (0, 3, 1, 2)),
            "NCHW": ((0, 1, 2, 3), (0, 1, 2, 3), (0, 1, 2, 3))}[layout]
    places = (size + 2 * pad - kernel) // stride + 1

    def made(axes: tuple[int, ...], *extents: int) -> NDArray:
        return normal(*(extents[axes.index(d)] for d in range(4)))

    x = made(spec[0], batch, features, size, size)
    w = made(spec[1], out_features, features, kernel, kernel)
    ct = made(spec[2], batch, out_features, places, places)

    def swapped(s: tuple[int, ...]) -> tuple[int, ...]:
        return (s[1], s[0], *s[2:])

    one = (1, 1)
    if part == "forward":
        call = conv_call(x, w, np.empty_like(ct), window_strides=(stride,) * 2,
                         padding=((pad, pad),) * 2, lhs_dilation=one, rhs_dilation=one,
                         dimension_numbers=spec)
    elif part == "x":
        flipped = w[tuple(slice(None, None, -1 if d in spec[1][2:] else 1) for d in range(4))]
        low = kernel - 1 - pad
        call = conv_call(ct, flipped, np.empty_like(x), window_strides=one,
                         padding=((low, low),) * 2, lhs_dilation=(stride,) * 2, rhs_dilation=one,
                         dimension_numbers=(spec[2], swapped(spec[1]), spec[0]))
    else:
        call = conv_call(x, ct, np.empty_like(w), window_strides=one, padding=((pad, pad),) * 2,
                         lhs_dilation=one, rhs_dilation=(stride,) * 2,
                         dimension_numbers=tuple(map(swapped, (spec[0], spec[2], spec[1]))))
    calls: Calls = {SUBJECT: call}
    names = ("NHWC", "HWIO", "NHWC") if layout == "NHWC" else ("NCHW", "OIHW", "NCHW")

    def forward(p: Any, q: Any) -> Any:
        return jax.lax.conv_general_dilated(p, q, (stride,) * 2, ((pad, pad),) * 2,
                                            dimension_numbers=names)

    p, q, t = jnp.asarray(x), jnp.asarray(w), jnp.asarray(ct)
    function = jax.jit({"forward": lambda p, q, t: forward(p, q),
                        "x": lambda p, q, t: jax.vjp(lambda p: forward(p, q), p)[1](t)[0],
                        "w": lambda p, q, t: jax.vjp(lambda q: forward(p, q), q)[1](t)[0]}[part])
    calls["jax"] = lambda: function(p, q, t).block_until_ready()
    tx, tw, tt = (to_torch(np.ascontiguousarray(z.transpose(axes)))
                  for z, axes in ((x, spec[0]), (w, spec[1]), (ct, spec[2])))
    if part == "forward":
        calls["torch"] = lambda: torch.nn.functional.conv2d(tx, tw, stride=stride, padding=pad)
    else:
        mask = [part == "x", part == "w", False]
        calls["torch"] = lambda: torch.ops.aten.convolution_backward(
            tt, tx, tw, None, [stride] * 2, [pad] * 2, [1, 1], False, [0, 0], 1, mask)
    return 2e-9 * ct.size * features * kernel * kernel, calls


CASES: dict[str, Callable[[], tuple[float, Calls]]] = {
    "1024^3": lambda: product(1024, 1024, 1024),
    "1024^3 a.T": lambda: product(1024, 1024, 1024, turned="a"),
    "1024^3 b.T": lambda: product(1024, 1024, 1024, turned="b"),
    "2048^3": lambda: product(2048, 2048, 2048),
    "256^3": lambda: product(256, 256, 256),
    "1000x777x555": lambda: product(1000, 777, 555),
    "1024^3 float64": lambda: product(1024, 1024, 1024, dtype=np.float64),
    "1024^3 bfloat16": lambda: product(1024, 1024, 1024, dtype=half),
    **{f"{n}^3 bfloat16": lambda n=n: product(n, n, n, dtype=half) for n in (2048, 4096)},
    **{f"1024^3 bfloat16 {t}.T": lambda t=t: product(1024, 1024, 1024, dtype=half, turned=t)
       for t in "ab"},
    **{f"{m} x 1024 x {n} bfloat16": lambda m=m, n=n: product(m, n, 1024, dtype=half)
       for m in (1, 8, 64) for n in (1024, 4096)},
    "64 x 1024 x 1024": lambda: product(64, 1024, 1024),
    "attention q k.T bfloat16": lambda: product(512, 512, 64, (4, 8), dtype=half, turned="b"),
    "attention p v bfloat16": lambda: product(512, 64, 512, (4, 8), dtype=half),
    "4096^3": lambda: product(4096, 4096, 4096),
    **{f"{n}^3 int8": lambda n=n: integers(n, n, n) for n in (1024, 2048)},
    **{f"gelu(x @ w + b) {m} x 1024 x {n}{name}":
       lambda m=m, n=n, dtype=dtype: dense(m, n, 1024, dtype)
       for m, n in ((64, 4096), (1024, 1024), (2048, 4096))
       for name, dtype in (("", np.float32), (" bfloat16", half))},
    "1024 x 32^3": lambda: product(32, 32, 32, (1024,)),
    "1024 x 32^3 b.T": lambda: product(32, 32, 32, (1024,), turned="b"),
    "4096 x 8^3": lambda: product(8, 8, 8, (4096,)),
    "4096 x 8^3 b.T": lambda: product(8, 8, 8, (4096,), turned="b"),
    "mlp 256x784 784x256": lambda: product(256, 256, 784),
    "mlp 256x256 256x128": lambda: product(256, 128, 256),
    "mlp 256x128 128x10": lambda: product(256, 10, 128),
    "mlp 784x256 256x256 a.T": lambda: product(784, 256, 256, turned="a"),
    "mlp 256x256 256x784 b.T": lambda: product(256, 784, 256, turned="b"),
    "attention q k.T": lambda: product(512, 512, 64, (4, 8), turned="b"),
    "attention p v": lambda: product(512, 64, 512, (4, 8)),
    "vector 4096 x 4096": lambda: product(1, 4096, 4096),
    "vector 4096 x 4096 b.T": lambda: product(1, 4096, 4096, turned="b"),
    "8 x 1024 x 1024": lambda: product(8, 1024, 1024),
    "16 x 1024 x 1024 b.T": lambda: product(16, 1024, 1024, turned="b"),
    "outer 4096": lambda: product(4096, 4096, 1),
    **{f"conv {layout} {name} {part}": lambda a=args, y=layout, p=part: convolution(*a, y, p)
       for name, args in {"16x32x32x64": (16, 32, 64, 64, 3, 1),
                          "16x56x56x64": (16, 56, 64, 64, 3, 1),
                          "64x14x14x8": (64, 14, 8, 16, 3, 1),
                          "16x56x56x64/2": (16, 56, 64, 128, 3, 2)}.items()
       for layout in ("NHWC", "NCHW") for part in ("forward", "x", "w")},
    **MORE,
}


def row(title: str, seconds: float) -> Row:
    work, calls = (CASES | HELD_OUT)[title]()
    return measure(Case(title, {name: Timing("call()", {"call": call})
                                for name, call in calls.items()},
                        Best(0.95), 1.0, "GFLOP/s", 1e9 * work),
                   rounds=100, seconds=seconds, least=5, rest=0.01)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("words", nargs="*", help="measure cases with one of these words")
    parser.add_argument("--seconds", type=float, default=2.5, help="of a case")
    parser.add_argument("--budget", type=float, default=3600, help="seconds, then no more cases")
    parser.add_argument("--write", action="store_true", help="keep what was measured")
    parser.add_argument("--held-out", action="store_true",
                        help="measure what nothing was tuned by, instead")
    parser.add_argument("--more", action="store_true", help="measure gemm_products.py's alone")
    given = parser.parse_args()
    cases = HELD_OUT if given.held_out else MORE if given.more else CASES
    before, rows = load(), []
    titles = [t for t in cases if not given.words or any(word in t for word in given.words)]
    width = max(map(len, titles))
    print_header(width)
    end = time.perf_counter() + given.budget
    with ft.config.default_device("cpu"):
        for title in titles:
            if time.perf_counter() < end:
                rows.append(row(title, given.seconds))
                print_row(rows[-1], width)
    if given.write:
        print(write_results("gemm", rows, before, list(read_results("gemm").values())))


if __name__ == "__main__":
    main()
