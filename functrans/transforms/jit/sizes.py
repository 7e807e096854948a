"""The symbolic sizes of a jitted function: which axes have names, and which program serves a call.

`NamedSizes` is what `dynamic_shapes=` says. The calls of one function that differ in nothing but
sizes are a `Family`. Its first call gets a program for its sizes. An axis that has another size
later becomes symbolic (as do, at once, the named ones), the function is traced for names, with the
sizes at hand as hints, and the program serves all calls that fit its shapes and keep its guards.
Where that is not possible an axis stays as it is: one that a decision needs, or, where the trace
fails, one without whose name it does not.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import Any

from functrans.core.avals import ShapedArray
from functrans.core.bounds import Bound
from functrans.core.dims import Dim, Shape, Size, bounds_of, size_value, substitute_shape
from functrans.core.errors import ArgumentError, shown
from functrans.core.guards import Guard, Respecialize, SizeScope, sizes_decided
from functrans.core.keypath import DictKey, GetAttrKey, SequenceKey
from functrans.core.record import Record
from functrans.core.size_text import parse_size
from functrans.core.sizes import learn_sizes, shape_names
from functrans.core.source import user_source
from functrans.core.tree import PyTreeDef, tree_paths
from functrans.transforms.flat import argument_name
from functrans.transforms.static import StaticArguments

__all__ = ["Attempt", "Family", "NamedSizes", "SizedShapes", "trace_some_sized"]

Position = tuple[int, int]
"""A leaf of the arguments and an axis of it."""

LEAST = 2
"""Smaller sizes have programs of their own: an axis of size 1 broadcasts, one of 0 is empty."""
HISTORY = 8
"""How many of the shapes that were compiled for tell whether two axes go together."""
MOST_TRIED = 6
"""How many names are tried one by one where a trace for all of them fails: each takes a trace."""


# --- what `dynamic_shapes=` names


class NamedSizes:
    """The sizes that `dynamic_shapes` names, for every structure of arguments."""

    def __init__(self, specs: Any, static: StaticArguments) -> None:
        self._static = static
        self._specs = _by_argument(specs, static)
        self._known: dict[str, Dim] = {}
        for size in _sizes_in(self._specs):
            if isinstance(size, Dim) and size.is_name and size.bounds:
                self._known[size.name] = size
        self._positions: dict[PyTreeDef, dict[Position, Dim]] = {}

    def __bool__(self) -> bool:
        return bool(self._specs)

    def positions(self, tree: PyTreeDef) -> dict[Position, Dim]:
        """The named size of each axis that has one."""
        found = self._positions.get(tree)
        if found is None:
            found = {}
            self._check_keys(tree)
            for leaf, path in enumerate(tree_paths(tree)):
                for axis, size in self._axes(path).items():
                    found[leaf, axis] = size
            self._positions[tree] = found
        return found

    def _axes(self, path: Any) -> dict[int, Dim]:
        part, first, *rest = path
        key: Any = first.key if isinstance(first, DictKey) else first.idx
        if str(part) == "[0]":
            key = self._parameter(key)
        spec = self._specs.get(key)
        for step in rest:
            if spec is None or _is_axes(spec):
                break
            spec = _child(spec, step)
        if spec is None:
            return {}
        if not _is_axes(spec):
            raise ArgumentError(
                f"jit: dynamic_shapes gives {shown(spec)} for {self.argument(path)}, "
                "which is an array.", fix='{0: "B"}, the names of its axes')
        return {axis: self._size(size) for axis, size in spec.items() if size is not None}

    def _check_keys(self, tree: PyTreeDef) -> None:
        """Raise ArgumentError where a tree of names has a key that the argument has not."""
        whole: Any = tree.unflatten(range(tree.num_leaves))
        args, kwargs = whole
        given: dict[Any, Any] = {self._parameter(i): arg for i, arg in enumerate(args)} | kwargs
        for key, spec in self._specs.items():
            if key in given:
                _check_keys(spec, given[key], f"argument {key}")

    def _parameter(self, index: int) -> Any:
        """The name of a positional argument, counted without the static ones."""
        static, parameters = self._static.argnums, self._static.parameters
        dynamic = [i for i in range(index + 1 + len(static)) if i not in static][index]
        if parameters is not None and dynamic < len(parameters):
            return parameters[dynamic]
        return dynamic

    def _size(self, size: Any) -> Dim:
        found = parse_size(size, self._known) if isinstance(size, str) else size
        if isinstance(found, Dim) and found.is_name:
            found = self._known.get(found.name, found)
        if not isinstance(found, Dim):
            raise ArgumentError(f"jit: dynamic_shapes names an axis {shown(size)}.",
                                why="a name, an expression of names or a Dim belongs there.",
                                fix='{0: "B"}')
        return found

    def of_call(self, name: str, tree: PyTreeDef, shapes: Sequence[Shape]) -> dict[Position, Dim]:
        """The named axes of a call, without those whose sizes have a program of their own.

        Raises ArgumentError where arguments disagree on a name, or a promise is broken.
        """
        named = self.positions(tree)
        sizes: dict[str, int] = {}
        told: dict[str, Position] = {}
        for position in sorted(named, key=lambda p: not named[p].is_name):  # names before products
            leaf, axis = position
            size, shape = named[position], shapes[leaf]
            if not -len(shape) <= axis < len(shape):
                raise ArgumentError(
                    f"{name}: dynamic_shapes names axis {axis} of {leaf_name(tree, leaf, self)}, "
                    f"which has {len(shape)} ax{'is' if len(shape) == 1 else 'es'}.",
                    where=user_source(), fix=_axes_fix(len(shape)))
            actual = shape[axis]
            if not isinstance(actual, int):
                return {}  # traced for sizes that have names already
            learn_sizes(sizes, (size,), (actual,))
            for n in size.names() & sizes.keys():
                told.setdefault(n, position)
            if size_value(size, sizes) != actual:
                raise self._disagreement(name, tree, position, size, actual, sizes, told)
        bounds = bounds_of(*named.values())
        for n, value in sizes.items():
            self._check_bound(name, n, value, bounds.get(n, Bound()), tree, told[n])
        small = {n: value for n, value in sizes.items()
                 if value < LEAST and bounds.get(n, Bound()).min is None}
        result = {}
        for (leaf, axis), size in named.items():
            free = size.substitute(small) if small else size
            if isinstance(free, Dim):
                result[leaf, axis % len(shapes[leaf])] = free
        return result

    def _disagreement(self, name: str, tree: PyTreeDef, position: Position, size: Dim, actual: int,
                      sizes: Mapping[str, int], told: Mapping[str, Position]) -> ArgumentError:
        where = leaf_name(tree, position[0], self)
        n = next((n for n in sorted(size.names()) if n in told), None)
        if n is None or told[n] == position:
            return ArgumentError(f"{name}: axis {position[1]} of {where} has size {actual}, which "
                                 f"is not of the form {size}.", where=user_source(),
                                 fix='another size, or a name of its own for the axis: "B"')
        first, axis = told[n]
        wanted = "" if size.is_name else f", so {size} is {size_value(size, sizes)}"
        return ArgumentError(
            f"{name}: the size {n} is {sizes[n]} in {leaf_name(tree, first, self)} (axis {axis})"
            f"{wanted}, and {where} (axis {position[1]}) has {actual}.", where=user_source(),
            why=f"dynamic_shapes says that both are {size}." if size.is_name else
            f"dynamic_shapes says that the second is {size}.",
            fix="pass arrays whose sizes agree, or give the axes two names")

    def _check_bound(self, name: str, n: str, value: int, bound: Bound, tree: PyTreeDef,
                     position: Position) -> None:
        broken = ""
        if bound.min is not None and value < bound.min:
            broken = f"at least {bound.min}"
        elif bound.max is not None and value > bound.max:
            broken = f"at most {bound.max}"
        elif value % bound.multiple_of:
            broken = f"a multiple of {bound.multiple_of}"
        if broken:
            raise ArgumentError(
                f"{name}: the size {n} is {value} in {leaf_name(tree, position[0], self)} "
                f"(axis {position[1]}), and functrans.dim promised that it is {broken}.",
                where=user_source(),
                fix=f'another size, or other bounds in functrans.dim("{n}")')

    def argument(self, path: Any) -> str:
        """`argument x at ['w']`, for the path of a leaf of (positional, keyword) arguments."""
        part, first, *rest = path
        if str(part) == "[0]" and isinstance(first, SequenceKey):
            known = self._parameter(first.idx)
            if isinstance(known, str):
                return argument_name((SequenceKey(1), DictKey(known), *rest),
                                     True).removeprefix("keyword ")
        return argument_name(path, True)


def leaf_name(tree: PyTreeDef, leaf: int, named: NamedSizes) -> str:
    """The argument that a leaf is, or is in, in the user's words."""
    return named.argument(tree_paths(tree)[leaf])


