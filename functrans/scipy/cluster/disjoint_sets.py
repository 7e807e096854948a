"""Sets without common elements that are merged."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from typing import Any

from functrans.core.errors import ArgumentError
from functrans.core.source import user_source


class DisjointSet:
    """Sets of hashable elements that are merged two at a time, in nearly constant time.

    Source: Tarjan and van Leeuwen, J. ACM 31 (1984): union by size, and halved paths.

    >>> sets = ft.scipy.cluster.hierarchy.DisjointSet([1, 2, 3, "a"])
    >>> sets.merge(1, 2), sets.connected(1, 2), sets.n_subsets, sorted(sets.subset(2))
    (True, True, 3, [1, 2])
    """

    def __init__(self, elements: Iterable[Hashable] | None = None) -> None:
        self.n_subsets = 0
        self._parents: dict[Any, Any] = {}
        self._members: dict[Any, list[Any]] = {}
        self._numbers: dict[Any, int] = {}
        for x in elements or ():
            self.add(x)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._numbers)

    def __len__(self) -> int:
        return len(self._numbers)

    def __contains__(self, x: Any) -> bool:
        return x in self._numbers

    def __getitem__(self, x: Any) -> Any:
        if x not in self._parents:
            raise ArgumentError(f"functrans.scipy.cluster.hierarchy.DisjointSet: {x!r} is in no "
                                "set.", where=user_source(), fix=".add(x)")
        parents = self._parents
        while parents[x] != x:
            parents[x] = parents[parents[x]]
            x = parents[x]
        return x

    def add(self, x: Hashable) -> None:
        """Add an element in a set of its own, if it is new.

        >>> sets = ft.scipy.cluster.hierarchy.DisjointSet()
        >>> sets.add("x")
        >>> len(sets)
        1
        """
        if x not in self._parents:
            self._parents[x], self._members[x] = x, [x]
            self._numbers[x] = len(self._numbers)
            self.n_subsets += 1

    def merge(self, x: Hashable, y: Hashable) -> bool:
        """Make one of the sets of two elements; False where they were in one.

        >>> sets = ft.scipy.cluster.hierarchy.DisjointSet("ab")
        >>> sets.merge("a", "b"), sets.merge("b", "a")
        (True, False)
        """
        x, y = self[x], self[y]
        if x == y:
            return False
        sizes = len(self._members[x]), len(self._members[y])
        # of two equal ones the older root stays
        if sizes[0] < sizes[1] or (sizes[0] == sizes[1] and self._numbers[x] > self._numbers[y]):
            x, y = y, x
        self._parents[y] = x
        self._members[x] += self._members.pop(y)
        self.n_subsets -= 1
        return True

    def connected(self, x: Hashable, y: Hashable) -> bool:
        """Whether two elements are in one set.

        >>> ft.scipy.cluster.hierarchy.DisjointSet("ab").connected("a", "b")
        False
        """
        return bool(self[x] == self[y])

    def subset(self, x: Hashable) -> set[Any]:
        """The set that an element is in.

        >>> ft.scipy.cluster.hierarchy.DisjointSet("ab").subset("a")
        {'a'}
        """
        return set(self._members[self[x]])

    def subset_size(self, x: Hashable) -> int:
        """The size of the set that an element is in.

        >>> ft.scipy.cluster.hierarchy.DisjointSet("ab").subset_size("a")
        1
        """
        return len(self._members[self[x]])

    def subsets(self) -> list[set[Any]]:
        """All sets, in the order of their first elements.

        >>> ft.scipy.cluster.hierarchy.DisjointSet("a").subsets()
        [{'a'}]
        """
        found: dict[Any, set[Any]] = {}
        for x in self._numbers:
            found.setdefault(self[x], set()).add(x)
        return list(found.values())
