"""Separable loops: the rows of the body are independent, so that a loop runs on blocks of rows.

Every axis of every value belongs to a class of axes whose places correspond to each other, or is
mixed by an operation. A class that no operation mixes can be cut: each block is a loop of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from functrans.core.avals import ShapedArray
from functrans.core.dims import Shape, Size, static_shape
from functrans.core.errors import FunctransError
from functrans.core.jaxpr import Atom, Equation, Jaxpr, Var, subjaxprs
from functrans.core.primitive import Primitive
from functrans.core.record import Record
from functrans.core.table import Table
from functrans.primitives.barrier import checkpoint_name_p, optimization_barrier_p, stop_gradient_p
from functrans.primitives.base import full_p
from functrans.primitives.broadcast import broadcast_in_dim_p, reduce_sum_p, transpose_p
from functrans.primitives.compare import clamp_p, select_n_p
from functrans.primitives.control_flow.scan import scan_p
from functrans.primitives.convert import bitcast_convert_type_p, convert_element_type_p
from functrans.primitives.cumulative import cumlogsumexp_p, cummax_p, cummin_p, cumprod_p, cumsum_p
from functrans.primitives.differentiable import add_any_p
from functrans.primitives.dot import dot_general_p
from functrans.primitives.dynamic_slice import dynamic_slice_p, dynamic_update_slice_p
from functrans.primitives.elementwise import Elementwise
from functrans.primitives.index import gather_p
from functrans.primitives.linalg import cholesky_p, lu_p
from functrans.primitives.random import philox4x32_p, threefry2x32_p
from functrans.primitives.reduce import (
    argmax_p,
    argmin_p,
    reduce_and_p,
    reduce_max_p,
    reduce_min_p,
    reduce_or_p,
    reduce_prod_p,
    reduce_xor_p,
)
from functrans.primitives.shape import (
    concatenate_p,
    copy_p,
    iota_p,
    pad_p,
    reshape_p,
    rev_p,
    slice_p,
)
from functrans.primitives.solve import det_p, slogdet_p, solve_p, triangular_solve_p
from functrans.primitives.sort import sort_p

__all__ = ["RULES", "Axis", "AxisClasses", "SeparableRows", "Tie", "is_pointwise", "rows_of"]

Axis = tuple[Var, int]

SYSTEMS = (solve_p, triangular_solve_p)
ELEMENTWISE = frozenset({
    select_n_p, convert_element_type_p, copy_p, clamp_p, add_any_p, checkpoint_name_p,
    stop_gradient_p, bitcast_convert_type_p, threefry2x32_p, philox4x32_p,
    optimization_barrier_p})


class SeparableRows(Record, eq=False):
    """A class of axes of a body that may be cut: `count` rows along the first axis of values.

    `split` are the inputs and outputs that have it, by number.
    """

    body: Jaxpr
    count: int
    axes: frozenset[Axis]
    split_inputs: frozenset[int]
    split_outputs: frozenset[int]

    def narrowed(self, count: int) -> Jaxpr | None:
        """The body for so many rows; None if an operation cannot be said for fewer."""
        made: dict[Var, Var] = {}

        def fewer(v: Var) -> Var:
            if v not in made:
                made[v] = Var(v.aval.with_shape(tuple(
                    [count if (v, k) in self.axes else n for k, n in enumerate(v.aval.shape)])))
            return made[v]

        def atom(a: Atom) -> Atom:
            return fewer(a) if isinstance(a, Var) else a

        def resized(eqn: Equation) -> Equation:
            outs = tuple(map(fewer, eqn.outvars))
            params = _resized(eqn, outs)
            for name, value in params.items():
                if isinstance(value, Jaxpr):
                    params[name] = of(value)
                elif value and isinstance(value, tuple) and isinstance(value[0], Jaxpr):
                    params[name] = tuple(map(of, value))
            return eqn.replace(invars=tuple(map(atom, eqn.invars)), outvars=outs, params=params)

        def of(body: Jaxpr) -> Jaxpr:
            return Jaxpr((), tuple(map(fewer, body.invars)), tuple(map(resized, body.eqns)),
                         tuple(map(atom, body.outvars)), name=body.name)

        found = of(self.body)
        return found if _all_fit(found) else None


def rows_of(body: Jaxpr, num_consts: int, num_carry: int) -> SeparableRows | None:
    """The rows of a loop's body: an axis, the first of some value of the carry, that may be cut."""
    values = [v for eqn in body.eqns for v in (*eqn.invars, *eqn.outvars)] + [
        *body.invars, *body.outvars]
    if any(not isinstance(n, int) for v in values for n in v.aval.shape):
        return None
    classes = AxisClasses()
    classes.join(body)
    carry = range(num_consts, num_consts + num_carry)
    for k in carry:
        classes.same(body.invars[k], body.outvars[k - num_consts])
    for k in carry:
        v = body.invars[k]
        if v.aval.ndim and v.aval.shape[0] > 1:
            axes = classes.whole((v, 0))
            count = static_shape(v.aval.shape)[0]
            if axes is not None and (found := _at_front(body, count, axes)):
                return found
    return None


