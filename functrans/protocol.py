"""Plain NumPy calls on arrays and tracers: what `__array_ufunc__` and `__array_function__` do.

A call such as `np.sum(x, axis=0)` goes to the function of the same name in functrans.numpy,
`np.linalg.norm` to functrans.numpy.linalg. Arguments that only NumPy has are dropped where they
have their default and refused where they have not.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

import functrans.numpy as namespace
from functrans import lax
from functrans.core.dtypes import as_dtype
from functrans.core.errors import ArgumentError, NotCoveredError
from functrans.core.source import user_source
from functrans.numpy.common import ARRAYS, PYTHON_SCALARS, Array, axis_index, operand
from functrans.numpy.creation import asarray
from functrans.numpy.cumulative import cumprod, cumsum
from functrans.numpy.elementwise import logaddexp
from functrans.numpy.reductions import all as _all
from functrans.numpy.reductions import any as _any
from functrans.numpy.reductions import max as _max
from functrans.numpy.reductions import min as _min
from functrans.numpy.reductions import prod, sum
from functrans.numpy.ufuncs import astype

_KNOWN = (*ARRAYS, *PYTHON_SCALARS, np.ndarray, np.generic, list, tuple)

_REDUCTIONS: dict[str, Callable[..., Array]] = {
    "add": sum, "multiply": prod, "maximum": _max, "minimum": _min, "logical_and": _all,
    "logical_or": _any}
_ACCUMULATIONS: dict[str, Callable[..., Array]] = {"add": cumsum, "multiply": cumprod}

# NumPy functions that only read: they get the values of concrete arrays.
_READERS = frozenset({
    "array2string", "array_repr", "array_str", "save", "savez", "savez_compressed", "savetxt",
    "shares_memory", "may_share_memory"})


def _not_covered(name: str, why: str = "") -> NotCoveredError:
    return NotCoveredError(
        f"{name} is not covered by functrans.", where=user_source(), why=why,
        fix="compose it of functions in functrans.numpy, or call it on np.asarray(x) outside of "
        "transformations")


def _refuse(name: str, argument: str) -> NotCoveredError:
    return NotCoveredError(f"{name} with {argument}= is not covered by functrans.",
                           where=user_source())


def _out(name: str) -> ArgumentError:
    return ArgumentError(f"{name} with out= cannot fill an array.", where=user_source(),
                         why="arrays are immutable, and a NumPy array cannot hold traced values.",
                         fix=f"x = {name}(...), and x = x + y in place of x += y")


# ufuncs --------------------------------------------------------------------------------------


def array_ufunc(self: Any, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
    """`__array_ufunc__` of arrays and tracers: the call, reduce, accumulate and outer methods.

    Raises NotCoveredError for a ufunc or an argument that functrans.numpy does not have.
    """
    name = f"np.{ufunc.__name__}"
    if kwargs:
        if any(o is not None for o in _as_tuple(kwargs.pop("out", None))):
            raise _out(name if method == "__call__" else f"{name}.{method}")
        _drop_defaults(name, kwargs, {"casting": "same_kind", "order": "K", "subok": True})
    if not all(isinstance(x, _KNOWN) for x in inputs):
        return NotImplemented  # another library's array, which may know what to do
    target = getattr(namespace, ufunc.__name__, None)
    if target is None or ufunc.__name__ not in namespace.__all__:
        raise _not_covered(name)
    args = [asarray(x) if isinstance(x, (list, tuple)) else x for x in inputs]
    if method == "__call__":
        return _call(name, target, args, kwargs)
    if method == "reduce":
        return _reduce(ufunc, target, *args, **kwargs)
    if method == "accumulate":
        return _accumulate(ufunc, target, *args, **kwargs)
    if method == "outer":
        return _outer(name, target, *args, **kwargs)
    if method == "at":
        raise NotCoveredError(f"{name}.at changes an array in place.", where=user_source(),
                              why="arrays are immutable.", fix="x = x.at[index].add(y)")
    raise _not_covered(f"{name}.{method}")


def _as_tuple(x: Any) -> tuple[Any, ...]:
    return x if isinstance(x, tuple) else (x,)


def _drop_defaults(name: str, kwargs: dict[str, Any], defaults: Mapping[str, Any]) -> None:
    for key, default in defaults.items():
        if key in kwargs and kwargs.pop(key) != default:
            raise _refuse(name, key)


def _call(name: str, target: Callable[..., Any], args: list[Any], kwargs: dict[str, Any]) -> Any:
    if not kwargs:
        return target(*args)
    if kwargs.pop("where", True) is not True:
        raise NotCoveredError(f"{name} with where= is not covered by functrans.",
                              where=user_source(), fix="np.where(condition, f(x), other)")
    dtype = kwargs.pop("dtype", None)
    if dtype is not None:
        args = [astype(operand(name, a), as_dtype(dtype)) for a in args]
    for key in kwargs:
        if key not in ("axis", "keepdims") or key not in _accepted(target).keywords:
            raise _refuse(name, key)
    return target(*args, **kwargs)


def _reduce(ufunc: np.ufunc, target: Callable[..., Any], x: Any, axis: Any = 0, dtype: Any = None,
            out: Any = None, keepdims: bool = False, initial: Any = None, where: Any = True
            ) -> Array:
    name = f"np.{ufunc.__name__}.reduce"
    options: dict[str, Any] = {"keepdims": keepdims}
    if where is not True:
        options["where"] = where
    reduction = _REDUCTIONS.get(ufunc.__name__)
    if reduction is not None:
        if dtype is not None:
            x = astype(operand(name, x), as_dtype(dtype))
        if initial is not None:
            if reduction in (_all, _any):
                raise _refuse(name, "initial")
            options["initial"] = initial
        return reduction(x, axis, **options)
    if where is not True or initial is not None or ufunc.nin != 2:
        raise _refuse(name, "where" if where is not True else "initial")
    # No reduction of its own: halves combined until one is left.
    value = operand(name, x)
    if dtype is not None:
        value = astype(value, as_dtype(dtype))
    axes = sorted(range(value.ndim) if axis is None else
                  {axis_index(a, value.ndim, name) for a in _as_tuple(axis)}, reverse=True)
    for a in axes:
        if value.shape[a] == 0:
            raise _not_covered(f"{name} of an empty axis")
        value = _fold(target, value, a)
        if keepdims:
            value = lax.expand_dims(value, (a,))
    return value


def _fold(target: Callable[..., Any], x: Array, axis: int) -> Array:
    """target over all slices along axis; in order unless it is known to be associative."""
    slices = namespace.unstack(x, axis=axis)
    if target is logaddexp:
        while len(slices) > 1:
            pairs = [target(a, b) for a, b in zip(slices[::2], slices[1::2], strict=False)]
            slices = (*pairs, *slices[len(slices) - len(slices) % 2:])
        return slices[0]
    result = slices[0]
    for part in slices[1:]:
        result = target(result, part)
    return result


def _accumulate(ufunc: np.ufunc, target: Callable[..., Any], x: Any, axis: int = 0,
                dtype: Any = None, out: Any = None) -> Array:
    name = f"np.{ufunc.__name__}.accumulate"
    value = operand(name, x)
    if dtype is not None:
        value = astype(value, as_dtype(dtype))
    axis = axis_index(axis, value.ndim, name)
    if ufunc.__name__ in _ACCUMULATIONS:
        return _ACCUMULATIONS[ufunc.__name__](value, axis)
    if ufunc.__name__ in ("maximum", "minimum"):
        return (lax.cummax if ufunc.__name__ == "maximum" else lax.cummin)(value, axis=axis)
    if ufunc.nin != 2:
        raise _not_covered(name)
    slices = namespace.unstack(value, axis=axis)
    results = list(slices[:1])
    for part in slices[1:]:
        results.append(target(results[-1], part))
    return namespace.stack(results, axis=axis) if results else value


def _outer(name: str, target: Callable[..., Any], x: Any, y: Any, **kwargs: Any) -> Any:
    a, b = operand(name, x), operand(name, y)
    return _call(f"{name}.outer", target,
                 [lax.expand_dims(a, tuple(range(a.ndim, a.ndim + b.ndim))), b], kwargs)


# functions -----------------------------------------------------------------------------------


class _Signature(NamedTuple):
    """How a function here takes its arguments."""

    positional: tuple[str, ...]
    free: int  # how many leading positions are positional-only: their names do not matter
    keywords: frozenset[str]
    variadic: bool
    any_keyword: bool


@lru_cache(maxsize=1024)
def _accepted(target: Callable[..., Any]) -> _Signature:
    parameters = inspect.signature(target).parameters.values()
    kinds = inspect.Parameter
    positional = tuple(p.name for p in parameters
                       if p.kind in (kinds.POSITIONAL_ONLY, kinds.POSITIONAL_OR_KEYWORD))
    return _Signature(
        positional,
        len([p for p in parameters if p.kind is kinds.POSITIONAL_ONLY]),
        frozenset(p.name for p in parameters
                  if p.kind in (kinds.KEYWORD_ONLY, kinds.POSITIONAL_OR_KEYWORD)),
        any(p.kind is kinds.VAR_POSITIONAL for p in parameters),
        any(p.kind is kinds.VAR_KEYWORD for p in parameters))


@lru_cache(maxsize=1024)
def _numpy_parameters(func: Callable[..., Any]) -> tuple[tuple[str, Any], ...]:
    """Names and defaults of a NumPy function's positional parameters, as far as they are known."""
    try:
        parameters = inspect.signature(func).parameters.values()
    except (ValueError, TypeError):
        return ()
    return tuple((p.name, p.default) for p in parameters
                 if p.kind is not inspect.Parameter.VAR_KEYWORD)


