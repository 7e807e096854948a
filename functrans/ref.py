"""References to arrays that may be written into; what is compiled of them is a pure program.

A reference has a value, which `ref[...]` reads and `ref[i] = x` replaces. Functions under `jit` and
the bodies of loops and branches may touch references that are given to them or that they close
over: their values are arguments and results of the program. Under `vmap` a reference that is an
argument is mapped as arrays are. A value of a transform cannot be written into a reference from
outside of that: give it as an argument, or make it inside.
"""

from __future__ import annotations

import operator
from typing import Any, NoReturn, final

import numpy as np

from functrans import numpy as jnp
from functrans.core import dtypes
from functrans.core.avals import ShapedArray, get_aval
from functrans.core.cells import RefArray, RefCell
from functrans.core.convert import to_array
from functrans.core.errors import (
    ArgumentError,
    DonatedArrayError,
    DTypeError,
    NonArrayError,
    ShapeError,
    publish,
)
from functrans.core.source import user_source
from functrans.core.trace import Tracer
from functrans.core.tree import known_leaf
from functrans.mutable.index import in_bounds, plain_index
from functrans.numpy.index_lists import RefSlice
from functrans.numpy.indexing import getitem
from functrans.numpy.updates import UPDATES, update
from functrans.transforms.staged import ShapeDtypeStruct
from functrans.typing import Array, ArrayLike

__all__ = ["Ref", "addupdate", "empty_ref", "free_ref", "freeze", "get", "new_ref", "set", "swap"]


