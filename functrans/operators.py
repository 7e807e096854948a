"""Python's operators, one table for `Array` and every tracer.

An operator first tries what it almost always meets under a trace: two arrays of one dtype and
shape, or a floating array and a Python number. That goes to the primitive at once; everything
else to the function of `functrans.numpy`, which promotes and broadcasts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from functrans import _runtime
from functrans import numpy as jnp
from functrans._runtime import ArrayBase
from functrans.at import refuse_delitem, refuse_setitem
from functrans.core import dtypes
from functrans.core.dims import Dim, same_shape
from functrans.core.errors import (
    FunctransError,
    IntegerOverflowError,
    NonArrayError,
    hide_internal_frames,
)
from functrans.core.trace import ARRAYS, Tracer
from functrans.numpy.indexing import getitem
from functrans.primitives import arithmetic, compare
from functrans.primitives.convert import convert_element_type

__all__ = ["install_operators", "operator_table"]

Operator = Callable[..., Any]
OPERANDS = (ArrayBase, Tracer, np.ndarray, np.generic, bool, int, float, complex, Dim)
_REFUSE_LISTS = (jnp.add, jnp.subtract, jnp.multiply, jnp.true_divide, jnp.matmul)
_FLOATS = frozenset(map(dtypes.as_dtype, ("float16", "float32", "float64", dtypes.bfloat16)))


def _binary(primitive: Any, function: Operator, kinds: str) -> tuple[Operator, Operator]:
    """An operator and its reflection; `kinds` are the dtype kinds that go to the primitive."""
    bind = primitive.bind
    direct = frozenset(d for d in map(dtypes.as_dtype, (
        "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
        "float16", "float32", "float64", dtypes.bfloat16, "complex64", "complex128"))
        if dtypes.kind(d) in kinds)

    # the try blocks cost nothing; the wrapper `public` would cost 0.1 us
    def forward(self: Any, other: Any) -> Any:
        try:
            cls = type(other)
            if cls is float or cls is int:
                if self.dtype in _FLOATS:
                    return bind(self, float(other))
            elif isinstance(other, ARRAYS):
                mine, theirs = self.aval, other.aval
                if mine.dtype == theirs.dtype and mine.dtype in direct and (
                        same_shape(mine.shape, theirs.shape) or not mine.shape or not theirs.shape):
                    return bind(self, other)
            elif not isinstance(other, OPERANDS):
                return _foreign(function, self, other)
            return function(self, other)
        except FunctransError as error:
            hide_internal_frames(error)
            raise
        except OverflowError:
            raise _too_large(other, self) from None

    def reflected(self: Any, other: Any) -> Any:
        try:
            cls = type(other)
            if (cls is float or cls is int) and self.dtype in _FLOATS:
                return bind(float(other), self)
            return function(other, self) if isinstance(other, OPERANDS) else \
                _foreign(function, self, other)
        except FunctransError as error:
            hide_internal_frames(error)
            raise
        except OverflowError:
            raise _too_large(other, self) from None

    return forward, reflected


def _foreign(function: Operator, x: Any, other: Any) -> Any:
    """NotImplemented, by which Python asks the other operand; a list is repeated by an integer."""
    if type(other) is not list or function not in _REFUSE_LISTS \
            or (function is jnp.multiply and x.ndim == 0 and dtypes.kind(x.dtype) in "iu"):
        return NotImplemented
    raise NonArrayError(f"an operator of arrays ({function.__name__}) got a list.",
                        why="a list is converted anew by every operation, which hides a cost.",
                        fix="functrans.numpy.asarray(x)")


def _too_large(value: Any, x: Any) -> IntegerOverflowError:
    """The error for a Python int that no float can hold."""
    return IntegerOverflowError(
        f"a Python int of {len(str(value))} digits does not fit {x.dtype}." if
        value.bit_length() < 10_000 else f"a Python int of {value.bit_length()} bits does not fit "
        f"{x.dtype}.", why="beside a floating array a Python int becomes a float.",
        fix="float('inf'), or scale the number down before it meets an array")


def _composed(function: Operator) -> tuple[Operator, Operator]:
    """An operator that is no primitive, and its reflection."""
    def forward(self: Any, other: Any) -> Any:
        return function(self, other) if isinstance(other, OPERANDS) else \
            _foreign(function, self, other)

    def reflected(self: Any, other: Any) -> Any:
        return function(other, self) if isinstance(other, OPERANDS) else \
            _foreign(function, self, other)

    return forward, reflected


def _unary(primitive: Any, function: Operator) -> Operator:
    bind = primitive.bind

    def operator(self: Any) -> Any:
        return bind(self) if self.dtype in _FLOATS else function(self)

    return operator


_BINARY: dict[str, tuple[Operator, Operator]] = {
    "add": _binary(arithmetic.add_p, jnp.add, "iufc"),
    "sub": _binary(arithmetic.sub_p, jnp.subtract, "iufc"),
    "mul": _binary(arithmetic.mul_p, jnp.multiply, "iufc"),
    "truediv": _binary(arithmetic.div_p, jnp.true_divide, "fc"),
    "floordiv": _composed(jnp.floor_divide),
    "mod": _composed(jnp.remainder),
    "divmod": _composed(jnp.divmod),
    "pow": _composed(jnp.power),
    "matmul": _composed(jnp.matmul),
    "and": _composed(jnp.bitwise_and),
    "or": _composed(jnp.bitwise_or),
    "xor": _composed(jnp.bitwise_xor),
    "lshift": _composed(jnp.left_shift),
    "rshift": _composed(jnp.right_shift),
}
_COMPARISONS: dict[str, Operator] = {
    "lt": _binary(compare.lt_p, jnp.less, "biuf")[0],
    "le": _binary(compare.le_p, jnp.less_equal, "biuf")[0],
    "eq": _binary(compare.eq_p, jnp.equal, "biufc")[0],
    "ne": _binary(compare.ne_p, jnp.not_equal, "biufc")[0],
    "gt": _binary(compare.gt_p, jnp.greater, "biuf")[0],
    "ge": _binary(compare.ge_p, jnp.greater_equal, "biuf")[0],
}
_UNARY: dict[str, Operator] = {
    "neg": _unary(arithmetic.neg_p, jnp.negative),
    "pos": lambda self: jnp.positive(self),
    "abs": _unary(arithmetic.abs_p, jnp.absolute),
    "invert": lambda self: jnp.invert(self),
}


def operator_table() -> dict[str, Operator]:
    """Every operator by its name without underscores: add, radd, neg, lt, getitem, ..."""
    table: dict[str, Operator] = {
        **_COMPARISONS, **_UNARY, "getitem": getitem, "setitem": refuse_setitem,
        "delitem": refuse_delitem}
    for name, (forward, reflected) in _BINARY.items():
        table[name], table[f"r{name}"] = forward, reflected
    return table


def _size_operator(name: str, x: Any, y: Any) -> Any:
    """`B / 2` or `0.5 * B`: an array that is weakly typed, as Python's own number would be."""
    return _BINARY[name][0](_counted(x), y) if isinstance(x, Dim) else \
        _BINARY[name][1](_counted(y), x)


def _counted(size: Dim) -> Any:
    return convert_element_type(jnp.asarray(size), dtypes.default_float(), weak_type=True)


def install_operators() -> None:
    """Give arrays, behind their fast paths in the runtime, and tracers their operators."""
    table = operator_table()
    _runtime.set_operator_fallbacks(table)
    for name, operator in table.items():
        setattr(Tracer, f"__{name}__", operator)
    # what Python does to a class with __eq__: object's annotation has no place for it
    Tracer.__hash__ = None  # type: ignore[assignment]
    Dim.array_operator = staticmethod(_size_operator)
