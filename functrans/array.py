"""The immutable array: the class, how it prints, and how it meets Python and NumPy.

Storage, fast paths of operators and the buffer protocol are in `functrans._runtime`; operators
and methods are installed by `functrans.operators` and `functrans.methods`, on tracers too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, final

import numpy as np

from functrans import _runtime
from functrans.core import dtypes
from functrans.core.avals import ShapedArray
from functrans.core.cuda import SHARDED
from functrans.core.errors import ArgumentError, DonatedArrayError, KeyTypeError
from functrans.core.sharding import Sharding
from functrans.core.shards import Shard, sharding_of, shards_everywhere, shards_here
from functrans.core.source import user_source
from functrans.core.trace import Tracer
from functrans.core.tree import known_leaf
from functrans.device import Device, device_at

if TYPE_CHECKING:
    from functrans._array_types import ArrayMethods as Base  # with what methods.py installs
else:
    Base = _runtime.ArrayBase

__all__ = ["Array"]

_HTML_ROWS, _HTML_COLUMNS = 12, 12


class _ArrayType(type):
    """The class of `Array`: tracers are instances, as they stand for arrays.

    Python asks it only of what is not exactly an Array, so that the check costs arrays nothing;
    the package itself asks for `ArrayBase` or `Tracer`.
    """

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, (_runtime.ArrayBase, Tracer))

    def __dir__(cls) -> list[str]:
        # what other libraries' arrays have raises AttributeError (functrans.foreign)
        return [name for name in super().__dir__()
                if (not name.startswith("_") or name.endswith("_")) and hasattr(cls, name)]


@final
@known_leaf
class Array(Base, metaclass=_ArrayType):
    """An immutable n-dimensional array of numbers; made by `functrans.numpy`, not by a call.

    It has NumPy's operators, indexing and methods. Nothing can write into it: `x.at[i].set(v)`
    returns a changed copy. Traced values are instances too: `isinstance(x, Array)` says the same
    inside a function that is transformed as outside of it.

    >>> import functrans.numpy as jnp
    >>> x = jnp.array([1.0, 2.0])
    >>> x + 1
    Array([2., 3.], dtype=float32)
    >>> m = jnp.array([[1.0, 2.0], [3.0, 4.0]])
    >>> m.T.tolist(), m.reshape(4).shape, m.transpose(1, 0).shape, m.flatten().shape
    ([[1.0, 3.0], [2.0, 4.0]], (4,), (2, 2), (4,))
    >>> m.astype("int32"), m[0, 1].item(), m.view("int32").dtype
    (Array([[1, 2],
           [3, 4]], dtype=int32), 2.0, dtype('int32'))
    >>> m.block_until_ready().devices(), m.to_device("cpu").device
    ({cpu:0}, cpu:0)
    >>> m.copy().tolist(), len(m.tobytes())
    ([[1.0, 2.0], [3.0, 4.0]], 16)
    >>> m.conj().dtype, m.conjugate().dtype, m.compress(jnp.array([False, True]), axis=0)
    (dtype('float32'), dtype('float32'), Array([[3., 4.]], dtype=float32))
    >>> m.addressable_data(0) is not None, m.sharding.is_fully_replicated
    (True, True)
    """

    __slots__ = ()
    __array_priority__ = 1000  # NumPy's operators leave the operation to this class

    @property
    def device(self) -> Device:
        """Where the data lies; of an array in shards their sharding."""
        shards = _runtime.get_shards(self)
        if shards is None:
            return device_at(self._place)
        place: Device = next(iter(shards.sharding.device_set)) \
            if shards.sharding.num_devices == 1 else shards.sharding
        return place

    @property
    def sharding(self) -> Sharding:
        """Which part of it lies on which device."""
        return sharding_of(self, device_at)

    @property
    def addressable_shards(self) -> list[Shard]:
        """The parts of it that this process has."""
        return shards_here(self, device_at)

    @property
    def global_shards(self) -> list[Shard]:
        """Its parts, those of other processes without data."""
        return shards_everywhere(self, device_at)

    @property
    def is_fully_replicated(self) -> bool:
        """Whether each of its devices has all of it."""
        return self.sharding.is_fully_replicated

    @property
    def is_fully_addressable(self) -> bool:
        """Whether this process has all of its parts."""
        return self.sharding.is_fully_addressable

    @property
    def committed(self) -> bool:
        """Whether somebody put it where it is."""
        return self._place != 0

    def addressable_data(self, index: int) -> Array:
        """The part number `index` of those that this process has."""
        data: Array = self.addressable_shards[index].data
        return data

    def devices(self) -> set[Device]:
        """The devices that hold the data."""
        return self.sharding.device_set

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        memory = _runtime.cuda_pointer(self)
        if memory is None:
            raise AttributeError("an array on the CPU has no __cuda_array_interface__")
        pointer, stream = memory
        return {"shape": self.shape, "typestr": self.dtype.str, "data": (pointer, True),
                "strides": None, "version": 3, "stream": stream}

    def _repr_html_(self) -> str:
        return array_html(self)


def _number_format(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """x as NumPy prints it: keys are printed by their words, dtypes of ml_dtypes as numbers."""
    if x.dtype in dtypes.KEY_DTYPES:
        return np.ascontiguousarray(x).view(np.uint32).reshape(*x.shape, 2)
    if x.dtype == dtypes.complex32:
        return x.astype(np.complex64)
    if (x.dtype.kind == "V" or x.dtype.isbuiltin == 2) and x.dtype != dtypes.float0:
        return x.astype(np.float32 if dtypes.kind(x.dtype) == "f" else np.int32)
    return x


def _is_elsewhere(x: Any) -> bool:
    """Whether parts of an array are in other processes alone."""
    return x._place == SHARDED and not (x.is_fully_addressable or x.is_fully_replicated)


def array_repr(x: Any) -> str:
    """`Array([1., 2.], dtype=float32)`."""
    dtype = f"dtype={x.dtype.name}{', weak_type=True' if x.weak_type else ''})"
    if x._donated:
        return f"Array(<donated>, shape={x.shape}, {dtype}"
    if _is_elsewhere(x):
        return f"Array(shape={x.shape}, sharding={x.sharding!r}, {dtype}"
    if x.size == 0:
        return f"Array([], {'' if x.shape == (0,) else f'shape={x.shape}, '}{dtype}"
    if x.dtype in dtypes.KEY_DTYPES:
        return f"Array({x.shape}, dtype={x.dtype.name}) overlaying:\n{_number_format(x._np)}"
    if x.ndim > 1 and x.size > np.get_printoptions()["threshold"]:
        # in a line: trees have many of them; print(x) shows more
        text = np.array2string(_number_format(x._np), separator=", ", edgeitems=1)
        return f"Array({' '.join(text.split())}, shape={x.shape}, {dtype}"
    text = np.array2string(_number_format(x._np), separator=", ", prefix="Array(",
                           suffix=", " + dtype)
    last = len(text) - (text.rfind("\n") + 1)
    width = np.get_printoptions()["linewidth"]
    fits = last + len(dtype) + 2 <= width or ("\n" not in text and last + len(dtype) + 8 <= width)
    return f"Array({text},{' ' if fits else chr(10) + ' ' * 6}{dtype}"


def array_str(x: Any) -> str:
    """The numbers alone, as NumPy prints them."""
    if _is_elsewhere(x):
        return array_repr(x)
    return str(_number_format(x._np))


def array_format(x: Any, spec: str) -> str:
    """A format specification applies to the number in an array of shape ()."""
    if spec and x.ndim:
        raise ArgumentError(f"the format {spec!r} is for one number, and the array has shape "
                            f"{x.shape}.", where=user_source(), fix="f\"{x[0]:" + spec + "}\"")
    return format(x._np.item(), spec) if spec else str(x)


def array_html(x: Any) -> str:
    """A small matrix or vector as a table, anything else as text."""
    text = f"{dtypes.short_name(x.dtype)}[{','.join(map(str, x.shape))}]"
    if _is_elsewhere(x) or x.ndim not in (1, 2) or x.shape[-1] > _HTML_COLUMNS \
            or x.shape[0] > _HTML_ROWS or not x.size:
        from html import escape  # noqa: PLC0415  (3 ms)
        return f"<pre>{escape(repr(x))}</pre>"
    values = _number_format(np.atleast_2d(x._np))
    cell = '<td style="text-align:right;font-variant-numeric:tabular-nums">'
    rows = "".join("<tr>" + "".join(f"{cell}{v:.5g}</td>" if values.dtype.kind == "f" else
                                    f"{cell}{v}</td>" for v in row) + "</tr>" for row in values)
    return f'<table title="{text}"><caption>{text}</caption>{rows}</table>'


def raise_donated(x: Any) -> None:
    """What happens when the data of a donated array is asked for."""
    raise DonatedArrayError(
        f"the data of this {dtypes.short_name(x.dtype)}[{','.join(map(str, x.shape))}] is gone.",
        where=user_source(),
        why="it was given to a jitted call by donate_argnums, and its memory is another array's.",
        fix="x = f(x)  # go on with the result, or do not donate x")


def raise_keys(x: Any) -> None:
    """What happens when NumPy or another library asks for the data of an array of keys."""
    raise KeyTypeError(
        "keys do not convert to NumPy arrays.", where=user_source(),
        why="a key is a seed, not a number.", fix="np.asarray(ft.random.key_data(key))")


_runtime.set_array_type(Array)
_runtime.set_operator_fallbacks(
    {"aval": ShapedArray, "repr": array_repr, "str": array_str, "format": array_format,
     "donated": raise_donated, "keys": raise_keys})
