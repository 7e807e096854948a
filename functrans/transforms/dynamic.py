"""Programs for every size: which axes of a call are symbolic, and which program serves it.

The calls of one function that differ in nothing but sizes are a family. Its first call gets a
program for its sizes. An axis that has another size later becomes symbolic (as do, at once, the
axes that `dynamic_shapes=` names), the function is traced for names, with the sizes at hand as
hints, and the program serves all calls that fit its shapes and keep its guards. Where that is not
possible an axis stays as it is: one that a decision needs, or, where the trace fails, one without
whose name it does not.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from functrans.core.avals import ShapedArray
from functrans.core.bounds import Bound
from functrans.core.dims import Dim, Shape, Size, bounds_of, size_value, substitute_shape
from functrans.core.guards import Guard, Respecialize, SizeScope, sizes_decided
from functrans.core.sizes import shape_names
from functrans.transforms.named_sizes import LEAST, Position

__all__ = ["Attempt", "Family", "SizedShapes", "trace_some_sized"]

HISTORY = 8
"""How many of the shapes that were compiled for tell whether two axes go together."""
MOST_TRIED = 6
"""How many names are tried one by one where a trace for all of them fails: each takes a trace."""


@dataclass(frozen=True)
class SizedShapes:
    """The shapes that a program takes: the names in them, their bounds, and its guards."""

    shapes: tuple[Shape, ...]
    guards: tuple[Guard, ...] = ()

    def serves(self, shapes: Sequence[Shape]) -> bool:
        """Whether a call with these shapes may run the program."""
        sizes = self.sizes(shapes)
        return sizes is not None and self.broken(sizes) is None

    def sizes(self, shapes: Sequence[Shape]) -> dict[str, int] | None:
        """The value of each name; None where the shapes do not fit."""
        sizes: dict[str, int] = {}
        products: list[tuple[Dim, Size]] = []
        for mine, given in zip(self.shapes, shapes, strict=True):
            if len(mine) != len(given):
                return None
            for size, actual in zip(mine, given, strict=True):
                if not isinstance(size, Dim):
                    if size != actual:
                        return None
                elif not isinstance(actual, int):
                    return None
                elif not size.is_name:
                    products.append((size, actual))
                elif sizes.setdefault(size.name, actual) != actual:
                    return None
        if any(size_value(size, sizes) != actual for size, actual in products):
            return None
        return sizes

    def broken(self, sizes: Mapping[str, int]) -> str | Guard | None:
        """The first promise or guard that does not hold for some sizes."""
        bounds = bounds_of(*(n for shape in self.shapes for n in shape))
        for name, bound in bounds.items():
            if name in sizes and not within(sizes[name], bound):
                return f"{name} is {sizes[name]}, and the program is for {bound_text(name, bound)}"
        return next((g for g in self.guards if not g.holds(sizes)), None)


def within(value: int, bound: Bound) -> bool:
    return (value >= (bound.min or 0) and (bound.max is None or value <= bound.max)
            and value % bound.multiple_of == 0)


def bound_text(name: str, bound: Bound) -> str:
    """`2 <= B <= 64, a multiple of 4`."""
    low = f"{bound.min} <= " if bound.min else ""
    high = f" <= {bound.max}" if bound.max is not None else ""
    multiple = f", a multiple of {bound.multiple_of}" if bound.multiple_of > 1 else ""
    return f"{low}{name}{high}{multiple}"


@dataclass(eq=False)
class Family:
    """What is known of the calls of one function that differ in nothing but sizes."""

    programs: list[tuple[SizedShapes, Any]] = field(default_factory=list)
    seen: list[tuple[Shape, ...]] = field(default_factory=list)
    dynamic: set[Position] = field(default_factory=set)
    fixed: set[Position] = field(default_factory=set)

    def program(self, shapes: tuple[Shape, ...]) -> Any:
        """The program that serves a call, the one that served last before others; else None."""
        for k, (sized, program) in enumerate(self.programs):
            if sized.serves(shapes):
                if k:
                    self.programs.insert(0, self.programs.pop(k))
                return program
        return None

    def symbolic(self, shapes: tuple[Shape, ...], named: Mapping[Position, Dim],
                 auto: bool) -> tuple[Shape, ...]:
        """The shapes to trace for: with names where sizes have them, or have changed."""
        names = {p: _at_least_two(d) for p, d in named.items() if p not in self.fixed}
        if auto:
            self._compare(shapes)
            names.update(self._changed(shapes, names, named))
        return tuple([tuple([names.get((leaf, axis), size) for axis, size in enumerate(shape)])
                      for leaf, shape in enumerate(shapes)])

    def _compare(self, shapes: tuple[Shape, ...]) -> None:
        for leaf, axis, size in _axes(shapes):
            others = {old[leaf][axis] for old in self.seen}
            if size >= LEAST and any(n != size and n >= LEAST for n in others):
                self.dynamic.add((leaf, axis))

    def _changed(self, shapes: tuple[Shape, ...], taken: Mapping[Position, Dim],
                 named: Mapping[Position, Dim]) -> dict[Position, Dim]:
        """Names for axes that change; one name for axes that always changed together."""
        used = {n for d in taken.values() for n in d.names()}
        fresh = (name for k in range(len(used) + len(self.dynamic)) for name in (f"s{k}",)
                 if name not in used)
        groups: dict[tuple[Size, ...], Dim] = {}
        found = {}
        for leaf, axis in sorted(self.dynamic - self.fixed - named.keys()):
            size = shapes[leaf][axis]
            if size < LEAST:
                continue
            group = (*(old[leaf][axis] for old in self.seen), size)
            if group not in groups:
                name = next(fresh)
                groups[group] = Dim(name, bounds=((name, Bound(LEAST)),))
            found[leaf, axis] = groups[group]
        return found

    def saw(self, shapes: tuple[Shape, ...]) -> None:
        """A program was made for a call with these shapes."""
        self.seen = [*self.seen, shapes][-HISTORY:]


def _axes(shapes: Sequence[Shape]) -> Iterator[tuple[int, int, Any]]:
    for leaf, shape in enumerate(shapes):
        for axis, size in enumerate(shape):
            yield leaf, axis, size


def _at_least_two(size: Dim) -> Dim:
    """The size with what the choice of programs promises: 0 and 1 are not among its values."""
    known = bounds_of(size)
    bounds = {n: known.get(n, Bound()) for n in size.names()}
    return Dim(size.name, None if size.is_name else size.expr,
               tuple(sorted((n, b if b.min is not None else b._replace(min=LEAST))
                            for n, b in bounds.items())))


@dataclass
class Attempt:
    """What came of tracing for symbolic sizes."""

    shapes: tuple[Shape, ...]
    traced: Any = None
    guards: tuple[Guard, ...] = ()
    merged: tuple[Guard, ...] = ()
    needed: frozenset[Position] = frozenset()
    failure: str = ""


def trace_some_sized(trace: Callable[[Sequence[ShapedArray]], Any], avals: Sequence[ShapedArray],
                     symbolic: tuple[Shape, ...], refusal: Callable[[Any], str]) -> Attempt:
    """Trace for symbolic shapes; where that fails, or is refused, for as many names as can be.

    `refusal` says of a trace why there should be another one, or nothing. What fails for names may
    work for ints.
    """
    def attempt(shapes: tuple[Shape, ...]) -> Attempt:
        try:
            found = trace_sized(trace, avals, shapes)
            failure = "" if found.traced is None else refusal(found.traced)
        except Exception as error:
            found, failure = Attempt(shapes), f"{type(error).__name__}: {error}".partition("\n")[0]
        return replace(found, traced=None, failure=failure) if failure else found

    first = best = attempt(symbolic)
    if not first.failure:
        return first
    names = shape_names(symbolic)
    values = SizedShapes(symbolic).sizes([a.shape for a in avals])
    assert values is not None
    if len(names) == 1 or len(names) > MOST_TRIED or not _succeeds(trace, avals):
        return replace(first, needed=_positions(symbolic, names))
    needed: set[str] = set()
    known = dict(values)
    for name in sorted(names):
        del known[name]
        found = attempt(tuple([substitute_shape(shape, known) for shape in symbolic]))
        if found.traced is not None:
            best = found
            continue
        known[name] = values[name]
        if found.failure:
            needed.add(name)
    return replace(best, needed=best.needed | _positions(symbolic, needed), failure=first.failure)


def _succeeds(trace: Callable[[Sequence[ShapedArray]], Any], avals: Sequence[ShapedArray]) -> bool:
    """Whether ints are traced: an error of the user's is raised by the trace for a call."""
    try:
        trace(avals)
    except Exception:
        return False
    return True


