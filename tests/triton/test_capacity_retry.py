"""Reverse mode of loops whose length the run decides: records with room for so many iterations."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans import lax
from functrans.core.avals import ShapedArray, get_aval
from functrans.core.compiling import for_compiler
from functrans.core.dims import Dim
from functrans.core.errors import HostStepWarning
from functrans.core.staging import stage
from functrans.lowering.backend import get_backend
from functrans.lowering.triton import capacity_retry
from functrans.lowering.triton.capacity_retry import CapacityRetryExecutable, capacity_for

X = np.arange(3, dtype="f") * 0.1 + 0.01


def grown(x):
    return lax.while_loop(lambda c: c[0].sum() < 4, lambda c: (
        c[0] * jnp.exp(0.1 * jnp.sin(c[0])) + 0.3, c[1] + c[0] ** 2), (x, x))[1].sum()


def never(x):
    return lax.while_loop(lambda v: v.sum() < 0, lambda v: v * 2, x).sum()


def lanes(x):
    return ft.vmap(lambda v: lax.while_loop(
        lambda c: c < 0.6, lambda c: c * 1.5 + 0.1 * jnp.sin(c), v))(x).sum()


def until(limit, v):
    return lax.while_loop(lambda u: u.sum() < limit, lambda u: u * 1.5 + 0.1, v)


def in_while(x):
    return lax.while_loop(lambda c: c[0] < 2,
                          lambda c: (c[0] + 1, until(1.0 + c[0], c[1]) * 0.5), (0, x))[1].sum()


def in_scan(x):
    return lax.scan(lambda c, y: (until(1.0 + y, c) * 0.5, c.sum()), x, x)[0].sum()


def in_branch(x):
    return lax.cond(x.sum() > 0, grown, lambda v: (v * 2).sum(), x)


def descent(x):
    return lax.fori_loop(0, 2, lambda i, p: p - 0.01 * ft.grad(grown)(p), x).sum()


PROGRAMS = {
    "gradient": ft.grad(grown), "no iteration": ft.grad(never), "lanes": ft.grad(lanes),
    "batch": lambda x: ft.vmap(ft.grad(grown))(jnp.stack([x, x * 2])),
    "second derivatives": ft.grad(lambda x: (ft.grad(grown)(x) ** 2).sum()),
    "in a while": ft.grad(in_while), "in a scan": ft.grad(in_scan),
    "in a branch": ft.grad(in_branch), "descent": descent,
    "called": ft.grad(ft.jit(lambda x: grown(x) * 2)),
    "vector Jacobian product of a call": lambda x: ft.vjp(ft.jit(grown), x)[1](np.float32(2))[0]}


@pytest.fixture(autouse=True)
def little_room(monkeypatch):
    monkeypatch.setattr(capacity_retry, "FIRST_CAPACITY", 8)


def compiled(fun, *args):
    closed = stage(lambda *xs: ft.tree.leaves(fun(*xs)), list(map(get_aval, args)))
    assert not closed.consts
    return get_backend("triton").compile(closed.jaxpr)


@pytest.mark.one_in(6)
@pytest.mark.parametrize("name", PROGRAMS)
def test_records_on_the_device(name):
    fun = PROGRAMS[name]
    executable = compiled(fun, X)
    assert isinstance(executable, CapacityRetryExecutable)
    expected = np.asarray(ft.jit(fun)(X))
    for _ in range(2):  # with the first room, then with what was needed
        (out,) = executable.run([X])
        np.testing.assert_allclose(out, expected, 2e-4, 2e-5)


def test_room_follows_what_was_needed():
    def halved(x, limit):
        return lax.while_loop(lambda v: v > limit, lambda v: v * 0.5, x)

    executable = compiled(ft.grad(halved), np.float32(1), np.float32(1))
    (name,) = executable.run.capacities
    for steps, room in ((20, 24), (3, 24), *[(3, 24)] * 6, (3, 4), (5, 6)):
        (out,) = executable.run([np.float32(1), np.float32(2.0 ** (0.5 - steps))])
        assert out == 0.5 ** steps
        assert executable.run.capacities[name] == room
    assert list(map(capacity_for, (0, 4, 5, 7, 9, 13, 17, 100))) == [
        4, 4, 6, 8, 12, 16, 24, 128]


def halved(x, limit):
    """As many steps as it takes; a lane that went on would divide by 0."""
    return lax.while_loop(lambda s: s[0] > limit, lambda s: (s[0] / 2, s[1] + 1 / (s[0] - limit)),
                          (x, 0.0 * x))[1]


@pytest.mark.parametrize("staged", [False, True])
def test_lanes_record_by_themselves(staged):
    """Lanes of no step, of one, of more than there is room for, and one of many."""
    gradient, limit = ft.grad(halved), np.float32(1.5)
    x = np.float32([0.5, 1.5, 2, 5, 9, 2.0 ** 13, 31, 77])
    with for_compiler(staged):
        executable = compiled(ft.vmap(gradient, (0, None)), x, limit)
    for _ in range(2):
        (out,) = executable.run([x, limit])
        np.testing.assert_allclose(out, [ft.jit(gradient)(v, limit) for v in x], 1e-5)
    assert executable.run.capacities == dict.fromkeys(executable.run.capacities, 16)


def test_lanes_that_record_are_threads():
    x = np.linspace(1, 90, 4096, dtype="f")
    compiled = ft.lower(ft.vmap(ft.grad(halved), (0, None)), x, np.float32(1.5),
                        target="cuda:90").compile()
    names = [k.name for k in compiled.kernels]
    assert names.count("lanes") == 1
    assert len(names) == 2  # the other one tells whether there was room for all


def test_records_in_programs_of_named_sizes():
    gradient = ft.grad(grown)
    aval = ShapedArray((Dim("n"),), np.dtype("f"))
    executable = get_backend("triton").compile(stage(lambda x: [gradient(x)], [aval]).jaxpr)
    for n in (2, 3):
        (direct,), (out,) = (e.run([X[:n]]) for e in (executable, executable.at([(n,)])))
        expected = np.asarray(ft.jit(gradient)(X[:n]))
        np.testing.assert_allclose(out, expected, 2e-4)
        np.testing.assert_allclose(direct, expected, 2e-4)


def test_a_loop_that_is_done_does_not_wait_for_loops_in_it():
    """The body of an iteration that does not take place would never end."""
    def inner(v):
        return lax.while_loop(lambda u: u[0] < 3, lambda u: (u[0] + u[1], u[1]), (v, 4 - v))[0]

    def outer(x):
        return lax.while_loop(lambda v: v < 4, lambda v: jnp.sin(v) + inner(v) + 2, x)

    x = np.float32(0.5)
    (out,) = compiled(ft.grad(outer), x).run([x])
    np.testing.assert_allclose(out, np.asarray(ft.jit(ft.grad(outer))(x)), 1e-5)


def test_records_compile_for_a_gpu_without_the_host():
    compiled = ft.lower(ft.grad(grown), X, target="cuda:90").compile()
    assert len(compiled.kernels) > 0
    assert "scan is one kernel" in str(ft.explain(ft.grad(grown), X, target="cuda:90"))
    assert "computed by the host" not in compiled.as_text()


def test_effects_in_such_loops_stay_on_the_cpu():
    def loud(x):
        def body(v):
            ft.debug.print("{}", v)
            return v * 2
        return lax.while_loop(lambda v: v < 4, body, x)

    with pytest.warns(HostStepWarning, match="a loop with effects that records"):
        assert not isinstance(compiled(ft.grad(loud), np.float32(1)), CapacityRetryExecutable)
