"""Values in parts within a program of several devices, and how parts become others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from functrans.core.avals import ShapedArray
from functrans.core.jaxpr import Equation
from functrans.core.mesh import DimAxes, Mesh, spec_of
from functrans.lowering.report import CollectiveNote
from functrans.lowering.spmd.scattered_sums import LocalPart
from functrans.primitives.arithmetic import add, mul
from functrans.primitives.broadcast import move_axis
from functrans.primitives.collective import (
    all_gather_p,
    all_to_all_p,
    join_first,
    pmax_p,
    pmin_p,
    psum_p,
)
from functrans.primitives.dynamic_slice import dynamic_slice_p
from functrans.primitives.shape import reshape

__all__ = ["REDUCTIONS", "Local", "Placement", "moved_bytes", "whole"]

REDUCTIONS = {"sum": psum_p, "max": pmax_p, "min": pmin_p}


class Local(NamedTuple):
    """The part of a value that a device has.

    `dims` are the axes of the mesh that divide each axis of the whole, which has the type `aval`.
    """

    value: Any
    dims: DimAxes
    aval: ShapedArray


def whole(value: Any, aval: ShapedArray) -> Local:
    """A value that each device has."""
    return Local(value, ((),) * aval.ndim, aval)


def moved_bytes(aval: ShapedArray, have: DimAxes, wanted: DimAxes, mesh: Mesh) -> int:
    """An estimate of the bytes that each device receives when the parts change."""
    if have == wanted:
        return 0
    held = _nbytes(aval) // max(1, mesh.size_of([a for d in have for a in d]))
    total = 0
    wanted_axes = {a: k for k, d in enumerate(wanted) for a in d}
    for k, (old, new) in enumerate(zip(have, wanted, strict=True)):
        for axis in reversed(old[_common(old, new):]):
            n = mesh.shape[axis]
            if wanted_axes.get(axis, k) != k:
                total += held * (n - 1) // n
            else:
                total += held * (n - 1)
                held *= n
    return total


def _nbytes(aval: ShapedArray) -> int:
    return aval.nbytes if isinstance(aval.nbytes, int) else 1 << 20


def _common(a: Sequence[str], b: Sequence[str]) -> int:
    """How long the common beginning is."""
    n = 0
    while n < min(len(a), len(b)) and a[n] == b[n]:
        n += 1
    return n


class Placement:
    """Makes collectives, in the program that is being staged, and notes what asked for them.

    `coordinates` has the place of the device along each axis of the mesh, as values; `cuts` are
    noted where values are cut along one axis.
    """

    def __init__(self, mesh: Mesh, coordinates: Mapping[str, Any],
                 notes: list[tuple[CollectiveNote, Equation]], cuts: list[LocalPart]) -> None:
        self.mesh = mesh
        self.coordinates = coordinates
        self.notes = notes
        self.cuts = cuts
        self._asking: Equation | None = None
        self._why = ""

    @contextmanager
    def asked_by(self, eqn: Equation | None, why: str = "") -> Iterator[None]:
        """What collectives are for, in notes."""
        outer = self._asking, self._why
        self._asking, self._why = eqn, why
        try:
            yield
        finally:
            self._asking, self._why = outer

    def note(self, name: str, axes: Sequence[str], operand: Any, nbytes: int, result: Any,
             why: str = "") -> None:
        """Note what a collective is for; `result` is its own, before anything is done with it."""
        eqn = self._asking
        found = CollectiveNote(
            name, tuple(axes), str(operand.aval), nbytes,
            "the results" if eqn is None else eqn.primitive.name, why or self._why,
            None if eqn is None else eqn.source)
        self.notes.append((found, result.eqn))

    def index_along(self, axes: Sequence[str]) -> Any:
        """The place of the device along some axes together, the first one slowest."""
        first, *rest = axes
        at = self.coordinates[first]
        for axis in rest:
            at = add(mul(at, np.int32(self.mesh.shape[axis])), self.coordinates[axis])
        return at

    def offset(self, axes: Sequence[str], part: int) -> Any:
        """Where the part of the device begins along an axis of parts of that size."""
        return mul(self.index_along(axes), np.int32(part)) if axes else np.int32(0)

    def reduce(self, value: Any, axes: Sequence[str], op: str) -> Any:
        """The sum (or another) of the values of all devices along some axes."""
        if self.mesh.size_of(axes) == 1:
            return value
        primitive = REDUCTIONS[op]
        out = primitive.bind(value, axis_name=tuple(axes))
        n = self.mesh.size_of(axes)
        whys = {"sum": "a sum over devices", "max": "the largest of the devices",
                "min": "the smallest of the devices"}
        self.note(primitive.name, axes, value, 2 * value.aval.nbytes * (n - 1) // n, out, whys[op])
        return out

    def place(self, x: Local, wanted: DimAxes) -> Local:
        """The same value in other parts: exchanged, gathered, cut, in this order of preference."""
        if x.dims == wanted:
            return x
        value, have = x.value, [list(d) for d in x.dims]
        while True:
            drops = [k for k, d in enumerate(have) if len(d) > _common(d, wanted[k])]
            if not drops:
                break
            moved = False
            for k in drops:
                axis = have[k][-1]
                for j, target in enumerate(wanted):
                    if j != k and have[j] == list(target[:len(have[j])]) \
                            and len(target) > len(have[j]) and target[len(have[j])] == axis:
                        value = self._exchange(value, axis, j, k, x, wanted)
                        have[j].append(have[k].pop())
                        moved = True
                        break
                if moved:
                    break
            if not moved:
                k = drops[0]
                keep = _common(have[k], wanted[k])
                value = self._gather(value, have[k][keep:], k, x, wanted)
                del have[k][keep:]
        sizes = list(value.shape)
        starts: list[Any] = [np.int32(0)] * len(sizes)
        for k, target in enumerate(wanted):
            extra = target[len(have[k]):]
            if extra:
                sizes[k] //= self.mesh.size_of(extra)
                starts[k] = self.offset(extra, sizes[k])
        if tuple(sizes) != tuple(value.shape):
            part: Any = dynamic_slice_p.bind(value, *starts, slice_sizes=tuple(sizes))
            along = [k for k, n in enumerate(sizes) if n != value.shape[k]]
            if len(along) == 1:
                (k,) = along
                self.cuts.append(LocalPart(part.eqn, tuple(wanted[k][len(have[k]):]), k))
            value = part
        return Local(value, wanted, x.aval)

    def _exchange(self, value: Any, axis: str, split: int, concat: int, x: Local,
                  wanted: DimAxes) -> Any:
        n = self.mesh.shape[axis]
        if n == 1:
            return value
        shape = value.shape
        parts = reshape(value, (*shape[:split], n, shape[split] // n, *shape[split + 1:]))
        # the axis of parts goes, and comes back before `concat` as it is numbered without it
        out = all_to_all_p.bind(move_axis(parts, split, 0), axis_name=axis, axis_size=n, split=0,
                                concat=0)
        self.note("all_to_all", (axis,), value, value.aval.nbytes * (n - 1) // n, out,
                  self._moved(x, wanted))
        return join_first(move_axis(out, 0, concat), concat)

    def _gather(self, value: Any, axes: Sequence[str], dimension: int, x: Local,
                wanted: DimAxes) -> Any:
        n = self.mesh.size_of(axes)
        if n == 1:
            return value
        out = all_gather_p.bind(value, axis_name=tuple(axes), axis_size=n, dimension=0)
        self.note("all_gather", axes, value, value.aval.nbytes * (n - 1), out,
                  self._moved(x, wanted))
        return join_first(move_axis(out, 0, dimension), dimension)

    def _moved(self, x: Local, wanted: DimAxes) -> str:
        what = f"{x.aval} is divided as {spec_of(x.dims)!r} and needed as {spec_of(wanted)!r}"
        return f"{self._why}: {what}" if self._why else what
