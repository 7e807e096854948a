"""What runs a checked program.

The other modules of the folder take 10 ms to load, when the first program has checks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from functrans import _runtime

if TYPE_CHECKING:
    from functrans.transforms.checks.program import CheckedExecutable

__all__ = ["CheckedRun"]


class CheckedRun:
    """Runs a checked program on the host, or with arrays on a GPU where `device` is its number."""

    def __init__(self, executable: CheckedExecutable) -> None:
        self._executable = executable

    @property
    def device(self) -> int | None:
        return getattr(self._executable.inner.run, "device", None)

    @property
    def is_compiled(self) -> bool:
        """Whether a compiled program has the results: in memory of its own."""
        return isinstance(self._executable.inner.run, _runtime.Program)

    def __call__(self, args: Sequence[Any]) -> list[Any]:
        executable = self._executable
        return executable.program.run(executable.inner.run, args)
