"""NumPy's namespace as a function under numpy_code sees it: what it creates is mutable.

`NUMPY` stands for the module `numpy`, and is the namespace that mutable arrays give to libraries
(`__array_namespace__`). Names that create arrays are here; all other functions go to
`functrans.mutable.operations`, and what is neither (constants, dtypes, classes) is NumPy's own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType, ModuleType
from typing import Any, Final

import numpy as np

from functrans import numpy as jnp
from functrans.core import dtypes
from functrans.core.errors import NotCoveredError, public
from functrans.core.source import user_source
from functrans.core.trace import ARRAYS
from functrans.mutable.arrays import MutableArray, fresh, new, unwrap
from functrans.mutable.calls import current_call
from functrans.mutable.numbers import SCALAR_TYPES, NumberType
from functrans.mutable.operations import adapted, call_function, call_ufunc, in_order, is_ours

__all__ = ["MATH", "NUMPY", "Namespace", "in_namespace"]

# integers of a range up to here are a constant of a program: an index that is known
_MAX_KNOWN = 4096


# creation ------------------------------------------------------------------------------------


def _created(value: Any, order: str | None = "C") -> Any:
    """A new array; `order="F"` is remembered, as it decides what reshapes are views."""
    if order == "F" and isinstance(value, ARRAYS) and current_call() is not None:
        return in_order(value, (), "F")
    return fresh(value, zero_dim=True)


def _zeros(shape: Any, dtype: Any = float, order: str = "C", *, device: Any = None,
           like: Any = None) -> Any:
    return _created(jnp.zeros(unwrap(shape), _dtype(dtype), device=device), order)


def _ones(shape: Any, dtype: Any = None, order: str = "C", *, device: Any = None,
          like: Any = None) -> Any:
    return _created(jnp.ones(unwrap(shape), _dtype(dtype), device=device), order)


def _full(shape: Any, fill_value: Any, dtype: Any = None, order: str = "C", *, device: Any = None,
          like: Any = None) -> Any:
    return _created(jnp.full(unwrap(shape), unwrap(fill_value), dtype, device=device), order)


def _dtype(dtype: Any) -> Any:
    return dtypes.default_float() if dtype is None or dtype == float else dtype  # noqa: E721


def _like(function: Callable[..., Any]) -> Callable[..., Any]:
    def create(a: Any, *args: Any, dtype: Any = None, order: str = "K", subok: bool = True,
               shape: Any = None, device: Any = None) -> Any:
        # of full_like the value comes first, then as in the others dtype, order, subok, shape
        values = [unwrap(args[0])] if function is jnp.full_like and args else []
        given = dict(zip(("dtype", "order", "subok", "shape"), args[len(values):], strict=False))
        dtype, order = given.get("dtype", dtype), given.get("order", order)
        shape = given.get("shape", shape)
        value = function(jnp.asarray(unwrap(a)), *values, dtype=dtype, shape=unwrap(shape),
                         device=device)
        if order in "KA" and isinstance(a, MutableArray) and shape is None and a.ndim > 1:
            shadow = a.shadow()
            if not a._cell.known:
                return new(value, known=False)
            if shadow is not None:
                return new(value, shadow=shadow.copy(order="K"))
        return _created(value, order)

    return create


def _full_like(a: Any, fill_value: Any, *args: Any, **kwargs: Any) -> Any:
    return _like(jnp.full_like)(a, fill_value, *args, **kwargs)


def _eye(N: Any, M: Any = None, k: Any = 0, dtype: Any = float, order: str = "C", *,
         device: Any = None, like: Any = None) -> Any:
    return _created(jnp.eye(N, M, k, dtype=_dtype(dtype), device=device), order)


def _identity(n: Any, dtype: Any = None, *, like: Any = None) -> Any:
    return _eye(n, dtype=dtype)


def _arange(*args: Any, device: Any = None, like: Any = None, **kwargs: Any) -> Any:
    values = [unwrap(a) for a in args]
    if not is_ours(values) and not is_ours(kwargs) and all(
            isinstance(v, (int, float, np.generic)) for v in values):
        wide = all(isinstance(v, (int, np.integer)) for v in values) and len(
            range(*map(int, values)) if values else ()) > _MAX_KNOWN
        if not wide:
            return fresh(np.arange(*values, **kwargs))
    return fresh(jnp.arange(*values, **kwargs))


def _array(object: Any, dtype: Any = None, *, copy: Any = True, order: str = "K",
           subok: bool = False, ndmin: int = 0, like: Any = None) -> Any:
    if not copy and isinstance(object, MutableArray) and (
            dtype is None or dtypes.as_dtype(dtype) == object.dtype) and object.ndim >= ndmin:
        return object
    if not is_ours(object):
        return _created(np.array(object, dtype, ndmin=ndmin))
    value = jnp.array(unwrap(object), dtype, ndmin=ndmin)
    if isinstance(object, MutableArray) and value.ndim == object.ndim > 1 and order in "KA":
        return in_order(value, (object,), order)
    return _created(value, order)


def _asarray(a: Any, dtype: Any = None, order: str | None = None, *, device: Any = None,
             copy: bool | None = None, like: Any = None) -> Any:
    if isinstance(a, MutableArray) and not copy and order in (None, "K", "A") and (
            dtype is None or dtypes.as_dtype(dtype) == a.dtype):
        return a
    if copy is False and isinstance(a, MutableArray):
        raise ValueError("Unable to avoid copy while creating an array as requested.")
    return _array(a, dtype, order=order or "K")


def _contiguous(a: Any, dtype: Any = None, *, like: Any = None) -> Any:
    x = _asarray(a, dtype)
    if not isinstance(x, MutableArray):
        return x
    return x if x._cell.known and x.flags.c_contiguous else x.copy()


def _fortran(a: Any, dtype: Any = None, *, like: Any = None) -> Any:
    x = _asarray(a, dtype)
    if not isinstance(x, MutableArray) or (x._cell.known and x.flags.f_contiguous):
        return x
    return _created(x.value, "F")


def _require(a: Any, dtype: Any = None, requirements: Any = None, *, like: Any = None) -> Any:
    wanted = {str(r).upper()[0] for r in requirements or ()}
    if "F" in wanted:
        return _fortran(a, dtype)
    x = _contiguous(a, dtype) if "C" in wanted else _asarray(a, dtype)
    return x.copy() if "W" in wanted and not x.writable else x


def _copy(a: Any, order: str = "K", subok: bool = False) -> Any:
    if not isinstance(a, MutableArray):
        return _array(a)
    return in_order(a.value, (a,), order)


def _astype(x: Any, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Any:
    return _asarray(x).astype(dtype, copy=copy)


# others with a way of their own --------------------------------------------------------------


class _Vectorized:
    """np.vectorize: a function of numbers on arrays."""

    def __init__(self, pyfunc: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
        kwargs = {k: v for k, v in kwargs.items() if k in ("excluded", "signature")}
        self._function = jnp.vectorize(adapted(pyfunc), **kwargs)

    def __call__(self, *args: Any) -> Any:
        return fresh(self._function(*[unwrap(a) for a in args]))


def _enumerated(arr: Any) -> Iterator[tuple[tuple[int, ...], Any]]:
    x = _asarray(arr)
    return ((i, x[i]) for i in np.ndindex(*x.shape))


def _nan_to_num(x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None,
                neginf: Any = None) -> Any:
    result = call_function(np.nan_to_num, (x,), {"nan": nan, "posinf": posinf, "neginf": neginf})
    if copy or not isinstance(x, MutableArray):
        return result
    x[...] = result
    return x


def _trim_zeros(filt: Any, trim: str = "fb", axis: Any = None) -> Any:
    x = _asarray(filt)
    if x.ndim != 1:
        raise NotCoveredError("np.trim_zeros of an array of more than one axis.",
                              where=user_source(), fix="x[i:j]")
    there = np.flatnonzero(np.asarray(x.value != 0))
    if not there.size:
        return x[:0] if "f" in trim.lower() or "b" in trim.lower() else x
    return x[there[0] if "f" in trim.lower() else 0:
             there[-1] + 1 if "b" in trim.lower() else len(x)]


def _refused(name: str, fix: str) -> Callable[..., Any]:
    def function(*args: Any, **kwargs: Any) -> Any:
        raise NotCoveredError(f"np.{name} under numpy_code.", where=user_source(),
                              why="its result shares memory in ways that are not followed here.",
                              fix=fix)

    return function


class _Indexer:
    """np.r_, np.c_ and their kin."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getitem__(self, key: Any) -> Any:
        space = jnp if is_ours(key if isinstance(key, tuple) else (key,)) else np
        return fresh(getattr(space, self._name)[unwrap(key)])


