"""Plain NumPy calls on arrays and tracers: what `__array_ufunc__` and `__array_function__` do.

A call such as `np.sum(x, axis=0)` goes to the function of the same name in functrans.numpy,
`np.linalg.norm` to functrans.numpy.linalg, with NumPy's names and positions of arguments. What
functrans.numpy does not do NumPy does itself on the values of concrete arrays; under a trace it is
refused, with the name of what does it here.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

import functrans.numpy as namespace
from functrans.core.dtypes import as_dtype
from functrans.core.errors import (
    ArgumentError,
    FunctransError,
    ImmutableArrayError,
    NonArrayError,
    NotCoveredError,
)
from functrans.core.source import user_source
from functrans.core.trace import ARRAYS, Tracer
from functrans.numpy.common import PYTHON_SCALARS, operand
from functrans.numpy.creation import asarray
from functrans.numpy.ufunc_methods import accumulate, outer, reduce, reduceat
from functrans.numpy.ufuncs import astype
from functrans.numpy_alternatives import alternative
from functrans.typing import Array

_KNOWN = (*ARRAYS, *PYTHON_SCALARS, np.generic, list, tuple)

_METHODS: dict[str, Callable[..., Any]] = {
    "reduce": reduce, "accumulate": accumulate, "outer": outer, "reduceat": reduceat}

# NumPy functions that write into an argument: its place and its name.
_WRITERS = {"copyto": "dst", "fill_diagonal": "a", "place": "arr", "put": "a", "putmask": "a",
            "put_along_axis": "arr"}
# What they make is there to be written into, as it is or converted: for concrete arrays NumPy's.
_BUFFERS = frozenset({"atleast_1d", "atleast_2d", "atleast_3d", "copy", "empty_like", "full_like",
                      "ones_like", "zeros_like"})


def _polydiv(u: Any, v: Any) -> tuple[Array, Array]:
    """NumPy's polydiv, whose rest has no zeros in front of it; JAX's has the size of u."""
    quotient, rest = namespace.polydiv(u, v)
    return quotient, rest[-max(len(v) - 1, 1):]


# Where the function of the same name follows JAX and NumPy's result is another.
_NUMPYS: dict[str, Callable[..., Any]] = {"polydiv": _polydiv}


# errors --------------------------------------------------------------------------------------


def _not_covered(name: str, func: Any) -> NotCoveredError:
    return NotCoveredError(
        f"{name} is not covered by functrans, and its argument is traced.", where=user_source(),
        why="NumPy computes with values, and a traced array has none.",
        fix=alternative(name, func))


def _refuse(name: str, argument: str) -> NotCoveredError:
    return NotCoveredError(
        f"{name} with {argument}= is not covered by functrans, and its argument is traced.",
        where=user_source(), why="NumPy computes with values, and a traced array has none.",
        fix=f"functrans.{name.replace('np.', 'numpy.', 1)} without {argument}=")


def _out(name: str) -> ArgumentError:
    return ArgumentError(f"{name} with out= cannot fill an array.", where=user_source(),
                         why="arrays are immutable, and a NumPy array cannot hold traced values.",
                         fix=f"x = functrans.{name.replace('np.', 'numpy.', 1)}(...), and "
                             "x = x + y in place of x += y")


def _written(name: str, func: Any) -> ImmutableArrayError:
    return ImmutableArrayError(
        f"{name} writes into an array.", where=user_source(),
        why="arrays are immutable, and a NumPy array cannot hold traced values.",
        fix=alternative(name, func))


# concrete arguments --------------------------------------------------------------------------


def _is_traced(x: Any) -> bool:
    """Whether a tracer is among the arguments, in nested containers too."""
    if isinstance(x, (list, tuple)):
        return any(map(_is_traced, x))
    if isinstance(x, Mapping):
        return any(map(_is_traced, x.values()))
    return isinstance(x, Tracer)


def _value(x: Any) -> Any:
    """NumPy arrays in place of arrays, in nested containers too."""
    if isinstance(x, Array):
        return np.asarray(x)
    if isinstance(x, tuple) and hasattr(x, "_fields"):
        return type(x)(*map(_value, x))
    if isinstance(x, (list, tuple)):
        return type(x)(map(_value, x))
    if isinstance(x, dict):
        return {k: _value(v) for k, v in x.items()}
    return x


def _by_numpy(call: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """NumPy's own result for the values of concrete arrays."""
    return call(*map(_value, args), **{k: _value(v) for k, v in kwargs.items()})


def _ours_or_numpy(here: Callable[[], Any], call: Callable[..., Any], args: Sequence[Any],
                   kwargs: Mapping[str, Any]) -> Any:
    """functrans' result for concrete arguments; NumPy's for what functrans refuses.

    What both refuse is reported in the words of functrans.
    """
    try:
        return here()
    except (FunctransError, TypeError, ValueError, IndexError, OverflowError) as error:
        try:
            return _by_numpy(call, args, kwargs)
        except (TypeError, ValueError, IndexError):
            raise error from None


# ufuncs --------------------------------------------------------------------------------------


