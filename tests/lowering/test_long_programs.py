"""Long programs share C text between steps and loops, and compute the same bits."""

import os

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans.core.avals import ShapedArray
from functrans.core.staging import stage
from functrans.lowering.c import outlined, shared_loops, step_table, units
from functrans.lowering.c.backend import CBackend
from functrans.lowering.c.executable import CExecutable
from functrans.lowering.loops.tensor import FunctionCall
from functrans.lowering.memory import arena
from functrans.lowering.passes import repeats
from functrans.lowering.passes.pipeline import simplify

rng = np.random.default_rng(0)


def array(*shape, dtype=np.float32):
    return rng.standard_normal(shape).astype(dtype)


def layers(params, x):
    for weight, bias in params:
        x = jnp.tanh(x @ weight + bias)
    return x


def chain(x):
    for k in range(150):
        x = jnp.sin(x) * (1 + k / 100) if k % 3 else jnp.exp(-x * x) + k / 50
    return x


def loops(x):
    for k in range(30):
        x, ys = ft.lax.scan(lambda c, y: (jnp.cos(c + y), c * y), x, jnp.stack([x, x + k]))
        x = ft.lax.cond(x[0, 0] > k / 30, jnp.sin, lambda v: v * 2, x) + ys[1]
    return x


@pytest.fixture
def both(monkeypatch, tmp_path):
    """The text and the results of a program, and the results of one that shares nothing."""

    def run(f, *args, rtol=0.0):
        leaves = ft.tree.leaves(args)
        structure = ft.tree.structure(args)
        closed = stage(lambda *xs: ft.tree.leaves(f(*ft.tree.unflatten(structure, xs))),
                       [ShapedArray(x.shape, x.dtype) for x in leaves])
        assert not closed.consts

        def compiled(name):
            monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / name))
            executable = CBackend().compile(closed.jaxpr)
            assert isinstance(executable, CExecutable)
            return executable.lowered.text, executable.run(leaves)

        text, results = compiled("shared")
        with monkeypatch.context() as patch:
            for module, name in ((step_table, "LEAST_STEPS"), (step_table, "LEAST_ONCE"),
                                 (shared_loops, "LEAST_TEXT"),
                                 (outlined, "LEAST_CALLS"), (outlined, "LONG"), (units, "UNIT"),
                                 (repeats, "LEAST_EQUATIONS")):
                patch.setattr(module, name, 1 << 60)
            plain, expected = compiled("plain")
        assert "ft_steps(" not in plain.text and "call_" not in plain.text
        assert len(plain.units) == 1
        for a, b in zip(results, expected, strict=True):
            a, b = np.asarray(a), np.asarray(b)
            np.testing.assert_allclose(a, b, rtol, rtol * np.abs(b).max(), strict=True)
        return text

    return run


def test_layers_are_a_table_of_steps(both):
    params = [(array(16, 16) / 4, array(16)) for _ in range(60)]
    text = both(ft.grad(lambda p, x: jnp.sum(layers(p, x))), params, array(8, 16))
    assert "ft_steps(" in text.text
    assert text.text.count("ft_gemm m =") < 20


def test_loops_and_branches_are_steps_of_a_table(both):
    text = both(loops, array(4, 5))
    assert "ft_steps(" in text.text


def test_costly_functions_stand_once(both):
    text = both(ft.grad(lambda x: jnp.sum(chain(x))), array(7, 9))
    assert "call_sin_f32x16(" in text.text or "call_sin_f32" in text.text


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_equal_loops_are_one_function(both, dtype, monkeypatch):
    monkeypatch.setattr(shared_loops, "LEAST_TEXT", 1)
    text = both(chain, array(3, 133, dtype=dtype))
    assert 1 < text.text.count("void loop") < 20


