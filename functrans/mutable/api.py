"""`numpy_code`: an ordinary NumPy function as a pure one."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from types import FunctionType, MethodType
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, overload

import numpy as np

from functrans import tree
from functrans._runtime import get_trace
from functrans.core import dtypes
from functrans.core.convert import to_array
from functrans.core.dtypes import default_dtypes
from functrans.core.errors import ArgumentError, public
from functrans.mutable import methods as _methods
from functrans.mutable.arrays import MutableArray, new
from functrans.mutable.calls import ARGUMENT, CallScope, current_call
from functrans.mutable.index import ARRAY_TYPES
from functrans.mutable.namespace import NUMPY
from functrans.mutable.rebinding import Rebinding
from functrans.numpy.namespace_info import namespace_in_use
from functrans.transforms.flat import adopt_attributes, check_callable, name_of

if TYPE_CHECKING:
    from functrans._array_types import Decorator

__all__ = ["numpy_code"]

P = ParamSpec("P")
F = TypeVar("F", bound=Callable[..., Any])

_methods.install()


@overload
def numpy_code(fun: Callable[P, Any], *, copy_args: bool = False) -> Callable[P, Any]: ...


@overload
def numpy_code(fun: None = None, *, copy_args: bool = False) -> Decorator: ...


@public
def numpy_code(fun: Callable[..., Any] | None = None, *,
               copy_args: bool = False) -> Callable[..., Any]:
    """A NumPy function that writes into its arrays, as a pure function of functrans arrays.

    Inside of `fun`, of the functions and classes that it calls in the user's own modules, and of
    lambdas in them, `np` makes arrays that can be written into, with views, `out=`, `+=` and
    `np.add.at` as in NumPy. Outside nothing changes: results are immutable arrays, and jit, grad,
    jvp and vmap hold. Default dtypes inside are NumPy's, float64 and int64. Arguments are arrays,
    or trees of them; numbers stay numbers.

    Raises ImmutableArrayError, with the line, where `fun` writes into an argument, which NumPy
    would do for the caller, too; with `copy_args=True` each call has copies of its own. Raises it
    as well where the body of a `lax` loop or a function under a transform writes into an array from
    around it.

    >>> import numpy as np, functrans as ft
    >>> @ft.numpy_code
    ... def fibonacci(x, n):
    ...     out = np.zeros(n)
    ...     out[:2] = x
    ...     for i in range(2, n):
    ...         out[i] = out[i - 1] + out[i - 2]
    ...     return out
    >>> fibonacci(np.array([1.0, 1.0]), 6)
    Array([1., 1., 2., 3., 5., 8.], dtype=float64)
    >>> ft.grad(lambda x: fibonacci(x, 6)[-1])(np.array([1.0, 1.0]))
    Array([3., 5.], dtype=float64)
    """
    if fun is None:
        return functools.partial(numpy_code, copy_args=copy_args)
    check_callable(fun, "numpy_code")
    if not isinstance(fun, (FunctionType, MethodType, functools.partial)):
        raise ArgumentError(
            f"numpy_code takes a Python function, got a {type(fun).__name__}.",
            why="the function is made anew, with another NumPy for its np.",
            fix="ft.numpy_code(f) of the function itself, and jit, grad or vmap of the result")
    function = fun
    if inspect.isgeneratorfunction(function) or inspect.iscoroutinefunction(function):
        raise ArgumentError(
            f"numpy_code({name_of(function)}): the function is a generator or a coroutine.",
            why="its arrays are mutable while a call runs, and such a call ends before its code "
                "does.", fix="return a list")

    @public
    def call(*args: Any, **kwargs: Any) -> Any:
        outer = current_call()
        if outer is not None and outer.trace is get_trace():
            # a function that a running one calls: its arrays are of the same call
            rebinding = Rebinding(function)
            try:
                return rebinding.root(function)(*args, **kwargs)
            finally:
                rebinding.hand_back()
        return _called(function, args, kwargs, copy_args)

    adopt_attributes(call, function)
    return call


def _called(function: Any, args: Any, kwargs: Any, copy_args: bool) -> Any:
    scope = CallScope(name_of(function))
    taken: dict[int, Any] = {}

    def argument(x: Any) -> Any:
        if isinstance(x, MutableArray):
            x = x.value
        if isinstance(x, np.ndarray) and x.dtype.kind not in "biufc" and (
                x.dtype not in dtypes.KEY_DTYPES):
            return x
        if not isinstance(x, ARRAY_TYPES) or not x.ndim or x.dtype in dtypes.KEY_DTYPES:
            return x
        if id(x) not in taken:  # one array given twice is one array
            taken[id(x)] = new(to_array(x), scope, "" if copy_args else ARGUMENT)
        return taken[id(x)]

    with scope.running(), namespace_in_use(NUMPY), default_dtypes("float64", "int64"):
        rebinding = Rebinding(function)
        try:
            args, kwargs = tree.map(argument, (args, kwargs))
            result = rebinding.root(function)(*args, **kwargs)
            return tree.map(_result, rebinding.in_own_classes(result))
        finally:
            rebinding.hand_back()


def _result(x: Any) -> Any:
    if isinstance(x, MutableArray):
        return x.value
    if isinstance(x, (np.ndarray, np.generic)) and x.dtype.kind in "biufc":
        return to_array(x)
    return x
