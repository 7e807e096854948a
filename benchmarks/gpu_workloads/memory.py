"""Programs that memory limits: elementwise chains, rows, reductions, layout, indexing, sorting."""

from __future__ import annotations

from bounds import SUBJECT, Rate
from cpu_workloads.memory import chain, layer_norm

import functrans as ft
from gpu_workloads.entries import nbytes, workload


def gigabytes(rate: float) -> Rate:
    return Rate(rate, "GB/s")


def add_chain(add, dtype):
    sets = add.sets(lambda: (add.normal(add.size(2**26, 2**12), dtype=dtype),))
    add.moves(2 * nbytes(sets))
    add.traced(lambda lib: chain(lib.numpy), sets)
    add.torch(chain(add.torch_module), sets)


# rounding moves some elements to the other branch of the chain's `where`
@workload("10-op chain, 2^26", gigabytes(2850), stray=1e-5)
def chain_single(add):
    add_chain(add, "float32")


@workload("10-op chain, bfloat16 2^26", gigabytes(2200), 2e-2, stray=1e-2)
def chain_half(add):
    add_chain(add, "bfloat16")


def matrix(add, side=8192, **options):
    """A square matrix; in a dry run one that no block divides."""
    return add.normal(add.size(side, 96), add.size(side, 130), **options)


@workload("softmax of rows, 8192^2", gigabytes(2950))
def softmax(add):
    sets = add.sets(lambda: (matrix(add),))
    add.moves(2 * nbytes(sets))
    add.traced(lambda lib: lambda x: lib.nn.softmax(x, axis=-1), sets)
    add.torch(lambda x: add.torch_module.softmax(x, -1), sets)


def torch_layer_norm(add):
    return lambda x, scale, shift: add.nn.layer_norm(x, x.shape[-1:], scale, shift)


def norm_arguments(add):
    rows, width = add.size(16384, 96), add.size(4096, 130)
    return add.normal(rows, width), add.normal(width), add.normal(width)


@workload("layer norm, 16384 x 4096", gigabytes(2950))
def layer_norm_forward(add):
    sets = [norm_arguments(add)]
    add.moves(2 * nbytes(sets[0][0]))
    add.traced(layer_norm, sets)
    add.torch(torch_layer_norm(add), sets)


@workload("layer norm, 16384 x 4096: gradients", gigabytes(1300))
def layer_norm_gradient(add):
    arguments = norm_arguments(add)
    sets = [(add.normal(*arguments[0].shape), *arguments)]
    add.moves(3 * nbytes(arguments[0]))

    def make(lib):
        return lambda cotangent, *arguments: lib.vjp(layer_norm(lib), *arguments)[1](cotangent)

    add.traced(make, sets)
    add.torch_pullback(torch_layer_norm(add), sets)


@workload("x.T + y, 8192^2", gigabytes(2950))
def transpose_add(add):
    a, b = add.size(8192, 96), add.size(8192, 130)
    sets = [(add.normal(a, b), add.normal(b, a))]
    add.moves(1.5 * nbytes(sets))
    add.traced(lambda lib: lambda x, y: x.T + y, sets)
    add.torch(lambda x, y: x.T + y, sets)


@workload("gather of 2^19 rows of 128", gigabytes(2930))
def gather_rows(add):
    table, count = add.size(2**20, 1000), add.size(2**19, 700)
    sets = [(add.normal(table, 128), add.integers(table, count))]
    add.moves(4 * count + 2 * 4 * 128 * count)
    add.traced(lambda lib: lambda table, rows: table[rows], sets)
    add.torch(lambda table, rows: table[rows], sets)


def add_sum(add, axis):
    # away from zero, so that the order of additions does not decide the relative error
    sets = [(matrix(add, 16384).add_(1),)]
    add.moves(nbytes(sets))
    add.traced(lambda lib: lambda x: lib.numpy.sum(x, axis=axis), sets)
    add.torch((lambda x: x.sum()) if axis is None else (lambda x: x.sum(axis)), sets)


@workload("sum over axis 0 of 16384^2", gigabytes(3080))
def sum_columns(add):
    add_sum(add, 0)


@workload("sum of all of 16384^2", gigabytes(3100))
def sum_all(add):
    add_sum(add, None)


