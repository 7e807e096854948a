"""A program of several processes, of which process 1 fails in the way that is asked for.

The others print what they are told, and when.
"""

import os
import signal
import sys
import time

import numpy as np

import functrans as ft
from functrans import lax
from functrans.errors import CollectiveError
from functrans.sharding import P

SECONDS = 4  # until a process that does not come is lost


def die(f):
    os.kill(os.getpid(), signal.SIGKILL)


def stop(f):
    os.kill(os.getpid(), signal.SIGSTOP)


def fail(f):
    raise ValueError("a bad batch")


def hang(f):
    while True:
        time.sleep(0.1)


def leave(f):
    sys.exit(0)


def shape(f):
    f(np.ones((ft.process_count(), 5), np.float32))


def inside(f):
    """Nothing before the program: it raises within."""


def main():
    how = sys.argv[1]
    ft.distributed.initialize(collective_timeout_seconds=SECONDS,
                              heartbeat_timeout_seconds=SECONDS)
    rank, count = ft.process_index(), ft.process_count()
    mesh = ft.make_mesh((count,), ("x",))

    def check(x):
        if how == "inside" and rank == 1 and x.max() > 1:
            raise OverflowError("too much")
        return x

    def total(x):
        if how == "inside":
            x = ft.pure_callback(check, ft.ShapeDtypeStruct(x.shape, x.dtype), x)
        return lax.psum(x, "x")

    f = ft.jit(ft.shard_map(total, mesh, P("x"), P()))
    x = np.ones((count, 4), np.float32)
    f(x)
    begin = time.monotonic()
    try:
        if rank == 1:
            globals()[how](f)
        for _ in range(10):
            f(2 * x)
    except CollectiveError as error:
        print(f"told after {time.monotonic() - begin:.1f} s: {error}", flush=True)
        sys.exit(3)


if __name__ == "__main__":
    main()
