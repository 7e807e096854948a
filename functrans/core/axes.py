"""Named axes: what `vmap(axis_name=...)` binds and collectives refer to."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from functrans.core.dims import Size
from functrans.core.errors import AxisNameError

__all__ = ["MappedAxis", "axis_names", "bound_axes", "bound_axis_size"]

_bound: ContextVar[tuple[tuple[Any, Size], ...]] = ContextVar("functrans_axes", default=())

bound_axes = _bound.get
"""The named axes of this thread, outermost first, as (name, size) pairs."""


@dataclass(frozen=True)
class MappedAxis:
    """The axis that one `vmap` maps: its size, and its name if it has one."""

    size: Size
    name: Any = None

    @contextmanager
    def bound(self) -> Iterator[None]:
        """Let collectives refer to the axis by its name."""
        if self.name is None:
            yield
            return
        token = _bound.set((*_bound.get(), (self.name, self.size)))
        try:
            yield
        finally:
            _bound.reset(token)


def axis_names(names: Any) -> tuple[Any, ...]:
    """One axis name, or a tuple of them, as a tuple."""
    return names if isinstance(names, tuple) else (names,)


def bound_axis_size(name: Any) -> Size:
    """The size of the innermost axis called `name`; raises AxisNameError when there is none."""
    size: Size
    for bound, size in reversed(_bound.get()):
        if bound == name:
            return size
    known = ", ".join(repr(n) for n, _ in _bound.get()) or "none"
    raise AxisNameError(f"no axis is called {name!r} here (bound: {known}).",
                        why="collectives work inside a vmap that names its axis.",
                        fix=f"vmap(fun, axis_name={name!r})")
