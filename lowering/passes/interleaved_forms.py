"""Bilinear forms of small matrices that are interleaved in memory: sum of x[c] g[c, d] y[d].

One matrix serves many pairs of vectors, as in `einsum("fcd,ctf,dtf->tf", g, x, y)` and in the
gradient of what weighs the terms of an interleaved product. A thread keeps the matrix of its lane
in registers, and each pair is read once, where it is; in an ordinary kernel each element reads a
row of the matrix and a vector again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Final

from functrans.core import dtypes
from functrans.core.avals import ShapedArray
from functrans.core.jaxpr import Atom, Equation, Jaxpr, Var
from functrans.core.primitive import Primitive
from functrans.core.prune import prune_jaxpr
from functrans.core.record import Record
from functrans.lowering.passes.interleaved_products import (
    IN_FLIGHT,
    LEAST_BATCH,
    MOST_ROWS,
    MOST_SUMS,
    REGISTERS,
    WARP,
    Factor,
    InterleavedSizes,
    Names,
    factor_of,
)
from functrans.lowering.passes.rewrite import inlined
from functrans.primitives.arithmetic import complex, imag, mul_p, real, real_p
from functrans.primitives.base import zeros
from functrans.primitives.broadcast import reduce_sum_p, transpose
from functrans.primitives.convert import convert_element_type_p
from functrans.primitives.dot import dot_general_p

__all__ = ["InterleavedForms", "interleave_forms", "interleaved_form_p"]

LEAST_PAIRS: Final = 16
"""Of vectors for each matrix, which is worth its registers then."""


class InterleavedForms(Record, InterleavedSizes):
    """What the axes of the operands are: the same number is the same axis.

    Operands are the parts of x, of y and of the matrices, real and imaginary ones if they are
    complex. Matrices and results have `batch` first and the lane last, between them `rows` and
    `columns`, and `pairs`. Of `is_real` ones the real part is the result.
    """

    x: Names
    y: Names
    sizes: tuple[int, ...]
    batch: Names
    pairs: Names
    rows: Names
    columns: Names
    lane: int
    is_complex: bool
    is_real: bool
    conjugates: tuple[bool, bool, bool]  # of x, y and the matrix
    splits: int

    @property
    def programs(self) -> int:
        return self.size(self.batch) * -(-self.sizes[self.lane] // WARP) * self.splits


class InterleavedForm(Primitive, abstract=True):
    """Bilinear forms of interleaved matrices. A part of programs for GPUs."""

    name = "interleaved_form"
    multiple_results = True

    def type(self, *operands: ShapedArray, forms: InterleavedForms) -> list[ShapedArray]:
        shape = tuple([forms.sizes[n] for n in (*forms.batch, *forms.pairs, forms.lane)])
        return [ShapedArray(shape, operands[0].dtype)] * (1 if forms.is_real else forms.parts)


interleaved_form_p = InterleavedForm()


def interleave_forms(jaxpr: Jaxpr, multiprocessors: int) -> Jaxpr:
    """A program whose bilinear forms of interleaved matrices have these in registers."""
    if not any(eqn.primitive is dot_general_p for eqn in jaxpr.eqns):
        return jaxpr
    makers = {v: eqn for eqn in jaxpr.eqns for v in eqn.outvars}
    readers: dict[Atom, list[Equation]] = {}
    for eqn in jaxpr.eqns:
        for x in eqn.invars:
            if isinstance(x, Var):
                readers.setdefault(x, []).append(eqn)
    outputs = {x for x in jaxpr.outvars if isinstance(x, Var)}
    eqns: list[Equation] = []
    for eqn in jaxpr.eqns:
        found = None
        if eqn.primitive is reduce_sum_p:
            (out,) = eqn.outvars
            is_real = out not in outputs and all(map(_takes_real_part, readers.get(out, ())))
            found = _form(eqn, makers, is_real, multiprocessors)
        if found is None:
            eqns.append(eqn)
            continue
        function, operands = found
        (made,) = inlined(function, operands, eqns, "form", eqn.source)
        assert eqns[-1].outvars == (made,)
        eqns[-1] = eqns[-1].replace(outvars=eqn.outvars)
    if len(eqns) == len(jaxpr.eqns):
        return jaxpr
    return prune_jaxpr(Jaxpr(jaxpr.constvars, jaxpr.invars, tuple(eqns), jaxpr.outvars,
                             name=jaxpr.name))


def _takes_real_part(eqn: Equation) -> bool:
    return eqn.primitive is real_p or (eqn.primitive is convert_element_type_p
                                       and dtypes.kind(eqn.params["new_dtype"]) == "f")


Found = tuple[Callable[..., list[Any]], list[Atom]]


def _form(eqn: Equation, makers: Mapping[Var, Equation], is_real: bool, multiprocessors: int
          ) -> Found | None:
    """A function and its operands, for a sum over a factor of products of matrices."""
    (total,) = eqn.invars
    made = makers.get(total) if isinstance(total, Var) else None
    if made is None or made.primitive is not mul_p \
            or total.aval.dtype not in (dtypes.float32, dtypes.complex64) \
            or not all(isinstance(n, int) and n > 0 for n in total.aval.shape):
        return None
    names = tuple(range(len(total.aval.shape)))
    for product, other in (made.invars, made.invars[::-1]):
        if product.aval.shape != total.aval.shape or other.aval.shape != total.aval.shape:
            continue
        inner = factor_of(Factor(product, names), makers)
        dot = makers.get(inner.value) if isinstance(inner.value, Var) else None
        if dot is None or dot.primitive is not dot_general_p \
                or dot.invars[0].aval.dtype != total.aval.dtype:
            continue
        for left in (True, False):
            found = _of_product(eqn, dot, left, inner, factor_of(Factor(other, names), makers),
                                makers, is_real, multiprocessors)
            if found is not None:
                return found
    return None


def _of_product(eqn: Equation, dot: Equation, left: bool, inner: Factor, y: Factor,
                makers: Mapping[Var, Equation], is_real: bool, multiprocessors: int
                ) -> Found | None:
    """Where the first operand (`left`) of a product has the matrices, and the second one x."""
    (c1, c2), (b1, b2) = dot.params["dimension_numbers"]
    sizes = [int(n) for n in eqn.invars[0].aval.shape]
    of: list[dict[int, int]] = [{}, {}]
    place = len(b1)
    for k, (axes, contracted) in enumerate(((b1, c1), (b2, c2))):
        of[k] = dict(zip(axes, inner.names, strict=False))
        of[k] |= {a: len(sizes) + i for i, a in enumerate(contracted)}
        for axis in range(len(dot.invars[k].aval.shape)):
            if axis not in of[k]:
                of[k][axis] = inner.names[place]
                place += 1
    shape = dot.invars[0].aval.shape
    sizes += [int(shape[a]) for a in c1]
    in_order = [tuple([names[a] for a in range(len(names))]) for names in of]
    matrix, x = (0, 1) if left else (1, 0)
    rows = tuple(range(len(sizes) - len(c1), len(sizes)))
    columns = tuple([n for n in in_order[matrix] if n not in in_order[x]])
    factor = factor_of(Factor(dot.invars[x], in_order[x], inner.is_conjugate), makers)
    pairs = tuple([n for n in in_order[x] if n not in in_order[matrix]])
    lane = factor.names[-1]
    shared = tuple([n for n in in_order[matrix] if n not in (*rows, *columns)])
    if sorted(columns) != sorted(eqn.params["axes"]) or lane not in shared \
            or y.names[-1] != lane or not rows or not columns or not pairs:
        return None
    batch = tuple([n for n in shared if n != lane])
    is_complex = eqn.outvars[0].aval.dtype == dtypes.complex64
    counts = [math.prod([sizes[n] for n in group]) for group in (rows, columns, pairs, batch)]
    m, n, count, matrices = counts
    sums = m * n * (2 if is_complex else 1)
    if max(m, n) > MOST_ROWS or min(m, n) < 2 or sums > MOST_SUMS or count < LEAST_PAIRS \
            or sizes[lane] < WARP or matrices * sizes[lane] < LEAST_BATCH \
            or max(m, n) * count * matrices * sizes[lane] >= 2**31:
        return None
    numbers = (m if factor.value is y.value else m + n) * (2 if is_complex else 1)
    busy = min(32, -(-IN_FLIGHT // (4 * WARP * numbers)),
               REGISTERS // (WARP * min(255, sums + numbers + 40)))
    alone = matrices * -(-sizes[lane] // WARP)
    forms = InterleavedForms(
        factor.names, y.names, tuple(sizes), batch, pairs, rows, columns, lane, is_complex,
        is_complex and is_real, (factor.is_conjugate, y.is_conjugate, inner.is_conjugate),
        max(1, min(count // 4, multiprocessors * busy // alone)))
    return _function(eqn, forms, in_order[matrix]), [factor.value, y.value, dot.invars[matrix]]


def _function(eqn: Equation, forms: InterleavedForms, matrix: Names) -> Callable[..., list[Any]]:
    wanted = (*forms.batch, *forms.rows, *forms.columns, forms.lane)
    order = tuple([matrix.index(n) for n in wanted])
    names = (*forms.batch, *forms.pairs, forms.lane)
    kept = [n for n in range(len(eqn.invars[0].aval.shape)) if n not in eqn.params["axes"]]

    def function(x: Any, y: Any, g: Any) -> list[Any]:
        operands = (x, y, transpose(g, order))
        parts = [part(a) for a in operands for part in (real, imag)] if forms.is_complex \
            else list(operands)
        found = [transpose(z, tuple([names.index(n) for n in kept]))
                 for z in interleaved_form_p.bind(*parts, forms=forms)]
        if forms.is_real:
            found.append(zeros(ShapedArray(found[0].shape, found[0].dtype)))
        return [complex(*found) if forms.is_complex else found[0]]

    return function
