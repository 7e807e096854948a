"""Expressions that are the weights of a softmax, or the gradient of its scores.

Attention and its gradient are written in many ways: scaled before or after, with the maximum
subtracted or not, divided by the sum or multiplied by its inverse, with guards and conversions
between. Weights are exp(scores) / sums, and gradients a multiple of
weights * (cotangent - sum(weights * cotangent)): an expression is one of both where its normal form
is (`normal_form`), in every case of the conditions that it reads. That is exact, so that a term of
any size, and a mask that is false at one place, are seen.

- The sums are those of the exponential that the scores are taken from, whatever is subtracted
  from these: the maximum of them is left out, other terms of whole rows are part of the scores.
- A sum of multiples of weights and of weights * cotangent over the row is known by its element.
- Where all scores of a row are -inf, an expression is 0 or NaN, and kernels give the same: that
  depends on guards, and is found by evaluating it for such a row (`_gives_zero`).
- Numbers are real ones: kernels round differently, and do not overflow where a program does that
  subtracts nothing. A causal mask of finite numbers hides what is at most MASKS: that is no mask of
  scores that are themselves as low.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import field
from fractions import Fraction
from functools import partial

from functrans.core.record import Record
from functrans.lowering.loops.expr import Expr, ExprBuilder, reachable_expressions
from functrans.lowering.loops.index import Index, LoopVar, unflatten
from functrans.lowering.loops.tensor import FLOAT8, Reduce
from functrans.lowering.passes.attention.empty_rows import gives_zero
from functrans.lowering.passes.attention.normal_form import (
    ONE,
    Case,
    Monomial,
    NoNormalForm,
    Polynomial,
    Predicate,
    atom,
    by_cases,
    inverse,
    is_float,
    plus,
    times,
)
from functrans.lowering.passes.attention.reindexed import NotSoftmax

__all__ = ["ABSORBS", "MASKS", "ScoreTerm", "Scores", "Softmax", "is_rounding", "scores_of",
           "softmax_of"]

# Masked scores: -inf, or numbers so far below all others that their weights are 0. In a row where
# all are masked a finite number gives all keys one weight.
MASKS, ABSORBS = -1e4, -1e9
MOST_EXPRESSIONS = 300
"""Of an expression that is compared: it has some tens."""


# --------------------------------------------------------------------------- scores


class ScoreTerm(Record, frozen=False):
    """A part of the scores besides the product: `factor * value`, or a condition to be seen."""

    value: Expr
    factor: float = 1.0
    fill: float = -math.inf  # the score of what is not seen
    is_selected: bool = True  # in the place of the score, not added to it
    origin: Expr | None = None  # the value without masks that hide it


class Scores(Record, frozen=False):
    """The argument of the exponential: `scale * product + biases + shifts`, under masks.

    Masks stand in order, the first innermost: a later one hides what earlier ones do.
    `shifts` are the terms of whole rows; `argument` has all of it, masks included.
    """

    argument: Expr
    scale: float = 1.0
    biases: list[ScoreTerm] = field(default_factory=list)
    shifts: list[ScoreTerm] = field(default_factory=list)
    masks: list[ScoreTerm] = field(default_factory=list)
    adds_to_masks: bool = False  # whether something is added to scores that masks gave


def is_rounding(e: Expr) -> bool:
    """Whether an expression is its operand in another type of floats."""
    return (e.op == "round_to" and e.aux not in FLOAT8) or (
        e.op == "convert" and is_float(e) and is_float(e.args[0]))


def scores_of(e: Expr, product: Expr, along: LoopVar, s: ExprBuilder) -> Scores:
    """The scores whose exponential an expression is."""
    if is_rounding(e):
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
    found.argument = e.args[0]
    if e.op == "exp2":
        _scaled(found, math.log(2))
    return found


def _linear(e: Expr, product: Expr, along: LoopVar, s: ExprBuilder) -> Scores:
    if e is product:
        return Scores(e)
    if is_rounding(e):
        return _linear(e.args[0], product, along, s)
    if e.op == "neg":
        return _scaled(_linear(e.args[0], product, along, s), -1)
    if e.op == "select":
        condition, (inner, fill) = _seen(e, product, s)
        if fill > MASKS:
            raise NotSoftmax("what is not seen has a weight")
        found = _linear(inner, product, along, s)
        found.masks.append(ScoreTerm(condition, fill=fill))
        if fill != -math.inf:
            for b in found.biases:  # they are no part of the score of what is not seen
                b.origin = b.origin or b.value
                b.value = s.op("select", condition, b.value, s.const(0.0, b.value.dtype),
                               dtype=b.value.dtype)
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
        if any(m.fill > ABSORBS for m in found.masks) and other.depends_on(along):
            raise NotSoftmax("something is added to what is not seen")
        if other.depends_on(along):
            found.adds_to_masks |= any(m.fill != -math.inf for m in found.masks)
        terms = found.biases if other.depends_on(along) else found.shifts
        terms.append(ScoreTerm(other, sign))
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
    for b in (*found.biases, *found.shifts):
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

MEAN = ("mean",)
"""The atom of the weighted mean of the cotangents of a row."""


class Softmax(Record, frozen=False):
    """The weights of an expression: the product that it reads, the sums of rows, the scores."""

    product: Expr
    sums: Expr
    weights: Expr   # exp(scores), whose sum `sums` is
    along: LoopVar
    scores: Scores
    cotangent: Expr | None  # the other product, of an expression that is the gradient's
    factor: float           # of the gradient
    zero: bool              # whether rows that see nothing are 0, not NaN


def softmax_of(e: Expr, product: Expr, others: list[Expr], variables: list[LoopVar],
               s: ExprBuilder) -> Softmax:
    """The expression as weights of a softmax, or as the gradient of scores."""
    inside = reachable_expressions([e])
    if len(inside) > MOST_EXPRESSIONS:
        raise NotSoftmax("it is long")
    problem = NotSoftmax("no sum of exponentials")
    for sums in [x for x in inside if x.op == "load" and isinstance(x.aux[0], Reduce)]:
        along = [v for v in variables if not sums.depends_on(v)]
        if sums.aux[0].op != "add" or len(along) != 1:
            continue
        try:
            weights = element_of(sums, along[0], s)
            read = reachable_expressions([weights])
            if product not in read or len(read) > MOST_EXPRESSIONS or any(
                    o in read for o in others):
                continue
            scores = scores_of(weights, product, along[0], s)
            found = Softmax(product, sums, weights, along[0], scores, None, 1, False)
            _keep_shifts(found, s)
            cotangents = [o for o in others if o in inside]
            return _checked(found, e, cotangents, s)
        except (NotSoftmax, NoNormalForm) as reason:
            problem = NotSoftmax(str(reason))
    raise problem


def element_of(load: Expr, along: LoopVar, s: ExprBuilder) -> Expr:
    """What a reduction over rows combines."""
    t, place = load.aux
    if t.sizes != (along.high,) or load.depends_on(along):
        raise NotSoftmax("it is reduced over something else")
    return t.element(s, (*unflatten(place, t.shape), Index.of(along)))  # type: ignore[no-any-return]


def _keep_shifts(found: Softmax, s: ExprBuilder) -> None:
    """Terms of whole rows become biases, unless they subtract the maximum of the scores.

    A softmax does not depend on them, but for infinities: of a row of -inf it is NaN, or 0. The
    maximum is infinite where a score is.
    """
    scores, left_out = found.scores, list[ScoreTerm]()

    def is_maximum(term: ScoreTerm, decided: Mapping[Predicate, bool]) -> bool:
        case = Case(decided)
        rest = case.form(scores.argument)
        for x in left_out:
            rest = plus(rest, times(case.form(x.value), {ONE: -Fraction(x.factor)}))
        if not _reads_atom(rest, found.product):
            return True  # it is not seen
        value = times(case.form(term.value), {ONE: Fraction(term.factor)})
        if isinstance(value, float):
            return False
        if all(m == ONE for m in value):
            return True
        ((m, c), *more) = value.items()
        maximum = next((a for a, n in m.powers if n == 1 and isinstance(a, Expr)), None)
        if more or len(m.powers) != 1 or m.exponent or c >= 0 or maximum is None \
                or maximum.op != "load" or not isinstance(maximum.aux[0], Reduce) \
                or maximum.aux[0].op != "max":
            return False
        element = times(case.form(element_of(maximum, found.along, s)), {ONE: -c})
        return element == plus(rest, times(value, {ONE: Fraction(-1)}))

    for term in scores.shifts[::-1]:
        try:
            dropped = all(by_cases(partial(is_maximum, term)))
        except NotSoftmax:
            dropped = False
        (left_out if dropped else scores.biases).append(term)
    scores.shifts = left_out


def _reads_atom(x: Polynomial, e: Expr) -> bool:
    return not isinstance(x, float) and any(a is e for m in x for a, _ in m.powers)


def _checked(found: Softmax, e: Expr, cotangents: list[Expr], s: ExprBuilder) -> Softmax:
    """What is found of an expression, if it is that. Raises NotSoftmax and NoNormalForm."""
    problem = NotSoftmax("no gradient of a softmax")
    candidates: list[Expr | None] = [*cotangents] or [None]
    for cotangent in candidates:
        comparison = _Comparison(found, cotangent, s)
        try:
            factors = {f for f in by_cases(partial(comparison.factor, e)) if f is not None}
            if len(factors) != 1 or (cotangent is None and factors != {1}):
                raise NotSoftmax("other weights")
        except (NotSoftmax, NoNormalForm) as reason:
            problem = NotSoftmax(str(reason))
            continue
        found.cotangent, found.factor = cotangent, float(factors.pop())
        found.zero = _gives_zero(found, e, s)
        return found
    raise problem


def _gives_zero(found: Softmax, e: Expr, s: ExprBuilder) -> bool:
    """Whether an expression is 0 in rows that see nothing, by masks or, without any, by biases."""
    scores = found.scores
    masks = [m.value for m in scores.masks if m.fill == -math.inf]
    numbers = [m.value for m in scores.masks if m.fill != -math.inf]
    hidden = masks or [b.origin or b.value for b in scores.biases] or [found.product]
    return gives_zero(e, hidden, bool(masks), numbers, found.product, found.along, s)


class _Comparison:
    """An expression and the weights of a softmax, or the gradient of its scores."""

    def __init__(self, found: Softmax, cotangent: Expr | None, s: ExprBuilder) -> None:
        self.found, self.cotangent, self.s = found, cotangent, s
        self._elements: dict[Expr, Expr | None] = {}

    def case(self, decided: Mapping[Predicate, bool]) -> Case:
        return Case(decided, (self.found.sums,), self._known)

    def factor(self, e: Expr, decided: Mapping[Predicate, bool]) -> Fraction | None:
        """What the gradient is multiplied by in a case; None where it is 0 whatever that is."""
        case, scores = self.case(decided), self.found.scores
        value = case.form(e)
        weight = times(case.form(self.found.weights), atom(self.found.sums, -1))
        hidden = not all(case.holds(m.value) for m in scores.masks if m.fill != -math.inf)
        if not weight or (hidden and self.cotangent is not None):
            if value:
                raise NotSoftmax("what is not seen has a weight")
            return None
        expected = weight if self.cotangent is None else times(weight, plus(
            atom(self.cotangent), times(atom(MEAN), {ONE: Fraction(-1)})))
        if isinstance(value, float) or isinstance(expected, float) \
                or value.keys() != expected.keys():
            raise NotSoftmax("something else")
        factors = {c / expected[m] for m, c in value.items()}
        if len(factors) != 1:
            raise NotSoftmax("something else")
        return factors.pop()

    def _known(self, case: Case, load: Expr) -> Polynomial | None:
        """A sum over the row that is known by its element."""
        if load is self.found.sums:
            return None
        if load not in self._elements:
            self._elements[load] = self._element(load)
        element = self._elements[load]
        if element is None:
            return None
        along = self.found.along
        outside = {p: v for p, v in case.decided.items() if not p.depends_on(along)}
        try:
            sums = [x for x in by_cases(lambda d: self._sum(element, d), outside, along)
                    if x is not None]
        except (NotSoftmax, NoNormalForm):
            return None
        return sums[0] if sums and all(x == sums[0] for x in sums) else None

    def _element(self, load: Expr) -> Expr | None:
        if not isinstance(load.aux[0], Reduce) or load.aux[0].op != "add":
            return None
        try:
            element = element_of(load, self.found.along, self.s)
        except NotSoftmax:
            return None
        inside = reachable_expressions([element])
        is_short = len(inside) <= MOST_EXPRESSIONS
        return element if is_short and self.found.product in inside else None

    def _sum(self, element: Expr, decided: Mapping[Predicate, bool]) -> Polynomial | None:
        """The sum of (a + b * cotangent) * weight over a row; None where both are 0."""
        case = self.case(decided)
        weight, value = case.form(self.found.weights), case.form(element)
        if not weight:
            if value:
                raise NotSoftmax("what is not seen is summed")
            return None
        total: Polynomial = {}
        ratio = times(value, inverse(weight))
        for m, c in ratio.items() if not isinstance(ratio, float) else ():
            powers = dict(m.powers)
            has_cotangent = self.cotangent is not None and powers.pop(self.cotangent, 0)
            if has_cotangent not in (0, 1, False) or m.exponent or any(
                    (isinstance(a, Expr) and a.depends_on(self.found.along))
                    or (isinstance(a, tuple) and a != MEAN) for a in powers):
                raise NotSoftmax("another sum")
            term: Polynomial = {Monomial(frozenset(powers.items())): c}
            term = times(term, atom(self.found.sums))
            total = plus(total, times(term, atom(MEAN)) if has_cotangent else term)
        if isinstance(ratio, float):
            raise NotSoftmax("an infinite sum")
        return total
