"""Higher derivatives, loops, and calls so small that the call itself is the cost."""

from __future__ import annotations

import numpy as np
from bounds import Best
from traced_programs import make_tanh_loss, nested_grad, small_tree

from cpu_workloads.entries import Entries, normal, workload

ONE = ".block_until_ready()"


def energy(xp):
    """sum(tanh(w @ x)**2): a scalar function of the vector x."""
    return lambda x, w: xp.sum(xp.tanh(w @ x) ** 2)


def layer(xp):
    """tanh(w @ x): a vector function of the vector x."""
    return lambda x, w: xp.tanh(w @ x)


def vector_and_matrix(size: int) -> tuple[np.ndarray, np.ndarray]:
    return normal(size), normal(size, size, seed=1, scale=size**-0.5)


def add_derivative(add: Entries, name: str, make, size: int) -> None:
    arguments = vector_and_matrix(size)
    add.traced(lambda lib: getattr(lib, name)(make(lib.numpy)), *arguments, wait=ONE)
    if torch := add.lib.torch:
        add.torch(getattr(torch.func, name)(make(torch)), *arguments)


@workload("hessian of sum(tanh(w @ x)**2), 64", Best())
def hessian(add):
    add_derivative(add, "hessian", energy, 64)


@workload("jacfwd of tanh(w @ x), 128", Best())
def jacfwd(add):
    add_derivative(add, "jacfwd", layer, 128)


@workload("jacrev of tanh(w @ x), 128", Best())
def jacrev(add):
    add_derivative(add, "jacrev", layer, 128)


@workload("hessian-vector product of sum(tanh(w @ x)**2), 1024", Best())
def hvp(add):
    x, w = vector_and_matrix(1024)
    v = normal(1024, seed=2)

    def make(lib, xp, jvp):
        def run(x, w, v):
            gradient = lib.grad(energy(xp))
            return jvp(lambda x: gradient(x, w), (x,), (v,))[1]

        return run

    add.traced(lambda lib: make(lib, lib.numpy, lib.jvp), x, w, v, wait=ONE)
    if torch := add.lib.torch:
        add.torch(make(torch.func, torch, torch.func.jvp), x, w, v)


@workload("fifth derivative of sin(tanh(x))", Best(), tolerance=1e-3)
def fifth(add):
    x = np.float32(0.3)
    make = lambda grad, xp: nested_grad(grad, lambda t: xp.sin(xp.tanh(t)), 5)
    add.traced(lambda lib: make(lib.grad, lib.numpy), x, wait=ONE)
    if torch := add.lib.torch:
        add.torch(make(torch.func.grad, torch), np.asarray(x))


STEPS, HIDDEN = 1000, 64


def rnn(lib):
    """The states of a tanh RNN over STEPS inputs."""

    def run(weights, xs):
        into, across = weights

        def step(h, drive):
            h = lib.numpy.tanh(drive + across @ h)
            return h, h

        return lib.lax.scan(step, lib.numpy.zeros(HIDDEN), xs @ into.T)[1]

    return run


def rnn_arrays() -> tuple[list[np.ndarray], np.ndarray]:
    weights = [normal(HIDDEN, HIDDEN, seed=seed, scale=HIDDEN**-0.5) for seed in (1, 2)]
    return weights, normal(STEPS, HIDDEN)


def torch_rnn(torch):
    """torch's own loop over the steps, in C++; its module keeps the weights elsewhere."""
    start = torch.zeros(1, HIDDEN)

    def run(weights, xs):
        # (input, state, weights, has_biases, layers, dropout, train, bidirectional, batch_first)
        out, _ = torch.rnn_tanh(
            xs[:, None], start[None], weights, False, 1, 0.0, False, False, False
        )
        return out[:, 0]

    return run


@workload("RNN of 1000 steps, h64, by scan", Best(time=0.7), tolerance=1e-3)
def rnn_forward(add):
    add.traced(rnn, *rnn_arrays(), wait=ONE)
    if torch := add.lib.torch:
        add.torch(torch_rnn(torch), *rnn_arrays())


@workload("RNN of 1000 steps, h64, by scan: gradient", Best(time=0.7), tolerance=1e-3)
def rnn_gradient(add):
    def make(lib):
        return lib.grad(lambda weights, xs: lib.numpy.mean(rnn(lib)(weights, xs) ** 2))

    add.traced(make, *rnn_arrays())
    if torch := add.lib.torch:
        run = torch_rnn(torch)
        add.torch_gradient(lambda weights, xs: (run(weights, xs) ** 2).mean(), *rnn_arrays())


@workload("Newton's method by while_loop: Kepler's equation, 1024", Best(time=0.7))
def newton(add):
    mean = np.linspace(0, 3, 1024, dtype=np.float32)

    def make(lib):
        xp = lib.numpy

        def run(mean):
            def step(state):
                e, _ = state
                change = (e - 0.8 * xp.sin(e) - mean) / (1 - 0.8 * xp.cos(e))
                return e - change, xp.max(xp.abs(change))

            start = mean + 0.8 * xp.sin(mean), xp.float32(np.inf)
            return lib.lax.while_loop(lambda state: state[1] > 1e-5, step, start)[0]

        return run

    add.traced(make, mean, wait=ONE)

    def plain(xp):
        def run(mean):
            e, size = mean + 0.8 * xp.sin(mean), np.inf
            while size > 1e-5:
                change = (e - 0.8 * xp.sin(e) - mean) / (1 - 0.8 * xp.cos(e))
                e, size = e - change, abs(change).max()
            return e

        return run

    add.numpy(plain(np), mean)
    if torch := add.lib.torch:
        add.torch(plain(torch), mean)


@workload("fori_loop of 10,000 steps on a scalar", 10_000 * 11e-9)
def fori(add):
    make = lambda lib: lambda x: lib.lax.fori_loop(0, 10_000, lambda i, x: x * 0.999 + 1, x)
    add.traced(make, np.float32(1), wait=ONE)


@workload("jitted sin(x) * y + 1, 8 floats", 2.5e-6)
def call(add):
    x, y = normal(8), normal(8, seed=1)
    make = lambda xp: lambda x, y: xp.sin(x) * y + 1
    add.traced(lambda lib: make(lib.numpy), x, y, wait=ONE)
    add.numpy(make(np), x, y)
    if torch := add.lib.torch:
        add.torch(make(torch), x, y)


@workload("jitted x + 1 on a tree of 50 arrays", 25e-6)
def tree(add):
    # One leaf is waited for: the leaves of a call are ready together.
    add.traced_with(
        lambda lib: lambda tree: lib.tree.map(lambda leaf: leaf + 1, tree),
        lambda lib: (small_tree(lib.numpy.asarray),),
        wait="[-1]['bias'].block_until_ready()",
    )
    if torch := add.lib.torch:
        run = lambda tree: torch.utils._pytree.tree_map(lambda leaf: leaf + 1, tree)
        add.torch(run, [list(pair.values()) for pair in small_tree(np.asarray)],
                  check=False)  # fmt: skip


@workload("jitted vmap(grad(sum(tanh(x @ w)**2))), 8x8", 6e-6)
def small_per_sample(add):
    w, x = normal(8, 8), normal(8, 8, seed=1)
    add.traced(
        lambda lib: lib.vmap(lib.grad(make_tanh_loss(lib.numpy)), in_axes=(None, 0)),
        w, x, wait=ONE,
    )  # fmt: skip
    if torch := add.lib.torch:
        gradient = torch.func.grad(make_tanh_loss(torch))
        add.torch(torch.func.vmap(gradient, in_dims=(None, 0)), w, x)
