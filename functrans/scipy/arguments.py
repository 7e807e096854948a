"""What the functions with names of SciPy share: operands, options and axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from functrans import lax, random
from functrans import numpy as jnp
from functrans.core import dtypes
from functrans.core.errors import ArgumentError, ShapeError, shown
from functrans.core.source import user_source
from functrans.core.trace import Tracer
from functrans.core.tree import tree_leaves
from functrans.numpy.common import PYTHON_SCALARS, cast, is_traced
from functrans.typing import Array, ArrayLike, NestedArrays


def inexact(*xs: NestedArrays) -> list[Array]:
    """The operands in their common floating or complex dtype, shapes as they are.

    Python's numbers are weakly typed, in lists too: coefficients that are written out follow the
    dtype of the data, with all digits that it has.
    """
    known = [x if _is_plain(x) else jnp.asarray(x) for x in xs]
    typed = [x for x in known if not _is_plain(x)]
    scalars: list[Any] = [leaf for x in known if _is_plain(x) for leaf in tree_leaves(x)]
    dtype = dtypes.to_inexact_dtype(dtypes.result_type(*typed, *scalars)) if typed or scalars \
        else dtypes.default_float()
    return [cast(jnp.asarray(np.asarray(x), dtype) if _is_plain(x) else x, dtype) for x in known]


def _is_plain(x: Any) -> bool:
    """Whether x is a number of Python's, or a list of such."""
    if isinstance(x, (list, tuple)):
        return all(type(leaf) in PYTHON_SCALARS for leaf in tree_leaves(x))
    return type(x) in PYTHON_SCALARS


def real(name: str, *xs: NestedArrays) -> list[Array]:
    """As `inexact`; raises ArgumentError for complex numbers."""
    found = inexact(*xs)
    if found and dtypes.kind(found[0].dtype) == "c":
        raise ArgumentError(f"functrans.scipy.{name} takes real numbers, and got "
                            f"{found[0].dtype}.", where=user_source(), fix="x.real")
    return found


def one_of(name: str, argument: str, value: Any, options: Sequence[Any]) -> None:
    """Raise ArgumentError unless an argument is one of the options."""
    if not any(value is o or (type(value) is type(o) and value == o) for o in options):
        raise ArgumentError(
            f"functrans.scipy.{name}: {argument} is {shown(value)}.", where=user_source(),
            fix=f"{argument}=" + ", ".join(map(repr, options[:-1])) + (
                f" or {options[-1]!r}" if len(options) > 1 else repr(options[-1])))


def known_size(name: str, argument: str, value: Any, least: int = 1) -> int:
    """A size or order that Python knows, at least `least`."""
    try:
        size = int(value)
    except TypeError:
        raise ArgumentError(f"functrans.scipy.{name}: {argument} is {shown(value)}.",
                            where=user_source(), fix="an int that is known at tracing") from None
    if size != value or size < least:
        raise ArgumentError(f"functrans.scipy.{name}: {argument} is {shown(value)}.",
                            where=user_source(), why=f"it is an int, at least {least}.")
    return size


def of_rank(name: str, argument: str, x: Array, rank: int) -> Array:
    """x, which has `rank` axes."""
    if x.ndim != rank:
        raise ShapeError(f"functrans.scipy.{name}: {argument} has shape {x.shape}.",
                         where=user_source(), why=f"it has {rank} axes.")
    return x


def known_values(name: str, argument: str, x: ArrayLike, why: str, fix: str) -> np.ndarray:
    """The NumPy value of x, also that which a derivative is taken at; ArgumentError under `jit`."""
    value = lax.stop_gradient(x) if isinstance(x, Tracer) else x
    if is_traced(value):
        raise ArgumentError(f"functrans.scipy.{name}: {argument} is traced.",
                            where=user_source(), why=why, fix=fix)
    return np.asarray(value)


def random_key(name: str, rng: Any) -> Array:
    """A key of random numbers: rng itself, or one of a seed, which is 0 for None."""
    if rng is None or isinstance(rng, (int, np.integer)):
        return random.key(0 if rng is None else int(rng))
    if not hasattr(rng, "dtype"):
        raise ArgumentError(f"functrans.scipy.{name}: rng is {shown(rng)}.",
                            where=user_source(), why="random numbers come from a key.",
                            fix="rng=ft.random.key(0)")
    key: Array = rng
    return key


def value_of(x: Any) -> np.ndarray[Any, Any] | None:
    """The NumPy value of x, also that which a derivative is taken at; None where it is traced."""
    value = lax.stop_gradient(x) if isinstance(x, Tracer) else x
    return None if is_traced(value) else np.asarray(value)


def refused(name: str, argument: str, why: str, fix: str = "") -> ArgumentError:
    """The error for an option that SciPy has and programs of arrays cannot have."""
    return ArgumentError(f"functrans.scipy.{name} does not take {argument}.",
                         where=user_source(), why=why, fix=fix)
