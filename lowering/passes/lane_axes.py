"""Lanes of a loop: the axes of its values along which nothing mixes, in all bodies inside of it.

They are found as the rows of separable loops are, but that a loop with a predicate over all lanes
runs for each as long as that one goes on, and that gathers and scatters keep the axes of their
indices. What is said here is not proved: who reads a value at another lane's place finds out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from functrans.core.jaxpr import Atom, Equation, Jaxpr, Var, subjaxprs
from functrans.core.primitive import Primitive
from functrans.core.record import Record
from functrans.lowering.passes.separable import Axis, AxisClasses, Tie
from functrans.primitives.control_flow.cond import cond_p
from functrans.primitives.control_flow.scan import scan_p
from functrans.primitives.control_flow.while_loop import while_p
from functrans.primitives.convert import bitcast_convert_type_p
from functrans.primitives.index import gather_p, scatter_add_p
from functrans.primitives.reduce import reduce_or_p
from functrans.primitives.scatter import scatter_p

__all__ = ["LaneAxes", "lane_axes"]


class LaneAxes(Record, eq=False):
    """How many lanes there are along each coordinate, and the axes of values that it runs over."""

    sizes: tuple[int, ...]
    coordinates: Mapping[Axis, int]

    def of(self, v: Var) -> dict[int, int]:
        """The coordinates of a value, by axis."""
        return {k: self.coordinates[v, k] for k in range(v.aval.ndim) if (v, k) in self.coordinates}


def lane_axes(body: Jaxpr, first: int, num_carry: int,
              alike: Iterable[tuple[Var, Var]] = ()) -> LaneAxes:
    """The lanes of a loop's body, whose carry begins with input `first`: axes of that, or of the
    results where there is none.

    Those `alike` correspond, too: variables of another body and of this one.
    """
    classes = _LaneClasses(RULES)
    classes.join(body)
    carry = body.invars[first:first + num_carry]
    for v, out in zip(carry, body.outvars, strict=False):
        _same(classes, v, out)
    for other, own in alike:
        _same(classes, other, own)
    found: dict[frozenset[Axis], int] = {}
    for result in body.outvars[:num_carry] or body.outvars:
        for k, n in enumerate(result.aval.shape):
            if isinstance(result, Var) and isinstance(n, int) and n > 1:
                axes = classes.whole((result, k))
                if axes is not None:
                    found[axes] = n
    chosen = _worthwhile(body, found)
    return LaneAxes(tuple(map(found.__getitem__, chosen)),
                    {axis: number for number, axes in enumerate(chosen) for axis in axes})


REPEATED: Final = 4.0
"""How often lanes together may compute what they share, at most."""
REPEATED_AGAIN: Final = 1.25
"""How much more each further coordinate may repeat."""
FEW_REPEATED: Final = 64.0
"""Numbers that each lane may compute again in any case: the covariance of a Kalman filter."""


def _worthwhile(body: Jaxpr, found: Mapping[frozenset[Axis], int]) -> list[frozenset[Axis]]:
    """The coordinates, largest first, along which not too much is computed again for each lane."""
    chosen: list[frozenset[Axis]] = []
    work = _work(body, found, chosen)
    for axes in sorted(found, key=found.__getitem__, reverse=True):
        more = _work(body, found, [*chosen, axes])
        if more <= work * (REPEATED_AGAIN if chosen else REPEATED) \
                or (not chosen and more - work <= FEW_REPEATED * found[axes]):
            chosen.append(axes)
            work = more
    order = list(found)
    return sorted(chosen, key=order.index)


def _work(body: Jaxpr, found: Mapping[frozenset[Axis], int],
          chosen: Iterable[frozenset[Axis]]) -> float:
    """How many elements lanes compute together."""
    total = 0.0
    for eqn in body.eqns:
        inside = list(subjaxprs(eqn))
        if inside:
            length = eqn.params.get("length", 1)
            total += sum(_work(b, found, chosen) for b in inside) * (
                length if isinstance(length, int) else 1)
            continue
        for v in eqn.outvars:
            n = float(v.aval.size) if isinstance(v.aval.size, int) else 1.0
            for axes in chosen:
                if not any((v, k) in axes for k in range(v.aval.ndim)):
                    n *= found[axes]
            total += n
    return total


class _LaneClasses(AxisClasses):
    """Where a choice asks whether any lane wants it, each lane asks for itself."""

    def join(self, body: Jaxpr) -> None:
        asked = {eqn.invars[0] for eqn in body.eqns
                 if eqn.primitive is cond_p and eqn.params.get("masked")}
        kept = tuple([eqn for eqn in body.eqns
                      if eqn.primitive is not reduce_or_p or eqn.outvars[0] not in asked])
        super().join(Jaxpr(body.constvars, body.invars, kept, body.outvars, name=body.name))


def _same(c: AxisClasses, x: Atom, y: Atom) -> None:
    """Tie two values of one shape; what is no variable has all lanes alike."""
    if isinstance(x, Var) and isinstance(y, Var):
        c.same(x, y)
    else:
        for v in (x, y):
            for k in range(v.aval.ndim):
                c.mix(v, k)


def _scan(c: AxisClasses, eqn: Equation) -> None:
    """As of rows; the iterations of a loop without a carry are lanes, too."""
    body: Jaxpr = eqn.params["jaxpr"]
    first, n = eqn.params["num_consts"], eqn.params["num_carry"]
    c.join(body)
    for k, v in enumerate(body.invars[:first + n]):
        _same(c, eqn.invars[k], v)
    for k in range(n):
        _same(c, body.invars[first + k], body.outvars[k])
        _same(c, eqn.outvars[k], body.outvars[k])
    walked = [*zip(eqn.invars[first + n:], body.invars[first + n:], strict=True),
              *zip(eqn.outvars[n:], body.outvars[n:], strict=True)]
    for outer, inner in walked:
        if not isinstance(outer, Var):
            continue
        if n:
            c.mix(outer, 0)
        else:
            c.tie(outer, 0, eqn.outvars[0], 0)
        for k in range(inner.aval.ndim):
            if isinstance(inner, Var):
                c.tie(outer, k + 1, inner, k)
            else:
                c.mix(outer, k + 1)


def _while(c: AxisClasses, eqn: Equation) -> None:
    test, body = eqn.params["cond_jaxpr"], eqn.params["body_jaxpr"]
    first, second = eqn.params["cond_nconsts"], eqn.params["body_nconsts"]
    c.join(body)
    for x, v in zip(eqn.invars[first:], body.invars, strict=True):
        _same(c, x, v)
    carry = zip(body.invars[second:], test.invars[first:], body.outvars, eqn.outvars, strict=False)
    for v, tested, after, out in carry:
        for other in (tested, after, out):
            _same(c, v, other)


def _cond(c: AxisClasses, eqn: Equation) -> None:
    for branch in eqn.params["branches"]:
        c.join(branch)
        for x, v in (*zip(eqn.invars[1:], branch.invars, strict=True),
                     *zip(eqn.outvars, branch.outvars, strict=True)):
            _same(c, x, v)


def _gather(c: AxisClasses, eqn: Equation) -> None:
    (x, indices), (out,), d = eqn.invars, eqn.outvars, eqn.params["dimension_numbers"]
    kept = [k for k in range(out.aval.ndim) if k not in d.offset_dims]
    for at, k in enumerate(kept):
        _tie(c, indices, at, out, k)
    shared = dict(zip(d.operand_batching_dims, d.start_indices_batching_dims, strict=True))
    offsets = iter(d.offset_dims)
    for k, (n, taken) in enumerate(zip(x.aval.shape, eqn.params["slice_sizes"], strict=True)):
        if k in shared:
            _tie(c, x, k, indices, shared[k])
        elif k in d.collapsed_slice_dims:
            c.mix(x, k)
        elif n == taken:
            _tie(c, x, k, out, next(offsets))
        else:
            c.mix(x, k)
            c.mix(out, next(offsets))


def _scatter(c: AxisClasses, eqn: Equation) -> None:
    (x, indices, updates), (out,) = eqn.invars, eqn.outvars
    d = eqn.params["dimension_numbers"]
    _same(c, x, out)
    kept = [k for k in range(updates.aval.ndim) if k not in d.update_window_dims]
    for at, k in enumerate(kept):
        _tie(c, indices, at, updates, k)
    shared = dict(zip(d.operand_batching_dims, d.scatter_indices_batching_dims, strict=True))
    windows = iter(d.update_window_dims)
    for k, n in enumerate(out.aval.shape):
        if k in shared:
            _tie(c, indices, shared[k], out, k)
        elif k in d.inserted_window_dims:
            c.mix(out, k)
        elif n == updates.aval.shape[at := next(windows)]:
            _tie(c, updates, at, out, k)
        else:
            c.mix(out, k)
            c.mix(updates, at)


def _bitcast(c: AxisClasses, eqn: Equation) -> None:
    """The parts of a number are along a last axis."""
    (x,), (out,) = eqn.invars, eqn.outvars
    for k in range(max(x.aval.ndim, out.aval.ndim)):
        if k < x.aval.ndim and k < out.aval.ndim:
            _tie(c, x, k, out, k)
        else:
            c.mix(x if k < x.aval.ndim else out, k)


def _tie(c: AxisClasses, x: Atom, i: int, y: Atom, j: int) -> None:
    if isinstance(x, Var) and isinstance(y, Var):
        c.tie(x, i, y, j)
    else:
        c.mix(x, i)
        c.mix(y, j)


RULES: Final[Mapping[Primitive, Tie]] = {
    scan_p: _scan, while_p: _while, cond_p: _cond, gather_p: _gather,
    bitcast_convert_type_p: _bitcast, **dict.fromkeys((scatter_p, scatter_add_p), _scatter)}
