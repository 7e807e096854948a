"""Random chains of operations that move, select and reduce elements, and arrays for them.

A chain is a list of functions of an array; `apply` runs it eagerly or while it is traced.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
from hypothesis import strategies as st

import functrans as ft
import functrans.numpy as jnp
from functrans import lax

__all__ = ["DTYPES", "Chain", "arrays", "chains"]

DTYPES = ("float32", "float64", "int32", "int8", "uint8", "bool", "bfloat16")
MAX_SIZE = 700
# small ones, an empty one, and rows longer than vectors of any machine
SIZES = (0, 1, 1, 2, 3, 4, 5, 7, 16, 19, 37)
Draw = Callable[[st.SearchStrategy[Any]], Any]
Step = Callable[[Any], Any]


@dataclass(frozen=True)
class Chain:
    """Operations one after the other; those of `kept` are results too."""

    steps: tuple[tuple[str, Step], ...]
    kept: frozenset[int]

    def __call__(self, x: Any) -> list[Any]:
        found = []
        for k, (_, step) in enumerate(self.steps):
            x = step(x)
            if k in self.kept or k == len(self.steps) - 1:
                found.append(x)
        return found

    def __repr__(self) -> str:
        return f"Chain({', '.join(name for name, _ in self.steps)}; kept {sorted(self.kept)})"


def values(shape: tuple[int, ...], dtype: str, seed: int) -> np.ndarray[Any, Any]:
    """Small whole numbers, so that sums are exact in any order."""
    rng = np.random.default_rng(seed)
    if dtype == "bool":
        return rng.integers(0, 2, shape).astype(np.bool_)
    low = 0 if dtype == "uint8" else -3
    x = np.asarray(rng.integers(low, 4, shape))
    return x.astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)


@st.composite
def arrays(draw: Draw) -> np.ndarray[Any, Any]:
    shape: list[int] = []
    for _ in range(draw(st.integers(0, 4))):
        shape.append(draw(st.sampled_from([s for s in SIZES if math.prod(shape) * s <= MAX_SIZE])))
    return values(tuple(shape), draw(st.sampled_from(DTYPES)), draw(st.integers(0, 99)))


def is_bool(x: Any) -> bool:
    return bool(x.dtype == np.bool_)


def is_float(x: Any) -> bool:
    return "float" in x.dtype.name


# --- operations: each draws its parameters for x, or gives None where it does not fit


def reshape(draw: Draw, x: Any) -> Step | None:
    shape: list[int] = []
    rest = x.size
    while rest > 1 and len(shape) < 4 and draw(st.integers(0, 3)):
        n = draw(st.sampled_from([d for d in range(1, rest + 1) if rest % d == 0]))
        shape.append(n)
        rest //= n
    shape.append(rest)
    if draw(st.booleans()):
        shape.insert(draw(st.integers(0, len(shape))), 1)
    return lambda a: a.reshape(tuple(shape))


def transpose(draw: Draw, x: Any) -> Step | None:
    order = draw(st.permutations(range(x.ndim)))
    return lambda a: lax.transpose(a, order)


def slice_(draw: Draw, x: Any) -> Step | None:
    starts = [draw(st.integers(0, n)) for n in x.shape]
    limits = [draw(st.integers(s, n)) for s, n in zip(starts, x.shape)]
    strides = [draw(st.integers(1, 3)) for _ in x.shape]
    return lambda a: lax.slice(a, starts, limits, strides)


def pad(draw: Draw, x: Any) -> Step | None:
    config = []
    for n in x.shape:
        inside = draw(st.integers(0, 2)) if draw(st.booleans()) else 0
        whole = max(n + (n - 1) * inside, 0)
        low = draw(st.integers(-min(whole, 3), 3))
        high = draw(st.integers(-min(whole + min(low, 0), 3), 3))
        config.append((low, high, inside))
    value = draw(st.sampled_from((0, 1, 2)))
    return lambda a: lax.pad(a, np.asarray(value).astype(a.dtype), config)


def concatenate(draw: Draw, x: Any) -> Step | None:
    if not x.ndim:
        return None
    axis = draw(st.integers(0, x.ndim - 1))
    count = draw(st.integers(1, 3))
    start = draw(st.integers(0, x.shape[axis]))
    place = draw(st.integers(0, count))
    part = lambda a: lax.slice_in_dim(a, start, a.shape[axis], axis=axis)
    return lambda a: lax.concatenate([*[a] * place, part(a), *[lax.rev(a, (axis,))] *
                                      (count - place)], axis)


def rev(draw: Draw, x: Any) -> Step | None:
    axes = [d for d in range(x.ndim) if draw(st.booleans())]
    return lambda a: lax.rev(a, axes)


def broadcast(draw: Draw, x: Any) -> Step | None:
    shape = [draw(st.sampled_from((1, 2, 3, 17))) if n == 1 and draw(st.booleans()) else n
             for n in x.shape]
    new = [draw(st.sampled_from((0, 1, 2, 5, 18))) for _ in range(draw(st.integers(0, 2)))]
    if math.prod(shape) * math.prod(new) > MAX_SIZE:
        return None
    order = draw(st.permutations(range(len(shape) + len(new))))
    where = sorted(order[:len(shape)])
    whole = [0] * len(order)
    fresh = iter(new)
    for d in range(len(order)):
        whole[d] = shape[where.index(d)] if d in where else next(fresh)
    return lambda a: lax.broadcast_in_dim(a, whole, where)


REDUCTIONS = {"sum": lax.reduce_sum, "max": lax.reduce_max, "min": lax.reduce_min,
              "prod": lax.reduce_prod, "and": lax.reduce_and, "or": lax.reduce_or,
              "xor": lax.reduce_xor}


def reduction(draw: Draw, x: Any) -> Step | None:
    axes = tuple(d for d in range(x.ndim) if draw(st.booleans()))
    names = ["max", "min"]
    if is_bool(x):
        names = ["and", "or", "max", "min"]
    elif is_float(x):
        names += ["sum", "sum"]
    else:
        names += ["sum", "prod", "and", "or", "xor"]
    if any(x.shape[d] == 0 for d in axes):
        names = [n for n in names if n in ("sum", "prod", "and", "or", "xor")]
    if not names:
        return None
    fold = REDUCTIONS[draw(st.sampled_from(names))]
    keeps = draw(st.booleans())

    def apply(a: Any) -> Any:
        out = fold(a, axes)
        return lax.expand_dims(out, axes) if keeps else out

    return apply


def extremum(draw: Draw, x: Any) -> Step | None:
    axes = [d for d in range(x.ndim) if x.shape[d]]
    if not axes:
        return None
    axis = draw(st.sampled_from(axes))
    dtype = draw(st.sampled_from(("int32", "int64")))
    fun = draw(st.sampled_from((lax.argmax, lax.argmin)))
    return lambda a: fun(a, axis, dtype)


def normalise(draw: Draw, x: Any) -> Step | None:
    """A reduction that is read where its operand is: a chain over rows, or over columns."""
    if not x.ndim or x.size == 0 or is_bool(x):
        return None
    axis = draw(st.integers(0, x.ndim - 1))
    fold = draw(st.sampled_from((lax.reduce_max, lax.reduce_min)))
    return lambda a: a - lax.expand_dims(fold(a, (axis,)), (axis,))


def arithmetic(draw: Draw, x: Any) -> Step | None:
    if is_bool(x):
        return draw(st.sampled_from((lax.bitwise_not, lambda a: a & a)))
    seed = draw(st.integers(0, 9))
    return draw(st.sampled_from((
        lambda a: a + a, lambda a: jnp.where(a > a.dtype.type(0), a, a.dtype.type(1)),
        lambda a: jnp.maximum(a, a.dtype.type(1)),
        lambda a: a - values(a.shape, a.dtype.name, seed))))


def convert(draw: Draw, x: Any) -> Step | None:
    dtype = draw(st.sampled_from(DTYPES))
    if dtype == "uint8" or (dtype == "int8" and not is_bool(x)):
        return lambda a: lax.convert_element_type(a % 7 if not is_bool(a) else a, dtype) \
            if not is_float(a) else lax.convert_element_type(jnp.clip(a, 0, 7), dtype)
    return lambda a: lax.convert_element_type(a, dtype)


def flip_add(draw: Draw, x: Any) -> Step | None:
    """Two reads of one value, one of them moved."""
    if is_bool(x) or not x.ndim:
        return None
    axis = draw(st.integers(0, x.ndim - 1))
    if x.ndim >= 2 and x.shape[0] == x.shape[1] and draw(st.booleans()):
        return lambda a: a - jnp.swapaxes(a, 0, 1)
    return lambda a: a - lax.rev(a, (axis,))


def some_indices(draw: Draw, n: int, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """Places in an axis of size n, some of them outside of it."""
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    dtype = draw(st.sampled_from(("int32", "int64", "int8", "uint8", "uint32")))
    low = 0 if dtype[0] == "u" else -2
    return rng.integers(low, n + 2, shape).astype(dtype)


MODES = ("clip", "fill")


def take(draw: Draw, x: Any) -> Step | None:
    if not x.ndim or x.size == 0:
        return None
    axis = draw(st.integers(0, x.ndim - 1))
    count = draw(st.sampled_from((0, 1, 3, 8)))
    if x.size // x.shape[axis] * count > MAX_SIZE:
        return None
    where = some_indices(draw, x.shape[axis], (count, 1))
    size = draw(st.integers(1, x.shape[axis])) if draw(st.booleans()) else 1
    mode = draw(st.sampled_from(MODES))
    fill = draw(st.sampled_from((None, 1)))
    others = tuple(range(1, x.ndim + 1)) if size > 1 else tuple(range(1, x.ndim))
    numbers = lax.GatherDimensionNumbers(others, () if size > 1 else (axis,), (axis,))
    sizes = [size if d == axis else n for d, n in enumerate(x.shape)]
    if math.prod(sizes) * count > MAX_SIZE:
        return None
    return lambda a: lax.gather(a, where, numbers, sizes, mode=mode, fill_value=fill)


def take_along(draw: Draw, x: Any) -> Step | None:
    """A gather with batching dimensions: indices that move along the row."""
    if not x.ndim or x.size == 0:
        return None
    axis = draw(st.integers(0, x.ndim - 1))
    where = some_indices(draw, x.shape[axis], x.shape)
    mode = draw(st.sampled_from(MODES))
    return lambda a: jnp.take_along_axis(a, where, axis, mode=mode)


def scatter(draw: Draw, x: Any) -> Step | None:
    if not x.ndim or x.size == 0:
        return None
    axis = draw(st.integers(0, x.ndim - 1))
    count = draw(st.sampled_from((0, 1, 3, 8)))
    where = some_indices(draw, x.shape[axis], (count, 1))
    op = draw(st.sampled_from((lax.scatter, lax.scatter_min, lax.scatter_max) if is_bool(x) else (
        lax.scatter, lax.scatter_add, lax.scatter_mul, lax.scatter_min, lax.scatter_max)))
    mode = draw(st.sampled_from(MODES))
    numbers = lax.ScatterDimensionNumbers(
        tuple(range(1, x.ndim)), (axis,), (axis,))
    rest = tuple(n for d, n in enumerate(x.shape) if d != axis)
    updates = values((count, *rest), x.dtype.name, draw(st.integers(0, 9)))
    if op is lax.scatter:  # the order of several writes to one place is not promised
        updates = np.broadcast_to(updates[:1] if count else updates, updates.shape)
    return lambda a: op(a, where, updates, numbers, mode=mode)


def dynamic_slice(draw: Draw, x: Any) -> Step | None:
    starts = [some_indices(draw, n, ()) for n in x.shape]
    sizes = [draw(st.integers(0, n)) for n in x.shape]
    return lambda a: lax.dynamic_slice(a, starts, sizes)


def dynamic_update(draw: Draw, x: Any) -> Step | None:
    starts = [some_indices(draw, n, ()) for n in x.shape]
    sizes = [draw(st.integers(0, n)) for n in x.shape]
    update = values(tuple(sizes), x.dtype.name, draw(st.integers(0, 9)))
    return lambda a: lax.dynamic_update_slice(a, update, starts)


def number(draw: Draw, x: Any) -> Step | None:
    if not x.ndim or is_bool(x):
        return None
    axis = draw(st.integers(0, x.ndim - 1))
    return lambda a: a + lax.broadcasted_iota(a.dtype, a.shape, axis) % 5


OPERATIONS: dict[str, Callable[[Draw, Any], Step | None]] = {
    f.__name__.strip("_"): f for f in (
        reshape, transpose, slice_, pad, concatenate, rev, broadcast, reduction, extremum,
        normalise, arithmetic, convert, flip_add, take, take_along, scatter, dynamic_slice,
        dynamic_update, number)}


@st.composite
def chains(draw: Draw, x: np.ndarray[Any, Any], longest: int = 6) -> Chain:
    """A chain for arrays of the shape and dtype of x."""
    steps: list[tuple[str, Step]] = []
    kept = set()
    a: Any = ft.numpy.asarray(x)
    for _ in range(draw(st.integers(1, longest))):
        name = draw(st.sampled_from(sorted(OPERATIONS)))
        step = OPERATIONS[name](draw, a)
        if step is None:
            continue
        out = step(a)
        if out.size > 2 * MAX_SIZE:
            continue
        steps.append((f"{name}{list(a.shape)}", step))
        if draw(st.integers(0, 3)) == 0:
            kept.add(len(steps) - 1)
        a = out
    return Chain(tuple(steps), frozenset(kept))


