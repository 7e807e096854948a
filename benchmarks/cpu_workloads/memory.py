"""Programs that memory limits: elementwise chains, rows, reductions, scans, layout, indexing."""

from __future__ import annotations

import ml_dtypes
import numpy as np
from bounds import READ, Best, Peer, Share

from cpu_workloads.entries import Entries, gigabytes, normal, workload

ONE = ".block_until_ready()"
SIDE = 8192
ROWS = 4096


def chain(xp):
    """Ten elementwise operations, the same source for every library."""

    def run(x):
        y = xp.tanh(x) * 0.5
        z = xp.exp(y * y) - x
        return xp.where(z > 0, z * y, x * 0.25 + y)

    return run


def add_chain(add: Entries, x) -> None:
    add.traced(lambda lib: chain(lib.numpy), x, wait=ONE)
    if add.lib.torch is not None:
        add.torch(chain(add.lib.torch), x)
    if x.dtype == np.float32:
        add.numpy(chain(np), x)


@workload("10-op chain, 2^24", Share(0.8), gigabytes(2 * 4 * 2**24))
def chain_large(add):
    add_chain(add, normal(2**24))


@workload("10-op chain, 2^20", Best(speed=2), gigabytes(2 * 4 * 2**20))
def chain_small(add):
    add_chain(add, normal(2**20))


@workload("10-op chain, bfloat16 2^24", Share(0.5), gigabytes(2 * 2 * 2**24), tolerance=2e-2)
def chain_bfloat16(add):
    add_chain(add, normal(2**24, dtype=ml_dtypes.bfloat16))


@workload("softmax of rows, 4096^2", Share(0.7), gigabytes(2 * 4 * ROWS**2))
def softmax(add):
    x = normal(ROWS, ROWS)
    add.traced(lambda lib: lambda x: lib.nn.softmax(x, axis=-1), x, wait=ONE)
    add.torch(lambda x: add.lib.torch.softmax(x, -1), x)


def layer_norm(lib):
    """Layer norm over the last axis, as users of JAX write it."""

    def run(x, scale, shift):
        mean = x.mean(axis=-1, keepdims=True)
        variance = x.var(axis=-1, keepdims=True)
        return (x - mean) * lib.lax.rsqrt(variance + 1e-5) * scale + shift

    return run


def torch_layer_norm(torch):
    return lambda x, scale, shift: torch.nn.functional.layer_norm(x, (1024,), scale, shift)


@workload("layer norm, 8192 x 1024", Share(0.7), gigabytes(2 * 4 * 2**23))
def layer_norm_forward(add):
    arguments = normal(8192, 1024), normal(1024, seed=1), normal(1024, seed=2)
    add.traced(layer_norm, *arguments, wait=ONE)
    add.torch(torch_layer_norm(add.lib.torch), *arguments)


@workload("layer norm, 8192 x 1024, forward + backward", Share(0.55), gigabytes(4 * 4 * 2**23))
def layer_norm_backward(add):
    arguments = normal(8192, 1024), normal(1024, seed=1), normal(1024, seed=2)
    cotangent = normal(8192, 1024, seed=3)

    def make(lib):
        def run(cotangent, *arguments):
            out, pull = lib.vjp(layer_norm(lib), *arguments)
            return out, *pull(cotangent)

        return run

    add.traced(make, cotangent, *arguments)
    add.torch_pullback(torch_layer_norm(add.lib.torch), cotangent, *arguments)


@workload("logsumexp of rows, 8192^2", Share(0.85, READ), gigabytes(4 * SIDE**2))
def logsumexp(add):
    x = normal(SIDE, SIDE)
    add.traced(lambda lib: lambda x: lib.nn.logsumexp(x, axis=-1), x, wait=ONE)
    add.torch(lambda x: add.lib.torch.logsumexp(x, -1), x)


def add_sum(add: Entries, axis: int | None) -> None:
    # away from zero, so that the order of additions does not decide the relative error
    x = normal(SIDE, SIDE)
    x += np.float32(1)
    add.traced(lambda lib: lambda x: lib.numpy.sum(x, axis=axis), x, wait=ONE)
    add.torch((lambda x: x.sum()) if axis is None else (lambda x: x.sum(axis)), x)
    add.numpy(lambda x: np.sum(x, axis=axis), x)


@workload("sum over axis 0 of 8192^2", Share(0.85, READ), gigabytes(4 * SIDE**2))
def sum_columns(add):
    add_sum(add, 0)


@workload("sum over axis 1 of 8192^2", Share(0.85, READ), gigabytes(4 * SIDE**2))
def sum_rows(add):
    add_sum(add, 1)


@workload("sum of all of 8192^2", Share(0.85, READ), gigabytes(4 * SIDE**2))
def sum_all(add):
    add_sum(add, None)


@workload("argmax of rows, 8192^2", Share(0.85, READ), gigabytes(4 * SIDE**2), tolerance=0)
def argmax(add):
    x = normal(SIDE, SIDE)
    add.traced(lambda lib: lambda x: lib.numpy.argmax(x, axis=-1), x, wait=ONE)
    add.torch(lambda x: x.argmax(-1), x)
    add.numpy(lambda x: np.argmax(x, axis=-1), x)


