"""Kinds of static parameters: how values of each are written to a file, and read from one.

A kind turns a value into a plain one and back, and lets nothing else through: what a file says ends
up in generated code.
"""

from __future__ import annotations

import enum
import re
import string
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import fields
from typing import Any, Final, Protocol

import numpy as np

from functrans import checkpoint_policies
from functrans.core.dims import Size
from functrans.core.dtypes import KEY_DTYPES, as_dtype, float0
from functrans.core.errors import DTypeError, ExportError
from functrans.core.jaxpr import Jaxpr
from functrans.core.precision import Precision
from functrans.export.plain import damaged
from functrans.primitives.base import Constant
from functrans.primitives.conv import ConvDimensionNumbers
from functrans.primitives.fft import FftType
from functrans.primitives.index_layout import (
    GatherDimensionNumbers,
    GatherScatterMode,
    ScatterDimensionNumbers,
)
from functrans.transforms.custom_call import LazyJaxpr, known_jaxpr

__all__ = ["ARRAY", "CONV_NUMBERS", "DTYPE", "EXPONENT", "FFT_TYPE", "FLAG", "GATHER_NUMBERS",
           "INDEX_MODE", "INT", "MESSAGE", "NUMBER", "POLICY", "PRECISION", "PROGRAM", "PROGRAMS",
           "RULE", "SCATTER_NUMBERS", "SIZES", "TEXT", "TEXTS", "Kind", "ParameterReader",
           "ParameterWriter", "dtype_named", "name_of_dtype", "number_from", "number_of",
           "text_from"]


class ParameterWriter(Protocol):
    """Who collects what the parameters of a program refer to."""

    def size(self, size: Size) -> Any: ...
    def array(self, value: Any) -> int: ...
    def jaxpr(self, jaxpr: Jaxpr, order: int) -> int: ...


class ParameterReader(Protocol):
    """Who has what a file's parameters refer to."""

    def size(self, plain: Any) -> Size: ...
    def array(self, plain: Any) -> Any: ...
    def jaxpr(self, plain: Any) -> Jaxpr: ...


class Kind(Protocol):
    """How values of one kind are written; `order` counts the derivatives still to be written."""

    def write(self, value: Any, to: ParameterWriter, order: int) -> Any: ...
    def read(self, plain: Any, of: ParameterReader) -> Any: ...


class _ExactKind:
    """Values that are plain already, of one type; integers from `least` on."""

    def __init__(self, kind: type, least: int = 0) -> None:
        self.kind = kind
        self.least = least

    def write(self, value: Any, to: ParameterWriter, order: int) -> Any:
        return self.kind(value)

    def read(self, plain: Any, of: ParameterReader) -> Any:
        if type(plain) is not self.kind:
            raise damaged(f"{plain!r:.50} stands where a {self.kind.__name__} must be")
        if isinstance(plain, int) and not self.least <= plain < 2**63:
            raise damaged(f"the integer {plain} is out of range")
        return text_from(plain) if self.kind is str else plain


class _SizesKind:
    """Sizes, None, and tuples of such: shapes, axes, pads, dimension numbers."""

    def write(self, value: Any, to: ParameterWriter, order: int) -> Any:
        if value is None:
            return None
        if isinstance(value, (tuple, list)):
            return ["t", *[self.write(v, to, order) for v in value]]
        return to.size(value)

    def read(self, plain: Any, of: ParameterReader) -> Any:
        if plain is None:
            return None
        if isinstance(plain, list) and plain and plain[0] == "t":
            return tuple([self.read(p, of) for p in plain[1:]])
        return of.size(plain)


class _ConvNumbersKind:
    def write(self, value: Any, to: ParameterWriter, order: int) -> Any:
        return SIZES.write(tuple(value), to, order)

    def read(self, plain: Any, of: ParameterReader) -> Any:
        return ConvDimensionNumbers(*_fields(SIZES.read(plain, of), 3))


class _TextsKind:
    """A tuple of texts."""

    def write(self, value: Any, to: ParameterWriter, order: int) -> Any:
        return list(map(text_from, value))

    def read(self, plain: Any, of: ParameterReader) -> Any:
        return tuple(map(text_from, _fields(plain)))


