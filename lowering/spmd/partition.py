"""From a jaxpr of whole arrays to the jaxpr that each device runs on its parts.

One walk along the program: each operation is applied to the parts that its operands have
(`families.py`), after the collectives that it needs. What no rule knows is computed whole, by all
devices. The bodies of `shard_map` are the programs of parts already.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np

from functrans.core.avals import ShapedArray, get_aval
from functrans.core.jaxpr import Equation, Jaxpr, Literal, Var, subjaxprs
from functrans.core.mesh import DimAxes, Mesh
from functrans.core.prune import prune_jaxpr
from functrans.core.record import Record
from functrans.core.sizes import learn_sizes, substitute
from functrans.core.source import interpreted
from functrans.core.staging import stage
from functrans.lowering.report import CollectiveNote, received_bytes
from functrans.lowering.spmd.control import CONTROL
from functrans.lowering.spmd.families import rule_of
from functrans.lowering.spmd.layout import Local, Placement, whole
from functrans.lowering.spmd.plain import plain_params
from functrans.lowering.spmd.scattered_sums import LocalPart, with_scattered_sums
from functrans.primitives.arithmetic import add
from functrans.primitives.base import zeros
from functrans.primitives.broadcast import move_axis
from functrans.primitives.collective import (
    Collective,
    all_gather_p,
    all_to_all_p,
    axis_index_p,
    psum_p,
    psum_scatter_p,
    pvary_p,
)
from functrans.primitives.compare import eq
from functrans.primitives.control_flow.cond import cond_p
from functrans.primitives.convert import convert_element_type, convert_element_type_p
from functrans.primitives.shape import reshape, slice_in_dim
from functrans.primitives.shard_map import local_aval, shard_map_p, sharding_constraint_p

__all__ = ["Partitioned", "partition"]

COORDINATE = ShapedArray((), np.dtype(np.int32))


class Partitioned(Record):
    """The program of each device.

    Its first inputs are the places of the device along the axes of the mesh; `notes` are its
    collectives.
    """

    jaxpr: Jaxpr
    mesh: Mesh
    in_dims: tuple[DimAxes, ...]
    out_dims: tuple[DimAxes, ...]
    notes: tuple[CollectiveNote, ...]


def partition(jaxpr: Jaxpr, mesh: Mesh, in_dims: Sequence[DimAxes]) -> Partitioned:
    """The program of each device of `mesh` for operands in parts; results are as they come."""
    out_dims: list[DimAxes] = []
    notes: list[tuple[CollectiveNote, Equation]] = []
    cuts: list[LocalPart] = []
    count = len(mesh.axis_names)

    def fun(*args: Any) -> list[Any]:
        walk = PartitionWalk(mesh, dict(zip(mesh.axis_names, args[:count], strict=True)), notes,
                             cuts)
        operands = [Local(x, d, a) for x, d, a in
                    zip(args[count:], in_dims, jaxpr.in_avals, strict=True)]
        outs = walk.run(jaxpr, operands)
        out_dims.extend(o.dims for o in outs)
        return [o.value for o in outs]

    avals = [local_aval(a, d, mesh) for a, d in zip(jaxpr.in_avals, in_dims, strict=True)]
    closed = stage(fun, [COORDINATE] * count + avals, name=jaxpr.name)
    assert not closed.consts
    program = prune_jaxpr(closed.jaxpr)
    kept = set(map(id, _equations(program)))
    told = [(note, eqn) for note, eqn in notes if id(eqn) in kept]
    program = with_scattered_sums(program, cuts, told, mesh)
    return Partitioned(program, mesh, tuple(in_dims), tuple(out_dims),
                       tuple([note for note, _ in told]))


def _equations(jaxpr: Jaxpr) -> Iterator[Equation]:
    for eqn in jaxpr.eqns:
        yield eqn
        for body in subjaxprs(eqn):
            yield from _equations(body)


def substituted(aval: ShapedArray, sizes: Mapping[str, Any]) -> ShapedArray:
    """A type with other sizes in place of those with names."""
    return aval.with_shape(tuple([substitute(n, sizes) for n in aval.shape]))


class PartitionWalk(Placement):
    """Applies a program to parts, in the program that is being staged."""

    def run(self, jaxpr: Jaxpr, operands: Sequence[Local]) -> list[Local]:
        """The results of a program of whole arrays."""
        env: dict[Var, Local] = dict(zip(jaxpr.invars, operands, strict=True))
        outer = interpreted.source
        sizes: dict[str, Any] = {}  # what sizes that a run decides are called here
        symbolic = bool(jaxpr.size_names)
        if symbolic:
            for var, x in env.items():
                learn_sizes(sizes, var.aval.shape, x.aval.shape)

        def read(atom: Any) -> Local:
            return whole(atom.operand, atom.aval) if isinstance(atom, Literal) else env[atom]

        try:
            for given in jaxpr.eqns:
                eqn = given
                interpreted.source = eqn.source or outer
                if sizes:
                    eqn = eqn.replace(params={k: substitute(v, sizes)
                                              for k, v in eqn.params.items()},
                                      outvars=tuple([Var(substituted(v.aval, sizes))
                                                     for v in eqn.outvars]))
                with self.asked_by(eqn):
                    outs = self.apply(eqn, [read(a) for a in eqn.invars])
                for var, x in zip(given.outvars, outs, strict=True):
                    env[var] = x
                    if symbolic:
                        learn_sizes(sizes, var.aval.shape, x.aval.shape)
        finally:
            interpreted.source = outer
        return [read(a) for a in jaxpr.outvars]

    def apply(self, eqn: Equation, operands: Sequence[Local]) -> list[Local]:
        """The results of one operation."""
        primitive, params = eqn.primitive, eqn.params
        if primitive is shard_map_p:
            return self._manual(eqn, operands)
        if primitive is sharding_constraint_p:
            return [self._constrained(eqn, operands[0])]
        if primitive is pvary_p:
            return list(operands)
        if primitive is axis_index_p and params["axis_name"] in self.coordinates:
            return [whole(self.coordinates[params["axis_name"]], COORDINATE)]
        if primitive.higher_order:
            rule = CONTROL.get(primitive)
            found = None if rule is None else rule(self, eqn, operands)
            if found is not None:
                return found
            called = getattr(primitive, "called", None)
            if called is not None:
                inner, given = called(operands, **params)
                return self.run(inner.hoist_consts(), given)
        elif not isinstance(primitive, Collective):
            family = rule_of(primitive)
            if family is not None:
                return family(self, eqn, operands)
        with self.asked_by(eqn, f"{primitive.name} is computed whole"):
            values = [self.place(x, ((),) * x.aval.ndim).value for x in operands]
            if primitive.has_effect:
                return self._by_the_first(eqn, values)
        outs = primitive.bind(*values, **plain_params(params))
        results = list(outs) if primitive.multiple_results else [outs]
        return [whole(r, get_aval(r)) for r in results]

    def _by_the_first(self, eqn: Equation, values: Sequence[Any]) -> list[Local]:
        """What acts on the world does so on the first device, which tells the others what it gave.
        """
        invars = tuple([Var(get_aval(x)) for x in values])
        outvars = tuple([Var(v.aval) for v in eqn.outvars])
        acts = Jaxpr((), invars, (eqn.replace(invars=invars, outvars=outvars),), outvars,
                     name=eqn.primitive.name)
        rests = stage(lambda *_: [zeros(v.aval) for v in outvars], [v.aval for v in invars],
                      name=eqn.primitive.name).jaxpr
        axes = self.mesh.axis_names
        first = eq(self.index_along(axes), np.int32(0))
        outs = cond_p.bind(first, *values, branches=(rests, acts))
        return [whole(self.reduce(o, axes, "sum"), get_aval(o)) for o in outs]

    def _manual(self, eqn: Equation, operands: Sequence[Local]) -> list[Local]:
        """The body of a shard_map: a program of parts, in place of the operation."""
        body, mesh = eqn.params["jaxpr"], eqn.params["mesh"]
        placed = [self.place(x, d)
                  for x, d in zip(operands, eqn.params["in_dims"], strict=True)]
        inner = _Manual(self.mesh, self.coordinates, self.notes, self.cuts)
        outs = inner.run(body, [whole(x.value, local_aval(x.aval, x.dims, mesh))
                                for x in placed])
        return [Local(o.value, d, v.aval) for o, d, v in
                zip(outs, eqn.params["out_dims"], eqn.outvars, strict=True)]

    def _constrained(self, eqn: Equation, x: Local) -> Local:
        sharding, free = eqn.params["sharding"], eqn.params["free"]
        dims = list(sharding.dims(x.aval.shape, "with_sharding_constraint"))
        used = {a for d in dims for a in d}
        for k in free:
            if not used.intersection(x.dims[k]):
                dims[k] = x.dims[k]
        return self.place(x, tuple(dims))


class _Manual(PartitionWalk):
    """Applies the body of a shard_map: values are parts already, collectives are its own."""

    def __init__(self, mesh: Mesh, coordinates: Mapping[str, Any],
                 notes: list[tuple[CollectiveNote, Equation]], cuts: list[LocalPart]) -> None:
        super().__init__(mesh, coordinates, notes, cuts)
        self._narrow: dict[int, tuple[Any, Any]] = {}  # what was converted, by what it became

    def apply(self, eqn: Equation, operands: Sequence[Local]) -> list[Local]:
        primitive, params = eqn.primitive, eqn.params
        if primitive in (shard_map_p, pvary_p, axis_index_p) or primitive in CONTROL:
            return super().apply(eqn, operands)
        if primitive is sharding_constraint_p:  # axes that the body does not see are whole
            return list(operands)
        called = getattr(primitive, "called", None)
        if called is not None:
            inner, given = called(operands, **params)
            return self.run(inner.hoist_consts(), given)
        values = [x.value for x in operands]
        if isinstance(primitive, Collective):
            (x,) = values
            axes = params["axis_name"]
            axes = axes if isinstance(axes, tuple) else (axes,)
            narrow = self._narrow.get(id(x), (None, None))[1] if primitive is psum_p else None
            if narrow is not None and _is_less_to_gather(narrow.aval, x.aval,
                                                         self.mesh.size_of(axes)):
                return [self._sum_of_gathered(narrow, x, axes)]
            out, own = _with_parts_first(primitive, x, params)
            self.note(primitive.name, axes, x, received_bytes(primitive.name, x.aval,
                                                         self.mesh.size_of(axes)), own)
            return [whole(out, get_aval(out))]
        outs = primitive.bind(*values, **plain_params(params))
        if primitive is convert_element_type_p:
            self._narrow[id(outs)] = outs, values[0]
        results = list(outs) if primitive.multiple_results else [outs]
        return [whole(r, get_aval(r)) for r in results]

    def _sum_of_gathered(self, narrow: Any, x: Any, axes: tuple[str, ...]) -> Local:
        """A sum over few devices of what was converted to a wider dtype."""
        n, aval = self.mesh.size_of(axes), narrow.aval
        own = all_gather_p.bind(narrow, axis_name=axes, axis_size=n, dimension=0)
        self.note("all_gather", axes, narrow, aval.nbytes * (n - 1), own,
                  f"a sum over devices of what became {x.aval}: the narrower ones are fewer bytes")
        parts = [convert_element_type(reshape(slice_in_dim(own, k, k + 1), aval.shape),
                                      x.aval.dtype) for k in range(n)]
        out = parts[0]
        for part in parts[1:]:
            out = add(out, part)
        return whole(out, get_aval(out))


LEAST_GATHERED: Final = 1 << 20
"""Bytes of the narrower values; the latency of less is all that it takes."""


def _is_less_to_gather(narrow: ShapedArray, wide: ShapedArray, n: int) -> bool:
    """Whether each of n devices receives fewer bytes of all narrow values than of their sum.

    A sum in a ring takes 2 (n - 1) / n of the wide ones: so of 2 and 3 devices where the wide
    dtype has twice the bytes, as gradients in bfloat16 of parameters in float32.
    """
    return (narrow.is_static and narrow.nbytes >= LEAST_GATHERED
            and n * narrow.dtype.itemsize < 2 * wide.dtype.itemsize)


def _with_parts_first(primitive: Collective, x: Any,
                      params: Mapping[str, Any]) -> tuple[Any, Any]:
    """A collective whose parts are along the first axis, with what moves them as operations.

    Its result, and the one before it is moved.
    """
    if primitive is all_gather_p:
        own = all_gather_p.bind(x, **{**params, "dimension": 0})
        return move_axis(own, 0, params["dimension"]), own
    if primitive is psum_scatter_p:
        own = psum_scatter_p.bind(move_axis(x, params["dimension"], 0),
                                  **{**params, "dimension": 0})
        return own, own
    if primitive is all_to_all_p:
        parts = move_axis(x, params["split"], 0)
        own = all_to_all_p.bind(parts, **{**params, "split": 0, "concat": 0})
        return move_axis(own, 0, params["concat"]), own
    own = primitive.bind(x, **params)
    return own, own
