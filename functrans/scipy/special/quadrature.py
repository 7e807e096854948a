"""Nodes and weights of Gaussian quadratures."""

from __future__ import annotations

import math
import operator
from typing import Any, Final

import numpy as np

from functrans import lax
from functrans import numpy as jnp
from functrans.core.dtypes import default_float
from functrans.core.errors import ArgumentError
from functrans.core.source import user_source
from functrans.scipy.special.common import operands
from functrans.typing import Array, ArrayLike

__all__ = ["roots_chebyt", "roots_chebyu", "roots_gegenbauer", "roots_genlaguerre",
           "roots_hermite", "roots_hermitenorm", "roots_jacobi", "roots_laguerre",
           "roots_legendre"]

_NEWTON: Final = 2  # eigenvalues are within 1e-13, which the first step squares


def _degree(name: str, n: Any) -> int:
    try:
        degree = operator.index(n)
    except TypeError:
        degree = 0
    if degree < 1:
        raise ArgumentError(f"scipy.special.{name}: n is {n!r}.", where=user_source(),
                            why="it is the number of nodes, a whole number from 1 on.", fix="n=8")
    return degree


def _gauss(centres: Array, squares: Array, total: Array, mu: bool, dtype: Any) -> tuple[Array, ...]:
    """The rule of the orthogonal polynomials with these coefficients, of centres [n].

    p_(k+1) = (x - centres[k]) p_k - squares[k] p_(k-1), with squares [n - 1] for k from 1 on. Nodes
    are eigenvalues (Golub and Welsch 1969) after Newton's method, whose last step has the
    derivatives of the implicit function theorem; a weight is the sum of the weights over that of
    the squares of the orthonormal polynomials, of which none cancel.
    """
    n = centres.shape[0]
    beside = lax.sqrt(squares)
    matrix = jnp.diag(centres) + jnp.diag(beside, 1) + jnp.diag(beside, -1)
    x = lax.stop_gradient(jnp.linalg.eigvalsh(matrix))
    scale = jnp.concatenate([beside, jnp.ones(1, beside.dtype)])

    def polynomials(x: Array) -> tuple[Array, Array, Array]:
        """The polynomial of degree n and its slope, and the sum of squares of those below."""
        def step(carry: Any, now: Any) -> Any:
            p, before, slope, slope_before, squared = carry
            centre, left, right = now
            after = ((x - centre) * p - left * before) / right
            slope_after = (p + (x - centre) * slope - left * slope_before) / right
            return (after, p, slope_after, slope, squared + p * p), None

        zero, one = jnp.zeros_like(x), jnp.ones_like(x)
        left = jnp.concatenate([jnp.zeros(1, beside.dtype), beside])
        (p, _, slope, _, squared), _ = lax.scan(step, (one, zero, zero, zero, zero),
                                                (centres, left, scale))
        return p, slope, squared

    for _ in range(_NEWTON):
        p, slope, _ = polynomials(x)
        x = x - p / lax.stop_gradient(slope) if n > 1 else centres
    weights = total / polynomials(x)[2]
    found = tuple(lax.convert_element_type(r, dtype) for r in (x, weights, total))
    return found if mu else found[:2]


def _counts(n: int) -> Array:
    return jnp.arange(n, dtype=np.float64)


def _jacobi(n: int, a: Array, b: Array, mu: bool, dtype: Any) -> tuple[Array, ...]:
    """The rule of (1 - x)^a (1 + x)^b on [-1, 1] (DLMF 18.9.2)."""
    k, both = _counts(n), a + b
    twice = 2.0 * k + both
    first = jnp.arange(n) == 0
    # of k = 0 the quotient has a common factor
    centres = jnp.where(first, (b - a) / (both + 2.0), (b * b - a * a) / jnp.where(
        first, 1.0, twice * (twice + 2.0)))
    j, t = k[1:], twice[1:]
    second = jnp.arange(1, n) == 1
    squares = 4.0 * j * (j + a) * (j + b) * jnp.where(second, 1.0, j + both) / (
        t * t * (t + 1.0) * jnp.where(second, 1.0, t - 1.0))
    total = lax.exp((both + 1.0) * math.log(2.0) + lax.lgamma(a + 1.0) + lax.lgamma(b + 1.0)
                    - lax.lgamma(both + 2.0))
    return _gauss(centres, squares, total, mu, dtype)


def _parameters(name: str, *values: ArrayLike) -> tuple[list[Array], Any]:
    xs = operands(name, *values)
    return [lax.convert_element_type(x, np.float64) for x in xs], xs[0].dtype


def _zero() -> Array:
    return jnp.zeros((), np.float64)


def roots_legendre(n: int, mu: bool = False) -> tuple[Array, ...]:
    """Nodes [n] and weights [n] of the Gauss-Legendre rule: for integrals over [-1, 1].

    With `mu` the sum of the weights as well. Raises ArgumentError for n that is no whole number
    from 1 on, as all rules do.

    >>> import functrans as ft
    >>> x, w = ft.scipy.special.roots_legendre(3)
    >>> [round(float(v), 4) for v in (x[0], x[2], (w * x**4).sum())]
    [-0.7746, 0.7746, 0.4]
    """
    return _jacobi(_degree("roots_legendre", n), _zero(), _zero(), mu, default_float())