class _MessageKind:
    """A message with `{name}` for values: names alone, which format no more than numbers."""

    def write(self, value: Any, to: ParameterWriter, order: int) -> Any:
        try:
            return self.read(value, to)
        except ExportError:
            raise ExportError(f"the message {value!r:.200} of a check cannot be exported.",
                              why="in a file it is one line, with names alone in braces."
                              ) from None

    def read(self, plain: Any, of: Any) -> Any:
        message = text_from(plain)
        for name, spec in _fields_of(message):
            if name and not (name.isidentifier() and _SPEC.fullmatch(spec or "")):
                raise damaged("a message asks for more than the values of names")
        return message


def _fields_of(message: str) -> Iterator[tuple[str | None, str | None]]:
    """What is in the braces of a message, up to where it cannot be parsed: so it is filled in."""
    with suppress(ValueError):
        for _, name, spec, _ in string.Formatter().parse(message):
            yield name, spec


_SPEC: Final = re.compile(r"[-+]?[0-9]?[0-9]?(\.[0-9][0-9]?)?[a-zA-Z%]?")


class _DTypeKind:
    def write(self, value: Any, to: ParameterWriter, order: int) -> Any:
        return None if value is None else name_of_dtype(np.dtype(value))

    def read(self, plain: Any, of: ParameterReader) -> Any:
        return None if plain is None else dtype_named(plain)


class _NumberKind:
    """Numbers, Python's and NumPy's, which differ in how they promote."""

    def write(self, value: Any, to: ParameterWriter, order: int) -> Any:
        return value if value is None else number_of(value)

    def read(self, plain: Any, of: ParameterReader) -> Any:
        return plain if plain is None else number_from(plain)


class _EnumKind:
    """A member of an enumeration, by name; `trusted` says what becomes of a member."""

    def __init__(self, members: type[enum.Enum],
                 trusted: Callable[[Any], Any] = lambda member: member) -> None:
        self.members = members
        self.trusted = trusted

    def write(self, value: Any, to: ParameterWriter, order: int) -> Any:
        return None if value is None else value.name

    def read(self, plain: Any, of: ParameterReader) -> Any:
        if plain is None:
            return None
        if not isinstance(plain, str) or plain not in self.members.__members__:
            raise damaged(f"there is no {self.members.__name__} {plain!r:.50}")
        return self.trusted(self.members[plain])


def _checked_mode(mode: GatherScatterMode) -> GatherScatterMode:
    """Files promise nothing: an index out of bounds would read memory of others."""
    return GatherScatterMode.CLIP if mode is GatherScatterMode.PROMISE_IN_BOUNDS else mode


class _IndexNumbersKind:
    """Dimension numbers of gather or scatter: five tuples of axes."""

    def __init__(self, numbers: type[GatherDimensionNumbers | ScatterDimensionNumbers]) -> None:
        self.numbers = numbers

    def write(self, value: Any, to: ParameterWriter, order: int) -> Any:
        return [list(getattr(value, f.name)) for f in fields(self.numbers)]

    def read(self, plain: Any, of: ParameterReader) -> Any:
        return self.numbers(*[tuple(map(_axis, _fields(p))) for p in _fields(plain, 5)])


class _ArrayKind:
    def write(self, value: Any, to: ParameterWriter, order: int) -> Any:
        return to.array(value.value)

    def read(self, plain: Any, of: ParameterReader) -> Any:
        return Constant(of.array(plain))


class _ProgramKind:
    def write(self, value: Any, to: ParameterWriter, order: int) -> Any:
        return to.jaxpr(value, order)

    def read(self, plain: Any, of: ParameterReader) -> Any:
        return of.jaxpr(plain)


class _ProgramsKind:
    def write(self, value: Any, to: ParameterWriter, order: int) -> Any:
        return [to.jaxpr(v, order) for v in value]

    def read(self, plain: Any, of: ParameterReader) -> Any:
        if not _fields(plain):
            raise damaged("a cond has no branches")
        return tuple([of.jaxpr(p) for p in plain])


class _RuleKind:
    """A rule of custom_jvp or custom_vjp: there while derivatives are to be written."""

    def write(self, value: Any, to: ParameterWriter, order: int) -> Any:
        return to.jaxpr(known_jaxpr(value), order - 1) if order > 0 else None

    def read(self, plain: Any, of: ParameterReader) -> Any:
        return LazyJaxpr(_no_rule) if plain is None else of.jaxpr(plain)


def _no_rule() -> Jaxpr:
    raise ExportError("the program was exported without this derivative of a function with a rule "
                      "of its own (custom_jvp, custom_vjp).",
                      fix="functrans.export.export(f, vjp_order=1)(...), or a higher order")


