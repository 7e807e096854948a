"""`x.at[index]`: arrays changed at an index, as new arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn, final

from functrans.core.errors import ImmutableArrayError, IndexingError, public
from functrans.core.source import user_source
from functrans.numpy.index_parts import index_text
from functrans.numpy.indexing import index_array
from functrans.numpy.updates import UPDATES, update, update_by_function
from functrans.primitives.index import GatherScatterMode
from functrans.typing import Array, ArrayLike, Index

__all__ = ["At", "IndexedAt", "refuse_delitem", "refuse_setitem"]


@final
class At:
    """What `x.at` is: index it to choose the elements to change.

    >>> import functrans.numpy as jnp
    >>> x = jnp.arange(4)
    >>> x.at[1:3].set(9).tolist()
    [0, 9, 9, 3]
    """

    __slots__ = ("_array",)

    def __init__(self, array: Array) -> None:
        self._array = array

    def __getitem__(self, index: Index) -> IndexedAt:
        return IndexedAt(self._array, index)

    def __setitem__(self, index: Any, value: Any) -> NoReturn:
        raise ImmutableArrayError(
            "x.at[...] is not assigned to.", where=user_source(),
            fix=f"x = x.at[{index_text(index)}].set({_value_text(value)})")

    def __call__(self, *index: Any) -> NoReturn:
        text = ", ".join(map(repr, index))
        raise IndexingError("x.at is indexed, not called.", where=user_source(),
                            fix=f"x.at[{text}].set(value), or x[{text}] to read")

    def __repr__(self) -> str:
        return f"At({self._array!r})"


@final
class IndexedAt:
    """The elements `x[index]`, to be changed in a copy of x.

    All methods return a new array of x's shape and dtype. `mode` says what an index out of bounds
    means, a Python int too: "clip", "fill", "drop", "wrap" or "promise_in_bounds". By default an
    index array is left out ("drop"; `get` clamps), and a Python int is an error. Where an index
    repeats, `add`, `multiply`, `min`, `max` and `apply` count every update, and `set` keeps one.
    """

    __slots__ = ("_array", "_index")

    def __init__(self, array: Array, index: Index) -> None:
        self._array = array
        self._index = index

    @public
    def get(self, *, mode: str | GatherScatterMode | None = None,
            fill_value: ArrayLike | None = None, indices_are_sorted: bool = False,
            unique_indices: bool = False, wrap_negative_indices: bool = True) -> Array:
        """x[index], with `fill_value` for index arrays out of bounds.

        >>> import functrans.numpy as jnp
        >>> jnp.arange(3).at[jnp.array([1, 7])].get(mode="fill", fill_value=-1).tolist()
        [1, -1]
        """
        return index_array(self._array, self._index, mode=mode, fill_value=fill_value,
                           indices_are_sorted=indices_are_sorted, unique_indices=unique_indices,
                           wrap_negative_indices=wrap_negative_indices)

    @public
    def apply(self, func: Callable[[Array], ArrayLike], **options: Any) -> Array:
        """func(x[index]) in place of x[index]; func is elementwise, and repeats as an index does.

        >>> import functrans.numpy as jnp
        >>> jnp.arange(3.0).at[1:].apply(jnp.square).tolist()
        [0.0, 1.0, 4.0]
        """
        return update_by_function(self._array, self._index, func, **options)

    @public
    def set(self, values: ArrayLike, **options: Any) -> Array:
        """values in place of x[index].

        >>> import functrans.numpy as jnp
        >>> jnp.zeros(3).at[0].set(1).tolist()
        [1.0, 0.0, 0.0]
        """
        return update(self._array, self._index, values, UPDATES["set"], **options)

    @public
    def add(self, values: ArrayLike, **options: Any) -> Array:
        """x[index] + values; several at one place all count.

        >>> import functrans.numpy as jnp
        >>> jnp.zeros(3).at[jnp.array([0, 0, 2])].add(1).tolist()
        [2.0, 0.0, 1.0]
        """
        return update(self._array, self._index, values, UPDATES["add"], **options)

    @public
    def subtract(self, values: ArrayLike, **options: Any) -> Array:
        """x[index] - values; several at one place all count."""
        return update(self._array, self._index, values, UPDATES["subtract"], **options)

    @public
    def multiply(self, values: ArrayLike, **options: Any) -> Array:
        """x[index] * values; several at one place all count."""
        return update(self._array, self._index, values, UPDATES["multiply"], **options)

    mul = multiply

    @public
    def divide(self, values: ArrayLike, **options: Any) -> Array:
        """x[index] / values; several at one place all count."""
        return update(self._array, self._index, values, UPDATES["divide"], **options)

    @public
    def power(self, values: ArrayLike, **options: Any) -> Array:
        """x[index] ** values; several at one place all count."""
        return update(self._array, self._index, values, UPDATES["power"], **options)

    @public
    def min(self, values: ArrayLike, **options: Any) -> Array:
        """The smaller of x[index] and values."""
        return update(self._array, self._index, values, UPDATES["min"], **options)

    @public
    def max(self, values: ArrayLike, **options: Any) -> Array:
        """The larger of x[index] and values."""
        return update(self._array, self._index, values, UPDATES["max"], **options)

    def __repr__(self) -> str:
        return f"{self._array!r}.at[{index_text(self._index)}]"


def _value_text(value: Any) -> str:
    return repr(value) if isinstance(value, (bool, int, float, complex)) else "values"


def refuse_setitem(x: Any, index: Any, value: Any) -> NoReturn:
    """`x[index] = value`: an error that spells the same with `.at`."""
    text = index_text(index)
    raise ImmutableArrayError(
        f"x[{text}] = ... cannot change an array in place.", where=user_source(),
        why="arrays are immutable, so that programs can be transformed.",
        fix=f"x = x.at[{text}].set({_value_text(value)})")


def refuse_delitem(x: Any, index: Any) -> NoReturn:
    """`del x[index]`: an error."""
    raise ImmutableArrayError(f"del x[{index_text(index)}] cannot change an array in place.",
                              where=user_source(), fix="x = functrans.numpy.delete(x, i, axis=0)")
