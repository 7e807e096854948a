"""Sums over devices of which each device needs a part: half the bytes, and no memory for the whole.

What follows a sum element by element is done with the part then.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from functrans.core.axes import axis_names
from functrans.core.jaxpr import Equation, Jaxpr, Var, with_bodies
from functrans.core.mesh import Mesh
from functrans.core.record import Record
from functrans.core.staging import stage
from functrans.lowering.report import CollectiveNote
from functrans.primitives.broadcast import move_axis, transpose_p
from functrans.primitives.collective import psum_p, psum_scatter_p
from functrans.primitives.convert import convert_element_type_p
from functrans.primitives.elementwise import Elementwise
from functrans.primitives.shape import reshape

__all__ = ["LocalPart", "with_scattered_sums"]


class LocalPart(Record):
    """An equation that takes the part of its device, of those along some axes, along one axis."""

    eqn: Equation
    axes: tuple[str, ...]
    dimension: int


Notes = list[tuple[CollectiveNote, Equation]]


def with_scattered_sums(jaxpr: Jaxpr, cuts: Sequence[LocalPart], notes: Notes, mesh: Mesh) -> Jaxpr:
    """The program with scattered sums in place of sums that are cut; `notes` tell of them then."""
    by_eqn = {id(cut.eqn): cut for cut in cuts}
    return _rewritten(jaxpr, by_eqn, notes, mesh) if by_eqn else jaxpr


def _rewritten(jaxpr: Jaxpr, cuts: Mapping[int, LocalPart], notes: Notes, mesh: Mesh) -> Jaxpr:
    made_by = {v: eqn for eqn in jaxpr.eqns for v in eqn.outvars}
    uses = Counter(v for eqn in jaxpr.eqns for v in eqn.invars if isinstance(v, Var))
    uses.update(v for v in jaxpr.outvars if isinstance(v, Var))
    chains: dict[int, tuple[LocalPart, int]] = {}  # by equation: the cut behind it, and where it is
    for eqn in jaxpr.eqns:
        cut = cuts.get(id(eqn))
        if cut is not None:
            chains |= _chain(cut, made_by, uses, mesh)
    inside = {id(e): with_bodies(e, lambda body: _rewritten(body, cuts, notes, mesh))
              for e in jaxpr.eqns if id(e) not in chains}
    if not chains and all(inside[id(e)] is e for e in jaxpr.eqns):
        return jaxpr
    parts: dict[Var, Any] = {}
    eqns: list[Equation] = []
    for eqn in jaxpr.eqns:
        found = chains.get(id(eqn))
        if found is None:
            eqns.append(inside[id(eqn)])
            continue
        cut, dimension = found
        n = mesh.size_of(cut.axes)
        if eqn is cut.eqn:
            parts[eqn.outvars[0]] = parts[eqn.invars[0]]  # type: ignore[index]
            continue
        (out,) = eqn.outvars
        if eqn.primitive is psum_p:
            new = _scattered(eqn, cut.axes, n, dimension)
            _tell(notes, eqn, new, cut.axes, mesh)
            eqns += new
            parts[out] = new[-1].outvars[0]
            continue
        shape = list(out.aval.shape)
        shape[dimension] //= n
        part = Var(out.aval.with_shape(tuple(shape)))
        eqns.append(eqn.replace(invars=tuple([parts.get(x, x) for x in eqn.invars]),  # type: ignore[arg-type]
                                outvars=(part,)))
        parts[out] = part

    def read(x: Any) -> Any:
        return parts.get(x, x) if isinstance(x, Var) else x

    replaced = {cut.eqn.outvars[0] for cut, _ in chains.values()}
    eqns = [e if not replaced.intersection(x for x in e.invars if isinstance(x, Var))
            else e.replace(invars=tuple(map(read, e.invars))) for e in eqns]
    return jaxpr.replace(eqns=tuple(eqns), outvars=tuple(map(read, jaxpr.outvars)))


def _chain(cut: LocalPart, made_by: Mapping[Var, Equation], uses: Mapping[Var, int],
           mesh: Mesh) -> dict[int, tuple[LocalPart, int]]:
    """The equations from a sum to a cut, each with the axis of its result that is cut; or none."""
    found = {id(cut.eqn): (cut, cut.dimension)}
    at, dimension = cut.eqn.invars[0], cut.dimension
    while isinstance(at, Var) and uses[at] == 1 and at in made_by:
        eqn = made_by[at]
        found[id(eqn)] = cut, dimension
        if eqn.primitive is psum_p:
            summed = axis_names(eqn.params["axis_name"])
            return found if set(cut.axes) <= set(summed) and at.aval.is_static else {}
        if eqn.primitive is transpose_p:
            dimension = eqn.params["permutation"][dimension]
        elif not isinstance(eqn.primitive, Elementwise) \
                and eqn.primitive is not convert_element_type_p:
            return {}
        whole = [x for x in eqn.invars if x.aval.ndim]
        if len(whole) != 1 or len(eqn.outvars) != 1:
            return {}
        at = whole[0]
    return {}


def _scattered(eqn: Equation, axes: tuple[str, ...], n: int, dimension: int) -> list[Equation]:
    """What gives each device its part of a sum."""
    (x,) = eqn.invars
    rest = tuple([a for a in axis_names(eqn.params["axis_name"]) if a not in axes])

    def fun(x: Any) -> Any:
        shape = x.shape
        parts = reshape(x, (*shape[:dimension], n, shape[dimension] // n, *shape[dimension + 1:]))
        part = psum_scatter_p.bind(move_axis(parts, dimension, 0), axis_name=axes, axis_size=n,
                                   dimension=0)
        return psum_p.bind(part, axis_name=rest) if rest else part

    program = stage(lambda x: [fun(x)], [x.aval], name="sum").jaxpr
    names: dict[Any, Any] = dict(zip(program.invars, (x,), strict=True))
    return [e.replace(invars=tuple([names.get(v, v) if isinstance(v, Var) else v
                                    for v in e.invars]), source=eqn.source)
            for e in program.eqns]


def _tell(notes: Notes, eqn: Equation, new: Sequence[Equation], axes: tuple[str, ...],
          mesh: Mesh) -> None:
    """Put what is done now in the place of the note of a sum."""
    n = mesh.size_of(axes)
    for k, (note, of) in enumerate(notes):
        if of is eqn:
            (x,) = eqn.invars
            why = f"{note.why}, of which each needs its part"
            told = [(replace(note, name="psum_scatter", axes=axes,
                             nbytes=x.aval.nbytes * (n - 1) // n, why=why), new[0])]
            if new[-1].primitive is psum_p:
                (part,) = new[-1].invars
                rest = axis_names(new[-1].params["axis_name"])
                m = mesh.size_of(rest)
                told.append((replace(note, axes=rest, aval=str(part.aval),
                                     nbytes=2 * part.aval.nbytes * (m - 1) // m,
                                     why=f"{note.why}, of the parts"), new[-1]))
            notes[k:k + 1] = told
            return
