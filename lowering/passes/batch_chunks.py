"""Batches a few lanes at a time: one loop over chunks of an axis along which lanes do not mix.

What a program computes for the lanes of a batch, and the sums over them, go into the body of a
scan: its temporaries are those of a chunk. Results of lanes are stacked, sums are carried, so that
they are added up in another order. A value and its gradient are one such loop, in which nothing is
computed again. Equations that need a sum, or mix lanes in another way, come after the loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np

from functrans.core import dtypes
from functrans.core.avals import ShapedArray
from functrans.core.dims import static_shape
from functrans.core.jaxpr import Atom, Equation, Jaxpr, Literal, Var
from functrans.core.primitive import Primitive
from functrans.core.prune import prune_jaxpr
from functrans.core.record import Record
from functrans.core.source import Source
from functrans.lowering.passes.lane_classes import rules_of_lanes
from functrans.lowering.passes.separable import Axis, AxisClasses, SeparableRows, Tie
from functrans.primitives.arithmetic import add_p, mul_p
from functrans.primitives.base import full_p
from functrans.primitives.broadcast import reduce_sum_p
from functrans.primitives.control_flow.scan import scan_p
from functrans.primitives.conv import conv_general_dilated_p
from functrans.primitives.convert import convert_element_type_p
from functrans.primitives.dot import dot_general_p
from functrans.primitives.dynamic_slice import dynamic_slice_p, dynamic_update_slice_p
from functrans.primitives.index import scatter_add_p
from functrans.primitives.shape import concatenate_p, reshape_p, slice_p

__all__ = ["ChunkedAxis", "batches_of", "chunk_sizes", "in_chunks", "with_chunks"]

NAME: Final = "chunks"
"""Of the bodies of loops over chunks, whose lanes are not taken apart again."""
MOST_BATCHES: Final = 3
"""Classes of axes that are looked at."""
INDEX: Final = ShapedArray((), np.dtype(np.int32))


class ChunkedAxis(Record, eq=False):
    """An axis of lanes, and what of a program is in the loop over its chunks, by number.

    `sums` are those equations whose results are sums over lanes; `early` come before the loop and
    `late` after it. `nbytes` is what the loop's values take for all lanes together.
    """

    program: Jaxpr
    size: int
    axes: frozenset[Axis]
    early: tuple[int, ...]
    inside: tuple[int, ...]
    late: tuple[int, ...]
    sums: frozenset[int]
    nbytes: float

    @property
    def source(self) -> Source | None:
        """The line of the largest value of the loop."""
        eqns = [self.program.eqns[k] for k in self.inside]
        largest = max(eqns, key=lambda e: sum(_nbytes(v) for v in e.outvars))
        return largest.source

    def axis_of(self, v: Atom) -> int | None:
        """The axis of a value that its lanes are along."""
        return next((k for k in range(v.aval.ndim) if (v, k) in self.axes), None)


def chunk_sizes(size: int) -> Iterator[int]:
    """Fewer and fewer lanes, which divide their number where they can."""
    last, count = size, 2
    while last > 1:
        most = -(-size // count)
        fits = [n for n in range(most, max(most // 2, 1) - 1, -1) if size % n == 0]
        chunk = fits[0] if fits else most
        if chunk < last:
            yield chunk
            last = chunk
        count *= 2


# ------------------------------------------------------------------------------- which lanes


class _Classes(AxisClasses):
    """Classes of axes, and which equations mix or add up what is along them."""

    def __init__(self, rules: Mapping[Primitive, Tie]) -> None:
        super().__init__(rules)
        self.at = 0
        self.depth = 0
        self.mixing: list[tuple[int, Axis]] = []
        self.summing: list[tuple[int, Axis]] = []

    def join(self, body: Jaxpr) -> None:
        self.depth += 1
        for k, eqn in enumerate(body.eqns):
            if self.depth == 1:
                self.at = k
            super().join(Jaxpr((), body.invars, (eqn,), body.outvars))
        self.depth -= 1

    def mix(self, x: Atom, axis: int) -> None:
        if isinstance(x, Var):
            self.mixing.append((self.at, (x, axis)))

    def add_up(self, x: Atom, axis: int) -> None:
        """The equation at hand, of the program itself, is a sum along an axis."""
        if self.depth > 1:
            self.mix(x, axis)
        elif isinstance(x, Var):
            self.summing.append((self.at, (x, axis)))


def batches_of(jaxpr: Jaxpr) -> list[ChunkedAxis]:
    """The batches whose values take most memory, the largest first."""
    values = [v for eqn in jaxpr.eqns for v in (*eqn.invars, *eqn.outvars)]
    if not all(v.aval.is_static for v in values):
        return []
    classes = _Classes({**rules_of_lanes(jaxpr), **SUMS})
    classes.join(jaxpr)
    members: dict[Axis, list[Axis]] = {}
    for axis in list(classes.parent):
        members.setdefault(classes.root(axis), []).append(axis)
    mixing, summing = (_by_root(classes, found)
                       for found in (classes.mixing, classes.summing))
    made = {v for eqn in jaxpr.eqns for v in eqn.outvars}
    weights: dict[Axis, float] = {}
    for root, axes in members.items():
        if static_shape(root[0].aval.shape)[root[1]] < 2 or len({v for v, _ in axes}) < len(axes):
            continue  # a value that has all pairs of lanes
        if len({v.aval.shape[k] for v, k in axes}) == 1:
            weights[root] = sum([_nbytes(v) for v, _ in axes if v in made])
    chosen = sorted(weights, key=lambda root: -weights[root])[:MOST_BATCHES]
    found = [_batch(jaxpr, frozenset(members[root]), mixing.get(root, set()),
                    summing.get(root, set())) for root in chosen]
    return sorted([b for b in found if b is not None], key=lambda b: -b.nbytes)


def _by_root(classes: AxisClasses, found: Sequence[tuple[int, Axis]]) -> dict[Axis, set[int]]:
    numbers: dict[Axis, set[int]] = {}
    for k, axis in found:
        numbers.setdefault(classes.root(axis), set()).add(k)
    return numbers


def _batch(jaxpr: Jaxpr, axes: frozenset[Axis], mixing: set[int], summing: set[int]
           ) -> ChunkedAxis | None:
    """What of a program is in a loop over some lanes; None where that is nothing."""
    lanes = {v for v, _ in axes}
    early, inside, late = list[int](), list[int](), list[int]()
    sums: set[int] = set()
    known_late: set[Atom] = set()
    known_inside: set[Atom] = set()
    has_late_effect = False
    for k, eqn in enumerate(jaxpr.eqns):
        has_effect = eqn.primitive.has_effect
        of_lanes = not lanes.isdisjoint(eqn.outvars)
        is_sum = k in summing and not of_lanes
        fits = (of_lanes or is_sum) and k not in mixing and not has_effect and not _is_loop(eqn)
        if is_sum and eqn.primitive is scatter_add_p and eqn.invars[0] in known_inside:
            fits = False
        if not known_late.isdisjoint(eqn.invars) or (has_effect and has_late_effect) \
                or (not fits and not known_inside.isdisjoint(eqn.invars)):
            late.append(k)
            known_late.update(eqn.outvars)
            has_late_effect |= has_effect
        elif fits:
            inside.append(k)
            if is_sum:
                sums.add(k)
                known_late.update(eqn.outvars)
            else:
                known_inside.update(eqn.outvars)
        else:
            early.append(k)
    if len(inside) < 2:
        return None
    v, axis = next(iter(axes))
    nbytes = sum([_nbytes(v) for k in inside if k not in sums for v in jaxpr.eqns[k].outvars])
    return ChunkedAxis(jaxpr, static_shape(v.aval.shape)[axis], axes, tuple(early), tuple(inside),
                 tuple(late), frozenset(sums), nbytes)


def _is_loop(eqn: Equation) -> bool:
    return eqn.primitive is scan_p and eqn.params["jaxpr"].name == NAME


def with_chunks(jaxpr: Jaxpr, change: Callable[[Jaxpr], Jaxpr]) -> Jaxpr:
    """The program with the bodies of its loops over chunks changed; itself if there are none."""
    if not any(map(_is_loop, jaxpr.eqns)):
        return jaxpr
    eqns = [eqn.replace(params={**eqn.params, "jaxpr": change(eqn.params["jaxpr"])})
            if _is_loop(eqn) else eqn for eqn in jaxpr.eqns]
    return Jaxpr(jaxpr.constvars, jaxpr.invars, tuple(eqns), jaxpr.outvars, name=jaxpr.name)


def _nbytes(v: Atom) -> float:
    return float(np.prod(static_shape(v.aval.shape), dtype=float)) * v.aval.dtype.itemsize


# --- rules of sums


def _dot(c: AxisClasses, eqn: Equation) -> None:
    assert isinstance(c, _Classes)
    (x, y), (out,) = eqn.invars, eqn.outvars
    contract, shared = eqn.params["dimension_numbers"]
    for at, (i, j) in enumerate(zip(*shared, strict=True)):
        c.tie(x, i, out, at)
        c.tie(y, j, out, at)
    for i, j in zip(*contract, strict=True):
        c.tie(x, i, y, j)
        c.add_up(x, i)
    at = len(shared[0])
    for a, summed, batch in zip((x, y), contract, shared, strict=True):
        for k in range(a.aval.ndim):
            if k not in summed and k not in batch:
                c.tie(a, k, out, at)
                at += 1


def _sum(c: AxisClasses, eqn: Equation) -> None:
    assert isinstance(c, _Classes)
    (x,), (out,) = eqn.invars, eqn.outvars
    kept = [k for k in range(x.aval.ndim) if k not in eqn.params["axes"]]
    for at, k in enumerate(kept):
        c.tie(x, k, out, at)
    for k in eqn.params["axes"]:
        c.add_up(x, k)


def _convolution(c: AxisClasses, eqn: Equation) -> None:
    assert isinstance(c, _Classes)
    (x, w), (out,) = eqn.invars, eqn.outvars
    xs, ws, os = eqn.params["dimension_numbers"]
    groups = eqn.params.get("group_axes")
    c.tie(x, xs[0], out, os[0])
    c.tie(w, ws[0], out, os[1])
    c.tie(x, xs[1], w, ws[1])
    c.add_up(x, xs[1])
    if groups is not None:
        c.tie(x, groups[0], out, groups[2])
        c.tie(w, groups[1], out, groups[2])
    for v, spec in ((x, xs), (w, ws), (out, os)):
        for k in spec[2:]:
            c.mix(v, k)


def _scatter_add(c: AxisClasses, eqn: Equation) -> None:
    """Lanes add to an array that all of them share, unless each has a part of its own."""
    assert isinstance(c, _Classes)
    rules_of_lanes(Jaxpr((), (), (), ()))[scatter_add_p](c, eqn)
    indices, updates = eqn.invars[1:]
    d = eqn.params["dimension_numbers"]
    kept = [k for k in range(updates.aval.ndim) if k not in d.update_window_dims]
    summed = {at for at in range(len(kept)) if at not in d.scatter_indices_batching_dims}
    c.mixing = [m for m in c.mixing
                if m[0] != c.at or m[1] not in {(indices, at) for at in summed}]
    for at in summed:
        c.add_up(updates, kept[at])


SUMS: Final[Mapping[Primitive, Tie]] = {
    dot_general_p: _dot, reduce_sum_p: _sum, conv_general_dilated_p: _convolution,
    scatter_add_p: _scatter_add}


# ------------------------------------------------------------------------------- the loop


def in_chunks(batch: ChunkedAxis, chunk: int) -> Jaxpr | None:
    """The program with a loop over chunks of so many lanes; None where it cannot be said."""
    parts = _parts(batch)
    body = parts.narrowed(batch, chunk)
    rest = batch.size % chunk
    remaining = parts.narrowed(batch, rest) if rest else None
    if body is None or (rest and remaining is None):
        return None
    old = batch.program
    writer = _ChunkWriter([old.eqns[k] for k in batch.early], batch.source)
    results = _loop(writer, parts, batch, body, chunk)
    if remaining is not None:
        results = _with_rest(writer, parts, batch, remaining, results)
    for v, found in zip(parts.results, results, strict=True):
        writer.rename(found, v)
    eqns = [*writer.eqns, *[old.eqns[k] for k in (*parts.again, *batch.late)]]
    order = {eqn: k for k, eqn in enumerate(old.eqns)}
    behind = sorted(eqns[len(writer.eqns):], key=order.__getitem__)
    return prune_jaxpr(Jaxpr(old.constvars, old.invars, (*writer.eqns, *behind), old.outvars,
                             name=old.name))


class _Parts(Record, eq=False):
    """What goes into a loop over chunks and comes out of it.

    `lanes` are arrays that have the lanes, `shared` others; `stacked` are results of lanes and
    `sums` sums over them, the `scattered` ones with what they begin from. What lanes have alike
    without an operand, such as zeros, is computed `again` for who reads it outside.
    """

    lanes: tuple[Var, ...]
    shared: tuple[Var, ...]
    stacked: tuple[Var, ...]
    sums: tuple[Var, ...]
    scattered: Mapping[Var, tuple[Var, Atom]]
    eqns: tuple[Equation, ...]
    again: tuple[int, ...]

    @property
    def results(self) -> tuple[Var, ...]:
        return (*self.stacked, *self.sums)

    def narrowed(self, batch: ChunkedAxis, count: int) -> Jaxpr | None:
        """The body for so many lanes: of lanes, what they share, and what they add to."""
        begins = [begin for begin, _ in self.scattered.values()]
        whole = Jaxpr((), (*self.lanes, *self.shared, *begins), self.eqns, self.results, name=NAME)
        return SeparableRows(whole, batch.size, batch.axes, frozenset(), frozenset()
                             ).narrowed(count)


def _parts(batch: ChunkedAxis) -> _Parts:
    jaxpr = batch.program
    inside = [jaxpr.eqns[k] for k in batch.inside]
    made = {v: k for k in batch.inside for v in jaxpr.eqns[k].outvars}
    outside = {a for k in (*batch.early, *batch.late) for a in jaxpr.eqns[k].invars}
    outside.update(jaxpr.outvars)
    again: dict[int, None] = {}
    stacked: list[Var] = []
    for v, k in made.items():
        if v in outside and k not in batch.sums:
            if any(a in made or batch.axis_of(a) is not None for a in jaxpr.eqns[k].invars):
                stacked.append(v)
            else:
                again[k] = None
    sums = [v for k in sorted(batch.sums) for v in jaxpr.eqns[k].outvars]
    scattered: dict[Var, tuple[Var, Atom]] = {}
    eqns = []
    for k, eqn in zip(batch.inside, inside, strict=True):
        if k in batch.sums and eqn.primitive is scatter_add_p:
            begin = Var(eqn.invars[0].aval)
            scattered[eqn.outvars[0]] = (begin, eqn.invars[0])
            eqn = eqn.replace(invars=(begin, *eqn.invars[1:]))
        eqns.append(eqn)
    begins = {begin for begin, _ in scattered.values()}
    read = dict.fromkeys([a for eqn in eqns for a in eqn.invars
                          if isinstance(a, Var) and a not in made and a not in begins])
    lanes = tuple([v for v in read if batch.axis_of(v) is not None])
    return _Parts(lanes, tuple([v for v in read if batch.axis_of(v) is None]), tuple(stacked),
                  tuple(sums), scattered, tuple(eqns), tuple(again))


class _ChunkWriter:
    """Writes equations, all from one line of the user."""

    def __init__(self, eqns: Sequence[Equation], source: Source | None) -> None:
        self.eqns = list(eqns)
        self.source = source

    def __call__(self, primitive: Primitive, *operands: Atom, **params: Any) -> Var:
        found: Any = primitive.type(*[a.aval for a in operands], **params)
        out = Var(found.strong())
        self.eqns.append(Equation(primitive, operands, (out,), params, self.source))
        return out

    def all(self, primitive: Primitive, *operands: Atom, **params: Any) -> tuple[Var, ...]:
        outs = tuple([Var(a) for a in primitive.type(*[a.aval for a in operands], **params)])
        self.eqns.append(Equation(primitive, operands, outs, params, self.source))
        return outs

    def inline(self, body: Jaxpr, operands: Sequence[Atom],
               totals: Sequence[Atom | None]) -> list[Atom]:
        """The results of a body, whose equations become some of these, added to totals if given.

        Each is added where it is computed: at the end of the body all operands of products, which
        are added up as they are computed, would be in memory.
        """
        to = {v: (k, t) for k, (v, t) in enumerate(zip(body.outvars, totals, strict=True)) if t}
        sums: dict[int, Var] = {}
        env: dict[Atom, Atom] = dict(zip(body.invars, operands, strict=True))
        for eqn in body.eqns:
            outs = tuple([Var(v.aval) for v in eqn.outvars])
            self.eqns.append(eqn.replace(invars=tuple([env.get(a, a) for a in eqn.invars]),
                                         outvars=outs))
            env.update(zip(eqn.outvars, outs, strict=True))
            for v, out in zip(eqn.outvars, outs, strict=True):
                if v in to:
                    k, total = to[v]
                    sums[k] = self.added(total, out)
        return [sums.get(k) or env.get(a, a) for k, a in enumerate(body.outvars)]

    def rename(self, old: Var, new: Var) -> None:
        """Give the result of one of these equations the name that others know."""
        k = next(k for k in reversed(range(len(self.eqns))) if old in self.eqns[k].outvars)
        eqn = self.eqns[k]
        self.eqns[k] = eqn.replace(outvars=tuple([new if v is old else v for v in eqn.outvars]))
        for n in range(k + 1, len(self.eqns)):
            later = self.eqns[n]
            if old in later.invars:
                self.eqns[n] = later.replace(invars=tuple([
                    new if a is old else a for a in later.invars]))

    def piece(self, v: Atom, axis: int, start: int, end: int) -> Var:
        """The lanes of a value from one to before another."""
        shape = v.aval.shape
        before, behind = (0,) * axis, (0,) * (len(shape) - axis - 1)
        return self(slice_p, v, start_indices=(*before, start, *behind),
                    limit_indices=(*shape[:axis], end, *shape[axis + 1:]),
                    strides=(1,) * len(shape))

    def added(self, total: Atom, v: Atom) -> Var:
        """A sum and more of it, in the dtype that sums are carried in."""
        if v.aval.dtype != total.aval.dtype:
            v = self(convert_element_type_p, v, new_dtype=total.aval.dtype)
        return self(add_p, total, v)


def _loop(w: _ChunkWriter, parts: _Parts, batch: ChunkedAxis, body: Jaxpr, chunk: int) -> list[Var]:
    """The results of whole chunks: lanes that are stacked, with room for the rest, and sums."""
    count = batch.size // chunk
    whole = count * chunk
    axes = {v: batch.axis_of(v) for v in (*parts.lanes, *parts.stacked)}
    written = [v for v in parts.stacked if axes[v] != 0]
    consts = [*parts.shared, *parts.lanes]
    carry: list[Atom] = [Literal(np.int32(0), INDEX)]
    for v in parts.sums:
        carry.append(parts.scattered[v][1] if v in parts.scattered else _zeros(w, v.aval))
    carry += [w(full_p, shape=v.aval.shape, dtype=v.aval.dtype, value=0) for v in written]

    inner = _ChunkWriter((), batch.source)
    v_consts = [Var(v.aval) for v in consts]
    v_carry = [Var(a.aval.strong()) for a in carry]
    k = v_carry[0]
    start = inner(mul_p, k, Literal(np.int32(chunk), INDEX))
    zero = Literal(np.int32(0), INDEX)

    def starts(v: Var) -> list[Atom]:
        return [start if n == axes[v] else zero for n in range(v.aval.ndim)]

    env: dict[Var, Atom] = dict(zip(parts.shared, v_consts, strict=False))
    for v, const in zip(parts.lanes, v_consts[len(parts.shared):], strict=True):
        sizes = tuple([chunk if n == axes[v] else size for n, size in enumerate(v.aval.shape)])
        env[v] = inner(dynamic_slice_p, const, *starts(v), slice_sizes=sizes)
    totals = dict(zip(parts.sums, v_carry[1:], strict=False))
    operands = [*[env[v] for v in (*parts.lanes, *parts.shared)],
                *[totals[v] for v in parts.scattered]]
    outs = dict(zip(parts.results, inner.inline(body, operands, [
        totals[v] if v in totals and v not in parts.scattered else None
        for v in parts.results]), strict=True))
    after: list[Atom] = [inner(add_p, k, Literal(np.int32(1), INDEX))]
    after += [outs[v] for v in parts.sums]
    rooms = v_carry[1 + len(parts.sums):]
    after += [inner(dynamic_update_slice_p, room, outs[v], *starts(v))
              for v, room in zip(written, rooms, strict=True)]
    ys = [outs[v] for v in parts.stacked if axes[v] == 0]
    step = Jaxpr((), (*v_consts, *v_carry), tuple(inner.eqns), (*after, *ys), name=NAME)
    found = w.all(scan_p, *consts, *carry, jaxpr=step, length=count, reverse=False, unroll=1,
                  num_consts=len(consts), num_carry=len(carry))
    given = dict(zip([*parts.sums, *written], found[1:], strict=False))
    stacks = iter(found[len(carry):])
    for v in parts.stacked:
        if axes[v] == 0:
            given[v] = w(reshape_p, next(stacks), new_sizes=(whole, *v.aval.shape[1:]))
    if whole == batch.size:
        return [_in_dtype(w, given[v], v) for v in parts.results]
    return [given[v] for v in parts.results]


def _with_rest(w: _ChunkWriter, parts: _Parts, batch: ChunkedAxis, body: Jaxpr,
               results: Sequence[Var]) -> list[Var]:
    """The results with those of the lanes that are left."""
    known = dict(zip(parts.results, results, strict=True))
    rest = {v: batch.axis_of(v) for v in (*parts.lanes, *parts.stacked)}
    first = batch.size - _count(body, parts, batch)
    operands = [*[w.piece(v, rest[v] or 0, first, batch.size) for v in parts.lanes],
                *parts.shared, *[known[v] for v in parts.scattered]]
    outs = dict(zip(parts.results, w.inline(body, operands, [
        known[v] if v in parts.sums and v not in parts.scattered else None
        for v in parts.results]), strict=True))
    found = []
    for v in parts.stacked:
        axis = rest[v]
        if axis is None:  # the same for all lanes
            found.append(known[v])
        elif axis == 0:
            found.append(w(concatenate_p, known[v], outs[v], dimension=0))
        else:
            at = [Literal(np.int32(first if n == axis else 0), INDEX) for n in range(v.aval.ndim)]
            found.append(w(dynamic_update_slice_p, known[v], outs[v], *at))
    for v in parts.sums:
        out = outs[v]
        assert isinstance(out, Var)
        found.append(_in_dtype(w, out, v))
    return found


def _count(body: Jaxpr, parts: _Parts, batch: ChunkedAxis) -> int:
    """The lanes of a body."""
    for v, inner in (*zip(parts.lanes, body.invars, strict=False),
                     *zip(parts.stacked, body.outvars, strict=False)):
        axis = batch.axis_of(v)
        if axis is not None:
            return static_shape(inner.aval.shape)[axis]
    raise AssertionError("a batch without lanes")


def _zeros(w: _ChunkWriter, aval: ShapedArray) -> Var:
    """Where a sum begins; those of halves are carried in float32."""
    return w(full_p, shape=aval.shape, dtype=dtypes.computed_dtype(aval.dtype), value=0)


def _in_dtype(w: _ChunkWriter, x: Var, v: Var) -> Var:
    if x.aval.dtype == v.aval.dtype:
        return x
    return w(convert_element_type_p, x, new_dtype=v.aval.dtype)
