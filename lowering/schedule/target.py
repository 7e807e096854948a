"""What programs are compiled for: a GPU of a compute capability, which need not be there.

Bytes of shared memory that a program may have: CUDA C++ Programming Guide, "Technical
Specifications per Compute Capability". Multiprocessors are those of the largest product that is
common (A100, A10, Orin, L40, H100, B200, B300, RTX PRO 6000, GB10).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from functrans import _runtime
from functrans.core.errors import BackendError

__all__ = ["HOPPER", "Target", "cuda_target", "device_target",
           "target_named"]

LIMITS: Final = {80: (163, 108), 86: (99, 72), 87: (163, 16), 89: (99, 142), 90: (227, 132),
                 100: (227, 148), 103: (227, 148), 110: (227, 20), 120: (99, 188), 121: (99, 48)}
"""By capability, KiB of shared memory and multiprocessors."""


@dataclass(frozen=True)
class Target:
    """GPUs of a compute capability, with `shared` bytes of shared memory for a program."""

    capability: int
    shared: int
    multiprocessors: int

    @property
    def name(self) -> str:
        return f"cuda:{self.capability}"

    @property
    def has_copy_engine(self) -> bool:
        """Whether tiles come by descriptors (TMA, from Hopper on)."""
        return self.capability >= 90


def cuda_target(capability: int, multiprocessors: int | None = None) -> Target:
    """The target of a compute capability such as 90; unknown ones have the limits of older ones.

    Raises BackendError for GPUs that are older than Triton's oldest.
    """
    known = [c for c in LIMITS if c <= capability]
    if not known:
        raise BackendError(f"there are no kernels for GPUs of compute capability {capability}.",
                           why=f"Triton compiles for {min(LIMITS)} (Ampere) and newer",
                           fix='target="cpu"')
    # a family of its own, Hopper's successors' small sisters have less memory: the nearest below
    shared, count = LIMITS[max(known)]
    return Target(capability, shared << 10, count if multiprocessors is None else multiprocessors)


HOPPER: Final = cuda_target(90)


def device_target(gpu: int) -> Target | None:
    """The target that the GPU of a number is; None where there is no GPU."""
    if not _runtime.cuda_open():
        return None
    _, major, minor, count, _, shared = _runtime.cuda_devices()[gpu]
    return Target(10 * major + minor, shared, count)


def target_named(name: str) -> Target:
    """The target of a name such as `cuda:90`. Raises BackendError for others.

    >>> target_named("cuda:80").shared
    166912
    """
    found = re.fullmatch(r"cuda:(\d+)", name)
    if found is None:
        raise BackendError(f"there is no target {name!r}.", where=None,
                           why='targets are "cpu" and "cuda:" with a compute capability',
                           fix='target="cuda:90"')
    return cuda_target(int(found[1]))
