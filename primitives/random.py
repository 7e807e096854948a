"""The primitives of random numbers: the hashes threefry-2x32 and philox-4x32."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from functrans import _runtime
from functrans.core.avals import ShapedArray
from functrans.core.errors import DTypeError
from functrans.core.primitive import Cost, Primitive, Sample
from functrans.core.source import user_source
from functrans.primitives.base import shapes_differ
from functrans.primitives.broadcast import broadcast_batch, broadcast_in_dim, move_axis

if TYPE_CHECKING:
    from functrans.typing import Array, ArrayLike

__all__ = ["philox4x32", "philox4x32_p", "threefry2x32", "threefry2x32_p"]

class CounterHash(Primitive, abstract=True):
    """A keyed hash of counters, elementwise on uint32: operands have one shape, or are scalars."""

    multiple_results = True
    widens_halves = False
    words: int
    """How many words a counter has, and the result."""
    operations: int
    """What an element costs."""

    def type(self, *avals: ShapedArray) -> list[ShapedArray]:
        shape: tuple[Any, ...] = ()
        for a in avals:
            if a.dtype != np.uint32:
                raise DTypeError(f"{self.name} takes uint32 operands, got {a}.",
                                 where=user_source(), fix='x.astype("uint32")')
            if a.shape and shape and a.shape != shape:
                raise shapes_differ(self.name, avals, "operands have one shape, or are scalars.")
            shape = a.shape or shape
        return [ShapedArray(shape, np.dtype(np.uint32))] * self.words

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        return list(self.bind(*primals)), [None] * self.words

    def batch(self, operands: Sequence[Any],
              axes: Sequence[int | None]) -> tuple[list[Any], list[int]]:
        size = next(x.shape[a] for x, a in zip(operands, axes, strict=True) if a is not None)
        lane: tuple[Any, ...] = ()
        aligned: list[Any] = []
        for x, axis in zip(operands, axes, strict=True):
            if axis is not None:
                x = move_axis(x, axis, 0)
                lane = x.shape[1:] or lane
            else:
                lane = x.shape or lane
            aligned.append(x)
        for i, axis in enumerate(axes):
            x = aligned[i]
            if axis is None:
                aligned[i] = broadcast_batch(x, size) if x.shape else x
            elif lane and x.ndim == 1:
                aligned[i] = broadcast_in_dim(x, (size, *lane), (0,))
        return list(self.bind(*aligned)), [0] * self.words

    def cost(self, *avals: ShapedArray, **params: Any) -> Cost:
        return Cost(self.type(*avals)[0].size * self.operations, super().cost(*avals).bytes)


class Threefry2x32(CounterHash):
    """Threefry-2x32 of the counter (x0, x1) under the key (k0, k1), elementwise on uint32.

    Two results of the shape of the operands, which have one shape or are scalars. Salmon et al.,
    Parallel random numbers: as easy as 1, 2, 3 (2011); 20 rounds.
    """

    name = "threefry2x32"
    words = 2
    # 20 rounds of add, rotate (two shifts, or), xor; six key injections of two adds
    operations = 20 * 5 + 6 * 2 + 5

    def evaluate(self, k0: Any, k1: Any, x0: Any, x1: Any) -> list[np.ndarray[Any, Any]]:
        return list(_runtime.threefry2x32(k0, k1, x0, x1))

    def samples(self) -> Iterator[Sample]:
        counts = np.arange(6, dtype=np.uint32).reshape(2, 3)
        key = [np.asarray(k, np.uint32) for k in (0x13198A2E, 0x03707344)]
        yield Sample((*key, np.asarray(0, np.uint32), counts))
        yield Sample((counts, counts[::-1].copy(), 7 * counts, counts))
        yield Sample((*key, *key))


class Philox4x32(CounterHash):
    """Philox-4x32 of the counter (x0, ..., x3) under the key (k0, k1), elementwise on uint32.

    Four results of the shape of the operands, which have one shape or are scalars. Salmon et al.,
    Parallel random numbers: as easy as 1, 2, 3 (2011); 10 rounds.
    """

    name = "philox4x32"
    words = 4
    # 10 rounds of two products of 64 bits, four xors and the two additions of the key's sequence
    operations = 10 * (2 + 4 + 2)

    def evaluate(self, k0: Any, k1: Any, x0: Any, x1: Any, x2: Any, x3: Any
                 ) -> list[np.ndarray[Any, Any]]:
        return list(_runtime.philox4x32(k0, k1, x0, x1, x2, x3))

    def samples(self) -> Iterator[Sample]:
        counts = np.arange(6, dtype=np.uint32).reshape(2, 3)
        key = [np.asarray(k, np.uint32) for k in (0xA4093822, 0x299F31D0)]
        zero = np.asarray(0, np.uint32)
        yield Sample((*key, counts, zero, zero, zero))
        yield Sample((counts, counts[::-1].copy(), 7 * counts, counts, zero, 3 * counts))
        yield Sample((*key, *key, *key))


threefry2x32_p = Threefry2x32()
philox4x32_p = Philox4x32()


def threefry2x32(k0: ArrayLike, k1: ArrayLike, x0: ArrayLike, x1: ArrayLike) -> list[Array]:
    """Threefry-2x32 of the counter (x0, x1) under the key (k0, k1): two uint32 arrays.

    Operands are uint32 of one shape, or scalars. Raises DTypeError and ShapeError otherwise.

    >>> import functrans as ft
    >>> zero = ft.numpy.uint32(0)
    >>> [hex(int(y)) for y in threefry2x32(zero, zero, zero, zero)]
    ['0x6b200159', '0x99ba4efe']
    """
    return list(threefry2x32_p.bind(k0, k1, x0, x1))


def philox4x32(k0: ArrayLike, k1: ArrayLike, x0: ArrayLike, x1: ArrayLike, x2: ArrayLike,
               x3: ArrayLike) -> list[Array]:
    """Philox-4x32 of the counter (x0, ..., x3) under the key (k0, k1): four uint32 arrays.

    Operands are uint32 of one shape, or scalars. Raises DTypeError and ShapeError otherwise.

    >>> import functrans as ft
    >>> zero = ft.numpy.uint32(0)
    >>> [hex(int(y)) for y in philox4x32(zero, zero, zero, zero, zero, zero)]
    ['0x6627e8d5', '0xe169c58d', '0xbc57ac4c', '0x9b00dbd8']
    """
    return list(philox4x32_p.bind(k0, k1, x0, x1, x2, x3))
