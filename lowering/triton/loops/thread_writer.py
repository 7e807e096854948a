"""The text of a kernel whose threads each compute a lane, in loops and branches of their own.

What Triton takes for a scalar is here a number of a thread: the number of the thread is in it, and
each goes its own way through loops and branches. An expression is written in the outermost loop in
which nothing of it changes.
"""

from __future__ import annotations

import math
from collections import ChainMap
from collections.abc import Iterator, MutableMapping, Sequence
from contextlib import contextmanager
from dataclasses import field
from typing import Any, Final

from functrans.core.record import Record
from functrans.lowering.defects import UnsupportedKernel
from functrans.lowering.loops.expr import Expr
from functrans.lowering.loops.index import Index, LoopVar
from functrans.lowering.loops.lane_values import LaneBuilder
from functrans.lowering.loops.tensor import Tensor
from functrans.lowering.triton.kernels.expressions import TileWriter, is_inverse_root_cubed
from functrans.lowering.triton.loops.thread_values import Place, ThreadBuilder

__all__ = ["MOST_AHEAD", "LineBlock", "ReadAhead", "ThreadWriter"]

MOST_LINES: Final = 6000
"""Of a kernel: 50 us each to read, and as much to compile."""


BY_HARDWARE: Final = {"div": "div_rn", "sqrt": "sqrt_rn"}
"""Operations of float32 that branch for unusual exponents, and are shorter than those that do not
(`device_math.divide`): a thread goes its own way, and others hide how long it takes. Rays through
2,048 x 2,048 pixels take 0.87 ms so, 1.27 without branches; three bodies 0.80, 1.03. Where a
divisor stays the same its reciprocal does, too, and a quotient is three operations."""


OPERATIONS_OF_MEMORY: Final = 100
"""Operations of a thread, one after another, that take as long as the second-level cache."""
LEAST_AHEAD, MOST_AHEAD, MOST_AHEAD_OF_ALL = 2, 8, 24  # iterations, and numbers of them
WORDS: Final = {"i32": "tl.int32", "u32": "tl.uint32"}
SINE_COSINE: Final = ("sin", "cos")


class LineBlock(Record, frozen=False, eq=False):
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
        self.apart = 0  # stores in loops of which neighbours write to different lines

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

    def store(self, t: Tensor, at: Index, value: str, lanes: Sequence[LoopVar]) -> str:
        """The line that stores a value; lanes side by side differ in the last of some variables."""
        strides = [at.coefficient(v) for v in lanes[-1:]]
        if self.block.outer is not None and any(isinstance(n, int) and n > 1 for n in strides):
            self.apart += 1
        return f"fm.store_scalar({self.pointer(t)} + {self.place(t, at)}, {value})"

    def mask(self, variables: frozenset[LoopVar]) -> str | None:
        return None

    def expression(self, e: Expr) -> str:
        found = self._known.get(e)
        if found is not None:
            return found
        with self._in(self._home(e)):
            return super().expression(e)

    def narrowed(self, e: Expr) -> str | None:
        with self._in(self._home(e)):
            return super().narrowed(e)

    def _home(self, e: Expr) -> LineBlock:
        """The block in which an expression is written."""
        home = self.block
        while home.outer is not None and home.may_hoist(e):
            home = home.outer
        return home

    def _is_shared(self, e: Expr) -> bool:
        """Whether an operand is the same in all iterations: what follows from it is made once."""
        return e.op != "const" and self._home(e) is not self.block

    def _operation(self, e: Expr, args: list[str]) -> str:
        if e.op == "add" and e.dtype == "u32" and any(map(_is_mixed, e.args)):
            return f"fm.sum_of_words({args[0]}, {args[1]})"
        if is_inverse_root_cubed(e):
            return f"fm.inverse_root_cubed({args[1]})"
        if e.dtype == "f32" and e.op in BY_HARDWARE and not self._is_shared(e.args[-1]):
            return f"fm.{BY_HARDWARE[e.op]}({', '.join(args)})"
        if e.op == "div" and e.dtype == "f32":
            return f"fm.divided({args[0]}, {self._divisor(e.args[1], args[1])})"
        if e.op == "select" and e.dtype in WORDS and _is_zero(e.args[2]) \
                and self._is_shared(e.args[0]):
            return f"{args[1]} & {self._mask(e.args[0], args[0], e.dtype)}"
        if e.dtype == "f32" and e.op in SINE_COSINE:
            return self._sine_cosine(e, args[0])
        return super()._operation(e, args)

    def _divisor(self, e: Expr, text: str) -> str:
        """The names of what is known of a divisor, which is computed once."""
        key = ("divisor", e)
        with self._in(self._home(e)):
            if key not in self._known:
                names = self.fresh(), self.fresh(), self.fresh()
                self.emit(f"{', '.join(names)} = fm.divisor({text})")
                self._known[key] = ", ".join(names)
        return self._known[key]

    def _mask(self, condition: Expr, text: str, dtype: str) -> str:
        """A word of ones where a condition holds, which is made once."""
        key = ("mask", condition, dtype)
        with self._in(self._home(condition)):
            if key not in self._known:
                self._known[key] = self.name(f"fm.word_of_ones({text}).to({WORDS[dtype]})")
        return self._known[key]

    def _sine_cosine(self, e: Expr, angle: str) -> str:
        """The name of a sine or a cosine: both are of one reduction, and one may be for nothing."""
        key = ("sine and cosine", e.args[0])
        if key not in self._known:
            names = self.fresh(), self.fresh()
            self.emit(f"{', '.join(names)} = fm.sine_cosine({angle})")
            self._known[key] = ", ".join(names)
        return self._known[key].split(", ")[SINE_COSINE.index(e.op)]

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

    @contextmanager
    def before(self) -> Iterator[None]:
        """What is written before the loop that is being written."""
        assert self.block.outer is not None
        with self._in(self.block.outer):
            yield

    @contextmanager
    def at_begin(self, variable: LoopVar) -> Iterator[None]:
        """What is written behind the first line of an iteration; it defines a variable."""
        block = self.block
        block.variables |= {variable}
        first, rest, block.lines = block.lines[:1], block.lines[1:], []
        yield
        block.lines = [*first, *block.lines, *rest]

    def variables(self) -> LoopVar | None:
        """The variable of the innermost loop, with which what is computed now changes."""
        block: LineBlock | None = self.block
        while block is not None and block.variable is None:
            block = block.outer
        return None if block is None else block.variable


