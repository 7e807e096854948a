"""Key paths: where in a pytree a leaf is, as keys that print like the code that reaches it."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

import optree

__all__ = [
    "DictKey",
    "FlattenedIndexKey",
    "GetAttrKey",
    "KeyEntry",
    "KeyPath",
    "SequenceKey",
    "keystr",
    "to_key_path",
]


@dataclass(frozen=True, slots=True)
class SequenceKey:
    """An element of a tuple, list or deque.

    >>> ft.tree_util.tree_flatten_with_path([7])[0][0][0]
    (SequenceKey(idx=0),)
    """

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx!r}]"


@dataclass(frozen=True, slots=True)
class DictKey:
    """An entry of a dictionary.

    >>> ft.tree_util.tree_flatten_with_path({"a": 1})[0][0][0]
    (DictKey(key='a'),)
    """

    key: Any

    def __str__(self) -> str:
        return f"[{self.key!r}]"


@dataclass(frozen=True, slots=True)
class GetAttrKey:
    """An attribute: of a namedtuple, a dataclass or another registered class.

    >>> str(ft.tree_util.GetAttrKey("weight"))
    '.weight'
    """

    name: str

    def __str__(self) -> str:
        return f".{self.name}"


@dataclass(frozen=True, slots=True)
class FlattenedIndexKey:
    """A child of a registered class that does not name its children.

    >>> str(ft.tree_util.FlattenedIndexKey(0))
    '[<flat index 0>]'
    """

    key: int

    def __str__(self) -> str:
        return f"[<flat index {self.key}>]"


KeyEntry: TypeAlias = SequenceKey | DictKey | GetAttrKey | FlattenedIndexKey | Any
"""A key of a path: one of these, or what a registered class names its children by."""

KeyPath: TypeAlias = tuple[Any, ...]


class NamedKey(optree.PyTreeEntry):
    """An entry of a class registered with keys: `entry` is the key itself."""

    def codify(self, node: str = "") -> str:
        return f"{node}{self.entry}"


def to_key_path(entries: Iterable[optree.PyTreeEntry]) -> KeyPath:
    """Turn optree's accessor entries into keys."""
    return tuple(_to_key(entry) for entry in entries)


def _to_key(entry: optree.PyTreeEntry) -> Any:
    match entry:
        case NamedKey():
            return entry.entry
        case optree.MappingEntry():
            return DictKey(entry.entry)
        case optree.NamedTupleEntry() | optree.StructSequenceEntry():
            return GetAttrKey(entry.field)
        case optree.SequenceEntry():
            return SequenceKey(entry.entry)
        case optree.GetAttrEntry():
            return GetAttrKey(entry.entry)
        case _:
            return FlattenedIndexKey(entry.entry)


def keystr(keys: Iterable[Any], *, simple: bool = False, separator: str = "") -> str:
    """A key path as text; `simple` leaves out brackets and dots, `separator` joins the keys.

    >>> path = (GetAttrKey("layers"), SequenceKey(0), DictKey("w"))
    >>> keystr(path), keystr(path, simple=True, separator="/")
    (".layers[0]['w']", 'layers/0/w')
    """
    return separator.join(_simple(key) if simple else str(key) for key in keys)


def _simple(key: Any) -> str:
    match key:
        case SequenceKey(value) | DictKey(value) | GetAttrKey(value) | FlattenedIndexKey(value):
            return str(value)
        case _:
            return str(key)
