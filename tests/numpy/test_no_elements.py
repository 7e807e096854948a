"""Arrays without elements: NumPy's results, eagerly, compiled, and for a named size that is 0."""

import warnings

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp

NONE, ONE_EACH, INDICES = np.zeros((0, 10), "f"), np.zeros((0, 1), "i4"), np.zeros(0, "i4")
SOME = np.arange(30, dtype="f").reshape(3, 10)

FUNCTIONS = {  # of NumPy or functrans.numpy and arrays
    "take_along_axis": (lambda m, x, i: m.take_along_axis(x, i, 1), NONE, ONE_EACH),
    "by argsort": (lambda m, x: m.take_along_axis(x, m.argsort(x, axis=0), 0), NONE),
    "one of each row": (lambda m, x, i: x[m.arange(x.shape[0]), i], NONE, INDICES),
    "rows of none": (lambda m, x, i: x[i], NONE, INDICES),
    "no rows of some": (lambda m, x, i: x[i], SOME, INDICES),
    "take": (lambda m, x, i: m.take(x, i, axis=0), NONE, INDICES),
    "a column": (lambda m, x: x[:, 3], NONE),
    "columns": (lambda m, x: x[:, m.asarray([1, 2])], NONE),
    "reversed": (lambda m, x: x[::-1], NONE),
    "the rest": (lambda m, x: x[1:], NONE),
    "where": (lambda m, x: m.where(x > 0, x, 0), NONE),
    "sort": (lambda m, x: m.sort(x, axis=0), NONE),
    "argsort": (lambda m, x: m.argsort(x, axis=0), NONE),
    "cumsum": (lambda m, x: m.cumsum(x, axis=0), NONE),
    "sum": (lambda m, x: x.sum(0), NONE),
    "prod": (lambda m, x: x.prod(0), NONE),
    "any": (lambda m, x: (x > 0).any(), NONE),
    "argmax": (lambda m, x: x.argmax(1), NONE),
    "median": (lambda m, x: m.median(x, axis=1), NONE),
    "x @ x.T": (lambda m, x: x @ x.T, NONE),
    "x.T @ x": (lambda m, x: x.T @ x, NONE),
    "concatenate": (lambda m, x: m.concatenate([x, x], 0), NONE),
    "stack": (lambda m, x: m.stack([x, x]), NONE),
    "pad": (lambda m, x: m.pad(x, ((1, 1), (0, 0))), NONE),
    "repeat": (lambda m, x: m.repeat(x, 2, axis=0), NONE),
    "roll": (lambda m, x: m.roll(x, 1, axis=0), NONE),
    "einsum": (lambda m, x: m.einsum("ij,kj->ik", x, x), NONE),
    "tril": (lambda m, x: m.tril(x @ x.T), NONE),
    "searchsorted": (lambda m, x: m.searchsorted(m.arange(5.0), x[:, 0]), NONE),
    "var": (lambda m, x: x.var(1), NONE),
    "norm": (lambda m, x: m.linalg.norm(x, axis=1), NONE),
    "broadcast": (lambda m, x: m.broadcast_to(x[:, None], (x.shape[0], 4, 10)), NONE),
    "interp": (lambda m, x: m.interp(x[:, 0], m.arange(4.0), m.arange(4.0)), NONE),
    "reshape": (lambda m, x: x.reshape(x.shape[0], 5, 2), NONE),
}


@pytest.mark.one_in(3)
@pytest.mark.parametrize("backend", ["auto", "triton"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_results_are_those_of_numpy(name, backend):
    fun, *arrays = FUNCTIONS[name]
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        expected = fun(np, *arrays)
    names = tuple({0: "B"} if a.shape[0] == 0 else None for a in arrays)
    some = [np.ones((3, *a.shape[1:]), a.dtype) if a.shape[0] == 0 else a for a in arrays]
    with ft.config.use_backend(backend):
        named = ft.jit(lambda *args: fun(jnp, *args), dynamic_shapes=names)
        named(*some)
        found = [fun(jnp, *map(jnp.asarray, arrays)), named(*arrays),
                 ft.jit(lambda *args: fun(jnp, *args))(*arrays)]
    for y in found:
        assert y.shape == expected.shape
        np.testing.assert_allclose(y, expected)


@pytest.mark.parametrize("name", ["take_along_axis", "one of each row", "sort", "cumsum", "median",
                                  "pad", "einsum", "var", "reversed"])
def test_gradients_have_no_elements(name):
    fun, x, *rest = FUNCTIONS[name]
    gradient = ft.jit(ft.grad(lambda x: (fun(jnp, x, *rest) ** 2).sum()))(x)
    assert gradient.shape == x.shape


def summed(x):
    return ft.lax.fori_loop(0, x.shape[0], lambda i, c: c + x[i].sum(), jnp.float32(0))


LOOPS = {  # over the rows of an array, of which there may be none
    "fori_loop": summed,
    "its gradient": ft.grad(summed),
    "while_loop": lambda x: ft.lax.while_loop(
        lambda c: c[0] < x.shape[0], lambda c: (c[0] + 1, c[1] + x[c[0], 2]),
        (0, jnp.float32(0)))[1],
    "set": lambda x: ft.lax.fori_loop(0, x.shape[0], lambda i, y: y.at[i].set(x[i] * 2), x),
    "add": lambda x: ft.lax.fori_loop(0, x.shape[0], lambda i, y: y.at[i, 3].add(1.0), x),
    "apply": lambda x: ft.lax.fori_loop(0, x.shape[0], lambda i, y: y.at[i].apply(jnp.sin), x),
    "convolutions": lambda x: ft.lax.conv_general_dilated(
        x[:, None], jnp.ones((2, 1, 3), "float32"), (1,), "SAME"),
}


@pytest.mark.one_in(3)
@pytest.mark.parametrize("backend", ["auto", "triton"])
@pytest.mark.parametrize("name", LOOPS)
def test_loops_over_no_rows(name, backend):
    fun = LOOPS[name]
    with ft.config.use_backend("reference"):
        expected = [jnp.asarray(ft.jit(fun)(np.ones((n, 10), "f"))) for n in (3, 0, 1)]
    with ft.config.use_backend(backend):
        run = ft.jit(fun, dynamic_shapes=({0: "B"},))
        for n, e in zip((3, 0, 1), expected, strict=True):
            y = run(np.ones((n, 10), "f"))
            assert y.shape == e.shape
            np.testing.assert_allclose(y, e, rtol=1e-6)
