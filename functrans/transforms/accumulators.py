"""What is done with each cotangent of `vjp`: returned, added to a reference, or not wanted."""

from __future__ import annotations

from typing import Any

from functrans.core.cells import RefCell
from functrans.core.record import Record
from functrans.core.tree_registry import register_dataclass
from functrans.primitives.differentiable import add_any

__all__ = ["DidntWant", "DontWant", "GradRef", "GradValue", "accumulate"]


class GradValue(Record):
    """The cotangent of this input is returned."""


class DontWant(Record):
    """The cotangent of this input is not asked for."""


@register_dataclass
class GradRef(Record):
    """In the place of a cotangent that was added to a reference."""


@register_dataclass
class DidntWant(Record):
    """In the place of a cotangent that was not asked for."""


def accumulate(wanted: Any, cotangent: Any) -> Any:
    """What is returned for a cotangent, which is added where a reference wants it."""
    if isinstance(wanted, RefCell):
        wanted.value = add_any(wanted.value, cotangent)
        return GradRef()
    return DidntWant() if isinstance(wanted, DontWant) else cotangent
