"""NumPy's own functions called on arrays and tracers."""

import inspect

import numpy as np
import pytest
from reference import check, normal

import functrans as ft
import functrans.numpy as fnp
from functrans.core.errors import ArgumentError, NotCoveredError

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


@pytest.mark.parametrize("name", CALLS)
def test_call(name):
    f = CALLS[name]
    expected = f(X)
    array = fnp.asarray(X)
    check(f(array), expected, dtype=name not in ("interp",))
    if name not in ("shape", "ndim"):
        check(ft.jit(f)(array), expected, dtype=name not in ("interp",))


def test_numpy_code_differentiates_unchanged():
    def loss(w):
        hidden = np.tanh(np.dot(w, X.T))
        return np.sum(np.where(hidden > 0, hidden, 0.1 * hidden) ** 2) + np.mean(np.exp(-w))

    def same(w):
        hidden = fnp.tanh(fnp.dot(w, X.T))
        return fnp.sum(fnp.where(hidden > 0, hidden, 0.1 * hidden) ** 2) + fnp.mean(fnp.exp(-w))

    w = fnp.asarray(normal(2, 4, seed=3))
    check(ft.grad(loss)(w), ft.grad(same)(w))
    check(ft.jit(ft.grad(loss))(w), ft.grad(same)(w))
    rows = fnp.asarray(normal(5, 2, 4))
    check(ft.vmap(ft.grad(loss))(rows), ft.vmap(ft.grad(same))(rows))


def test_results_are_arrays():
    assert isinstance(np.sin(fnp.ones(2)), ft.Array)
    assert isinstance(np.ones(2, np.float32) + fnp.ones(2), ft.Array)
    assert isinstance(np.sum(fnp.ones(2)), ft.Array)


def test_what_is_not_covered_names_the_function():
    x = fnp.ones(3)
    with pytest.raises(NotCoveredError, match=r"np\.spacing is not covered"):
        np.spacing(x)
    with pytest.raises(NotCoveredError, match=r"np\.roots is not covered"):
        np.roots(x)
    with pytest.raises(NotCoveredError, match=r"np\.add\.reduceat"):
        np.add.reduceat(x, [0, 1])
    with pytest.raises(NotCoveredError, match=r"np\.add\.at changes an array in place"):
        np.add.at(x, 0, 1)
    with pytest.raises(NotCoveredError, match=r"np\.sin with where="):
        np.sin(x, where=np.array([True, False, True]))
    with pytest.raises(NotCoveredError, match=r"np\.quantile with weights="):
        np.quantile(x, 0.5, weights=x, method="inverted_cdf")
    with pytest.raises(NotCoveredError, match=r"np\.full_like with order="):
        np.full_like(x, 1, order="F")


def test_out_is_refused():
    x, target = fnp.ones(3), np.zeros(3, np.float32)
    with pytest.raises(ArgumentError, match=r"np\.sin with out="):
        np.sin(x, out=target)
    with pytest.raises(ArgumentError, match=r"np\.sum with out="):
        np.sum(x, out=target)
    with pytest.raises(ArgumentError, match="out="):
        np.sum(x, 0, None, target)
    with pytest.raises(ArgumentError, match=r"np\.add with out="):
        target += x


def test_readers_get_values(tmp_path):
    x = fnp.arange(3)
    assert np.array2string(x) == "[0 1 2]"
    np.save(tmp_path / "x.npy", x)
    np.savez(tmp_path / "y.npz", x=x)
    assert np.load(tmp_path / "x.npy").tolist() == [0, 1, 2]
    np.testing.assert_array_equal(x, np.arange(3))
    np.testing.assert_allclose(np.asarray(x, np.float64), np.arange(3))


def test_every_name_of_numpy_has_its_arguments():
    """Names that both have agree on their leading parameters, so that positions mean the same."""
    different = {}
    for name in fnp.__all__:
        theirs = getattr(np, name, None)
        ours = getattr(fnp, name)
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
