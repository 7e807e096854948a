"""What is done with each cotangent of `vjp`: returned, added to a reference, or not wanted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from functrans.core.cells import RefCell
from functrans.core.tree_registry import register_dataclass
from functrans.primitives.differentiable import add_any

__all__ = ["DidntWant", "DontWant", "GradRef", "GradValue", "accumulate"]


@dataclass(frozen=True)
class GradValue:
    """The cotangent of this input is returned."""


@dataclass(frozen=True)
class DontWant:
    """The cotangent of this input is not asked for."""


@register_dataclass
@dataclass(frozen=True)
class GradRef:
    """In the place of a cotangent that was added to a reference."""


@register_dataclass
@dataclass(frozen=True)
class DidntWant:
    """In the place of a cotangent that was not asked for."""


def accumulate(wanted: Any, cotangent: Any) -> Any:
    """What is returned for a cotangent, which is added where a reference wants it."""
    if isinstance(wanted, RefCell):
        wanted.value = add_any(wanted.value, cotangent)
        return GradRef()
    return DidntWant() if isinstance(wanted, DontWant) else cotangent
