"""jax.lax's own random bits, and the enumerations of its arguments."""

from __future__ import annotations

import enum
from typing import Any

import numpy as np

from functrans.callbacks import io_callback
from functrans.core import dtypes
from functrans.core.convert import to_array
from functrans.core.dims import Shape
from functrans.core.errors import ArgumentError, DTypeError, KeyTypeError
from functrans.core.source import user_source
from functrans.lax.elementwise import add, bitwise_or, lt, mul, shift_left, sub
from functrans.primitives.base import full
from functrans.primitives.broadcast import broadcast_in_dim, prod
from functrans.primitives.convert import bitcast_convert_type, convert_element_type
from functrans.primitives.random import philox4x32
from functrans.primitives.shape import concatenate, iota, reshape, slice_in_dim
from functrans.transforms.staged import ShapeDtypeStruct
from functrans.typing import Array, ArrayLike, DTypeLike

__all__ = ["RandomAlgorithm", "RoundingMethod", "rng_bit_generator", "rng_uniform"]


class RandomAlgorithm(enum.IntEnum):
    """Which generator `rng_bit_generator` is: all are philox-4x32 here.

    >>> state, algorithm = jnp.arange(4, dtype="uint32"), lax.RandomAlgorithm.RNG_PHILOX
    >>> lax.rng_bit_generator(state, (2, 3), algorithm=algorithm)[1].shape
    (2, 3)
    """

    RNG_DEFAULT = 0
    RNG_THREE_FRY = 1
    RNG_PHILOX = 2


class RoundingMethod(enum.IntEnum):
    """Where `round` puts halves: away from zero, or to the even neighbour.

    >>> lax.round(jnp.array([0.5, 2.5]), lax.RoundingMethod.AWAY_FROM_ZERO)
    Array([1., 3.], dtype=float32)
    """

    AWAY_FROM_ZERO = 0
    TO_NEAREST_EVEN = 1


_WORD, _LONG = np.dtype(np.uint32), np.dtype(np.uint64)


def rng_bit_generator(key: ArrayLike, shape: Shape, dtype: DTypeLike = np.uint32,
                      algorithm: RandomAlgorithm = RandomAlgorithm.RNG_DEFAULT
                      ) -> tuple[Array, Array]:
    """The state behind the bits, and random bits as unsigned integers of 8 to 64 bits.

    The state is four words uint32 or two uint64, plain ones, not a key of `ft.random`: half are the
    key of philox-4x32, half its counter. JAX's bits are other ones, which depend on the device.

    >>> import functrans as ft, functrans.numpy as jnp
    >>> state = jnp.arange(4, dtype="uint32")
    >>> state, first = ft.lax.rng_bit_generator(state, (3,))
    >>> state, second = ft.lax.rng_bit_generator(state, (3,))
    >>> first.dtype, bool((first == second).any())
    (dtype('uint32'), False)
    """
    state = to_array(key, "rng_bit_generator: the key")
    wanted = dtypes.as_dtype(dtype)
    if dtypes.kind(wanted) != "u" or dtypes.is_narrow(wanted):
        raise DTypeError(f"rng_bit_generator of {wanted}.", where=user_source(),
                         why="bits are unsigned integers of 8 to 64 bits.")
    if (state.dtype, tuple(state.shape)) not in ((_WORD, (4,)), (_LONG, (2,))):
        raise KeyTypeError(f"rng_bit_generator: a state of {state.dtype} of shape {state.shape}.",
                           where=user_source(), why="it is four words uint32, or two uint64.",
                           fix="functrans.random.bits(key, shape) for keys of functrans.random")
    RandomAlgorithm(algorithm)
    words = reshape(bitcast_convert_type(state, _WORD), (4,))
    first, second, low, high = (reshape(slice_in_dim(words, i, i + 1), ()) for i in range(4))
    size = prod(tuple(shape))
    per_block = 2 if wanted == _LONG else 4
    blocks = -(-size // per_block)
    index = iota(_WORD, blocks)
    at = add(index, _each(low, blocks))
    carried = add(_each(high, blocks), convert_element_type(lt(at, index), _WORD))
    zero = full((blocks,), 0, _WORD)
    numbers = philox4x32(_each(first, blocks), _each(second, blocks), at, carried, zero, zero)
    if wanted == _LONG:
        halves = [convert_element_type(v, _LONG) for v in numbers]
        numbers = [bitwise_or(shift_left(b, full((blocks,), 32, _LONG)), a)
                   for a, b in (halves[:2], halves[2:])]
    else:
        numbers = [convert_element_type(v, wanted) for v in numbers]
    columns = [reshape(v, (blocks, 1)) for v in numbers]
    flat = reshape(concatenate(columns, 1), (blocks * per_block,))
    after = add(low, full((), blocks, _WORD) if isinstance(blocks, int)
                else convert_element_type(to_array(blocks), _WORD))
    above = add(high, convert_element_type(lt(after, low), _WORD))
    new = concatenate([reshape(v, (1,)) for v in (first, second, after, above)], 0)
    new = new if state.dtype == _WORD else bitcast_convert_type(reshape(new, (2, 2)), _LONG)
    return new, reshape(slice_in_dim(flat, 0, size), tuple(shape))


def _each(x: Array, count: Any) -> Array:
    return broadcast_in_dim(x, (count,), ())


def rng_uniform(a: ArrayLike, b: ArrayLike, shape: Shape) -> Array:
    """Uniform numbers in [a, b) that differ from call to call: an effect, drawn by the host.

    It is for code that is written so; `ft.random.uniform` draws by a key, without an effect. Raises
    DTypeError for bounds of different dtypes.

    >>> import functrans as ft
    >>> x = ft.lax.rng_uniform(0.0, 1.0, (4,))
    >>> bool((x >= 0).all() & (x < 1).all())
    True
    """
    low, high = to_array(a, "rng_uniform: a"), to_array(b, "rng_uniform: b")
    if low.dtype != high.dtype or dtypes.kind(low.dtype) not in "fiu" or low.ndim or high.ndim:
        raise DTypeError(f"rng_uniform between {low.dtype} of shape {low.shape} and {high.dtype} "
                         f"of shape {high.shape}.", where=user_source(),
                         why="the bounds are scalars of one dtype.")
    shape = tuple(shape)
    if any(not isinstance(n, int) for n in shape):
        raise ArgumentError("rng_uniform: a symbolic size.", where=user_source(),
                            fix="ft.random.uniform(key, shape)")
    if dtypes.kind(low.dtype) == "f":
        drawn_in = np.float64 if low.dtype.itemsize > 4 else np.float32
        unit = io_callback(
            lambda: np.random.default_rng().random(shape, drawn_in).astype(low.dtype),
            ShapeDtypeStruct(shape, low.dtype))
        return add(mul(unit, broadcast_in_dim(sub(high, low), shape, ())),
                   broadcast_in_dim(low, shape, ()))
    drawn: Array = io_callback(
        lambda x, y: np.random.default_rng().integers(x, y, shape, dtype=low.dtype),
        ShapeDtypeStruct(shape, low.dtype), low, high)
    return drawn
