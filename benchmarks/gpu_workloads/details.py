"""Figures of gpu.md besides those of the main table: `python benchmarks/gpu.py --more`."""

from __future__ import annotations

from bounds import Peer, Rate

from gpu_workloads.arrays import to_library, tree_map
from gpu_workloads.entries import nbytes, workload
from gpu_workloads.memory import matrix
from gpu_workloads.products import teraflops

# ------------------------------------------------------------------ orders


@workload("argsort of 2^24", Peer("jax"), 0.0)
def argsort(add):
    # with distinct keys there is one order
    sets = [(add.torch_module.randperm(add.size(2**24, 2**12), generator=add.generator(),
                                       device=add.device).float(),)]  # fmt: skip
    add.traced(lambda lib: lib.numpy.argsort, sets)
    add.torch(lambda x: x.argsort(stable=True), sets)


def add_sort(add, *shape, dtype="float32"):
    sets = add.sets(lambda: (add.normal(*shape, dtype=dtype),))
    add.traced(lambda lib: lib.numpy.sort, sets)
    add.torch(lambda x: x.sort(-1).values, sets)


@workload("sort of 16384 rows of 1024", Peer("jax"), 0.0)
def sort_short_rows(add):
    add_sort(add, add.size(16384, 4), add.size(1024, 200))


@workload("sort of 4096 rows of 4096", Peer("jax"), 0.0)
def sort_rows(add):
    add_sort(add, add.size(4096, 3), add.size(4096, 300))


@workload("sort of 2^23 float64", 1.2e-3, 1e-6)
def sort_double(add):
    sets = add.sets(lambda: (add.normal(add.size(2**23, 2**11), dtype="float64"),))
    for name, library in add.libraries().items():
        if name != "jax":  # has no float64 without a flag
            place = lambda x, lib=library: to_library(add.torch_module, lib, x)
            add.jitted(name, library, library.numpy.sort, tree_map(place, sets))
    add.torch(lambda x: x.sort().values, sets)


@workload("16 largest of 2^24", Peer("jax"), 0.0)
def largest(add):
    sets = add.sets(lambda: (add.normal(add.size(2**24, 2**12)),))
    add.traced(lambda lib: lambda x: lib.lax.top_k(x, 16)[0], sets)
    add.torch(lambda x: x.topk(16).values, sets)


@workload("sort of 2^22 complex64", 3e-3, 1e-6)
def sort_complex(add):
    torch, count = add.torch_module, add.size(2**22, 2**10)
    sets = add.sets(lambda: (torch.complex(add.normal(count), add.normal(count)),))
    # real parts differ: their order is that of the numbers
    add.expect(lambda z: z[z.real.argsort(stable=True)], sets)
    add.traced(lambda lib: lib.numpy.sort, sets)


@workload("segment_max of 262144 x 256 into 10000", Peer("jax"))
def segment_max(add):
    torch = add.torch_module
    rows, width, count = add.size(262144, 500), add.size(256, 20), add.size(10000, 30)
    sets = [(add.normal(rows, width), add.integers(count, rows))]
    add.moves(nbytes(sets) + 4 * width * count)
    add.traced(lambda lib: lambda data, owners: lib.numpy.zeros((count, width)).at[owners].max(
        data), sets)  # fmt: skip
    add.torch(lambda data, owners: torch.zeros(count, width, dtype=data.dtype, device=data.device)
              .index_reduce_(0, owners, data, "amax"), sets)  # fmt: skip


@workload("random bits, 2^26", Peer("jax"), 0.0)
def bits(add):
    count = add.size(2**26, 5000)
    for name, library in add.libraries().items():
        draw = lambda key, lib=library: lib.random.bits(key, (count,))
        add.jitted(name, library, draw, [(library.random.key(0),)])
        add.columns[name].tensors = None


# ------------------------------------------------------------------ products


def add_float32(add, side, precision):
    sets = [(add.normal(side, side), add.normal(side, side))]
    add.computes(2 * side**3)
    add.traced(lambda lib: lambda x, y: lib.numpy.matmul(x, y, precision=precision), sets)
    if precision == "default":
        add.torch(lambda x, y: x @ y, sets)
    else:
        add.expect(lambda x, y: x @ y, sets)


@workload("matmul float32 at default precision, 4096^3", teraflops(300), 3e-3)
def matmul_tf32(add):
    add_float32(add, add.size(4096, 128), "default")


@workload("matmul float32 at default precision, 8192^3", teraflops(330), 3e-3)
def matmul_default(add):
    add_float32(add, add.size(8192, 128), "default")


@workload("matmul float32 at high precision, 8192^3", teraflops(60), 1e-4)
def matmul_high(add):
    add_float32(add, add.size(8192, 128), "high")


@workload("matmul float32 at highest precision, 8192^3", teraflops(42), 1e-4)
def matmul_highest(add):
    add_float32(add, add.size(8192, 128), "highest")


def add_float8(add, precision):
    torch, side = add.torch_module, add.size(8192, 128)
    eighth = torch.float8_e4m3fn
    wide = [(add.normal(side, side, dtype="bfloat16"), add.normal(side, side, dtype="bfloat16"))]
    add.computes(2 * side**3)
    rounded = [tuple(x.to(eighth).to(torch.bfloat16) for x in wide[0])]
    add.expect(lambda x, y: x @ y, rounded)
    for name, library in add.libraries().items():
        def place(x, lib=library):
            return to_library(torch, lib, x).astype("float8_e4m3fn")

        def product(x, y, lib=library):
            return lib.numpy.matmul(x, y, precision=precision, preferred_element_type="float32")

        add.jitted(name, library, product, [tree_map(place, x) for x in rounded])