class _PolicyKind:
    """A policy of checkpoint: one of ours, by name."""

    def write(self, value: Any, to: ParameterWriter, order: int) -> Any:
        if value is None:
            return None
        if value in _POLICIES.values():
            return [value.__name__]
        for name, make in _NAMED_POLICIES.items():
            if getattr(value, "__code__", None) is make("").__code__:
                return [name, *value.__closure__[0].cell_contents]
        raise ExportError(f"the checkpoint policy {value!r} cannot be exported.",
                          why="a file has the policies of functrans.checkpoint_policies alone.")

    def read(self, plain: Any, of: ParameterReader) -> Any:
        if plain is None:
            return None
        name, *names = map(text_from, _fields(plain) or [None])
        if name in _NAMED_POLICIES:
            return _NAMED_POLICIES[name](*names)
        if name not in _POLICIES or names:
            raise damaged("there is no such policy of checkpoint")
        return _POLICIES[name]


_POLICIES = {p.__name__: p for p in (
    checkpoint_policies.everything_saveable, checkpoint_policies.nothing_saveable,
    checkpoint_policies.dots_saveable, checkpoint_policies.dots_with_no_batch_dims_saveable)}
_NAMED_POLICIES = {p.__name__: p for p in (checkpoint_policies.save_only_these_names,
                                           checkpoint_policies.save_any_names_but_these)}


def _fields(plain: Any, count: int | None = None) -> Any:
    if not isinstance(plain, (list, tuple)) or (count is not None and len(plain) != count):
        raise damaged(f"a list{'' if count is None else f' of {count}'} is missing")
    return plain


def _axis(plain: Any) -> int:
    if type(plain) is not int or not 0 <= plain < 64:
        raise damaged("an axis is out of range")
    return plain


def text_from(plain: Any) -> str:
    """Text of one line that prints; raises ExportError for anything else."""
    if not isinstance(plain, str) or len(plain) > 1000 or not plain.isprintable():
        raise damaged("a name is no text of one line")
    return plain


def name_of_dtype(dtype: np.dtype[Any]) -> str:
    """What a file calls a dtype."""
    return "float0" if dtype == float0 else dtype.name


def dtype_named(plain: Any) -> np.dtype[Any]:
    """The dtype of that name; raises ExportError where there is none."""
    if plain == "float0":
        return float0
    try:
        for dtype in KEY_DTYPES:
            if plain == dtype.name:
                return dtype
        if isinstance(plain, str) and as_dtype(plain).name == plain:
            return as_dtype(plain)
    except DTypeError:
        pass
    raise damaged(f"there is no dtype {plain!r:.50}")


def number_of(value: Any) -> Any:
    """A number as a plain value: NumPy's are a list of dtype and value."""
    if isinstance(value, np.ndarray):
        value = value[()]
    if not isinstance(value, np.generic):
        return value
    item = value.item()
    if not isinstance(item, (bool, int, float, complex)):
        item = float(value)
    return [name_of_dtype(value.dtype), item]


def number_from(plain: Any) -> Any:
    """The number that `number_of` wrote; raises ExportError for anything else."""
    name = None
    if isinstance(plain, list) and len(plain) == 2:
        name, plain = plain
    if not isinstance(plain, (bool, int, float, complex)):
        raise damaged(f"{plain!r:.50} stands where a number must be")
    if name is None:
        return plain
    try:
        with np.errstate(all="ignore"):
            return dtype_named(name).type(plain)
    except (TypeError, ValueError, OverflowError):
        raise damaged(f"{plain} is no number of dtype {name}") from None


FLAG, INT, TEXT, SIZES = _ExactKind(bool), _ExactKind(int), _ExactKind(str), _SizesKind()
DTYPE, NUMBER, PROGRAM, RULE = _DTypeKind(), _NumberKind(), _ProgramKind(), _RuleKind()
PRECISION = _EnumKind(Precision)
EXPONENT = _ExactKind(int, -2**63)
FFT_TYPE, INDEX_MODE = _EnumKind(FftType), _EnumKind(GatherScatterMode, _checked_mode)
CONV_NUMBERS = _ConvNumbersKind()
GATHER_NUMBERS = _IndexNumbersKind(GatherDimensionNumbers)
SCATTER_NUMBERS = _IndexNumbersKind(ScatterDimensionNumbers)
ARRAY, PROGRAMS, POLICY = _ArrayKind(), _ProgramsKind(), _PolicyKind()
MESSAGE, TEXTS = _MessageKind(), _TextsKind()