class _MutableArrayType(type):
    """The class that stands for np.ndarray: arrays of all kinds are instances."""

    def __instancecheck__(cls, x: Any) -> bool:
        return isinstance(x, (MutableArray, np.ndarray)) or (isinstance(x, ARRAYS) and x.ndim > 0)


class ndarray(metaclass=_MutableArrayType):
    """np.ndarray for isinstance, annotations, and calls with a shape."""

    def __new__(cls, shape: Any, dtype: Any = float, *args: Any, **kwargs: Any) -> Any:
        """np.ndarray(shape, dtype)."""
        return _zeros(shape, dtype)


_OWN: Final[Mapping[Any, Any]] = MappingProxyType({
    np.zeros: _zeros, np.empty: _zeros, np.ones: _ones, np.full: _full,
    np.zeros_like: _like(jnp.zeros_like), np.empty_like: _like(jnp.zeros_like),
    np.ones_like: _like(jnp.ones_like), np.full_like: _full_like, np.eye: _eye,
    np.identity: _identity, np.arange: _arange, np.array: _array, np.asarray: _asarray,
    np.asanyarray: _asarray, np.ascontiguousarray: _contiguous, np.asfortranarray: _fortran,
    np.require: _require, np.copy: _copy, np.astype: _astype, np.vectorize: _Vectorized,
    np.ndenumerate: _enumerated, np.nan_to_num: _nan_to_num, np.trim_zeros: _trim_zeros,
    np.ndarray: ndarray, np.shape: lambda a: tuple(np.shape(unwrap(a))),
    np.ndim: lambda a: np.ndim(unwrap(a)), np.size: lambda a, axis=None: np.size(unwrap(a), axis),
    **SCALAR_TYPES,
    np.lib.stride_tricks.as_strided: _refused(
        "lib.stride_tricks.as_strided", "sliding_window_view, reshape or an index"),
    np.nditer: _refused("nditer", "for i in np.ndindex(*x.shape): x[i] = ..."),
    np.shares_memory: _refused("shares_memory", "x.base"),
    np.may_share_memory: _refused("may_share_memory", "x.base"),
})
_INDEXERS = ("r_", "c_", "mgrid", "ogrid")