@pytest.mark.parametrize("shape", [(512,), (3, 300)])
def test_rows_between_loops_share_memory(tmp_path, monkeypatch, shape):
    """Each loop reads what the last one left, the last loop also what the first one left."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    def f(xp, x):
        first = y = xp.sin(x)
        for _ in range(9):
            y = xp.exp(xp.sin(y + 1))
        return y * first

    x = array(*shape)
    compiled = ft.jit(lambda x: f(jnp, x)).lower(x).compile()
    text = compiled.as_text()
    assert text.count("= ft->allocate(") == text.count("ft->release(row") == 3
    np.testing.assert_allclose(compiled(x), f(np, x.astype(np.float64)), 2e-5)


def test_long_texts_are_several_units(both, monkeypatch):
    monkeypatch.setattr(units, "UNIT", 2_000)
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: range(3))
    text = both(ft.grad(lambda x, y: jnp.sum(chain(x) @ chain(y))), array(40, 50), array(50, 8))
    assert len(text.units) == 3
    assert sum("int ft_program(" in unit for unit in text.units) == 1


def test_steps_of_a_program_of_several_units_are_timed(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(units, "UNIT", 10_000)
    found = ft.profile(lambda x, y: jnp.sum(chain(x) @ chain(y)), array(40, 50), array(50, 8))
    assert len(found.steps) > 1 and all(step.seconds > 0 for step in found.steps)


def test_offsets_are_the_same_by_arrays():
    places = np.random.default_rng(1)
    blocks = sorted((arena.Block(k, int(places.choice([0, 64, 100, 4096, 5000])),
                                 *sorted(map(int, places.integers(0, 300, 2))))
                     for k in range(300)), key=lambda block: -block.nbytes)
    assert arena._placed_in_arrays(blocks) == arena._placed(blocks)


def blocks(params, x):
    for block in params:
        centred = x - jnp.mean(x, axis=-1, keepdims=True)
        y = centred / jnp.sqrt(jnp.mean(centred**2, axis=-1, keepdims=True) + 1e-5)
        weights = ft.nn.softmax(y @ block["query"] @ y.T, axis=-1)
        x = x + weights @ (y @ block["value"])
        x = x + ft.nn.gelu(x @ block["wide"] + block["bias"]) @ block["narrow"]
    return x


def test_layers_are_calls_of_a_function(both, monkeypatch):
    monkeypatch.setattr(repeats, "LEAST_EQUATIONS", 50)
    params = [{"query": array(8, 8), "value": array(8, 8), "wide": array(8, 16),
               "bias": array(16), "narrow": array(16, 8)} for _ in range(7)]
    f = ft.grad(lambda p, x: jnp.sum(blocks(p, x)))
    text = both(f, params, array(6, 8))
    calls = [step for step in text.main.schedule.steps if isinstance(step, FunctionCall)]
    assert len(calls) >= 10 and len({step.body for step in calls}) == 2
    explained = str(ft.explain(f, params, array(6, 8)))
    assert "calls of a function of" in explained


def test_updates_stay_in_place(monkeypatch):
    monkeypatch.setattr(repeats, "LEAST_EQUATIONS", 20)

    def f(x, y, w, at):
        for k in range(12):
            y = jnp.tanh(y @ w)
            x = x.at[at + k].set(y)
        return x

    step = ft.jit(f, donate_argnums=0, require_inplace=True)
    out = step(jnp.zeros((12, 4)), jnp.ones(4), jnp.eye(4), 0)
    np.testing.assert_allclose(out[0], np.full(4, np.tanh(1.0)), rtol=1e-6)


def test_functions_return_what_others_are_computed_from(monkeypatch):
    params = [{"query": array(8, 8), "value": array(8, 8), "wide": array(8, 16),
               "bias": array(16), "narrow": array(16, 8)} for _ in range(7)]
    f = ft.grad(lambda p, x: jnp.sum(blocks(p, x)))
    jaxpr = simplify(ft.jit(f).lower(params, array(6, 8)).jaxpr)
    monkeypatch.setattr(repeats, "LEAST_EQUATIONS", 50)
    forward, _ = repeats.call_repeats(jaxpr).functions
    made = {v: eqn.primitive.name for eqn in forward.eqns for v in eqn.outvars}
    assert {made[v] for v in forward.outvars}.isdisjoint({"broadcast_in_dim", "mul", "div"})


def test_calls_differ_where_equations_read_others():
    def f(ws, x):
        first = x
        for k, w in enumerate(ws):
            x = jnp.tanh(x @ w + (first if k == 9 else x))
        return x

    ws = [jnp.zeros((3, 3))] * 20
    jaxpr = ft.jit(f).lower([w + k for k, w in enumerate(ws)], jnp.zeros((3, 3))).jaxpr
    found = repeats._Finder(jaxpr.eqns, jaxpr.outvars)
    for run in found.runs():
        for call in found.calls(run)[0]:
            assert call.params["branches"][0].in_avals == tuple(
                v.aval for v in call.invars[1:])


@pytest.mark.parametrize("seed", range(3))
def test_random_programs_of_repeats(both, monkeypatch, seed):
    monkeypatch.setattr(repeats, "LEAST_EQUATIONS", 20)
    monkeypatch.setattr(repeats, "LEAST_BODY", 2)
    draw = np.random.default_rng(seed)
    kinds = [[int(k) for k in draw.integers(0, 6, draw.integers(2, 6))] for _ in range(3)]
    times = [int(n) for n in draw.integers(3, 9, 3)]

    def f(w, x, y):
        for period, n in zip(kinds, times, strict=True):
            for _ in range(n):
                for kind in period:
                    x, y = ((x @ w, y) if kind == 0 else (jnp.sin(x) + y, y) if kind == 1 else
                            (y, x) if kind == 2 else (x, jnp.tanh(y @ w)) if kind == 3 else
                            (x - jnp.mean(x, axis=0), y) if kind == 4 else (x, y * 0.5 + x))
        return jnp.sum(x * y)

    both(f, array(5, 5) / 3, array(5, 5), array(5, 5), rtol=1e-5)
    # columns are added up in the order of the kernel that they are in
    both(ft.value_and_grad(f), array(5, 5) / 3, array(5, 5), array(5, 5), rtol=1e-5)


def test_long_functions_are_called_from_loops_over_lanes(both):
    """The logarithm of the gamma function is a hundred thousand characters with what it calls."""
    def lane(x):
        def step(k, y):
            return ft.lax.lgamma(ft.lax.lgamma(y + 2) + 3) + ft.lax.lgamma(y * y + 1.5)
        return ft.lax.fori_loop(0, 4, step, x)

    text = both(ft.vmap(lane), np.abs(array(64)))
    assert text.text.count("call_lgamma_") > 2
