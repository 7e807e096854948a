"""Memory and time of gradients beside JAX and torch.compile: temporaries of one call.

    python benchmarks/memory.py [--peer-python PATH] [--only WORD] [--rounds N] [--no-write]

Each case is one source for all libraries, and runs in a process of each. Temporaries of functrans
and JAX are those of the compiler's own account; of torch.compile, whose partitioner keeps a minimum
cut, the most bytes that the profiler of its allocator saw at once in one call, without gradients.
"kept" is functrans without its plan of what is kept: that of linearization; "half" with a
`memory_limit` that leaves half of the temporaries. Peers that are not there are left out.
"""

from __future__ import annotations

import argparse
import datetime
import importlib
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
from harness import PEERS, RESULTS, load, processor, results_path, versions

CASES = ("gelu", "attention", "transformer", "convolutions", "residual", "norms", "recurrence")
LIBRARIES = ("kept", "functrans", "half", "jax", "torch.compile")
OURS = ("kept", "functrans", "half")


def _random(*shape: int) -> Any:
    seed = sum(shape)
    scale = np.sqrt(np.prod(shape[:-1]) if len(shape) > 2 else shape[0])
    return (np.random.default_rng(seed).normal(size=shape) / scale).astype(np.float32)


def make(lib: Any, case: str) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """The loss of a model, and its parameters and data."""
    np_, nn = lib.numpy, lib.nn

    def attend(x: Any, p: Any, heads: int) -> Any:
        n, d = x.shape
        moved = np_.transpose
        q, k, v = (moved((x @ w).reshape(n, heads, d // heads), (1, 0, 2)) for w in p[:3])
        scores = nn.softmax(q @ moved(k, (0, 2, 1)) / (d // heads) ** 0.5, axis=-1)
        return moved(scores @ v, (1, 0, 2)).reshape(n, d) @ p[3]

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

    def conv(x: Any, w: Any) -> Any:
        return lib.lax.conv_general_dilated(
            x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))

    def convolutions(ps: Any, x: Any) -> Any:
        for w in ps:
            x = nn.silu(norm(conv(x, w)))
        return (x * x).mean()

    def batch_norm(x: Any) -> Any:
        centred = x - x.mean((0, 1, 2))
        return centred / np_.sqrt((centred * centred).mean((0, 1, 2)) + 1e-5)

    def residual(ps: Any, x: Any) -> Any:
        for first, second in ps:
            y = nn.silu(batch_norm(conv(x, first)))
            x = nn.silu(x + batch_norm(conv(y, second)))
        return (x * x).mean()

    def norms(ps: Any, x: Any) -> Any:
        for w in ps:
            x = x + np_.tanh(norm(x) @ w)
        return (x * x).mean()

    def recurrence(ps: Any, x: Any) -> Any:
        w, u = ps
        step = lambda h, v: (np_.tanh(h @ w + v @ u), None)
        h, _ = lib.lax.scan(step, x[0] * 0, x)
        return (h * h).mean()

    square = _random(512, 512)
    found: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
        "gelu": (gelu, ([(square, _random(512))] * 12, _random(1024, 512))),
        "attention": (attention, ([[square] * 4] * 6, _random(1024, 512))),
        "transformer": (transformer, (
            [[square] * 4 + [_random(512, 2048), _random(2048, 512)]] * 6, _random(1024, 512))),
        "convolutions": (convolutions, ([_random(3, 3, 32, 32)] * 8, _random(8, 64, 64, 32))),
        "residual": (residual, ([[_random(3, 3, 64, 64)] * 2] * 6, _random(16, 32, 32, 64))),
        "norms": (norms, ([_random(256, 256)] * 16, _random(4096, 256))),
        "recurrence": (recurrence, ([_random(256, 256)] * 2, _random(64, 256, 256))),
    }
    return found[case]


def _torch() -> Any:
    """What the models need of NumPy's names, by PyTorch."""
    torch = importlib.import_module("torch")
    f = torch.nn.functional

    def convolved(x: Any, w: Any, strides: Any, padding: str, dimension_numbers: Any) -> Any:
        y = f.conv2d(x.permute(0, 3, 1, 2), w.permute(3, 2, 0, 1), padding="same")
        return y.permute(0, 2, 3, 1)

    def scan(step: Any, h: Any, xs: Any) -> Any:
        for x in xs:
            h, _ = step(h, x)
        return h, None

    return SimpleNamespace(
        numpy=SimpleNamespace(sqrt=torch.sqrt, tanh=torch.tanh, transpose=torch.permute),
        nn=SimpleNamespace(softmax=lambda x, axis: torch.softmax(x, axis), silu=f.silu,
                           gelu=lambda x: f.gelu(x, approximate="tanh")),
        lax=SimpleNamespace(conv_general_dilated=convolved, scan=scan))


def _torch_gradient(case: str) -> tuple[Callable[[], Any], Callable[[], int]]:
    """A call of the gradient, and the temporaries of one."""
    torch = importlib.import_module("torch")
    tree = importlib.import_module("torch.utils._pytree")
    loss, args = make(_torch(), case)
    ps, x = tree.tree_map(torch.from_numpy, list(args))
    ps = tree.tree_map(lambda p: p.clone().requires_grad_(), ps)
    leaves = tree.tree_leaves(ps)
    compiled = torch.compile(loss)

    def call() -> Any:
        return torch.autograd.grad(compiled(ps, x), leaves)

    def temporaries() -> int:
        activities = [torch.profiler.ProfilerActivity.CPU]
        with torch.profiler.profile(activities=activities, profile_memory=True) as profile:
            gradients = call()
        events = [e for e in profile.profiler.kineto_results.events() if e.name() == "[memory]"]
        now = most = 0
        for event in sorted(events, key=lambda e: e.start_ns()):
            now += event.nbytes()
            most = max(most, now)
        return most - sum(g.nbytes for g in gradients)

    return call, temporaries


def _gradient(library: str, case: str) -> tuple[Callable[[], Any], Callable[[], int]]:
    """A call of the gradient by functrans or JAX, and its temporaries by the compiler's account."""
    lib = importlib.import_module("jax" if library == "jax" else "functrans")
    for name in ("numpy", "nn", "lax"):
        importlib.import_module(f"{lib.__name__}.{name}")
    if library == "kept":
        from functrans.lowering.c import functions  # noqa: PLC0415

        functions.rematerialize = lambda jaxpr, *_: jaxpr  # type: ignore[assignment]
    loss, args = make(lib, case)
    options = {}
    if library == "half":
        usual = lib.jit(lib.grad(loss)).lower(*args).compile().memory_analysis()
        options["memory_limit"] = usual["peak"] - usual["temporaries"] // 2
    gradient = lib.jit(lib.grad(loss), **options)

    def call() -> Any:
        return lib.block_until_ready(gradient(*args))

    def temporaries() -> int:
        known = gradient.lower(*args).compile().memory_analysis()
        return int(known.temp_size_in_bytes if library == "jax" else known["temporaries"])

    return call, temporaries


def worker(library: str, case: str) -> None:
    """Answer each line of input with the time of some calls, the first one with the memory."""
    os.environ["XDG_CACHE_HOME"] = tempfile.mkdtemp()
    call, temporaries = (_torch_gradient(case) if library == "torch.compile"
                         else _gradient(library, case))
    start = time.perf_counter()
    call()
    first = time.perf_counter() - start
    print(json.dumps({"bytes": temporaries(), "first": first}), flush=True)
    for _ in sys.stdin:
        times = []
        for _ in range(3):
            start = time.perf_counter()
            call()
            times.append(time.perf_counter() - start)
        print(json.dumps(min(times)), flush=True)


def is_there(library: str, peer: str | None) -> bool:
    """Whether a library can be measured: a peer in this Python, or in that of the peers."""
    name = {"jax": "jax", "torch.compile": "torch"}.get(library)
    return name is None or peer is not None or importlib.util.find_spec(name) is not None


def compare(case: str, peer: str | None, rounds: int) -> dict[str, Any]:
    """A row of the table: rounds of calls alternate between the libraries."""
    answers: dict[str, Any] = {}
    workers = {}
    for library in LIBRARIES:
        if not is_there(library, peer):
            continue
        python = peer if library not in OURS and peer else sys.executable
        process = subprocess.Popen(
            [python, __file__, "--worker", library, case], text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert process.stdout is not None
        line = process.stdout.readline()
        if line:
            workers[library] = process
            answers[library] = {**json.loads(line), "times": []}
        else:  # of a limit that nothing fits, say
            errors = (process.communicate()[1] or "").strip().splitlines()
            print(f"{case}, {library}: {errors[-1] if errors else 'failed'}", file=sys.stderr)
    for _ in range(rounds):
        for library, process in workers.items():
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write("\n")
            process.stdin.flush()
            answers[library]["times"].append(json.loads(process.stdout.readline()))
    for process in workers.values():
        process.communicate()
    return {"title": case, "libraries": {
        library: {"temporaries": a["bytes"], "seconds": min(a["times"]), "first": a["first"]}
        for library, a in answers.items()}}


def text_of(row: dict[str, Any]) -> str:
    """A row of the table as text."""
    found = row["libraries"]
    cells = [f"{found[x]['temporaries'] / 1e6:.0f} MB" if x in found else "" for x in LIBRARIES]
    cells += [f"{found[x]['seconds'] * 1e3:.0f} ms" if x in found else "" for x in LIBRARIES]
    return f"| {' | '.join([row['title'], *cells])} |"


def write(rows: list[dict[str, Any]], load_before: float) -> None:
    """Keep the table, with the rows of an earlier one that were not measured now."""
    path = results_path("memory")
    earlier = json.loads(path.read_text())["rows"] if path.exists() else []
    new = {row["title"]: row for row in rows}
    merged = {row["title"]: row for row in earlier} | new
    RESULTS.mkdir(exist_ok=True)
    path.write_text(json.dumps({
        "date": datetime.date.today().isoformat(),
        "device": {"processor": processor(), "cores": os.cpu_count()},
        "versions": versions(["functrans", *PEERS]), "load_before": round(load_before, 2),
        "unit": "bytes of temporaries, least seconds", "rows": list(merged.values())},
        indent=2) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--worker", nargs=2)
    parser.add_argument("--peer-python")
    parser.add_argument("--only", default="")
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--no-write", action="store_true")
    known = parser.parse_args()
    if known.worker:
        worker(*known.worker)
        return
    print(f"| gradient | {' | '.join(LIBRARIES * 2)} |\n|{'---|' * (1 + 2 * len(LIBRARIES))}")
    before, rows = load(), []
    for case in CASES:
        if known.only in case:
            rows.append(compare(case, known.peer_python, known.rounds))
            print(text_of(rows[-1]), flush=True)
            if not known.no_write:
                write(rows, before)


if __name__ == "__main__":
    main()
