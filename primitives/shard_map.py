"""shard_map: a program that each device of a mesh runs on its part of the operands."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from functrans.core.avals import SAME, ShapedArray
from functrans.core.axes import ManualAxes, MappedAxis
from functrans.core.cost import Cost, jaxpr_cost
from functrans.core.eager import evaluate_on_mesh
from functrans.core.evaluate import eval_jaxpr
from functrans.core.jaxpr import Jaxpr
from functrans.core.mesh import DimAxes, Mesh, spec_of
from functrans.core.primitive import HigherOrder, Linear, Sample
from functrans.core.sharding import NamedSharding
from functrans.primitives.arithmetic import mul
from functrans.primitives.base import LinearPrimitive
from functrans.primitives.broadcast import move_axis
from functrans.primitives.collective import psum_p
from functrans.primitives.control_flow.bodies import leaves_unsized, rematerialized, stage_body
from functrans.primitives.shape import reshape

__all__ = ["axes_in", "global_aval", "local_aval", "shard_map_p", "sharding_constraint_p"]


def axes_in(dims: DimAxes) -> frozenset[str]:
    """The axes of the mesh that divide some axis of an array."""
    return frozenset([a for axes in dims for a in axes])


def global_aval(local: ShapedArray, dims: DimAxes, mesh: Mesh) -> ShapedArray:
    """The type of an array whose parts have the type `local`."""
    return ShapedArray(tuple([n * mesh.size_of(axes) for n, axes in
                              zip(local.shape, dims, strict=True)]), local.dtype, local.weak_type)


def local_aval(whole: ShapedArray, dims: DimAxes, mesh: Mesh,
               manual: frozenset[str] | None = None) -> ShapedArray:
    """The type of the parts of an array, which vary along the axes that divide it."""
    shape = tuple([n // mesh.size_of(axes) if axes else n
                   for n, axes in zip(whole.shape, dims, strict=True)])
    varying = whole.varying if manual is None else axes_in(dims) | whole.varying
    return ShapedArray(shape, whole.dtype, whole.weak_type, varying)


class ShardMap(HigherOrder):
    """Runs `jaxpr` on each device of `mesh`, on the parts of the operands that `in_dims` give it.

    What it returns are the parts of the results, as `out_dims` say. Types in the jaxpr say along
    which axes of the mesh values vary; so its transpose adds up cotangents where a value that all
    devices share is used (`core/varying.py`).
    """

    compiles = True

    def type(self, *avals: ShapedArray, jaxpr: Jaxpr, mesh: Mesh, out_dims: tuple[DimAxes, ...],
             manual: ManualAxes, **params: Any) -> list[ShapedArray]:
        outer: frozenset[Any] = SAME.union(*[a.varying for a in avals])
        return [global_aval(a, dims, mesh).varying_along(outer)
                for a, dims in zip(jaxpr.out_avals, out_dims, strict=True)]

    def evaluate(self, *arrays: Any, **params: Any) -> list[Any]:
        return [np.asarray(x) for x in evaluate_on_mesh(self, arrays, params)]

    def evaluate_eagerly(self, args: Sequence[Any], params: Any) -> Any:
        return evaluate_on_mesh(self, args, params)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], *, jvp_jaxpr: Any,
            jaxpr: Jaxpr, in_dims: tuple[DimAxes, ...], out_dims: tuple[DimAxes, ...],
            manual: ManualAxes, **params: Any) -> tuple[list[Any], list[Any]]:
        with manual.bound():
            pushed, nonzero = jvp_jaxpr(jaxpr, [t is not None for t in tangents])
        given = [(t, d) for t, d in zip(tangents, in_dims, strict=True) if t is not None]
        outs = self.bind(*primals, *[t for t, _ in given], jaxpr=pushed,
                         in_dims=(*in_dims, *[d for _, d in given]),
                         out_dims=(*out_dims, *_chosen(out_dims, nonzero)), manual=manual, **params)
        n = len(jaxpr.outvars)
        rest = iter(outs[n:])
        return outs[:n], [next(rest) if nz else None for nz in nonzero]

    def linearize(self, primals: Sequence[Any], tangents: Sequence[Any], *, linearize_jaxpr: Any,
                  jaxpr: Jaxpr, in_dims: tuple[DimAxes, ...], out_dims: tuple[DimAxes, ...],
                  mesh: Mesh, manual: ManualAxes) -> tuple[list[Any], list[Any]]:
        active = [t is not None for t in tangents]
        n = len(jaxpr.outvars)
        with manual.bound():
            split = linearize_jaxpr(jaxpr, active)
            if leaves_unsized(split.primal, split.primal.outvars[n:]):
                split = rematerialized(jaxpr, split, active)
            saved = split.primal.out_avals[n:]
            residual_dims = tuple([_own_axis(a, mesh) for a in saved])
            primal = stage_body(lambda *xs: _with_own_axes(split.primal, n, xs),
                                split.primal.in_avals, jaxpr.name)
            count = len(split.forwarded)
            from_own = [f is None for f in split.forwarded]
            taken = iter(saved)
            avals = [_with_axis(next(taken)) if own else a for own, a in
                     zip(from_own, split.linear.in_avals[:count], strict=True)]
            linear = stage_body(
                lambda *xs: eval_jaxpr(split.linear, (), *[
                    reshape(x, x.shape[1:]) if k < count and from_own[k] else x
                    for k, x in enumerate(xs)]),
                [*avals, *split.linear.in_avals[count:]], split.linear.name)
        outs = self.bind(*primals, jaxpr=primal, in_dims=in_dims,
                         out_dims=(*out_dims, *residual_dims), mesh=mesh, manual=manual)
        rest = iter(zip(outs[n:], residual_dims, strict=True))
        residuals = [next(rest) if f is None else (primals[f], in_dims[f])
                     for f in split.forwarded]
        given = [(t, d) for t, d in zip(tangents, in_dims, strict=True) if t is not None]
        results = iter(self.bind(
            *[x for x, _ in (*residuals, *given)], jaxpr=linear,
            in_dims=tuple([d for _, d in (*residuals, *given)]),
            out_dims=_chosen(out_dims, split.nonzero), mesh=mesh, manual=manual))
        return outs[:n], [next(results) if nz else None for nz in split.nonzero]

    def transpose(self, cts: Sequence[Any], *operands: Any, transpose_jaxpr: Any, jaxpr: Jaxpr,
                  in_dims: tuple[DimAxes, ...], out_dims: tuple[DimAxes, ...], mesh: Mesh,
                  manual: ManualAxes) -> list[Any]:
        linear = [isinstance(x, Linear) for x in operands]
        nonzero = [ct is not None for ct in cts]
        with manual.bound():
            back = transpose_jaxpr(jaxpr, linear, nonzero)
            wanted = _chosen(in_dims, linear)
            if any(a.varying - axes_in(d) for a, d in zip(back.out_avals, wanted, strict=True)):
                back = stage_body(lambda *xs: [_added_up(x, d) for x, d in zip(
                    eval_jaxpr(back, (), *xs), wanted, strict=True)], back.in_avals, back.name)
        given = [(x, d) for x, d, lin in zip(operands, in_dims, linear, strict=True) if not lin]
        given += [(_shared(ct, a.varying - axes_in(d), mesh), d) for ct, a, d in
                  zip(cts, jaxpr.out_avals, out_dims, strict=True) if ct is not None]
        results = iter(self.bind(*[x for x, _ in given], jaxpr=back, mesh=mesh, manual=manual,
                                 in_dims=tuple([d for _, d in given]), out_dims=wanted))
        return [next(results) if lin else None for lin in linear]

    def batch(self, operands: Sequence[Any], axes: Sequence[int | None], *, axis: MappedAxis,
              batch_jaxpr: Any, jaxpr: Jaxpr, in_dims: tuple[DimAxes, ...],
              out_dims: tuple[DimAxes, ...], manual: ManualAxes,
              **params: Any) -> tuple[list[Any], list[int | None]]:
        with manual.bound():
            mapped, batched = batch_jaxpr(jaxpr, axis, [a is not None for a in axes])
        outs = self.bind(
            *[x if a is None else move_axis(x, a, 0) for x, a in zip(operands, axes, strict=True)],
            jaxpr=mapped, manual=manual,
            in_dims=tuple([d if a is None else ((), *d)
                           for d, a in zip(in_dims, axes, strict=True)]),
            out_dims=tuple([((), *d) if b else d
                            for d, b in zip(out_dims, batched, strict=True)]), **params)
        return outs, [0 if b else None for b in batched]

    def cost(self, *avals: Any, jaxpr: Jaxpr, mesh: Mesh, **params: Any) -> Cost:
        return jaxpr_cost(jaxpr).times(mesh.size)


def _chosen(items: Sequence[Any], flags: Sequence[bool]) -> tuple[Any, ...]:
    return tuple([x for x, flag in zip(items, flags, strict=True) if flag])


def _own_axis(aval: ShapedArray, mesh: Mesh) -> DimAxes:
    """How a residual lies on the mesh: a new first axis has the values of all devices."""
    return (tuple([n for n in mesh.axis_names if n in aval.varying]), *[()] * aval.ndim)


def _with_axis(aval: ShapedArray) -> ShapedArray:
    return aval.with_shape((1, *aval.shape))


def _with_own_axes(jaxpr: Jaxpr, n: int, xs: Sequence[Any]) -> list[Any]:
    """The results of a program, those after the n-th with a new first axis of one element."""
    outs = eval_jaxpr(jaxpr, (), *xs)
    return [*outs[:n], *[reshape(x, (1, *x.shape)) for x in outs[n:]]]


def _shared(ct: Any, axes: frozenset[str], mesh: Mesh) -> Any:
    """The cotangent for each device of a value that all of them have, though types do not say so.

    That is one value: each copy has its share of the cotangent.
    """
    n = mesh.size_of(tuple(axes))
    return mul(ct, 1.0 / n) if n > 1 else ct


def _added_up(x: Any, dims: DimAxes) -> Any:
    """A cotangent of a value that is the same along the axes along which the cotangent varies."""
    excess = x.aval.varying - axes_in(dims)
    return psum_p.bind(x, axis_name=tuple(sorted(excess))) if excess else x


class ShardingConstraint(LinearPrimitive):
    """x itself, laid on the devices of a mesh as `sharding` says; axes that are `free` as it is."""

    widens_halves = False
    is_quiet = True
    compiles = True

    def type(self, x: ShapedArray, **params: Any) -> ShapedArray:
        return x

    def evaluate(self, x: Any, **params: Any) -> Any:
        return x

    def evaluate_eagerly(self, args: Sequence[Any], params: Any) -> Any:
        return evaluate_on_mesh(self, args, params)[0]

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        (x,), (t,) = primals, tangents
        return self.bind(x, **params), self.bind(t, **params)

    def transpose(self, ct: Any, x: Any, **params: Any) -> tuple[Any]:
        return (self.bind(ct, **params),)

    def batch(self, operands: Sequence[Any], axes: Sequence[int | None], *,
              sharding: NamedSharding, free: tuple[int, ...]) -> Any:
        (x,), (at,) = operands, axes
        if at is None:
            return self.bind(x, sharding=sharding, free=free), None
        dims = list(sharding.dims((0,) * (x.ndim - 1)))
        dims.insert(at, ())
        moved = NamedSharding(sharding.mesh, spec_of(tuple(dims)))
        return self.bind(x, sharding=moved,
                         free=(*[k + (k >= at) for k in free], at)), at

    def samples(self) -> Iterator[Sample]:
        """None: meshes are of devices that are there; tests/sharding lay values on them."""
        return iter(())


shard_map_p, sharding_constraint_p = ShardMap(), ShardingConstraint()