@workload("segment_sum of 262144 x 256 into 10000", gigabytes(2000))
def segments(add):
    torch = add.torch_module
    rows, width, count = add.size(262144, 500), add.size(256, 20), add.size(10000, 30)
    sets = [(add.normal(rows, width), add.integers(count, rows))]
    add.moves(nbytes(sets) + 4 * width * count)

    def make(lib):
        if lib is add.lib.jax:
            return lambda data, owners: lib.ops.segment_sum(data, owners, count)
        return lambda data, owners: lib.numpy.zeros((count, width)).at[owners].add(data)

    add.traced(make, sets)
    add.torch(
        lambda data, owners: torch.zeros(
            count, width, dtype=data.dtype, device=data.device
        ).index_add_(0, owners, data),
        sets,
    )


WORD = 2**32 - 1
ROTATIONS = (13, 15, 26, 6), (17, 29, 16, 24)


def threefry(torch, key, low, high):
    """Threefry-2x32 of 20 rounds (Salmon et al., 2011) on 64-bit integers."""
    keys = (*key, key[0] ^ key[1] ^ 0x1BD11BDA)
    x, y = (high + keys[0]) & WORD, (low + keys[1]) & WORD
    for group in range(5):
        for turn in ROTATIONS[group % 2]:
            x = (x + y) & WORD
            y = ((y << turn | y >> 32 - turn) & WORD) ^ x
        x = (x + keys[(group + 1) % 3]) & WORD
        y = (y + keys[(group + 2) % 3] + group + 1) & WORD
    return x ^ y


def philox(torch, key, index):
    """Word i % 4 of Philox-4x32 of the counter i // 4, 10 rounds (ibid.), on 64-bit integers."""
    zero = torch.zeros_like(index)
    a, b, c, d = index >> 2, zero, zero, zero
    for i in range(10):
        first, second = a * 0xD2511F53, c * 0xCD9E8D57  # they wrap, which leaves the bits right
        a, b = (second >> 32 & WORD) ^ b ^ (key[0] + i * 0x9E3779B9 & WORD), second & WORD
        c, d = (first >> 32 & WORD) ^ d ^ (key[1] + i * 0xBB67AE85 & WORD), first & WORD
    return torch.stack((a, b, c, d)).gather(0, (index & 3)[None])[0]


def normal_of_bits(torch, bits):
    """Normal numbers of float32 from 32 random bits each, the logarithm and root in float64."""
    unit = (bits >> 9).double() * 2.0**-23
    low = -1 + 2.0**-24  # the float32 after -1
    uniform = (unit.float() * 2 + low).double().clamp(min=low)
    return torch.erfinv(uniform) * 2**0.5


@workload("random normal, 2^26", 110e-6, 1e-5)
def random_normal(add):
    torch, count = add.torch_module, add.size(2**26, 5000)
    index = torch.arange(count, device=add.device)
    bits = lambda: threefry(torch, (0, 0), index & WORD, index >> 32)
    add.reference = lambda: normal_of_bits(torch, bits())
    add.torch(lambda: torch.randn(count, device=add.device), [()], check=False)
    for name, library in add.libraries().items():
        draw = lambda key, lib=library: lib.random.normal(key, (count,))
        add.jitted(name, library, draw, [(library.random.key(0),)])


@workload("random normal of the fast generator, 2^26", 110e-6, 1e-5)
def fast_random_normal(add):
    torch, count = add.torch_module, add.size(2**26, 5000)
    index = torch.arange(count, device=add.device)
    add.reference = lambda: normal_of_bits(torch, philox(torch, (0, 0), index))
    add.torch(lambda: torch.randn(count, device=add.device), [()], check=False)
    add.jitted(SUBJECT, ft, lambda key: ft.random.normal(key, (count,)),
               [(ft.random.key(0, impl="philox"),)])


@workload("cumsum along rows, 8192^2", gigabytes(2750), host=True)
def cumsum_rows(add):
    sets = [(matrix(add),)]
    add.moves(2 * nbytes(sets))
    add.traced(lambda lib: lambda x: lib.numpy.cumsum(x, axis=1), sets)
    add.torch(lambda x: x.cumsum(1), sets)


@workload("sort of 2^24", 650e-6, 0.0, host=True)
def sort(add):
    sets = add.sets(lambda: (add.normal(add.size(2**24, 2**12)),))
    add.traced(lambda lib: lib.numpy.sort, sets)
    add.torch(lambda x: x.sort().values, sets)