def _positions(symbolic: Sequence[Shape], names: Collection[str]) -> frozenset[Position]:
    """Where sizes have some of these names."""
    return frozenset((leaf, axis) for leaf, axis, n in _axes(symbolic)
                     if isinstance(n, Dim) and not n.names().isdisjoint(names))


def trace_sized(trace: Callable[[Sequence[ShapedArray]], Any], avals: Sequence[ShapedArray],
                symbolic: tuple[Shape, ...]) -> Attempt:
    """Trace for symbolic shapes, with the sizes of a call as hints.

    A decision that makes two sizes one, or needs a value, starts the trace again with fewer names;
    nothing was traced when none is left.
    """
    actual = [a.shape for a in avals]
    merged: list[Guard] = []
    needed: set[Position] = set()
    while shape_names(symbolic):
        hints = SizedShapes(symbolic).sizes(actual)
        if hints is None:  # a name that no axis tells by itself
            return Attempt(tuple(actual), merged=tuple(merged), needed=frozenset(needed))
        scope = SizeScope(hints)
        try:
            with sizes_decided(scope):
                traced = trace([a.with_shape(s) for a, s in zip(avals, symbolic, strict=True)])
            return Attempt(symbolic, traced, scope.guards, tuple(merged), frozenset(needed))
        except Respecialize as again:
            merged.append(again.guard)
            if again.needs_value:
                needed |= _positions(symbolic, again.sizes)
            symbolic = tuple([substitute_shape(shape, again.sizes) for shape in symbolic])
    return Attempt(symbolic, merged=tuple(merged), needed=frozenset(needed))
