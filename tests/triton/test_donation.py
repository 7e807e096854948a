"""Results in the memory of donated arguments: where it may be, and that the values are right."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans import lax
from functrans.core.errors import BackendError
from functrans.core.evaluate import interpret
from functrans.lowering.passes.pipeline import simplify
from functrans.lowering.triton.emulator.interpret import InterpretedProgram
from functrans.lowering.triton.program import write_program
from functrans.lowering.triton.steps.spec import CopyStep

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(40, 70)).astype("f"), RNG.normal(size=(40, 70)).astype("f")
W = RNG.normal(size=(70, 70)).astype("f")


def momentum(w, m, g):
    m = 0.9 * m + g
    return w - 0.1 * m, m


def trained(w, x):
    return w - 0.1 * ft.grad(lambda w: (jnp.tanh(x @ w) ** 2).sum())(w)


def adam(w, m, v, g):
    m, v = 0.9 * m + 0.1 * g, 0.99 * v + 0.01 * g * g
    return w - 0.1 * m / (jnp.sqrt(v) + 1e-8), m, v


def many_results(x, w, y):
    z = x @ w
    a, b = jnp.tanh(z), jnp.exp(-z)
    return z, a, b, a * b, b * b + y


PROGRAMS = {  # a function, its arguments, donated ones, and what is given to which outputs
    "elementwise": (lambda x, y: x * 2 + y, (X, Y), (0, 1), {0: 0}),
    "momentum": (momentum, (X, Y, X), (0, 1), {0: 0, 1: 1}),
    "adam": (adam, (X, Y, Y * Y, X), (0, 1, 2), {0: 0, 1: 1, 2: 2}),
    "after a product": (trained, (W, X), (0,), {0: 0}),
    "many results of a product": (many_results, (X, W, Y), (2,), {4: 2}),
    "row": (lambda x, i, y: x.at[i].set(y), (X, np.int32(3), Y[0]), (0,), {0: 0}),
    "rows, added": (lambda x, i, y: x.at[i].add(y), (X, np.array([3, 3, 1]), Y[:3]), (0,), {0: 0}),
    "two updates": (lambda x, y: x.at[1].set(y).at[2].set(2 * y), (X, Y[0]), (0,), {0: 0}),
    "transposed": (lambda x: x.T + 1, (W,), (0,), {}),
    "reversed": (lambda x: x[::-1] + x, (W,), (0,), {}),
    "softmax": (lambda x: ft.nn.softmax(x, -1), (X,), (0,), {}),
    "read at its place by another": (lambda x, y: (y * 2, x + 1), (X, Y), (0,), {1: 0}),
    "read again": (lambda x, w: ((x * 2) @ w, x * 2, x @ x.T), (W, W), (0,), {}),
    "read before": (lambda x, w: jnp.sin((x @ w).sum(0)) * w, (X, W), (0, 1), {0: 1}),
    "another shape": (lambda x: x.sum(0), (X,), (0,), {}),
    "as it is": (lambda x, y: (x, x + y), (X, Y), (0,), {}),
    "not donated": (lambda x, y: x * 2 + y, (X, Y), (), {})}


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_given(name):
    fun, args, donated, given = PROGRAMS[name]
    closed = ft.make_jaxpr(fun)(*args)
    jaxpr = closed.jaxpr.hoist_consts()
    assert not closed.consts
    program = write_program(simplify(jaxpr), donated=donated)
    assert program.aliases.inputs == given
    moved = [s for s in program.steps if isinstance(s, CopyStep) and s.target.kind == "output"
             and s.target.index in given]
    assert not moved
    arrays = [np.asarray(x) for x in args]
    for a, e in zip(InterpretedProgram(program)(arrays), interpret(jaxpr, arrays), strict=True):
        np.testing.assert_allclose(a, e, 1e-4, 1e-4)


def test_memory_analysis_counts_shared_memory_once():
    with ft.config.use_backend("triton"):
        step = ft.jit(momentum, donate_argnums=(0, 1))
        found = step.lower(X, Y, X).compile().memory_analysis()
        plain = ft.jit(momentum).lower(X, Y, X).compile().memory_analysis()
    assert found["donated"] == 2 * X.nbytes and plain["donated"] == 0
    assert found["peak"] == 3 * X.nbytes and plain["peak"] == 5 * X.nbytes


def test_updates_that_must_be_in_place():
    def put(x, y):
        return x.at[3].set(y)

    with ft.config.use_backend("triton"):
        update = ft.jit(put, donate_argnums=0, require_inplace=True)
        np.testing.assert_array_equal(update(jnp.asarray(X), Y[0])[3], Y[0])
        with pytest.raises(BackendError, match="needs a copy") as caught:
            ft.jit(put, require_inplace=True)(X, Y[0])
        assert "belongs to the caller" in str(caught.value)
        with pytest.raises(BackendError, match="is read afterwards"):
            ft.jit(lambda x, y: (put(x, y), x.sum(0)), donate_argnums=0,
                   require_inplace=True)(jnp.asarray(X), Y[0])
        inner = ft.jit(lambda x: lax.fori_loop(0, 3, lambda i, x: x.at[i].set(0), x * 2),
                       require_inplace=True)
        np.testing.assert_array_equal(inner(X), np.where(np.arange(40)[:, None] < 3, 0, X * 2))


def test_updates_in_order_are_in_place():
    def add(x, i, y):
        return x.at[i].add(y)

    args = X, np.array([3, 3, 1]), Y[:3]
    with ft.config.deterministic(), ft.config.use_backend("triton"):
        update = ft.jit(add, donate_argnums=0, require_inplace=True)
        memory = update.lower(*args).compile().memory_analysis()
        assert memory["donated"] == X.nbytes
        expected = X.copy()
        np.add.at(expected, args[1], args[2])
        np.testing.assert_allclose(update(jnp.asarray(X), *args[1:]), expected, 1e-6)
        with pytest.raises(BackendError, match="belongs to the caller"):
            ft.jit(add, require_inplace=True)(*args)


def test_compiled_programs_take_what_is_donated():
    x = jnp.asarray(X)
    compiled = ft.jit(lambda x, y: x.at[3].set(y), donate_argnums=0).lower(x, Y[0]).compile()
    np.testing.assert_array_equal(compiled(x, Y[0])[3], Y[0])
    with pytest.raises(RuntimeError, match="donated"):
        _ = x + 1
