"""Primitives whose derivative is a sum of one term per operand."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from functrans._runtime import EagerOp
from functrans.core.avals import ShapedArray
from functrans.core.primitive import Primitive, Sample
from functrans.primitives.base import sample_array, shapes_differ
from functrans.primitives.broadcast import align_batch

__all__ = ["AddAny", "Differentiable", "Rule", "add_any", "add_any_p", "linear"]

class AddAny(Primitive):
    """Sum of two (co)tangents of one type."""

    keeps_type = True

    def type(self, x: ShapedArray, y: ShapedArray) -> ShapedArray:
        if x.shape != y.shape or x.dtype != y.dtype:
            raise shapes_differ(self.name, (x, y), "cotangents of one value have one type.")
        return x.strong()

    evaluate = np.add

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
        tx, ty = tangents
        out = add_any(*primals)
        if tx is None or ty is None:
            return out, tx if ty is None else ty
        return out, add_any(tx, ty)

    def transpose(self, ct: Any, x: Any, y: Any) -> tuple[Any, Any]:
        return ct, ct

    def batch(self, operands: Sequence[Any], axes: Sequence[int | None]) -> tuple[Any, int]:
        x, y = align_batch(operands, axes)
        return add_any(x, y), 0

    def samples(self) -> Iterator[Sample]:
        yield Sample((sample_array(3, 2), sample_array(3, 2, seed=1)))


add_any_p = AddAny()
add_any = EagerOp(np.add, add_any_p.bind, "add_any", AddAny.__doc__)


Rule = Callable[..., Any]


def linear(t: Any, out: Any, *operands: Any, **params: Any) -> Any:
    """The derivative of an operation that is linear in an operand: the operation on the tangent."""
    raise TypeError("`linear` is a marker in `derivatives`, not a rule to call")


class Differentiable(Primitive, abstract=True):
    """A primitive with one result whose derivative is a sum of one term per operand.

    `derivatives[i]` maps `(t, out, *operands, **params)` to the term of operand i's tangent t; it
    is `linear` when the term is the operation itself on t, and None where there is no derivative
    (integers, indices). The last one repeats for further operands.
    """

    derivatives: ClassVar[tuple[Rule | None, ...]]
    eager: Any  # as users call it: `bind`, or what evaluates without it

    def __init__(self) -> None:
        self.eager = self.bind

    def __init_subclass__(cls, abstract: bool = False, **kwargs: Any) -> None:
        super().__init_subclass__(abstract=abstract, **kwargs)
        if not abstract and not hasattr(cls, "derivatives") and cls.jvp is Differentiable.jvp:
            raise TypeError(f"primitive {cls.__name__} has no rule 'derivatives': give one term "
                            f"per operand, or None for an operand without derivative")

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        out = self.bind(*primals, **params) if params else self.eager(*primals)
        total = None
        last = len(self.derivatives) - 1
        for i, t in enumerate(tangents):
            if t is None:
                continue
            rule = self.derivatives[min(i, last)]
            if rule is None:
                continue
            if rule is linear:
                term = self.bind(*primals[:i], t, *primals[i + 1:], **params)
            else:
                term = rule(t, out, *primals, **params)
            if term is not None:
                term = self.shaped(term, out)
                total = term if total is None else add_any(total, term)
        return out, total

    def shaped(self, term: Any, out: Any) -> Any:
        """A term of the derivative in the shape of the result."""
        return term
