"""Views as lenses: how a view is read from the value that it is a view of, and how it is put back.

A view of a view is a chain of lenses. NumPy says what a chain is: each array has a *shadow*, an
array of NumPy with its shape whose bytes nobody reads, and what NumPy does to the shadow tells the
view's shape and whether a reshape is a view at all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from functrans import numpy as jnp
from functrans.core.dtypes import as_dtype
from functrans.lax import bitcast_convert_type, complex
from functrans.mutable.index import Entry, compose, items_of
from functrans.numpy.indexing import getitem
from functrans.numpy.updates import UPDATES, update

__all__ = ["Bits", "Indexed", "Lens", "Part", "ReadOnly", "Reshaped", "Transposed", "extended",
           "read", "written"]

_SET = UPDATES["set"]


class Lens:
    """One step from a value to a view of it."""

    __slots__ = ()

    def get(self, value: Any) -> Any:
        """The view of a value."""
        raise TypeError(f"{type(self).__name__} has no view")

    def put(self, value: Any, new: Any) -> Any:
        """The value with `new` in place of its view."""
        raise TypeError(f"{type(self).__name__} is not written to")


@dataclass(frozen=True)
class Indexed(Lens):
    """x[entries], with integers (also traced ones), slices and new axes."""

    entries: tuple[Entry, ...]
    shape: tuple[Any, ...]  # of x

    def get(self, value: Any) -> Any:
        return getitem(value, items_of(self.entries))

    def put(self, value: Any, new: Any) -> Any:
        return update(value, items_of(self.entries), new, _SET)


@dataclass(frozen=True)
class Transposed(Lens):
    """The axes in another order."""

    axes: tuple[int, ...]

    def get(self, value: Any) -> Any:
        return jnp.transpose(value, self.axes)

    def put(self, value: Any, new: Any) -> Any:
        return jnp.transpose(new, tuple(int(i) for i in np.argsort(self.axes)))


@dataclass(frozen=True)
class Reshaped(Lens):
    """The elements, in row-major order, in another shape."""

    shape: tuple[Any, ...]

    def get(self, value: Any) -> Any:
        return jnp.reshape(value, self.shape)

    def put(self, value: Any, new: Any) -> Any:
        return jnp.reshape(new, value.shape)


@dataclass(frozen=True)
class Part(Lens):
    """The real or the imaginary part of complex numbers."""

    imaginary: bool

    def get(self, value: Any) -> Any:
        return jnp.imag(value) if self.imaginary else jnp.real(value)

    def put(self, value: Any, new: Any) -> Any:
        return complex(jnp.real(value), new) if self.imaginary else complex(new, jnp.imag(value))


@dataclass(frozen=True)
class Bits(Lens):
    """The same bytes as numbers of another dtype of the same width."""

    dtype: np.dtype[Any]

    def get(self, value: Any) -> Any:
        return bitcast_convert_type(value, self.dtype)

    def put(self, value: Any, new: Any) -> Any:
        return bitcast_convert_type(new, as_dtype(value.dtype))


@dataclass(frozen=True)
class ReadOnly(Lens):
    """A view that NumPy does not let anybody write into: diagonals, broadcasts, windows."""

    function: Callable[[Any], Any]

    def get(self, value: Any) -> Any:
        return self.function(value)


def extended(chain: Sequence[Lens], lens: Lens) -> tuple[Lens, ...]:
    """The chain with one lens more; indices of indices are one index where that is known."""
    if chain and isinstance(lens, Indexed) and isinstance(chain[-1], Indexed):
        entries = compose(chain[-1].entries, lens.entries)
        if entries is not None:
            return (*chain[:-1], Indexed(entries, chain[-1].shape))
    return (*chain, lens)


def read(value: Any, chain: Sequence[Lens]) -> Any:
    """The view at the end of a chain."""
    for lens in chain:
        value = lens.get(value)
    return value


def written(value: Any, chain: Sequence[Lens], new: Any) -> Any:
    """The value with `new` in place of the view at the end of a chain."""
    if not chain:
        return new
    first, *rest = chain
    if rest:
        new = written(first.get(value), rest, new)
    return first.put(value, new)
