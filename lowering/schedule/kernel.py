"""A kernel: a matrix of elements, `rows x row`, and the values that are computed over it.

Everything is addressed by two loop variables, `o` over the rows and `i` along a row. A member of a
kernel is a tensor in one of these roles:

- `full`: an element at every (o, i);
- `row`: an element for every o;
- `reduce_row`: a reduction along i, a number for every o that members after it may read;
- `reduce_column`, `reduce_all`: reductions over the last rows of `o = p * Q + q`: over q for every
  (p, i), and over q and i for every p. They are known after the loops only;
- `scatter`: an element at every (o, i) that goes to a computed place;
- `mark`, `any_flag_row`: a condition at every (o, i), or for every o, that is told where it holds.

With `total`, the rows are pieces of one long line of so many elements, and the last is shorter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, KeysView, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

from functrans.core.dims import Size
from functrans.lowering.loops.elementwise import ELEMENTWISE
from functrans.lowering.loops.expr import Expr, ExprBuilder, IterationSpaceMismatch, Range
from functrans.lowering.loops.index import ZERO, Index, LoopVar, Quotient, Remainder, unflatten
from functrans.lowering.loops.tensor import AnyFlag, Reduce, ScatterTensor, Tensor

__all__ = ["ANY_FLAG_ROLES", "Domain", "Kernel", "Member", "accesses", "computed_in",
           "reachable_expressions", "stages_of"]


ANY_FLAG_ROLES = frozenset({"any_flag", "any_flag_row"})
AFTERWARDS = ANY_FLAG_ROLES | {"reduce_column", "reduce_all", "scatter"}
"""Roles of what is known after the loops of a kernel only."""


@dataclass(frozen=True)
class Domain:
    """The matrix that a kernel walks: `parts` groups of rows, `rows` in all, of `row` elements."""

    rows: Size
    row: Size
    parts: Size = 1
    total: Size | None = None

    @property
    def size(self) -> Size:
        return self.rows * self.row if self.total is None else self.total


@dataclass(frozen=True)
class Member:
    """A tensor that a kernel computes, and how."""

    tensor: Tensor
    role: str


@dataclass
class Kernel:
    """Members in an order in which each reads only those before it."""

    domain: Domain
    members: list[Member]

    def __post_init__(self) -> None:
        d = self.domain
        self.o = LoopVar("o", d.rows)
        self.i = LoopVar("i", d.row)
        o, i = Index.of(self.o), Index.of(self.i)
        if isinstance(d.rows, int) and d.rows == 1:
            o = ZERO
        if isinstance(d.row, int) and d.row == 1:
            i = ZERO
        per_part = d.rows // d.parts if not _is_one(d.parts) else d.rows
        p = ZERO if _is_one(d.parts) else o // per_part
        q = o if _is_one(d.parts) else o % per_part
        self.places = {"full": o * d.row + i, "row": o, "reduce_row": o,
                       "reduce_column": p * d.row + i,
                       "reduce_all": p, "scatter": o * d.row + i, "any_flag": o * d.row + i,
                       "any_flag_row": o}
        self._column, self._in_part = q, q * d.row + i
        self._by_tensor = {m.tensor: m for m in self.members}
        # its expressions, from the attempts to grow until it is written
        self._shared: ExprBuilder | None = None

    def with_member(self, member: Member) -> Kernel:
        """This kernel with one more member, which shares its expressions."""
        other = copy(self)
        other.members = [*self.members, member]
        other._by_tensor[member.tensor] = member
        return other

    def discard_member(self, member: Member) -> None:
        """Forget a member that `with_member` added and that did not fit."""
        del self._by_tensor[member.tensor]

    def shared(self, is_stored: Callable[[Tensor], bool]) -> ExprBuilder:
        """The builder that all share for whom the same tensors are in memory."""
        if self._shared is None:
            self._shared = self.builder(is_stored)
        return self._shared

    def role(self, tensor: Tensor) -> str:
        return self._by_tensor[tensor].role

    @staticmethod
    def inside(e: Expr) -> list[Expr]:
        """The expressions inside the index of a load or of a number."""
        return computed_in(e)

    def builder(self, is_stored: Callable[[Tensor], bool],
                facts: dict[Range, bool] | None = None) -> ExprBuilder:
        return ExprBuilder(is_stored, self._local, facts)

    def _local(self, tensor: Tensor) -> Index | None:
        member = self._by_tensor.get(tensor)
        if member is None:
            return None
        if member.role in AFTERWARDS:
            raise IterationSpaceMismatch(tensor)
        return self.places[member.role]

    def element(self, s: ExprBuilder, member: Member) -> Expr:
        """What a member computes at (o, i), or at o: the element of a reduction, not its result."""
        t, place = member.tensor, self.places[member.role]
        if member.role in ANY_FLAG_ROLES:
            assert isinstance(t, AnyFlag)
            return t.element(s, unflatten(place, t.sizes))
        if isinstance(t, Reduce):
            if member.role == "reduce_row":
                inner = unflatten(Index.of(self.i) if not _is_one(self.domain.row) else ZERO,
                                  t.sizes)
            else:
                inner = unflatten(self._column if member.role == "reduce_column" else self._in_part,
                                  t.sizes)
            return t.element(s, unflatten(place, t.shape) + inner)
        if isinstance(t, ScatterTensor):
            return t.element(s, unflatten(place, t.sizes))
        return t.define(s, unflatten(place, t.shape))

    def all_expressions(self, s: ExprBuilder) -> list[Expr]:
        """All expressions of the kernel: elements, and where those of scatters go."""
        exprs: list[Expr] = []
        for m in self.members:
            exprs.append(self.element(s, m))
            if m.role == "scatter":
                place, condition = self.target(s, m)
                exprs.append(s.index(place, "i64"))
                exprs.extend([condition] if condition is not None else [])
        return exprs

    def loads(self, s: ExprBuilder) -> KeysView[Tensor]:
        """The tensors that the kernel reads from memory: a set in the order of its expressions.

        Sets of tensors have another order in each process, and programs must not.
        """
        return dict.fromkeys([t for t,
                              _ in accesses(self.all_expressions(s)) if t is not None]).keys()

    def target(self, s: ExprBuilder, member: Member) -> tuple[Index, Expr | None]:
        """Where an element of a scatter goes, and under which condition."""
        t = member.tensor
        assert isinstance(t, ScatterTensor)
        index, condition = t.place(s, unflatten(self.places["scatter"], t.sizes))
        from_index = ZERO
        for k, stride in zip(index, _strides(t.shape)):
            from_index = from_index + k * stride
        return from_index, condition


def _strides(shape: Sequence[Size]) -> list[Size]:
    strides: list[Size] = []
    step: Size = 1
    for size in reversed(shape):
        strides.append(step)
        step = step * size
    return strides[::-1]


def _is_one(n: Size) -> bool:
    return isinstance(n, int) and n == 1


def reachable_expressions(roots: Iterable[Expr]) -> list[Expr]:
    """All expressions under some roots, operands first; computed parts of indices included."""
    order: list[Expr] = []
    seen: set[Expr] = set()
    for root in roots:
        stack: list[Expr | None] = [root]
        while stack:
            e = stack.pop()
            if e is None:  # behind its operands
                order.append(stack.pop())  # type: ignore[arg-type]
            elif e not in seen:
                seen.add(e)
                stack += (e, None, *e.args, *computed_in(e))
    return order


def stages_of(kernel: Kernel, elements: Mapping[Tensor, Expr]) -> dict[Tensor, int]:
    """The number of the loop over a row in which each member is computed.

    What reads a reduction along the row comes in a loop after the one that folds it. So does what
    makes a chain of operations too long: a processor overlaps only as many iterations of a loop as
    its window holds instructions, and each takes as long as its chain. Measured on where(exp(tanh))
    of AVX-512: 14.6 ns a vector in one loop, 8.1 in two with the row of tanh kept between them.
    """
    stages: dict[Tensor, int] = {}
    delays: dict[Tensor, int] = {}
    splits = isinstance(kernel.domain.row, int) and kernel.domain.row >= SPLIT_ROW
    for m in kernel.members:
        element = elements[m.tensor]
        stage, delay, waits = _stage_of(kernel, element, stages, delays, m.role != "row")
        if splits and waits and delay > LONG_CHAIN and m.role != "row":
            delays |= dict.fromkeys(waits, 0)
            moved = dict.fromkeys(waits, stage + 1)
            stage, delay, _ = _stage_of(kernel, element, {**stages, **moved}, delays, True)
        stages[m.tensor], delays[m.tensor] = stage, delay
    return stages


SPLIT_ROW = 256
HEAVY, LONG_CHAIN = 12, 20
"""Weights: an operation that is a long chain by itself, and a chain too long for one loop."""


def _stage_of(kernel: Kernel, element: Expr, stages: Mapping[Tensor, int],
              delays: Mapping[Tensor, int], varies: bool) -> tuple[int, int, list[Tensor]]:
    """The stage of an expression, how long its chain is there, and which members that waits for."""
    level: dict[Expr, int] = {}
    order = reachable_expressions([element])
    for e in order:
        if e.op == "local":
            level[e] = stages[e.aux] + (kernel.role(e.aux) == "reduce_row")
        else:
            parts = computed_in(e) if e.op in ("load", "index") else e.args
            level[e] = max((level[a] for a in parts), default=0)
    stage = level[element]
    delay: dict[Expr, int] = {}
    waits = []
    for e in order:
        if e.op == "local":
            here = stages[e.aux] == stage and kernel.role(e.aux) == "full"
            delay[e] = delays[e.aux] if here else 0
            if here and delay[e] >= HEAVY:
                waits.append(e.aux)
        else:
            own = ELEMENTWISE.weight(e.op) if e.args and e.depends_on(kernel.i) else 0
            delay[e] = own + max((delay[a] for a in e.args), default=0)
    return stage, delay[element], waits


def computed_in(e: Expr) -> list[Expr]:
    """The expressions inside the index of a load or of a number."""
    if e.op == "load":
        return list(_computed(e.aux[1]))
    return list(_computed(e.aux)) if e.op == "index" else []


def _computed(index: Index) -> Iterable[Expr]:
    for atom in index.terms:
        if isinstance(atom, (Quotient, Remainder)):
            yield from _computed(atom.index)
        elif not isinstance(atom, LoopVar):
            yield atom.value


def accesses(exprs: Iterable[Expr]) -> list[tuple[Tensor | None, Index]]:
    """The loads (tensor, place) and the numbers made from indices (None, index) of expressions."""
    found: list[tuple[Any, Index]] = []
    for e in reachable_expressions(exprs):
        if e.op == "load":
            found.append(e.aux)
        elif e.op == "index":
            found.append((None, e.aux))
    return found
