"""Where values of a program lie: `with_sharding_constraint`, and the shardings that `jit` takes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from functrans.core.avals import get_aval
from functrans.core.convert import to_array
from functrans.core.errors import ArgumentError, shown
from functrans.core.mesh import UNCONSTRAINED, PartitionSpec, current_mesh
from functrans.core.sharding import NamedSharding, Sharding, SingleDeviceSharding
from functrans.core.source import user_source
from functrans.core.tree import broadcast_prefix, tree_flatten, tree_unflatten
from functrans.primitives.shard_map import sharding_constraint_p

if TYPE_CHECKING:
    from functrans.typing import PyTree

__all__ = ["as_sharding", "constrained", "is_sharding", "sharded_function",
           "with_sharding_constraint"]


def is_sharding(x: Any) -> bool:
    """Whether x is a leaf of a tree of shardings."""
    return x is None or isinstance(x, (Sharding, PartitionSpec))


def as_sharding(x: Any, what: str) -> Sharding | None:
    """A sharding, or a spec over the mesh of the scope; None stands for any."""
    if x is None or isinstance(x, Sharding):
        return x
    if isinstance(x, PartitionSpec):
        mesh = current_mesh(what)
        assert mesh is not None
        return NamedSharding(mesh, x)
    raise ArgumentError(f"{what} is {shown(x)}.", where=user_source(),
                        why="leaves are shardings, or PartitionSpecs where a mesh is set.",
                        fix='NamedSharding(mesh, P("x"))')


def with_sharding_constraint(x: PyTree, shardings: PyTree) -> PyTree:
    """A pytree itself, whose arrays lie on the devices of a mesh as shardings say.

    `shardings` are NamedShardings, or PartitionSpecs over the mesh of the scope, or a pytree of
    them that is a prefix of x. An axis that is `P.UNCONSTRAINED` lies as it does. Within `jit` it
    tells the compiler where a value is to be; elsewhere arrays are moved. Cotangents lie where
    values do. Raises ShardingError where an axis does not divide.

    >>> import functrans as ft
    >>> from functrans.sharding import NamedSharding, PartitionSpec as P
    >>> with ft.config.cpu_devices(2):
    ...     mesh = ft.make_mesh((2,), ("x",), devices=ft.devices("cpu"))
    >>> half = ft.jit(lambda x: ft.lax.with_sharding_constraint(x / 2, NamedSharding(mesh, P("x"))))
    >>> half(ft.numpy.ones(4)).sharding.spec
    PartitionSpec('x')
    """
    return constrained(x, shardings, "with_sharding_constraint")


def constrained(x: PyTree, shardings: PyTree, what: str) -> PyTree:
    """The tree with its arrays laid as a prefix tree of shardings says."""
    leaves, tree = tree_flatten(x)
    if type(shardings) is list:
        shardings = tuple(shardings)
    wanted = broadcast_prefix(shardings, x, is_sharding, what=what)
    return tree_unflatten(tree, [_laid(leaf, as_sharding(s, what), what)
                                 for leaf, s in zip(leaves, wanted, strict=True)])


def _laid(leaf: Any, sharding: Sharding | None, what: str) -> Any:
    if sharding is None or isinstance(sharding, SingleDeviceSharding):
        return leaf
    assert isinstance(sharding, NamedSharding)
    x = to_array(leaf)
    spec = sharding.spec
    sharding.dims(get_aval(x).shape, what)
    free = tuple([k for k, entry in enumerate(spec) if entry is UNCONSTRAINED])
    if free:
        sharding = sharding.with_spec([None if e is UNCONSTRAINED else e for e in spec])
    return sharding_constraint_p.bind(x, sharding=sharding, free=free)


def sharded_function(fun: Callable[..., Any], static: Sequence[int], in_shardings: PyTree,
                     out_shardings: PyTree, name: str) -> Callable[..., Any]:
    """A function whose arguments, but for the `static` ones, and results lie as shardings say."""
    def call(*args: Any, **kwargs: Any) -> Any:
        if in_shardings is not None:
            fixed = {i % len(args) for i in static} if args else set()
            dynamic = [i for i in range(len(args)) if i not in fixed]
            given = tuple([args[i] for i in dynamic])
            shardings = in_shardings
            if isinstance(shardings, (tuple, list)) and not is_sharding(shardings) \
                    and len(shardings) != len(given):
                raise ArgumentError(
                    f"jit of {name}: in_shardings has {len(shardings)} entries, for {len(given)} "
                    "arguments.", where=user_source(),
                    why="there is one for each positional argument that is not static.")
            laid = constrained(given, shardings, f"jit of {name}: in_shardings")
            rest = dict(zip(dynamic, laid, strict=True))
            args = tuple([rest.get(i, x) for i, x in enumerate(args)])
        out = fun(*args, **kwargs)
        return out if out_shardings is None else constrained(
            out, out_shardings, f"jit of {name}: out_shardings")

    return call