def _with_out(function: Any) -> Any:
    """A function of NumPy as the function under numpy_code sees it."""
    def call(*args: Any, **kwargs: Any) -> Any:
        return call_function(function, args, kwargs)

    call.__name__ = call.__qualname__ = getattr(function, "__name__", "function")
    call.__doc__ = function.__doc__
    return public(call)


class _Ufunc:
    """A ufunc with its methods; what it is asked for besides is NumPy's."""

    def __init__(self, ufunc: np.ufunc) -> None:
        self._ufunc = ufunc

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._ufunc, name)
        if name in ("at", "reduce", "accumulate", "outer", "reduceat"):
            return public(lambda *args, **kwargs: call_ufunc(self._ufunc, name, args, kwargs))
        return value

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return call_ufunc(self._ufunc, "__call__", args, kwargs)

    def __repr__(self) -> str:
        return repr(self._ufunc)


_known: dict[int, tuple[Any, Any]] = {}  # by identity, with the object that has it


def in_namespace(value: Any) -> Any:
    """What stands for an object of NumPy: a function, a ufunc, a class or a module of it."""
    known = _known.get(id(value))
    if known is None:
        known = (value, _standing_for(value))
        _known[id(value)] = known
    return known[1]


def _standing_for(value: Any) -> Any:
    if isinstance(value, ModuleType):
        return NUMPY if value is np else Namespace(value)
    try:
        own = _OWN.get(value)
    except TypeError:  # not hashable
        return value
    if own is not None:
        return own if isinstance(own, (type, NumberType)) else public(own)
    if isinstance(value, np.ufunc):
        return _Ufunc(value)
    if callable(value) and not isinstance(value, type):
        return _with_out(value)
    return value


class Namespace:
    """A module of NumPy, as the function under numpy_code sees it."""

    def __init__(self, module: ModuleType) -> None:
        self._module = module
        self.__name__ = f"functrans.{module.__name__}"
        self.__doc__ = module.__doc__

    def __getattr__(self, name: str) -> Any:
        if self._module is np:
            if name in _INDEXERS:
                value: Any = _Indexer(name)
                self.__dict__[name] = value
                return value
            if name in ("__array_namespace_info__", "__array_api_version__"):
                return getattr(jnp, name)
        value = getattr(self._module, name)
        if isinstance(value, ModuleType):
            if not value.__name__.startswith("numpy"):
                return value
        elif not callable(value) or name.startswith("__") or (
                isinstance(value, type) and value not in _OWN):
            return value
        if self._module.__name__.startswith("numpy.testing"):
            return value
        value = in_namespace(value)
        self.__dict__[name] = value
        return value

    def __dir__(self) -> list[str]:
        return dir(self._module)

    def __repr__(self) -> str:
        return f"<{self._module.__name__} under numpy_code>"


NUMPY: Final = Namespace(np)


class _Math:
    """The module `math`, whose functions take numbers of arrays, too."""

    def __getattr__(self, name: str) -> Any:
        function = getattr(math, name)
        ours = getattr(jnp, {"fabs": "abs", "pow": "power"}.get(name, name), None)
        if not callable(function) or not callable(ours):
            return function

        def call(*args: Any) -> Any:
            if not is_ours(args):
                return function(*args)
            result = ours(*map(unwrap, args))
            return jnp.astype(result, int) if name in ("floor", "ceil", "trunc") else result

        value = public(call)
        self.__dict__[name] = value
        return value


MATH: Final = _Math()


def _namespace_of(self: MutableArray, *, api_version: str | None = None) -> Any:
    """The namespace whose functions create mutable arrays (Python array API)."""
    return NUMPY


MutableArray.__array_namespace__ = _namespace_of  # type: ignore[attr-defined]