@workload("matmul float8, 8192^3", teraflops(1400), 2e-2)
def matmul_float8(add):
    add_float8(add, "default")


@workload("matmul float8 at highest precision, 8192^3", teraflops(950), 2e-3)
def matmul_float8_highest(add):
    add_float8(add, "highest")


# ------------------------------------------------------------------ one operation after the other


def add_operation(add, function, sets, moved):
    add.moves(moved)
    add.untraced(lambda lib: function, sets)
    add.torch(function, sets)


@workload("without jit: x + y, 64 x 128", 9e-6)
def small_sum(add):
    add.untraced(lambda lib: lambda x, y: x + y, sets := [(add.normal(64, 128),
                                                           add.normal(64, 128))])  # fmt: skip
    add.torch(lambda x, y: x + y, sets)


@workload("without jit: x + y, 8192^2", Rate(2900, "GB/s"))
def sum_even(add):
    sets = [(matrix(add), matrix(add))]
    add_operation(add, lambda x, y: x + y, sets, 1.5 * nbytes(sets))


@workload("without jit: x + y, 8191^2", Rate(2750, "GB/s"))
def sum_odd(add):
    sets = [(matrix(add, 8191), matrix(add, 8191))]
    add_operation(add, lambda x, y: x + y, sets, 1.5 * nbytes(sets))


@workload("without jit: x.sum(1), 8192^2", Rate(2900, "GB/s"), 1e-2)
def rows_even(add):
    sets = [(matrix(add),)]
    add_operation(add, lambda x: x.sum(1), sets, nbytes(sets))


@workload("without jit: x.sum(1), 8191^2", Rate(2500, "GB/s"), 1e-2)
def rows_odd(add):
    sets = [(matrix(add, 8191),)]
    add_operation(add, lambda x: x.sum(1), sets, nbytes(sets))


# ------------------------------------------------------------------ loops


def newton(lib, steps):
    """A loop over scalars that runs so many times: it does not know when it is done."""
    def run(x):
        return lib.lax.while_loop(lambda c: c[0] < steps,
                                  lambda c: (c[0] + 1, c[1] - (c[1] * c[1] - x) / (2 * c[1])),
                                  (0, x + 1.0))[1]  # fmt: skip
    return run


@workload("while of 10000 iterations over a scalar", 2e-3)
def scalar_while(add):
    steps = add.size(10000, 20)
    sets = [(add.normal(1).abs_().add_(1)[0],)]
    add.expect(lambda x: x.sqrt(), sets)
    add.traced(lambda lib: newton(lib, steps), sets)


def add_while(add, count, steps):
    """Decay while the largest element is above a limit."""
    sets = [(add.normal(count).clamp_(-3, 3),)]
    limit = 3 * 0.99**steps

    def make(lib):
        return lambda x: lib.lax.while_loop(lambda v: lib.numpy.abs(v).max() > limit,
                                            lambda v: v * 0.99, x)  # fmt: skip

    def by_hand(x):
        while float(x.abs().max()) > limit:
            x = x * 0.99
        return x

    add.traced(make, sets)
    add.torch(by_hand, sets)


@workload("while of 100 iterations over 2^24", 6.5e-3, 2e-2)
def large_while(add):
    add_while(add, add.size(2**24, 2**10), 100)


@workload("while of 100 iterations over 2^20", 2e-3, 2e-2)
def middle_while(add):
    add_while(add, add.size(2**20, 2**10), 100)


def add_while_gradient(add, count, steps):
    torch = add.torch_module
    sets = [(add.normal(count, scale=0.1),)]

    def make(lib):
        def loss(x):
            done = lib.lax.while_loop(lambda c: c[0] < steps,
                                      lambda c: (c[0] + 1, lib.numpy.sin(c[1]) + c[1] * 0.1),
                                      (0, x))[1]  # fmt: skip
            return lib.numpy.sum(done * done)

        return lib.grad(loss)

    def loss_by_hand(x):
        for _ in range(steps):
            x = x.sin() + x * 0.1
        return (x * x).sum()

    # JAX does not differentiate loops of unknown length in reverse
    for name, library in add.libraries().items():
        if name != "jax":
            place = lambda x, lib=library: to_library(torch, lib, x)
            add.jitted(name, library, make(library), tree_map(place, sets))
    add.torch_gradient(lambda params, *rest: loss_by_hand(params), sets, value=False)


@workload("gradient of a while of 200 iterations over 2^12", Peer("torch"), 1e-2)
def small_while_gradient(add):
    add_while_gradient(add, add.size(2**12, 2**6), add.size(200, 5))


@workload("gradient of a while of 200 iterations over 2^20", Peer("torch"), 1e-2)
def while_gradient(add):
    add_while_gradient(add, add.size(2**20, 2**10), add.size(200, 5))


@workload("cond whose branch is a loop of 1000 iterations, over 2^16", Peer("jax"), 1e-2)
def long_branch(add):
    torch, steps = add.torch_module, add.size(1000, 120)
    sets = [(torch.ones((), device=add.device), add.normal(add.size(2**16, 2**8)))]

    def make(lib):
        def long(x):
            return lib.lax.fori_loop(0, steps, lambda i, c: lib.numpy.sin(c) + c * 0.1, x)

        return lambda p, x: lib.lax.cond(p > 0, long, lambda x: x * 2, x)

    def by_hand(p, x):
        if float(p) > 0:
            for _ in range(steps):
                x = x.sin() + x * 0.1
            return x
        return x * 2

    add.traced(make, sets)
    add.torch(by_hand, sets)
