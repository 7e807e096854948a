"""Partial fractions of filters, from coefficients that are known: computed in float64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from functrans import numpy as jnp
from functrans.core.dtypes import default_complex, default_float
from functrans.core.errors import ArgumentError
from functrans.core.source import user_source
from functrans.scipy.arguments import one_of
from functrans.scipy.signal.forms import known_numbers
from functrans.scipy.signal.prototypes import Values
from functrans.typing import Array, ArrayLike

_WAYS = ("max", "maximum", "min", "minimum", "avg", "mean")


def _chosen(name: str, rtype: str) -> Callable[[Values], Any]:
    one_of(f"signal.{name}", "rtype", rtype, _WAYS)
    return np.max if rtype.startswith("max") else np.min if rtype.startswith("min") else np.mean


def _grouped(roots: Values, tol: float, choose: Callable[[Values], Any]
             ) -> tuple[Values, list[int]]:
    """Roots that are near each other as one, and how many each stands for."""
    found, counts = [], []
    left = np.ones(len(roots), bool)
    for i, root in enumerate(roots):
        if left[i]:
            near = left & (np.abs(roots - root) <= tol)
            left &= ~near
            found.append(choose(roots[near]))
            counts.append(int(near.sum()))
    return np.array(found), counts


def _given(values: Values) -> Array:
    dtype = default_complex() if np.iscomplexobj(values) else default_float()
    return jnp.asarray(values).astype(dtype)


def unique_roots(p: ArrayLike, tol: float = 1e-3, rtype: str = "min") -> tuple[Array, Array]:
    """Roots without those within `tol` of another, and how many each stands for.

    It is the largest of them ("max"), the least ("min") or their mean ("avg").

    >>> import functrans as ft
    >>> roots, counts = ft.scipy.signal.unique_roots([1.0, 2.0, 1.0001])
    >>> roots.tolist(), counts.tolist()
    ([1.0, 2.0], [2, 1])
    """
    (roots,) = known_numbers("unique_roots", p)
    found, counts = _grouped(np.atleast_1d(roots), tol, _chosen("unique_roots", rtype))
    return _given(found), jnp.asarray(np.array(counts, np.int32))


def _shifted(c: Values, at: complex, count: int) -> Values:
    """The first coefficients of a polynomial in powers of x - at, the constant first."""
    found = []
    for _ in range(count):
        if not len(c):
            found.append(0j)
            continue
        quotient = np.zeros(len(c), complex)
        total = 0j
        for i, v in enumerate(c):
            total = total * at + v
            quotient[i] = total
        found.append(total)
        c = quotient[:-1]
    return np.array(found)


def _residues(b: Values, gain: complex, poles: Values, counts: list[int]) -> list[Values]:
    """Of each pole the residues of its powers 1, 2, ...: of the series around it."""
    found = []
    for i, (pole, count) in enumerate(zip(poles, counts)):
        others = np.concatenate([[0j][:0], *(np.full(n, p) for j, (p, n) in enumerate(zip(
            poles, counts)) if j != i)])
        top = _shifted(b.astype(complex), pole, count)
        bottom = _shifted(gain * np.atleast_1d(np.poly(others)).astype(complex), pole, count)
        series = np.zeros(count, complex)
        for k in range(count):
            series[k] = (top[k] - bottom[1:k + 1] @ series[:k][::-1]) / bottom[0]
        found.append(series[::-1])
    return found


def _coefficients(name: str, b: ArrayLike, a: ArrayLike) -> tuple[Values, Values]:
    top, bottom = (np.trim_zeros(np.atleast_1d(v), "f") for v in known_numbers(name, b, a))
    if not len(bottom):
        raise ArgumentError(f"functrans.scipy.signal.{name}: the denominator is 0.",
                            where=user_source())
    return top, bottom


def residue(b: ArrayLike, a: ArrayLike, tol: float = 1e-3, rtype: str = "avg"
            ) -> tuple[Array, Array, Array]:
    """Residues, poles and the polynomial of b(s) / a(s), its highest powers first.

    A pole within `tol` of others stands as often as they are, with the residues of growing powers.

    >>> import functrans as ft
    >>> r, p, k = ft.scipy.signal.residue([1.0, 3.0], [1.0, 3.0, 2.0])
    >>> r.real.tolist(), p.real.tolist(), k.tolist()
    ([2.0, -1.0], [-1.0, -2.0], [])
    """
    top, bottom = _coefficients("residue", b, a)
    k, top = (np.zeros(0), top) if len(top) < len(bottom) else np.polydiv(top, bottom)
    poles, counts = _grouped(np.roots(bottom).astype(complex), tol, _chosen("residue", rtype))
    order = np.argsort(np.abs(poles), kind="stable")
    poles, counts = poles[order], [counts[i] for i in order]
    r = _residues(top, bottom[0], poles, counts)
    return _given(np.concatenate([np.zeros(0, complex), *r])), _given(
        np.repeat(poles, counts)), _given(k)


def residuez(b: ArrayLike, a: ArrayLike, tol: float = 1e-3, rtype: str = "avg"
             ) -> tuple[Array, Array, Array]:
    """Residues, poles and the direct terms of b(z) / a(z) in powers of 1 / z; see `residue`.

    >>> import functrans as ft
    >>> r, p, k = ft.scipy.signal.residuez([1.0], [1.0, -0.5])
    >>> r.real.tolist(), p.real.tolist(), k.tolist()
    ([1.0], [0.5], [])
    """
    top, bottom = (np.atleast_1d(v) for v in known_numbers("residuez", b, a))
    if not len(bottom) or bottom[0] == 0:
        raise ArgumentError("functrans.scipy.signal.residuez: a[0] is 0.", where=user_source(),
                            why="the filter would answer before its input.")
    # polynomials in x = 1 / z, whose roots are 1 / poles
    top, bottom = (np.trim_zeros(v, "b")[::-1] for v in (top, bottom))
    k, top = (np.zeros(0), top) if len(top) < len(bottom) else np.polydiv(top, bottom)
    poles, counts = _grouped(np.roots(bottom[::-1]).astype(complex), tol,
                             _chosen("residuez", rtype))
    order = np.argsort(np.abs(poles), kind="stable")
    poles, counts = poles[order], [counts[i] for i in order]
    found = _residues(top, bottom[0], 1 / poles, counts)
    r = [v * (-p) ** np.arange(1, n + 1) for v, p, n in zip(found, poles, counts)]
    return _given(np.concatenate([np.zeros(0, complex), *r])), _given(
        np.repeat(poles, counts)), _given(np.asarray(k)[::-1])


def _joined(name: str, r: ArrayLike, p: ArrayLike, k: ArrayLike, tol: float, rtype: str,
            factor: Callable[[complex], list[complex]]) -> tuple[Values, Values, Values]:
    """The sum of fractions with powers of `factor` of each pole below, highest powers first."""
    residues, poles, direct = (np.atleast_1d(v) for v in known_numbers(name, r, p, k))
    if residues.shape != poles.shape:
        raise ArgumentError(f"functrans.scipy.signal.{name}: there are {residues.size} residues "
                            f"of {poles.size} poles.", where=user_source())
    choose = _chosen(name, rtype)
    blocks: list[list[int]] = []
    for i, pole in enumerate(poles):  # equal poles follow each other
        if blocks and abs(pole - poles[blocks[-1][0]]) <= tol:
            blocks[-1].append(i)
        else:
            blocks.append([i])
    factors = [np.array(factor(choose(poles[block]))) for block in blocks]

    def product(powers: list[int]) -> Values:
        total = np.ones(1)
        for v, power in zip(factors, powers):
            for _ in range(power):
                total = np.convolve(total, v)
        return total

    sizes = [len(block) for block in blocks]
    bottom, top = product(sizes), np.zeros(1)
    for i, block in enumerate(blocks):
        for power, at in enumerate(block, 1):
            left = [n - power * (j == i) for j, n in enumerate(sizes)]
            top = np.polyadd(top, residues[at] * product(left))
    return top, bottom, direct


def invres(r: ArrayLike, p: ArrayLike, k: ArrayLike, tol: float = 1e-3, rtype: str = "avg"
           ) -> tuple[Array, Array]:
    """The numerator and the denominator of the partial fractions that `residue` gives.

    >>> import functrans as ft
    >>> b, a = ft.scipy.signal.invres([2.0, -1.0], [-1.0, -2.0], [])
    >>> b.tolist(), a.tolist()
    ([1.0, 3.0], [1.0, 3.0, 2.0])
    """
    top, bottom, direct = _joined("invres", r, p, k, tol, rtype, lambda pole: [1, -pole])
    direct = np.trim_zeros(direct, "f")
    return _given(np.polyadd(top, np.convolve(direct, bottom)) if direct.size else top), \
        _given(bottom)


def invresz(r: ArrayLike, p: ArrayLike, k: ArrayLike, tol: float = 1e-3, rtype: str = "avg"
            ) -> tuple[Array, Array]:
    """The numerator and the denominator of the partial fractions that `residuez` gives.

    >>> import functrans as ft
    >>> b, a = ft.scipy.signal.invresz([1.0], [0.5], [])
    >>> b.tolist(), a.tolist()
    ([1.0], [1.0, -0.5])
    """
    top, bottom, direct = _joined("invresz", r, p, k, tol, rtype, lambda pole: [-pole, 1])
    direct = np.trim_zeros(direct, "b")[::-1]
    whole = np.polyadd(top, np.convolve(direct, bottom)) if direct.size else top
    return _given(np.trim_zeros(whole[::-1], "b")), _given(bottom[::-1])
