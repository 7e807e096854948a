"""Programs of several devices, ready to run: one compiled program, on each device on its parts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final
from weakref import WeakKeyDictionary

import numpy as np

from functrans._runtime import (
    ArrayBase,
    donate_array,
    group_table,
    set_groups,
    with_weak_type,
    wrap,
)
from functrans.core.axes import axis_names
from functrans.core.communicator import OPS, TYPES, Broken, Connection, MeshMember, key_of
from functrans.core.jaxpr import Jaxpr, subjaxprs
from functrans.core.mesh import DimAxes, Mesh, spec_of
from functrans.core.sharding import same_parts, sharding_on
from functrans.core.shards import cut, in_shards, place_part, shards_of
from functrans.distributed.engines import engine_for
from functrans.lowering.executable import Executable, WrapperExecutable
from functrans.lowering.spmd.partition import Partitioned, partition
from functrans.primitives.collective import Collective

DTYPES: Final = list(TYPES)
OP_NAMES: Final[list[Any]] = list(OPS)

__all__ = ["MeshExecutable", "MeshProgram", "compile_for_mesh"]


def compile_for_mesh(jaxpr: Jaxpr, mesh: Mesh, in_dims: Sequence[DimAxes], donated: frozenset[int],
                     compile_: Callable[[Jaxpr, frozenset[int]], Executable]) -> MeshExecutable:
    """The program of a mesh of devices for arguments in parts; `compile_` compiles that of one.

    It is told which of its inputs are of `donated` arguments, and of the device alone.
    """
    parts = partition(jaxpr, mesh, in_dims)
    alone = len(mesh.local_ranks) == 1
    count = len(mesh.axis_names)  # the places along the axes come first
    given = frozenset([count + i for i in donated
                       if alone or mesh.size_of([a for d in in_dims[i] for a in d]) == mesh.size])
    return MeshExecutable(jaxpr, parts, compile_(parts.jaxpr, given), donated)


class MeshProgram:
    """Runs a program on all devices of this process: Arrays in, Arrays in shards out."""

    def __init__(self, jaxpr: Jaxpr, parts: Partitioned, executable: Executable,
                 donated: frozenset[int]) -> None:
        mesh = parts.mesh
        self.mesh = mesh
        self._donated = sorted(donated)
        self._in_shardings = [sharding_on(mesh, d) for d in parts.in_dims]
        self._in_types = [a.dtype for a in jaxpr.in_avals]
        self._results = [(sharding_on(mesh, d), a.shape, a.dtype, a.weak_type)
                         for d, a in zip(parts.out_dims, jaxpr.out_avals, strict=True)]
        self._runs = [(executable.on(d.id) if d.platform == "gpu" else executable).run
                      for d in mesh.local_devices]
        self._coordinates = [
            [place_part(wrap(np.int32(i)), d) for i in mesh.coordinates(r).values()]
            for r, d in zip(mesh.local_ranks, mesh.local_devices, strict=True)]
        self._places = {r: k for k, r in enumerate(mesh.local_ranks)}
        self._axes = {key_of(axes): axes for axes in _axes_of(parts.jaxpr)}
        self._tables: WeakKeyDictionary[MeshMember, Any] = WeakKeyDictionary()
        self._connection: Connection = engine_for(mesh).connect(mesh)
        if mesh.is_multi_process and self._axes:
            self._connection = self._connection.for_program(_told(jaxpr, parts))

    def __call__(self, arrays: Sequence[Any]) -> list[Any]:
        parts = [self._parts(x, s, t) for x, s, t in
                 zip(arrays, self._in_shardings, self._in_types, strict=True)]
        for i in self._donated:
            # others that share the memory keep it: a program writes to what nobody else holds
            parts[i] = [_another(p) for p in parts[i]]
            donate_array(arrays[i])

        arguments = [[*self._coordinates[k], *[p[k] for p in parts]]
                     for k in range(len(self._runs))]

        def program(member: MeshMember) -> list[Any]:
            k = self._places[member.rank]
            step = partial(_step, member, self._axes)  # the runtime borrows it
            set_groups(self._groups_of(member), step, Broken)
            try:
                return self._runs[k](arguments[k])
            finally:
                set_groups(None, None, None)

        found = self._connection.run_compiled(self._runs, arguments, self._axes)
        if found is None:
            found = self._connection.run(program)
        return [in_shards(sharding, shape, dtype, [_array(outs[i]) for outs in found], weak)
                for i, (sharding, shape, dtype, weak) in enumerate(self._results)]

    def _groups_of(self, member: MeshMember) -> Any:
        """The groups that collectives of the compiled program ask the runtime for."""
        table = self._tables.get(member)
        if table is None:
            table = self._tables[member] = group_table(
                [(key, *member.step_group(axes)) for key, axes in self._axes.items()])
        return table

    def _parts(self, x: Any, sharding: Any, dtype: Any) -> Sequence[Any]:
        """The parts of an argument, one for each device of this process."""
        shards = shards_of(x)
        if shards is not None and same_parts(shards.sharding, sharding, tuple(x.shape)):
            return shards.parts
        if not isinstance(x, ArrayBase):
            x = np.asarray(x, dtype)
        parts = cut(x, sharding)
        return [place_part(p, d) for p, d in zip(parts, self.mesh.local_devices, strict=True)]


def _told(jaxpr: Jaxpr, parts: Partitioned) -> str:
    """A program in words, the same in all processes that have the same; a line for its name."""
    operands = ", ".join([f"{a} as {spec_of(d)!r}" if any(d) else str(a)
                          for a, d in zip(jaxpr.in_avals, parts.in_dims, strict=True)])
    return f"{jaxpr.name}({operands}) on {parts.mesh!r}\n{parts.jaxpr}"


def _axes_of(jaxpr: Jaxpr) -> Iterator[tuple[str, ...]]:
    """The axes of the collectives of a program, bodies included."""
    for eqn in jaxpr.eqns:
        if isinstance(eqn.primitive, Collective):
            yield axis_names(eqn.params["axis_name"])
        for body in subjaxprs(eqn):
            yield from _axes_of(body)


def _step(member: MeshMember, axes: Mapping[int, tuple[str, ...]], kind: int, key: int, op: int,
          code: int, x: Any, out: Any, pairs: Sequence[tuple[int, int]]) -> None:
    """A collective of a compiled program, by the group of an engine; buffers come as bytes."""
    group = member.group(axes[key])
    x, out = x.view(DTYPES[code]), out.view(DTYPES[code])
    parts = (group.size, -1)
    if kind == 0:
        group.all_reduce(x, out, OP_NAMES[op])
    elif kind == 1:
        group.all_gather(x, out.reshape(parts))
    elif kind == 2:
        group.reduce_scatter(x.reshape(parts), out, OP_NAMES[op])
    elif kind == 3:
        group.all_to_all(x.reshape(parts), out.reshape(parts))
    else:
        group.permute(x, out, pairs)


def _another(x: Any) -> Any:
    """Another Array on the same memory."""
    return with_weak_type(with_weak_type(x, not x.weak_type), x.weak_type)


def _array(out: Any) -> Any:
    return out if isinstance(out, ArrayBase) else wrap(out)


class MeshExecutable(WrapperExecutable):
    """A program of a mesh of devices, and what is known of it."""

    why_not_portable = "it runs on several devices."

    def __init__(self, jaxpr: Jaxpr, parts: Partitioned, executable: Executable,
                 donated: frozenset[int]) -> None:
        self.jaxpr = jaxpr
        self.parts = parts
        self._inner = executable
        self.run = MeshProgram(jaxpr, parts, executable, donated)

    @property
    def inner(self) -> Executable:
        return self._inner

    @property
    def specialized(self) -> str:
        return "each set of sizes is divided for itself"
