"""NumPy's own functions called on arrays and tracers."""

import inspect

import numpy as np
import pytest
from reference import check, normal

import functrans as ft
import functrans.numpy as jnp
from functrans.core.errors import ArgumentError, FunctransError

X = normal(3, 4)
CALLS = {
    "sin": lambda x: np.sin(x),
    "operators": lambda x: np.add(x, 1) * np.multiply(2.0, x),
    "numpy_operand": lambda x: np.maximum(np.zeros(4, np.float32), x),
    "list_operand": lambda x: np.add(x, [1.0, 2.0, 3.0, 4.0]) * np.float32(1),
    "dtype": lambda x: np.add(x, x, dtype=np.float32),
    "sum": lambda x: np.sum(x, axis=0),
    "sum_keywords": lambda x: np.sum(x, axis=1, keepdims=True, dtype=np.float32),
    "positional": lambda x: np.sum(x, 1, None, None, True),
    "mean": lambda x: np.mean(x, axis=(0, 1)),
    "var": lambda x: np.var(x, ddof=1),
    "einsum": lambda x: np.einsum("ij,kj->ik", x, x),
    "dot": lambda x: np.dot(x, x.T if isinstance(x, np.ndarray) else np.transpose(x)),
    "matmul": lambda x: np.matmul(x, np.swapaxes(x, 0, 1)),
    "concatenate": lambda x: np.concatenate([x, X], axis=1),
    "stack": lambda x: np.stack((x, x), axis=-1),
    "where": lambda x: np.where(np.greater(x, 0), x, 0.5),
    "clip": lambda x: np.clip(x, -1, 1),
    "clip_names": lambda x: np.clip(x, a_min=-1, a_max=None),
    "reshape": lambda x: np.reshape(x, (4, 3)),
    "sort_kind": lambda x: np.sort(x, axis=0, kind="stable"),
    "sort_positional": lambda x: np.sort(x, 0, "stable"),
    "zeros_like": lambda x: np.zeros_like(x),
    "full_like": lambda x: np.full_like(x, 7, order="K", subok=True),
    "linspace": lambda x: np.linspace(x, 1.0, 3, axis=-1),
    "pad": lambda x: np.pad(x, 1, mode="edge"),
    "tensordot": lambda x: np.tensordot(x, x, axes=([0], [0])),
    "take": lambda x: np.take(x, np.array([1, 0]), axis=1),
    "cumsum": lambda x: np.cumsum(x, axis=0),
    "reduce": lambda x: np.add.reduce(x, axis=1, keepdims=True),
    "reduce_default": lambda x: np.maximum.reduce(x),
    "reduce_initial": lambda x: np.multiply.reduce(x, initial=2.0),
    "reduce_fold": lambda x: np.hypot.reduce(x, axis=None),
    "reduce_logaddexp": lambda x: np.logaddexp.reduce(x, axis=1),
    "accumulate": lambda x: np.add.accumulate(x, axis=1),
    "accumulate_max": lambda x: np.maximum.accumulate(x),
    "accumulate_fold": lambda x: np.subtract.accumulate(x, axis=1),
    "outer": lambda x: np.subtract.outer(x, x),
    "modf": lambda x: np.modf(x),
    "split": lambda x: np.split(x, 2, axis=1),
    "interp": lambda x: np.interp(x, np.arange(3), X[0, :3]),
    "broadcast_to": lambda x: np.broadcast_to(x, (2, 3, 4)),
    "allclose": lambda x: np.allclose(x, X),
    "meshgrid": lambda x: np.meshgrid(x[0], x[1], indexing="ij"),
    "diff": lambda x: np.diff(x, axis=0, append=0.0),
    "apply_along_axis": lambda x: np.apply_along_axis(np.cumsum, 0, x),
    "shape": lambda x: np.shape(x),
    "ndim": lambda x: np.ndim(x),
    "nan_to_num": lambda x: np.nan_to_num(x, copy=False, nan=1.0),
    "round": lambda x: np.round(x, decimals=1),
    "square_where_true": lambda x: np.square(x, where=True),
}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", CALLS)
def test_call(name):
    f = CALLS[name]
    expected = f(X)
    array = jnp.asarray(X)
    check(f(array), expected, dtype=name not in ("interp",))
    if name not in ("shape", "ndim"):
        check(ft.jit(f)(array), expected, dtype=name not in ("interp",))


def test_numpy_code_differentiates_unchanged():
    def loss(w):
        hidden = np.tanh(np.dot(w, X.T))
        return np.sum(np.where(hidden > 0, hidden, 0.1 * hidden) ** 2) + np.mean(np.exp(-w))

    def same(w):
        hidden = jnp.tanh(jnp.dot(w, X.T))
        return jnp.sum(jnp.where(hidden > 0, hidden, 0.1 * hidden) ** 2) + jnp.mean(jnp.exp(-w))

    w = jnp.asarray(normal(2, 4, seed=3))
    check(ft.grad(loss)(w), ft.grad(same)(w))
    check(ft.jit(ft.grad(loss))(w), ft.grad(same)(w))
    rows = jnp.asarray(normal(5, 2, 4))
    check(ft.vmap(ft.grad(loss))(rows), ft.vmap(ft.grad(same))(rows))


def test_results_are_arrays():
    assert isinstance(np.sin(jnp.ones(2)), ft.Array)
    assert isinstance(np.ones(2, np.float32) + jnp.ones(2), ft.Array)
    assert isinstance(np.sum(jnp.ones(2)), ft.Array)


