"""Keys: immutable seeds of streams. Every random function takes one and uses it up."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import numpy as np

from functrans import lax
from functrans import numpy as ftnp
from functrans.core.dims import Dim, Size
from functrans.core.dtypes import check_int, kind
from functrans.core.errors import ArgumentError, IntegerOverflowError, KeyTypeError
from functrans.core.keypath import GetAttrKey
from functrans.core.source import user_source
from functrans.core.tree_registry import register_pytree_with_keys
from functrans.primitives.random import threefry2x32

ArrayLike: TypeAlias = Any
Pair: TypeAlias = tuple[Any, Any]
"""The two uint32 halves of one key."""

UINT32 = np.dtype(np.uint32)
_IMPLEMENTATION = "threefry2x32"


@dataclass(frozen=True, slots=True)
class KeyDType:
    """The dtype of keys: it names the generator."""

    name: str = "key<fry>"

    def __repr__(self) -> str:
        return self.name


class Key:
    """An array of keys of shape `shape`; one key has shape ().

    A pytree whose only leaf is the uint32 array of shape (*shape, 2), so that jit, vmap and scan
    map keys over their leading axes.

    >>> keys = split(key(0), 3)
    >>> keys.shape, keys[0].shape
    ((3,), ())
    """

    __slots__ = ("_data",)
    dtype: ClassVar[KeyDType] = KeyDType()

    def __init__(self, data: Any) -> None:
        self._data = data

    @property
    def shape(self) -> tuple[Any, ...]:
        """The shape of the array of keys."""
        return tuple(self._data.shape[:-1])

    @property
    def ndim(self) -> int:
        """The number of dimensions of the array of keys."""
        return len(self.shape)

    @property
    def size(self) -> Any:
        """The number of keys."""
        return self._data.size // 2

    def reshape(self, *shape: Any) -> Key:
        """The same keys, in row-major order, in another shape."""
        sizes = shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape
        return Key(self._data.reshape((*sizes, 2)))

    def flatten(self) -> Key:
        """The same keys with one dimension."""
        return self.reshape(-1)

    ravel = flatten

    def block_until_ready(self) -> Key:
        """Wait for the keys to be computed."""
        self._data.block_until_ready()
        return self

    def __getitem__(self, index: Any) -> Key:
        if not self.ndim:
            raise KeyTypeError(
                "a single key was indexed.",
                where=user_source(),
                why="its two words are not keys.",
                fix="keys = ft.random.split(key, 2); keys[0]",
            )
        index = index if isinstance(index, tuple) else (index,)
        if Ellipsis not in index:
            index = (*index, Ellipsis)
        return Key(self._data[(*index, slice(None))])

    def __len__(self) -> int:
        if not self.ndim:
            raise KeyTypeError("a single key has no length.", where=user_source())
        return int(self.shape[0])

    def __iter__(self) -> Iterator[Key]:
        return (self[i] for i in range(len(self)))

    def __eq__(self, other: object) -> Any:
        return ftnp.all(self._data == other._data, -1) if isinstance(other, Key) else NotImplemented

    def __ne__(self, other: object) -> Any:
        return ftnp.any(self._data != other._data, -1) if isinstance(other, Key) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise KeyTypeError(
            "keys do not convert to NumPy arrays.",
            where=user_source(),
            fix="np.asarray(ft.random.key_data(key))",
        )

    def __repr__(self) -> str:
        return f"Key({self._data!r})"


register_pytree_with_keys(
    Key,
    lambda keys: (((GetAttrKey("data"), keys._data),), None),
    lambda _, children: Key(next(iter(children))),
)


# ------------------------------------------------------------------------------- making and reading


def key(seed: ArrayLike, *, impl: str | None = None) -> Key:
    """One key from an integer seed, all of whose up to 64 bits count.

    Raises KeyTypeError for a seed that is no scalar integer, IntegerOverflowError above 64 bits.

    >>> key_data(key(42)).tolist()
    [0, 42]
    """
    return Key(_seed_data(seed, impl))


def PRNGKey(seed: ArrayLike, *, impl: str | None = None) -> Any:
    """One key as a plain uint32 array of shape (2,), for code written for such; see `key`.

    >>> PRNGKey(42).tolist()
    [0, 42]
    """
    return _seed_data(seed, impl)


def _seed_data(seed: ArrayLike, impl: str | None) -> Any:
    if impl not in (None, _IMPLEMENTATION):
        raise ArgumentError(
            f"there is no generator {impl!r}.",
            where=user_source(),
            fix=f"ft.random.key(seed, impl={_IMPLEMENTATION!r})",
        )
    if isinstance(seed, int):
        if not -(2**63) <= seed < 2**64:
            raise IntegerOverflowError(
                f"the seed {seed} has more than 64 bits.",
                where=user_source(),
                fix="ft.random.key(seed % 2**64)",
            )
        return ftnp.asarray(np.array([(seed >> 32) & 0xFFFFFFFF, seed & 0xFFFFFFFF], np.uint32))
    if isinstance(seed, Key):
        raise KeyTypeError("key() takes an integer seed and got a key.", where=user_source())
    seed = ftnp.asarray(seed)
    if seed.shape or kind(seed.dtype) not in "iu":
        raise KeyTypeError(
            f"a seed is one integer, got {seed.dtype} of shape {seed.shape}.",
            where=user_source(),
            fix="keys = ft.vmap(ft.random.key)(seeds)",
        )
    low = lax.convert_element_type(seed, UINT32)
    if seed.dtype.itemsize < 8:
        high = ftnp.zeros((), UINT32)
    else:
        bits = lax.convert_element_type(seed, np.dtype(np.uint64))
        high = lax.convert_element_type(bits >> 32, UINT32)
    return join((high, low))


def key_data(keys: Any) -> Any:
    """The uint32 array of shape (*keys.shape, 2) that keys are made of.

    >>> key_data(split(key(0), 3)).shape
    (3, 2)
    """
    return _data("key_data", keys)


def wrap_key_data(key_bits_array: ArrayLike, *, impl: str | None = None) -> Key:
    """The keys that a uint32 array of shape (..., 2) holds; the inverse of `key_data`.

    >>> wrap_key_data(key_data(key(7))) == key(7)
    Array(True, dtype=bool)
    """
    if impl not in (None, _IMPLEMENTATION):
        raise ArgumentError(f"there is no generator {impl!r}.", where=user_source())
    return Key(_data("wrap_key_data", key_bits_array))


def key_impl(keys: Any) -> str:
    """The name of the generator of keys: 'threefry2x32'."""
    _data("key_impl", keys)
    return _IMPLEMENTATION


def clone(key: Any) -> Any:
    """The same key, marked as meant to be used twice.

    >>> clone(key_) == key_ if (key_ := key(0)) is not None else None
    Array(True, dtype=bool)
    """
    return Key(key._data) if isinstance(key, Key) else key


def _data(name: str, keys: Any) -> Any:
    """The words of keys given as Key or as a uint32 array of shape (..., 2), checked."""
    if isinstance(keys, Key):
        return keys._data
    if getattr(keys, "dtype", None) != UINT32 or not keys.shape or keys.shape[-1] != 2:
        given = getattr(keys, "shape", None)
        described = type(keys).__name__ if given is None else f"{keys.dtype} of shape {given}"
        raise KeyTypeError(
            f"ft.random.{name} takes a key and got {described}.",
            where=user_source(),
            fix="key = ft.random.key(0)",
        )
    return ftnp.asarray(keys)


def pair(name: str, key: Any) -> Pair:
    """The two words of one key; raises KeyTypeError for a batch of keys."""
    data = _data(name, key)
    if len(data.shape) != 1:
        shape = tuple(data.shape[:-1])
        raise KeyTypeError(
            f"ft.random.{name} takes one key and got keys of shape {shape}.",
            where=user_source(),
            why="each key gives a sample of its own, which vmap says.",
            fix=f"ft.vmap(ft.random.{name})(keys)",
        )
    return data[0], data[1]


def join(words: Sequence[Any]) -> Any:
    """The array of shape (..., 2) of the two words of keys."""
    parts = [lax.reshape(word, (*word.shape, 1)) for word in words]
    return lax.concatenate(parts, len(parts[0].shape) - 1)


# --------------------------------------------------------------------------------- deriving keys


def child(key: Pair, index: int) -> Pair:
    """Key number `index` of the split of a key (or of each key, where the words are arrays)."""
    first, second = threefry2x32(*key, _ZERO, np.array(index, UINT32))
    return first, second


_ZERO = np.zeros((), UINT32)


def counters(shape: tuple[Any, ...]) -> Pair:
    """High and low words of the row-major index of every element of `shape`."""
    size: Any = 1
    for n in shape:
        size = size * n
    if isinstance(size, int) and size > 2**32:
        index = lax.iota(np.dtype(np.uint64), size)
        high = lax.reshape(lax.convert_element_type(index >> 32, UINT32), shape)
        return high, lax.reshape(lax.convert_element_type(index, UINT32), shape)
    if not shape:
        return _ZERO, _ZERO
    index = lax.iota(UINT32, size)
    return _ZERO, index if len(shape) == 1 else lax.reshape(index, shape)


def children(key: Pair, shape: tuple[Any, ...]) -> Pair:
    """The words of `shape` keys split from one key."""
    first, second = threefry2x32(*key, *counters(shape))
    return first, second


def split(key: Any, num: Size | tuple[Size, ...] = 2) -> Any:
    """`num` new keys, independent of each other and of the key, which is used up.

    `num` may be a shape. Raises KeyTypeError for keys in a batch.

    >>> first, second = split(key(0))
    >>> split(key(0), (2, 3)).shape
    (2, 3)
    """
    if not isinstance(num, (tuple, list, Dim)):
        num = operator.index(num)
    shape = tuple(num) if isinstance(num, (tuple, list)) else (num,)
    data = join(children(pair("split", key), shape))
    return Key(data) if isinstance(key, Key) else data


def fold_in(key: Any, data: ArrayLike) -> Any:
    """A new key from a key and a 32-bit integer; equals split(key, n)[data].

    Raises IntegerOverflowError for a Python int outside of uint32.

    >>> fold_in(key(0), 1) == split(key(0))[1]
    Array(True, dtype=bool)
    """
    words = pair("fold_in", key)
    if isinstance(data, int):
        check_int(data, UINT32, where=user_source())
        data = np.array(data, UINT32)
    else:
        data = lax.convert_element_type(ftnp.asarray(data), UINT32)
        if data.shape:
            raise KeyTypeError(
                f"fold_in takes one integer and got shape {data.shape}.",
                where=user_source(),
                fix="ft.vmap(ft.random.fold_in, (None, 0))(key, data)",
            )
    folded = join(threefry2x32(*words, _ZERO, data))
    return Key(folded) if isinstance(key, Key) else folded
