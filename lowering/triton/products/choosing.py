"""Which configuration of a template computes a call: what a model of the GPU likes best."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

from functrans.lowering.triton.machine.target import HOPPER, Target
from functrans.lowering.triton.spec import Program

__all__ = ["BY_MODEL", "Chooser"]

C = TypeVar("C")


class Chooser:
    """Chooses among configurations, the likely best of which come first."""

    def __init__(self, target: Target = HOPPER) -> None:
        self.target = target

    def __call__(self, title: str, problem: Any, configs: Sequence[C],
                 launches: Callable[[C], Any], nanoseconds: Callable[[C], float]) -> C:
        """One of `configs`; `title` says of what.

        `launches` makes the `Launches` of one, and `nanoseconds` is what a model says of it.
        """
        return configs[0]

    @property
    def notes(self) -> list[str]:
        """Why what was chosen was."""
        return []

    def tune(self, program: Program) -> bool:
        """Find out what is not known; whether the choices may be others than in a program."""
        return False


BY_MODEL: Final = Chooser()
