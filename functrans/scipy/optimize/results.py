"""What the optimizers return: tuples of arrays, which are trees and go through jit and vmap."""

from __future__ import annotations

from typing import NamedTuple

from functrans.typing import Array


class OptimizeResults(NamedTuple):
    """A minimum: of x and fun the derivatives are those of the minimum in what the function closes
    over, of jac they are 0, and of hess_inv and the counts there are none.

    `status` is 0 where it converged, 1 after `maxiter` iterations, 3 where the line search found no
    lower point.

    >>> minimize = ft.scipy.optimize.minimize
    >>> found = minimize(lambda x: ((x - 3) ** 2).sum(), jnp.zeros(1), method="BFGS")
    >>> bool(found.success), found.x.round(3)
    (True, Array([3.], dtype=float32))
    """

    x: Array
    success: Array
    status: Array
    fun: Array
    jac: Array
    hess_inv: Array | None
    nfev: Array
    njev: Array
    nit: Array


class ScalarResults(NamedTuple):
    """The minimum of a function of one number.

    >>> found = ft.scipy.optimize.minimize_scalar(lambda x: (x - 3) ** 2)
    >>> bool(found.success), round(float(found.x), 3)
    (True, 3.0)
    """

    x: Array
    fun: Array
    success: Array
    nfev: Array
    nit: Array


class RootResults(NamedTuple):
    """A root of a function of a vector; `fun` is the function there.

    >>> found = ft.scipy.optimize.root(lambda x: x**2 - 4, jnp.ones(1))
    >>> bool(found.success), found.x.round(3)
    (True, Array([2.], dtype=float32))
    """

    x: Array
    success: Array
    status: Array
    fun: Array
    nfev: Array
    nit: Array


class ScalarRootResults(NamedTuple):
    """A root of a function of one number.

    >>> found = ft.scipy.optimize.root_scalar(lambda x: x**2 - 4, bracket=(0.0, 5.0))
    >>> bool(found.converged), round(float(found.root), 3)
    (True, 2.0)
    """

    root: Array
    iterations: Array
    function_calls: Array
    converged: Array


class LeastSquaresResults(NamedTuple):
    """A least sum of squares: `cost` is half of it, `optimality` the largest part of the gradient.

    `active_mask` is -1 where x is at its lower bound, 1 at its upper one. `status` is 0 after
    `max_nfev` evaluations, and otherwise says what was small: 1 the gradient, 2 the change of
    the cost, 3 that of x.

    >>> found = ft.scipy.optimize.least_squares(lambda x: x - jnp.array([1.0, 2.0]), jnp.zeros(2))
    >>> found.x.round(3), bool(found.success)
    (Array([1., 2.], dtype=float32), True)
    """

    x: Array
    cost: Array
    fun: Array
    jac: Array
    grad: Array
    optimality: Array
    active_mask: Array
    nfev: Array
    njev: Array
    status: Array
    success: Array


class LinprogResults(NamedTuple):
    """The minimum of a linear program; `slack` is b_ub - A_ub x, `con` is b_eq - A_eq x.

    >>> c, below = jnp.array([-1.0, -1.0]), jnp.array([4.0])
    >>> found = ft.scipy.optimize.linprog(c, A_ub=jnp.ones((1, 2)), b_ub=below)
    >>> round(float(found.fun), 3), bool(found.success)
    (-4.0, True)
    """

    x: Array
    fun: Array
    slack: Array
    con: Array
    success: Array
    status: Array
    nit: Array
