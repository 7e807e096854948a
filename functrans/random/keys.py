"""Keys: immutable seeds of streams. Every random function takes one and uses it up."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from functrans import lax
from functrans import numpy as ftnp
from functrans._runtime import ArrayBase
from functrans.core.dims import Dim, Size
from functrans.core.dtypes import KEY_DTYPES, DType, check_int, kind
from functrans.core.errors import ArgumentError, IntegerOverflowError, KeyTypeError
from functrans.core.key_reuse import renewed, used
from functrans.core.source import user_source
from functrans.core.trace import Tracer
from functrans.primitives.convert import bitcast_convert_type
from functrans.random.generators import (
    UINT32,
    ZERO,
    Pair,
    class_of,
    counters,
    default_impl,
    dtype_of,
    impl_of,
)
from functrans.typing import Array, ArrayLike, DTypeLike


def is_key(x: Any) -> bool:
    """Whether x is a key or an array of keys: an array or a tracer whose dtype is one of keys."""
    return isinstance(x, (ArrayBase, Tracer)) and x.dtype in KEY_DTYPES


def _key_of(words: Any, dtype: DType) -> Array:
    """The keys of a dtype that a uint32 array of shape (..., 2) holds."""
    return bitcast_convert_type(words, dtype)


# ------------------------------------------------------------------------------- making and reading


def key(seed: ArrayLike, *, impl: str | None = None) -> Array:
    """One key from an integer seed, all of whose up to 64 bits count: an array of shape ().

    Keys are arrays of dtype `key<fry>`: they are leaves of trees, are indexed, stacked, reshaped
    and selected as others are, and have no arithmetic. With `impl="philox"` their dtype is
    `key<philox>`, and what is drawn from them costs GPUs a quarter as much; without one it is what
    `ft.config.default_prng_impl` says, "threefry2x32" at first. "rbg" and "unsafe_rbg", JAX's names
    of the fast generator of its compiler, are names of philox here: as fast, with other numbers.
    Raises KeyTypeError for a seed that is no scalar integer, IntegerOverflowError above 64 bits,
    ArgumentError for another generator.

    >>> key(42).dtype, key(42).shape
    (dtype(key<fry>), ())
    >>> key_data(key(42)).tolist()
    [0, 42]
    >>> key(42, impl="philox").dtype
    dtype(key<philox>)
    """
    impl = default_impl(impl)
    return renewed(_key_of(_seed_data(seed), dtype_of(impl)))


def PRNGKey(seed: ArrayLike, *, impl: str | None = None) -> Array:
    """One key as a plain uint32 array of shape (2,), for code written for such; see `key`.

    Plain words do not know their generator: what is drawn from them is of the one that
    `ft.config.default_prng_impl` says.

    >>> PRNGKey(42).tolist()
    [0, 42]
    """
    default_impl(impl)
    return _seed_data(seed)


def _seed_data(seed: ArrayLike) -> Array:
    if isinstance(seed, int):
        if not -(2**63) <= seed < 2**64:
            raise IntegerOverflowError(
                f"the seed {seed} has more than 64 bits.",
                where=user_source(),
                fix="ft.random.key(seed % 2**64)",
            )
        return ftnp.asarray(np.array([(seed >> 32) & 0xFFFFFFFF, seed & 0xFFFFFFFF], np.uint32))
    if is_key(seed):
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


def key_data(keys: Array) -> Array:
    """The uint32 array of shape (*keys.shape, 2) that keys are made of.

    >>> key_data(split(key(0), 3)).shape
    (3, 2)
    """
    return _data("key_data", keys)


def wrap_key_data(key_bits_array: ArrayLike, *, impl: str | None = None,
                  dtype: DType | None = None) -> Array:
    """The keys of a generator that a uint32 array of shape (..., 2) holds; undoes `key_data`.

    `dtype` is that of keys of the generator, in place of its name.

    >>> wrap_key_data(key_data(key(7))) == key(7)
    Array(True, dtype=bool)
    """
    if dtype is not None and impl is not None:
        raise ArgumentError("wrap_key_data: dtype and impl both say which generator is meant.",
                            where=user_source(), fix="wrap_key_data(words, impl=...)")
    if dtype is not None and dtype not in KEY_DTYPES:
        raise KeyTypeError(f"wrap_key_data: {dtype} is no dtype of keys.", where=user_source(),
                           fix="wrap_key_data(words, dtype=key.dtype)")
    impl = default_impl(impl) if dtype is None else impl_of(dtype)
    if is_key(key_bits_array):
        raise KeyTypeError("wrap_key_data takes the words of keys and got keys.",
                           where=user_source(), fix="the keys as they are")
    return renewed(_key_of(_data("wrap_key_data", key_bits_array), dtype_of(impl)))


def key_impl(keys: Array) -> str:
    """The name of the generator of keys: 'threefry2x32' or 'philox'.

    >>> key_impl(key(0)), key_impl(key(0, impl="philox"))
    ('threefry2x32', 'philox')
    """
    _data("key_impl", keys)
    return impl_of(keys.dtype)


def key_dtype(impl_spec: str | DTypeLike | None = None) -> DType:
    """The dtype of the keys of a generator, by default of that of the scope.

    >>> key_dtype(), key_dtype("philox")
    (dtype(key<fry>), dtype(key<philox>))
    """
    if isinstance(impl_spec, str) or impl_spec is None:
        return dtype_of(default_impl(impl_spec))
    known = getattr(impl_spec, "dtype", impl_spec)
    if isinstance(known, np.dtype) and known in KEY_DTYPES:
        return known
    raise KeyTypeError(f"key_dtype: {impl_spec!r} names no generator.", where=user_source(),
                       fix="ft.random.key_dtype('philox')")


def clone(key: Array) -> Array:
    """The same key, marked as meant to be used twice: `ft.debug_key_reuse` takes it for a new one.

    >>> clone(key_) == key_ if (key_ := key(0)) is not None else None
    Array(True, dtype=bool)
    """
    _data("clone", key)
    return renewed(key)


def _data(name: str, keys: Any) -> Array:
    """The words of keys given as such or as a uint32 array of shape (..., 2), checked."""
    if is_key(keys):
        return bitcast_convert_type(keys, UINT32)
    if getattr(keys, "dtype", None) != UINT32 or not keys.shape or keys.shape[-1] != 2:
        given = getattr(keys, "shape", None)
        described = type(keys).__name__ if given is None else f"{keys.dtype} of shape {given}"
        raise KeyTypeError(
            f"ft.random.{name} takes a key and got {described}.",
            where=user_source(),
            fix=f"key = ft.random.key(0); ft.random.{name}(key, ...)",
        )
    return ftnp.asarray(keys)


def swapped(name: str, what: str) -> KeyTypeError:
    """The error for a key in the place of another argument."""
    return KeyTypeError(f"ft.random.{name} got a random key as its {what}.", where=user_source(),
                        why="the key is the first argument.",
                        fix=f"ft.random.{name}(key, ...)")


def pair(name: str, key: Array) -> Pair:
    """The two words of one key, which is used up; raises KeyTypeError for a batch of keys."""
    words = words_of(name, key)
    used(name, key)
    return words


def words_of(name: str, key: Array) -> Pair:
    """The two words of one key, which may be used again."""
    data = _data(name, key)
    if len(data.shape) != 1:
        shape = tuple(data.shape[:-1])
        raise KeyTypeError(
            f"ft.random.{name} takes one key and got keys of shape {shape}.",
            where=user_source(),
            why="each key gives a sample of its own, which vmap says.",
            fix=f"ft.vmap(ft.random.{name})(keys)",
        )
    return class_of(key.dtype)(data[0], data[1])


def join(words: Sequence[Any]) -> Array:
    """The array of shape (..., 2) of the two words of keys."""
    parts = [lax.reshape(word, (*word.shape, 1)) for word in words]
    return lax.concatenate(parts, len(parts[0].shape) - 1)


# --------------------------------------------------------------------------------- deriving keys


def child(key: Pair, index: int) -> Pair:
    """Key number `index` of the split of a key (or of each key, where the words are arrays)."""
    return key.derived(ZERO, np.array(index, UINT32))


def children(key: Pair, shape: tuple[Any, ...]) -> Pair:
    """The words of `shape` keys split from one key."""
    return key.derived(*counters(shape))


def split(key: Array, num: Size | tuple[Size, ...] = 2) -> Array:
    """`num` new keys, independent of each other and of the key, which is used up.

    `num` may be a shape. Raises KeyTypeError for keys in a batch.

    >>> first, second = split(key(0))
    >>> split(key(0), (2, 3)).shape
    (2, 3)
    """
    if is_key(num):
        raise swapped("split", "number of keys")
    if not isinstance(num, (tuple, list, Dim)):
        num = operator.index(num)
    shape = tuple(num) if isinstance(num, (tuple, list)) else (num,)
    data = join(children(pair("split", key), shape))
    return renewed(_key_of(data, key.dtype)) if is_key(key) else data


def fold_in(key: Array, data: ArrayLike) -> Array:
    """A new key from a key and a 32-bit integer; equals split(key, n)[data].

    Raises IntegerOverflowError for a Python int outside of uint32.

    >>> fold_in(key(0), 1) == split(key(0))[1]
    Array(True, dtype=bool)
    """
    words = words_of("fold_in", key)
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
    folded = join(words.derived(ZERO, data))
    return renewed(_key_of(folded, key.dtype)) if is_key(key) else folded
