"""Host-driven programs: the results of one run decide which program Python runs next."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

__all__ = ["HostDrivenProgram"]


class HostDrivenProgram:
    """What runs programs one after the other from Python, as their results say.

    On a GPU (`device`) it takes Arrays and gives them; without one NumPy arrays. `host_calls` is
    how many of its steps the host computes.
    """

    device: int | None = None
    host_calls: int = 0

    def __call__(self, arrays: Sequence[Any]) -> list[Any]:
        raise NotImplementedError
