"""`shard_map` for users: a function of the parts of arrays, run on each device of a mesh."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from functrans._runtime import get_trace
from functrans.core import config
from functrans.core.avals import ShapedArray, get_aval
from functrans.core.axes import ManualAxes, bound_axes, manual_axes
from functrans.core.errors import ArgumentError, AxisNameError, ShardingError, public, shown
from functrans.core.jaxpr import ClosedJaxpr
from functrans.core.mesh import DimAxes, Mesh, PartitionSpec, current_mesh, dims_of, spec_of
from functrans.core.record import Record
from functrans.core.shards import mesh_dims
from functrans.core.source import user_source
from functrans.core.staging import stage
from functrans.core.trace import Tracer
from functrans.core.tree import PyTreeDef, broadcast_prefix, tree_paths, tree_unflatten
from functrans.core.varying import vary, varying_of
from functrans.primitives.shard_map import axes_in, local_aval, shard_map_p
from functrans.transforms.flat import (
    FlatFunction,
    argument_name,
    check_callable,
    flatten_args,
    name_of,
    wraps,
)

if TYPE_CHECKING:
    from functrans.typing import PyTree

__all__ = ["is_spec", "shard_map"]


class Infer:
    """In place of `in_specs`: arguments are divided as they lie on the mesh."""

    def __repr__(self) -> str:
        return "Infer"


INFER: Final = Infer()
_MISSING: Final = object()


def is_spec(x: Any) -> bool:
    """Whether x is a leaf of a tree of specs."""
    return x is None or isinstance(x, PartitionSpec)


@public
def shard_map(f: Callable[..., Any] | None = None, mesh: Mesh | None = None,
              in_specs: PyTree = INFER, out_specs: PyTree = _MISSING, *,
              axis_names: Iterable[str] = frozenset(),
              check_vma: bool = True) -> Callable[..., Any]:
    """The function that runs `f` on each device of a mesh, on the parts of its arguments.

    `in_specs` and `out_specs` are PartitionSpecs, or pytrees of them that are prefixes of the
    tuple of arguments and of the output: how arguments are divided, and of what whole the outputs
    are parts. `mesh` is by default that of the scope (`set_mesh`). Within `f` the axes of the mesh,
    or those in `axis_names`, are named axes for collectives (`lax.psum` and others). With
    `check_vma` types say along which of them values differ: an output without an axis in its spec
    has to be the same along it, and derivatives add up what devices share.

    The function is traced once for each combination of types of its arguments, as by `jit`.
    Without `f`, returns a decorator. Raises ShardingError where an axis does not divide, or an
    output differs between devices that its spec takes for one; AxisNameError for an unknown axis.

    >>> import functrans as ft
    >>> from functrans.sharding import PartitionSpec as P
    >>> with ft.config.cpu_devices(4):
    ...     mesh = ft.make_mesh((4,), ("x",), devices=ft.devices("cpu"))
    >>> total = ft.shard_map(lambda x: ft.lax.psum(x.sum(), "x"), mesh, P("x"), P())
    >>> total(ft.numpy.arange(8.0)).item()
    28.0
    """
    if f is None:
        return functools.partial(shard_map, mesh=mesh, in_specs=in_specs, out_specs=out_specs,
                                 axis_names=axis_names, check_vma=check_vma)
    check_callable(f, "shard_map")
    if out_specs is _MISSING:
        raise ArgumentError("shard_map: there are no out_specs.",
                            why="they say of what whole the outputs are parts.",
                            fix='shard_map(f, mesh, in_specs=P("x"), out_specs=P("x"))')
    names = frozenset((axis_names,) if isinstance(axis_names, str) else axis_names)
    mapped = _Mapped(f, name_of(f), mesh, in_specs, out_specs, names, bool(check_vma), {})

    @wraps(f, "shard_map")
    def shard_mapped(*args: Any) -> Any:
        return mapped(*args)

    return shard_mapped


class _Body(Record):
    """A function staged for the parts of its arguments."""

    closed: ClosedJaxpr
    out_tree: PyTreeDef
    out_dims: tuple[DimAxes, ...]


class _Mapped(Record, eq=False):
    """A function, and what `shard_map` was told about it."""

    fun: Callable[..., Any]
    name: str
    mesh: Mesh | None
    in_specs: Any
    out_specs: Any
    names: frozenset[str]
    checked: bool
    bodies: dict[Any, _Body]

    def __call__(self, *args: Any) -> Any:
        what = f"shard_map of {self.name}"
        mesh = self.mesh or current_mesh(what)
        assert mesh is not None
        if not isinstance(mesh, Mesh):
            raise ArgumentError(f"{what}: the mesh is {shown(mesh)}.",
                                fix='ft.make_mesh((4,), ("x",))')
        manual = self._manual(mesh, what)
        leaves, tree = flatten_args(args, what)
        dims = self._in_dims(mesh, args, leaves, tree, what, manual)
        avals = tuple([local_aval(get_aval(x), d, mesh, manual.names)
                       for x, d in zip(leaves, dims, strict=True)])
        body = self._body(mesh, manual, tree, avals)
        consts = body.closed.consts
        outs = shard_map_p.bind(
            *consts, *leaves, jaxpr=body.closed.jaxpr.hoist_consts(), mesh=mesh, manual=manual,
            in_dims=(*[((),) * get_aval(c).ndim for c in consts], *dims), out_dims=body.out_dims)
        return tree_unflatten(body.out_tree, outs)

    def _manual(self, mesh: Mesh, what: str) -> ManualAxes:
        names = self.names or frozenset(mesh.axis_names)
        if unknown := sorted(map(str, names - set(mesh.axis_names))):
            raise AxisNameError(f"{what}: axis_names has {', '.join(map(repr, unknown))}, and the "
                                f"mesh has {', '.join(map(repr, mesh.axis_names))}.",
                                fix=f"axis_names={{{mesh.axis_names[0]!r}}}")
        outer = manual_axes()
        if outer is not None and (twice := sorted(names & outer.names)):
            if self.names:
                raise AxisNameError(f"{what}: {', '.join(map(repr, twice))} is an axis of a "
                                    "shard_map around it.", why="it is divided there already.",
                                    fix="axis_names={...}  # the axes that are left")
            names = names - outer.names
        return ManualAxes(tuple([(n, mesh.shape[n]) for n in mesh.axis_names if n in names]),
                          self.checked)

    def _in_dims(self, mesh: Mesh, args: tuple[Any, ...], leaves: Sequence[Any], tree: PyTreeDef,
                 what: str, manual: ManualAxes) -> tuple[DimAxes, ...]:
        if self.in_specs is INFER:
            found = []
            for x in leaves:
                placed = None if isinstance(x, Tracer) else mesh_dims(x)
                if placed is None or placed[0] != mesh:
                    raise ShardingError(
                        f"{what}: there are no in_specs, and a {get_aval(x)} does not lie on "
                        f"{mesh!r}.", where=user_source(),
                        why="without in_specs arguments are divided as they are.",
                        fix="in_specs=..., or ft.device_put(x, NamedSharding(mesh, spec))")
                found.append(placed[1])
            return tuple(found)
        if isinstance(self.in_specs, (tuple, list)) and not is_spec(self.in_specs) \
                and len(self.in_specs) != len(args):
            raise ArgumentError(
                f"{what}: in_specs has {len(self.in_specs)} entries, for {len(args)} arguments.",
                where=user_source(), fix=f"in_specs=({', '.join(['P()'] * len(args))},)")
        in_specs = tuple(self.in_specs) if type(self.in_specs) is list else self.in_specs
        specs = broadcast_prefix(in_specs, args, is_spec, what=f"{what}: in_specs")
        dims = []
        for k, (x, spec) in enumerate(zip(leaves, specs, strict=True)):
            name = f"{what}: in_specs of {argument_name(tree_paths(tree)[k], keywords=False)}"
            dims.append(self._dims(spec, mesh, get_aval(x).shape, name, manual))
        return tuple(dims)

    def _dims(self, spec: Any, mesh: Mesh, shape: Sequence[Any], what: str,
              manual: ManualAxes) -> DimAxes:
        if spec is None:
            spec = PartitionSpec()
        if not isinstance(spec, PartitionSpec):
            raise ArgumentError(f"{what} is {shown(spec)}.", where=user_source(),
                                why="leaves of specs are PartitionSpecs.", fix='P("x")')
        dims = dims_of(spec, mesh, shape, what)
        if others := sorted(axes_in(dims) - manual.names):
            raise ShardingError(f"{what}: {spec!r} names {', '.join(map(repr, others))}, which is "
                                "not in axis_names.", where=user_source(),
                                why="the function does not see how arrays are divided there.",
                                fix="leave it out of the spec, or take it into axis_names")
        return dims

    def _body(self, mesh: Mesh, manual: ManualAxes, tree: PyTreeDef,
              avals: tuple[ShapedArray, ...]) -> _Body:
        key = (mesh, manual, tree, avals, bound_axes(), config.current())
        # under a trace the function may close over values of it
        known = self.bodies.get(key) if get_trace() is None else None
        if known is not None:
            return known
        flat = FlatFunction(self.fun, tree, {}, "shard_map")
        out_dims: list[DimAxes] = []

        def fun(*xs: Any) -> list[Any]:
            if not manual.checked:
                xs = tuple([vary(x, manual.names) for x in xs])
            outs = flat(*xs)
            out_dims[:] = self._out_dims(mesh, manual, outs, flat.out_tree)
            return [vary(x, axes_in(d)) for x, d in zip(outs, out_dims, strict=True)]

        with manual.bound():
            closed = stage(fun, avals, name=self.name)
        body = _Body(closed, flat.out_tree, tuple(out_dims))
        if get_trace() is None and not any(isinstance(c, Tracer) for c in closed.consts):
            self.bodies[key] = body
        return body

    def _out_dims(self, mesh: Mesh, manual: ManualAxes, outs: Sequence[Any],
                  tree: PyTreeDef) -> list[DimAxes]:
        what = f"shard_map of {self.name}: out_specs"
        dummy = tree_unflatten(tree, [0] * tree.num_leaves)
        out_specs = tuple(self.out_specs) if type(self.out_specs) is list else self.out_specs
        specs = broadcast_prefix(out_specs, dummy, is_spec, what=what)
        found = []
        for k, (x, spec) in enumerate(zip(outs, specs, strict=True)):
            aval = get_aval(x)
            path = "".join(map(str, tree_paths(tree)[k]))
            name = f"{what} of the output{path and ' at '}{path}"
            # a part has any size: the whole divides
            dims = self._dims(spec, mesh, (0,) * aval.ndim, name, manual)
            excess = (varying_of(x) & manual.names) - axes_in(dims)
            if manual.checked and excess:
                names = ", ".join(map(repr, sorted(excess)))
                raise ShardingError(
                    f"{name} are {spec_of(dims)!r} for a value that may differ along {names}.",
                    where=user_source(),
                    why="an axis that a spec does not name has the same value on all its devices.",
                    fix=f"lax.psum(x, {sorted(excess)[0]!r}) or lax.pmean, an axis in the spec, or "
                        "check_vma=False where the values are known to be the same")
            found.append(dims)
        return found
