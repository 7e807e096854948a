"""Groups whose collectives the runtime computes, whatever connects the members."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functrans._runtime import Communicator
from functrans.core import dtypes
from functrans.core.communicator import OPS, TYPES, Broken, Group, MeshMember, ReduceOp
from functrans.core.mesh import Mesh

__all__ = ["CommunicatorGroup", "CommunicatorMember"]


class CommunicatorGroup(Group):
    """A member of a group whose collectives are those of a communicator of the runtime."""

    def __init__(self, communicator: Communicator, index: int, size: int) -> None:
        self.communicator = communicator
        self.index = index
        self.size = size

    def all_reduce(self, x: Any, out: Any, op: ReduceOp) -> None:
        _reduced(x, out, lambda a, b, number: self.communicator.all_reduce(
            self.index, a, b, OPS[op], number))

    def reduce_scatter(self, x: Any, out: Any, op: ReduceOp) -> None:
        _reduced(x, out, lambda a, b, number: self.communicator.reduce_scatter(
            self.index, a, b, OPS[op], number))

    def all_gather(self, x: Any, out: Any) -> None:
        _whole(self.communicator.all_gather(self.index, _plain(x), out))

    def all_to_all(self, x: Any, out: Any) -> None:
        _whole(self.communicator.all_to_all(self.index, _plain(x), out))

    def permute(self, x: Any, out: Any, pairs: Sequence[tuple[int, int]]) -> None:
        source = next((s for s, d in pairs if d == self.index), -1)
        destination = next((d for s, d in pairs if s == self.index), -1)
        _whole(self.communicator.permute(self.index, _plain(x), out, source, destination))

    def broadcast(self, x: Any, out: Any, source: int) -> None:
        _whole(self.communicator.broadcast(self.index, _plain(x), out, source))

    def barrier(self) -> None:
        _whole(self.communicator.barrier(self.index))


def _plain(x: Any) -> np.ndarray[Any, Any]:
    return np.ascontiguousarray(x).reshape(np.shape(x))


def _reduced(x: Any, out: Any, reduce: Callable[[Any, Any, int], bool]) -> None:
    number = TYPES.get(out.dtype)
    if number is not None:
        _whole(reduce(_plain(x), out, number))
        return
    # floats of 8 bits, integers of 4 and complex numbers of two halves
    wide = dtypes.wide_dtype(out.dtype)
    found = np.empty(out.shape, wide)
    _whole(reduce(_plain(x.astype(wide)), found, TYPES[wide]))
    out[...] = found.astype(out.dtype)


def _whole(done: bool) -> None:
    if not done:
        raise Broken


class CommunicatorMember(MeshMember):
    """A rank whose groups have a communicator each, made when they are first asked for."""

    def __init__(self, mesh: Mesh, rank: int) -> None:
        self.mesh = mesh
        self.rank = rank
        self._groups: dict[tuple[str, ...], CommunicatorGroup] = {}

    @abstractmethod
    def communicator(self, ranks: tuple[int, ...], axes: tuple[str, ...]) -> Communicator:
        """A communicator of these ranks, which differ along the axes."""

    def group(self, axes: tuple[str, ...]) -> Group:
        return self._group(axes)

    def step_group(self, axes: tuple[str, ...]) -> tuple[Any, int, int]:
        group = self._group(axes)
        return group.communicator, group.index, group.size

    def _group(self, axes: tuple[str, ...]) -> CommunicatorGroup:
        found = self._groups.get(axes)
        if found is None:
            ranks = self.mesh.group(self.rank, axes)
            found = self._groups[axes] = CommunicatorGroup(
                self.communicator(ranks, axes), ranks.index(self.rank), len(ranks))
        return found
