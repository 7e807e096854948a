"""What an expression has to do with a softmax, found by evaluating it at random numbers.

Attention and its gradient are written in many ways: scaled before or after, with the maximum
subtracted or not, divided by the sum or multiplied by its inverse, with guards and conversions
between. As functions of the scores, of their sums and of what else is read they are equal, and two
expressions that agree at enough random points are equal.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from functrans.lowering.loops.expr import Expr, ExprBuilder
from functrans.lowering.loops.index import (
    ZERO,
    Computed,
    Index,
    LoopVar,
    Quotient,
    Remainder,
    unflatten,
)
from functrans.lowering.loops.tensor import Map, Reduce, Tensor
from functrans.lowering.schedule.kernel import reachable_expressions

__all__ = [
    "ABSORBS",
    "MASKS",
    "NotSoftmax",
    "RandomPoint",
    "ScoreTerm",
    "Scores",
    "Softmax",
    "moved",
    "scores_of",
    "softmax_of",
    "split_view",
]

# Masked scores: -inf, or numbers so far below all others that their weights are 0. In a row where
# all are masked a finite number gives all keys one weight: added to scores, one of ABSORBS or less
# leaves nothing of them in float32.
MASKS, ABSORBS = -1e4, -1e9
TRIALS, TOLERANCE = 4, 1e-5


class NotSoftmax(Exception):
    """An expression is something else."""


# --------------------------------------------------------------------------- numbers

OPERATIONS: dict[str, Callable[..., Any]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "max": np.maximum,
    "min": np.minimum, "neg": np.negative, "abs": np.abs, "exp": np.exp, "exp2": np.exp2,
    "log": np.log, "sqrt": np.sqrt, "rsqrt": lambda x: 1 / np.sqrt(x), "is_finite": np.isfinite,
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater,
    "ge": np.greater_equal, "select": np.where, "tanh": np.tanh}
BITWISE = {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor,
           "not": np.logical_not}


class RandomPoint:
    """Random numbers for what expressions read; what does not vary along a row is kept."""

    def __init__(self, rng: np.random.Generator, along: LoopVar,
                 known: Mapping[Expr, float] | None = None,
                 reduced: Callable[[RandomPoint, Expr], float] | None = None) -> None:
        self.rng, self.along = rng, along
        self.orders: dict[Expr, list[Expr]] = {}
        self.row: dict[Any, Any] = dict(known or {})
        self.here: dict[Any, Any] = {}
        self.reduced = reduced

    def __call__(self, e: Expr) -> Any:
        if e not in self.orders:
            self.orders[e] = reachable_expressions([e])
        for x in self.orders[e]:
            table = self.here if x.depends_on(self.along) else self.row
            if x not in table:
                table[x] = self._value(x)
        return self._of(e)

    def again(self) -> None:
        """Other numbers along the row."""
        self.here.clear()

    def _of(self, e: Expr) -> Any:
        return (self.here if e.depends_on(self.along) else self.row)[e]

    def _value(self, e: Expr) -> Any:
        if e.op == "const":
            return bool(e.aux) if e.dtype == "bool" else float(e.aux)
        if e.op == "index":
            return float(self._index(e.aux))
        if e.op == "load":
            if self.reduced is not None and isinstance(e.aux[0], Reduce):
                return self.reduced(self, e)
            if e.dtype == "bool":
                return bool(self.rng.integers(2))
            return float(self.rng.integers(8)) if e.dtype[0] != "f" else self.rng.normal()
        args = [self._of(a) for a in e.args]
        if e.op in ("convert", "round_to"):
            return bool(args[0]) if e.dtype == "bool" else float(args[0])
        if e.dtype == "bool" and e.op in BITWISE:
            return BITWISE[e.op](*args)
        if e.op not in OPERATIONS:
            raise NotSoftmax(f"{e.op} is part of it")
        return OPERATIONS[e.op](*args)

    def _index(self, index: Index) -> int:
        total = index.const
        for atom, c in index.terms.items():
            if isinstance(atom, LoopVar):
                table = self.here if atom is self.along else self.row
                if atom not in table:
                    table[atom] = int(self.rng.integers(atom.high))
                value = table[atom]
            elif isinstance(atom, Computed):
                raise NotSoftmax("it reads computed places")
            else:
                inner = self._index(atom.index)
                value = inner // atom.divisor if isinstance(atom, Quotient) else \
                    inner % atom.divisor
            total = total + c * value
        return total  # type: ignore[return-value]


# --------------------------------------------------------------------------- scores


@dataclass
class ScoreTerm:
    """A part of the scores besides the product: `factor * value`, or a condition to be seen."""

    value: Expr
    factor: float = 1.0
    fill: float = -math.inf  # the score of what is not seen


@dataclass
class Scores:
    """The argument of the exponential: `scale * product + biases`, where all masks hold."""

    scale: float = 1.0
    biases: list[ScoreTerm] = field(default_factory=list)
    masks: list[ScoreTerm] = field(default_factory=list)


def scores_of(e: Expr, product: Expr, along: LoopVar, s: ExprBuilder) -> Scores:
    """The scores whose exponential an expression is; what is added to whole rows is left out."""
    if e.op in ("convert", "round_to"):
        return scores_of(e.args[0], product, along, s)
    if e.op == "select":  # the exponential of what is seen, else 0
        condition, inner = _seen(e, product, s)
        if inner[1] != 0:
            raise NotSoftmax("what is not seen has a weight")
        found = scores_of(inner[0], product, along, s)
        found.masks.append(ScoreTerm(condition))
        return found
    if e.op not in ("exp", "exp2"):
        raise NotSoftmax("the weights are no exponentials")
    found = _linear(e.args[0], product, along, s)
    if e.op == "exp2":
        _scaled(found, math.log(2))
    return found


def _linear(e: Expr, product: Expr, along: LoopVar, s: ExprBuilder) -> Scores:
    if e is product:
        return Scores()
    if e.op in ("convert", "round_to"):
        return _linear(e.args[0], product, along, s)
    if e.op == "neg":
        return _scaled(_linear(e.args[0], product, along, s), -1)
    if e.op == "select":
        condition, (inner, fill) = _seen(e, product, s)
        if fill > MASKS:
            raise NotSoftmax("what is not seen has a weight")
        found = _linear(inner, product, along, s)
        found.masks.append(ScoreTerm(condition, fill=fill))
        return found
    if e.op in ("add", "sub"):
        x, y = e.args
        first = _reads(x, product)
        if first == _reads(y, product):
            raise NotSoftmax("the product is there twice")
        found = _linear(x if first else y, product, along, s)
        sign = -1.0 if e.op == "sub" else 1.0
        if not first:
            _scaled(found, sign)
            sign = 1.0
        other = y if first else x
        if other.depends_on(along):
            if any(m.fill > ABSORBS for m in found.masks):
                raise NotSoftmax("something is added to what is not seen")
            found.biases.append(ScoreTerm(other, sign))
        return found
    if e.op in ("mul", "div"):
        x, y = e.args
        if e.op == "mul" and y is not product and _reads(y, product):
            x, y = y, x
        if y.op != "const" or not math.isfinite(y.aux) or y.aux == 0:
            raise NotSoftmax("the scale is no number")
        factor = float(y.aux)
        return _scaled(_linear(x, product, along, s), factor if e.op == "mul" else 1 / factor)
    raise NotSoftmax(f"{e.op} of scores")


def _scaled(found: Scores, factor: float) -> Scores:
    if found.masks and factor <= 0:
        raise NotSoftmax("what is not seen has a weight")
    found.scale *= factor
    for b in found.biases:
        b.factor *= factor
    for m in found.masks:
        m.fill *= factor
        if m.fill > MASKS:
            raise NotSoftmax("what is not seen has a weight")
    return found


def _seen(e: Expr, product: Expr, s: ExprBuilder) -> tuple[Expr, tuple[Expr, float]]:
    """The condition of a mask, what is there where it holds, and the number where it does not."""
    condition, yes, no = e.args
    if yes.op == "const":
        condition, yes, no = s.op("not", condition), no, yes
    if no.op != "const" or not _reads(yes, product) or _reads(condition, product):
        raise NotSoftmax("a choice between scores")
    return condition, (yes, float(no.aux))


def _reads(e: Expr, product: Expr) -> bool:
    return product in reachable_expressions([e])


# --------------------------------------------------------------------------- softmax


@dataclass
class Softmax:
    """The weights of an expression: the product that it reads, the sums of rows, the scores."""

    product: Expr
    sums: Expr
    weights: Expr   # exp(scores), whose sum `sums` is
    along: LoopVar
    scores: Scores
    cotangent: Expr | None  # the other product, of an expression that is the gradient's
    factor: float           # of the gradient
    zero: bool              # whether rows that see nothing are 0, not NaN
    orders: dict[Expr, list[Expr]] = field(default_factory=dict)  # of evaluation, kept


def softmax_of(e: Expr, product: Expr, others: list[Expr], variables: list[LoopVar],
               s: ExprBuilder) -> Softmax:
    """The expression as weights of a softmax, or as the gradient of scores."""
    loads = [x for x in reachable_expressions([e]) if x.op == "load" and isinstance(x.aux[0],
                                                                                    Reduce)]
    problem = NotSoftmax("no sum of exponentials")
    for sums in loads:
        along = [v for v in variables if not sums.depends_on(v)]
        if sums.aux[0].op != "add" or len(along) != 1:
            continue
        try:
            weights = _element(sums, along[0], s)
            if product not in reachable_expressions([weights]) or any(
                o in reachable_expressions([weights]) for o in others):
                continue
            scores = scores_of(weights, product, along[0], s)
            return _checked(Softmax(product, sums, weights, along[0], scores, None, 1, False),
                            e, others, s)
        except NotSoftmax as reason:
            problem = reason
    raise problem


def _element(load: Expr, along: LoopVar, s: ExprBuilder) -> Expr:
    """What a reduction over rows adds up."""
    t, place = load.aux
    if t.sizes != (along.high,):
        raise NotSoftmax("it is reduced over something else")
    return t.element(s, (*unflatten(place, t.shape), Index.of(along)))  # type: ignore[no-any-return]


def _checked(found: Softmax, e: Expr, others: list[Expr], s: ExprBuilder) -> Softmax:
    inside = set(reachable_expressions([e]))
    found.zero = _is_zero_without_sum(found, e)
    cotangents = [o for o in others if o in inside]
    if not cotangents:
        ratios = [_ratio(found, None, e, seed, s) for seed in range(TRIALS)]
        if any(abs(r - 1) > TOLERANCE for r in ratios):
            raise NotSoftmax("the weights are no softmax")
        return found
    problem = NotSoftmax("no gradient of a softmax")
    for cotangent in cotangents:
        try:
            ratios = [_ratio(found, cotangent, e, seed, s) for seed in range(TRIALS)]
        except NotSoftmax as reason:
            problem = reason
            continue
        if all(abs(r - ratios[0]) <= TOLERANCE * abs(ratios[0]) for r in ratios) and ratios[0]:
            found.cotangent, found.factor = cotangent, ratios[0]
            return found
    raise problem


def _is_zero_without_sum(found: Softmax, e: Expr) -> bool:
    with np.errstate(all="ignore"):
        point = RandomPoint(np.random.default_rng(0), found.along, {found.sums: 0.0})
        point.here.update({x: 0.0 for x in reachable_expressions([e]) if x.depends_on(found.along)
                           and (x is found.weights or x.op in ("exp", "exp2"))})
        return bool(point(e) == 0)


def _ratio(found: Softmax, cotangent: Expr | None, e: Expr, seed: int, s: ExprBuilder) -> float:
    """An expression over the weights, or over their gradient, at a point where they are not 0."""
    rng = np.random.default_rng(seed)
    total, mean = float(rng.uniform(0.5, 2)), float(rng.normal())

    def reduced(point: RandomPoint, load: Expr) -> float:
        t = load.aux[0]
        if load is found.sums:
            return total
        if t.op == "add" and cotangent is not None and not load.depends_on(found.along):
            element = _element(load, found.along, s)
            if cotangent in reachable_expressions([element]):
                return _sum_of(point, element)
        return float(rng.uniform(0.5, 2))

    def _sum_of(point: RandomPoint, element: Expr) -> float:
        """The sum of multiples of weight * cotangent, or of the gradient: that is 0."""
        ratios, zeros = [], []
        for _ in range(4):
            inner = _inside(RandomPoint(rng, found.along, None, reduced), point)
            weight = inner(found.weights) / total
            value, ct = inner(element), inner(cotangent)
            ratios.append(value / (weight * ct))
            zeros.append(value / (weight * (ct - mean)))
        for values, result in ((ratios, ratios[0] * mean), (zeros, 0.0)):
            if all(abs(r - values[0]) <= TOLERANCE * abs(values[0]) for r in values):
                return float(result)
        raise NotSoftmax("another sum of the gradient")

    def _inside(inner: RandomPoint, point: RandomPoint) -> RandomPoint:
        inner.row, inner.orders = point.row, point.orders
        return _visible(inner, found)

    with np.errstate(all="ignore"):
        point = RandomPoint(rng, found.along, None, reduced)
        point.orders = found.orders
        point = _visible(point, found)
        weight = point(found.weights) / total
        expected = weight if cotangent is None else weight * (point(cotangent) - mean)
        ratio = float(point(e) / expected)
        for _ in range(12):  # what is not seen has no weight, and no gradient
            point.again()
            if point(found.weights) == 0 and point(e) != 0:
                raise NotSoftmax("what is not seen has a weight")
    if not math.isfinite(ratio):
        raise NotSoftmax("something else")
    return ratio


def _visible(point: RandomPoint, found: Softmax) -> RandomPoint:
    for k in range(200):
        if point(found.weights) != 0:
            return point
        point.again()
        if k % 20 == 19:
            kept = {x: v for x, v in point.row.items() if isinstance(x, Expr)
                    and x.op == "load" and isinstance(x.aux[0], Reduce)}
            point.row.clear()
            point.row.update(kept)
    raise NotSoftmax("nothing is seen")


# --------------------------------------------------------------------------- moved


def moved(e: Expr, places: Mapping[LoopVar, Index], s: ExprBuilder) -> Expr:
    """An expression at other places."""
    made: dict[Expr, Expr] = {}
    for x in reachable_expressions([e]):
        if x.op == "load":
            made[x] = s.read(x.aux[0], unflatten(_moved(x.aux[1], places), x.aux[0].shape))
        elif x.op == "index":
            made[x] = s.index(_moved(x.aux, places), x.dtype)
        elif x.op == "const":
            made[x] = s.const(x.aux, x.dtype)
        else:
            made[x] = s.op(x.op, *[made[a] for a in x.args], dtype=x.dtype, aux=x.aux)
    return made[e]


def _moved(index: Index, places: Mapping[LoopVar, Index]) -> Index:
    total = Index.of(index.const)
    for atom, c in index.terms.items():
        if isinstance(atom, LoopVar):
            total = total + places[atom] * c
        elif isinstance(atom, (Quotient, Remainder)):
            inner = _moved(atom.index, places)
            total = total + (inner // atom.divisor if isinstance(atom, Quotient)
                             else inner % atom.divisor) * c
        else:
            raise NotSoftmax("it reads computed places")
    return total


def split_view(t: Tensor, s: ExprBuilder) -> tuple[Expr, dict[LoopVar, int]]:
    """An element of a tensor, and the steps of its variables in it: dimensions that are read in
    pieces are variables of their own."""
    pieces = [[n] for n in t.shape]
    for _ in range(4):
        variables: dict[LoopVar, int] = {}
        index, step = [ZERO] * len(pieces), 1
        for d in reversed(range(len(pieces))):
            inner = 1
            for n in reversed(pieces[d]):
                if not isinstance(n, int):
                    raise NotSoftmax("a size that is not known")
                if n != 1:
                    v = LoopVar(f"d{d}_{inner}", n)
                    variables[v] = step * inner
                    index[d] = index[d] + Index.of(v) * inner
                inner *= n
            step *= inner
        e = t.define(s, tuple(index)) if isinstance(t, Map) else t.at(s, tuple(index))
        cut = _cut(e, pieces)
        if cut is None:
            return e, variables
        pieces = cut
    raise NotSoftmax("its indices are too complicated")


def _cut(e: Expr, pieces: list[list[Any]]) -> list[list[Any]] | None:
    for x in reachable_expressions([e]):
        if x.op != "load":
            continue
        for atom in x.aux[1].terms:
            if not isinstance(atom, (Quotient, Remainder)) or atom.index.const != 0:
                continue
            for v, c in atom.index.terms.items():
                if not isinstance(v, LoopVar) or c != 1 or len(atom.index.terms) != 1 \
                        or not isinstance(atom.divisor, int) or v.high % atom.divisor:
                    continue
                d, inner = map(int, v.name[1:].split("_"))
                made = [list(p) for p in pieces]
                at = 1
                for k in reversed(range(len(made[d]))):
                    if at == inner:
                        made[d][k:k + 1] = [v.high // atom.divisor, atom.divisor]
                        break
                    at *= made[d][k]
                return made
    return None
