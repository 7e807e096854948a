"""Scatters that combine, by sorting: as NumPy combines, and in one order in every run."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans import lax
from functrans.lowering.triton.steps.spec import HostStep
from tests.triton.emulated import check, kernels_of, program_of

RNG = np.random.default_rng(0)
BASE = RNG.normal(size=(6, 5)).astype("f")
ROWS = np.array([3, 0, 3, 5, 3, 9, -7, 0], "i")  # two are out of bounds
UPDATES = RNG.normal(size=(8, 5)).astype("f")
LONG = RNG.integers(0, 3, 3000).astype("i")


def combined(op):
    return lambda x, i, u: getattr(x.at[i], op)(u, mode="drop")


@pytest.mark.parametrize("op", ["add", "multiply", "min", "max"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16", "int8", "int32"])
def test_what_numpy_combines(op, dtype):
    values = [jnp.asarray(x, dtype) for x in (BASE * 4, UPDATES * 4)]
    with ft.config.deterministic():
        program = check(combined(op), values[0], ROWS, values[1], tolerance=1e-6)
    exact = dtype == "int32" and op != "multiply"
    assert ("folded" in kernels_of(program)) != exact
    assert not any(isinstance(s, HostStep) for s in program.steps)


FEW = {  # updates, fewer than half of the rows of the base
    "distinct": (np.array([7, 3, 39, 0], "i"), 5),
    "repeated, some out of bounds": (np.array([31, 4, 31, 99, 4, -70, 31], "i"), 5),
    "all of one": (np.full(130, 217, "i"), 2),
    "long runs": (np.repeat(np.array([399, 0, 240], "i"), [20, 140, 3]), 2),
    "wide": (np.array([11, 2, 11], "i"), 1030),
    "one": (np.array([5], "i"), 4)}


@pytest.mark.one_in(3)
@pytest.mark.parametrize("op", ["add", "multiply", "max"])
@pytest.mark.parametrize("name", FEW)
def test_few_updates_touch_no_other_rows(name, op):
    rows, width = FEW[name]
    base = RNG.normal(size=(max(40, 4 * len(rows)), width)).astype("f")
    updates = (1 + 0.01 * RNG.normal(size=(len(rows), width))).astype("f")
    with ft.config.deterministic():
        program = check(combined(op), base, rows, updates, tolerance=1e-5)
    assert {"copied", "folded"} <= set(kernels_of(program))
    assert "bounds" not in kernels_of(program)


def test_few_updates_in_a_loop_are_in_place():
    rows, width = FEW["repeated, some out of bounds"]
    base, updates = RNG.normal(size=(40, width)), RNG.normal(size=(len(rows), width))
    check(lambda x, i, u: lax.fori_loop(0, 2, lambda _, y: y.at[i].multiply(u, mode="drop"), x),
          base.astype("f"), rows, updates.astype("f"), tolerance=1e-5)


@pytest.mark.parametrize("op", ["min", "max", "multiply"])
def test_nan_counts_whatever_its_sign(op):
    base, updates = BASE.copy(), UPDATES.copy()
    base[0, 0], base[3, 1] = np.nan, -np.float32("nan")
    updates[[2, 4], [2, 3]] = np.nan, -np.float32("nan")
    check(combined(op), base, ROWS, updates)


PLACES = {  # forms of places: elements, columns, windows, several indices, batches
    "elements": (lambda x, i, u: x.at[i, i % 5].add(u[:, 0]), (BASE, np.abs(ROWS) % 6, UPDATES)),
    "columns": (lambda x, i, u: x.at[:, i].max(u), (BASE, np.array([1, 1, 4]), UPDATES[:6, :3])),
    "many of one": (lambda x, i, u: x.at[i].add(u), (np.zeros(3, "f"), LONG, jnp.sin(LONG * 1.0))),
    "most of one": (lambda x, i, u: x.at[i].add(u), (
        BASE[:, :1], np.repeat(np.array([2, 4, 5], "i"), [50, 3000, 7]),
        RNG.normal(size=(3057, 1)).astype("f"))),
    "most of one, wide": (lambda x, i, u: x.at[i].max(u), (
        np.zeros((3, 130), "f"), np.repeat(np.array([0, 1], "i"), [300, 500]),
        RNG.normal(size=(800, 130)).astype("f"))),
    "no base": (lambda i, u: jnp.zeros((7, 5)).at[i].add(u), (ROWS, UPDATES)),
    "wide rows": (lambda x, i, u: x.at[i].add(u), (
        RNG.normal(size=(4, 300)).astype("f"), LONG[:20], RNG.normal(size=(20, 300)).astype("f"))),
    "clipped": (lambda x, i, u: x.at[i].add(u, mode="clip"), (BASE, ROWS, UPDATES)),
    "64 bits": (lambda x, i, u: x.at[i].add(u), (BASE, ROWS.astype("i8") + 2**40, UPDATES)),
    "gradient of an embedding": (ft.grad(lambda w, i: jnp.sin(w[i]).sum()), (BASE, LONG % 6)),
    "gradient of take_along_axis": (
        ft.grad(lambda x, i: (jnp.take_along_axis(x, i, 1) ** 2).sum()),
        (BASE, LONG[:30].reshape(6, 5))),
    "of every sample": (ft.vmap(ft.grad(lambda w, i: jnp.sin(w[i]).sum()), (None, 0)),
                        (BASE, LONG[:12].reshape(3, 4))),
    "window": (lambda x, i, u: lax.scatter_add(
        x, i, u, lax.ScatterDimensionNumbers((1, 2), (), (0, 1))),
        (BASE, np.array([[1, 2], [2, 1], [5, 0]]), RNG.normal(size=(3, 2, 3)).astype("f")))}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", PLACES)
def test_places_of_all_forms(name):
    fun, args = PLACES[name]
    with ft.config.deterministic():
        program = check(fun, *args)
    assert "folded" in kernels_of(program)
    assert not any("atomic" in text for text in program.sources)


def test_loops_have_no_atomic_operations():
    def repeated(x, i, u):
        return lax.fori_loop(0, 3, lambda _, y: y.at[i].add(u * y[0]), x)

    for width in (5, 500):  # in one kernel, and in several for each iteration
        base, updates = (RNG.normal(size=(n, width)).astype("f") for n in (6, 8))
        with ft.config.deterministic():
            program = check(repeated, base, np.abs(ROWS) % 6, updates)
        assert not any("atomic" in text for text in program.sources)


def test_atomic_operations_where_the_order_may_change():
    assert "folded" not in kernels_of(program_of(combined("add"), BASE, ROWS, UPDATES)[1])
    assert "folded" in kernels_of(program_of(combined("max"), BASE, ROWS, UPDATES)[1])


def test_places_of_one_update_each_need_no_order():
    def put(x, i, u):
        return x.at[i].add(u, unique_indices=True)

    with ft.config.deterministic():
        assert "folded" not in kernels_of(program_of(put, BASE, ROWS[:2], UPDATES[:2])[1])


def test_jit_compiles_for_the_setting():
    fun = ft.jit(lambda x, i, u: x.at[i].add(u))
    with ft.config.use_backend("triton"):
        plain = fun.lower(BASE, ROWS, UPDATES).compile().as_text()
        with ft.config.deterministic():
            ordered = fun.lower(BASE, ROWS, UPDATES).compile()
    assert "atomic_add" in plain and "atomic_add" not in ordered.as_text()
    np.testing.assert_allclose(ordered(BASE, ROWS % 6, UPDATES), fun(BASE, ROWS % 6, UPDATES), 1e-6)


def test_gradients_of_attention_have_no_atomic_operations():
    q = RNG.normal(size=(2, 128, 2, 64)).astype("f")

    def loss(q, k, v):
        weights = ft.nn.softmax(jnp.einsum("bqhd,bkhd->bhqk", q, k) / 8, -1)
        return (jnp.einsum("bhqk,bkhd->bqhd", weights, v).astype("float32") ** 2).sum()

    args = [jnp.asarray(q, "bfloat16")] * 3
    with ft.config.deterministic():
        _, program, _ = program_of(ft.grad(loss, (0, 1, 2)), *args)
    assert kernels_of(program)
    assert not any("atomic" in text for text in program.sources)
