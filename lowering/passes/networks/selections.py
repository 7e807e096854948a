"""Choices and parts leave a network: what is summed over them becomes a gather, a slice or a
comparison, and what remains of them scatters or pads the result.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from functrans.core.avals import ShapedArray
from functrans.core.jaxpr import Atom
from functrans.lowering.passes.movement import broadcast, reshape, transpose
from functrans.lowering.passes.networks.cost_estimate import magnitude
from functrans.lowering.passes.networks.network import (
    Choice,
    Derived,
    Factor,
    Group,
    Names,
    NetworkArray,
    NetworkIndex,
    NetworkTerm,
    Part,
    Splits,
    flat,
    matched,
)
from functrans.lowering.passes.rewrite import Rewriter
from functrans.primitives.arithmetic import max_p, min_p
from functrans.primitives.compare import and_p, eq_p, ge_p, lt_p
from functrans.primitives.convert import convert_element_type_p
from functrans.primitives.index import gather_p
from functrans.primitives.index_layout import GatherDimensionNumbers, GatherScatterMode
from functrans.primitives.shape import reshape_p, slice_p

__all__ = ["Dense", "atom_of", "flattened", "selected"]


class Dense(NamedTuple):
    """A network of arrays alone.

    Its result is placed by `placed`, in this order, into zeros, and then multiplied with `after`,
    which vary over axes of the result alone.
    """

    coefficient: float
    arrays: tuple[NetworkArray, ...]
    placed: tuple[Choice | Part, ...] = ()
    after: tuple[NetworkArray, ...] = ()


ZERO = Dense(0.0, ())


class UnsupportedSelection(Exception):
    """Two selections that do not fit together."""


def selected(term: NetworkTerm, outputs: Group, dtype: np.dtype[np.generic]) -> Dense | None:
    """A product without selections that are summed; None where one cannot be taken away."""
    if all(isinstance(f, NetworkArray) for f in term.factors):
        return Dense(term.coefficient, term.factors)  # type: ignore[arg-type]
    try:
        return _Selecting(term, outputs, dtype).result()
    except UnsupportedSelection:
        return None


class _Selecting:
    """The factors of a term while its selections are taken away, one after the other."""

    def __init__(self, term: NetworkTerm, outputs: Group, dtype: np.dtype[np.generic]) -> None:
        self.coefficient = term.coefficient
        self.factors = list(term.factors)
        self.outputs = set(outputs)
        self.dtype = dtype
        self.placed: list[Choice | Part] = []
        placing = {f.index if isinstance(f, Choice) else f.outer for f in term.factors
                   if not isinstance(f, NetworkArray)} & self.outputs
        # a gather and a scatter at the same places would do no more
        self.after = tuple([f for f in self.factors if isinstance(f, NetworkArray)
                            and placing & set(f.indices) and self.outputs >= set(f.indices)])
        self.factors = [f for f in self.factors if f not in self.after]

    def result(self) -> Dense:
        while True:
            f = self._next()
            if f is None:
                arrays = tuple([f for f in self.factors if isinstance(f, NetworkArray)])
                return Dense(self.coefficient, arrays, tuple(self.placed[::-1]), self.after)
            self.factors = [other for other in self.factors if other is not f]
            if isinstance(f, Part):
                if not self._take_part(f):
                    return ZERO
            elif isinstance(f, Choice):
                self._take_choice(f)

    def _next(self) -> Part | Choice | None:
        """A selection that is inside of no other; parts first, as what is in one may be chosen."""
        parts = [f for f in self.factors if isinstance(f, Part)]
        if parts:
            inside = {i for f in parts for i in f.inner}
            found = next((f for f in parts if f.outer not in inside), None)
            if found is None:
                raise UnsupportedSelection
            return found
        return next((f for f in self.factors if isinstance(f, Choice)), None)

    def _take_part(self, part: Part) -> bool:
        names: list[Names] = []
        for k, f in enumerate(self.factors):
            if part.outer not in f.indices:
                continue
            if isinstance(f, NetworkArray):
                self.factors[k] = _slice(f, part)
            elif isinstance(f, Choice) or part.outer in f.inner:
                raise UnsupportedSelection
            else:
                same = _same_part(f, part)
                if same is None:
                    return False
                names.append(same)
        self.factors = [f for f in self.factors
                        if not (isinstance(f, Part) and f.outer is part.outer)]
        for mapping in names:
            if mapping.keys() & self.outputs:
                raise UnsupportedSelection
            news = [f.renamed(mapping) for f in self.factors]
            if None in news or mapping.keys() & {i for f in self.after for i in f.indices}:
                raise UnsupportedSelection
            self.factors = [f for f in news if f is not None]
        self._leave(part, part.outer, part.inner)
        return True

    def _take_choice(self, choice: Choice) -> None:
        seen = choice.clips
        news: list[Factor] = []
        for f in self.factors:
            if choice.index in f.indices:
                seen = True
                if isinstance(f, Part):
                    raise UnsupportedSelection
                if isinstance(f, Choice):
                    if f.index is not choice.index:
                        raise UnsupportedSelection
                    if f.places is choice.places and f.where == choice.where:
                        seen = choice.clips
                        continue
                    news.append(_equal(f, choice, self.dtype))
                else:
                    news.append(_gathered(f, choice))
            else:
                news.append(f)
        self.factors = news
        if not seen and choice.index not in self.outputs:
            self.factors.append(_inside(choice, self.dtype))
        self._leave(choice, choice.index, choice.where)

    def _leave(self, selection: Choice | Part, index: NetworkIndex, inner: Group) -> None:
        """Place the result by a selection, or sum it: it is 1 once for each of `inner`."""
        if index in self.outputs:
            self.placed.append(selection)
            self.outputs.update(inner)
            return
        left = {i for f in self.factors for i in f.indices}
        for i in inner:
            if i not in left and i not in self.outputs:
                if not isinstance(i.size, int):
                    raise UnsupportedSelection
                self.coefficient *= i.size


# ------------------------------------------------------------------------------- parts


def _same_part(f: Part, part: Part) -> Names | None:
    """The names by which two parts of one axis are the same; None where they have nothing in
    common."""
    if (f.start, f.step) != (part.start, part.step):
        a, b = sorted((f, part), key=lambda p: p.start)
        if a.start + a.step * (a.length - 1) < b.start:
            return None
        raise UnsupportedSelection
    splits = Splits()
    pairs = matched(f.inner, part.inner, splits)
    if pairs is None or splits.names:
        raise UnsupportedSelection
    return {a: (b,) for a, b in pairs}


def _slice(f: NetworkArray, part: Part) -> NetworkArray:
    """The array where the outer index is in the part."""
    own = f.indices
    axis = own.index(part.outer)
    shape = tuple([i.size if i is not part.outer else part.length for i in own])
    limit = part.start + part.step * (part.length - 1) + 1

    def make(r: Rewriter) -> Atom:
        x = flattened(r, f)
        at = [(0, n, 1) for n in x.aval.shape]
        at[axis] = (part.start, limit, part.step)
        starts, limits, steps = zip(*at, strict=True)
        return r(slice_p, x, start_indices=starts, limit_indices=limits, strides=steps)

    derived = Derived(ShapedArray(shape, f.source.aval.dtype), 0.0, 0.0, 0.0, make)
    return NetworkArray(derived, tuple([part.inner if i is part.outer else (i,) for i in own]))


# ------------------------------------------------------------------------------- choices


def _gathered(f: NetworkArray, choice: Choice) -> NetworkArray:
    """The array at the places of a choice, in place of one of its indices."""
    own = list(f.indices)
    shared = [i for i in own if i in choice.where]
    rest = [i for i in own if i not in choice.where and i is not choice.index]
    batch = [i for i in choice.where if i in shared]
    new = [i for i in choice.where if i not in shared]
    axes = (*batch, *new, *rest)
    aval = ShapedArray(tuple([i.size for i in axes]), f.source.aval.dtype)

    def make(r: Rewriter) -> Atom:
        x = flattened(r, f)
        x = transpose(r, x, [own.index(i) for i in (*batch, choice.index, *rest)])
        places = _places(r, choice)
        places = transpose(r, places, [choice.where.index(i) for i in (*batch, *new)])
        places = reshape(r, places, (*places.aval.shape, 1))
        nb, nn = len(batch), len(new)
        numbers = GatherDimensionNumbers(
            tuple(range(nb + nn, nb + nn + len(rest))), (nb,), (nb,),
            tuple(range(nb)), tuple(range(nb)))
        return r(gather_p, x, places, dimension_numbers=numbers,
                 slice_sizes=(*[1] * (nb + 1), *[i.size for i in rest]), fill_value=0.0,
                 indices_are_sorted=False, unique_indices=False,
                 mode=GatherScatterMode.CLIP if choice.clips else GatherScatterMode.FILL_OR_DROP)

    size = magnitude(aval.shape)
    derived = Derived(aval, size, 0.0, 2 * aval.dtype.itemsize * size, make)
    return NetworkArray(derived, tuple([(i,) for i in axes]))


def _places(r: Rewriter, choice: Choice) -> Atom:
    """The places with an axis for each index that they vary over."""
    return reshape(r, choice.places, tuple([i.size for i in choice.where]))


def _clipped(r: Rewriter, choice: Choice) -> Atom:
    places = _places(r, choice)
    if not choice.clips:
        return places
    top = choice.index.size
    if not isinstance(top, int):
        raise UnsupportedSelection
    places = r(max_p, places, _integer(r, 0, places))
    return r(min_p, places, _integer(r, top - 1, places))


def _integer(r: Rewriter, value: int, like: Atom) -> Atom:
    return r.scalar(value, like.aval.dtype)


def _equal(f: Choice, choice: Choice, dtype: np.dtype[np.generic]) -> NetworkArray:
    """1 where two choices are the same, and in bounds."""
    axes = tuple(dict.fromkeys((*f.where, *choice.where)))
    if not isinstance(choice.index.size, int):
        raise UnsupportedSelection
    shape = tuple([i.size for i in axes])

    def make(r: Rewriter) -> Atom:
        sides = []
        for c in (f, choice):
            x, at = _clipped(r, c), [axes.index(i) for i in c.where]
            x = transpose(r, x, sorted(range(len(at)), key=at.__getitem__))
            sides.append(broadcast(r, x, shape, sorted(at)))
        same = r(eq_p, *sides)
        if not f.clips and not choice.clips:
            same = r(and_p, same, _in_bounds(r, sides[0], choice))
        return r(convert_element_type_p, same, new_dtype=dtype)

    size = magnitude(shape)
    derived = Derived(ShapedArray(shape, dtype), 2 * size, 0.0, dtype.itemsize * size, make)
    return NetworkArray(derived, tuple([(i,) for i in axes]))


def _in_bounds(r: Rewriter, places: Atom, choice: Choice) -> Atom:
    low = r(ge_p, places, _integer(r, 0, places))
    return r(and_p, low, r(lt_p, places, _integer(r, choice.index.size, places)))  # type: ignore[arg-type]


def _inside(choice: Choice, dtype: np.dtype[np.generic]) -> NetworkArray:
    """1 where a choice is in bounds."""
    shape = tuple([i.size for i in choice.where])
    size = magnitude(shape)

    def make(r: Rewriter) -> Atom:
        inside = _in_bounds(r, _places(r, choice), choice)
        return r(convert_element_type_p, inside, new_dtype=dtype)

    derived = Derived(ShapedArray(shape, dtype), 2 * size, 0.0, dtype.itemsize * size, make)
    return NetworkArray(derived, tuple([(i,) for i in choice.where]))


# ------------------------------------------------------------------------------- arrays


def atom_of(r: Rewriter, array: NetworkArray) -> Atom:
    """The array of a factor, made if it is derived."""
    source = array.source
    return source.make(r) if isinstance(source, Derived) else source


def flattened(r: Rewriter, array: NetworkArray) -> Atom:
    """The array of a factor with an axis for each index."""
    x = atom_of(r, array)
    shape = tuple([i.size for i in flat(array.axes)])
    return x if x.aval.shape == shape else r(reshape_p, x, new_sizes=shape)


