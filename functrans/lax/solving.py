"""custom_linear_solve: linear systems that are solved by a function of the user's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeVar, overload

from functrans.core.avals import ShapedArray
from functrans.core.errors import ShapeError, TreeMismatchError
from functrans.core.jaxpr import ClosedJaxpr
from functrans.core.source import user_source
from functrans.core.staging import stage
from functrans.core.tree import PyTreeDef, check_same_structure, tree_unflatten
from functrans.lax.bodies import leaves_of
from functrans.transforms.flat import FlatFunction, check_callable
from functrans.transforms.linear_solve import PROGRAMS, linear_solve_p
from functrans.transforms.reverse import linear_transpose
from functrans.typing import PyTree

T = TypeVar("T")

__all__ = ["checked_result", "custom_linear_solve"]


@overload
def custom_linear_solve(matvec: Callable[[T], T], b: T,
                        solve: Callable[[Callable[[T], T], T], PyTree],
                        transpose_solve: Callable[[Callable[[T], T], T], PyTree] | None = None,
                        symmetric: bool = False, has_aux: Literal[False] = False) -> T: ...


@overload
def custom_linear_solve(matvec: Callable[[T], T], b: T,
                        solve: Callable[[Callable[[T], T], T], PyTree],
                        transpose_solve: Callable[[Callable[[T], T], T], PyTree] | None = None,
                        symmetric: bool = False, *, has_aux: Literal[True]
                        ) -> tuple[T, PyTree]: ...


def custom_linear_solve(matvec: Callable[[T], T], b: T,
                        solve: Callable[[Callable[[T], T], T], PyTree],
                        transpose_solve: Callable[[Callable[[T], T], T], PyTree] | None = None,
                        symmetric: bool = False, has_aux: bool = False) -> PyTree:
    """x with `matvec(x) = b`, as `solve(matvec, b)` finds it, differentiated as a solution.

    How it is found is not differentiated: forward mode solves with `solve` again, and reverse mode
    solves the transposed system, `transpose_solve(vecmat, b)`; with `symmetric` that is `solve`.
    All are trees of the structure of `b`. With `has_aux` the solvers return x and anything else.
    Raises ShapeError and TreeMismatchError where `matvec` or a solver returns another type than b.

    >>> import functrans as ft
    >>> def root(a): return ft.lax.custom_linear_solve(lambda x: a * x, 6.0, lambda f, b: b / a,
    ...                                                symmetric=True)
    >>> float(root(2.0)), float(ft.grad(root)(2.0))
    (3.0, -1.5)
    """
    for function in (matvec, solve):
        check_callable(function, "custom_linear_solve")
    leaves, tree = leaves_of((b,), "custom_linear_solve: b")
    avals = [x.aval.strong() for x in leaves]

    def staged(fun: Callable[..., Any], name: str, with_aux: bool = False
               ) -> tuple[ClosedJaxpr, PyTreeDef]:
        flat = FlatFunction(lambda x: checked_result(
            fun(x), b, f"custom_linear_solve: the result of {name}", with_aux), tree, {},
            "custom_linear_solve")
        closed = stage(flat, avals, name=name)
        _check_types(name, closed.jaxpr.out_avals, avals)
        return closed, flat.out_tree

    forwards, _ = staged(matvec, "matvec")
    solved, out_tree = staged(lambda x: solve(matvec, x), "solve", has_aux)
    backwards = transposed = None
    if symmetric:
        backwards, transposed = forwards, solved
    elif transpose_solve is not None:
        check_callable(transpose_solve, "custom_linear_solve")
        transpose = transpose_solve
        vecmat = linear_transpose(matvec, *tree_unflatten(tree, leaves))
        backwards, _ = staged(lambda x: vecmat(x)[0], "vecmat")
        transposed, _ = staged(lambda x: transpose(lambda y: vecmat(y)[0], x), "transpose_solve",
                               has_aux)
    programs = (forwards, solved, backwards, transposed)
    consts = [[] if p is None else p.consts for p in programs]
    outs = linear_solve_p.bind(
        *(c for group in consts for c in group), *leaves, num_consts=tuple(map(len, consts)),
        **{name: p.jaxpr.hoist_consts() for name, p in zip(PROGRAMS, programs, strict=True)
           if p is not None})
    return tree_unflatten(out_tree, outs)


def checked_result(result: Any, like: Any, what: str, with_aux: bool) -> Any:
    """The result of a user's solver, after a check that its structure is that of `like`."""
    if not with_aux:
        check_same_structure(like, result, what)
    elif not isinstance(result, (tuple, list)) or len(result) != 2:
        raise TreeMismatchError(f"{what} is no pair.", where=user_source(), fix="return x, aux",
                                why="with has_aux it is the solution and something else.")
    else:
        check_same_structure(like, result[0], what)
    return result


def _check_types(name: str, found: Sequence[ShapedArray], expected: Sequence[ShapedArray]) -> None:
    for x, y in zip(found, expected, strict=False):
        if x.shape != y.shape or x.dtype != y.dtype:
            raise ShapeError(f"custom_linear_solve: the result of {name} holds {x}, b has {y}.",
                             where=user_source(), why="the matrix is square.")
