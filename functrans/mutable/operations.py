"""NumPy's functions and ufuncs on mutable arrays: computed on values, written where out= says.

`functrans.protocol` finds what computes a function; here are its arguments and its results.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from functrans import numpy as jnp
from functrans.array import Array
from functrans.core.errors import ArgumentError
from functrans.core.source import user_source
from functrans.core.trace import ARRAYS
from functrans.mutable.arrays import MutableArray, fresh, new, unwrap
from functrans.mutable.calls import current_call
from functrans.mutable.selected import Selected
from functrans.mutable.views import VIEWS, atleast_1d, atleast_2d, atleast_3d, broadcast_arrays
from functrans.mutable.writers import WRITERS, update_at
from functrans.protocol import array_function, array_ufunc

__all__ = ["adapted", "call_function", "call_ufunc", "in_order", "is_ours", "of_operator",
           "of_product"]

_VARIADIC = {np.atleast_1d: atleast_1d, np.atleast_2d: atleast_2d, np.atleast_3d: atleast_3d,
             np.broadcast_arrays: broadcast_arrays}
# NumPy's functions that call a function of the user's on arrays
_CALLERS = {np.apply_along_axis, np.apply_over_axes, np.piecewise, np.fromfunction}
# whose results have the memory order of the argument, by NumPy's order="K"
_KEEP_ORDER = {np.copy, np.sort, np.clip, np.round, np.around, np.zeros_like, np.ones_like,
               np.empty_like, np.full_like, np.nan_to_num, np.real_if_close, np.angle, np.sinc}
# whose results are in row-major order whatever the arguments are
_ROW_MAJOR = {np.dot, np.matmul, np.einsum, np.tensordot, np.outer, np.inner, np.kron, np.tile,
              np.repeat, np.cumsum, np.cumprod, np.ascontiguousarray, np.roll, np.pad, np.diag,
              np.linalg.inv, np.linalg.solve, np.linalg.cholesky, np.argsort, np.vander}


def is_ours(x: Any) -> bool:
    """Whether a functrans array is among the arguments, in nested containers too."""
    if isinstance(x, (MutableArray, Selected, *ARRAYS)):
        return True
    if isinstance(x, (list, tuple)):
        return any(map(is_ours, x))
    return isinstance(x, dict) and any(map(is_ours, x.values()))


def _is_row_major(x: Any) -> bool:
    """Whether NumPy's array would be in row-major order; nested containers are looked through."""
    if isinstance(x, MutableArray):
        if not x._cell.known:
            return x.ndim < 2
        if not x._chain and x._cell.shadow is None:
            return True
        shadow = x.shadow()
        return bool(shadow is None or shadow.ndim < 2 or shadow.flags.c_contiguous)
    if isinstance(x, (list, tuple)):
        return all(map(_is_row_major, x))
    return not isinstance(x, np.ndarray) or x.ndim < 2 or bool(x.flags.c_contiguous)


