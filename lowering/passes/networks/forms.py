"""Which values of a program are networks, where they are reduced, and where they are needed whole.

One walk along the program follows an expansion through the operations that make a network of
networks. A sum or a `dot_general` whose result is much smaller than that is a *contraction*, which
can be computed from the factors. Everything else needs the value itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import field
from typing import Any

import numpy as np

from functrans.core import dtypes
from functrans.core.jaxpr import Atom, Equation, Jaxpr, Var
from functrans.core.record import Record
from functrans.core.table import Table
from functrans.lowering.passes.networks.cost_estimate import magnitude
from functrans.lowering.passes.networks.expansions import (
    Expansion,
    broadcast_expansion,
    expansion_of,
    one_hot_expansion,
    product_of_matrices,
)
from functrans.lowering.passes.networks.network import (
    Derived,
    Group,
    NetworkArray,
    NetworkIndex,
    NetworkTerm,
    StridedSlice,
    SumOfNetworks,
    aligned,
    flat,
    groups_of,
    multiplied,
    reshaped,
    squared,
)
from functrans.lowering.passes.networks.one_hots import (
    Makers,
    before_broadcast,
    constant_of,
    has_one_hots,
    selection_of,
)
from functrans.lowering.passes.rewrite import Rewriter
from functrans.primitives.arithmetic import add_p, div_p, integer_pow_p, mul_p, neg_p, sub_p
from functrans.primitives.broadcast import broadcast_in_dim_p, reduce_sum_p, transpose_p
from functrans.primitives.convert import convert_element_type_p
from functrans.primitives.differentiable import add_any_p
from functrans.primitives.dot import dot_general_p
from functrans.primitives.precision import most_precise
from functrans.primitives.shape import concatenate_p, pad_p, reshape_p, slice_p

__all__ = ["Analysis", "Contraction", "analysis_of"]

LEAST_BYTES = 1 << 15  # a smaller value stays in the cache, and is as quickly read as its factors
LEAST_RATIO = 4  # of what is reduced to the result
HIGHEST_POWER = 4
HIGHEST_SUM = 16  # terms
MOST_PIECES = 64  # of a concatenation: the leaves of a model in one vector


class Contraction(Record, frozen=False):
    """An equation that reduces an expansion to a much smaller result, and the result as a form."""

    eqn: Equation
    form: SumOfNetworks
    operands: tuple[Var, ...]


class Analysis(Record, frozen=False):
    """What is known of a program."""

    makers: Makers = field(default_factory=dict)
    forms: dict[Atom, SumOfNetworks] = field(default_factory=dict)
    expansions: dict[Atom, Expansion] = field(default_factory=dict)
    contractions: list[Contraction] = field(default_factory=list)
    forced: set[Var] = field(default_factory=set)  # expansions that are needed whole
    deferred: dict[Var, Contraction] = field(default_factory=dict)  # until its result is needed
    readers: Counter[Atom] = field(default_factory=Counter)
    least_bytes: int = LEAST_BYTES
    least_ratio: float = LEAST_RATIO

    # --------------------------------------------------------------------------- operands

    def operand(self, x: Atom, axes: tuple[Group, ...] | None = None) -> SumOfNetworks:
        """The form of an operand: a network of several arrays, or of itself."""
        found = self.forms.get(x)
        if found is not None:
            return found
        dtype = x.aval.dtype
        value = self.constant(x)
        axes = groups_of(x.aval.shape) if axes is None else axes
        if value is not None:
            return SumOfNetworks(axes, (NetworkTerm(value, ()),), dtype)
        array = before_broadcast(x, x.aval.shape, axes, self.makers)
        return SumOfNetworks(axes, (NetworkTerm(1.0, (array,)),), dtype)

    def constant(self, x: Atom) -> float | None:
        """The number that every element of x is, or None."""
        return constant_of(x, self.makers)

    def factors(self, x: Atom) -> SumOfNetworks:
        """The form of an operand of a product: one-hot arrays are factors of it."""
        form = self.operand(x)
        if x in self.forms or not form.terms[0].factors:
            return form
        ((coefficient, (array,)),) = form.terms
        assert isinstance(array, NetworkArray)
        return form.replace(terms=(NetworkTerm(coefficient, selection_of(array, self.makers)),))

    def alongside(self, form: SumOfNetworks, y: Atom) -> tuple[SumOfNetworks, SumOfNetworks] | None:
        """A form, and the other operand of an elementwise operation with its names.

        None where that is no network and as large itself: then nothing is gained.
        """
        if not y.aval.shape:
            return form, self.operand(y).replace(axes=form.axes)
        other = self.operand(y)
        if y not in self.forms:
            covered = {i for f in other.terms[0].factors for i in f.indices}
            if covered == set(flat(other.axes)):
                return None
        return aligned(form, other, [(d, d) for d in range(len(form.axes))])


def analysis_of(jaxpr: Jaxpr, eager: bool) -> Analysis:
    """Analyse a program; `eager` takes every expansion and contraction, however small."""
    found = Analysis()
    if eager:
        found.least_bytes, found.least_ratio = 0, 1.0
    found.readers.update(x for eqn in jaxpr.eqns for x in eqn.invars)
    found.readers.update(jaxpr.outvars)
    for eqn in jaxpr.eqns:
        _visit(found, eqn)
        for v in eqn.outvars:
            found.makers[v] = eqn
    for output in jaxpr.outvars:
        _need(found, output)
    return found


def _visit(a: Analysis, eqn: Equation) -> None:
    if eqn.primitive is reshape_p and eqn.invars[0] not in a.forms:
        _enter(a, broadcast_expansion(eqn.invars[0], a.makers, a.least_bytes))
    if eqn.primitive is dot_general_p:
        _enter_selected(a, eqn)
    known = [x for x in eqn.invars if x in a.forms]
    if known:
        rule = _RULES.get(eqn.primitive)
        form = rule(a, eqn) if rule is not None else None
        if form is not None:
            a.forms[eqn.outvars[0]] = form
            return
        if eqn.primitive in (reduce_sum_p, dot_general_p):
            contraction = _contraction(a, eqn)
            if contraction is not None:
                _contract(a, contraction)
                return
        for x in known:
            _need(a, x)
    _enter(a, expansion_of(eqn, a.makers, a.least_bytes))


def _enter(a: Analysis, expansion: Expansion | None) -> None:
    if expansion is not None:
        for x in expansion.operands:
            _need(a, x)
        a.expansions[expansion.var] = expansion
        term = NetworkTerm(1.0, (NetworkArray(expansion.var, expansion.axes),))
        a.forms[expansion.var] = SumOfNetworks(
            expansion.axes, (term,), expansion.var.aval.dtype, frozenset((expansion.var,)),
            precision=expansion.precision)


def _enter_selected(a: Analysis, eqn: Equation) -> None:
    """A product with a one-hot array is a contraction of it, and of a product that it alone reads.

    Two one-hot arrays whose product is larger than they are make an expansion instead.
    """
    if any(x in a.forms for x in eqn.invars):
        return
    x, y = eqn.invars
    out = magnitude(eqn.outvars[0].aval.shape)
    for one_hot, other in ((x, y), (y, x)):
        expansion = one_hot_expansion(one_hot, a.makers, a.least_bytes)
        if expansion is None:
            continue
        if out > max(magnitude(v.aval.shape) for v in eqn.invars) \
                and expansion_of(eqn, a.makers, a.least_bytes) is not None:
            return
        maker = a.makers.get(other)
        product = product_of_matrices(maker, a.makers) if maker is not None \
            and maker.primitive is dot_general_p and a.readers[other] == 1 \
            and dtypes.kind(other.aval.dtype) == "f" else None
        _enter(a, expansion if product is None else product)
        return


def _contract(a: Analysis, contraction: Contraction) -> None:
    """What selects from a product of matrices may itself be part of a contraction."""
    (out,) = contraction.eqn.outvars
    form = contraction.form
    products = [e for v in form.expansions if (e := a.expansions[v]).flops
                and e.term is not None and not has_one_hots(e.term.factors)]
    if contraction.eqn.primitive is dot_general_p and products \
            and all(has_one_hots(t.factors) for t in form.terms):
        a.deferred[out] = contraction
        a.forms[out] = form.replace(deferred=form.deferred | {out})
    else:
        a.contractions.append(contraction)


def _need(a: Analysis, x: Atom) -> None:
    """Something needs all of x."""
    form = a.forms.get(x)
    if form is not None:
        later = [a.deferred.pop(v) for v in form.deferred if v in a.deferred]
        a.contractions += later
        own = frozenset[Var]().union(*[c.form.expansions for c in later])
        a.forced |= form.expansions - own if form.deferred else form.expansions


# ------------------------------------------------------------------------------- contractions


def _contraction(a: Analysis, eqn: Equation) -> Contraction | None:
    out = eqn.outvars[0].aval
    if dtypes.kind(out.dtype) != "f":
        return None
    operands = tuple([x for x in eqn.invars if x in a.forms and isinstance(x, Var)])
    expansions = {v for x in operands for v in a.forms[x].expansions}
    selected = eqn.primitive is dot_general_p and any(
        has_one_hots(term.factors) for v in expansions
        if (term := a.expansions[v].term) is not None)
    later = {v for x in operands if a.forms[x].deferred for v in a.forms[x].expansions}
    largest = max(magnitude(x.aval.shape) for x in {*operands, *later})
    if magnitude(out.shape) * a.least_ratio > largest and not selected:
        return None
    form = _summed(a, eqn) if eqn.primitive is reduce_sum_p else _dot(a, eqn)
    return None if form is None else Contraction(eqn, form, operands)


def _without(form: SumOfNetworks, gone: set[NetworkIndex]) -> SumOfNetworks | None:
    """A form that is summed over indices of its result: each term that lacks one, so often."""
    terms = []
    for t in form.terms:
        there = {i for f in t.factors for i in f.indices}
        count = magnitude([i.size for i in gone - there])
        if any(not isinstance(i.size, int) for i in gone - there):
            return None
        terms.append(NetworkTerm(t.coefficient * count, t.factors))
    return form.replace(terms=tuple(terms))


def _summed(a: Analysis, eqn: Equation) -> SumOfNetworks | None:
    form = a.forms[eqn.invars[0]]
    axes = eqn.params["axes"]
    found = _without(form, set(flat([form.axes[d] for d in axes])))
    return None if found is None else found.replace(
        axes=tuple([g for d, g in enumerate(form.axes) if d not in axes]),
        dtype=eqn.outvars[0].aval.dtype)


def _dot(a: Analysis, eqn: Equation) -> SumOfNetworks | None:
    x, y = eqn.invars
    (cx, cy), (bx, by) = eqn.params["dimension_numbers"]
    found = aligned(a.factors(x), a.factors(y), [*zip(cx, cy, strict=True),
                                                 *zip(bx, by, strict=True)])
    if found is None:
        return None
    first, second = found
    free_x = [g for d, g in enumerate(first.axes) if d not in (*cx, *bx)]
    free_y = [g for d, g in enumerate(second.axes) if d not in (*cy, *by)]
    axes = (*[first.axes[d] for d in bx], *free_x, *free_y)
    same = x is y and cx == cy and bx == by and not free_x
    form = squared(first) if same else multiplied(first, second, axes)
    if form is None:
        return None
    form = _without(form, set(flat([first.axes[d] for d in cx])))
    return None if form is None else form.replace(
        axes=axes, dtype=eqn.outvars[0].aval.dtype,
        precision=most_precise(form.precision, eqn.params.get("precision")))


# --------------------------------------------------------------- networks of networks


def _product(a: Analysis, eqn: Equation) -> SumOfNetworks | None:
    x, y = eqn.invars
    if x is y:
        return squared(a.forms[x])
    form, other = _ordered(a, x, y)
    pair = a.alongside(form, other)
    if pair is None:
        selection = a.factors(other)
        if not has_one_hots(selection.terms[0].factors):
            return None
        pair = aligned(form, selection, [(d, d) for d in range(len(form.axes))])
    return None if pair is None else multiplied(*pair, pair[0].axes)


def _ordered(a: Analysis, x: Atom, y: Atom) -> tuple[SumOfNetworks, Atom]:
    return (a.forms[x], y) if x in a.forms else (a.forms[y], x)


def _quotient(a: Analysis, eqn: Equation) -> SumOfNetworks | None:
    x, y = eqn.invars
    form = a.forms.get(x)
    if form is None or y in a.forms:
        return None
    value = a.constant(y)
    if value is not None:
        return None if value == 0 else _scaled(form, 1 / value)
    pair = a.alongside(form, y)
    if pair is None:
        return None
    form, divisor = pair
    ((coefficient, (array,)),) = divisor.terms
    assert isinstance(array, NetworkArray) and not isinstance(array.source, Derived)
    source = array.source

    def make(r: Rewriter) -> Atom:
        return r(div_p, r.scalar(1, source.aval.dtype), source)

    inverse = Derived(source.aval, magnitude(source.aval.shape), 0.0, 0.0, make)
    divisor = divisor.replace(terms=(NetworkTerm(coefficient, (NetworkArray(inverse, array.axes),)),
                                     ))
    return multiplied(form, divisor, form.axes)


def _sum(a: Analysis, eqn: Equation) -> SumOfNetworks | None:
    return _added(a.alongside(*_ordered(a, *eqn.invars)))


def _difference(a: Analysis, eqn: Equation) -> SumOfNetworks | None:
    x, y = eqn.invars
    pair = a.alongside(*_ordered(a, x, y))
    if pair is None:
        return None
    first, second = pair if x in a.forms else pair[::-1]
    return _added((first, _scaled(second, -1.0)))


def _added(pair: tuple[SumOfNetworks, SumOfNetworks] | None) -> SumOfNetworks | None:
    if pair is None or len(pair[0].terms) + len(pair[1].terms) > HIGHEST_SUM:
        return None
    x, y = pair
    return x.replace(terms=(*x.terms, *y.terms), expansions=x.expansions | y.expansions,
                     is_square=False,
                     precision=most_precise(x.precision, y.precision),
                     deferred=x.deferred | y.deferred)


def _scaled(form: SumOfNetworks, factor: float) -> SumOfNetworks:
    return form.replace(terms=tuple([NetworkTerm(t.coefficient * factor, t.factors)
                                     for t in form.terms]),
                        is_square=form.is_square and factor >= 0)


def _negated(a: Analysis, eqn: Equation) -> SumOfNetworks | None:
    return _scaled(a.forms[eqn.invars[0]], -1.0)


def _power(a: Analysis, eqn: Equation) -> SumOfNetworks | None:
    y = eqn.params["y"]
    form = a.forms[eqn.invars[0]]
    if not 2 <= y <= HIGHEST_POWER:
        return None
    square = squared(form)
    if square is None or y == 2:
        return square
    result: SumOfNetworks | None = square
    for _ in range(y - 2):
        pair = None if result is None else aligned(
            result, form, [(d, d) for d in range(len(form.axes))])
        result = None if pair is None else multiplied(*pair, pair[0].axes)
    return None if result is None else result.replace(is_square=y % 2 == 0)


def _converted(a: Analysis, eqn: Equation) -> SumOfNetworks | None:
    dtype: np.dtype[Any] = eqn.params["new_dtype"]
    return a.forms[eqn.invars[0]].replace(dtype=dtype) if dtypes.kind(dtype) == "f" else None


def _broadcast(a: Analysis, eqn: Equation) -> SumOfNetworks | None:
    (x,) = eqn.invars
    shape, dims = eqn.params["shape"], eqn.params["broadcast_dimensions"]
    form = a.forms[x]
    if any(x.aval.shape[k] != shape[d] for k, d in enumerate(dims)):
        return None
    axes = list(groups_of(shape))
    for g, d in zip(form.axes, dims, strict=True):
        axes[d] = g
    return form.replace(axes=tuple(axes))


def _transposed(a: Analysis, eqn: Equation) -> SumOfNetworks | None:
    form = a.forms[eqn.invars[0]]
    return form.replace(axes=tuple([form.axes[p] for p in eqn.params["permutation"]]))


def _reshaped(a: Analysis, eqn: Equation) -> SumOfNetworks | None:
    return reshaped(a.forms[eqn.invars[0]], eqn.params["new_sizes"])


def _in_slice(form: SumOfNetworks, axis: int, size: int, start: int, step: int) -> SumOfNetworks:
    """A form as a slice of a longer axis."""
    outer = NetworkIndex(size)
    strided = StridedSlice(form.axes[axis], outer, start, step)
    axes = tuple([(outer,) if d == axis else g for d, g in enumerate(form.axes)])
    # a term that does not vary along the axis still ends where the slice does
    return form.replace(axes=axes, terms=tuple([NetworkTerm(t.coefficient, (*t.factors, strided))
                                                for t in form.terms]))


def _padded(a: Analysis, eqn: Equation) -> SumOfNetworks | None:
    x, value = eqn.invars
    form = a.forms.get(x)
    if form is None or a.constant(value) != 0.0:
        return None
    for axis, (low, high, hole) in enumerate(eqn.params["padding_config"]):
        size, n = eqn.outvars[0].aval.shape[axis], x.aval.shape[axis]
        if (low, high, hole) == (0, 0, 0):
            continue
        if not isinstance(size, int) or not isinstance(n, int) or low < 0 or high < 0 or n == 0:
            return None
        form = _in_slice(form, axis, size, low, hole + 1)
    return form


def _joined(a: Analysis, eqn: Equation) -> SumOfNetworks | None:
    """A concatenation is the sum of its operands, each padded."""
    axis, out = eqn.params["dimension"], eqn.outvars[0].aval
    size = out.shape[axis]
    if not isinstance(size, int):
        return None
    total: SumOfNetworks | None = None
    start = 0
    for x in eqn.invars:
        n = x.aval.shape[axis]
        if not isinstance(n, int) or n == 0:
            return None
        form = _in_slice(a.operand(x), axis, size, start, 1)
        start += n
        if total is None:
            total = form
            continue
        found = aligned(total, form, [(d, d) for d in range(len(out.shape))])
        if found is None or len(found[0].terms) + len(found[1].terms) > MOST_PIECES:
            return None
        total = found[0].replace(terms=(*found[0].terms, *found[1].terms),
                                 expansions=found[0].expansions | found[1].expansions,
                                 precision=most_precise(*(f.precision for f in found)),
                                 deferred=found[0].deferred | found[1].deferred)
    return None if total is None else total.replace(is_square=False)


def _sliced(a: Analysis, eqn: Equation) -> SumOfNetworks | None:
    """The operand with an axis restricted to a slice of it."""
    p, shape = eqn.params, eqn.invars[0].aval.shape
    form = a.forms[eqn.invars[0]]
    for axis, (start, step) in enumerate(zip(p["start_indices"], p["strides"], strict=True)):
        size, n = shape[axis], eqn.outvars[0].aval.shape[axis]
        if size == n:
            continue
        if not isinstance(n, int) or n == 0 or len(form.axes[axis]) != 1:
            return None
        inner = groups_of((n,))[0]
        strided = StridedSlice(inner, form.axes[axis][0], start, step)
        form = form.replace(
            axes=tuple([inner if d == axis else g for d, g in enumerate(form.axes)]),
            terms=tuple([NetworkTerm(t.coefficient, (*t.factors, strided)) for t in form.terms]))
    return form


_RULES: Table[Callable[[Analysis, Equation], SumOfNetworks | None]] = Table({
    mul_p: _product, div_p: _quotient, add_p: _sum, add_any_p: _sum, sub_p: _difference,
    neg_p: _negated, integer_pow_p: _power, convert_element_type_p: _converted,
    broadcast_in_dim_p: _broadcast, transpose_p: _transposed, reshape_p: _reshaped,
    pad_p: _padded, concatenate_p: _joined, slice_p: _sliced},
    otherwise="its result is no sum of networks")
