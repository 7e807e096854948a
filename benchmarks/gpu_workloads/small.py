"""Programs that the launches limit."""

from __future__ import annotations

from gpu_workloads.entries import workload


@workload("jitted sin(x) * y + 1, 8 floats", 6e-6)
def call(add):
    sets = add.sets(lambda: (add.normal(8), add.normal(8)))
    make = lambda xp: lambda x, y: xp.sin(x) * y + 1
    add.traced(lambda lib: make(lib.numpy), sets)
    add.torch(make(add.torch_module), sets)


@workload("without jit: tanh(x * 2 + row).sum(1), 64 x 128", 40e-6)
def operations(add):
    sets = [(add.normal(64, 128), add.normal(128))]
    make = lambda xp, axis: lambda x, row: xp.tanh(x * 2 + row).sum(**{axis: 1})
    add.untraced(lambda lib: make(lib.numpy, "axis"), sets)
    add.torch(make(add.torch_module, "dim"), sets)


KERNELS = 20


def sums_in_turn(xp, axis):
    """KERNELS sums of a matrix over its axes in turn, each of what the one before gives."""

    def run(x):
        s = x.sum(**{axis: 0})
        for index in range(1, KERNELS):
            s = s * (1 / x.shape[0])
            s = xp.sin(x + (s[:, None] if index % 2 == 0 else s)).sum(**{axis: index % 2})
        return s

    return run


@workload("20 small kernels: sums of 256^2 over axes in turn", 22e-6)
def small_kernels(add):
    sets = [(add.normal(256, 256),)]
    add.traced(lambda lib: sums_in_turn(lib.numpy, "axis"), sets)
    add.torch(sums_in_turn(add.torch_module, "dim"), sets)
