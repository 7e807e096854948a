"""What `jit` knows of checks: which programs have any, and what runs those.

The other modules of the folder take 10 ms to load, when the first program has checks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from functrans import _runtime
from functrans.core.jaxpr import Equation, Jaxpr, subjaxprs
from functrans.primitives.check import check_p

if TYPE_CHECKING:
    from functrans.transforms.checks.program import CheckedExecutable

__all__ = ["CheckedRun", "has_checks", "is_region"]


def is_region(eqn: Equation) -> bool:
    """Whether an equation calls a function of `checked`, which says itself what to look for."""
    return "checks" in eqn.params


_has_checks: WeakKeyDictionary[Jaxpr, bool] = WeakKeyDictionary()


def has_checks(jaxpr: Jaxpr) -> bool:
    """Whether there is anything to look for in a program that was not told to look."""
    known = _has_checks.get(jaxpr)
    if known is None:
        known = _has_checks[jaxpr] = check_p in jaxpr.primitives or any(
            is_region(eqn) or any(map(has_checks, subjaxprs(eqn))) for eqn in jaxpr.calls)
    return known


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
