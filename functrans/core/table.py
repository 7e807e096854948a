"""Facts of primitives that belong to one part of the system, keyed by the primitives themselves."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Generic, TypeVar, overload

from functrans.core.primitive import Primitive

__all__ = ["Table", "merged"]

V = TypeVar("V")
T = TypeVar("T")


class Table(Mapping[Primitive, V], Generic[V]):
    """An entry for each primitive of a kind, or the reason why one has none.

    `otherwise` says what is true of every primitive without an entry. Where that would hide an
    omission, `without` gives each such primitive and the reason: then primitives of the kind `of`
    (a class, or what is true of them) that are in neither, nor in the table `beside` this one, fail
    a law (`tests/laws/test_tables`).
    """

    __slots__ = ("_entries", "beside", "of", "otherwise", "without")

    def __init__(self, entries: Mapping[Primitive, V], *, otherwise: str = "",
                 without: Mapping[Primitive, str] | None = None,
                 of: type[Primitive] | Callable[[Primitive], bool] = Primitive,
                 beside: Mapping[Primitive, Any] | None = None) -> None:
        for key in (*entries, *(without or ())):
            if not isinstance(key, Primitive):
                raise TypeError(f"a table of primitives has the key {key!r}")
        if bool(otherwise) == (without is not None):
            raise TypeError("a table says what holds otherwise, or which primitives it is without")
        if twice := sorted(p.name for p in (without or {}).keys() & entries.keys()):
            raise TypeError(f"a table has entries for what it is without: {', '.join(twice)}")
        self._entries = dict(entries)
        self.otherwise = otherwise
        self.without = without
        self.of = of
        self.beside = beside or {}

    def __getitem__(self, primitive: Primitive) -> V:
        return self._entries[primitive]

    def __contains__(self, primitive: object) -> bool:
        return primitive in self._entries

    @overload
    def get(self, primitive: Primitive, /) -> V | None: ...
    @overload
    def get(self, primitive: Primitive, /, default: V | T) -> V | T: ...

    def get(self, primitive: Primitive, /, default: Any = None) -> Any:
        return self._entries.get(primitive, default)

    def __iter__(self) -> Iterator[Primitive]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def missing(self, primitives: Iterable[Primitive]) -> list[Primitive]:
        """Those that the table should say something of, and does not."""
        if self.without is None:
            return []
        return [p for p in primitives if p.is_interpreted and self._covers(p) and p not in self
                and p not in self.without and p not in self.beside]

    def _covers(self, primitive: Primitive) -> bool:
        """Whether a primitive is of the kind that the table is of."""
        if isinstance(self.of, type):
            return isinstance(primitive, self.of)
        return self.of(primitive)


def merged(*tables: Mapping[Primitive, V]) -> dict[Primitive, V]:
    """The entries of several tables, none of which has a primitive of another."""
    entries: dict[Primitive, V] = {}
    for table in tables:
        if twice := sorted(p.name for p in entries.keys() & table.keys()):
            raise TypeError(f"two tables have entries for {', '.join(twice)}")
        entries.update(table)
    return entries
