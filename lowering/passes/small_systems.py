"""Systems of a few equations as arithmetic of their elements.

A library call for each system, or a step of the program for a stack of them, costs more than the
arithmetic; and where a lane solves a system in each step of its loop, it keeps the loop from being
one kernel. Rows are exchanged by selections, so that the pivot is the largest of its column.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from functrans.core.avals import get_aval
from functrans.core.jaxpr import Equation, Jaxpr
from functrans.lowering.passes.rewrite import with_bodies, with_functions
from functrans.primitives.arithmetic import abs as absolute
from functrans.primitives.arithmetic import div, mul, sub
from functrans.primitives.compare import gt, select_n
from functrans.primitives.shape import concatenate, reshape, slice
from functrans.primitives.solve import solve_p, triangular_solve_p

__all__ = ["write_out_systems"]

MOST_ROWS: Final = 6
MOST_SIDES: Final = 8
Matrix = list[list[Any]]


def write_out_systems(jaxpr: Jaxpr) -> Jaxpr:
    """The program with its small systems written out, in bodies too."""
    return with_functions(with_bodies(jaxpr, write_out_systems), _function_of)


def _function_of(eqn: Equation) -> Callable[..., Sequence[Any]] | None:
    if eqn.primitive not in (solve_p, triangular_solve_p):
        return None
    a, b = (x.aval for x in eqn.invars)
    if a.dtype.kind != "f" or a.dtype.itemsize < 4 or not isinstance(a.shape[-1], int) \
            or not 0 < a.shape[-1] <= MOST_ROWS \
            or not all(isinstance(n, int) and 0 < n <= MOST_SIDES for n in b.shape[-2:]):
        return None
    if eqn.primitive is solve_p:
        return lambda a, b: [_whole(_solve(_elements(a), _elements(b)), b)]
    return lambda a, b: [_whole(_triangular(_elements(a), _elements(b), **eqn.params), b)]


def _elements(x: Any) -> Matrix:
    """The elements of a stack of matrices, each an array of the leading shape."""
    *lead, rows, columns = get_aval(x).shape

    def element(i: int, j: int) -> Any:
        piece = slice(x, [0] * len(lead) + [i, j], [*lead, i + 1, j + 1])
        return reshape(piece, lead)

    return [[element(i, j) for j in range(columns)] for i in range(rows)]


def _whole(elements: Matrix, like: Any) -> Any:
    """The stack of matrices that has such elements."""
    lead = get_aval(like).shape[:-2]
    axis = len(lead)
    rows = [concatenate([reshape(x, (*lead, 1, 1)) for x in row], axis + 1) for row in elements]
    return concatenate(rows, axis)


def _solve(a: Matrix, b: Matrix) -> Matrix:
    """Gaussian elimination of the rows of [a, b], and substitution."""
    n = len(a)
    rows = [[*row, *sides] for row, sides in zip(a, b, strict=True)]
    for k in range(n):
        for i in range(k + 1, n):
            larger = gt(absolute(rows[i][k]), absolute(rows[k][k]))
            rows[k][k:], rows[i][k:] = (
                [select_n(larger, x, y) for x, y in zip(rows[k][k:], rows[i][k:], strict=True)],
                [select_n(larger, y, x) for x, y in zip(rows[k][k:], rows[i][k:], strict=True)])
        for i in range(k + 1, n):
            factor = div(rows[i][k], rows[k][k])
            rows[i][k + 1:] = [sub(x, mul(factor, y)) for x, y in
                               zip(rows[i][k + 1:], rows[k][k + 1:], strict=True)]
    return _substituted([row[:n] for row in rows], [row[n:] for row in rows], range(n)[::-1], False)


def _substituted(a: Matrix, b: Matrix, order: Sequence[int], has_ones: bool) -> Matrix:
    """The solutions of a triangular system, whose rows are taken in this order."""
    found: dict[int, list[Any]] = {}
    for i in order:
        row = b[i]
        for j, solved in found.items():
            row = [sub(x, mul(a[i][j], y)) for x, y in zip(row, solved, strict=True)]
        found[i] = row if has_ones else [div(x, a[i][i]) for x in row]
    return [found[i] for i in range(len(a))]


def _triangular(a: Matrix, b: Matrix, *, left_side: bool, lower: bool, transpose_a: bool,
                conjugate_a: bool, unit_diagonal: bool) -> Matrix:
    del conjugate_a  # of real numbers
    if transpose_a:
        a, lower = _transposed(a), not lower
    if not left_side:
        a, b, lower = _transposed(a), _transposed(b), not lower
    order = range(len(a)) if lower else range(len(a))[::-1]
    found = _substituted(a, b, order, unit_diagonal)
    return found if left_side else _transposed(found)


def _transposed(a: Matrix) -> Matrix:
    return [list(column) for column in zip(*a, strict=True)]