def _by_argument(specs: Any, static: StaticArguments) -> dict[Any, Any]:
    """The specification of each argument, by the name of its parameter where that is known."""
    if specs is None:
        return {}
    if isinstance(specs, (tuple, list)):
        specs = dict(enumerate(specs))
    if not isinstance(specs, Mapping):
        raise ArgumentError(f"jit: dynamic_shapes is a dict from arguments to the names of their "
                            f"sizes, got {shown(specs)}.", fix='dynamic_shapes={"x": {0: "B"}}; '
                            'functrans.config.dynamic_shapes says whether other sizes get names')
    names, found = static.parameters, {}
    for key, spec in specs.items():
        if isinstance(key, int) and names is not None and -len(names) <= key < len(names):
            key = names[key]
        elif isinstance(key, int) and names is not None and not static.variadic:
            raise ArgumentError(f"jit: dynamic_shapes names argument {key}, and {static.name} has "
                                f"{len(names)} positional parameter{'s' * (len(names) != 1)}.")
        elif isinstance(key, str) and not static.has_parameter(key):
            raise ArgumentError(f"jit: {static.name} has no parameter {key!r}, which "
                                "dynamic_shapes names.", where=user_source(),
                                fix=f"its parameters are {', '.join(names)}" if names else "")
        if key in static.argnames or (names is not None and key in names
                                      and names.index(key) in static.argnums):
            raise ArgumentError(f"jit: dynamic_shapes names {key}, which is a static argument of "
                                f"{static.name}.", fix="name arrays: static arguments have no axes")
        found[key] = spec
    return found


