"""The array that NumPy code writes into: `MutableArray`.

It computes with the value of now, by the functions of functrans.numpy, and what it computes is a
new array. A number (a result without axes) is no array in NumPy either: it is immutable.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, final

import numpy as np

from functrans import lax
from functrans import numpy as jnp
from functrans.core import dtypes
from functrans.core.convert import to_array
from functrans.core.dims import same_shape
from functrans.core.errors import DTypeError, ShapeError
from functrans.core.source import user_source
from functrans.core.trace import ARRAYS
from functrans.mutable.calls import CallScope, Cell, current_call
from functrans.mutable.index import (
    around_traced_mask,
    entries_of,
    in_bounds,
    is_advanced,
    known_mask,
    last_of_repeated,
    plain_index,
    traced_mask,
)
from functrans.mutable.lenses import Indexed, Lens, ReadOnly, Transposed, extended, read, written
from functrans.mutable.selected import Selected
from functrans.numpy.common import is_traced
from functrans.numpy.indexing import getitem
from functrans.numpy.updates import UPDATES, update

__all__ = ["MutableArray", "fresh", "new", "unwrap"]


@final
class MutableArray:
    """An array of a running call of numpy_code, or a view of one."""

    if TYPE_CHECKING:  # what methods.py installs, as far as the package uses it
        flat: Any
        copy: Any
        astype: Any
        reshape: Any

    __slots__ = ("_cache", "_cell", "_chain", "_shadow", "_version")
    __array_priority__ = 2000  # above those of immutable arrays
    __hash__ = None  # type: ignore[assignment]  # as of NumPy's arrays

    def __init__(self, cell: Cell, chain: tuple[Lens, ...] = (), shadow: Any = None) -> None:
        self._cell = cell
        self._chain = chain
        self._shadow = shadow
        self._version = -1
        self._cache: Any = None

    # values ----------------------------------------------------------------------------------

    @property
    def value(self) -> Any:
        """The immutable array of what is here now."""
        value = self._cell.value
        if not self._chain:
            return value
        if self._version != self._cell.version:
            self._cache, self._version = read(value, self._chain), self._cell.version
        return self._cache

    def __functrans_array__(self) -> Any:
        return self.value

    @property
    def shape(self) -> tuple[Any, ...]:
        return tuple(self.value.shape) if self._shadow is None else self._shadow.shape

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.value.dtype  # type: ignore[no-any-return]

    @property
    def size(self) -> Any:
        return self.value.size

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    @property
    def nbytes(self) -> Any:
        return self.size * self.itemsize

    @property
    def device(self) -> Any:
        return self.value.device

    @property
    def writable(self) -> bool:
        """Whether a write is allowed by what the array is, an argument or a diagonal say."""
        return not self._cell.kind and not any(isinstance(s, ReadOnly) for s in self._chain)

    @property
    def flags(self) -> SimpleNamespace:
        shadow = self.shadow()
        contiguous = bool(shadow is None or shadow.flags.c_contiguous)
        fortran = bool(shadow is not None and shadow.flags.f_contiguous)
        return SimpleNamespace(writeable=self.writable, c_contiguous=contiguous,
                               f_contiguous=fortran, owndata=not self._chain)

    @property
    def base(self) -> MutableArray | None:
        return MutableArray(self._cell) if self._chain else None

    def shadow(self) -> Any:
        """NumPy's array of this shape and these strides (in elements), None for symbolic sizes."""
        if self._chain:
            return self._shadow
        cell = self._cell
        if cell.shadow is None:
            shape = self.shape
            if all(isinstance(s, int) for s in shape):
                cell.shadow = np.empty(shape, np.int8)
        return cell.shadow

    def through(self, lens: Lens, of_shadow: Callable[[Any], Any]) -> MutableArray:
        """A view through one lens more; `of_shadow` does the same to NumPy's array."""
        shadow = self.shadow()
        return MutableArray(self._cell, extended(self._chain, lens),
                            None if shadow is None else of_shadow(shadow))

    # writing ---------------------------------------------------------------------------------

    def check_writable(self) -> None:
        """Raise where nothing may be written, before anything is computed for it."""
        self._cell.value  # noqa: B018  (the call may be over)
        self._cell.check_writable()
        for lens in self._chain:
            if isinstance(lens, ReadOnly):
                raise ValueError("assignment destination is read-only: a diagonal or a broadcast "
                                 "view, as in NumPy")

    def assign(self, value: Any) -> None:
        """Write a value of this shape and dtype."""
        self.check_writable()
        self._cell.write(written(self._cell.value, self._chain, value))

    def fill_from(self, value: Any, what: str) -> None:
        """Write the result of an operation on the spot: of this shape, of a kind that fits."""
        value = to_array(value)
        if not same_shape(tuple(value.shape), self.shape):
            try:
                fits = same_shape(jnp.broadcast_shapes(tuple(value.shape), self.shape), self.shape)
            except ValueError:
                fits = False
            if not fits:
                raise ShapeError(
                    f"{what}: a result of shape {tuple(value.shape)} does not fit an array of "
                    f"shape {self.shape}, which stays as it is.", where=user_source(),
                    fix="x = x + y makes a new array")
            value = jnp.broadcast_to(value, self.shape)
        if value.dtype != self.dtype:
            weak = getattr(value, "weak_type", False)
            if not weak and not np.can_cast(value.dtype, self.dtype, "same_kind"):
                raise DTypeError(
                    f"{what}: a result of {value.dtype} is not written into an array of "
                    f"{self.dtype}.", where=user_source(),
                    why="NumPy's rule for results on the spot is casting='same_kind'.",
                    fix="x = x + y makes a new array; x[...] = x + y converts")
            value = jnp.astype(value, self.dtype)
        self.assign(_strong(value))

    def __setitem__(self, index: Any, value: Any) -> None:
        self.check_writable()
        if isinstance(value, MutableArray) and self._is_its_view(index, value):
            return
        items = plain_index(_unwrap_index(index))
        here = self._cell.value
        inner = self._around_mask(items)
        if inner is not None:
            view, mask = inner
            if not isinstance(value, Selected) and np.ndim(unwrap(value)):
                raise _not_counted(value)
            view[mask] = value
            return
        if isinstance(value, Selected):
            mask = traced_mask(items)
            if mask is None or mask is not value.mask:
                raise value.refusal("written elsewhere than where its mask selects")
            if not same_shape(tuple(value.full.shape), self.shape):
                raise value.refusal(f"written into an array of shape {self.shape}, and was read "
                                    f"from one of shape {tuple(value.full.shape)}")
            self.assign(_masked(self.value, mask, self._values(value.full), whole=True))
            return
        values = self._values(unwrap(value))
        if not is_advanced(items):
            entries = entries_of(items, self.shape)
            lens = Indexed(tuple(items) if entries is None else entries, self.shape)
            chain = extended(self._chain, lens)
            if values.ndim > 0 or len(chain) > 1:
                target = self[index] if entries is None else None
                shape = target.shape if target is not None else _shape_of(entries)
                values = _fitted(values, shape)
            self._cell.write(written(here, chain, values))
            return
        mask = traced_mask(items)
        in_bounds(items, self.shape)
        old = self.value
        if mask is not None:
            self.assign(_masked(old, mask, values))
            return
        mask = known_mask(items)
        if mask is not None and values.ndim <= old.ndim - mask.ndim:
            self.assign(_masked(old, mask, values))
            return
        items = last_of_repeated(items, self.shape)
        new_value = update(old, items, values, UPDATES["set"])
        # chosen, so that a derivative knows that what was there before does not matter, NaN or not
        self.assign(new_value if mask is None else _masked(old, mask, new_value, whole=True))

    def _around_mask(self, items: tuple[Any, ...]) -> tuple[MutableArray, Any] | None:
        """Of x[0, m] and x[:, m] with a traced mask: a view with the axes of m first, and m."""
        found = around_traced_mask(items, self.ndim)
        if found is None:
            return None
        rest, axis, mask = found
        view = self[rest]
        order = (*range(axis, axis + mask.ndim), *range(axis),
                 *range(axis + mask.ndim, view.ndim))
        return view.through(Transposed(order), lambda s: s.transpose(order)), mask

    def _is_its_view(self, index: Any, value: MutableArray) -> bool:
        """Whether `x[i] = value` writes what is there: the end of `x[i] += y`."""
        if value._cell is not self._cell or not value._chain:
            return False
        items = plain_index(_unwrap_index(index))
        if is_advanced(items):
            return False
        entries = entries_of(items, self.shape)
        if entries is None:
            return False
        chain = extended(self._chain, Indexed(entries, self.shape))
        return _same_chain(chain, value._chain)

    def _values(self, value: Any) -> Any:
        """What is written, in this dtype, by NumPy's rule for assignments: any number fits."""
        value = value if isinstance(value, ARRAYS) else jnp.asarray(value)
        if value.dtype == self.dtype:
            return _strong(value)
        if dtypes.kind(value.dtype) == "c" and dtypes.kind(self.dtype) != "c":
            raise DTypeError(f"complex values do not fit an array of {self.dtype}.",
                             where=user_source(), why="their imaginary part would be lost.",
                             fix="values.real; or make the array with dtype=complex")
        return _strong(jnp.astype(value, self.dtype))

    # reading ---------------------------------------------------------------------------------

    def __getitem__(self, index: Any) -> Any:
        items = plain_index(_unwrap_index(index))
        if is_advanced(items):
            mask = traced_mask(items)
            if mask is not None:
                in_bounds(items, self.shape)
                return Selected(self.value, mask, self)
            in_bounds(items, self.shape)
            inner = self._around_mask(items)
            if inner is not None:
                return inner[0][inner[1]]
            value = getitem(self.value, items)
            shadow = self.shadow() if value.ndim > 1 else None
            if shadow is not None and not any(is_traced(i) for i in items):
                shadow = shadow[tuple([np.asarray(i) if isinstance(i, ARRAYS) else i
                                       for i in items])]
                return new(value, self._cell.call, shadow=shadow)
            return new(value, self._cell.call, known=value.ndim < 2)
        shape = self.shape
        entries = entries_of(items, shape)
        if len(items) == len(shape) and not any(
                i is None or i is Ellipsis or isinstance(i, slice) for i in items):
            return getitem(self.value, items)  # a number
        return self.through(Indexed(tuple(items) if entries is None else entries, shape),
                         lambda shadow: shadow[tuple(
                             [i if isinstance(i, (int, slice)) or i is None or i is Ellipsis else 0
                              for i in items])])

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object")
        return len(self.value)

    def __iter__(self) -> Iterator[Any]:
        if not self.shape:
            raise TypeError("iteration over a 0-d array")
        return iter([self[i] for i in range(len(self))])

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.array(self.value, dtype)

    def __repr__(self) -> str:
        if not self._cell.call.alive:
            return f"MutableArray(<of a call of {self._cell.call.name} that is over>)"
        return f"MutableArray({self.value!r})"

    def __str__(self) -> str:
        return str(self.value)

    def __format__(self, spec: str) -> str:
        return format(self.value, spec)

    def __copy__(self) -> MutableArray:
        return MutableArray(Cell(self.value, self._cell.call))

    def __deepcopy__(self, memo: Any) -> MutableArray:
        return self.__copy__()


