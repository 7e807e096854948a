"""Values as sums of tensor networks.

A network is a product of arrays whose axes are named by indices, summed over the indices that are
no axes of the result: `g[b,i,o] = x[b,i] * y[b,o]` is one, and so is every contraction. Sums,
products, broadcasts, transposes and reshapes of networks are networks again. An axis is named by a
group of indices, row-major, so that a reshape only regroups; an axis of size 1 by none.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from typing import NamedTuple

import numpy as np

from functrans.core.avals import ShapedArray
from functrans.core.dims import Shape, Size
from functrans.core.jaxpr import Atom, Var
from functrans.core.record import Record
from functrans.lowering.passes.rewrite import Rewriter
from functrans.primitives.precision import Precision, most_precise

__all__ = [
    "Derived",
    "Factor",
    "Group",
    "Names",
    "NetworkArray",
    "NetworkIndex",
    "NetworkTerm",
    "OneHot",
    "Splits",
    "StridedSlice",
    "SumOfNetworks",
    "aligned",
    "flat",
    "groups_of",
    "matched",
    "multiplied",
    "renamed",
    "reshaped",
    "squared",
    "with_fresh_indices",
]

MOST_TERMS = 64  # of a sum: 8 uses of one parameter, squared


class NetworkIndex:
    """A name for an axis, known by identity."""

    __slots__ = ("size",)

    def __init__(self, size: Size) -> None:
        self.size = size

    def __repr__(self) -> str:
        return f"i{id(self) % 997}:{self.size}"


Group = tuple[NetworkIndex, ...]
Names = Mapping[NetworkIndex, Group]


class Derived(NamedTuple):
    """An array that is made when a network is contracted: its type, what it costs, how."""

    aval: ShapedArray
    elements: float  # operations on one element each
    flops: float  # operations of products of matrices
    moved: float  # bytes
    make: Callable[[Rewriter], Atom]


class NetworkArray(NamedTuple):
    """An array; `axes` names each of its axes."""

    source: Atom | Derived
    axes: tuple[Group, ...]

    @property
    def indices(self) -> Group:
        return flat(self.axes)

    def renamed(self, names: Names) -> NetworkArray:
        return NetworkArray(self.source, substituted(self.axes, names))


class OneHot(NamedTuple):
    """1 where `outer` is `places[where]`, 0 elsewhere; with `clips` places out of bounds are
    clipped, else they give zeros."""

    places: Atom
    where: Group
    outer: NetworkIndex
    clips: bool

    @property
    def indices(self) -> Group:
        return (*self.where, self.outer)

    def renamed(self, names: Names) -> OneHot | None:
        outer = names.get(self.outer, (self.outer,))
        if len(outer) != 1:
            return None
        return OneHot(self.places, _renamed(self.where, names), outer[0], self.clips)


class StridedSlice(NamedTuple):
    """1 where `outer` is `start + step * inner`, 0 elsewhere; `inner` is a row-major group."""

    inner: Group
    outer: NetworkIndex
    start: int
    step: int

    @property
    def indices(self) -> Group:
        return (*self.inner, self.outer)

    @property
    def length(self) -> Size:
        return math.prod(i.size for i in self.inner)

    def renamed(self, names: Names) -> StridedSlice | None:
        outer = names.get(self.outer, (self.outer,))
        if len(outer) != 1:
            return None
        return StridedSlice(_renamed(self.inner, names), outer[0], self.start, self.step)


Factor = NetworkArray | OneHot | StridedSlice


class NetworkTerm(NamedTuple):
    """A coefficient times the product of factors."""

    coefficient: float
    factors: tuple[Factor, ...]


class SumOfNetworks(Record):
    """A value as a sum of networks whose result has `axes`.

    `expansions` are the large values that occur in it, which may themselves be written as networks;
    `is_square` says that no element is negative, `precision` is of the products; `deferred` are the
    contractions in it whose own results nothing needs yet.
    """

    axes: tuple[Group, ...]
    terms: tuple[NetworkTerm, ...]
    dtype: np.dtype[np.generic]
    expansions: frozenset[Var] = field(default_factory=frozenset)
    is_square: bool = False
    precision: Precision | None = None
    deferred: frozenset[Var] = field(default_factory=frozenset)

    @property
    def shape(self) -> Shape:
        return tuple([math.prod(i.size for i in g) for g in self.axes])

    def replace(self, **changes: object) -> SumOfNetworks:
        return replace(self, **changes)  # type: ignore[arg-type]


def flat(axes: Iterable[Group]) -> Group:
    return tuple([i for group in axes for i in group])


def groups_of(shape: Shape) -> tuple[Group, ...]:
    """A new index for each axis."""
    return tuple([() if isinstance(s, int) and s == 1 else (NetworkIndex(s),) for s in shape])


def _renamed(group: Group, names: Names) -> Group:
    return flat([names.get(i, (i,)) for i in group])


def substituted(axes: Iterable[Group], names: Names) -> tuple[Group, ...]:
    return tuple([_renamed(g, names) for g in axes])


def renamed(term: NetworkTerm, names: Names) -> NetworkTerm | None:
    """A term with groups in place of some indices; None where one cannot be split."""
    factors = [f.renamed(names) for f in term.factors]
    if any(f is None for f in factors):
        return None
    return NetworkTerm(term.coefficient, tuple([f for f in factors if f is not None]))


def _form_renamed(form: SumOfNetworks, names: Names) -> SumOfNetworks | None:
    if not names:
        return form
    terms = [renamed(t, names) for t in form.terms]
    if any(t is None for t in terms):
        return None
    return form.replace(axes=substituted(form.axes, names),
                        terms=tuple([t for t in terms if t is not None]))


def summed_indices(term: NetworkTerm, axes: Iterable[Group]) -> set[NetworkIndex]:
    """The indices that a term is summed over."""
    return {i for f in term.factors for i in f.indices} - set(flat(axes))


def with_fresh_indices(term: NetworkTerm, axes: Iterable[Group]) -> NetworkTerm:
    """A term with new names for what it is summed over."""
    fresh = renamed(term, {i: (NetworkIndex(i.size),) for i in summed_indices(term, axes)})
    assert fresh is not None
    return fresh


# ------------------------------------------------------------------------------- regrouping


class Splits:
    """Which indices are split into which groups."""

    def __init__(self) -> None:
        self.names: dict[NetworkIndex, Group] = {}

    def split(self, index: NetworkIndex, high: Size, low: Size) -> Group:
        parts = (NetworkIndex(high), NetworkIndex(low))
        for whole, group in self.names.items():
            if index in group:
                at = group.index(index)
                self.names[whole] = (*group[:at], *parts, *group[at + 1:])
                return parts
        self.names[index] = parts
        return parts


def _divides(a: Size, b: Size) -> bool:
    return isinstance(a, int) and isinstance(b, int) and a > 0 and b % a == 0


def matched(xs: Sequence[NetworkIndex], ys: Sequence[NetworkIndex], splits: Splits
             ) -> list[tuple[NetworkIndex, NetworkIndex]] | None:
    """Pairs of indices, once those that are too long are split; None where they do not fit."""
    pairs: list[tuple[NetworkIndex, NetworkIndex]] = []
    left, right = list(xs), list(ys)
    while left and right:
        a, b = left.pop(), right.pop()
        if a.size == b.size:
            pairs.append((a, b))
        elif _divides(a.size, b.size):
            high, low = splits.split(b, b.size // a.size, a.size)
            right.append(high)
            pairs.append((a, low))
        elif _divides(b.size, a.size):
            high, low = splits.split(a, a.size // b.size, b.size)
            left.append(high)
            pairs.append((low, b))
        else:
            return None
    return None if left or right else pairs


def aligned(x: SumOfNetworks, y: SumOfNetworks,
            pairs: Sequence[tuple[int, int]]) -> tuple[SumOfNetworks, SumOfNetworks] | None:
    """x, and y with the names of x for pairs of axes, new ones for others; None where axes are
    grouped in ways that do not fit."""
    # what y is summed over may have names that x has for its axes
    y = y.replace(terms=tuple([with_fresh_indices(t, y.axes) for t in y.terms]))
    other = _form_renamed(y, {i: (NetworkIndex(i.size),) for i in flat(y.axes)})
    assert other is not None
    splits = Splits()
    matches: list[tuple[NetworkIndex, NetworkIndex]] = []
    for a, b in pairs:
        found = matched(x.axes[a], other.axes[b], splits)
        if found is None:
            return None
        matches += found
    first, second = _form_renamed(x, splits.names), _form_renamed(other, splits.names)
    if first is None or second is None:
        return None
    second = _form_renamed(second, {b: (a,) for a, b in matches})
    return None if second is None else (first, second)


def reshaped(form: SumOfNetworks, shape: Shape) -> SumOfNetworks | None:
    """The form with its indices grouped in another way."""
    splits = Splits()
    left = list(flat(form.axes))[::-1]
    axes: list[Group] = []
    for size in shape:
        group: list[NetworkIndex] = []
        needed: Size = size
        while not (isinstance(needed, int) and needed == 1):
            if not left:
                return None
            index = left.pop()
            if index.size == needed:
                group.append(index)
                needed = 1
            elif _divides(index.size, needed):
                group.append(index)
                needed = needed // index.size
            elif _divides(needed, index.size):
                high, low = splits.split(index, needed, index.size // needed)
                group.append(high)
                left.append(low)
                needed = 1
            else:
                return None
        axes.append(tuple(group))
    if left:
        return None
    found = _form_renamed(form, splits.names)
    return None if found is None else found.replace(axes=tuple(axes))


# ------------------------------------------------------------------------------- products


def multiplied(x: SumOfNetworks, y: SumOfNetworks, axes: tuple[Group, ...]) -> SumOfNetworks | None:
    """The product of two aligned forms, with `axes`; None where it has too many terms."""
    if len(x.terms) * len(y.terms) > MOST_TERMS:
        return None
    own = [with_fresh_indices(t, y.axes) for t in y.terms]
    terms = tuple([NetworkTerm(a.coefficient * b.coefficient, (*a.factors, *b.factors))
                   for a in x.terms for b in own])
    return SumOfNetworks(axes, terms, x.dtype, x.expansions | y.expansions,
                         precision=most_precise(x.precision, y.precision),
                         deferred=x.deferred | y.deferred)


def squared(x: SumOfNetworks) -> SumOfNetworks | None:
    """x * x: the products of different terms once, doubled."""
    n = len(x.terms)
    if n * (n + 1) // 2 > MOST_TERMS:
        return None
    terms = []
    for i, a in enumerate(x.terms):
        for b in x.terms[i:]:
            other = with_fresh_indices(b, x.axes)
            factor = 1.0 if b is a else 2.0
            terms.append(NetworkTerm(factor * a.coefficient * other.coefficient,
                                     (*a.factors, *other.factors)))
    return SumOfNetworks(x.axes, tuple(terms), x.dtype, x.expansions, is_square=True,
                         precision=x.precision, deferred=x.deferred)