def _axes_fix(count: int) -> str:
    return f"an axis from 0 to {count - 1}" if count else "leave it out: a number has no axes"


def _is_axes(spec: Any) -> bool:
    """True of `{0: "B"}`: a dict from axes to sizes, and no dict of more such dicts."""
    return isinstance(spec, Mapping) and all(
        type(k) is int and (v is None or isinstance(v, (str, Dim, int))) for k, v in spec.items())


def _check_keys(spec: Any, node: Any, what: str) -> None:
    if isinstance(spec, Mapping) and isinstance(node, Mapping) and not _is_axes(spec):
        for key, inner in spec.items():
            if key not in node:
                raise ArgumentError(
                    f"jit: dynamic_shapes names sizes of {key!r} in {what}, which is not there.",
                    where=user_source(), fix=f"its keys are {', '.join(map(repr, node))}")
            _check_keys(inner, node[key], f"{what} at [{key!r}]")


def _child(spec: Any, step: Any) -> Any:
    if isinstance(spec, Mapping):
        return spec.get(step.key) if isinstance(step, DictKey) else None
    if isinstance(spec, (tuple, list)) and isinstance(step, SequenceKey):
        return spec[step.idx] if step.idx < len(spec) else None
    return getattr(spec, step.name, None) if isinstance(step, GetAttrKey) else None


def _sizes_in(spec: Any) -> list[Size]:
    if isinstance(spec, Mapping):
        return [s for v in spec.values() for s in _sizes_in(v)]
    if isinstance(spec, (tuple, list)):
        return [s for v in spec for s in _sizes_in(v)]
    return [spec] if isinstance(spec, Dim) else []


# --- programs for all sizes


class SizedShapes(Record):
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


class Family(Record, frozen=False, eq=False):
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


class Attempt(Record, frozen=False):
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