def _shape_of(entries: Sequence[Any] | None) -> tuple[Any, ...]:
    return tuple([1 if e is None else len(e) for e in entries or ()
                  if e is None or isinstance(e, range)])


def _same_chain(a: Sequence[Lens], b: Sequence[Lens]) -> bool:
    """Whether two chains are one view; traced integers are compared as objects."""
    if len(a) != len(b):
        return False
    for x, y in zip(a, b, strict=True):
        if isinstance(x, Indexed) and isinstance(y, Indexed):
            if len(x.entries) != len(y.entries) or not all(
                    p is q or (isinstance(p, (int, range)) and isinstance(q, (int, range))
                               and p == q)
                    for p, q in zip(x.entries, y.entries, strict=True)):
                return False
        elif x is not y and (type(x) is not type(y) or x != y):
            return False
    return True


def _fitted(values: Any, shape: tuple[Any, ...]) -> Any:
    """Values in the shape of what is assigned to; leading axes of size 1 may be more."""
    given = tuple(values.shape)
    while len(given) > len(shape) and given[0] == 1:
        given = given[1:]
    if given != tuple(values.shape):
        values = jnp.reshape(values, given)
    try:
        return jnp.broadcast_to(values, shape)
    except ValueError:
        raise ShapeError(f"values of shape {given} do not fit x[...] of shape {shape}.",
                         where=user_source(), why="they must broadcast to what is assigned to.",
                         ) from None