def array_ufunc(self: Any, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
    """`__array_ufunc__` of arrays and tracers: the call and the methods of a ufunc.

    Raises NotCoveredError for a traced argument and a ufunc or an option that functrans.numpy
    does not have.
    """
    plain = True
    for x in inputs:
        if not isinstance(x, _KNOWN) and type(x) is not np.ndarray:
            if knows_better(x):
                return NotImplemented  # another library's array, which may know what to do
            plain = False
    name = f"np.{ufunc.__name__}"
    target = getattr(namespace, ufunc.__name__, None)
    if getattr(np, ufunc.__name__, None) is not ufunc or ufunc.__name__ not in namespace.__all__:
        target = None
    out = kwargs.pop("out", None) if kwargs else None
    filled = out is not None and any(o is not None for o in _as_tuple(out))
    if not _is_traced(inputs) and not (kwargs and _is_traced(kwargs)):
        if filled:
            if any(isinstance(o, ARRAYS) for o in _as_tuple(out)):
                raise _out(name)
            kwargs["out"] = out
        call = getattr(ufunc, method)
        if filled or target is None or not plain or method == "at":
            if method == "at" and isinstance(inputs[0], ARRAYS):
                raise _written(f"{name}.at", ufunc)
            return _by_numpy(call, inputs, kwargs)
        return _ours_or_numpy(lambda: _ufunc(name, ufunc, target, method, inputs, dict(kwargs)),
                              call, inputs, kwargs)
    if filled:
        raise _out(name if method == "__call__" else f"{name}.{method}")
    if method == "at":
        raise _written(f"{name}.at", ufunc)
    if target is None or not plain:
        raise _not_covered(_full_name(ufunc), ufunc)
    return _ufunc(name, ufunc, target, method, inputs, kwargs)


def knows_better(x: Any) -> bool:
    """Whether x is an array of another library, which handles ufuncs itself or refuses to."""
    handler = getattr(type(x), "__array_ufunc__", np.ndarray.__array_ufunc__)
    return handler is not np.ndarray.__array_ufunc__


def _full_name(ufunc: np.ufunc) -> str:
    if getattr(np, ufunc.__name__, None) is ufunc:
        return f"np.{ufunc.__name__}"
    return f"the ufunc {ufunc.__name__}"


def _as_tuple(x: Any) -> tuple[Any, ...]:
    return x if isinstance(x, tuple) else (x,)


def _drop_defaults(name: str, kwargs: dict[str, Any], defaults: Mapping[str, Any]) -> None:
    for key, default in defaults.items():
        if key in kwargs and kwargs.pop(key) != default:
            raise _refuse(name, key)


def _ufunc(name: str, ufunc: np.ufunc, target: Callable[..., Any], method: str,
           inputs: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """The function of functrans.numpy, or a method that is composed of it."""
    args = [asarray(x) if isinstance(x, (list, tuple)) else x for x in inputs]
    if kwargs:
        _drop_defaults(name, kwargs, {"casting": "same_kind", "order": "K", "subok": True})
    if method == "__call__":
        return _call(name, target, args, kwargs) if kwargs else target(*args)
    if kwargs.get("where") is True:
        del kwargs["where"]
    return _METHODS[method](target, *args, **kwargs)


def _call(name: str, target: Callable[..., Any], args: list[Any], kwargs: dict[str, Any]) -> Any:
    dtype = kwargs.pop("dtype", None)
    if dtype is not None:
        args = [astype(operand(name, a), as_dtype(dtype)) for a in args]
    if kwargs.get("where") is True:
        del kwargs["where"]
    for key in kwargs:
        if key not in ("axis", "keepdims", "where") or key not in _accepted(target).keywords:
            raise _refuse(name, key)
    return target(*args, **kwargs)


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
        return f"{module}.{name}".replace("numpy.", "np.", 1), None
    if name in _NUMPYS:
        return f"np.{name}", _NUMPYS[name]
    return f"np.{name}", getattr(namespace, name) if name in namespace.__all__ else None


def array_function(self: Any, func: Callable[..., Any], types: Iterable[type],
                   args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """`__array_function__` of arrays and tracers: the function of the same name here.

    Raises NotCoveredError for a traced argument and a function or an option that functrans.numpy
    does not have.
    """
    for t in types:
        if not issubclass(t, (*ARRAYS, np.ndarray)):
            return NotImplemented
    name, target = _lookup(func)
    place = _WRITERS.get(func.__name__)
    written = None if place is None else args[0] if args else kwargs.get(place)
    if _is_traced(args) or (kwargs and _is_traced(kwargs)):
        if place is not None and not isinstance(written, ARRAYS):
            raise _written(name, func)
        if target is None:
            raise _not_covered(name, func)
        try:
            return _call_here(name, func, target, args, kwargs)
        except NonArrayError:
            # lists of numbers are arrays where NumPy takes arrays
            converted = [asarray(x) if isinstance(x, list) else x for x in args]
            if not any(isinstance(x, list) for x in args):
                raise
            return _call_here(name, func, target, converted, kwargs)
    if isinstance(written, ARRAYS):
        raise _written(name, func)
    out = kwargs.get("out")
    if out is not None and any(isinstance(o, ARRAYS) for o in _as_tuple(out)):
        raise _out(name)
    if target is None or written is not None or out is not None or func.__name__ in _BUFFERS or any(
            issubclass(t, np.ndarray) and t is not np.ndarray for t in types):
        return _by_numpy(func, args, kwargs)
    return _ours_or_numpy(lambda: _call_here(name, func, target, args, kwargs), func, args, kwargs)


def _call_here(name: str, func: Callable[..., Any], target: Callable[..., Any],
               args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """The function of functrans.numpy with NumPy's arguments."""
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
