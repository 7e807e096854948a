"""Memory and time of gradients beside JAX: arena of temporaries by each compiler's own account.

    python benchmarks/memory.py [--peer-python PATH] [--only WORD] [--rounds N]

Each case is one source for both libraries, and runs in a process of each. Without a peer's Python
only functrans is measured. "kept" is functrans without its plan of what is kept: that of
linearization.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import numpy as np

CASES = ("gelu", "attention", "transformer", "convolutions", "norms")
LIBRARIES = ("functrans", "kept", "jax")


def _random(*shape: int) -> Any:
    seed = sum(shape)
    scale = np.sqrt(np.prod(shape[:-1]) if len(shape) > 2 else shape[0])
    return (np.random.default_rng(seed).normal(size=shape) / scale).astype(np.float32)


def make(lib: Any, case: str) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """The loss of a model, and its parameters and data."""
    np_, nn = lib.numpy, lib.nn

    def attend(x: Any, p: Any, heads: int) -> Any:
        n, d = x.shape
        q, k, v = ((x @ w).reshape(n, heads, d // heads).transpose(1, 0, 2) for w in p[:3])
        scores = nn.softmax(q @ k.transpose(0, 2, 1) / (d // heads) ** 0.5, axis=-1)
        return (scores @ v).transpose(1, 0, 2).reshape(n, d) @ p[3]

    def norm(x: Any) -> Any:
        centred = x - x.mean(-1, keepdims=True)
        return centred / np_.sqrt((centred * centred).mean(-1, keepdims=True) + 1e-5)

    def gelu(ps: Any, x: Any) -> Any:
        for w, b in ps:
            x = nn.gelu(x @ w + b)
        return (x * x).mean()

    def attention(ps: Any, x: Any) -> Any:
        for p in ps:
            x = x + attend(x, p, 8)
        return (x * x).mean()

    def transformer(ps: Any, x: Any) -> Any:
        for p in ps:
            x = x + attend(norm(x), p, 8)
            x = x + nn.gelu(norm(x) @ p[4]) @ p[5]
        return (x * x).mean()

    def convolutions(ps: Any, x: Any) -> Any:
        for w in ps:
            y = lib.lax.conv_general_dilated(
                x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
            x = nn.silu(norm(y))
        return (x * x).mean()

    def norms(ps: Any, x: Any) -> Any:
        for w in ps:
            x = x + np_.tanh(norm(x) @ w)
        return (x * x).mean()

    square = _random(512, 512)
    found: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
        "gelu": (gelu, ([(square, _random(512))] * 12, _random(1024, 512))),
        "attention": (attention, ([[square] * 4] * 6, _random(1024, 512))),
        "transformer": (transformer, (
            [[square] * 4 + [_random(512, 2048), _random(2048, 512)]] * 6, _random(1024, 512))),
        "convolutions": (convolutions, ([_random(3, 3, 32, 32)] * 8, _random(8, 64, 64, 32))),
        "norms": (norms, ([_random(256, 256)] * 16, _random(4096, 256))),
    }
    return found[case]


def worker(library: str, case: str) -> None:
    """Answer each line of input with the times of some calls, the first one with the memory."""
    os.environ["XDG_CACHE_HOME"] = tempfile.mkdtemp()
    lib = importlib.import_module("jax" if library == "jax" else "functrans")
    for name in ("numpy", "nn", "lax"):
        importlib.import_module(f"{lib.__name__}.{name}")
    if library == "kept":
        from functrans.lowering.c import functions  # noqa: PLC0415

        functions.rematerialize = lambda jaxpr, *_: jaxpr  # type: ignore[assignment]
    loss, args = make(lib, case)
    gradient = lib.jit(lib.grad(loss))
    start = time.perf_counter()
    lib.block_until_ready(gradient(*args))
    first = time.perf_counter() - start
    known = gradient.lower(*args).compile().memory_analysis()
    nbytes = known.temp_size_in_bytes if library == "jax" else known["temporaries"]
    print(json.dumps({"bytes": nbytes, "first": first}), flush=True)
    for _ in sys.stdin:
        times = []
        for _ in range(3):
            start = time.perf_counter()
            lib.block_until_ready(gradient(*args))
            times.append(time.perf_counter() - start)
        print(json.dumps(min(times)), flush=True)


def compare(case: str, peer: str | None, rounds: int) -> str:
    """A row of the table: rounds of calls alternate between the libraries."""
    workers = {}
    for library in LIBRARIES:
        if library == "jax" and peer is None:
            continue
        python = peer if library == "jax" and peer else sys.executable
        workers[library] = subprocess.Popen(
            [python, __file__, "--worker", library, case], text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    answers: dict[str, Any] = {}
    for library, process in workers.items():
        assert process.stdout is not None
        answers[library] = json.loads(process.stdout.readline())
        answers[library]["times"] = []
    for _ in range(rounds):
        for library, process in workers.items():
            assert process.stdin is not None and process.stdout is not None
            process.stdin.write("\n")
            process.stdin.flush()
            answers[library]["times"].append(json.loads(process.stdout.readline()))
    for process in workers.values():
        process.communicate()
    cells = [case]
    order = [x for x in ("kept", "functrans", "jax") if x in answers]
    cells += [f"{answers[x]['bytes'] / 1e6:.0f} MB" for x in order]
    cells += [f"{min(answers[x]['times']) * 1e3:.0f} ms" for x in order]
    return f"| {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--worker", nargs=2)
    parser.add_argument("--peer-python")
    parser.add_argument("--only", default="")
    parser.add_argument("--rounds", type=int, default=8)
    known = parser.parse_args()
    if known.worker:
        worker(*known.worker)
        return
    order = ["kept", "functrans", *(["jax"] if known.peer_python else [])]
    print(f"| gradient | {' | '.join(order)} | {' | '.join(order)} |")
    print("|" + "---|" * (1 + 2 * len(order)))
    for case in CASES:
        if known.only in case:
            print(compare(case, known.peer_python, known.rounds), flush=True)


if __name__ == "__main__":
    main()