@final
@known_leaf
class Ref(RefCell):
    """A reference to an array; `new_ref` makes one.

    `ref[index]` is an array, and `ref[index] = x`, `ref[index] += x` write; `ref[...]` is all of
    it. Raises IndexingError for an index out of bounds, ShapeError and DTypeError for values that
    do not fit, LeakedTracerError for values of a transform that ends before the reference.

    >>> import functrans as ft
    >>> count = ft.new_ref(0)
    >>> @ft.jit
    ... def counted(x):
    ...     count[...] += 1
    ...     return 2 * x
    >>> _ = counted(1.0), counted(2.0)
    >>> count[...].item()
    2
    """

    __slots__ = ("__weakref__",)

    @property
    def _now(self) -> Any:
        value = self.value
        if value is None:
            raise _frozen()
        return value

    @property
    def type(self) -> RefArray:
        """The type of the reference."""
        if self.shown is None:
            raise _frozen()
        return super().type

    @property
    def aval(self) -> ShapedArray:
        """The type of the array."""
        return get_aval(self._now)

    @property
    def shape(self) -> tuple[Any, ...]:
        """The sizes of the axes."""
        return tuple(self._now.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the elements."""
        return self._now.dtype  # type: ignore[no-any-return]

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> Any:
        """The number of elements."""
        return self._now.size

    @property
    def weak_type(self) -> bool:
        """Whether the dtype gives way to those of others."""
        return bool(self._now.weak_type)

    def __getitem__(self, index: Any) -> Array:
        return get(self, index)

    def __setitem__(self, index: Any, x: Any) -> None:
        set(self, index, x)

    def addupdate(self, x: Any, index: Any = ...) -> None:
        """Add to the elements at an index; places that it names twice are added to twice.

        >>> import functrans as ft
        >>> r = ft.new_ref(ft.numpy.zeros(2))
        >>> r.addupdate(3.0, 1)
        >>> r
        Ref([0., 3.], dtype=float32)
        """
        addupdate(self, index, x)

    def __len__(self) -> int:
        return len(self._now)

    def __iter__(self) -> NoReturn:
        self._refused("iterates over")

    def __array__(self, *args: Any, **kwargs: Any) -> NoReturn:
        self._refused("computes with")

    def __bool__(self) -> NoReturn:
        self._refused("asks whether there is something in")

    def _refused(self, what: str) -> NoReturn:
        raise NonArrayError(f"this {what} a reference.", where=user_source(),
                            why="it stands for a place, and what is there is an array.",
                            fix="read it: ref[...]")

    def __repr__(self) -> str:
        value = self.shown
        if value is None:
            return "Ref(frozen)"
        if isinstance(value, Tracer):
            return f"Ref<{value.aval}>"
        return f"Ref{str(repr(value)).removeprefix('Array')}"


def _frozen() -> DonatedArrayError:
    return DonatedArrayError("the reference is frozen or freed.", where=user_source(),
                             why="freeze and free_ref take its value.",
                             fix="use what freeze returned, or a new reference")


def new_ref(init_val: ArrayLike, *, memory_space: object = None, kind: str | None = None) -> Ref:
    """A reference whose value is `init_val` at first, with its shape and dtype.

    `memory_space` and `kind` are accepted and change nothing. Raises ArgumentError for what is no
    array or number, a reference among them.

    >>> import functrans as ft
    >>> r = ft.new_ref(ft.numpy.arange(3.0))
    >>> r[0] = 5.0
    >>> r[1:] += 1.0
    >>> r
    Ref([5., 2., 3.], dtype=float32)
    """
    del memory_space
    if kind not in (None, "no_grad_no_remat"):
        raise ArgumentError(f"new_ref: kind is None or 'no_grad_no_remat', not {kind!r}.",
                            where=user_source())
    return Ref(to_array(init_val, "new_ref: the initial value"))


def empty_ref(ty: ShapeDtypeStruct | Array, memory_space: object = None) -> Ref:
    """A reference to an array of the shape and dtype of `ty`, which holds zeros at first.

    >>> import functrans as ft
    >>> ft.ref.empty_ref(ft.ShapeDtypeStruct((2,), "float32"))
    Ref([0., 0.], dtype=float32)
    """
    return new_ref(jnp.zeros(ty.shape, ty.dtype), memory_space=memory_space)


def freeze(ref: Ref) -> Array:
    """The last value of a reference, which cannot be used afterwards.

    >>> import functrans as ft
    >>> r = ft.new_ref(ft.numpy.arange(2))
    >>> r[1] = 7
    >>> ft.freeze(r).tolist()
    [0, 7]
    """
    value: Array = _of("freeze", ref)._now
    ref.value = None
    return value


def free_ref(ref: Ref) -> None:
    """Forget the value of a reference, which cannot be used afterwards.

    >>> import functrans as ft
    >>> ft.free_ref(ft.new_ref(1.0))
    """
    freeze(ref)


def get(ref: Ref, idx: Any = None) -> Array:
    """What is at an index, by default all.

    >>> import functrans as ft
    >>> ft.ref.get(ft.new_ref(ft.numpy.arange(4)), slice(2)).tolist()
    [0, 1]
    """
    value = _of("get", ref)._now
    return value if _is_whole(idx) else getitem(value, _index(ref, idx))


def set(ref: Ref, idx: Any, value: ArrayLike) -> None:
    """Write at an index.

    >>> import functrans as ft
    >>> r = ft.new_ref(ft.numpy.arange(3))
    >>> ft.ref.set(r, 0, 9)
    >>> r
    Ref([9, 1, 2], dtype=int32)
    """
    _write("set", ref, idx, value, "set")


def swap(ref: Ref, idx: Any, value: ArrayLike) -> Array:
    """Write at an index; returns what was there.

    >>> import functrans as ft
    >>> r = ft.new_ref(ft.numpy.arange(3))
    >>> ft.ref.swap(r, 2, 9).item(), r
    (2, Ref([0, 1, 9], dtype=int32))
    """
    before = get(ref, idx)
    _write("swap", ref, idx, value, "set")
    return before


def addupdate(ref: Ref, idx: Any, x: ArrayLike) -> None:
    """Add at an index; to places that it names twice, twice.

    >>> import functrans as ft
    >>> r = ft.new_ref(ft.numpy.zeros(2))
    >>> ft.ref.addupdate(r, ft.numpy.array([0, 0]), 1.0)
    >>> r
    Ref([2., 0.], dtype=float32)
    """
    _write("addupdate", ref, idx, x, "add")


def _of(name: str, ref: Any) -> Ref:
    if not isinstance(ref, Ref):
        raise ArgumentError(f"{name} takes a reference, got a {type(ref).__name__}.",
                            where=user_source(), fix="functrans.new_ref(x)")
    return ref


def _is_whole(index: Any) -> bool:
    return index is Ellipsis or index is None or (type(index) is tuple and (
        not index or (len(index) == 1 and index[0] is Ellipsis)))


def ds(start: ArrayLike, size: int, stride: int = 1) -> RefSlice:
    """An index of references and arrays: `size` elements from `start` on, which may be traced.

    A window that sticks out of an array is moved inside where it is read, and not written.

    >>> import functrans as ft
    >>> r = ft.new_ref(ft.numpy.arange(5))
    >>> r[ft.ds(2, 2)].tolist()
    [2, 3]
    """
    return RefSlice(start, operator.index(size), operator.index(stride))


def _index(ref: Ref, index: Any) -> Any:
    parts = index if isinstance(index, tuple) else (index,)
    if any(isinstance(i, RefSlice) for i in parts):
        index = tuple([jnp.asarray(i.start) + i.stride * np.arange(i.size)
                       if isinstance(i, RefSlice) else i for i in parts])
    items = plain_index(index)
    in_bounds(items, ref.shape)
    return items


def _write(name: str, ref: Ref, index: Any, value: Any, how: str) -> None:
    old = _of(name, ref)._now
    new = to_array(value, "what is written into a reference")
    if dtypes.result_type(old, new) != old.dtype:
        raise DTypeError(f"{get_aval(new)} is written into a reference to {get_aval(old)}.",
                         where=user_source(), why="a reference keeps its dtype.",
                         fix=f"x.astype({old.dtype.name!r})")
    if not _is_whole(index):
        ref.value = update(old, _index(ref, index), new, UPDATES[how])
        return
    new = new.astype(old.dtype)
    if how == "add":
        new = old + new
    if new.shape != old.shape:
        try:
            new = jnp.broadcast_to(new, old.shape)
        except ShapeError:
            raise ShapeError(f"{get_aval(new)} is written into a reference to {get_aval(old)}.",
                             where=user_source(), why="a reference keeps its shape.") from None
    ref.value = new


publish(globals(), [*__all__, "ds"])
