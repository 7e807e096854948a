"""Calls of one program at many sizes: names, guards and donation with Triton's kernels."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans import lax
from functrans.lowering.backend import get_backend
from functrans.lowering.triton.sized import SizedExecutable
from functrans.transforms.jit.executables import executable_of
from tests.transforms.test_dynamic_shapes import ARITHMETIC, check, compilations, rows

LOOPS = {"scan", "fori_loop"}


@pytest.fixture(autouse=True)
def triton():
    with ft.config.use_backend("triton"):
        yield


@pytest.mark.one_in(9)
@pytest.mark.parametrize("name", sorted(ARITHMETIC.keys() - LOOPS))
def test_named_sizes(name):
    fun = ARITHMETIC[name]
    f = ft.jit(fun, dynamic_shapes=({0: "B"},))
    for n in (4, 7, 2, 1):
        check(fun, rows(n), jitted=f)
    assert not any(c.failure for c in ft.explain_retrace(f).compilations)
    assert compilations(f) <= 4  # size 1, and a guard or two


@pytest.mark.parametrize("name", sorted(LOOPS))
def test_a_loop_that_is_one_kernel_is_compiled_for_each_size(name):
    f = ft.jit(ARITHMETIC[name], dynamic_shapes=({0: "B"},))
    for n in (4, 7, 4):
        check(ARITHMETIC[name], rows(n), jitted=f)
    assert compilations(f) == 2
    table = str(ft.explain_retrace(f))
    assert "no program for all sizes: " in table
    assert "scan is one kernel, which is made for given sizes" in table


def test_the_second_size_makes_an_axis_symbolic():
    def step(w, x):
        return w - 0.1 * ft.grad(lambda w: (jnp.tanh(x @ w) ** 2).mean())(w)

    f = ft.jit(step)
    for n in (3, 40, 5, 100, 0, 1):
        check(step, rows(4), rows(n), jitted=f)
    assert compilations(f) == 4
    assert str(ft.explain_retrace(f).reasons[1][0]).endswith("the axis is symbolic now (s0)")


def test_decisions_are_guards():
    def parts(x):
        return x[: x.shape[0] // 2] * 2 if x.shape[0] > 10 else x.sum(0)

    f = ft.jit(parts)
    for n in (3, 5, 9, 20, 40, 4):
        check(parts, rows(n), jitted=f)
    assert compilations(f) == 3


def test_an_update_of_a_donated_argument_is_in_place_at_every_size():
    def update(x, i, y):
        return x.at[i].set(y)

    f = ft.jit(update, donate_argnums=0, require_inplace=True, dynamic_shapes={"x": {0: "B"}})
    for n in (5, 9, 40):
        given = f.lower(rows(n), 2, np.ones(4, "f")).compile().executable
        assert given.at([(n, 4), (), (4,)]).memory_analysis()["donated"] == 16 * n
        result = f(jnp.asarray(rows(n)), 2, np.ones(4, "f"))
        np.testing.assert_array_equal(result, update(jnp.asarray(rows(n)), 2, np.ones(4, "f")))
    assert compilations(f) == 1


def test_an_update_that_needs_a_copy_is_refused_at_every_size():
    f = ft.jit(lambda x: (x.at[0].set(1.0), x), require_inplace=True,
               dynamic_shapes=({0: "B"},))
    with pytest.raises(ft.core.errors.BackendError, match="copy"):
        f(rows(5))


def test_networks_are_contracted_in_the_order_that_is_best_for_the_sizes():
    """A chain of three products: which two come first depends on the batch."""
    jitted = ft.jit(lambda a, b, c: a @ b @ c, dynamic_shapes=({0: "B"}, None, {1: "B"}))
    lowered = jitted.lower(rows(8, 300), rows(300, 300), rows(300, 8))
    executable = executable_of(lowered.jaxpr)
    assert isinstance(executable, SizedExecutable)
    for n in (8, 700):
        sizes = [(n, 300), (300, 300), (300, n)]
        with ft.config.dynamic_shapes("off"):
            known = ft.jit(lambda a, b, c: a @ b @ c).lower(*[np.zeros(s, "f") for s in sizes])
        one = executable_of(known.jaxpr)
        assert str(executable.at(sizes).lowered.simplified) == str(one.lowered.simplified)


def test_machine_code_for_a_gpu_that_is_not_here():
    """For the sizes at hand; sizes of a class have the same code, multiples of 16 as well."""
    jitted = ft.jit(lambda x, w: ft.nn.softmax(x @ w), dynamic_shapes=({0: "B"}, None))
    codes = [{k.cubin for k in jitted.lower(rows(n, 64), rows(64, 48), target="cuda:90")
              .compile().kernels} for n in (70, 90, 96)]
    assert codes[0] == codes[1] == codes[2]
    assert all(code[:4] == b"\x7fELF" for code in codes[0])


def test_explanations_are_those_of_the_sizes_at_hand():
    jitted = ft.jit(lambda x: ft.nn.softmax(x * 2), dynamic_shapes=({0: "B"},))
    explained = ft.explain(jitted, rows(6))
    assert len(explained.kernels) == 1
    assert explained.kernels[0].moved == 192


def test_a_large_loop_is_launched_at_every_size():
    """What is too large for one kernel is no reason for another program."""
    def steps(w, x):
        return lax.fori_loop(0, 2, lambda i, c: jnp.tanh(c @ w), x)

    jaxpr = ft.jit(steps, dynamic_shapes=(None, {0: "B"})).lower(
        np.zeros((2048, 2048), "f"), np.zeros((4096, 2048), "f")).jaxpr
    executable = get_backend("triton").compile(jaxpr)
    assert executable.at([(2048, 2048), (4096, 2048)]).specialized == ""
    assert executable.specialized == ""
