"""Named axes: what `vmap(axis_name=...)` and `shard_map` bind and collectives refer to."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from functrans.core.dims import Size
from functrans.core.errors import AxisNameError
from functrans.core.record import Record

__all__ = ["ManualAxes", "MappedAxis", "axis_names", "bound_axes", "bound_axis_size",
           "manual_axes"]

_bound: ContextVar[tuple[tuple[Any, Size], ...]] = ContextVar("functrans_axes", default=())

bound_axes = _bound.get
"""The named axes of this thread, outermost first, as (name, size) pairs."""


class MappedAxis(Record):
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


class ManualAxes(Record):
    """The axes of a mesh that a `shard_map` binds: names and sizes.

    `checked`: types say along which of them values vary, so that the sum of a value over its axes
    is the same everywhere; else it counts as varying, as in JAX with check_vma=False.
    """

    sizes: tuple[tuple[Any, int], ...]
    checked: bool = True

    @property
    def names(self) -> frozenset[Any]:
        return frozenset([n for n, _ in self.sizes])

    @contextmanager
    def bound(self) -> Iterator[None]:
        """Let collectives refer to the axes by their names."""
        outer = _manual.get()
        inside = self if outer is None else ManualAxes((*outer.sizes, *self.sizes), self.checked)
        tokens = _bound.set((*_bound.get(), *self.sizes)), _manual.set(inside)
        try:
            yield
        finally:
            _bound.reset(tokens[0])
            _manual.reset(tokens[1])


_manual: ContextVar[ManualAxes | None] = ContextVar("functrans_manual_axes", default=None)

manual_axes = _manual.get
"""The axes of meshes that `shard_map` binds here; None outside of one."""


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
                        why="collectives work inside a vmap that names its axis, and inside a "
                            "shard_map over a mesh that has it.",
                        fix=f"vmap(fun, axis_name={name!r})")