@workload("cumsum of rows, 4096^2", Share(0.55), gigabytes(2 * 4 * ROWS**2))
def cumsum_rows(add):
    x = normal(ROWS, ROWS)
    add.traced(lambda lib: lambda x: lib.numpy.cumsum(x, axis=1), x, wait=ONE)
    add.torch(lambda x: x.cumsum(1), x)
    add.numpy(lambda x: np.cumsum(x, axis=1), x)


@workload("cumsum of 2^22", Share(0.4), gigabytes(2 * 4 * 2**22), tolerance=1e-3)
def cumsum_long(add):
    x = normal(2**22)
    add.traced(lambda lib: lib.numpy.cumsum, x, wait=ONE)
    add.torch(lambda x: x.cumsum(0), x)
    add.numpy(np.cumsum, x)


@workload("x.T + y, 4096^2", Share(0.5), gigabytes(3 * 4 * ROWS**2))
def transpose_add(add):
    x, y = normal(ROWS, ROWS), normal(ROWS, ROWS, seed=1)
    add.traced(lambda lib: lambda x, y: x.T + y, x, y, wait=ONE)
    add.torch(lambda x, y: x.T + y, x, y)
    add.numpy(lambda x, y: x.T + y, x, y)


@workload("where, clip, compare, 2^24", Share(0.8), gigabytes(3 * 4 * 2**24))
def where_clip(add):
    x, y = normal(2**24), normal(2**24, seed=1)
    make = lambda xp: lambda x, y: xp.where(x > y, xp.clip(x, -1, 1), y)
    add.traced(lambda lib: make(lib.numpy), x, y, wait=ONE)
    if add.lib.torch is not None:
        add.torch(make(add.lib.torch), x, y)
    add.numpy(make(np), x, y)


@workload("gather of 2^18 rows of 128", Share(0.75), gigabytes(2 * 4 * 2**25 + 4 * 2**18))
def gather_rows(add):
    table = normal(2**17, 128)
    rows = np.random.default_rng(1).integers(0, 2**17, 2**18, dtype=np.int32)
    add.traced(lambda lib: lambda table, rows: table[rows], table, rows, wait=ONE)
    add.torch(lambda table, rows: table[rows], table, rows)
    add.numpy(lambda table, rows: table[rows], table, rows)


SEGMENTS, DATA = 4096, 2**18


def add_segments(add: Entries, in_order: bool) -> None:
    data = normal(DATA, 64)
    owners = np.random.default_rng(1).integers(0, SEGMENTS, DATA, dtype=np.int32)
    if in_order:
        owners.sort()

    def make(lib):
        if lib is add.lib.jax:
            return lambda data, owners: lib.ops.segment_sum(
                data, owners, SEGMENTS, indices_are_sorted=in_order
            )
        return lambda data, owners: lib.numpy.zeros((SEGMENTS, 64)).at[owners].add(data)

    add.traced(make, data, owners, wait=ONE)
    if torch := add.lib.torch:
        add.torch(
            lambda data, owners: torch.zeros(SEGMENTS, 64).index_add_(0, owners, data), data, owners
        )


SEGMENT_WORK = gigabytes(4 * (DATA * 65 + SEGMENTS * 64))


@workload("segment_sum of 2^18 rows of 64, sorted", Best(), SEGMENT_WORK)
def segments_sorted(add):
    add_segments(add, True)


@workload("segment_sum of 2^18 rows of 64, unsorted", Best(), SEGMENT_WORK)
def segments_unsorted(add):
    add_segments(add, False)


def shuffled() -> np.ndarray:
    """Distinct numbers, so that an unstable sort gives the same order."""
    return np.random.default_rng(0).permutation(2**20).astype(np.float32)


@workload("sort of 2^20", Peer("numpy", 0.6), tolerance=0)
def sort(add):
    x = shuffled()
    add.traced(lambda lib: lib.numpy.sort, x, wait=ONE)
    add.torch(lambda x: x.sort().values, x)
    add.numpy(np.sort, x)


@workload("argsort of 2^20", Peer("numpy", 0.6), tolerance=0)
def argsort(add):
    x = shuffled()
    add.traced(lambda lib: lib.numpy.argsort, x, wait=ONE)
    add.torch(lambda x: x.argsort(), x)
    add.numpy(np.argsort, x)


def add_random(add: Entries, name: str, torch_name: str, numpy_name: str) -> None:
    # functrans gives JAX's numbers; the others have their own and are not compared
    add.traced_with(
        lambda lib: lambda key: getattr(lib.random, name)(key, (2**24,)),
        lambda lib: (lib.random.key(0),),
        wait=ONE,
    )
    if torch := add.lib.torch:
        add.torch(lambda: getattr(torch, torch_name)(2**24), check=False)
    draw = getattr(np.random.default_rng(0), numpy_name)
    add.numpy(lambda: draw(2**24, np.float32), check=False)


@workload("random uniform, 2^24", 8e-3, tolerance=0)
def uniform(add):
    add_random(add, "uniform", "rand", "random")


@workload("random normal, 2^24", 25e-3, tolerance=1e-6)
def random_normal(add):
    add_random(add, "normal", "randn", "standard_normal")
