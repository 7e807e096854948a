"""Large triangular systems as products with the inverse of the triangle, where that is faster.

Substitution waits for one row after the other, whatever the number of right-hand sides: on a GPU
2,048 rows take 0.76 ms. The inverse needs n^3 / 3 multiply-adds, nearly all of them in products:
the blocks of the diagonal are inverted together, by substitution, and pairs of inverses become one
of twice the size (Higham, Accuracy and Stability of Numerical Algorithms, section 14.2),

    [A 0; C B]^-1 = [A^-1 0; -B^-1 C A^-1 B^-1].

It is computed once for all systems of a triangle, from both sides and transposed.

Accuracy, float32, factors of kernel matrices of 512 and 1,024 rows, against float64. A product by
the inverse is off by as much as substitution row by row where the matrix has a condition of 1e3,
and at 1e6 by 2 to 6 times as much, in norm, as is its residual. The factor's gradient, which is
a product with the inverse from either side, is off by 4e-7 to 2e-6, as it is by substitution. Three
products of TensorFloat-32 are as exact as float32 in this; one is not (2 % at 1e6). One step of
refinement gives the errors and residuals of substitution at every condition: a system with few
right-hand sides has it, since its products take as long as reading the triangle.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from functrans.core.jaxpr import Atom, Equation, Jaxpr
from functrans.lowering.passes.rewrite import inlined, with_bodies
from functrans.lowering.passes.systems import SMALL
from functrans.primitives.arithmetic import add, neg, sub
from functrans.primitives.base import full
from functrans.primitives.compare import bitwise_and, eq, ge, where
from functrans.primitives.dot import dot_general
from functrans.primitives.matrix import columns, eye, matmul, rows, swap_last, tril, triu
from functrans.primitives.precision import Precision, most_precise
from functrans.primitives.shape import broadcasted_iota, concatenate, pad, reshape, slice
from functrans.primitives.solve import triangular_solve, triangular_solve_p

__all__ = ["is_faster_by_products", "solve_by_products"]

FEW: Final = 4
"""A system with fewer right-hand sides than a fourth of its rows is refined."""

SystemsChoice = Callable[[int, int, int, list[int]], bool]
"""Of matrices of a number of rows, bytes of an element, matrices, and right-hand sides of each
system: whether products are faster."""


def solve_by_products(jaxpr: Jaxpr, is_faster: SystemsChoice) -> Jaxpr:
    """The program in which the systems of large triangles are products, where these are faster."""
    jaxpr = with_bodies(jaxpr, lambda body: solve_by_products(body, is_faster))
    groups: dict[Any, list[Equation]] = {}
    for eqn in jaxpr.eqns:
        if _is_large(eqn):
            groups.setdefault(_triangle_of(eqn), []).append(eqn)
    taken = {key for key, group in groups.items()
             if is_faster(*_sizes(group[0].invars[0]), list(map(_sides, group)))}
    if not taken:
        return jaxpr
    inverses: dict[Any, Atom] = {}
    env: dict[Atom, Atom] = {}
    eqns: list[Equation] = []
    for eqn in jaxpr.eqns:
        key = _triangle_of(eqn) if _is_large(eqn) else None
        eqn = eqn.replace(invars=tuple([env.get(a, a) for a in eqn.invars]))
        if key not in taken:
            eqns.append(eqn)
            continue
        a, b = eqn.invars
        lower, unit = eqn.params["lower"], eqn.params["unit_diagonal"]

        def emit(fun: Callable[..., Any], *operands: Atom, eqn: Equation = eqn) -> Atom:
            return inlined(lambda *xs: [fun(*xs)], operands, eqns, "triangular_solve",
                           eqn.source)[0]

        if key not in inverses:
            inverses[key] = emit(partial(_inverse, lower=lower, unit=unit), a)
        env[eqn.outvars[0]] = emit(partial(
            _solved, left=eqn.params["left_side"], transposed=eqn.params["transpose_a"],
            lower=lower, unit=unit), inverses[key], a, b)
    return Jaxpr(jaxpr.constvars, jaxpr.invars, tuple(eqns),
                 tuple([env.get(a, a) for a in jaxpr.outvars]), name=jaxpr.name)


def is_faster_by_products(n: int, item: int, count: int, sides: list[int], *, row: float,
                          rate: float, launch: float, product_rate: float, byte: float) -> bool:
    """Whether the inverse of a triangle of n rows, and a product for each system, take less time.

    `row` is what substitution takes for each row, `rate` its operations in a nanosecond,
    `product_rate` those of products, `byte` the time for a byte of memory.
    """
    substitution = sum(max(n * row, count * n * n * k / rate) for k in sides)
    size = count * n * n
    halvings = (-(-n // SMALL) - 1).bit_length()
    inverse = (3 * halvings + 2) * launch + size * (n * 2 / 3 / product_rate + 4 * item * byte)
    for k in sides:
        times = 3 if k * FEW < n else 1
        inverse += times * (launch + size * max(2 * k / product_rate, item * byte))
    return inverse < substitution


def _is_large(eqn: Equation) -> bool:
    if eqn.primitive is not triangular_solve_p:
        return False
    sizes = [n for x in eqn.invars for n in x.aval.shape]
    a = eqn.invars[0].aval
    return all(isinstance(n, int) and n > 0 for n in sizes) and a.shape[-1] > SMALL \
        and a.dtype.name in ("float32", "float64")


def _triangle_of(eqn: Equation) -> Any:
    return eqn.invars[0], eqn.params["lower"], eqn.params["unit_diagonal"]


def _sizes(a: Atom) -> tuple[int, int, int]:
    """Rows, bytes of an element, and how many matrices there are; all are known."""
    *lead, n = [int(n) for n in a.aval.shape[:-1]]
    return n, a.aval.dtype.itemsize, math.prod(lead)


def _sides(eqn: Equation) -> int:
    b = eqn.invars[1].aval
    return int(b.shape[-1] if eqn.params["left_side"] else b.shape[-2])


# --------------------------------------------------------------------------- the inverse


def _inverse(a: Any, lower: bool, unit: bool) -> Any:
    """The inverses of the triangles of a, with zeros in the other one."""
    if not lower:
        return swap_last(_inverse(swap_last(a), True, unit))
    *lead, n, _ = a.shape
    count = math.prod(lead)
    pieces = 1 << (-(-n // SMALL) - 1).bit_length()
    s = -(-n // pieces)
    s += -s % 4  # 16 bytes of float32
    size = pieces * s
    whole = _filled_up(reshape(a, (count, n, n)), size)
    x = triangular_solve(_diagonal_blocks(whole, s), eye((count * pieces, s, s), a.dtype),
                         left_side=True, lower=True, unit_diagonal=unit)
    while s < size:
        first, second = (_each_second(x, k) for k in (0, 1))
        below = columns(rows(_diagonal_blocks(whole, 2 * s), s, 2 * s), 0, s)
        below = neg(matmul(second, matmul(below, first)))
        zero = full(below.shape, 0, a.dtype)
        x = concatenate([concatenate([first, zero], 2), concatenate([below, second], 2)], 1)
        s *= 2
    return reshape(slice(x, (0, 0, 0), (count, n, n)), (*lead, n, n))


def _filled_up(a: Any, size: int) -> Any:
    """Matrices of `size` rows: a, then ones on the diagonal."""
    n = a.shape[-1]
    if n == size:
        return a
    more = size - n
    a = pad(a, full((), 0, a.dtype), ((0, 0, 0), (0, more, 0), (0, more, 0)))
    row, column = (broadcasted_iota("int32", a.shape, d) for d in (1, 2))
    return where(bitwise_and(eq(row, column), ge(row, n)), full(a.shape, 1, a.dtype), a)


def _diagonal_blocks(a: Any, s: int) -> Any:
    """The blocks of s rows along the diagonals: (count, n, n) gives (count * n / s, s, s).

    Block i begins i * s * (n + 1) elements after the first: they are rows of that length.
    """
    count, n, _ = a.shape
    pieces = n // s
    flat = pad(reshape(a, (count, n * n)), full((), 0, a.dtype), ((0, 0, 0), (0, n, 0)))
    each = slice(reshape(flat, (count, pieces, s * (n + 1))), (0, 0, 0), (count, pieces, s * n))
    return columns(reshape(each, (count * pieces, s, n)), 0, s)


def _each_second(x: Any, start: int) -> Any:
    return slice(x, (start, 0, 0), x.shape, (2, 1, 1))


# --------------------------------------------------------------------------- the systems


def _solved(inverse: Any, a: Any, b: Any, *, left: bool, transposed: bool, lower: bool,
            unit: bool) -> Any:
    """x with op(a) x = b, or x op(a) = b."""
    k = b.shape[-1 if left else -2]
    few = k * FEW < a.shape[-1]
    precision = most_precise(None, Precision.HIGHEST if few else Precision.HIGH)
    times = partial(_product, left=left, transposed=transposed, precision=precision)
    x = times(inverse, b)
    if not few:
        return x
    triangle = (tril if lower else triu)(a)
    if unit:
        shape = a.shape
        row, column = (broadcasted_iota("int32", shape, len(shape) - d) for d in (2, 1))
        triangle = where(eq(row, column), full(shape, 1, a.dtype), triangle)
    return add(x, times(inverse, sub(b, times(triangle, x))))


def _product(a: Any, b: Any, *, left: bool, transposed: bool, precision: Any) -> Any:
    """op(a) b, or b op(a)."""
    n = a.ndim
    lead = tuple(range(n - 2))
    if left:
        return dot_general(a, b, (((n - 2 if transposed else n - 1,), (n - 2,)), (lead, lead)),
                           precision=precision)
    return dot_general(b, a, (((n - 1,), (n - 1 if transposed else n - 2,)), (lead, lead)),
                       precision=precision)