def _lookup(func: Callable[..., Any]) -> tuple[str, Callable[..., Any] | None]:
    """The full name of a NumPy function, and the function of that name here."""
    module, name = func.__module__ or "numpy", func.__name__
    part = module.partition("numpy.")[2].split(".")[0]
    if part in ("linalg", "fft"):
        space = getattr(namespace, part, None)
        return f"np.{part}.{name}", getattr(space, name, None)
    if module != "numpy":
        return f"{module}.{name}", None
    return f"np.{name}", getattr(namespace, name) if name in namespace.__all__ else None


def array_function(self: Any, func: Callable[..., Any], types: Iterable[type],
                   args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """`__array_function__` of arrays and tracers: the function of the same name here.

    Raises NotCoveredError for a function or an argument that functrans.numpy does not have.
    """
    name, target = _lookup(func)
    if target is None:
        if func.__name__ in _READERS:
            return func(*map(_value, args), **{k: _value(v) for k, v in kwargs.items()})
        raise _not_covered(name)
    if not kwargs and len(args) == 1:
        return target(args[0])
    accepted = _accepted(target)
    given = dict(kwargs)
    if given.pop("out", None) is not None:
        raise _out(name)
    parameters = _numpy_parameters(func)
    positional = list(args)
    if not accepted.variadic and parameters:
        # Positions that mean something else here than in NumPy are passed by name.
        for i in range(len(positional)):
            here = accepted.positional[i] if i < len(accepted.positional) else None
            if i >= accepted.free and (i >= len(parameters) or here != parameters[i][0]) and i:
                given = {**dict(zip((p for p, _ in parameters[i:]), positional[i:],
                                    strict=False)), **given}
                positional = positional[:i]
                break
    if given.pop("out", None) is not None:
        raise _out(name)
    if not accepted.any_keyword and not accepted.keywords >= given.keys():
        positional, given = _translate(name, func, accepted, positional, given)
    return target(*positional, **given)


def _translate(name: str, func: Callable[..., Any], accepted: _Signature, positional: list[Any],
               given: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """Arguments that are not known here dropped, renamed by position, or refused."""
    parameters = _numpy_parameters(func)
    places = {p: i for i, (p, _) in enumerate(parameters)}
    defaults = dict(parameters)
    for key in [k for k in given if k not in accepted.keywords]:
        value = given.pop(key)
        place = places.get(key)
        if place is not None and place == len(positional) and (
                place < accepted.free or place == 0):
            positional = [*positional, value]
        elif _is_default(value, defaults.get(key, inspect.Parameter.empty)):
            continue
        else:
            raise _refuse(name, key)
    return positional, given


def _is_default(value: Any, default: Any) -> bool:
    if value is None or value is default:
        return True
    if isinstance(value, (*ARRAYS, np.ndarray)):
        return False
    return type(value) is type(default) and bool(value == default)


def _value(x: Any) -> Any:
    """NumPy values in place of arrays; a tracer says that it has none."""
    if isinstance(x, ARRAYS):
        return np.asarray(x)
    if isinstance(x, (list, tuple)):
        return type(x)(_value(item) for item in x)
    return x
