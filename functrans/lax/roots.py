"""custom_root: roots that a function of the user's finds, differentiated as roots."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeVar, overload

import numpy as np

from functrans.core.avals import get_aval
from functrans.core.convert import to_array
from functrans.core.dtypes import float0
from functrans.core.evaluate import eval_jaxpr
from functrans.core.staging import stage
from functrans.core.tree import tree_map, tree_unflatten
from functrans.lax.bodies import leaves_of
from functrans.lax.solving import checked_result, custom_linear_solve
from functrans.primitives.arithmetic import neg
from functrans.primitives.base import zeros
from functrans.transforms.custom_jvp import custom_jvp
from functrans.transforms.flat import FlatFunction, check_callable
from functrans.transforms.forward import jvp
from functrans.transforms.reverse import linearize
from functrans.transforms.tangents import tangent_aval
from functrans.typing import PyTree

T = TypeVar("T")

__all__ = ["custom_root"]


@overload
def custom_root(f: Callable[[T], T], initial_guess: T,
                solve: Callable[[Callable[[T], T], T], PyTree],
                tangent_solve: Callable[[Callable[[T], T], T], T],
                has_aux: Literal[False] = False) -> T: ...


@overload
def custom_root(f: Callable[[T], T], initial_guess: T,
                solve: Callable[[Callable[[T], T], T], PyTree],
                tangent_solve: Callable[[Callable[[T], T], T], T], *,
                has_aux: Literal[True]) -> tuple[T, PyTree]: ...


def custom_root(f: Callable[[T], T], initial_guess: T,
                solve: Callable[[Callable[[T], T], T], PyTree],
                tangent_solve: Callable[[Callable[[T], T], T], T],
                has_aux: bool = False) -> PyTree:
    """x with `f(x) = 0`, as `solve(f, initial_guess)` finds it, differentiated as a root.

    The derivative is in what `f` closes over: `tangent_solve(g, y)` returns x with `g(x) = y`,
    where g is f linearized at the root; how the root is found is not differentiated. With `has_aux`
    `solve` returns the root and anything else. Raises TreeMismatchError where `f` or `solve`
    returns another structure than the guess.

    >>> import functrans as ft
    >>> def newton(f, x):
    ...     return ft.lax.fori_loop(0, 9, lambda _, x: x - f(x) / ft.grad(f)(x), x)
    >>> def root(a):
    ...     return ft.lax.custom_root(lambda x: x * x - a, 1.0, newton, lambda g, y: y / g(1.0))
    >>> float(root(4.0)), float(ft.grad(root)(4.0))
    (2.0, 0.25)
    """
    for given in (f, solve, tangent_solve):
        check_callable(given, "custom_root")
    guess, tree = leaves_of((initial_guess,), "custom_root: initial_guess")
    avals = [x.aval.strong() for x in guess]

    def staged(fun: Callable[..., Any], name: str, with_aux: bool = False) -> Any:
        flat = FlatFunction(lambda x: checked_result(
            fun(x), initial_guess, f"custom_root: the result of {name}", with_aux), tree, {},
            "custom_root")
        closed = stage(flat, avals, name=name)
        return closed.jaxpr.hoist_consts(), list(closed.consts), flat.out_tree

    program, constants, out_tree = staged(f, "f")
    finder, of_solve, found_tree = staged(lambda x: solve(f, x), "solve", has_aux)

    def residual(constants: Any) -> Callable[[Any], Any]:
        return lambda x: tree_unflatten(out_tree, eval_jaxpr(
            program, (), *constants, *leaves_of(x, "custom_root: x")[0]))

    @custom_jvp
    def found(constants: Any, of_solve: Any, guess: Any) -> Any:
        result = tree_unflatten(found_tree, eval_jaxpr(finder, (), *of_solve, *guess))
        return result if has_aux else (result, ())

    @found.defjvp
    def rule(primals: Any, tangents: Any) -> Any:
        root, aux = found(*primals)
        _, pushed = jvp(lambda constants: residual(constants)(root), primals[:1], tangents[:1])
        _, at_root = linearize(residual(primals[0]), root)
        moved = custom_linear_solve(at_root, tree_map(neg, pushed), tangent_solve, tangent_solve)
        return (root, aux), (moved, tree_map(_no_tangent, aux))

    root, aux = found(constants, of_solve, guess)
    return (root, aux) if has_aux else root


def _no_tangent(x: Any) -> Any:
    """The zero tangent of a value: of dtype float0 where there are no others."""
    aval = tangent_aval(get_aval(to_array(x)))
    return np.zeros(aval.shape, aval.dtype) if aval.dtype == float0 else zeros(aval)