def test_what_is_not_covered_under_a_trace_names_the_function():
    refused = {
        r"np\.add\.at writes.*x\.at\[index\]\.add": lambda x: np.add.at(x, 0, 1),
        r"np\.full_like with order=": lambda x: np.full_like(x, 1, order="F"),
        r"np\.isnat is not covered": np.isnat,
    }
    for message, f in refused.items():
        with pytest.raises(FunctransError, match=f"(?s){message}"):
            ft.jit(f)(jnp.ones(3))
        with pytest.raises(FunctransError, match=f"(?s){message}"):
            ft.grad(lambda x, f=f: jnp.sum(f(x)))(jnp.ones(3))


def test_ufuncs_with_where():
    """Where the condition is false the result is zero: NumPy leaves it undefined."""
    keep = np.array([[True], [False], [True]])
    for f in (lambda x, c: np.sin(x, where=c), lambda x, c: np.add(x, 1, where=c),
              lambda x, c: np.power(x, 2, where=c), lambda x, c: np.hypot(x, 3, where=c),
              lambda x, c: jnp.add(x, x, where=c), lambda x, c: jnp.maximum(x, 0, where=c),
              lambda x, c: jnp.negative(x, where=c, out=None), lambda x, c: jnp.exp(x, where=c)):
        full = f(X, True)
        for run in (f, ft.jit(f)):
            result = run(jnp.asarray(X), jnp.asarray(keep))
            check(result, np.where(keep, np.asarray(full), 0), dtype=False)


METHODS = {
    "reduce": lambda n, x: n.add.reduce(x, axis=1),
    "reduce_where": lambda n, x: n.maximum.reduce(x, axis=0, where=x > 0, initial=-5.0),
    "fold_where": lambda n, x: n.hypot.reduce(x, axis=(0, 1), where=x > 0, initial=0.0),
    "subtract": lambda n, x: n.subtract.reduce(x, axis=0, keepdims=True),
    "accumulate": lambda n, x: n.multiply.accumulate(x, axis=1),
    "reduceat": lambda n, x: n.add.reduceat(x, np.array([0, 2, 1, 3]), axis=1),
    "reduceat_max": lambda n, x: n.maximum.reduceat(x, np.array([0, 2, 1]), axis=0),
    "reduceat_fold": lambda n, x: n.subtract.reduceat(x, np.array([0, 2]), axis=1),
    "outer": lambda n, x: n.multiply.outer(x, x),
}


@pytest.mark.parametrize("name", METHODS)
def test_methods_of_ufuncs(name):
    f = METHODS[name]
    expected = f(np, X)
    for space in (np, jnp) if hasattr(jnp.hypot, "reduce") or name != "fold_where" else (np,):
        check(f(space, jnp.asarray(X)), expected, dtype=False)
        check(ft.jit(lambda x, space=space: f(space, x))(jnp.asarray(X)), expected, dtype=False)


def test_reduceat_at_traced_indices():
    at = np.array([3, 1, 1, 2])
    for ours, theirs in ((jnp.add, np.add), (jnp.minimum, np.minimum),
                         (jnp.multiply, np.multiply)):
        check(ft.jit(lambda x, i, u=ours: u.reduceat(x, i, axis=1))(X, at),
              theirs.reduceat(X, at, axis=1), dtype=False)
    check(ft.jit(jnp.logical_or.reduceat)(X > 0, at % 3), np.logical_or.reduceat(X > 0, at % 3))


def test_ufuncs_at():
    for name in ("add", "subtract", "multiply", "maximum", "logaddexp"):
        x, i, v = np.arange(1.0, 5.0, dtype=np.float32), np.array([0, 2, 2, 3]), X[0]
        expected = x.copy()
        getattr(np, name).at(expected, i, v)
        function = getattr(jnp, name)
        check(function.at(x, i, v, inplace=False), expected)
        check(ft.jit(lambda *a, u=function: u.at(*a, inplace=False))(x, i, v), expected)
    with pytest.raises(ArgumentError, match=r"inplace=False"):
        jnp.add.at(jnp.ones(3), 0, 1.0)


def test_readers_get_values(tmp_path):
    x = jnp.arange(3)
    assert np.array2string(x) == "[0 1 2]"
    np.save(tmp_path / "x.npy", x)
    np.savez(tmp_path / "y.npz", x=x)
    assert np.load(tmp_path / "x.npy").tolist() == [0, 1, 2]
    np.testing.assert_array_equal(x, np.arange(3))
    np.testing.assert_allclose(np.asarray(x, np.float64), np.arange(3))


def test_every_name_of_numpy_has_its_arguments():
    """Names that both have agree on their leading parameters, so that positions mean the same."""
    different = {}
    for name in jnp.__all__:
        theirs = getattr(np, name, None)
        ours = getattr(jnp, name)
        if not inspect.isfunction(ours) or not callable(theirs) or isinstance(theirs, np.ufunc):
            continue
        try:
            first = list(inspect.signature(theirs).parameters.values())
        except ValueError:
            continue
        second = list(inspect.signature(ours).parameters.values())
        for a, b in zip(first[:2], second[:2], strict=False):
            if a.name != b.name and b.kind is not inspect.Parameter.POSITIONAL_ONLY:
                different[name] = (a.name, b.name)
    # NumPy's own alternatives of one name, or names of its C functions
    allowed = {"arange", "astype", "broadcast_shapes", "clip", "einsum", "einsum_path", "iinfo",
               "issubdtype", "promote_types", "result_type", "vectorize", "where"}
    assert set(different) <= allowed, different
