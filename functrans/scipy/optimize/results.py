"""What the optimizers return: tuples of arrays, which are trees and go through jit and vmap."""

from __future__ import annotations

from typing import NamedTuple

from functrans.typing import Array


class OptimizeResults(NamedTuple):
    """A minimum: of x and fun the derivatives are those of the minimum in what the function closes
    over, of jac they are 0, and of hess_inv and the counts there are none.

    `status` is 0 where it converged, 1 after `maxiter` iterations, 3 where the line search found no
    lower point.
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
    """The minimum of a function of one number."""

    x: Array
    fun: Array
    success: Array
    nfev: Array
    nit: Array


class RootResults(NamedTuple):
    """A root of a function of a vector; `fun` is the function there."""

    x: Array
    success: Array
    status: Array
    fun: Array
    nfev: Array
    nit: Array


class ScalarRootResults(NamedTuple):
    """A root of a function of one number."""

    root: Array
    iterations: Array
    function_calls: Array
    converged: Array


class LeastSquaresResults(NamedTuple):
    """A least sum of squares: `cost` is half of it, `optimality` the largest part of the gradient.

    `active_mask` is -1 where x is at its lower bound, 1 at its upper one. `status` is 0 after
    `max_nfev` evaluations, and otherwise says what was small: 1 the gradient, 2 the change of
    the cost, 3 that of x.
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
    """The minimum of a linear program; `slack` is b_ub - A_ub x, `con` is b_eq - A_eq x."""

    x: Array
    fun: Array
    slack: Array
    con: Array
    success: Array
    status: Array
    nit: Array
