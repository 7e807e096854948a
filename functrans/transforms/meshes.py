"""Which mesh of devices a program runs on, and operations outside of `jit` on arrays in shards.

These are programs of one operation each, kept for the types and the shardings of the operands.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from functrans import _runtime
from functrans._runtime import ArrayBase, get_shards
from functrans.core import config
from functrans.core.avals import operand_avals
from functrans.core.eager import set_mesh_evaluator
from functrans.core.errors import ShardingError
from functrans.core.jaxpr import Equation, Jaxpr, Literal, Var
from functrans.core.mesh import DimAxes, Mesh
from functrans.core.primitive import Primitive
from functrans.core.sharding import NamedSharding, Sharding, mesh_alone
from functrans.core.source import user_source
from functrans.core.trace import Tracer, leaked, run_in
from functrans.transforms.staged import ShapeDtypeStruct

__all__ = ["dims_on", "install", "mesh_of"]

KEPT: Final = 4096
"""Programs of one operation that are kept: those that were used last."""
SCALARS: Final = (bool, int, float, complex)


def mesh_of(meshes: Iterable[Mesh], values: Iterable[Any]) -> Mesh | None:
    """The mesh that a program runs on: that of its operations and of values in shards; or None.

    Raises ShardingError for several meshes of different devices.
    """
    found: dict[Mesh, None] = dict.fromkeys(meshes)
    for x in values:
        sharding = _sharding(x)
        if sharding is not None:
            found[sharding.mesh if isinstance(sharding, NamedSharding) else
                  mesh_alone(next(iter(sharding.device_set)))] = None
    if len(found) < 2:
        return next(iter(found), None)
    first, *others = found
    for other in others:
        if set(other.ranks) != set(first.ranks):
            raise ShardingError(
                f"the values of a program are on {first!r} and on {other!r}.", where=user_source(),
                why="a program runs on one mesh, and these are of different devices.",
                fix="ft.device_put(x, NamedSharding(mesh, spec))  # for all of them")
    # what names most axes: the others are moved to it
    return max(found, key=lambda m: len(m.axis_names))


def _sharding(x: Any) -> Sharding | None:
    """Where an argument was put, or, of a type without a value, where it is to be."""
    if isinstance(x, ArrayBase):
        shards = get_shards(x)
        return None if shards is None else shards.sharding
    return x.sharding if isinstance(x, ShapeDtypeStruct) else None


def dims_on(mesh: Mesh, x: Any) -> DimAxes:
    """How an argument lies on the mesh of a program: as it is, or whole.

    The axes of a mesh of the same devices may have other names, as those of two calls of `pmap`.
    """
    sharding = _sharding(x)
    if isinstance(sharding, NamedSharding) and sharding.mesh == mesh:
        return sharding.dims(x.shape)
    if isinstance(sharding, NamedSharding) and sharding.mesh.ranks == mesh.ranks \
            and [*sharding.mesh.shape.values()] == [*mesh.shape.values()]:
        names = dict(zip(sharding.mesh.axis_names, mesh.axis_names, strict=True))
        return tuple([tuple([names[a] for a in axes]) for axes in sharding.dims(x.shape)])
    return ((),) * getattr(x, "ndim", 0)


_operations: dict[Any, Any] = {}


def evaluate_on_mesh(primitive: Primitive, args: Sequence[Any],
                     params: Mapping[str, Any]) -> list[Any]:
    """The results of a primitive on arrays in shards, or of one that names a mesh."""
    settings = config.current()
    key: list[Any] = [primitive, settings.backend, settings.matmul_precision]
    for x in args:
        if isinstance(x, Tracer):
            raise leaked(x, str(primitive))
        shards = get_shards(x) if isinstance(x, ArrayBase) else None
        key.append((type(x), x) if type(x) in SCALARS else
                   (x.shape, x.dtype, getattr(x, "weak_type", False),
                    None if shards is None else shards.sharding))
    key += params.items()
    found = _operations.get(at := tuple(key))
    if found is None:
        if len(_operations) >= KEPT:
            _operations.pop(next(iter(_operations)), None)
        found = _operations[at] = run_in(None, _operation, primitive, args, params)
    run, weak = found
    return [_runtime.with_weak_type(o, w) for o, w in
            zip(run([x for x in args if type(x) not in SCALARS]), weak, strict=True)]


def _operation(primitive: Primitive, args: Sequence[Any], params: Mapping[str, Any]) -> Any:
    # jit and this module need each other: the table of executables is filled by the first
    avals = operand_avals(args, primitive.name)
    result = primitive.type(*avals, **params)
    outs = list(result) if primitive.multiple_results else [result]
    atoms = [Literal(a.dtype.type(x), a) if type(x) in SCALARS else Var(a)
             for x, a in zip(args, avals, strict=True)]
    outvars = tuple(map(Var, outs))
    jaxpr = Jaxpr((), tuple([a for a in atoms if isinstance(a, Var)]),
                  (Equation(primitive, tuple(atoms), outvars, dict(params), user_source()),),
                  outvars, name=primitive.name)
    execute = _executables[0](jaxpr, values=[x for x in args if type(x) not in SCALARS]).run
    return execute, [a.weak_type for a in outs]


_executables: Final[list[Any]] = []


def install(executable_of: Any) -> None:
    """Have operations on arrays in shards evaluated by programs that `executable_of` makes."""
    _executables[:] = [partial(executable_of)]
    set_mesh_evaluator(evaluate_on_mesh)