def _at_front(body: Jaxpr, count: int, axes: frozenset[Axis]) -> SeparableRows | None:
    """The rows if inputs and outputs have them along their first axis only."""
    split = []
    for values in (body.invars, body.outvars):
        has = [[k for k in range(v.aval.ndim) if (v, k) in axes] if isinstance(v, Var) else []
               for v in values]
        if any(found not in ([], [0]) for found in has):
            return None
        split.append(frozenset(k for k, found in enumerate(has) if found))
    return SeparableRows(body, count, axes, *split)


def is_pointwise(body: Jaxpr) -> bool:
    """Whether every element is computed by itself."""
    return all(_rule_of(eqn) is _elementwise or (eqn.primitive is broadcast_in_dim_p
                                                 and eqn.invars[0].aval.ndim == 0)
               for eqn in body.eqns)


class AxisClasses:
    """Axes that correspond, as a forest; the roots of those that are mixed.

    `rules` are those of primitives that have others here.
    """

    def __init__(self, rules: Mapping[Primitive, Tie] | None = None) -> None:
        self.parent: dict[Axis, Axis] = {}
        self.mixed: set[Axis] = set()
        self.rules = rules or {}

    def join(self, body: Jaxpr) -> None:
        """Tie the axes of all values of a body."""
        for eqn in body.eqns:
            (self.rules.get(eqn.primitive) or _rule_of(eqn))(self, eqn)

    def root(self, axis: Axis) -> Axis:
        while (up := self.parent.setdefault(axis, axis)) != axis:
            self.parent[axis] = self.parent[up]
            axis = self.parent[up]
        return axis

    def tie(self, x: Atom, i: int, y: Atom, j: int) -> None:
        assert isinstance(x, Var)
        assert isinstance(y, Var)
        a, b = self.root((x, i)), self.root((y, j))
        self.parent[a] = b
        if a in self.mixed:
            self.mixed.add(b)

    def same(self, x: Atom, y: Atom) -> None:
        for k in range(x.aval.ndim):
            self.tie(x, k, y, k)

    def mix(self, x: Atom, axis: int) -> None:
        if isinstance(x, Var):
            self.mixed.add(self.root((x, axis)))

    def whole(self, axis: Axis) -> frozenset[Axis] | None:
        """The class of an axis, None if it is mixed."""
        root = self.root(axis)
        if root in self.mixed:
            return None
        return frozenset(a for a in self.parent if self.root(a) == root)


Tie = Callable[[AxisClasses, Equation], None]


def _rule_of(eqn: Equation) -> Tie:
    p = eqn.primitive
    if isinstance(p, Elementwise) or p in ELEMENTWISE:
        return _elementwise
    return RULES.get(p, _unknown)


def _unknown(c: AxisClasses, eqn: Equation) -> None:
    for v in (*eqn.invars, *eqn.outvars):
        for k in range(v.aval.ndim):
            c.mix(v, k)


def _elementwise(c: AxisClasses, eqn: Equation) -> None:
    first = eqn.outvars[0]
    for v in (*eqn.invars, *eqn.outvars):
        if v.aval.shape == first.aval.shape:
            c.same(v, first)
        elif v.aval.ndim:
            return _unknown(c, eqn)
    return None


def _broadcast(c: AxisClasses, eqn: Equation) -> None:
    (x,), (y,) = eqn.invars, eqn.outvars
    for k, d in enumerate(eqn.params["broadcast_dimensions"]):
        if x.aval.shape[k] == y.aval.shape[d]:
            c.tie(x, k, y, d)
        else:
            c.mix(x, k)


