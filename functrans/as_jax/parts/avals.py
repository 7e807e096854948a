"""What JAX's types of arrays have and take besides shape and dtype: how arrays lie on a mesh.

Nothing is told by a type here, as in JAX without a mesh of explicit axes. And the name that the
dtype of keys is known by.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from functrans.core.avals import SAME, ShapedArray
from functrans.core.dtypes import as_dtype
from functrans.core.mesh import AbstractMesh, PartitionSpec

__all__ = ["ATTRIBUTES", "AvalSharding", "KeyName"]

_NO_AXES: Final = AbstractMesh((), ())


@dataclass(frozen=True)
class AvalSharding:
    """`jax.typeof(x).sharding`: along which axes of a mesh the axes of an array lie."""

    spec: PartitionSpec
    mesh: AbstractMesh = _NO_AXES
    memory_kind: str | None = None

    def update(self, **changes: Any) -> AvalSharding:
        """The same with another `spec`, `mesh` or `memory_kind`."""
        return replace(self, **changes)

    def with_memory_kind(self, kind: str | None) -> AvalSharding:
        """The same with another `memory_kind`."""
        return replace(self, memory_kind=kind)

    @property
    def is_fully_replicated(self) -> bool:
        """Whether every device of the mesh has all of the array."""
        return all(name is None for name in self.spec)

    @property
    def num_devices(self) -> int:
        """Of the mesh; 0 without axes, as in JAX."""
        return self.mesh.size if self.mesh.axis_names else 0

    def is_equivalent_to(self, other: Any, ndim: int) -> bool:
        """Whether both put an array of so many axes in the same places."""
        def places(sharding: Any) -> list[Any]:
            return [*sharding.spec, *[None] * (ndim - len(sharding.spec))]

        return bool(self.mesh == other.mesh and self.memory_kind == other.memory_kind
                    and places(self) == places(other))


def _sharding(aval: ShapedArray) -> AvalSharding:
    return AvalSharding(PartitionSpec(*[None] * len(aval.shape)))


def _init(self: ShapedArray, shape: Any, dtype: Any, weak_type: bool = False,
          varying: frozenset[Any] = SAME, *, sharding: Any = None, memory_space: Any = None,
          vma: frozenset[Any] | None = None) -> None:
    self.shape = shape
    self.dtype = dtype if isinstance(dtype, np.dtype) else as_dtype(dtype)
    self.weak_type = weak_type
    self.varying = varying if vma is None else vma


ATTRIBUTES: Final[Mapping[str, Any]] = MappingProxyType({
    "sharding": property(_sharding, doc="Along no axis of a mesh."), "__init__": _init})
"""Of ShapedArray while functrans answers for JAX; places that libraries give are left out."""


class KeyName(str):
    """The name of the class of one generator's keys, equal to the name that JAX has for all.

    In JAX `dtype.type` is `prng_key` for each, and libraries that check shapes and dtypes compare
    its name. The name of a dtype in NumPy is that of its class, so that it cannot be another one.
    """

    __slots__ = ()
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        return str.__eq__(self, other) is True or other == "prng_key"

    def __ne__(self, other: object) -> bool:
        return not self == other
