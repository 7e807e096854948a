"""`dynamic_shapes=`: which sizes of a function's arguments have names, and what these promise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from functrans.core.bounds import Bound
from functrans.core.dims import Dim, Shape, Size, bounds_of, size_value
from functrans.core.errors import ArgumentError, shown
from functrans.core.keypath import DictKey, GetAttrKey, SequenceKey
from functrans.core.size_text import parse_size
from functrans.core.sizes import learn_sizes
from functrans.core.source import user_source
from functrans.core.tree import PyTreeDef, tree_paths
from functrans.transforms.flat import argument_name
from functrans.transforms.static import StaticArguments

__all__ = ["NamedSizes", "Position", "leaf_name"]

Position = tuple[int, int]
"""A leaf of the arguments and an axis of it."""

LEAST = 2
"""Smaller sizes have programs of their own: an axis of size 1 broadcasts, one of 0 is empty."""


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
