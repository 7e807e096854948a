"""Checking derivatives numerically, for the tests of this package and of its users."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functrans.core import dtypes
from functrans.core.errors import ArgumentError, publish
from functrans.core.tree import tree_flatten, tree_leaves, tree_map, tree_unflatten
from functrans.transforms.forward import jvp
from functrans.transforms.reverse import vjp

__all__ = ["check_grads", "check_jvp", "check_vjp"]

_TOLERANCE = {"float16": 5e-2, "bfloat16": 1e-1, "float32": 6e-3, "float64": 1e-5,
              "complex32": 5e-2, "complex64": 6e-3, "complex128": 1e-5}


def check_grads(fun: Callable[..., Any], args: Sequence[Any], order: int,
                modes: Sequence[str] = ("fwd", "rev"), atol: float | None = None,
                rtol: float | None = None, eps: float | None = None) -> None:
    """Compare the derivatives of `fun` at `args` with finite differences, up to `order`.

    `modes` says which modes to check at each order; `eps` is the step. Arguments are floating or
    complex; float64 gives the sharpest test. Raises AssertionError where they differ.
    Source: central differences; the dot-product test of reverse mode.

    >>> import functrans as ft
    >>> check_grads(ft.numpy.sin, (0.3,), order=2)
    """
    unknown = set(modes) - {"fwd", "rev"}
    if unknown:
        raise ArgumentError(f"check_grads: unknown modes {sorted(unknown)}.",
                            fix='modes=("fwd", "rev")')
    args = tuple(args)
    for mode in modes:
        if mode == "fwd":
            check_jvp(fun, args, atol, rtol, eps)
            if order > 1:
                check_grads(lambda *xs: jvp(fun, xs, _like(xs, 7))[1], args, order - 1, modes,
                            atol, rtol, eps)
        else:
            check_vjp(fun, args, atol, rtol, eps)
            if order > 1:
                def pullback(*xs: Any) -> Any:
                    out, pull = vjp(fun, *xs)
                    return pull(_like(out, 11))
                check_grads(pullback, args, order - 1, modes, atol, rtol, eps)


def check_jvp(fun: Callable[..., Any], args: Sequence[Any], atol: float | None = None,
              rtol: float | None = None, eps: float | None = None,
              rule: Callable[..., Any] | None = None) -> None:
    """Compare the jvp of `fun` in a random direction with a central difference.

    `rule(primals, tangents)` gives the tangents to be compared, those of `jvp` by default.
    Raises AssertionError where they differ.

    >>> from functrans.test_util import check_jvp
    >>> check_jvp(jnp.sin, (jnp.float64(0.5),))
    """
    tangents = _like(args, 3)
    tangent = rule(tuple(args), tuple(tangents)) if rule is not None else \
        jvp(fun, tuple(args), tuple(tangents))[1]
    _compare(tangent, numerical_jvp(fun, args, tangents, eps), atol, rtol, "jvp")


def check_vjp(fun: Callable[..., Any], args: Sequence[Any], atol: float | None = None,
              rtol: float | None = None, eps: float | None = None,
              rule: Callable[..., Any] | None = None) -> None:
    """Compare <vjp ct, t> with <ct, central difference in t> for random ct and t.

    `rule(*args)` gives the results and the function of cotangents, those of `vjp` by default.
    Raises AssertionError where they differ.

    >>> from functrans.test_util import check_vjp
    >>> check_vjp(lambda x, y: (x * y).sum(), (jnp.float64(0.5), jnp.ones(2, "float64")))
    """
    if rule is None:
        out, pull = vjp(fun, *args)
    else:
        out, pull = rule(*args)
    ct = _like(out, 5)
    tangents = _like(args, 9)
    pulled = pull(ct)
    numeric = numerical_jvp(fun, args, tangents, eps)
    _compare(_inner(pulled, tangents), _inner(ct, numeric), atol, rtol, "vjp",
             like=tree_leaves((out, args)))


def numerical_jvp(fun: Callable[..., Any], args: Sequence[Any], tangents: Sequence[Any],
                  eps: float | None = None) -> Any:
    """(f(x + eps t) - f(x - eps t)) / 2 eps, leaf by leaf, in float64."""
    if eps is None:
        wide = all(_name(x) in ("float64", "complex128") for x in tree_leaves(tuple(args)))
        eps = 1e-5 if wide else 1e-2

    def moved(sign: float) -> list[np.ndarray[Any, Any]]:
        point = tree_map(lambda x, t: _step(x, t, sign * eps), tuple(args), tuple(tangents))
        leaves, _ = tree_flatten(fun(*point))
        return [_wide(leaf) for leaf in leaves]

    _, tree = tree_flatten(fun(*args))
    return tree_unflatten(tree, [(p - m) / (2 * eps) for p, m in
                                 zip(moved(1.0), moved(-1.0), strict=True)])


def _step(x: Any, t: Any, step: float) -> Any:
    if not _is_inexact(x):
        return x
    return (_wide(x) + step * _wide(t)).astype(np.asarray(x).dtype)


def _wide(x: Any) -> np.ndarray[Any, Any]:
    values = np.asarray(x)
    return values.astype(np.complex128 if dtypes.kind(values.dtype) == "c" else np.float64)


def _name(x: Any) -> str:
    return dtypes.dtype_of(x).name


def _is_inexact(x: Any) -> bool:
    return dtypes.kind(dtypes.dtype_of(x)) in "fc"


def _like(tree: Any, seed: int) -> Any:
    """Random tangents for a tree of arrays, float0 for integers."""
    rng = np.random.default_rng(seed)

    def draw(x: Any) -> Any:
        shape = np.shape(x)
        if not _is_inexact(x):
            return np.zeros(shape, dtypes.float0)
        values = np.asarray(rng.standard_normal(shape))
        if dtypes.kind(dtypes.dtype_of(x)) == "c":
            values = values + 1j * rng.standard_normal(shape)
        return values.astype(dtypes.dtype_of(x))

    return tree_map(draw, tree)


def _inner(x: Any, y: Any) -> Any:
    """The sum of products of all leaves; real part, without conjugation, for complex ones."""
    pairs = zip(tree_leaves(x), tree_leaves(y), strict=True)
    return np.asarray(sum(float(np.sum(_wide(a) * _wide(b)).real) for a, b in pairs
                          if np.asarray(a).dtype != dtypes.float0
                          and np.asarray(b).dtype != dtypes.float0))


def _compare(actual: Any, expected: Any, atol: float | None, rtol: float | None, what: str,
             like: Sequence[Any] | None = None) -> None:
    for a, e in zip(tree_leaves(actual), tree_leaves(expected), strict=True):
        if np.asarray(a).dtype == dtypes.float0:
            continue
        names = [_name(x) for x in (like if like is not None else [a])]
        tolerance = max((_TOLERANCE.get(n, 0.0) for n in names), default=1e-5)
        np.testing.assert_allclose(
            _wide(a), _wide(e), atol=tolerance if atol is None else atol,
            rtol=tolerance if rtol is None else rtol, err_msg=f"{what} and finite differences")

publish(globals(), __all__)
