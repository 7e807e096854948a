"""Memory whose size a program decides as it runs, by a loop that records every iteration.

Such a size is an entry of the table `z` of the function that decides it, which has a table of its
own. What depends on it has no place in the arena: it is allocated when the size is known, released
after its last use, and whatever is left when the function returns, early or not, then.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from functrans.core.dims import Dim, Size
from functrans.core.errors import BackendError
from functrans.lowering.loops.tensor import Call, HostCall, WhileLoop
from functrans.lowering.memory.arena import Block

__all__ = ["DynamicBuffers", "UnsupportedProgram"]

GROW = """\
static int ft_grow(char **p, i64 used, i64 room) {
  char *q = ft->allocate(ft_max(room, 1));
  if (!q) return 2;
  if (*p) { memcpy(q, *p, used); ft->release(*p); }
  *p = q;
  return 0;
}
"""


class UnsupportedProgram(BackendError):
    """A program that this backend cannot compile."""


def size_decided_by(step: Any) -> str | None:
    """The size that a step decides."""
    if isinstance(step, WhileLoop) and step.record is not None:
        return step.record.name
    return None


class DynamicBuffers:
    """The blocks of one function that are not in the arena: `own[k]` in C."""

    def __init__(self, steps: Sequence[Any], sizes: Mapping[str, str]) -> None:
        self.steps = steps
        self.at = {name: k for k, step in enumerate(steps) if (name := size_decided_by(step))}
        self._texts = {sizes[name]: k for name, k in self.at.items()}
        self.count = 0
        self._made: dict[int, list[tuple[str, Size]]] = {}
        self._done: dict[int, list[str]] = {}
        for step in steps:
            if isinstance(step, HostCall) and step.eqn.primitive.decided_sizes(step.eqn.params):
                raise UnsupportedProgram(
                    "a loop that records values of a dtype that only Python knows")

    def has(self, size: Size) -> bool:
        """Whether a size depends on one that this function decides."""
        return isinstance(size, Dim) and not size.names().isdisjoint(self.at)

    def place(self, blocks: Iterable[Block[Any]], recorded: Iterable[Any]) -> dict[Any, str]:
        """The C expressions of blocks; those `recorded` are made by the loop that fills them."""
        places = {}
        grown = set(recorded)
        for block in blocks:
            name = places[block.key] = f"own[{self.count}]"
            self.count += 1
            if block.key not in grown:
                self._made.setdefault(block.first, []).append((name, block.nbytes))
            self._done.setdefault(block.last, []).append(name)
        return places

    def made(self, step: int) -> list[tuple[str, Size]]:
        """What is to be allocated before a step: pointers and sizes in bytes."""
        return self._made.get(step, [])

    def done(self, step: int) -> list[str]:
        """The pointers whose live range ends with a step."""
        return self._done.get(step, [])

    def check(self, step: int, text: str) -> None:
        """A step that needs a size must not come before the loop that decides it."""
        for size, decided in self._texts.items():
            if size in text and step < decided and not isinstance(self.steps[step], Call):
                raise UnsupportedProgram("a size is needed before the loop that decides it")
