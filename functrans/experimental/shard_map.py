"""`jax.experimental.shard_map`, with the arguments that it had before it was `shard_map`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from functrans.core.errors import explain_missing_names
from functrans.core.mesh import Mesh
from functrans.transforms import shard_map as current
from functrans.typing import PyTree

__all__ = ["shard_map"]


def shard_map(f: Callable[..., Any], mesh: Mesh, in_specs: PyTree, out_specs: PyTree,
              check_rep: bool = True, auto: Iterable[str] = frozenset()) -> Callable[..., Any]:
    """`functrans.shard_map` of all axes of the mesh but those in `auto`.

    `check_rep` is `check_vma`, by its old name.

    >>> import functrans as ft
    >>> mesh = ft.make_mesh((1,), ("x",))
    >>> spec = ft.sharding.PartitionSpec("x")
    >>> shard_map(lambda x: 2 * x, mesh, in_specs=(spec,), out_specs=spec)(ft.numpy.arange(2))
    Array([0, 2], dtype=int32)
    """
    left = frozenset(auto)
    names = frozenset(mesh.axis_names) - left if left else frozenset[str]()
    return current.shard_map(f, mesh, in_specs, out_specs, axis_names=names, check_vma=check_rep)


explain_missing_names(globals())