def roots_jacobi(n: int, alpha: ArrayLike, beta: ArrayLike, mu: bool = False) -> tuple[Array, ...]:
    """Nodes and weights for integrals over [-1, 1] of (1 - x)^alpha (1 + x)^beta f(x).

    alpha and beta, numbers above -1, have derivatives.

    >>> import functrans as ft
    >>> x, w = ft.scipy.special.roots_jacobi(2, 0.5, 0.5)
    >>> [round(float(v), 4) for v in x]
    [-0.5, 0.5]
    """
    (a, b), dtype = _parameters("roots_jacobi", alpha, beta)
    return _jacobi(_degree("roots_jacobi", n), a, b, mu, dtype)


def roots_gegenbauer(n: int, alpha: ArrayLike, mu: bool = False) -> tuple[Array, ...]:
    """Nodes and weights for integrals over [-1, 1] of (1 - x^2)^(alpha - 1/2) f(x).

    >>> x, w = ft.scipy.special.roots_gegenbauer(2, 1.0)
    >>> x.round(4)
    Array([-0.5,  0.5], dtype=float32)
    """
    (a,), dtype = _parameters("roots_gegenbauer", alpha)
    return _jacobi(_degree("roots_gegenbauer", n), a - 0.5, a - 0.5, mu, dtype)


def roots_chebyt(n: int, mu: bool = False) -> tuple[Array, ...]:
    """Nodes and weights for integrals over [-1, 1] of f(x) / sqrt(1 - x^2).

    >>> import functrans as ft
    >>> [round(float(w), 4) for w in ft.scipy.special.roots_chebyt(2)[1]]
    [1.5708, 1.5708]
    """
    degree, dtype = _degree("roots_chebyt", n), default_float()
    x = np.cos(np.pi * (np.arange(degree, 0, -1) - 0.5) / degree)
    found = (x - x[::-1]) / 2, np.full(degree, np.pi / degree), np.float64(np.pi)
    return tuple(jnp.asarray(r, dtype) for r in found[:3 if mu else 2])


def roots_chebyu(n: int, mu: bool = False) -> tuple[Array, ...]:
    """Nodes and weights for integrals over [-1, 1] of f(x) sqrt(1 - x^2).

    >>> x, w = ft.scipy.special.roots_chebyu(2)
    >>> x.round(4)
    Array([-0.5,  0.5], dtype=float32)
    """
    degree, dtype = _degree("roots_chebyu", n), default_float()
    angle = np.pi * np.arange(degree, 0, -1) / (degree + 1)
    x = np.cos(angle)
    found = (x - x[::-1]) / 2, np.pi / (degree + 1) * np.sin(angle) ** 2, np.float64(np.pi / 2)
    return tuple(jnp.asarray(r, dtype) for r in found[:3 if mu else 2])


def roots_hermitenorm(n: int, mu: bool = False) -> tuple[Array, ...]:
    """Nodes and weights for integrals over all x of exp(-x^2 / 2) f(x), for n up to 300.

    >>> import functrans as ft
    >>> x, w = ft.scipy.special.roots_hermitenorm(4)
    >>> round(float((w * x**2).sum() / w.sum()), 4)
    1.0
    """
    return _hermite("roots_hermitenorm", n, 1.0, math.sqrt(2.0 * math.pi), mu)


def roots_hermite(n: int, mu: bool = False) -> tuple[Array, ...]:
    """Nodes and weights for integrals over all x of exp(-x^2) f(x), for n up to 300.

    >>> x, w = ft.scipy.special.roots_hermite(2)
    >>> x.round(4), w.round(4)
    (Array([-0.7071,  0.7071], dtype=float32), Array([0.8862, 0.8862], dtype=float32))
    """
    return _hermite("roots_hermite", n, 0.5, math.sqrt(math.pi), mu)


def _hermite(name: str, n: int, variance: float, total: float, mu: bool) -> tuple[Array, ...]:
    degree = _degree(name, n)
    _check_range(name, degree, 300)
    return _gauss(jnp.zeros(degree, np.float64), variance * _counts(degree)[1:],
                  jnp.full((), total, np.float64), mu, default_float())


def roots_laguerre(n: int, mu: bool = False) -> tuple[Array, ...]:
    """Nodes and weights for integrals over x > 0 of exp(-x) f(x), for n up to 150.

    >>> x, w = ft.scipy.special.roots_laguerre(2)
    >>> x.round(4)
    Array([0.5858, 3.4142], dtype=float32)
    """
    degree = _degree("roots_laguerre", n)
    _check_range("roots_laguerre", degree, 150)
    return _laguerre(degree, _zero(), mu, default_float())


def roots_genlaguerre(n: int, alpha: ArrayLike, mu: bool = False) -> tuple[Array, ...]:
    """Nodes and weights for integrals over x > 0 of x^alpha exp(-x) f(x), for n up to 150.

    >>> x, w = ft.scipy.special.roots_genlaguerre(2, 1.0)
    >>> x.round(4)
    Array([1.2679, 4.7321], dtype=float32)
    """
    (a,), dtype = _parameters("roots_genlaguerre", alpha)
    degree = _degree("roots_genlaguerre", n)
    _check_range("roots_genlaguerre", degree, 150)
    return _laguerre(degree, a, mu, dtype)


def _laguerre(n: int, a: Array, mu: bool, dtype: Any) -> tuple[Array, ...]:
    k = _counts(n)
    return _gauss(2.0 * k + a + 1.0, k[1:] * (k[1:] + a), lax.exp(lax.lgamma(a + 1.0)), mu, dtype)


def _check_range(name: str, n: int, most: int) -> None:
    if n > most:
        raise ArgumentError(f"scipy.special.{name}: n is {n}.", where=user_source(),
                            why=f"weights of more than {most} nodes are below the least float64.",
                            fix=f"n={most}")
