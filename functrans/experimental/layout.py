"""`jax.experimental.layout`: arrays have rows in C order, and no other layout."""

from __future__ import annotations

from typing import Any, NamedTuple

from functrans.core.errors import explain_missing_names

__all__ = ["Format", "Layout"]


class Layout(NamedTuple):
    """An order of axes in memory, as libraries annotate it."""

    major_to_minor: tuple[int, ...]
    tiling: Any = None


class Format(NamedTuple):
    """A layout and a sharding."""

    layout: Layout | None = None
    sharding: Any = None


explain_missing_names(globals())