def adapted(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of the user's as one on immutable arrays."""
    return lambda *args, **kwargs: unwrap(function(*map(fresh, args), **kwargs))


# ufuncs --------------------------------------------------------------------------------------


def _elementwise(result: Any, args: Sequence[Any]) -> Any:
    """The result of an elementwise operation, in the memory order that NumPy gives it."""
    if not isinstance(result, ARRAYS):
        return fresh(result)
    if result.ndim < 2 or all(map(_is_row_major, args)):
        return fresh(result)
    shadows = [a.shadow() if isinstance(a, MutableArray) else
               np.empty(np.shape(a), np.int8) for a in args]
    if any(s is None for s in shadows) or any(
            isinstance(a, MutableArray) and not a._cell.known for a in args):
        return fresh(result, known=False)
    with np.nditer([*shadows, None], ["zerosize_ok", "refs_ok"], order="K") as walk:
        return new(result, shadow=walk.operands[-1])


def of_operator(result: Any, args: Sequence[Any]) -> Any:
    """What an elementwise operator returns."""
    return _elementwise(result, args)


def in_order(value: Any, args: Sequence[Any], order: str | None = "C") -> Any:
    """A new array, without axes too, in the order that a copy is asked for."""
    if value.ndim < 2:
        return new(value)
    if order == "A":
        shadow = args[0].shadow()
        is_fortran = shadow is not None and shadow.flags.f_contiguous and not \
            shadow.flags.c_contiguous
        order = "F" if is_fortran else "C"
    if order == "F" and all(isinstance(s, int) for s in value.shape):
        return new(value, shadow=np.empty(value.shape, np.int8, order="F"))
    return _elementwise(value, args) if order == "K" else new(value)


def of_product(result: Any, args: Sequence[Any]) -> Any:
    """What a generalised ufunc returns: only the axes around the product follow the arguments."""
    return fresh(result, known=all(map(_is_row_major, args)) or getattr(result, "ndim", 0) < 3)


def call_ufunc(ufunc: np.ufunc, method: str, inputs: Sequence[Any],
               kwargs: Mapping[str, Any]) -> Any:
    """A ufunc, or a method of one, with NumPy's arguments."""
    options = dict(kwargs)
    if any(isinstance(i, Selected) for i in inputs):
        first = next(i for i in inputs if isinstance(i, Selected))
        return first.__array_ufunc__(ufunc, method, *map(_value_or_selected, inputs), **options)
    if method == "at":
        return update_at(ufunc, *inputs)
    out = options.pop("out", None)
    if method == "__call__" and len(inputs) > ufunc.nin:
        inputs, out = inputs[:ufunc.nin], tuple(inputs[ufunc.nin:])
    targets = out if isinstance(out, tuple) else (out,)
    name = f"np.{ufunc.__name__}"
    _check_targets(targets, name)
    if not is_ours(inputs) and not is_ours(options):
        results = getattr(ufunc, method)(*inputs, **options)
    else:
        where = options.pop("where", True) if method == "__call__" and ufunc.signature is None \
            else True
        options = {k: unwrap(v) for k, v in options.items()}
        results = array_ufunc(None, ufunc, method, *map(unwrap, inputs), **options)
        if where is not True:
            olds = targets if out is not None else (0,) * ufunc.nout
            chosen = [jnp.where(unwrap(where), r, unwrap(o)) for r, o in zip(
                results if isinstance(results, tuple) else (results,), olds, strict=True)]
            results = tuple(chosen) if isinstance(results, tuple) else chosen[0]
    if out is None or all(t is None for t in targets):
        if method == "__call__" and ufunc.signature is None:
            return _elementwise(results, inputs)
        return of_product(results, inputs) if ufunc.signature is not None else \
            fresh(results, known=all(map(_is_row_major, inputs)))
    many = results if isinstance(results, tuple) else (results,)
    filled = tuple(_write(t, r, name) for t, r in zip(targets, many, strict=True))
    return filled if isinstance(results, tuple) else filled[0]


def _value_or_selected(x: Any) -> Any:
    return x if isinstance(x, Selected) else unwrap(x)


def _check_targets(targets: Sequence[Any], name: str) -> None:
    for target in targets:
        if target is None:
            continue
        if not isinstance(target, MutableArray):
            raise ArgumentError(
                f"{name} with out= an array that numpy_code did not make.", where=user_source(),
                why="a result is written into arrays of the call alone.",
                fix="out = np.empty(shape) or out = np.array(out) inside of the function first; "
                    "x = x + y in place of x += y")
        target.check_writable()


def _write(target: Any, result: Any, name: str) -> Any:
    if target is None:
        return fresh(result)
    target.fill_from(result, f"{name} with out=")
    return target


# functions -----------------------------------------------------------------------------------


@lru_cache(maxsize=512)
def _out_position(func: Any) -> int | None:
    """At which position a function takes out=."""
    try:
        parameters = list(inspect.signature(func).parameters.values())
    except (TypeError, ValueError):
        return None
    return next((i for i, p in enumerate(parameters) if p.name == "out"
                 and p.kind is p.POSITIONAL_OR_KEYWORD), None)


def call_function(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """A function of NumPy's with its arguments."""
    if args and isinstance(args[0], Selected):
        return args[0].__array_function__(func, (), args, kwargs)
    if args and isinstance(args[0], MutableArray):
        view = VIEWS.get(func)
        if view is not None:
            return view(*args, **kwargs)
    special = WRITERS.get(func) or _VARIADIC.get(func)
    if special is not None:
        return special(*args, **kwargs)
    options = dict(kwargs)
    out = options.pop("out", None)
    place = _out_position(func)
    if out is None and place is not None and len(args) > place:
        out, args = args[place], (*args[:place], None, *args[place + 1:])
    if out is not None:
        _check_targets((out,), f"np.{func.__name__}")
    if not is_ours(args) and not is_ours(options):
        if current_call() is not None and func in _CALLERS:
            args = [_numpy_function(a) if callable(a) else a for a in args]
        result = func(*args, **options)
    else:
        if func in _CALLERS:
            args = [adapted(a) if callable(a) else
                    [adapted(f) if callable(f) else f for f in a] if isinstance(a, list) else a
                    for a in args]
        result = array_function(None, func, (Array,), tuple(map(unwrap, args)),
                                {k: unwrap(v) for k, v in options.items()})
    if out is not None:
        return _write(out, result, f"np.{func.__name__}")
    if func in _KEEP_ORDER and args and isinstance(args[0], MutableArray) and isinstance(
            result, ARRAYS) and "order" not in options:
        return _elementwise(result, args[:1]) if result.ndim else new(result)
    return fresh(result, known=func in _ROW_MAJOR or all(map(_is_row_major, args)))


def _numpy_function(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of the user's for a function of NumPy on NumPy's own arrays."""
    def on_values(*args: Any, **kwargs: Any) -> Any:
        result = unwrap(function(*map(fresh, args), **kwargs))
        return np.asarray(result) if isinstance(result, ARRAYS) else result

    return on_values