def _dot(c: AxisClasses, eqn: Equation) -> None:
    (contract, batch), (out,) = eqn.params["dimension_numbers"], eqn.outvars
    at = 0
    for i, j in zip(*batch, strict=True):
        c.tie(eqn.invars[0], i, out, at)
        c.tie(eqn.invars[1], j, out, at)
        at += 1
    for x, summed, shared in zip(eqn.invars, contract, batch, strict=True):
        for k in range(x.aval.ndim):
            if k in summed:
                c.mix(x, k)
            elif k not in shared:
                c.tie(x, k, out, at)
                at += 1


def _reduction(c: AxisClasses, eqn: Equation) -> None:
    (x,), (out,) = eqn.invars, eqn.outvars
    kept = [k for k in range(x.aval.ndim) if k not in eqn.params["axes"]]
    for at, k in enumerate(kept):
        c.tie(x, k, out, at)
    for k in eqn.params["axes"]:
        c.mix(x, k)


def _transpose(c: AxisClasses, eqn: Equation) -> None:
    for at, k in enumerate(eqn.params["permutation"]):
        c.tie(eqn.invars[0], k, eqn.outvars[0], at)


def _reshape(c: AxisClasses, eqn: Equation) -> None:
    """Axes before and after which there are as many elements are kept."""
    (x,), (y,) = eqn.invars, eqn.outvars
    places = {b: k for k, b in enumerate(_befores(y.aval.shape))}
    tied = set()
    for k, before in enumerate(_befores(x.aval.shape)):
        at = places.get(before)
        if at is not None and x.aval.shape[k] == y.aval.shape[at]:
            c.tie(x, k, y, at)
            tied.add(at)
        else:
            c.mix(x, k)
    for k in set(range(y.aval.ndim)) - tied:
        c.mix(y, k)


def _befores(shape: Shape) -> list[tuple[Size, bool]]:
    """How many elements there are before each axis; axes of size 1 are distinguished."""
    found: list[tuple[Size, bool]] = []
    total: Size = 1
    for n in shape:
        found.append((total, n == 1))
        total = total * n
    return found


def _along(parameter: str) -> Tie:
    """Operations along some axes, whose other axes correspond."""
    def tie(c: AxisClasses, eqn: Equation) -> None:
        axes = eqn.params[parameter]
        for k in (axes,) if isinstance(axes, int) else axes:
            for v in (*eqn.invars, *eqn.outvars):
                c.mix(v, k)
        for v in eqn.invars:
            for k in range(v.aval.ndim):
                c.tie(v, k, eqn.outvars[0], k)
        for v in eqn.outvars[1:]:
            c.same(v, eqn.outvars[0])
    return tie


def _sliced(c: AxisClasses, eqn: Equation) -> None:
    """Axes of which all is taken correspond; starts are numbers."""
    x, out = eqn.invars[0], eqn.outvars[0]
    _tie_whole(c, x, out, _same_sizes(x, out))


def _same_sizes(x: Atom, y: Atom) -> list[bool]:
    return [n == m for n, m in zip(x.aval.shape, y.aval.shape, strict=True)]


def _tie_whole(c: AxisClasses, x: Atom, out: Atom, is_whole: Iterable[bool]) -> None:
    """Axes that are taken whole correspond, others are mixed."""
    for k, whole in enumerate(is_whole):
        if whole:
            c.tie(x, k, out, k)
        else:
            c.mix(x, k)
            c.mix(out, k)


def _padded(c: AxisClasses, eqn: Equation) -> None:
    x, out = eqn.invars[0], eqn.outvars[0]
    _tie_whole(c, x, out, [tuple(edges) == (0, 0, 0) for edges in eqn.params["padding_config"]])


def _updated(c: AxisClasses, eqn: Equation) -> None:
    x, update, out = *eqn.invars[:2], eqn.outvars[0]
    c.same(x, out)
    _tie_whole(c, update, out, _same_sizes(x, update))


def _iota(c: AxisClasses, eqn: Equation) -> None:
    c.mix(eqn.outvars[0], eqn.params["dimension"])


