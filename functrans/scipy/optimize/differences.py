"""Rosenbrock's function and its derivatives, and derivatives by differences."""

from __future__ import annotations

from typing import Any

from functrans import numpy as jnp
from functrans.core.dtypes import finfo
from functrans.scipy.arguments import inexact
from functrans.scipy.optimize.implicit import Function, start_of, with_args
from functrans.transforms.derivatives import grad, hessian
from functrans.transforms.forward import jvp
from functrans.transforms.vmap import vmap
from functrans.typing import Array, ArrayLike


def rosen(x: ArrayLike) -> Array:
    """Rosenbrock's function of the first axis, whose minimum is 0 where all are 1.

    >>> import functrans as ft
    >>> float(ft.scipy.optimize.rosen([1.0, 2.0]))
    100.0
    """
    (v,) = inexact(x)
    found: Array = jnp.sum(100.0 * (v[1:] - v[:-1] ** 2) ** 2 + (1.0 - v[:-1]) ** 2, axis=0)
    return found


def rosen_der(x: ArrayLike) -> Array:
    """The gradient of `rosen` at a vector.

    >>> import functrans as ft
    >>> ft.scipy.optimize.rosen_der([1.0, 1.0]).tolist()
    [0.0, 0.0]
    """
    found: Array = grad(lambda v: rosen(v).sum())(inexact(x)[0])
    return found


def rosen_hess(x: ArrayLike) -> Array:
    """The Hessian of `rosen` at a vector.

    >>> import functrans as ft
    >>> ft.scipy.optimize.rosen_hess([1.0, 1.0]).tolist()
    [[802.0, -400.0], [-400.0, 200.0]]
    """
    found: Array = hessian(rosen)(inexact(x)[0])
    return found


def rosen_hess_prod(x: ArrayLike, p: ArrayLike) -> Array:
    """The Hessian of `rosen` at a vector, times p.

    >>> import functrans as ft
    >>> ft.scipy.optimize.rosen_hess_prod([1.0, 1.0], [1.0, 0.0]).tolist()
    [802.0, -400.0]
    """
    v, q = inexact(x, p)
    found: Array = jvp(grad(rosen), (v,), (q,))[1]
    return found


def approx_fprime(xk: ArrayLike, f: Function, epsilon: ArrayLike | None = None, *args: Any
                  ) -> Array:
    """The derivative of f at a vector by forward differences of `epsilon`, a row for each value.

    The exact one is `ft.grad(f)` or `ft.jacfwd(f)`.

    >>> import functrans as ft
    >>> print(ft.scipy.optimize.approx_fprime(ft.numpy.ones(2), lambda x: (x ** 2).sum(), 0.5))
    [2.5 2.5]
    """
    of_args = with_args("approx_fprime", f, args)
    x = start_of("approx_fprime", "xk", xk)
    step = float(finfo(x.dtype).eps) ** 0.5 if epsilon is None else epsilon
    h = jnp.broadcast_to(inexact(step)[0].astype(x.dtype), x.shape)
    first = jnp.asarray(of_args(x))

    def along(direction: Array) -> Array:
        return jnp.asarray(of_args(x + h * direction))

    moved = vmap(along)(jnp.eye(x.size, dtype=x.dtype))
    rows = (moved - first) / h.reshape(-1, *(1,) * first.ndim)
    return jnp.moveaxis(rows, 0, -1)


def check_grad(func: Function, grad: Function, x0: ArrayLike, *args: Any,
               epsilon: ArrayLike | None = None) -> Array:
    """The norm of the difference between `grad(x0)` and forward differences of func.

    >>> import functrans as ft
    >>> f = ft.scipy.optimize.rosen
    >>> bool(ft.scipy.optimize.check_grad(f, ft.grad(f), ft.numpy.array([1.0, 0.5])) < 1)
    True
    """
    x = start_of("check_grad", "x0", x0)
    off = jnp.asarray(with_args("check_grad", grad, args)(x)) - approx_fprime(
        x, func, epsilon, *args)
    return jnp.sqrt(jnp.sum(off**2))
