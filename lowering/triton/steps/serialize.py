"""Steps of programs as plain values: tuples of text and numbers, to be kept and read again.

Equations that the host evaluates have no plain form: they are Python. Whatever is read is checked,
since the file may have been changed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, Final

from functrans.lowering.triton.steps.spec import (
    BufferSide,
    CollectiveSteps,
    CopyStep,
    DoubleBufferedSteps,
    Launch,
    LibraryStep,
    Pointer,
    RepeatedSteps,
    Step,
    WaitStep,
)

__all__ = ["Plain", "deserialize_steps", "library_functions", "serialize_steps"]

Plain = Any
"""Text, numbers, and tuples or lists of such."""

KINDS: Final = ("input", "output", "constant", "arena", "tickets")
MOST: Final = 1 << 62


def serialize_steps(steps: Sequence[Step]) -> tuple[Plain, ...] | None:
    """Steps as plain values; None where one of them is a Python function."""
    fields = [_serialize_step(step) for step in steps]
    return None if None in fields else tuple(fields)


def deserialize_steps(plain: Plain) -> list[Step]:
    """The steps that `serialize_steps` wrote. Raises ValueError for anything else."""
    return [_step(p) for p in _items(plain)]


def library_functions(steps: Iterable[Step]) -> set[str]:
    """The functions of libraries that steps call, also inside of loops."""
    found: set[str] = set()
    for step in steps:
        if isinstance(step, LibraryStep):
            found.add(step.function)
        elif isinstance(step, CollectiveSteps):
            found |= library_functions(step.parts)
        elif isinstance(step, RepeatedSteps):
            found |= library_functions(step.steps)
        elif isinstance(step, DoubleBufferedSteps):
            for side in step.sides:
                found |= library_functions((*side.holds, *side.body, *side.ends))
    return found


def _serialize_step(step: Step) -> tuple[Plain, ...] | None:
    if isinstance(step, CopyStep):
        return ("copy", _serialize_pointer(step.target), _serialize_pointer(step.source),
                step.nbytes)
    if isinstance(step, CollectiveSteps):
        return ("collectives", step.number, serialize_steps(step.parts))
    if isinstance(step, WaitStep):
        return ("wait", step.number)
    if isinstance(step, LibraryStep):
        places = [tuple(map(_serialize_pointer, at)) for at in (step.inputs, step.outputs)]
        return ("library", step.function, step.numbers, *places)
    if isinstance(step, Launch):
        arguments = tuple([_serialize_pointer(x) if isinstance(x, Pointer) else x
                           for x in step.arguments])
        if not all(type(x) in (tuple, int) or (type(x) is float and math.isfinite(x))
                   for x in arguments):
            return None
        return ("launch", step.module, step.kernel, tuple(step.grid), arguments, step.types,
                step.divisible, step.warps, step.stages, step.fuses)
    if isinstance(step, RepeatedSteps):
        inner = serialize_steps(step.steps)
        return None if inner is None else ("rounds", step.count, inner)
    if isinstance(step, DoubleBufferedSteps):
        sides = tuple([_serialize_side(side) for side in step.sides])
        return None if None in sides else ("turns", step.ahead, sides)
    return None


def _serialize_side(side: BufferSide) -> tuple[Plain, ...] | None:
    parts = [serialize_steps(part) for part in (side.holds, side.body, side.ends)]
    return None if None in parts else (_serialize_pointer(side.flag), *parts)


def _serialize_pointer(at: Pointer) -> tuple[str, int, int, int]:
    return (at.kind, at.index, at.offset, at.stride)


def _step(plain: Plain) -> Step:
    name, *fields = _items(plain)
    if name == "copy":
        target, source, nbytes = _items(fields, 3)
        return CopyStep(_place(target), _place(source), _count(nbytes))
    if name == "library":
        function, numbers, ins, outs = _items(fields, 4)
        return LibraryStep(None, tuple(map(_place, _items(ins))), tuple(map(_place, _items(outs))),
                           _of(str, function), tuple([_of(int, n) for n in _items(numbers)]))
    if name == "collectives":
        number, steps = _items(fields, 2)
        parts = deserialize_steps(steps)
        collectives = [p for p in parts if isinstance(p, LibraryStep)]
        if len(collectives) < len(parts):
            raise ValueError("another step stands among collectives")
        return CollectiveSteps(_count(number), tuple(collectives))
    if name == "wait":
        return WaitStep(_count(*_items(fields, 1)))
    if name == "launch":
        return _launch(fields)
    if name == "rounds":
        count, steps = _items(fields, 2)
        return RepeatedSteps(tuple(deserialize_steps(steps)), _count(count))
    if name == "turns":
        ahead, sides = _items(fields, 2)
        first, second = map(_side, _items(sides, 2))
        return DoubleBufferedSteps((first, second), _of(bool, ahead))
    raise ValueError(f"there is no step {name!r:.50}")


def _launch(fields: Plain) -> Launch:
    module, kernel, grid, arguments, types, divisible, warps, stages, fuses = _items(fields, 9)
    x, y, z = map(_count, _items(grid, 3))
    values = tuple([a if type(a) in (int, float) else _place(a) for a in _items(arguments)])
    kinds = tuple([_of(str, t) for t in _items(types)])
    multiples = tuple([_of(bool, d) for d in _items(divisible)])
    if not len(values) == len(kinds) == len(multiples):
        raise ValueError("a launch has other arguments than types")
    return Launch(_count(module), _of(str, kernel), (x, y, z), values, kinds, multiples,
                  _count(warps), _count(stages), _of(bool, fuses))


def _side(plain: Plain) -> BufferSide:
    flag, *parts = _items(plain, 4)
    holds, body, ends = [tuple(deserialize_steps(part)) for part in parts]
    return BufferSide(_place(flag), holds, body, ends)


def _place(plain: Plain) -> Pointer:
    kind, index, offset, stride = _items(plain, 4)
    if kind not in KINDS:
        raise ValueError(f"there is no place {kind!r:.50}")
    return Pointer(kind, _count(index), _count(offset), _of(int, stride))


def _items(plain: Plain, count: int | None = None) -> Sequence[Plain]:
    if not isinstance(plain, (tuple, list)) or (count is not None and len(plain) != count):
        raise ValueError(f"a list{'' if count is None else f' of {count}'} is missing")
    return plain


def _count(plain: Plain) -> int:
    if not 0 <= _of(int, plain) < MOST:
        raise ValueError(f"{plain} is no count")
    return int(plain)


def _of(kind: type, plain: Plain) -> Any:
    if type(plain) is not kind:
        raise ValueError(f"{plain!r:.50} stands where a {kind.__name__} must be")
    return plain
