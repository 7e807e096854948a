"""`Record`: a dataclass whose methods are made when the first of them is called.

`dataclass` writes methods as text and compiles it, 0.3 ms a class: loading a compiler of 150
dataclasses took longer than compiling a small program with it, and a process uses a third of them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from threading import RLock
from typing import TYPE_CHECKING, Any, ClassVar, Final, dataclass_transform

__all__ = ["Record"]

_ALONE: Final = RLock()  # a class is made once, also by two threads


class _Fields:
    """`__dataclass_fields__` of a class that is not made yet."""

    def __get__(self, instance: object, owner: type) -> Mapping[str, Any] | None:
        if owner is Record:
            return None  # it has no fields, and is no dataclass to those that are made of it
        _make(owner)
        found: Mapping[str, Any] = vars(owner)["__dataclass_fields__"]
        return found


@dataclass_transform(frozen_default=True, field_specifiers=(dataclasses.field,))
class Record:
    """The base of a dataclass: `class Block(Record, frozen=False): size: int`.

    The arguments `frozen`, `eq` and `repr` are those of `dataclasses.dataclass`; records are frozen
    unless they say otherwise. Functions of `dataclasses` know them.
    """

    if TYPE_CHECKING:
        __dataclass_fields__: ClassVar[dict[str, dataclasses.Field[Any]]]
    else:
        __dataclass_fields__ = _Fields()

    def __init_subclass__(cls, *, frozen: bool = True, eq: bool = True, repr: bool = True,
                          **others: Any) -> None:
        super().__init_subclass__(**others)
        cls._options = {"frozen": frozen, "eq": eq, "repr": repr}
        # what `dataclass` does not write is an object's, not the stand-in below
        as_objects = [] if frozen else ["__setattr__", "__delattr__"]
        as_objects += [] if eq else ["__eq__", "__hash__"]
        as_objects += [] if repr else ["__repr__"]
        for name in as_objects:
            if name not in vars(cls):
                setattr(cls, name, getattr(object, name))
        if eq and not frozen and "__hash__" not in vars(cls):
            cls.__hash__ = None  # type: ignore[assignment]
        if Record not in cls.__bases__:  # it would have the methods of the record it derives from
            _make(cls)

    _options: ClassVar[dict[str, bool] | None]

    if not TYPE_CHECKING:
        def __init__(self, *args, **kwargs):
            _make(type(self))
            type(self).__init__(self, *args, **kwargs)

        # of an instance that was made without a call, by pickle or copy

        def __repr__(self):
            _make(type(self))
            return type(self).__repr__(self)

        def __eq__(self, other):
            _make(type(self))
            return type(self).__eq__(self, other)

        def __hash__(self):
            _make(type(self))
            return type(self).__hash__(self)

        def __setattr__(self, name, value):
            _make(type(self))
            type(self).__setattr__(self, name, value)

        def __delattr__(self, name):
            _make(type(self))
            type(self).__delattr__(self, name)


def _make(cls: type) -> None:
    """Write the methods of a record, unless that is done."""
    with _ALONE:
        options = vars(cls).get("_options")
        if options is None:
            return
        for base in reversed(cls.__mro__[1:]):  # whose fields are read
            if base is not Record and vars(base).get("_options") is not None:
                _make(base)
        dataclasses.dataclass(**options)(cls)
        cls._options = None  # type: ignore[attr-defined]
