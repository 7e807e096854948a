"""The text of a kernel whose threads each compute a lane, in loops and branches of their own.

What Triton takes for a scalar is here a number of a thread: the number of the thread is in it, and
each goes its own way through loops and branches. An expression is written in the outermost loop in
which nothing of it changes.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from functrans.lowering.defects import UnsupportedKernel
from functrans.lowering.loops.expr import Expr
from functrans.lowering.loops.index import LoopVar
from functrans.lowering.loops.tensor import Tensor
from functrans.lowering.triton.kernels.expressions import TileWriter

__all__ = ["LineBlock", "ThreadWriter"]

MOST_LINES: Final = 6000
"""Of a kernel: 50 us each to read, and as much to compile."""


@dataclass(eq=False)
class LineBlock:
    """The lines of a loop or branch, and the names that are known in it.

    `variable` stands for what changes with its iterations; a branch has none.
    """

    outer: LineBlock | None
    variable: LoopVar | None
    variables: frozenset[LoopVar]
    indent: str
    lines: list[str] = field(default_factory=list)
    known: MutableMapping[Any, str] = field(default_factory=dict)

    def may_hoist(self, e: Expr) -> bool:
        """Whether an expression is the same in all iterations."""
        return self.variable is not None and not self.variables & e.variables


class ThreadWriter(TileWriter):
    """Writes expressions of scalars, each in its block."""

    def __init__(self) -> None:
        self.operands: list[Tensor] = []
        self._count = self._emitted = 0
        self.block = LineBlock(None, None, frozenset(), "        ")
        super().__init__(None, self.emit, self._place_of, self.fresh, {})
        self._known = self.block.known
        self.repeated = 0  # lines of the last outermost loop

    def emit(self, *lines: str) -> None:
        self._emitted += len(lines)
        if self._emitted > MOST_LINES:
            raise UnsupportedKernel(f"a lane has more than {MOST_LINES} operations")
        self.block.lines += [self.block.indent + line for line in lines]

    def fresh(self) -> str:
        self._count += 1
        return f"v{self._count}"

    def _place_of(self, t: Any) -> str:
        if t not in self.operands:
            self.operands.append(t)
        return f"p{self.operands.index(t)}"

    def pointer(self, t: Tensor) -> str:
        """The argument of a tensor."""
        return self._place_of(t)

    def mask(self, variables: frozenset[LoopVar]) -> str | None:
        return None

    def expression(self, e: Expr) -> str:
        found = self._known.get(e)
        if found is not None:
            return found
        home = self.block
        while home.outer is not None and home.may_hoist(e):
            home = home.outer
        with self._in(home):
            return super().expression(e)

    def narrowed(self, e: Expr) -> str | None:
        home = self.block
        while home.outer is not None and home.may_hoist(e):
            home = home.outer
        with self._in(home):
            return super().narrowed(e)

    @contextmanager
    def _in(self, block: LineBlock) -> Iterator[None]:
        before = self.block
        self.block, self._known = block, block.known
        try:
            yield
        finally:
            self.block, self._known = before, before.known

    # --------------------------------------------------------------------------- statements

    @contextmanager
    def nested(self, head: str, variable: LoopVar | None,
               also: frozenset[LoopVar] = frozenset()) -> Iterator[None]:
        """The block of a loop, whose values change with a variable, or of a branch."""
        outer = self.block
        variables = also if variable is None else also | {variable}
        inner = LineBlock(outer, variable, variables, outer.indent + "    ")
        inner.known = ChainMap({}, outer.known)
        with self._in(inner):
            yield
        outer.lines += [outer.indent + head, *(inner.lines or [inner.indent + "pass"])]
        if outer.outer is None:
            self.repeated = len(inner.lines)

    def variables(self) -> LoopVar | None:
        """The variable of the innermost loop, with which what is computed now changes."""
        block: LineBlock | None = self.block
        while block is not None and block.variable is None:
            block = block.outer
        return None if block is None else block.variable