def _is_zero(e: Expr) -> bool:
    return e.op == "const" and bool(e.aux == 0)


def _is_mixed(e: Expr) -> bool:
    """Whether a number is of a round of Threefry."""
    return e.op == "xor" and any(a.op == "rotate_left" for a in e.args)


class ReadAhead:
    """The elements of an operand that a loop walks over, read some iterations before their turn.

    A thread that waits for memory in each iteration takes as long as memory takes to answer.
    """

    def __init__(self, x: Tensor, w: ThreadWriter, t: LoopVar, at: Index,
                 lanes: frozenset[LoopVar], operations: int) -> None:
        self.x, self.w, self.t, self.at, self.lanes = x, w, t, at, lanes
        # as many as take as long as memory does, and no more numbers than registers are free
        numbers = math.prod([n for n in x.shape[1:] if isinstance(n, int)])
        self.by = max(LEAST_AHEAD, min(OPERATIONS_OF_MEMORY // max(operations, 1),
                                       MOST_AHEAD, MOST_AHEAD_OF_ALL // max(numbers, 1)))
        self.names: dict[Place, list[str]] = {}

    def element(self, s: LaneBuilder, index: Place) -> Expr:
        """The element of this iteration; at places that the lane computes it is read now."""
        assert isinstance(s, ThreadBuilder)
        if any(i.has_computed or not i.variables() <= self.lanes for i in index):
            return s.read(self.x, (self.at, *index))
        names = self.names.setdefault(index, [self.w.fresh() for _ in range(self.by)]) \
            if index not in self.names else self.names[index]
        key = (self.x, index, self.t)
        self.w.locals[key] = names[0]
        return s.number(key, self.x.compute, self.t)

    def write(self, s: ThreadBuilder, length: int, reverse: bool) -> None:
        """Write what is read before the loop, and at the begin of an iteration for a later one."""
        if not self.names:
            return

        def element(t: Index, index: Place) -> str:
            at = Index.of(length - 1) - t if reverse else t
            return self.w.expression(s.read(self.x, (at, *index)))

        with self.w.before():
            for index, names in self.names.items():
                for k, name in enumerate(names):
                    self.w.emit(f"{name} = {element(Index.of(k), index)}")
        later = LoopVar(self.w.fresh(), length)
        with self.w.at_begin(later):
            self.w.emit(f"{later.name} = tl.minimum({self.t.name} + {self.by}, {length - 1})")
            loaded = [element(Index.of(later), index) for index in self.names]
        for names, last in zip(self.names.values(), loaded, strict=True):
            self.w.emit(f"{', '.join(names)} = {', '.join([*names[1:], last])}")
