"""The generators: how the words of a key become random bits, and the words of other keys."""

from __future__ import annotations

import math
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from functrans import lax
from functrans import numpy as ftnp
from functrans.core import config
from functrans.core.dtypes import DType, key_dtype, philox_dtype
from functrans.core.errors import ArgumentError
from functrans.core.source import user_source
from functrans.core.trace import get_trace
from functrans.primitives.random import philox4x32, threefry2x32
from functrans.typing import Array

__all__ = ["UINT32", "ZERO", "Pair", "PhiloxKey", "ThreefryKey", "class_of", "counters",
           "default_impl", "dtype_of", "impl_of"]

UINT32 = np.dtype(np.uint32)
ZERO = np.zeros((), UINT32)


class ThreefryKey(NamedTuple):
    """The two words of keys of threefry-2x32; element i of a draw is the hash of the counter i."""

    first: Any
    second: Any

    def derived(self, high: Any, low: Any) -> ThreefryKey:
        """The words of the key, or keys, that belong to a counter."""
        return ThreefryKey(*threefry2x32(*self, high, low))

    def bits(self, width: int, shape: tuple[Any, ...]) -> Array:
        """Random unsigned integers of 8 to 64 bits; words that are arrays give a sample each."""
        first, second = threefry2x32(*self, *counters(shape))
        return joined(first, second) if width == 64 else narrowed(first ^ second, width)


class PhiloxKey(NamedTuple):
    """The two words of keys of philox-4x32, whose block of a counter serves four elements.

    Element i of a draw is word i % 4 of counter i // 4, one of 64 bits words 2 (i % 2) and the next
    of counter i // 2. The last word of a counter says what the block is for, so that no number
    drawn is a word of another key.
    """

    first: Any
    second: Any

    def derived(self, high: Any, low: Any) -> PhiloxKey:
        """The words of the key, or keys, that belong to a counter."""
        return PhiloxKey(*self._block(high, low, _FOR_KEYS)[:2])

    def bits(self, width: int, shape: tuple[Any, ...]) -> Array:
        """Random unsigned integers of 8 to 64 bits; words that are arrays give a sample each."""
        if not shape or self.first.shape:
            words = self._block(ZERO, ZERO, _FOR_DRAWS)
            return _numbers(words, width)[0]
        if get_trace() is None:
            return self._interleaved(width, shape)
        high, low = counters(shape)
        shift = 1 if width == 64 else 2
        block = low >> shift
        if high is not ZERO:
            block, high = block | high << (32 - shift), high >> shift
        words = self._block(high, block, _FOR_DRAWS)
        even = low & 1 == 0
        if width == 64:
            return joined(*(ftnp.where(even, words[i], words[i + 2]) for i in (0, 1)))
        first, second = (ftnp.where(even, words[i], words[i + 1]) for i in (0, 2))
        return narrowed(ftnp.where(low & 2 == 0, first, second), width)

    def _interleaved(self, width: int, shape: tuple[Any, ...]) -> Array:
        """The same where operations run one by one: each block is computed once."""
        size = math.prod(shape)
        blocks = -(-size * max(width, 32) // 128)
        numbers = _numbers(self._block(*counters((blocks,)), _FOR_DRAWS), width)
        return lax.reshape(ftnp.stack(numbers, -1).reshape(-1)[:size], shape)

    def _block(self, high: Any, low: Any, use: Any) -> list[Array]:
        return philox4x32(*self, low, high, ZERO, use)


_FOR_DRAWS, _FOR_KEYS = ZERO, np.ones((), UINT32)

Pair: TypeAlias = ThreefryKey | PhiloxKey
"""The two uint32 halves of one key, which know their generator."""

_GENERATORS: dict[str, tuple[DType, type[Pair]]] = {
    "threefry2x32": (key_dtype, ThreefryKey), "philox": (philox_dtype, PhiloxKey)}
_IMPL_OF = {dtype: name for name, (dtype, _) in _GENERATORS.items()}


def default_impl(impl: str | None) -> str:
    """The generator of this name, by default that of the scope; ArgumentError if there is none."""
    if impl is None:
        return config.current().prng_impl
    impl = config.PRNG_NAMES.get(impl, impl)
    if impl not in _GENERATORS:
        raise ArgumentError(
            f"there is no generator {impl!r}; there are {', '.join(map(repr, _GENERATORS))}.",
            where=user_source(),
            fix="ft.random.key(seed, impl='philox')",
        )
    return impl


def dtype_of(impl: str) -> DType:
    """The dtype of the keys of a generator."""
    return _GENERATORS[impl][0]


def impl_of(dtype: DType) -> str:
    """The generator of keys of a dtype, of plain words that of the scope."""
    return _IMPL_OF.get(dtype) or config.current().prng_impl


def class_of(dtype: DType) -> type[Pair]:
    """What holds the words of keys of a dtype."""
    return _GENERATORS[impl_of(dtype)][1]


def counters(shape: tuple[Any, ...]) -> tuple[Any, Any]:
    """High and low words of the row-major index of every element of `shape`."""
    size: Any = 1
    for n in shape:
        size = size * n
    if isinstance(size, int) and size > 2**32:
        index = lax.iota(np.dtype(np.uint64), size)
        high = lax.reshape(lax.convert_element_type(index >> 32, UINT32), shape)
        return high, lax.reshape(lax.convert_element_type(index, UINT32), shape)
    if not shape:
        return ZERO, ZERO
    index = lax.iota(UINT32, size)
    return ZERO, index if len(shape) == 1 else lax.reshape(index, shape)


def joined(high: Array, low: Array) -> Array:
    """Integers of 64 bits from their two words."""
    wide = np.dtype(np.uint64)
    return lax.convert_element_type(high, wide) << 32 | lax.convert_element_type(low, wide)


def _numbers(words: list[Array], width: int) -> list[Array]:
    """The integers that the words of blocks make up."""
    if width == 64:
        return [joined(*words[:2]), joined(*words[2:])]
    return [narrowed(word, width) for word in words]


def narrowed(word: Array, width: int) -> Array:
    """The low bits of words, as integers of that width."""
    return word if width == 32 else lax.convert_element_type(word, np.dtype(f"uint{width}"))
