"""Orthogonal polynomials on other intervals, which are those of `orthogonal` in other variables."""

from __future__ import annotations

from functrans import numpy as jnp
from functrans.scipy.special.common import wide
from functrans.scipy.special.gammas import binom
from functrans.scipy.special.orthogonal import (
    eval_chebyt,
    eval_chebyu,
    eval_jacobi,
    eval_legendre,
)
from functrans.typing import Array

__all__ = ["eval_chebyc", "eval_chebys", "eval_sh_chebyt", "eval_sh_chebyu", "eval_sh_jacobi",
           "eval_sh_legendre"]


@wide
def eval_chebyc(n: Array, x: Array) -> Array:
    """Chebyshev's polynomial of the first kind on [-2, 2], of degree n: 2 T_n(x / 2).

    >>> import functrans as ft
    >>> float(ft.scipy.special.eval_chebyc(2, 1.5))
    0.25
    """
    return 2.0 * eval_chebyt(n, 0.5 * x)


@wide
def eval_chebys(n: Array, x: Array) -> Array:
    """Chebyshev's polynomial of the second kind on [-2, 2], of degree n: U_n(x / 2).

    >>> import functrans as ft
    >>> float(ft.scipy.special.eval_chebys(2, 1.5))
    1.25
    """
    return eval_chebyu(n, 0.5 * x)


@wide
def eval_sh_chebyt(n: Array, x: Array) -> Array:
    """Chebyshev's polynomial of the first kind on [0, 1], of degree n.

    >>> import functrans as ft
    >>> float(ft.scipy.special.eval_sh_chebyt(2, 0.75))
    -0.5
    """
    return eval_chebyt(n, 2.0 * x - 1.0)


@wide
def eval_sh_chebyu(n: Array, x: Array) -> Array:
    """Chebyshev's polynomial of the second kind on [0, 1], of degree n.

    >>> import functrans as ft
    >>> float(ft.scipy.special.eval_sh_chebyu(2, 0.75))
    0.0
    """
    return eval_chebyu(n, 2.0 * x - 1.0)


@wide
def eval_sh_legendre(n: Array, x: Array) -> Array:
    """Legendre's polynomial on [0, 1], of degree n.

    >>> import functrans as ft
    >>> float(ft.scipy.special.eval_sh_legendre(2, 0.75))
    -0.125
    """
    return eval_legendre(n, 2.0 * x - 1.0)


@wide
def eval_sh_jacobi(n: Array, p: Array, q: Array, x: Array) -> Array:
    """Jacobi's polynomial on [0, 1] with leading coefficient 1, of degree n.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.eval_sh_jacobi(2, 2.0, 1.0, 0.75)), 4)
    0.0625
    """
    return eval_jacobi(n, p - q, q - 1.0, jnp.subtract(2.0 * x, 1.0)) / binom(2.0 * n + p - 1.0, n)
