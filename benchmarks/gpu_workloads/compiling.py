"""Seconds to the first result of a program in a fresh process, with an empty and a filled cache."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import compile_time
from bounds import SUBJECT, Peer
from cpu_workloads.entries import Peers
from harness import Row, summarise

from gpu_workloads import first_use

TITLE = compile_time.COLD + compile_time.PROGRAMS["transformer"]
MORE = [f"{prefix}{compile_time.PROGRAMS[name]}" for prefix, name in (
    (compile_time.COLD, "chain"), (compile_time.WARM, "chain"), (compile_time.WARM, "transformer"))]
MORE += first_use.TITLES
"""Rows of `gpu.py --more`."""
LIMIT = 90.0
"""Seconds that a process may take."""
ROUNDS = 2


def caches(folder: str) -> dict[str, str]:
    """The environment with the caches of all libraries, and of the driver, in one folder."""
    kept = {"TRITON_CACHE_DIR": "triton", "CUDA_CACHE_PATH": "driver"}
    folders = {name: str(Path(folder, part)) for name, part in kept.items()}
    return compile_time.with_jax_cache(folder) | folders


def row(
    title: str, peers: Peers, quick: bool, report: Callable[[dict[str, Any]], None]
) -> Row:
    """functrans beside JAX, in turn; where the cache is filled, by a process before."""
    if title in first_use.TITLES:
        return operations_row(title, peers, quick, report)
    warm = title.startswith(compile_time.WARM)
    program = next(name for name, text in compile_time.PROGRAMS.items() if title.endswith(text))
    modules = ["jax"] * (peers.jax is not None) + [SUBJECT]
    samples: dict[str, list[float]] = {}
    errors: dict[str, str] = {}
    report({"title": title, "column": "the processes", "limit": LIMIT})
    with tempfile.TemporaryDirectory() as kept:
        for index in range((1 if quick else ROUNDS) + warm):
            for name in (name for name in modules if name not in errors):
                report({"column": name, "limit": LIMIT, "errors": errors,
                        "estimates": {name: min(times) for name, times in samples.items()}})
                try:
                    with tempfile.TemporaryDirectory() as empty:
                        variables = caches(kept if warm else empty)
                        _, first = compile_time.fresh(name, program, variables)
                    if index >= warm:
                        samples.setdefault(name, []).append(first)
                except RuntimeError as error:
                    errors[name] = str(error)[:160]
    return summarise(title, samples, Peer("jax"), errors=errors)


def operations_row(
    title: str, peers: Peers, quick: bool, report: Callable[[dict[str, Any]], None]
) -> Row:
    """functrans beside JAX: operations that are new."""
    samples: dict[str, list[float]] = {}
    errors: dict[str, str] = {}
    for name in ["jax"] * (peers.jax is not None) + [SUBJECT]:
        report({"title": title, "column": name, "limit": LIMIT, "errors": errors})
        try:
            rounds = 1 if quick else ROUNDS
            samples[name] = first_use.measured(name, rounds, caches)[title]
        except RuntimeError as error:
            errors[name] = str(error)[:160]
    return summarise(title, samples, Peer("jax"), errors=errors)
