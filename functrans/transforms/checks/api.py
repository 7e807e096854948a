"""`checked`, `debug_nans` and `check`: programs that stop at the first thing that goes wrong."""

from __future__ import annotations

import string
from collections.abc import Callable, Collection, Sequence
from contextlib import ContextDecorator
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from functrans import _runtime
from functrans._runtime import get_trace, set_trace
from functrans.core import config, dtypes
from functrans.core.avals import get_aval
from functrans.core.convert import to_array
from functrans.core.errors import ArgumentError, public, publish, shown
from functrans.core.source import user_source
from functrans.primitives.check import CHECK, check_p
from functrans.transforms.checks.eager import CheckTrace
from functrans.transforms.flat import check_callable, wraps
from functrans.transforms.jit.api import jit

if TYPE_CHECKING:
    from functrans.typing import ArrayLike

P = ParamSpec("P")
R = TypeVar("R")

__all__ = ["check", "checked", "debug_nans"]


def checked(fun: Callable[P, R],
            errors: Sequence[str] = config.CHECKS) -> Callable[P, R]:
    """`fun` compiled so that it stops at the first thing that goes wrong.

    `errors` are among "nan", "inf" (an infinity where no operand has one) and "index" (an index out
    of bounds without a mode that says what it means); a `check` that fails stops every program. The
    error names the equation, the ranges of its operands and the line, in a backward pass that of
    the operation whose derivative it is. It composes with jit, grad, vmap and loops, inside and
    outside. Raises NotFiniteError, OutOfBoundsError, FailedCheckError (all CheckError).

    >>> import functrans as ft
    >>> ft.checked(ft.numpy.log)(-1.0)
    Traceback (most recent call last):
        ...
    functrans.core.errors.NotFiniteError: log gave NaN: b:f32[] = log a.
      Why: a is f32[] -1; the result is f32[] nan.
      Fix: log needs positive numbers: log(maximum(x, 1e-30)), or where(x > 0, x, 1) inside it
    """
    check_callable(fun, "checked")
    kinds = _kinds(errors)
    jitted = fun if isinstance(fun, _runtime.JitFunction) else jit(fun)
    within = config.Within(checks=kinds)

    @wraps(fun, "checked")
    def checked_fun(*args: Any, **kwargs: Any) -> Any:
        return within(jitted, *args, **kwargs)

    return checked_fun


class debug_nans(ContextDecorator):  # a context manager, named as JAX's setting
    """Every operation and every compiled program inside the `with` block is checked.

    It says of these what `checked` says of a function. True, as JAX's switch is called, is "nan"
    alone, and False nothing. Raises ArgumentError inside a function that
    is being traced.

    >>> import functrans as ft
    >>> with ft.debug_nans():
    ...     ft.numpy.array([1.0, 0.0]) / 0.0
    Traceback (most recent call last):
        ...
    functrans.core.errors.NotFiniteError: div gave NaN in 1 of 2 elements: c:f32[2] = div a b.
      Why: a is f32[2] 0..1; b is f32[] 0; the result is f32[2] inf (1 NaN, 1 infinite).
      Fix: divide by where(y == 0, 1, y), or by y + 1e-6
    """

    @public
    def __init__(self, errors: Sequence[str] | bool = config.CHECKS) -> None:
        if isinstance(errors, bool):
            errors = ("nan",) if errors else ()
        self._kinds = _kinds(errors)
        self._left: list[tuple[Any, Any]] = []

    def __enter__(self) -> None:
        outer = get_trace()
        if outer is not None and type(outer) is not CheckTrace:
            raise ArgumentError("debug_nans was entered inside a function that is being traced.",
                                where=user_source(), why="nothing is computed there yet.",
                                fix="ft.checked(f) for a part of a function, or enter it around "
                                    "the call")
        scope = config.scope(checks=self._kinds)
        scope.__enter__()
        self._left.append((scope, outer))
        set_trace(CheckTrace(None))

    def __exit__(self, *error: Any) -> None:
        scope, outer = self._left.pop()
        set_trace(outer)
        scope.__exit__(None, None, None)


def _kinds(errors: Sequence[str]) -> frozenset[str]:
    given = (errors,) if isinstance(errors, str) else errors
    if not isinstance(given, Collection):
        raise ArgumentError(f"errors is a selection of kinds of errors, got {shown(given)}.",
                            fix='errors=("nan", "inf", "index"), which is the default')
    for kind in given:
        if kind not in config.CHECKS:
            raise ArgumentError(f"there is no kind of error {shown(kind)} to look for.",
                                fix=f"errors is a selection of {', '.join(config.CHECKS)}")
    return frozenset(given)


def check(condition: ArrayLike, message: str, **values: ArrayLike) -> None:
    """Stop with FailedCheckError where the condition, a boolean array, does not hold everywhere.

    It holds in compiled programs as it does outside of them, in every transform; inside vmap it is
    one of each element. The message may have places `{name}` for the `values`, which are shown
    with their ranges.

    >>> import functrans as ft
    >>> @ft.jit
    ... def root(x):
    ...     ft.check(x >= 0, "no root of {x}", x=x)
    ...     return ft.numpy.sqrt(x)
    >>> root(-4.0)
    Traceback (most recent call last):
        ...
    functrans.core.errors.FailedCheckError: no root of -4.0.
      Why: x is f32[] -4.
    """
    if not isinstance(message, str):
        raise ArgumentError(f"check: the message is {shown(message)}, not text.",
                            where=user_source(), fix='check(x > 0, "x is {x}", x=x)')
    if "Tracer<" in message:
        raise ArgumentError(f"check: a traced value stands in the message, {shown(message)}.",
                            where=user_source(),
                            why="it stands for all values that the function is called with.",
                            fix='check(x > 0, "x is {x}", x=x), without the f before the text')
    for name in _places(message):
        if name not in values:
            raise ArgumentError(f"check: the message has a place {{{name}}}, and no value for it.",
                                where=user_source(),
                                fix=f"check(..., {name}={name}), or {{{{{name}}}}} for braces")
    ok = to_array(condition, "check: the condition")
    if dtypes.kind(get_aval(ok).dtype) != "b":
        raise ArgumentError(f"check: the condition is {get_aval(ok)}, and must be boolean.",
                            where=user_source(), fix='check(x > 0, "x is {x}", x=x)')
    arrays = [to_array(v, f"check: the value {k}") for k, v in values.items()]
    check_p.bind(ok, *arrays, message=message, names=tuple(values), kind=CHECK, lanes=0)


def _places(message: str) -> list[str]:
    """The names that a message has places for; none of one that is no format."""
    try:
        return [name for _, name, _, _ in string.Formatter().parse(message)
                if name and name.isidentifier()]
    except ValueError:
        return []


publish(globals(), __all__)