def _not_counted(values: Any) -> ShapeError:
    return ShapeError(
        f"x[mask] = values of shape {tuple(np.shape(unwrap(values)))}, where the mask is traced.",
        where=user_source(),
        why="how many elements a traced mask selects is not known, and so not which value goes "
            "where.",
        fix="x[...] = np.where(mask, y, x) with y of x's shape; a number fits any mask; with one "
            "mask m, x[m] = f(y[m])")


def _masked(old: Any, mask: Any, values: Any, whole: bool = False) -> Any:
    """x[mask] = values for a mask over the leading axes of x; `whole` values have x's shape."""
    rest = old.ndim - mask.ndim
    if whole:
        return jnp.where(jnp.reshape(mask, (*mask.shape, *[1] * rest)), values, old)
    if values.ndim > rest and not (values.ndim == rest + 1 and values.shape[0] == 1):
        raise _not_counted(values)
    if values.ndim > rest:
        values = values[0]
    return jnp.where(jnp.reshape(mask, (*mask.shape, *[1] * rest)), values, old)


def _unwrap_index(index: Any) -> Any:
    return tuple([unwrap(i) for i in index]) if isinstance(index, tuple) else unwrap(index)


def _strong(x: Any) -> Any:
    """x without a weak type: arrays of NumPy have none."""
    return lax.convert_element_type(x, x.dtype, False) if x.weak_type else x


