"""Ufuncs of one operation of functrans.lax: NumPy's inner loop outside a trace, else Python.

A ufunc is an `EagerOp`: outside a trace it runs NumPy's inner loop on arrays of one dtype without
any Python; otherwise it calls the Python function made here, which first tries the cheap case
(arrays of one dtype and shape) and then promotes and broadcasts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar
from typing import cast as cast_type

import numpy as np

from functrans import lax
from functrans._runtime import EagerOp, get_trace
from functrans.core.dims import same_shape
from functrans.core.dtypes import KEY_DTYPES, kind
from functrans.core.eager import is_on_gpu
from functrans.core.errors import DTypeError
from functrans.core.example_text import with_example
from functrans.core.source import user_source
from functrans.core.trace import ARRAYS
from functrans.numpy.common import (
    align,
    broadcast_all,
    operand,
    promote,
    promote_inexact,
    refuse_out,
)
from functrans.numpy.ufunc_examples import EXAMPLES
from functrans.transforms.eager import evaluate_together
from functrans.typing import Array, ArrayLike

if TYPE_CHECKING:
    from functrans._array_types import BinaryUfunc, UnaryUfunc

__all__ = ["NUMBERS", "Operation", "aligned", "applied_where", "binary", "predicate", "truth",
           "ufunc_like", "unary"]

Operation = Callable[..., Array]
F = TypeVar("F", bound=Callable[..., Any])
NUMBERS = (float, int)


def ufunc_like(
    name: str, doc: str, fallback: F, fast: np.ufunc | None = None, kinds: str = "biufc"
) -> F:
    """`fallback` under the public name, with NumPy's loop as fast path for dtypes of `kinds`."""
    fallback.__name__ = fallback.__qualname__ = name
    fallback.__module__ = "functrans.numpy.ufuncs"
    doc = with_example(doc, EXAMPLES.get(name)) or ""
    fallback.__doc__ = doc
    if fast is None:
        return fallback
    op = EagerOp(fast, fallback, name, doc, kinds)
    op.__module__ = "functrans.numpy"  # by which it is pickled
    return cast_type("F", op)


def unary(
    name: str, op: Operation, doc: str, fast: np.ufunc | None = None, kinds: str = "fc",
    integer: Operation | None = None, fast_kinds: str | None = None,
) -> UnaryUfunc:
    """A function of one array: `kinds` go to op directly, others to `integer` or become floating.

    `kinds` of "biufc" means that op takes every dtype; `fast` is right for `fast_kinds` of them.
    """

    def fallback(x: ArrayLike, /, *, out: None = None, where: ArrayLike | None = None) -> Array:
        if where is not None or out is not None:
            return applied_where(name, fallback, (x,), out, where)
        if isinstance(x, ARRAYS) and x.dtype.kind in kinds:
            return op(x)
        x = operand(name, x)
        if kind(x.dtype) in kinds:
            return op(x)
        return integer(x) if integer is not None else op(promote_inexact(name, x)[0])

    return cast_type("UnaryUfunc", ufunc_like(name, doc, fallback, fast, fast_kinds or kinds))


def binary(
    name: str, op: Operation, doc: str, fast: np.ufunc | None = None, kinds: str = "biufc",
    refused: str = "", boolean: Operation | None = None,
) -> BinaryUfunc:
    """A function of two arrays, promoted to one dtype; to a floating one if not among `kinds`."""
    promoted = promote if kinds != "fc" else promote_inexact
    direct = "".join(k for k in kinds if k not in refused and (boolean is None or k != "b"))
    floats, integers = "f" in direct, "i" in direct

    def fallback(x: ArrayLike, y: ArrayLike, /, *, out: None = None, where: ArrayLike | None = None
                 ) -> Array:
        if where is not None or out is not None:
            return applied_where(name, fallback, (x, y), out, where)
        # The cheap cases: one dtype and shape, or an array and a Python number of no higher kind,
        # which stays a number so that it prints as a literal.
        if isinstance(x, ARRAYS):
            dtype = x.dtype
            if isinstance(y, ARRAYS):
                if y.dtype is dtype and dtype.kind in direct:
                    return (op(x, y) if same_shape(x.shape, y.shape)
                            else aligned(name, op, x, y))
            elif floats and dtype.kind == "f" and type(y) in NUMBERS:
                return op(x, float(y))  # type: ignore[arg-type]  # of type int or float
            elif integers and dtype.kind == "i" and type(y) is int and -128 <= y <= 127:
                return op(x, y)
        elif floats and isinstance(y, ARRAYS) and y.dtype.kind == "f" and type(x) in NUMBERS:
            return op(float(x), y)  # type: ignore[arg-type]  # of type int or float
        x, y = promoted(name, x, y)
        dtype = x.dtype
        k = kind(dtype)
        if k in refused:
            raise DTypeError(f"functrans.numpy.{name} does not take {dtype}.",
                             where=user_source())
        if k == "b" and boolean is not None:
            return boolean(x, y)
        return op(x, y)

    return cast_type("BinaryUfunc", ufunc_like(name, doc, fallback, fast, direct))


def applied_where(name: str, function: Operation, xs: tuple[ArrayLike, ...], out: None,
           where: ArrayLike) -> Array:
    """The function where `where` holds, and zero elsewhere."""
    refuse_out(name, out)
    result, mask = broadcast_all(name, function(*xs), truth(operand(name, where)))
    return lax.select_n(mask, lax.full_like(result, 0), result)


def aligned(name: str, op: Operation, x: Array, y: Array) -> Array:
    """op of two arrays that broadcast; on a GPU one kernel that repeats neither."""
    if get_trace() is None and x.ndim and y.ndim and (is_on_gpu(x) or is_on_gpu(y)):
        together: Array = evaluate_together(lambda *xs: op(*align(name, xs)), name, x, y)
        return together
    return op(*align(name, [x, y]))


def predicate(name: str, op: Operation, doc: str, exact: bool, fast: np.ufunc | None = None
              ) -> UnaryUfunc:
    """A test of floating values; every integer and boolean answers `exact`."""

    def constant(x: Array) -> Array:
        return lax.full(x.shape, exact, np.dtype(bool))

    return unary(name, op, doc, fast, integer=constant)


def truth(x: Array) -> Array:
    """x != 0 as booleans."""
    if x.dtype in KEY_DTYPES:
        operand("asarray(x) != 0", x)  # raises
    return x if x.dtype.kind == "b" else lax.ne(x, lax.full_like(x, 0))
