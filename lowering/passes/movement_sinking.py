"""Movement sinking: movements go behind elementwise operations, f(M x) = M f(x), exactly.

f is then computed on the small array before a broadcast, movements that follow each other cancel,
and they reach the contractions and reductions that absorb them.
"""

from __future__ import annotations

from typing import Any

from functrans.core.jaxpr import Atom, Equation
from functrans.core.primitive import Primitive
from functrans.lowering.passes.movement import broadcast
from functrans.lowering.passes.rewrite import Results, Rewriter, RewriteTable
from functrans.primitives.broadcast import broadcast_in_dim_p, transpose_p
from functrans.primitives.compare import select_n_p
from functrans.primitives.convert import convert_element_type_p
from functrans.primitives.differentiable import add_any_p
from functrans.primitives.elementwise import Elementwise
from functrans.primitives.shape import reshape_p

__all__ = ["MOVEMENT_SINKING"]

MOVEMENT_SINKING = RewriteTable("outwards")
rule = MOVEMENT_SINKING.rule

POINTWISE: tuple[Primitive | type, ...] = (Elementwise, convert_element_type_p, select_n_p,
                                           add_any_p)


def _scalar(r: Rewriter, x: Atom) -> Atom | None:
    """The scalar that x is or repeats."""
    if not x.aval.shape:
        return x
    inner = r.made(x, broadcast_in_dim_p)
    return inner.invars[0] if inner and not inner.invars[0].aval.shape else None


@rule(Elementwise, of=broadcast_in_dim_p, law="a scalar stands for any shape")
def scalar_operands(r: Rewriter, eqn: Equation, *operands: Atom) -> Results:
    if len(operands) < 2 or not eqn.outvars[0].aval.shape:
        return None
    scalars = [_scalar(r, x) for x in operands]
    if None not in scalars:  # all of them: the movements after them sink further
        return None
    news = [x if s is None else s for x, s in zip(operands, scalars, strict=True)]
    if all(a is b for a, b in zip(news, operands, strict=True)):
        return None
    return r(eqn.primitive, *news, **eqn.params)


@rule(select_n_p, of=broadcast_in_dim_p, law="a repeated selector is a scalar")
def scalar_selector(r: Rewriter, eqn: Equation, which: Atom, *cases: Atom) -> Results:
    scalar = _scalar(r, which)
    if scalar is None or scalar is which:
        return None
    return r(select_n_p, scalar, *cases)


@rule(*POINTWISE, of=broadcast_in_dim_p, law="f(broadcast(x), broadcast(y)) = broadcast(f(x, y))")
def repeated_operands(r: Rewriter, eqn: Equation, *operands: Atom) -> Results:
    shape = eqn.outvars[0].aval.shape
    if not shape:
        return None
    makers = []
    used: set[int] = set()  # the axes along which some operand varies
    for x in operands:
        inner = r.made(x, broadcast_in_dim_p)
        if inner is None and x.aval.shape:
            return None
        makers.append(inner)
        if inner:
            used.update(inner.params["broadcast_dimensions"])
    if len(used) == len(shape):
        return None
    axes = sorted(used)
    small = tuple([shape[d] for d in axes])
    news = [x if inner is None else
            broadcast(r, inner.invars[0], small,
                      [axes.index(d) for d in inner.params["broadcast_dimensions"]])
            for x, inner in zip(operands, makers, strict=True)]
    return broadcast(r, _applied(r, eqn, news), shape, axes)


@rule(*POINTWISE, of=reshape_p, law="f(reshape(x), reshape(y)) = reshape(f(x, y))")
def reshaped_operands(r: Rewriter, eqn: Equation, *operands: Atom) -> Results:
    return _moved(r, eqn, operands, reshape_p)


@rule(*POINTWISE, of=transpose_p, law="f(transpose(x), transpose(y)) = transpose(f(x, y))")
def transposed_operands(r: Rewriter, eqn: Equation, *operands: Atom) -> Results:
    if any(x.aval.shape and not r.once(x) and _scalar(r, x) is None for x in operands):
        return None  # x would be transposed besides
    return _moved(r, eqn, operands, transpose_p)


def _moved(r: Rewriter, eqn: Equation, operands: tuple[Atom, ...], movement: Primitive) -> Results:
    """f(x, y) moved, where all operands that are no scalars are moved alike."""
    source: Any = None
    params: Any = None
    for x in operands:
        inner = r.made(x, movement)
        if inner is None:
            if _scalar(r, x) is None:
                return None
        elif source is None:
            source, params = inner.invars[0].aval, inner.params
        elif inner.invars[0].aval.shape != source.shape or inner.params != params:
            return None
    if source is None:
        return None
    news = []
    for x in operands:
        inner = r.made(x, movement)
        scalar = x if inner else _scalar(r, x)
        assert scalar is not None
        news.append(inner.invars[0] if inner else scalar)
    result = _applied(r, eqn, news)
    return r(movement, r.shaped(result, eqn.outvars[0].aval.with_shape(source.shape)), **params)


def _applied(r: Rewriter, eqn: Equation, operands: list[Atom]) -> Atom:
    """f on operands of one shape and scalars; the cases of a choice must be of one shape."""
    if eqn.primitive in (select_n_p, add_any_p):
        first = 1 if eqn.primitive is select_n_p else 0
        like = max(operands, key=lambda x: len(x.aval.shape)).aval
        operands = [*operands[:first], *(r.shaped(x, x.aval.with_shape(like.shape))
                                         for x in operands[first:])]
    return r(eqn.primitive, *operands, **eqn.params)
