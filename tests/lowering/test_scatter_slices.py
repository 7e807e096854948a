"""Scatters on threads: slices of the result, each of which takes its elements in order."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp

ROWS, TARGETS = 30_000, 37
rng = np.random.default_rng(0)
index = rng.integers(-3, TARGETS + 3, ROWS).astype(np.int32)


def on_threads(f, *args):
    """The results of three calls on each number of threads: how a loop runs is learned."""
    jitted = ft.jit(f)
    results = []
    for count in (1, 2, 3, 16):  # on 16 rows are listed from the first run on
        with ft.config.threads(count=count):
            results += [np.asarray(jitted(*args)) for _ in range(3)]
    return results


@pytest.mark.parametrize("row", [(), (1,), (3,), (8,), (16,), (20,), (2, 3)], ids=str)
def test_sums_have_the_same_bits_on_any_number_of_threads(row):
    x = rng.standard_normal((ROWS, *row)).astype(np.float32)
    start = rng.standard_normal((TARGETS, *row)).astype(np.float32)

    def f(start, x, i):
        return start.at[i].add(jnp.tanh(x), mode="drop")

    first, *others = on_threads(f, start, x, index)
    for other in others:
        assert other.tobytes() == first.tobytes()
    kept = (index >= -TARGETS) & (index < TARGETS)
    expected = start.astype(np.float64)
    np.add.at(expected, index[kept], np.tanh(x[kept].astype(np.float64)))
    np.testing.assert_allclose(first, expected, 1e-4, 1e-3)


@pytest.mark.parametrize("op", ["min", "max", "multiply"])
def test_other_operations(op):
    x = rng.uniform(0.9, 1.1, (ROWS, 4)).astype(np.float32)
    i = np.abs(index) % TARGETS
    results = on_threads(lambda x, i: getattr(jnp.ones((TARGETS, 4)).at[i], op)(x), x, i)
    assert len({r.tobytes() for r in results}) == 1
    ufunc = {"min": np.minimum, "max": np.maximum, "multiply": np.multiply}[op]
    expected = np.ones((TARGETS, 4))
    ufunc.at(expected, i, x.astype(np.float64))
    np.testing.assert_allclose(results[0], expected, 2e-3)


ORDERS = {
    "in order": np.sort(np.abs(index) % TARGETS),
    "in order, dropped at the end": np.sort(index),
    "one place": np.full(ROWS, 5, np.int32),
    "none kept": np.full(ROWS, TARGETS, np.int32),
    "one row out of order": np.append(np.sort(np.abs(index[1:]) % TARGETS), np.int32(0)),
    "long": rng.integers(-(2**40), 2**40, ROWS) * (rng.random(ROWS) < 0.3)
            + rng.integers(0, TARGETS, ROWS),
}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("op", ["add", "set"])
def test_rows_in_any_order(order, op):
    """Rows that are in order are not listed, and dropped ones are in no list."""
    i = ORDERS[order]
    x = rng.standard_normal((ROWS, 3)).astype(np.float32)
    results = on_threads(lambda x, i: getattr(jnp.ones((TARGETS, 3)).at[i], op)(
        jnp.exp(x), mode="drop"), x, i)
    assert len({r.tobytes() for r in results}) == 1
    kept = (i >= -TARGETS) & (i < TARGETS)
    values = np.exp(x[kept].astype(np.float64))
    expected = np.ones((TARGETS, 3))
    if op == "add":
        np.add.at(expected, i[kept], values)
    else:
        for place, value in zip(i[kept], values):
            expected[place] = value
    np.testing.assert_allclose(results[0], expected, 1e-4)


@pytest.mark.parametrize("rows", [1024, 15360, 15361, 20000])
def test_any_number_of_rows(rows):
    """Sizes that only the call knows: few rows are walked, many listed."""
    f = ft.jit(lambda x, i: ft.ops.segment_sum(x * 2, i, TARGETS),
               dynamic_shapes={"x": {0: "n"}, "i": {0: "n"}})
    i = np.abs(index[:rows]) % TARGETS
    x = rng.standard_normal((rows, 2)).astype(np.float32)
    results = []
    for count in (1, 16):
        with ft.config.threads(count=count):
            results += [np.asarray(f(x, i)) for _ in range(3)]
    assert len({r.tobytes() for r in results}) == 1
    expected = np.zeros((TARGETS, 2))
    np.add.at(expected, i, 2 * x.astype(np.float64))
    np.testing.assert_allclose(results[0], expected, 1e-3, 1e-3)


def test_long_scatters_have_lists_and_short_ones_have_none():
    for rows, width, has in ((ROWS, (), True), (ROWS, (3,), True), (ROWS, (64,), True),
                             (1000, (64,), False)):
        x, i = ft.ShapeDtypeStruct((rows, *width), "float32"), ft.ShapeDtypeStruct((rows,), "int32")
        text = ft.lower(lambda x, i: ft.ops.segment_sum(jnp.exp(x), i, TARGETS),
                        x, i).compile().as_text()
        assert ("_listed" in text) == has


def test_places_that_overlap_in_part_are_combined_in_order():
    """Windows begin at any place: those of two rows may share some elements only."""
    x = rng.standard_normal((ROWS, 8)).astype(np.float32)
    i = rng.integers(0, TARGETS - 8, ROWS).astype(np.int32)

    def f(x, i):
        return jnp.zeros(TARGETS).at[i[:, None] + jnp.arange(8)].add(x)

    results = on_threads(f, x, i)
    assert len({r.tobytes() for r in results}) == 1
    expected = np.zeros(TARGETS)
    np.add.at(expected, i[:, None] + np.arange(8), x.astype(np.float64))
    np.testing.assert_allclose(results[0], expected, 1e-3, 1e-2)


def test_segment_sums_and_gradients_of_gathers_run_on_threads():
    i = ft.ShapeDtypeStruct((ROWS,), "int32")
    rows, table = (ft.ShapeDtypeStruct((n, 8), "float32") for n in (ROWS, TARGETS))
    for f, x in ((lambda x, i: ft.ops.segment_sum(jnp.exp(x), i, TARGETS), rows),
                 (ft.grad(lambda x, i: jnp.sin(x[i]).sum()), table)):
        abouts = [k.about for k in ft.explain(f, x, i, target="cpu").kernels]
        assert not any("in one thread" in about for about in abouts)


def test_what_is_scattered_is_computed_in_vectors():
    """A scatter takes an element at a time: functions and choices are not made there."""
    rng = np.random.default_rng(0)
    image = rng.standard_normal((6, 7))
    i, j = rng.integers(-3, 9, (2, 500)).astype("i")
    w = rng.standard_normal(500)

    def fun(xp, image, i, j, w, add):
        value = xp.where(w > 0, xp.exp(w), 2 * w + 1)
        return add(image, (xp.clip(i, 0, 5), xp.clip(j, 0, 6)), value)

    def added(image, places, value):
        image = image.copy()
        np.add.at(image, places, value)
        return image

    run = ft.jit(lambda *args: fun(jnp, *args, lambda x, at, y: x.at[at].add(y)))
    found = run(image, i, j, w)
    np.testing.assert_allclose(found, fun(np, image, i, j, w, added), rtol=1e-12)
    kernels = ft.explain(run, image, i, j, w, target="cpu")
    (scatter,) = [k for k in kernels.kernels if "one element at a time" in k.about]
    text = kernels.source(scatter.name)
    assert "exp" not in text
    assert "select" not in text


def test_what_is_scattered_in_rows_stays_with_it():
    """Rows go to places in order: those are vectors, and need no memory in between."""
    def fun(x, i):
        return ft.ops.segment_sum(jnp.exp(x) * 2 + 1, i, num_segments=50)

    x, i = np.ones((500, 32), "f"), np.arange(500, dtype="i") % 50
    (*_, scatter) = ft.explain(fun, x, i, target="cpu").kernels
    assert "exp" in ft.explain(fun, x, i, target="cpu").source(scatter.name)
    np.testing.assert_allclose(ft.jit(fun)(x, i), 10 * np.full((50, 32), 2 * np.e + 1), rtol=1e-6)


@pytest.mark.parametrize("method", ["add", "max", "set"])
@pytest.mark.parametrize("mode", ["drop", "promise_in_bounds"])
def test_far_places_are_fetched_ahead(method, mode):
    """Also where the loop is in pieces, as values are joined."""
    size = 1 << 18
    rng = np.random.default_rng(0)
    beyond = 5 if mode == "drop" else 0
    at = rng.integers(-size - beyond if beyond else 0, size + beyond, 1000).astype("int32")
    values = rng.normal(size=1000).astype("float32")

    def f(at, first, second):
        place = jnp.zeros(size, "float32").at[at]
        return getattr(place, method)(jnp.concatenate([first, jnp.exp(second)]), mode=mode)

    joined = np.concatenate([values[:700], np.asarray(jnp.exp(values[700:]))])
    to = np.where(at < 0, at + size, at)
    inside = (to >= 0) & (to < size)
    expected = np.zeros(size, "float32")
    if method == "set":
        expected[to[inside]] = joined[inside]
    else:
        {"add": np.add, "max": np.maximum}[method].at(expected, to[inside], joined[inside])
    args = [jnp.asarray(x) for x in (at, values[:700], values[700:])]
    explained = ft.explain(f, *args, target="cpu")
    sources = [explained.source(k.name) for k in explained.kernels]
    assert any("__builtin_prefetch" in text for text in sources)
    for count in (1, 2):
        with ft.config.threads(count=count):
            np.testing.assert_allclose(ft.jit(f)(*args), expected, 1e-6)
