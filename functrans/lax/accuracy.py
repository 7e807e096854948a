"""How exact elementary functions are to be: all are within 2 ULP, which meets what can be asked."""

from __future__ import annotations

from enum import Enum

from functrans.core.errors import ArgumentError
from functrans.core.source import user_source

__all__ = ["AccuracyMode", "Tolerance"]


class AccuracyMode(Enum):
    """HIGHEST or DEFAULT, which are the same here: within 2 ULP of the value.

    >>> AccuracyMode.HIGHEST.name
    'HIGHEST'
    """

    HIGHEST = 1
    DEFAULT = 2


class Tolerance:
    """The error that a function may have; raises ArgumentError for a negative one, and for none.

    >>> Tolerance(ulps=2)
    Tolerance(atol=0.0, rtol=0.0, ulps=2)
    """

    def __init__(self, atol: float = 0.0, rtol: float = 0.0, ulps: int = 0) -> None:
        if min(atol, rtol, ulps) < 0 or atol == rtol == ulps == 0:
            raise ArgumentError(f"Tolerance(atol={atol}, rtol={rtol}, ulps={ulps}).",
                                where=user_source(), why="one is positive, and none negative.",
                                fix="Tolerance(ulps=2)")
        self.atol, self.rtol, self.ulps = atol, rtol, ulps

    def __repr__(self) -> str:
        return f"Tolerance(atol={self.atol}, rtol={self.rtol}, ulps={self.ulps})"
