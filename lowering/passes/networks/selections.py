"""Selections (one-hot factors and slices) are eliminated from a network: a sum over one becomes a
gather, a slice or a comparison; one that the result varies along scatters or pads the result.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from functrans.core.avals import ShapedArray
from functrans.core.jaxpr import Atom
from functrans.lowering.passes.movement import broadcast, reshape, transpose
from functrans.lowering.passes.networks.cost_estimate import magnitude
from functrans.lowering.passes.networks.network import (
    Derived,
    Factor,
    Group,
    Names,
    NetworkArray,
    NetworkIndex,
    NetworkTerm,
    OneHot,
    Splits,
    StridedSlice,
    flat,
    matched,
)
from functrans.lowering.passes.rewrite import Rewriter
from functrans.primitives.arithmetic import max_p, min_p
from functrans.primitives.compare import and_p, eq_p, ge_p, lt_p
from functrans.primitives.convert import convert_element_type_p
from functrans.primitives.index import gather_p
from functrans.primitives.index_layout import GatherDimensionNumbers, GatherScatterMode
from functrans.primitives.shape import concatenate_p, reshape_p, slice_p

__all__ = ["DenseNetwork", "atom_of", "flattened", "index_vectors", "mode_of",
           "without_selections"]


class DenseNetwork(NamedTuple):
    """A network of arrays alone.

    Its result is padded or scattered into zeros by `placed`, in this order, and then multiplied by
    `after`, which vary over axes of the result alone.
    """

    coefficient: float
    arrays: tuple[NetworkArray, ...]
    placed: tuple[OneHot | StridedSlice, ...] = ()
    after: tuple[NetworkArray, ...] = ()


ZERO = DenseNetwork(0.0, ())


class UnsupportedSelection(Exception):
    """Two selections that do not fit together."""


def without_selections(term: NetworkTerm, outputs: Group,
                       dtype: np.dtype[np.generic]) -> DenseNetwork | None:
    """A product without selections that are summed; None where one cannot be eliminated."""
    if all(isinstance(f, NetworkArray) for f in term.factors):
        return DenseNetwork(term.coefficient, term.factors)  # type: ignore[arg-type]
    try:
        return _Elimination(term, outputs, dtype).result()
    except UnsupportedSelection:
        return None


class _Elimination:
    """The factors of a term while its selections are eliminated, one after the other."""

    def __init__(self, term: NetworkTerm, outputs: Group, dtype: np.dtype[np.generic]) -> None:
        self.coefficient = term.coefficient
        self.factors = list(term.factors)
        self.outputs = set(outputs)
        self.dtype = dtype
        self.placed: list[OneHot | StridedSlice] = []
        placing = {f.outer for f in term.factors
                   if not isinstance(f, NetworkArray)} & self.outputs
        # a gather and a scatter at the same places would do no more
        self.after = tuple([f for f in self.factors if isinstance(f, NetworkArray)
                            and placing & set(f.indices) and self.outputs >= set(f.indices)])
        self.factors = [f for f in self.factors if f not in self.after]

    def result(self) -> DenseNetwork:
        while True:
            f = self._next()
            if f is None:
                arrays = tuple([f for f in self.factors if isinstance(f, NetworkArray)])
                return DenseNetwork(self.coefficient, arrays, tuple(self.placed[::-1]), self.after)
            self.factors = [other for other in self.factors if other is not f]
            if isinstance(f, StridedSlice):
                if not self._eliminate_slice(f):
                    return ZERO
            elif isinstance(f, OneHot):
                self._eliminate_one_hot(f)

    def _next(self) -> StridedSlice | OneHot | None:
        """A selection whose index is inside of no other: slices first."""
        slices = [f for f in self.factors if isinstance(f, StridedSlice)]
        if slices:
            inside = {i for f in slices for i in f.inner}
            found = next((f for f in slices if f.outer not in inside), None)
            if found is None:
                raise UnsupportedSelection
            return found
        return next((f for f in self.factors if isinstance(f, OneHot)), None)

    def _eliminate_slice(self, strided: StridedSlice) -> bool:
        names: list[Names] = []
        for k, f in enumerate(self.factors):
            if strided.outer not in f.indices:
                continue
            if isinstance(f, NetworkArray):
                self.factors[k] = _slice(f, strided)
            elif isinstance(f, OneHot) or strided.outer in f.inner:
                raise UnsupportedSelection
            else:
                same = _same_slice(f, strided)
                if same is None:
                    return False
                names.append(same)
        self.factors = [f for f in self.factors
                        if not (isinstance(f, StridedSlice) and f.outer is strided.outer)]
        for mapping in names:
            if mapping.keys() & self.outputs:
                raise UnsupportedSelection
            news = [f.renamed(mapping) for f in self.factors]
            if None in news or mapping.keys() & {i for f in self.after for i in f.indices}:
                raise UnsupportedSelection
            self.factors = [f for f in news if f is not None]
        self._leave(strided, strided.outer, strided.inner)
        return True

    def _eliminate_one_hot(self, one_hot: OneHot) -> None:
        """With those that select from the same arrays: never a gather along one axis alone."""
        together, found = [one_hot], 0
        while found != len(together):
            found = len(together)
            outers = {h.outer for h in together}
            arrays = {i for f in self.factors if isinstance(f, NetworkArray)
                      and outers & set(f.indices) for i in f.indices}
            together += [h for h in self.factors if isinstance(h, OneHot) and h.outer in arrays
                         and h.outer not in outers and h.clips == one_hot.clips]
            together = list({h.outer: h for h in together}.values())
        if {h.outer for h in together} & {i for h in together for i in h.where}:
            raise UnsupportedSelection
        self.factors = [f for f in self.factors if not any(f is h for h in together)]
        for h in together:
            self._match(h)
        self.factors = [_gathered(f, together) if isinstance(f, NetworkArray)
                        and any(h.outer in f.indices for h in together) else f
                        for f in self.factors]
        for h in together:
            self._leave(h, h.outer, h.where)

    def _match(self, one_hot: OneHot) -> None:
        """Other one-hot factors of the same index become comparisons of places."""
        seen = one_hot.clips
        news: list[Factor] = []
        for f in self.factors:
            if one_hot.outer not in f.indices:
                news.append(f)
                continue
            seen = True
            if isinstance(f, NetworkArray):
                news.append(f)
            elif isinstance(f, StridedSlice) or f.outer is not one_hot.outer:
                raise UnsupportedSelection
            elif f.places is one_hot.places and f.where == one_hot.where:
                seen = one_hot.clips
            else:
                news.append(_equal(f, one_hot, self.dtype))
        self.factors = news
        if not seen and one_hot.outer not in self.outputs:
            self.factors.append(_inside(one_hot, self.dtype))

    def _leave(self, selection: OneHot | StridedSlice, index: NetworkIndex, inner: Group) -> None:
        """Pad or scatter the result by a selection, or sum it: it is 1 once for each of `inner`."""
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


# ------------------------------------------------------------------------------- slices


def _same_slice(f: StridedSlice, strided: StridedSlice) -> Names | None:
    """The names by which two slices of an axis are the same; None where they are disjoint."""
    if (f.start, f.step) != (strided.start, strided.step):
        a, b = sorted((f, strided), key=lambda p: p.start)
        if a.start + a.step * (a.length - 1) < b.start:
            return None
        raise UnsupportedSelection
    splits = Splits()
    pairs = matched(f.inner, strided.inner, splits)
    if pairs is None or splits.names:
        raise UnsupportedSelection
    return {a: (b,) for a, b in pairs}


def _slice(f: NetworkArray, strided: StridedSlice) -> NetworkArray:
    """The array restricted to a slice of the outer index."""
    own = f.indices
    axis = own.index(strided.outer)
    shape = tuple([i.size if i is not strided.outer else strided.length for i in own])
    limit = strided.start + strided.step * (strided.length - 1) + 1

    def make(r: Rewriter) -> Atom:
        x = flattened(r, f)
        at = [(0, n, 1) for n in x.aval.shape]
        at[axis] = (strided.start, limit, strided.step)
        starts, limits, steps = zip(*at, strict=True)
        return r(slice_p, x, start_indices=starts, limit_indices=limits, strides=steps)

    derived = Derived(ShapedArray(shape, f.source.aval.dtype), 0.0, 0.0, 0.0, make)
    return NetworkArray(derived,
                        tuple([strided.inner if i is strided.outer else (i,) for i in own]))


# ------------------------------------------------------------------------------- one-hot factors


def _gathered(f: NetworkArray, one_hots: Sequence[OneHot]) -> NetworkArray:
    """The array gathered at the places of one-hot factors, in place of some of its indices."""
    own = list(f.indices)
    chosen = sorted([h for h in one_hots if h.outer in own], key=lambda h: own.index(h.outer))
    outers = [h.outer for h in chosen]
    where = list(dict.fromkeys(i for h in chosen for i in h.where))
    rest = [i for i in own if i not in where and i not in outers]
    batch = [i for i in where if i in own]
    new = [i for i in where if i not in own]
    axes = (*batch, *new, *rest)
    aval = ShapedArray(tuple([i.size for i in axes]), f.source.aval.dtype)

    def make(r: Rewriter) -> Atom:
        x = flattened(r, f)
        x = transpose(r, x, [own.index(i) for i in (*batch, *outers, *rest)])
        places = index_vectors(r, chosen, (*batch, *new))
        nb, nn, nc = len(batch), len(new), len(chosen)
        along = tuple(range(nb, nb + nc))
        numbers = GatherDimensionNumbers(
            tuple(range(nb + nn, nb + nn + len(rest))), along, along,
            tuple(range(nb)), tuple(range(nb)))
        return r(gather_p, x, places, dimension_numbers=numbers,
                 slice_sizes=(*[1] * (nb + nc), *[i.size for i in rest]), fill_value=0.0,
                 indices_are_sorted=False, unique_indices=False, mode=mode_of(chosen))

    size = magnitude(aval.shape)
    derived = Derived(aval, size, 0.0, 2 * aval.dtype.itemsize * size, make)
    return NetworkArray(derived, tuple([(i,) for i in axes]))


def index_vectors(r: Rewriter, one_hots: Sequence[OneHot], where: Group) -> Atom:
    """The places of one-hot factors side by side, for each of `where`."""
    sides = []
    wide = np.result_type(*[h.places.aval.dtype for h in one_hots])
    for h in one_hots:
        own = [i for i in where if i in h.where]
        x = transpose(r, _places(r, h), [h.where.index(i) for i in own])
        x = broadcast(r, x, tuple([i.size for i in where]), [where.index(i) for i in own])
        if x.aval.dtype != wide:
            x = r(convert_element_type_p, x, new_dtype=wide)
        sides.append(reshape(r, x, (*x.aval.shape, 1)))
    return sides[0] if len(sides) == 1 else r(concatenate_p, *sides, dimension=len(where))


def mode_of(one_hots: Sequence[OneHot]) -> GatherScatterMode:
    """What becomes of places out of bounds, which is the same for all."""
    return GatherScatterMode.CLIP if one_hots[0].clips else GatherScatterMode.FILL_OR_DROP


def _places(r: Rewriter, one_hot: OneHot) -> Atom:
    """The places with an axis for each index that they vary over."""
    return reshape(r, one_hot.places, tuple([i.size for i in one_hot.where]))


def _clipped(r: Rewriter, one_hot: OneHot) -> Atom:
    places = _places(r, one_hot)
    if not one_hot.clips:
        return places
    top = one_hot.outer.size
    if not isinstance(top, int):
        raise UnsupportedSelection
    places = r(max_p, places, _integer(r, 0, places))
    return r(min_p, places, _integer(r, top - 1, places))


def _integer(r: Rewriter, value: int, like: Atom) -> Atom:
    return r.scalar(value, like.aval.dtype)


def _equal(f: OneHot, one_hot: OneHot, dtype: np.dtype[np.generic]) -> NetworkArray:
    """1 where two one-hot factors select the same place, which is in bounds."""
    axes = tuple(dict.fromkeys((*f.where, *one_hot.where)))
    if not isinstance(one_hot.outer.size, int):
        raise UnsupportedSelection
    shape = tuple([i.size for i in axes])

    def make(r: Rewriter) -> Atom:
        sides = []
        for c in (f, one_hot):
            x, at = _clipped(r, c), [axes.index(i) for i in c.where]
            x = transpose(r, x, sorted(range(len(at)), key=at.__getitem__))
            sides.append(broadcast(r, x, shape, sorted(at)))
        same = r(eq_p, *sides)
        if not f.clips and not one_hot.clips:
            same = r(and_p, same, _in_bounds(r, sides[0], one_hot))
        return r(convert_element_type_p, same, new_dtype=dtype)

    size = magnitude(shape)
    derived = Derived(ShapedArray(shape, dtype), 2 * size, 0.0, dtype.itemsize * size, make)
    return NetworkArray(derived, tuple([(i,) for i in axes]))


def _in_bounds(r: Rewriter, places: Atom, one_hot: OneHot) -> Atom:
    low = r(ge_p, places, _integer(r, 0, places))
    return r(and_p, low, r(lt_p, places, _integer(r, one_hot.outer.size, places)))  # type: ignore[arg-type]


def _inside(one_hot: OneHot, dtype: np.dtype[np.generic]) -> NetworkArray:
    """1 where the place of a one-hot factor is in bounds."""
    if not isinstance(one_hot.outer.size, int):
        raise UnsupportedSelection
    shape = tuple([i.size for i in one_hot.where])
    size = magnitude(shape)

    def make(r: Rewriter) -> Atom:
        inside = _in_bounds(r, _places(r, one_hot), one_hot)
        return r(convert_element_type_p, inside, new_dtype=dtype)

    derived = Derived(ShapedArray(shape, dtype), 2 * size, 0.0, dtype.itemsize * size, make)
    return NetworkArray(derived, tuple([(i,) for i in one_hot.where]))


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


