"""Profiles of programs of several devices: collectives by themselves, and what hides them.

Each collective is timed alone, on all devices of the mesh; so is the program without its
collectives, each of which gives what it has here in the shape of its result. What both take
together and the whole program does not is the time in which devices exchange and compute at once.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, Final

import numpy as np

from functrans.core.axes import axis_names
from functrans.core.evaluate import eval_jaxpr
from functrans.core.jaxpr import Equation, Jaxpr, Var, subjaxprs, with_bodies
from functrans.core.mesh import Mesh, PartitionSpec, spec_of
from functrans.core.sharding import NamedSharding
from functrans.core.staging import stage
from functrans.lax.loops import fori_loop
from functrans.lax.parallel import axis_index
from functrans.lowering.backend import divided_on_mesh
from functrans.lowering.report import CollectiveNote, KernelReport, line_of, received_bytes
from functrans.lowering.timing import timed_runs
from functrans.placement import block_until_ready, device_put
from functrans.primitives.barrier import optimization_barrier
from functrans.primitives.base import zeros
from functrans.primitives.broadcast import broadcast_in_dim_p
from functrans.primitives.collective import Collective
from functrans.primitives.control_flow.scan import scan_p
from functrans.primitives.control_flow.while_loop import while_p
from functrans.primitives.index import index_in_dim
from functrans.primitives.shape import reshape
from functrans.transforms.jit.api import jit
from functrans.transforms.meshes import dims_on
from functrans.transforms.shard_map import shard_map

__all__ = ["MeshRun", "TimedCollective", "run_on_mesh"]

IN_A_ROW: Final = 16
"""Runs of a collective in a call that is timed."""
NO_APART: Final = "A loop ends by what devices exchange: its computation cannot be timed apart."


@dataclass(frozen=True)
class TimedCollective:
    """A collective of a program: how often it runs, and the seconds of all its runs by itself.

    `nbytes` are what each device receives in all of them.
    """

    kernel: KernelReport
    seconds: float
    nbytes: int

    @property
    def bus_rate(self) -> float:
        """Bytes that each device receives in a second."""
        return self.nbytes / self.seconds if self.seconds > 0 else 0.0


@dataclass(frozen=True)
class MeshRun:
    """What was measured of a program of several devices.

    `computing` is the time without collectives, None where it is not known; `part` computes the
    part of one device without them, of the values `of_one`.
    """

    seconds: float
    collectives: tuple[TimedCollective, ...]
    computing: float | None
    notes: tuple[CollectiveNote, ...]
    part: Callable[..., Any] | None
    of_one: tuple[Any, ...]


def run_on_mesh(run: Callable[..., Any], jaxpr: Jaxpr, inputs: Sequence[Any], mesh: Mesh
                ) -> MeshRun:
    """Run a program, its collectives by themselves, and what is left without them."""
    parts = divided_on_mesh(jaxpr, mesh, [dims_on(mesh, x) for x in inputs])
    placed = [device_put(x, NamedSharding(mesh, spec_of(d)))
              for x, d in zip(inputs, parts.in_dims, strict=True)]
    alone: dict[Any, float] = {}
    found: list[TimedCollective] = []
    for eqn, runs in _collectives(parts.jaxpr, 1):
        aval, axes = eqn.invars[0].aval, axis_names(eqn.params["axis_name"])
        key = (eqn.primitive, repr(sorted(eqn.params.items())), aval.shape, aval.dtype)
        if key not in alone:
            alone[key] = _alone(eqn, mesh)
        nbytes = runs * received_bytes(eqn.primitive.name, aval, mesh.size_of(axes))
        line = line_of(eqn.source)
        found.append(TimedCollective(KernelReport(
            f"{eqn.primitive.name} over {', '.join(axes)}", "collective", (),
            () if line is None else (line,), f"of a {aval} on each device of {mesh!r}", 0, nbytes,
            runs=runs), runs * alone[key], nbytes))
    if _ends_by_exchange(parts.jaxpr):
        (whole,) = _seconds([run], placed)
        return MeshRun(whole, tuple(found), None, parts.notes, None, ())
    program = _without_collectives(parts.jaxpr)
    count = len(mesh.axis_names)

    def local(*values: Any) -> tuple[Any, ...]:
        return tuple(eval_jaxpr(program, (), *map(axis_index, mesh.axis_names), *values))

    def part(*values: Any) -> list[Any]:
        return eval_jaxpr(program, (), *[np.int32(0)] * count, *values)

    part.__name__ = jaxpr.name
    given, gives = (tuple(map(spec_of, d)) for d in (parts.in_dims, parts.out_dims))
    apart = jit(shard_map(local, mesh, given, gives, check_vma=False))
    whole, computing = _seconds([run, apart], placed)
    return MeshRun(whole, tuple(found), min(computing, whole), parts.notes, part,
                   tuple([x.addressable_shards[0].data for x in placed]))


def _seconds(runs: Sequence[Callable[..., Any]], args: Sequence[Any]) -> list[float]:
    """The medians of the times of several programs, which take turns: a slow moment is of all."""
    def once() -> list[float]:
        found = []
        for run in runs:
            start = time.perf_counter()
            block_until_ready(run(*args))
            found.append(time.perf_counter() - start)
        return found

    return [median(times) for times in zip(*timed_runs(once)[0], strict=True)]


def _collectives(jaxpr: Jaxpr, runs: int) -> Iterator[tuple[Equation, int]]:
    """Each collective, and how often it runs; a loop that decides itself counts as one run."""
    for eqn in jaxpr.eqns:
        if isinstance(eqn.primitive, Collective):
            yield eqn, runs
        times = eqn.params["length"] if eqn.primitive is scan_p else 1
        for body in subjaxprs(eqn):
            yield from _collectives(body, runs * (times if isinstance(times, int) else 1))


def _ends_by_exchange(jaxpr: Jaxpr) -> bool:
    return any((eqn.primitive is while_p and any(any(_collectives(b, 1)) for b in subjaxprs(eqn)))
               or any(map(_ends_by_exchange, subjaxprs(eqn))) for eqn in jaxpr.eqns)


def _alone(eqn: Equation, mesh: Mesh) -> float:
    """Seconds of a collective by itself, of zeros; the call is shared by several in a row."""
    aval, out, spec = eqn.invars[0].aval, eqn.outvars[0].aval, PartitionSpec(mesh.axis_names)

    def again(_: Any, carry: tuple[Any, Any]) -> tuple[Any, Any]:
        x, _last = optimization_barrier(carry)
        return x, eqn.primitive.bind(x, **eqn.params)

    def local(x: Any) -> Any:
        first = reshape(x, aval.shape), zeros(out.varying_along(frozenset()))
        return fori_loop(0, IN_A_ROW, again, first)[1][None]

    x = device_put(np.zeros((mesh.size, *aval.shape), aval.dtype), NamedSharding(mesh, spec))
    run = jit(shard_map(local, mesh, spec, spec, check_vma=False))
    return _seconds([run], [x])[0] / IN_A_ROW


def _without_collectives(jaxpr: Jaxpr) -> Jaxpr:
    """The program of a device by itself; what kernels did not cross they do not cross now."""
    eqns: list[Equation] = []
    names: dict[Any, Any] = {}
    for eqn in jaxpr.eqns:
        given = eqn.replace(invars=tuple([names.get(v, v) if isinstance(v, Var) else v
                                          for v in eqn.invars]))
        if not isinstance(eqn.primitive, Collective) or not eqn.invars:
            eqns.append(with_bodies(given, _without_collectives))
            continue
        (x,), (out,) = given.invars, eqn.outvars
        at = eqn.params.get("dimension", 0)

        def instead(x: Any, shape: Any = out.aval.shape, at: int = at) -> list[Any]:
            x = optimization_barrier(x)
            if x.ndim < len(shape):
                return [broadcast_in_dim_p.bind(x, shape=shape, broadcast_dimensions=tuple(
                    [d for d in range(len(shape)) if d != at]))]
            return [index_in_dim(x, 0, at, keepdims=False) if x.ndim > len(shape) else
                    reshape(x, shape)]

        staged = stage(instead, [x.aval], name="instead").jaxpr
        inner: dict[Any, Any] = {staged.invars[0]: x}
        eqns += [e.replace(invars=tuple([inner.get(v, v) if isinstance(v, Var) else v
                                         for v in e.invars])) for e in staged.eqns]
        (result,) = staged.outvars
        names[out] = inner.get(result, result)
    return jaxpr.replace(eqns=tuple(eqns), outvars=tuple(
        [names.get(v, v) if isinstance(v, Var) else v for v in jaxpr.outvars]))