def _scan(c: AxisClasses, eqn: Equation) -> None:
    """The axes of a loop's values are those of its body's; along what it walks all are mixed."""
    body: Jaxpr = eqn.params["jaxpr"]
    first, n = eqn.params["num_consts"], eqn.params["num_carry"]
    if any(not isinstance(v, Var) and v.aval.ndim for v in (*eqn.invars, *body.outvars)):
        return _unknown(c, eqn)
    c.join(body)
    for k, v in enumerate(body.invars[:first + n]):
        c.same(eqn.invars[k], v)
    for k in range(n):
        c.same(body.invars[first + k], body.outvars[k])
        c.same(eqn.outvars[k], body.outvars[k])
    for outer, inner in (*zip(eqn.invars[first + n:], body.invars[first + n:], strict=True),
                         *zip(eqn.outvars[n:], body.outvars[n:], strict=True)):
        c.mix(outer, 0)
        for k in range(inner.aval.ndim):
            c.tie(outer, k + 1, inner, k)
    return None


def _stack(c: AxisClasses, eqn: Equation) -> None:
    """Matrices of a stack are independent problems, and so are the right-hand sides of one."""
    first = eqn.invars[0]
    lead = first.aval.ndim - 2
    sides = lead + 1 if eqn.params.get("left_side", True) else lead
    solved = (eqn.invars[1], eqn.outvars[0]) if eqn.primitive in SYSTEMS else ()
    for v in (*eqn.invars, *eqn.outvars):
        for k in range(v.aval.ndim):
            if k < lead:
                c.tie(v, k, first, k)
            elif v not in solved or k != sides:
                c.mix(v, k)
    if solved:
        c.tie(solved[0], sides, solved[1], sides)


def _full(c: AxisClasses, eqn: Equation) -> None:
    """All places are alike."""


RULES: Table[Tie] = Table({
    broadcast_in_dim_p: _broadcast, dot_general_p: _dot, transpose_p: _transpose,
    reshape_p: _reshape, scan_p: _scan, iota_p: _iota, full_p: _full, slice_p: _sliced,
    dynamic_slice_p: _sliced, dynamic_update_slice_p: _updated, pad_p: _padded,
    concatenate_p: _along("dimension"), rev_p: _along("dimensions"), sort_p: _along("dimension"),
    **dict.fromkeys((*SYSTEMS, cholesky_p, lu_p, det_p, slogdet_p), _stack),
    **dict.fromkeys((reduce_sum_p, reduce_max_p, reduce_min_p, reduce_prod_p, reduce_and_p,
                     reduce_or_p, reduce_xor_p, argmax_p, argmin_p), _reduction),
    **dict.fromkeys((cumsum_p, cumprod_p, cummax_p, cummin_p, cumlogsumexp_p), _along("axis"))},
    otherwise="it mixes all axes, unless it is elementwise")


def _resized(eqn: Equation, outs: Sequence[Var]) -> dict[str, Any]:
    """The parameters of an equation whose results have other sizes."""
    params, shape = dict(eqn.params), outs[0].aval.shape
    for name in ("shape", "new_sizes"):
        if name in params:
            params[name] = shape
    if eqn.primitive is dynamic_slice_p:
        params["slice_sizes"] = shape
    if eqn.primitive is gather_p:  # a window that is all of an axis stays so
        numbers, before = params["dimension_numbers"], eqn.outvars[0].aval.shape
        sizes = list(params["slice_sizes"])
        dropped = (*numbers.collapsed_slice_dims, *numbers.operand_batching_dims)
        kept = [k for k in range(len(sizes)) if k not in dropped]
        for k, at in zip(kept, numbers.offset_dims, strict=True):
            sizes[k] = shape[at] if shape[at] != before[at] else sizes[k]
        params["slice_sizes"] = tuple(sizes)
    if eqn.primitive is scan_p and not params["num_carry"] and outs:
        params["length"] = shape[0]
    if eqn.primitive is slice_p:
        before = eqn.outvars[0].aval.shape
        params["limit_indices"] = tuple([
            n if n_before != n else limit for n_before, n, limit
            in zip(before, shape, params["limit_indices"], strict=True)])
    return params


def _all_fit(body: Jaxpr) -> bool:
    return all(_fits(eqn) and all(map(_all_fit, subjaxprs(eqn))) for eqn in body.eqns)


def _fits(eqn: Equation) -> bool:
    """Whether the results of an equation have the types that its operands give them."""
    try:
        found = eqn.primitive.type(*[a.aval for a in eqn.invars], **eqn.params)
    except FunctransError:
        return False
    types: Sequence[ShapedArray] = found if isinstance(found, (list, tuple)) else [found]
    return [(t.shape, t.dtype) for t in types] == [(v.aval.shape, v.aval.dtype)
                                                  for v in eqn.outvars]
