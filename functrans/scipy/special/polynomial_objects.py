"""Orthogonal polynomials as objects with coefficients, nodes and weights, and their older names."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functrans import numpy as jnp
from functrans.core.dtypes import default_dtypes
from functrans.core.errors import ArgumentError
from functrans.core.source import user_source
from functrans.scipy.arguments import known_size
from functrans.scipy.special.more_functions import (
    roots_chebyc,
    roots_chebys,
    roots_sh_chebyt,
    roots_sh_chebyu,
    roots_sh_jacobi,
    roots_sh_legendre,
)
from functrans.scipy.special.more_polynomials import (
    eval_chebyc,
    eval_chebys,
    eval_sh_chebyt,
    eval_sh_chebyu,
    eval_sh_jacobi,
    eval_sh_legendre,
)
from functrans.scipy.special.orthogonal import (
    eval_chebyt,
    eval_chebyu,
    eval_gegenbauer,
    eval_genlaguerre,
    eval_hermite,
    eval_hermitenorm,
    eval_jacobi,
    eval_laguerre,
    eval_legendre,
)
from functrans.scipy.special.quadrature import (
    roots_chebyt,
    roots_chebyu,
    roots_gegenbauer,
    roots_genlaguerre,
    roots_hermite,
    roots_hermitenorm,
    roots_jacobi,
    roots_laguerre,
    roots_legendre,
)
from functrans.typing import Array, ArrayLike

__all__ = ["OrthogonalPolynomial", "assoc_laguerre", "c_roots", "cg_roots", "chebyc", "chebys",
           "chebyt", "chebyu", "gegenbauer", "genlaguerre", "h_roots", "he_roots", "hermite",
           "hermitenorm", "j_roots", "jacobi", "js_roots", "l_roots", "la_roots", "laguerre",
           "legendre", "p_roots", "ps_roots", "s_roots", "sh_chebyt", "sh_chebyu", "sh_jacobi",
           "sh_legendre", "t_roots", "ts_roots", "u_roots", "us_roots"]

c_roots = roots_chebyc
cg_roots = roots_gegenbauer
h_roots = roots_hermite
he_roots = roots_hermitenorm
j_roots = roots_jacobi
js_roots = roots_sh_jacobi
l_roots = roots_laguerre
la_roots = roots_genlaguerre
p_roots = roots_legendre
ps_roots = roots_sh_legendre
s_roots = roots_chebys
t_roots = roots_chebyt
ts_roots = roots_sh_chebyt
u_roots = roots_chebyu
us_roots = roots_sh_chebyu


class OrthogonalPolynomial(np.poly1d):
    """A polynomial of a family: numpy.poly1d with the rule of Gauss that it is of.

    `weights` is [n, 3] of nodes, weights and weights over the weight function, `weight_func` that
    function, `limits` the interval, and `normcoef` the root of the integral of the square. A call
    is by the recurrence of the family on arrays and tracers, with derivatives; arithmetic gives
    plain polynomials of NumPy's.
    """

    weights: Any
    weight_func: Callable[[Any], Any]
    limits: tuple[float, float]
    normcoef: float

    def __init__(self, nodes: Any, weights: Any, square: float, leading: float,
                 weight_func: Callable[[Any], Any], limits: tuple[float, float], monic: bool,
                 evaluate: Callable[[Any], Array], factor: float = 1.0) -> None:
        scale = factor / leading if monic else 1.0
        if monic:
            leading = factor
        super().__init__(np.poly1d(np.asarray(nodes), r=True).coeffs * leading)
        with np.errstate(all="ignore"):
            beside = np.asarray(weights) / np.asarray(weight_func(np.asarray(nodes)))
        self.__dict__["weights"] = np.stack([nodes, weights, beside], -1) if len(nodes) else \
            np.zeros((0,))
        self.__dict__["weight_func"] = weight_func
        self.__dict__["limits"] = limits
        self.__dict__["normcoef"] = math.sqrt(square) * abs(scale)
        self.__dict__["_evaluate"] = (lambda x: evaluate(x) * scale) if monic else evaluate

    def __call__(self, val: Any) -> Any:
        if isinstance(val, np.poly1d):
            return super().__call__(val)
        return self.__dict__["_evaluate"](val)


def _made(name: str, n: int, roots: Callable[[int], tuple[Array, ...]], square: float,
          leading: float, weight: Callable[[Any], Any], limits: tuple[float, float], monic: bool,
          evaluate: Callable[..., Array], *parameters: float) -> OrthogonalPolynomial:
    nodes, weights = np.zeros(0), np.zeros(0)
    if n > 0:
        with default_dtypes("float64", "int64"):
            nodes, weights = (np.asarray(v, np.float64) for v in roots(n))
    return OrthogonalPolynomial(nodes, weights, square, leading, weight, limits, monic,
                                lambda x: evaluate(n, *parameters, x))


def _gamma(x: float) -> float:
    return math.gamma(x)


def _ratio(above: Sequence[float], below: Sequence[float]) -> float:
    """The quotient of products of gamma functions of numbers above 0."""
    return math.exp(sum(map(math.lgamma, above)) - sum(map(math.lgamma, below)))


def _degree(name: str, n: Any) -> int:
    return known_size(f"special.{name}", "n", n, 0)


def _known(name: str, what: str, value: Any, above: float) -> float:
    if not isinstance(value, (int, float, np.integer, np.floating)) or not value > above:
        raise ArgumentError(f"scipy.special.{name}: {what} is {value!r}.", where=user_source(),
                            why=f"it is a known number above {above}: the coefficients and nodes "
                            "are computed from it.", fix=f"{what}={above + 1.5}")
    return float(value)


def jacobi(n: int, alpha: float, beta: float, monic: bool = False) -> OrthogonalPolynomial:
    """Jacobi's polynomial of degree n as an object: of weight (1 - x)^alpha (1 + x)^beta.

    The parameters are known numbers. With `monic` the leading coefficient is 1, as in all of these.

    >>> import functrans as ft
    >>> float(ft.scipy.special.jacobi(1, 0.0, 0.0)(0.5))
    0.5
    """
    k = _degree("jacobi", n)
    a, b = _known("jacobi", "alpha", alpha, -1.0), _known("jacobi", "beta", beta, -1.0)
    both = a + b + 1.0
    if k == 0:
        square, leading = 2.0**both * _ratio([a + 1, b + 1], [both + 1]), 1.0
    else:
        square = 2.0**both / (2 * k + both) * _ratio([k + a + 1, k + b + 1], [k + 1, k + both])
        leading = _ratio([2 * k + both], [k + 1, k + both]) / 2.0**k
    return _made("jacobi", k, lambda n: roots_jacobi(n, np.float64(a), np.float64(b)), square,
                 leading, lambda x: (1 - x) ** a * (1 + x) ** b, (-1, 1), monic, eval_jacobi, a, b)


def legendre(n: int, monic: bool = False) -> OrthogonalPolynomial:
    """Legendre's polynomial of degree n as an object.

    >>> import functrans as ft
    >>> p = ft.scipy.special.legendre(2)
    >>> p.coef.round(4).tolist(), float(p(0.5))
    ([1.5, 0.0, -0.5], -0.125)
    """
    k = _degree("legendre", n)
    return _made("legendre", k, roots_legendre, 2.0 / (2 * k + 1),
                 _ratio([2 * k + 1], [k + 1, k + 1]) / 2.0**k, lambda x: 1.0 + 0.0 * x, (-1, 1),
                 monic, eval_legendre)


def chebyt(n: int, monic: bool = False) -> OrthogonalPolynomial:
    """Chebyshev's polynomial of the first kind of degree n as an object.

    >>> import functrans as ft
    >>> float(ft.scipy.special.chebyt(2)(0.5))
    -0.5
    """
    k = _degree("chebyt", n)
    return _made("chebyt", k, roots_chebyt, math.pi if k == 0 else math.pi / 2,
                 1.0 if k == 0 else 2.0 ** (k - 1), lambda x: 1 / np.sqrt(1 - x * x), (-1, 1),
                 monic, eval_chebyt)


def chebyu(n: int, monic: bool = False) -> OrthogonalPolynomial:
    """Chebyshev's polynomial of the second kind of degree n as an object.

    >>> import functrans as ft
    >>> float(ft.scipy.special.chebyu(1)(0.5))
    1.0
    """
    k = _degree("chebyu", n)
    return _made("chebyu", k, roots_chebyu, math.pi / 2, 2.0**k, lambda x: np.sqrt(1 - x * x),
                 (-1, 1), monic, eval_chebyu)


def chebyc(n: int, monic: bool = False) -> OrthogonalPolynomial:
    """Chebyshev's polynomial of the first kind on [-2, 2], of degree n, as an object.

    >>> import functrans as ft
    >>> float(ft.scipy.special.chebyc(2)(1.5))
    0.25
    """
    k = _degree("chebyc", n)
    return _made("chebyc", k, roots_chebyc, 4 * math.pi * (2 if k == 0 else 1),
                 2.0 if k == 0 else 1.0, lambda x: 1 / np.sqrt(1 - x * x / 4), (-2, 2), monic,
                 eval_chebyc)


def chebys(n: int, monic: bool = False) -> OrthogonalPolynomial:
    """Chebyshev's polynomial of the second kind on [-2, 2], of degree n, as an object.

    >>> import functrans as ft
    >>> float(ft.scipy.special.chebys(2)(1.5))
    1.25
    """
    k = _degree("chebys", n)
    return _made("chebys", k, roots_chebys, math.pi, 1.0, lambda x: np.sqrt(1 - x * x / 4),
                 (-2, 2), monic, eval_chebys)


def gegenbauer(n: int, alpha: float, monic: bool = False) -> OrthogonalPolynomial:
    """Gegenbauer's polynomial of degree n as an object: of weight (1 - x^2)^(alpha - 1/2).

    >>> import functrans as ft
    >>> float(ft.scipy.special.gegenbauer(1, 0.5)(0.5))
    0.5
    """
    k, a = _degree("gegenbauer", n), _known("gegenbauer", "alpha", alpha, -0.5)
    if a == 0:
        _known("gegenbauer", "alpha", 0.0, 0.0)  # where the polynomials are 0
    rising = math.prod((a + j) / (j + 1) for j in range(k))  # (a)_k / k!
    # the square is pi 2^(1 - 2 a) Gamma(k + 2 a) / (k! (k + a) Gamma(a)^2)
    whole = math.sqrt(math.pi) * math.gamma(a + 0.5) / math.gamma(a + 1.0)
    square = whole * a / (k + a) * math.prod((2 * a + j) / (j + 1) for j in range(k))
    leading = 2.0**k * rising
    return _made("gegenbauer", k, lambda n: roots_gegenbauer(n, np.float64(a)), square, leading,
                 lambda x: (1 - x * x) ** (a - 0.5), (-1, 1), monic, eval_gegenbauer, a)


def laguerre(n: int, monic: bool = False) -> OrthogonalPolynomial:
    """Laguerre's polynomial of degree n as an object: of weight exp(-x) over x > 0.

    >>> import functrans as ft
    >>> float(ft.scipy.special.laguerre(1)(0.5))
    0.5
    """
    k = _degree("laguerre", n)
    return _made("laguerre", k, roots_laguerre, 1.0, (-1.0) ** k / math.factorial(k),
                 lambda x: np.exp(-x), (0, math.inf), monic, eval_laguerre)


def genlaguerre(n: int, alpha: float, monic: bool = False) -> OrthogonalPolynomial:
    """The generalized Laguerre polynomial of degree n as an object: of weight x^alpha exp(-x).

    >>> import functrans as ft
    >>> float(ft.scipy.special.genlaguerre(1, 1.0)(0.5))
    1.5
    """
    k, a = _degree("genlaguerre", n), _known("genlaguerre", "alpha", alpha, -1.0)
    return _made("genlaguerre", k, lambda n: roots_genlaguerre(n, np.float64(a)),
                 _ratio([k + a + 1], [k + 1]), (-1.0) ** k / math.factorial(k),
                 lambda x: np.exp(-x) * x**a, (0, math.inf), monic, eval_genlaguerre, a)


def hermite(n: int, monic: bool = False) -> OrthogonalPolynomial:
    """The physicists' Hermite polynomial of degree n as an object: of weight exp(-x^2).

    >>> import functrans as ft
    >>> float(ft.scipy.special.hermite(2)(1.0))
    2.0
    """
    k = _degree("hermite", n)
    return _made("hermite", k, roots_hermite, 2.0**k * math.factorial(k) * math.sqrt(math.pi),
                 2.0**k, lambda x: np.exp(-x * x), (-math.inf, math.inf), monic, eval_hermite)


def hermitenorm(n: int, monic: bool = False) -> OrthogonalPolynomial:
    """The probabilists' Hermite polynomial of degree n as an object: of weight exp(-x^2 / 2).

    >>> import functrans as ft
    >>> float(ft.scipy.special.hermitenorm(2)(1.0))
    0.0
    """
    k = _degree("hermitenorm", n)
    return _made("hermitenorm", k, roots_hermitenorm, math.sqrt(2 * math.pi) * math.factorial(k),
                 1.0, lambda x: np.exp(-x * x / 2), (-math.inf, math.inf), monic,
                 eval_hermitenorm)


def sh_legendre(n: int, monic: bool = False) -> OrthogonalPolynomial:
    """Legendre's polynomial on [0, 1], of degree n, as an object.

    >>> import functrans as ft
    >>> float(ft.scipy.special.sh_legendre(2)(0.75))
    -0.125
    """
    k = _degree("sh_legendre", n)
    return _made("sh_legendre", k, roots_sh_legendre, 1.0 / (2 * k + 1),
                 _ratio([2 * k + 1], [k + 1, k + 1]), lambda x: 0.0 * x + 1.0, (0, 1), monic,
                 eval_sh_legendre)


def sh_chebyt(n: int, monic: bool = False) -> OrthogonalPolynomial:
    """Chebyshev's polynomial of the first kind on [0, 1], of degree n, as an object.

    >>> import functrans as ft
    >>> float(ft.scipy.special.sh_chebyt(2)(0.75))
    -0.5
    """
    k = _degree("sh_chebyt", n)
    return _made("sh_chebyt", k, roots_sh_chebyt, math.pi if k == 0 else math.pi / 2,
                 1.0 if k == 0 else 4.0**k / 2, lambda x: 1 / np.sqrt(x - x * x), (0, 1), monic,
                 eval_sh_chebyt)


def sh_chebyu(n: int, monic: bool = False) -> OrthogonalPolynomial:
    """Chebyshev's polynomial of the second kind on [0, 1], of degree n, as an object.

    >>> import functrans as ft
    >>> float(ft.scipy.special.sh_chebyu(1)(0.75))
    1.0
    """
    k = _degree("sh_chebyu", n)
    return _made("sh_chebyu", k, roots_sh_chebyu, math.pi / 8, 4.0**k,
                 lambda x: np.sqrt(x - x * x), (0, 1), monic, eval_sh_chebyu)


def sh_jacobi(n: int, p: float, q: float, monic: bool = False) -> OrthogonalPolynomial:
    """Jacobi's polynomial on [0, 1] of degree n as an object: of weight (1 - x)^(p - q) x^(q - 1).

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.sh_jacobi(2, 2.0, 1.0)(0.75)), 4)
    0.0625
    """
    k, b = _degree("sh_jacobi", n), _known("sh_jacobi", "q", q, 0.0)
    a = _known("sh_jacobi", "p", p, b - 1.0)
    if k == 0:
        square = _ratio([b, a - b + 1], [a + 1])
    else:
        square = math.exp(math.lgamma(k + 1) + math.lgamma(k + b) + math.lgamma(k + a)
                          + math.lgamma(k + a - b + 1) - 2 * math.lgamma(2 * k + a)) / (2 * k + a)
    return _made("sh_jacobi", k, lambda n: roots_sh_jacobi(n, np.float64(a), np.float64(b)),
                 square, 1.0, lambda x: (1 - x) ** (a - b) * x ** (b - 1.0), (0, 1), monic,
                 eval_sh_jacobi, a, b)


def assoc_laguerre(x: ArrayLike, n: ArrayLike, k: ArrayLike = 0.0) -> Array:
    """The generalized Laguerre polynomial of degree n and parameter k at x.

    >>> import functrans as ft
    >>> float(ft.scipy.special.assoc_laguerre(0.5, 1, 1.0))
    1.5
    """
    return eval_genlaguerre(jnp.asarray(n), jnp.asarray(k), x)
