"""Arrays in files of NumPy's formats, and how arrays are printed."""

from __future__ import annotations

import os
from typing import IO, Any, Literal

import numpy as np

from functrans.core import dtypes
from functrans.core.errors import DTypeError, KeyTypeError
from functrans.core.source import user_source
from functrans.core.trace import ARRAYS
from functrans.numpy.creation import asarray
from functrans.typing import Array, ArrayLike, DTypeLike

__all__ = ["array_repr", "array_str", "fromfile", "get_printoptions", "load", "printoptions",
           "save", "savez", "set_printoptions"]

MmapMode = Literal["r", "r+", "w+", "c"] | None
_BFLOAT16 = np.dtype("V2")  # what NumPy's format makes of it

get_printoptions = np.get_printoptions
set_printoptions = np.set_printoptions
printoptions = np.printoptions


def save(file: str | os.PathLike[str] | IO[bytes], arr: ArrayLike, allow_pickle: bool = True
         ) -> None:
    """Write an array to a file in NumPy's format `.npy`; see numpy.save.

    >>> import io, functrans.numpy as jnp
    >>> file = io.BytesIO()
    >>> jnp.save(file, jnp.arange(3))
    >>> jnp.load(io.BytesIO(file.getvalue())).tolist()
    [0, 1, 2]
    """
    np.save(file, _plain("save", arr), allow_pickle=allow_pickle)


def savez(file: str | os.PathLike[str] | IO[bytes], *args: ArrayLike, allow_pickle: bool = True,
          **kwds: ArrayLike) -> None:
    """Write arrays to one file in NumPy's format `.npz`, under their keywords; see numpy.savez.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile(suffix=".npz") as file:
    ...     jnp.savez(file.name, a=jnp.ones(2), b=jnp.zeros(1))
    ...     jnp.load(file.name)["a"]
    array([1., 1.], dtype=float32)
    """
    np.savez(file, *[_plain("savez", a) for a in args], allow_pickle=allow_pickle,
             **{name: _plain("savez", a) for name, a in kwds.items()})


def _plain(name: str, x: ArrayLike) -> np.ndarray[Any, Any]:
    if isinstance(x, ARRAYS) and x.dtype in dtypes.KEY_DTYPES:
        raise KeyTypeError(f"functrans.numpy.{name} of random keys.", where=user_source(),
                           fix=f"functrans.numpy.{name}(file, ft.random.key_data(key))")
    plain = np.asarray(x)
    if plain.dtype.isbuiltin == 2 and plain.dtype != dtypes.bfloat16:
        raise DTypeError(f"functrans.numpy.{name} of {plain.dtype}.", where=user_source(),
                         why="NumPy's format knows the size of such numbers alone.",
                         fix=f'functrans.numpy.{name}(file, x.view("uint8"))')
    return plain


def load(file: str | os.PathLike[str] | IO[bytes], mmap_mode: MmapMode = None,
         allow_pickle: bool = False, *args: Any, **kwargs: Any) -> Array:
    """The array in a file of the format `.npy`; of `.npz` what numpy.load gives, arrays by name.

    The arguments are numpy.load's. Numbers of two bytes that are of no dtype of NumPy are read as
    bfloat16, which `save` writes so.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile(suffix=".npy") as file:
    ...     jnp.save(file.name, jnp.array([1, 2]))
    ...     jnp.load(file.name)
    Array([1, 2], dtype=int32)
    """
    found = np.load(file, mmap_mode, allow_pickle, *args, **kwargs)
    if not isinstance(found, np.ndarray):
        return found  # type: ignore[no-any-return]  # as in JAX: NumPy's NpzFile
    return asarray(found.view(dtypes.bfloat16) if found.dtype == _BFLOAT16 else found)


def fromfile(file: str | os.PathLike[str] | IO[bytes], dtype: DTypeLike = np.float64,
             count: int = -1, sep: str = "", offset: int = 0) -> Array:
    """The array of the numbers in a file, as text or bytes; the arguments are numpy.fromfile's.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     np.arange(3, dtype="int16").tofile(file.name)
    ...     jnp.fromfile(file.name, "int16")
    Array([0, 1, 2], dtype=int16)
    """
    return asarray(np.fromfile(file, dtypes.as_dtype(dtype), count, sep, offset))


def array_repr(arr: ArrayLike, max_line_width: int | None = None, precision: int | None = None,
               suppress_small: bool | None = None) -> str:
    """`repr` of an array with other options for printing than those that hold.

    >>> import functrans.numpy as jnp
    >>> jnp.array_repr(jnp.array([0.123456]), precision=2)
    'Array([0.12], dtype=float32)'
    """
    with _options(max_line_width, precision, suppress_small):
        return repr(asarray(arr))


def array_str(a: ArrayLike, max_line_width: int | None = None, precision: int | None = None,
              suppress_small: bool | None = None) -> str:
    """`str` of an array with other options for printing than those that hold.

    >>> import functrans.numpy as jnp
    >>> jnp.array_str(jnp.array([0.123456]), precision=2)
    '[0.12]'
    """
    with _options(max_line_width, precision, suppress_small):
        return str(asarray(a))


def _options(width: int | None, precision: int | None, suppress: bool | None) -> Any:
    given: dict[str, Any] = {"linewidth": width, "precision": precision, "suppress": suppress}
    return np.printoptions(**{k: v for k, v in given.items() if v is not None})
