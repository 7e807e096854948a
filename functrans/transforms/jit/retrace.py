"""`explain_retrace`: why a jitted function was compiled each time, in words."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

from functrans import _runtime
from functrans.core.avals import ShapedArray, shape_text
from functrans.core.config import Config
from functrans.core.dims import Dim, Size
from functrans.core.errors import ArgumentError, shown
from functrans.core.guards import Guard
from functrans.core.record import Record
from functrans.core.sizes import shape_names
from functrans.core.source import Source, describe_source
from functrans.core.tree import PyTreeDef, tree_paths
from functrans.transforms.jit.sizes import SizedShapes

__all__ = ["Compilation", "Retraces", "explain_retrace", "reasons_of"]


class Compilation(Record, eq=False):
    """One trace of a function: what it was called with, and what its program serves."""

    tree: PyTreeDef
    fixed: Any
    avals: tuple[ShapedArray, ...]
    axes: tuple[Any, ...]
    settings: Config
    sized: SizedShapes
    naming: Callable[[Any], str]
    source: Source | None
    merged: tuple[Guard, ...] = ()
    failure: str = ""

    @cached_property
    def names(self) -> list[str]:
        """Which argument each leaf is; made for those who ask, since a trace has better to do."""
        return [self.naming(path) for path in tree_paths(self.tree)]

    @property
    def takes(self) -> str:
        """`x: float32[s0,784], y: int32[s0]`."""
        return ", ".join(
            f"{name.removeprefix('argument ')}: {a.dtype.name}[{shape_text(shape)}]"
            for name, a, shape in zip(self.names, self.avals, self.sized.shapes, strict=True))


class Retraces(Record):
    """The compilations of a function, and for each why no earlier program served the call."""

    name: str
    compilations: tuple[Compilation, ...]
    reasons: tuple[tuple[str, ...], ...]

    def __len__(self) -> int:
        return len(self.compilations)

    def __str__(self) -> str:
        count = len(self.compilations)
        lines = [f"{self.name} was compiled {'once' if count == 1 else f'{count} times'}."
                 if count else f"{self.name} was not compiled yet."]
        for k, (c, reasons) in enumerate(zip(self.compilations, self.reasons, strict=True), 1):
            where = describe_source(c.source)
            lines.append(f"{k}. for {c.takes or 'no arrays'}{where and ', called '}{where}")
            lines += [f"   - {reason}" for reason in reasons]
            lines += [f"   - specialized: {guard}" for guard in c.merged]
            if c.failure:
                kind = "for the other" if shape_names(c.sized.shapes) else "for all"
                lines.append(f"   - no program {kind} sizes: {c.failure}")
            lines += [f"   - it is for {guard}" for guard in c.sized.guards]
        return "\n".join(lines)

    __repr__ = __str__


def explain_retrace(fun: Callable[..., Any]) -> Retraces:
    """Why `fun`, a jitted function, was compiled each time: a table of words to be printed.

    For each compilation it says what differed from the programs there were (the structure of the
    arguments, a dtype, a weak type, a static argument, a size, a guard with the line that asked for
    it), what it was specialised for, and which guards its program has.
    Raises ArgumentError for what is no jitted function.

    >>> import functrans as ft
    >>> double = ft.jit(lambda x: x * 2)
    >>> _ = double(ft.numpy.ones(3)), double(ft.numpy.ones(4)), double(ft.numpy.ones(5))
    >>> len(ft.explain_retrace(double))
    2
    >>> ft.explain_retrace(double).reasons[1]
    ('axis 0 of argument x is 4, and was 3: the axis is symbolic now (s0)',)
    """
    if not isinstance(fun, _runtime.JitFunction):
        raise ArgumentError(f"explain_retrace takes a jitted function, got {shown(fun)}.",
                            fix="functrans.jit(fun)")
    calls = vars(fun)["calls"]
    history = tuple(calls.traces.history)
    return Retraces(calls.jitted.name, history,
                    tuple(reasons_of(c, history[:k]) for k, c in enumerate(history)))


def reasons_of(one: Compilation, before: Sequence[Compilation]) -> tuple[str, ...]:
    """The fewest differences to one of the programs there were, of which later ones are nearer."""
    if not before:
        return ("the first call",)
    found = [(k, _differences(one, other, k + 1)) for k, other in enumerate(before)]
    # a difference of the first kinds hides all later ones
    return min(found, key=lambda f: (f[1][0], len(f[1][1]), -f[0]))[1][1]


def _differences(one: Compilation, other: Compilation, number: int) -> tuple[int, tuple[str, ...]]:
    """How far the comparison did not get, and in what the two differ there."""
    for rank, compare in enumerate(_COMPARISONS):
        found = tuple(compare(one, other, number))
        if found:
            return len(_COMPARISONS) - rank, found
    return 0, ("closures or settings that changed: the same arguments were traced anew",)


def _structure(one: Compilation, other: Compilation, number: int) -> list[str]:
    if one.tree == other.tree:
        return []
    return [f"the structure of the arguments is {one.tree}, and in program {number} {other.tree}"]


def _statics(one: Compilation, other: Compilation, number: int) -> list[str]:
    if one.fixed == other.fixed:
        return []
    mine, theirs = (dict(c.fixed[1]) if c.fixed else {} for c in (one, other))
    return [f"the static argument {k} is {_static(mine, k)}, and in program {number} "
            f"{_static(theirs, k)}" for k in {**mine, **theirs}
            if mine.get(k) != theirs.get(k)] or ["the number of arguments differs"]


def _static(values: dict[Any, Any], key: Any) -> str:
    return shown(values[key].value) if key in values else "missing"


def _dtypes(one: Compilation, other: Compilation, number: int) -> list[str]:
    return [f"{name} is {a.dtype}, and in program {number} {b.dtype}"
            for name, a, b in _leaves(one, other) if a.dtype != b.dtype]


def _weak_types(one: Compilation, other: Compilation, number: int) -> list[str]:
    words = {True: "weakly typed, as a Python number", False: "strongly typed"}
    return [f"{name} is {words[a.weak_type]}, and in program {number} {words[b.weak_type]}"
            for name, a, b in _leaves(one, other) if a.weak_type != b.weak_type]


def _ranks(one: Compilation, other: Compilation, number: int) -> list[str]:
    return [f"{name} has {a.ndim} axes, and in program {number} {b.ndim}"
            for name, a, b in _leaves(one, other) if a.ndim != b.ndim]


def _settings(one: Compilation, other: Compilation, number: int) -> list[str]:
    found = [f"the setting {f.name} is {getattr(one.settings, f.name)!r}, and in program {number} "
             f"{getattr(other.settings, f.name)!r}" for f in dataclasses.fields(Config)
             if f.compare and getattr(one.settings, f.name) != getattr(other.settings, f.name)]
    return found + ([f"the named axes are {one.axes}, and in program {number} {other.axes}"]
                    if one.axes != other.axes else [])


def _sizes(one: Compilation, other: Compilation, number: int) -> list[str]:
    found = []
    names: dict[str, tuple[Size, str]] = {}
    for leaf, (name, a, b) in enumerate(_leaves(one, other)):
        for axis, (size, wanted) in enumerate(zip(a.shape, other.sized.shapes[leaf], strict=True)):
            where = f"axis {axis} of {name}"
            if isinstance(wanted, Dim):
                first, place = names.setdefault(str(wanted), (size, where))
                if first != size:
                    found.append(f"{where} is {size} and {place} is {first}, and in program "
                                 f"{number} both are {wanted}")
            elif size != wanted:
                now = one.sized.shapes[leaf][axis]
                becomes = f": the axis is symbolic now ({now})" if isinstance(now, Dim) else ""
                was = "was" if b.shape[axis] == wanted and becomes else f"in program {number}"
                found.append(f"{where} is {size}, and {was} {wanted}{becomes}")
    return found


def _guards(one: Compilation, other: Compilation, number: int) -> list[str]:
    sizes = other.sized.sizes([a.shape for a in one.avals])
    broken = other.sized.broken(sizes) if sizes is not None else None
    if broken is None or sizes is None:
        return []
    if isinstance(broken, str):
        return [broken]
    values = ", ".join(f"{n} = {sizes[n]}" for n in sorted(
        {n for side in (broken.left, broken.right) if isinstance(side, Dim) for n in side.names()}))
    return [f"program {number} is for {broken}; now {values}"]


_COMPARISONS: tuple[Callable[[Compilation, Compilation, int], list[str]], ...] = (
    _structure, _ranks, _statics, _dtypes, _weak_types, _settings, _sizes, _guards)


def _leaves(one: Compilation, other: Compilation) -> list[tuple[str, ShapedArray, ShapedArray]]:
    return list(zip(one.names, one.avals, other.avals, strict=True))