# in and out ----------------------------------------------------------------------------------


def unwrap(x: Any) -> Any:
    """Values in place of mutable arrays, in nested containers too."""
    if isinstance(x, MutableArray):
        return x.value
    cls = type(x)
    if cls in (int, float, slice, str, bool, type(None)):
        if cls is slice:
            return slice(unwrap(x.start), unwrap(x.stop), unwrap(x.step))
        return x
    if isinstance(x, Selected):
        raise x.refusal("used by a function that has no rule for it")
    if isinstance(x, tuple):
        parts = [unwrap(i) for i in x]
        return cls(*parts) if hasattr(x, "_fields") else tuple(parts)
    if isinstance(x, list):
        return [unwrap(i) for i in x]
    if isinstance(x, Mapping) and cls is dict:
        return {k: unwrap(v) for k, v in x.items()}
    return x


def new(value: Any, call: CallScope | None = None, kind: str = "", shadow: Any = None,
        known: bool = True) -> Any:
    """A mutable array of the running call with a value; outside of calls the value."""
    call = current_call() if call is None else call
    if call is None or not call.alive:
        return value
    return MutableArray(Cell(_strong(value), call, kind, shadow, known))


def fresh(result: Any, zero_dim: bool = False, known: bool = True) -> Any:
    """The results of an operation as new arrays; numbers stay numbers, but with `zero_dim`.

    `known` says whether NumPy's result is in row-major order.
    """
    if isinstance(result, np.ndarray) and result.dtype.kind in "biufc" and (
            result.ndim or zero_dim) and current_call() is not None:
        result = to_array(result)
    if isinstance(result, ARRAYS):
        if (result.ndim or zero_dim) and result.dtype not in dtypes.KEY_DTYPES:
            return new(result, known=known or result.ndim < 2)
        return result
    if isinstance(result, tuple):
        parts = [fresh(r, zero_dim, known) for r in result]
        return type(result)(*parts) if hasattr(result, "_fields") else tuple(parts)
    if isinstance(result, list):
        return [fresh(r, zero_dim, known) for r in result]
    return result
