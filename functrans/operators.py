"""Python's operators, one table for `Array` and every tracer.

An operator first tries the case that is almost always there under a trace: two arrays of one
dtype and shape, or a floating array and a Python number. That goes to the primitive at once;
everything else to the function of `functrans.numpy`, which promotes and broadcasts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from functrans import _runtime
from functrans._runtime import ArrayBase
from functrans.array import Array
from functrans.core import dtypes
from functrans.core.dims import Dim
from functrans.core.trace import Tracer
from functrans.primitives import arithmetic, broadcast, compare, convert

__all__ = ["install_operators"]

Operator = Callable[..., Any]
OPERANDS = (ArrayBase, Tracer, np.ndarray, np.generic, bool, int, float, complex, Dim)
_NATIVE_FLOATS = frozenset(map(np.dtype, ("float16", "float32", "float64", dtypes.bfloat16)))


def promoted(op: Operator, kinds: str) -> Operator:
    def function(x: Any, y: Any) -> Any:
        dtype = dtypes.result_type(x, y)
        if dtypes.kind(dtype) not in kinds:
            dtype = dtypes.to_inexact_dtype(dtype)
        x, y = (convert.convert_element_type(v, dtype) for v in (x, y))
        shape = np.broadcast_shapes(x.shape, y.shape)
        x, y = (v if v.shape in (shape, ()) else broadcast.broadcast_in_dim(
            v, shape, range(len(shape) - v.ndim, len(shape))) for v in (x, y))
        return op(x, y)
    return function


def binary(primitive: Any, function: Operator, kinds: str) -> tuple[Operator, Operator]:
    """An operator and its reflection; `kinds` are the dtype kinds the primitive takes."""
    bind = primitive.bind

    def forward(self: Any, other: Any) -> Any:
        cls = type(other)
        aval = self.aval
        if cls is float or cls is int:
            if aval.dtype in _NATIVE_FLOATS:
                return bind(self, float(other))
        elif isinstance(other, (ArrayBase, Tracer)):
            theirs = other.aval
            if (aval.dtype == theirs.dtype and dtypes.kind(aval.dtype) in kinds
                    and (aval.shape == theirs.shape or not aval.shape or not theirs.shape)):
                return bind(self, other)
        elif not isinstance(other, OPERANDS):
            return NotImplemented
        return function(self, other)

    def reflected(self: Any, other: Any) -> Any:
        cls = type(other)
        if (cls is float or cls is int) and self.aval.dtype in _NATIVE_FLOATS:
            return bind(float(other), self)
        return function(other, self) if isinstance(other, OPERANDS) else NotImplemented

    return forward, reflected


def composed(function: Operator) -> tuple[Operator, Operator]:
    """An operator without a primitive of its own, and its reflection."""
    def forward(self: Any, other: Any) -> Any:
        return function(self, other) if isinstance(other, OPERANDS) else NotImplemented

    def reflected(self: Any, other: Any) -> Any:
        return function(other, self) if isinstance(other, OPERANDS) else NotImplemented

    return forward, reflected


def _power(x: Any, y: Any) -> Any:
    if type(y) is int and not isinstance(x, (int, float, complex)):
        return arithmetic.integer_pow(x, y)
    return promoted(arithmetic.pow, "fc")(x, y)


_BINARY: dict[str, tuple[Operator, Operator]] = {
    "add": binary(arithmetic.add_p, promoted(arithmetic.add, "iufc"), "iufc"),
    "sub": binary(arithmetic.sub_p, promoted(arithmetic.sub, "iufc"), "iufc"),
    "mul": binary(arithmetic.mul_p, promoted(arithmetic.mul, "biufc"), "biufc"),
    "truediv": binary(arithmetic.div_p, promoted(arithmetic.div, "fc"), "fc"),
    "and": composed(promoted(compare.bitwise_and, "biu")),
    "or": composed(promoted(compare.bitwise_or, "biu")),
    "xor": composed(promoted(compare.bitwise_xor, "biu")),
    "pow": composed(_power),
}
_COMPARISONS: dict[str, Operator] = {
    name: binary(getattr(compare, f"{name}_p"), promoted(getattr(compare, name), "biufc"),
                 "biufc")[0]
    for name in ("lt", "le", "eq", "ne", "gt", "ge")}
_UNARY: dict[str, Operator] = {
    "neg": arithmetic.neg_p.bind,
    "pos": lambda x: x,
    "abs": arithmetic.abs_p.bind,
    "invert": compare.not_p.bind,
}


def operator_table() -> dict[str, Operator]:
    """Every operator by its name without underscores: add, radd, neg, lt, ..."""
    table = {**_COMPARISONS, **_UNARY}
    for name, (forward, reflected) in _BINARY.items():
        table[name], table[f"r{name}"] = forward, reflected
    return table


def install_operators() -> None:
    """Give `Array` (behind its fast paths) and `Tracer` their operators."""
    table = operator_table()
    _runtime.set_operator_fallbacks(table)
    for name, operator in table.items():
        setattr(Tracer, f"__{name}__", _method(operator, f"__{name}__"))
    Tracer.__hash__ = None  # type: ignore[assignment]


def _method(operator: Operator, name: str) -> Operator:
    def method(*args: Any) -> Any:
        return operator(*args)

    if hasattr(operator, "__code__"):
        return operator
    method.__name__ = name
    return method


install_operators()
assert Array
