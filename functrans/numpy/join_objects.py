"""The objects r_, c_, s_ and index_exp: arrays joined, and indices written, in brackets."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from functrans import lax
from functrans.core.errors import ArgumentError
from functrans.core.source import user_source
from functrans.numpy.creation import asarray
from functrans.numpy.grids import mgrid
from functrans.numpy.joining import concatenate
from functrans.typing import Array

__all__ = ["c_", "index_exp", "r_", "s_"]


class _How(NamedTuple):
    """How items are joined: along which axis, and with how many axes each at least.

    The axes of an item with fewer begin at `place`; -1 puts them last.
    """

    axis: int
    least: int
    place: int
    matrix: str = ""  # "r" or "c": a vector as result is a row or a column

    def fitted(self, x: Array) -> Array:
        missing = self.least - x.ndim
        if missing <= 0:
            return x
        place = self.place + missing + 1 if self.place < 0 else self.place
        own = range(place, place + x.ndim)
        return lax.expand_dims(x, tuple(d for d in range(self.least) if d not in own))


class _Join:
    """Vectors, numbers and slices joined as rows or as columns.

    A text in front says otherwise, as in NumPy: "axis", "axis,least", "axis,least,place", "r", "c".
    """

    def __init__(self, name: str, how: _How) -> None:
        self._name, self._how = name, how

    def __getitem__(self, key: Any) -> Array:
        how = self._how
        items = key if isinstance(key, tuple) else (key,)
        if items and isinstance(items[0], str):
            how, items = self._directed(items[0]), items[1:]
        parts = []
        for item in items:
            if isinstance(item, str):
                raise self._refused(item)
            x = mgrid[item] if isinstance(item, slice) else asarray(item)
            parts.append(how.fitted(x if x.ndim else lax.reshape(x, (1,))))
        out = concatenate(parts, how.axis)
        if how.matrix and out.ndim == 1:
            return lax.expand_dims(out, (0,) if how.matrix == "r" else (1,))
        return out

    def _directed(self, text: str) -> _How:
        if text in ("r", "c"):
            return self._how._replace(matrix=text)
        words = text.split(",")
        try:
            numbers = [int(word) for word in words]
        except ValueError:
            raise self._refused(text) from None
        if len(numbers) > 3:
            raise self._refused(text)
        axis, least, place = (*numbers, *(self._how.axis, self._how.least,
                                          self._how.place)[len(numbers):])
        return _How(axis, least, place)

    def _refused(self, text: str) -> ArgumentError:
        return ArgumentError(f"functrans.numpy.{self._name} does not take {text!r} here.",
                             where=user_source(), why="a text comes first, and is 'axis', "
                             "'axis,least axes', 'axis,least axes,place', 'r' or 'c'.",
                             fix=f"functrans.numpy.{self._name}['0,2', x, y]")

    def __repr__(self) -> str:
        return f"<functrans.numpy.{self._name}>"


r_, c_ = _Join("r_", _How(0, 1, -1)), _Join("c_", _How(-1, 2, 0))
s_, index_exp = np.s_, np.index_exp
