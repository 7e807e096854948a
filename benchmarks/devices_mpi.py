"""Collectives of several processes beside those of mpi4py, on the same buffers.

    mpiexec -n 4 python benchmarks/devices_mpi.py [--quick] [--no-write]

Each row is one collective and size: mpi4py's own blocking call, ours through the protocol from
Python, and one step of a compiled program that makes a hundred of them. Rounds are short and
interleaved; the figure is the least over rounds of the slowest process, which a busy machine
disturbs least. To be reached: at most 1.3 of mpi4py's.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from pathlib import Path

import numpy as np

import functrans as ft
from functrans import lax
from functrans.core.communicator import acting_as
from functrans.distributed.engines import engine_for
from functrans.distributed.processes import current
from functrans.sharding import P

SIZES = (2, 1024, 65536, 1048576)
STEPS = 100
BOUND = 1.3


def rows(mesh, world, n):
    """(title, mpi4py's call, ours from Python, a program of STEPS of them) for each row."""
    group = engine_for(mesh).connect(mesh).run(lambda member: member.group(("x",)))[0]
    for size in SIZES:
        x = np.ones(size, np.float32)
        out, wide = np.empty_like(x), np.empty((n, size), np.float32)
        ring = [(k, (k + 1) % n) for k in range(n)]
        right, left = (group.index + 1) % n, (group.index - 1) % n

        def in_program(step, size=size):
            f = ft.jit(ft.shard_map(lambda v: lax.fori_loop(0, STEPS, lambda i, c: step(c), v),
                                    mesh, P("x"), P("x")))
            data = ft.device_put(np.zeros(n * size, np.float32),
                                 ft.NamedSharding(mesh, P("x")))
            return lambda: f(data)

        title = f"{4 * size} B"
        yield (f"all_reduce {title}", lambda x=x, out=out: world.Allreduce(x, out),
               lambda x=x, out=out: group.all_reduce(x, out, "sum"),
               in_program(lambda c: lax.psum(c, "x")))
        yield (f"all_gather {title}", lambda x=x, wide=wide: world.Allgather(x, wide),
               lambda x=x, wide=wide: group.all_gather(x, wide), None)
        yield (f"permute {title}",
               lambda x=x, out=out, r=right, le=left: world.Sendrecv(x, r, 0, out, le, 0),
               lambda x=x, out=out, ring=ring: group.permute(x, out, ring),
               in_program(lambda c, ring=ring: lax.ppermute(c, "x", ring)))


def seconds(world, call, count):
    """The time of one call, of the slowest process."""
    world.Barrier()
    begin = time.perf_counter()
    for _ in range(count):
        call()
    took = np.array([(time.perf_counter() - begin) / count])
    slowest = np.empty(1)
    world.Allreduce(took, slowest, op=current().mpi.MAX)
    return float(slowest[0])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--no-write", action="store_true")
    options = parser.parse_args()
    ft.distributed.initialize()
    n = ft.process_count()
    mesh = ft.make_mesh((n,), ("x",), devices=ft.devices("cpu"))
    world = current().mpi.COMM_WORLD
    table = {}
    member = engine_for(mesh).connect(mesh).run(lambda member: member)[0]
    with acting_as(member):
        for title, theirs, ours, program in rows(mesh, world, n):
            calls = {"mpi4py": (theirs, 1), "from Python": (ours, 1)}
            if program is not None:
                calls["in a program"] = (program, STEPS)
            samples = {name: [] for name in calls}
            once = max(seconds(world, theirs, 2), 1e-6)
            count = int(np.clip(0.004 / once, 2, 200))
            for _ in range(5 if options.quick else 40):
                for name, (call, per) in calls.items():
                    samples[name].append(seconds(world, call, max(1, count // per)) / per)
            table[title] = {name: min(s) * 1e6 for name, s in samples.items()}
            if ft.process_index() == 0:
                row = table[title]
                ratios = {k: v / row["mpi4py"] for k, v in row.items() if k != "mpi4py"}
                row["worst"] = max(ratios.values())
                told = "  ".join(f"{k} {v:9.1f} us" for k, v in row.items() if k != "worst")
                print(f"{title:22s} {told}  worst {row['worst']:.2f}", flush=True)
    if ft.process_index() == 0 and not (options.no_write or options.quick):
        folder = Path(__file__).parent / "results"
        stored = {"processes": n, "cpus": len(os.sched_getaffinity(0)),
                  "machine": platform.machine(), "bound": BOUND,
                  "library": current().mpi.Get_library_version().split("\n")[0].strip(),
                  "microseconds": table}
        (folder / f"devices_mpi_{n}.json").write_text(json.dumps(stored, indent=1) + "\n")


if __name__ == "__main__":
    main()
