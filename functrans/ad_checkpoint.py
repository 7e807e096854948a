"""Recomputing in the backward pass, under the names of `jax.ad_checkpoint`.

A policy returns a bool, or what JAX's return: `Saveable`, `Recompute`, or `Offloadable(src, dst)`,
whose value stays on its device.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from functrans import checkpoint_policies
from functrans.core.errors import publish
from functrans.inspect.residuals import print_saved_residuals, saved_residuals
from functrans.primitives.barrier import checkpoint_name
from functrans.transforms.checkpoint import checkpoint

__all__ = ["Offloadable", "Recompute", "Saveable", "checkpoint", "checkpoint_name",
           "checkpoint_policies", "print_saved_residuals", "remat", "saved_residuals"]

remat = checkpoint


class _Decision:
    """What a policy says of a value: true where it is kept."""

    def __init__(self, name: str, keeps: bool) -> None:
        self._name, self._keeps = name, keeps

    def __bool__(self) -> bool:
        return self._keeps

    def __repr__(self) -> str:
        return self._name


Saveable: Final = _Decision("Saveable", True)
Recompute: Final = _Decision("Recompute", False)


class Offloadable(NamedTuple):
    """A value that is kept; in JAX in memory of another kind.

    >>> from functrans.ad_checkpoint import Offloadable
    >>> Offloadable(src="device", dst="pinned_host")
    Offloadable(src='device', dst='pinned_host')
    """

    src: str
    dst: str


publish(globals(), __all__)
