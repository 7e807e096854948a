"""The base of elementwise primitives: everything but the value and the derivative is derived."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from functrans._runtime import EagerOp
from functrans.core import dtypes
from functrans.core.avals import ShapedArray, get_aval, rank
from functrans.core.errors import DTypeError
from functrans.core.primitive import Linear, Sample
from functrans.core.source import user_source
from functrans.primitives.base import sample_array, shapes_differ
from functrans.primitives.broadcast import (
    align_batch,
    broadcast_in_dim,
    move_axis,
    reduce_sum,
)
from functrans.primitives.differentiable import Differentiable, Rule, linear

if TYPE_CHECKING:
    from functrans.typing import Array

__all__ = ["Elementwise", "Operation", "bilinear", "fit", "linear", "unary_linear"]

Operation = Callable[..., "Array"]
"""A primitive as a function of arrays, tracers and Python scalars."""


class Elementwise(Differentiable, abstract=True):
    """Applies a scalar function to operands of one shape and dtype; scalars stand for any shape.

    A final subclass needs `evaluate` and `derivatives`; `kinds` are the dtype kinds it takes
    (b, i, u, f, c), `domain` the interval from which the samples of each operand are drawn.
    """

    kinds: ClassVar[str] = "fc"
    scalars_fit = True
    domain: ClassVar[tuple[tuple[float, float], ...]] = ((-2.0, 2.0),)
    arity: ClassVar[int] = 1
    # the derivatives use a Python scalar only beside an array, which gives it its dtype
    takes_scalars: ClassVar[bool] = False
    # what evaluates floating operands fastest, where `evaluate` is not a NumPy function itself
    ufunc: ClassVar[np.ufunc | None] = None
    ufunc_kinds: ClassVar[str] = "fc"

    def __init_subclass__(cls, abstract: bool = False, **kwargs: Any) -> None:
        if "derivatives" in cls.__dict__ and "arity" not in cls.__dict__:
            cls.arity = len(cls.derivatives)
        super().__init_subclass__(abstract=abstract, **kwargs)

    def __init__(self) -> None:
        ufunc = self.ufunc or self.evaluate
        cls = type(self)
        self.keeps_type = "f" in self.kinds and cls.type is Elementwise.type \
            and cls.result_dtype is Elementwise.result_dtype
        self.eager: Operation = self.bind
        if isinstance(ufunc, np.ufunc):
            self.eager = EagerOp(
                ufunc, self.bind, self.name, self.__doc__,
                self.fast_kinds, False)
            self.eager.__module__ = cls.__module__  # by which it is pickled

    @property
    def fast_kinds(self) -> str:
        """The dtype kinds that the loops of a ufunc evaluate."""
        return self.ufunc_kinds if self.ufunc is not None else self.kinds.replace("k", "")

    def evaluate_eagerly(self, args: Sequence[Any], params: Mapping[str, Any]) -> Any:
        if not params and isinstance(self.eager, EagerOp):
            result = self.eager.evaluate(*args)
            if result is not NotImplemented:
                return result
        return super().evaluate_eagerly(args, params)

    def result_dtype(self, dtype: np.dtype[Any]) -> np.dtype[Any]:
        """The dtype of the result for operands of `dtype`."""
        return dtype

    def type(self, *avals: ShapedArray, **params: Any) -> ShapedArray:
        x = y = avals[0]
        if len(avals) == 2:
            y = avals[1]
        if len(avals) == 1 or (x.dtype is y.dtype and x.shape == y.shape
                               and x.weak_type == y.weak_type and len(avals) == 2):
            if dtypes.kind(x.dtype) not in self.kinds:
                raise self.bad_dtype(x.dtype)
            dtype = self.result_dtype(x.dtype)
            return x if dtype is x.dtype else ShapedArray(x.shape, dtype, x.weak_type)
        shape, dtype = self.common(avals)
        weak = all(a.weak_type for a in avals)
        return ShapedArray(shape, self.result_dtype(dtype), weak)

    def common(self, avals: Sequence[ShapedArray]) -> tuple[tuple[Any, ...], np.dtype[Any]]:
        """The one shape and dtype of the operands."""
        shape: tuple[Any, ...] = ()
        dtype = avals[0].dtype
        for a in avals:
            if a.shape:
                if shape and a.shape != shape:
                    raise shapes_differ(self.name, avals, "elementwise operands have one shape, "
                                                          "or are scalars.")
                shape = a.shape
            if a.dtype != dtype:
                names = " and ".join(str(a) for a in avals)
                raise DTypeError(f"{self.name} needs operands of one dtype, got {names}.",
                                 where=user_source(),
                                 why="primitives do not convert; functrans.numpy does.",
                                 fix=f"lax.convert_element_type(x, {dtype.name!r})")
        if dtypes.kind(dtype) not in self.kinds:
            raise self.bad_dtype(dtype)
        return shape, dtype

    def bad_dtype(self, dtype: np.dtype[Any]) -> DTypeError:
        names = {"b": "boolean", "i": "signed", "u": "unsigned", "f": "floating", "c": "complex",
                 "k": "key"}
        wanted = ", ".join(names[k] for k in self.kinds)
        return DTypeError(f"{self.name} does not take {dtype}.", where=user_source(),
                          why=f"it is defined for {wanted} arrays.",
                          fix='x.astype("float32")' if "f" in self.kinds else "")

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        if self.arity > 1 and not self.takes_scalars:
            primals = _typed_scalars(primals)
        return super().jvp(primals, tangents, **params)

    def shaped(self, term: Any, out: Any) -> Any:
        if self.arity > 1 and term.ndim != out.ndim:
            return broadcast_in_dim(term, out.shape, ())
        return term

    def batch(self, operands: Sequence[Any], axes: Sequence[int | None],
              **params: Any) -> tuple[Any, int]:
        if len(operands) == 1:
            assert axes[0] is not None
            return self.bind(operands[0], **params), axes[0]
        if len(operands) == 2 and axes[0] == axes[1] and operands[0].ndim == operands[1].ndim:
            return self.bind(*operands, **params), axes[0]  # type: ignore[return-value]
        first = next(i for i, a in enumerate(axes) if a is not None)
        axis, ndim = axes[first], operands[first].ndim
        if all((a == axis and x.ndim == ndim) or (a is None and rank(x) == 0)
               for x, a in zip(operands, axes, strict=True)):
            return self.bind(*operands, **params), axis  # type: ignore[return-value]
        scalar = [(rank(x) if a is None else x.ndim - 1) == 0
                  for x, a in zip(operands, axes, strict=True)]
        if all(scalar):
            return self.bind(*align_batch(operands, axes), **params), 0
        size = operands[first].shape[axis]
        inners = [get_aval(x).shape if a is None else
                  tuple(s for d, s in enumerate(x.shape) if d != a)
                  for x, a in zip(operands, axes, strict=True)]
        inner = next(shape for shape, s in zip(inners, scalar, strict=True) if not s)
        if any(shape not in ((), inner) for shape in inners):  # else broadcast_in_dim might do it
            self.common([get_aval(x).with_shape(i) for x, i in zip(operands, inners, strict=True)])
        full = (size, *inner)
        aligned = []
        for x, a in zip(operands, axes, strict=True):
            if a is None:
                aligned.append(x if rank(x) == 0 else
                               broadcast_in_dim(x, full, tuple(range(1, len(full)))))
            elif x.ndim == 1 and inner:
                aligned.append(broadcast_in_dim(x, full, (0,)))
            else:
                aligned.append(move_axis(x, a, 0))
        return self.bind(*aligned, **params), 0

    def samples(self) -> Iterator[Sample]:
        """Arrays of one shape; with several operands also scalars among them."""
        dtype = self.sample_dtype
        domains = [self.domain[min(i, len(self.domain) - 1)] for i in range(self.arity)]
        arrays = [sample_array(3, 2, seed=i, low=low, high=high, dtype=dtype)
                  for i, (low, high) in enumerate(domains)]
        yield Sample(tuple(arrays))
        yield Sample(tuple(a[0, 0] for a in arrays))
        for i in range(self.arity if self.arity > 1 else 0):
            yield Sample(tuple(np.asarray(a[0, 0]) if i == j else a for j, a in enumerate(arrays)))

    @property
    def sample_dtype(self) -> np.dtype[Any]:
        first = "f" if "f" in self.kinds else self.kinds[0]
        return np.dtype({"f": "float32", "c": "complex64", "i": "int32", "u": "uint32",
                         "b": "bool"}[first])


def _typed_scalars(operands: Sequence[Any]) -> Sequence[Any]:
    """Python scalars as arrays of the dtype of the arrays beside them: `sub(y, 1.0)` in a rule
    would otherwise compute in the default dtype."""
    if all(hasattr(x, "dtype") for x in operands):
        return operands
    dtype = next((x.dtype for x in operands if hasattr(x, "dtype")), None)
    if dtype is None:
        return operands
    return [x if hasattr(x, "dtype") else np.asarray(x, dtype) for x in operands]


def fit(ct: Any, operand: Linear) -> Any:
    """The cotangent of an operand that was a scalar beside arrays: the sum over the array."""
    if ct.ndim != operand.aval.ndim:
        return reduce_sum(ct, tuple(range(ct.ndim)))
    return ct


def unary_linear(self: Elementwise, ct: Any, x: Any, **params: Any) -> tuple[Any]:
    """Transposition of an operation that is its own transpose: scaling by a constant."""
    return (self.bind(ct, **params),)


def bilinear(rule_x: Rule, rule_y: Rule) -> Rule:
    """Transposition of an operation of two operands that is linear in each.

    The rules give the cotangents `rule_x(ct, y)` and `rule_y(ct, x)`.
    """
    def transpose(self: Elementwise, ct: Any, x: Any, y: Any) -> tuple[Any, Any]:
        return (fit(rule_x(ct, y), x) if isinstance(x, Linear) else None,
                fit(rule_y(ct, x), y) if isinstance(y, Linear) else None)
    return transpose

