"""The shape to which shapes broadcast, by NumPy's rule."""

from __future__ import annotations

from typing import Any

from functrans.core.dims import Shape, same_shape
from functrans.core.errors import ShapeError
from functrans.core.source import user_source

__all__ = ["broadcast_shapes"]


def broadcast_shapes(*shapes: Shape, name: str = "numpy.broadcast_shapes") -> Shape:
    """The shape that all given shapes broadcast to."""
    first = shapes[0] if shapes else ()
    if all(same_shape(s, first) for s in shapes):
        return tuple(first)
    rank = max(len(s) for s in shapes)
    result: list[Any] = []
    for axis in range(-rank, 0):
        size: Any = 1
        for shape in shapes:
            if -axis > len(shape):
                continue
            d = shape[axis]
            if isinstance(d, int) and d == 1:
                continue
            if isinstance(size, int) and size == 1:
                size = d
            elif d != size:
                raise ShapeError(
                    f"functrans.{name}: shapes {', '.join(map(str, shapes))} do not "
                    "broadcast.",
                    where=user_source(),
                    why=f"Incompatible shapes for broadcasting: axis {axis} has sizes {size} and "
                        f"{d}; they must agree or be 1.",
                    fix="x.reshape(...) or x[:, None] where an axis of size 1 is missing, x.T",
                )
        result.append(size)
    return tuple(result)
