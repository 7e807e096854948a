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

from collections.abc import Callable, KeysView, Mapping, Sequence
from copy import copy

from functrans.core.dims import Size
from functrans.core.record import Record
from functrans.lowering.loops.expr import (
    Expr,
    ExprBuilder,
    Places,
    Range,
    computed_in,
    reachable_expressions,
)
from functrans.lowering.loops.index import ZERO, Computed, Index, LoopVar, strides_of
from functrans.lowering.loops.steps import step_along
from functrans.lowering.loops.tensor import AnyFlag, Call, Map, Reduce, ScatterTensor, Tensor
from functrans.lowering.rules.elementwise import ELEMENTWISE
from functrans.lowering.schedule.cpu_target import SERVER
from functrans.lowering.schedule.short_rows import (
    accesses,
    product,
    run_size,
    smaller,
    with_longer_row,
    with_whole_vectors,
)

__all__ = ["ANY_FLAG_ROLES", "Domain", "Kernel", "Member", "PreferredLoopNest", "Reads",
           "accesses", "preferred_loop_nest", "roles_in", "stages_of"]


ANY_FLAG_ROLES = frozenset({"any_flag", "any_flag_row"})
AFTERWARDS = ANY_FLAG_ROLES | {"reduce_column", "reduce_all", "scatter"}
"""Roles of what is known after the loops of a kernel only."""


class Domain(Record):
    """The matrix that a kernel walks: `parts` groups of rows, `rows` in all, of `row` elements."""

    rows: Size
    row: Size
    parts: Size = 1
    total: Size | None = None

    @property
    def size(self) -> Size:
        return self.rows * self.row if self.total is None else self.total


class Member(Record):
    """A tensor that a kernel computes, and how.

    `order`: that of the dimensions of a reduction over columns, where its parts and columns are not
    those of the result in its own order.
    """

    tensor: Tensor
    role: str
    order: tuple[int, ...] = ()

    def unflatten(self, s: ExprBuilder, place: Index) -> tuple[Index, ...]:
        """The index in the tensor of a place among its parts and columns."""
        shape = self.tensor.shape
        if not self.order:
            return s.unflatten(place, shape)
        found = dict(zip(self.order, s.unflatten(place, tuple([shape[d] for d in self.order])),
                         strict=True))
        return tuple([found[d] for d in range(len(shape))])


class Kernel(Record, frozen=False):
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
        self._local = {m.tensor: self._known_at(m) for m in self.members}
        # its expressions, from the attempts to grow until it is written
        self._shared: ExprBuilder | None = None
        # for `shared` alone: the bounds of loops change when they are split
        self._worked_out: Places = ({}, {})

    def with_member(self, member: Member) -> Kernel:
        """This kernel with one more member, which shares its expressions."""
        other = copy(self)
        other.members = [*self.members, member]
        other._by_tensor[member.tensor] = member
        other._local[member.tensor] = self._known_at(member)
        return other

    def discard_member(self, member: Member) -> None:
        """Forget a member that `with_member` added and that did not fit."""
        del self._by_tensor[member.tensor], self._local[member.tensor]

    def at(self, places: Mapping[str, Index]) -> Kernel:
        """This kernel with other places for some roles, for who asks what it reads there."""
        other = copy(self)
        other.places = {**self.places, **places}
        other._local = {m.tensor: other._known_at(m) for m in self.members}
        other._shared = None
        return other

    def anew(self) -> Kernel:
        """This kernel with nothing known of its expressions, as others are in memory now."""
        other = copy(self)
        other.members = list(self.members)
        other._by_tensor, other._local = dict(self._by_tensor), dict(self._local)
        other._shared = None
        return other

    def shared(self, is_stored: Callable[[Tensor], bool]) -> ExprBuilder:
        """The builder that all share for whom the same tensors are in memory."""
        if self._shared is None:
            self._shared = ExprBuilder(is_stored, self._local, places=self._worked_out)
        return self._shared

    def as_scheduled(self, is_stored: Callable[[Tensor], bool]) -> ExprBuilder | None:
        """The shared builder where all that was read in it is in memory, in the kernel or inlined
        as it is now, and no test splits a loop; None else."""
        s, local = self._shared, self._local
        if s is None or s.undecided:
            return None
        same = all(e.op == "local" if t in local else s.is_stored(t) == is_stored(t)
                   for (t, _), e in s.reads().items())
        return s if same else None

    def role(self, tensor: Tensor) -> str:
        return self._by_tensor[tensor].role

    @staticmethod
    def inside(e: Expr) -> list[Expr]:
        """The expressions inside the index of a load or of a number."""
        return computed_in(e)

    def builder(self, is_stored: Callable[[Tensor], bool],
                facts: dict[Range, bool] | None = None) -> ExprBuilder:
        return ExprBuilder(is_stored, self._local, facts)

    def _known_at(self, member: Member) -> Index | None:
        """The place of a member that others may read in the loops."""
        return None if member.role in AFTERWARDS else self.places[member.role]

    def element(self, s: ExprBuilder, member: Member) -> Expr:
        """What a member computes at (o, i), or at o: the element of a reduction, not its result."""
        t, place = member.tensor, self.places[member.role]
        if member.role in ANY_FLAG_ROLES:
            assert isinstance(t, AnyFlag)
            return t.element(s, s.unflatten(place, t.sizes))
        if isinstance(t, Reduce):
            if member.role == "reduce_row":
                inner = s.unflatten(Index.of(self.i) if not _is_one(self.domain.row) else ZERO,
                                  t.sizes)
            else:
                at = self._column if member.role == "reduce_column" else self._in_part
                inner = s.unflatten(at, t.sizes)
            return t.element(s, member.unflatten(s, place) + inner)
        if isinstance(t, ScatterTensor):
            return t.element(s, s.unflatten(place, t.sizes))
        return t.define(s, s.unflatten(place, t.shape))

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
        return dict.fromkeys([e.aux[0] for e in s.reachable(self.all_expressions(s))
                              if e.op == "load"]).keys()

    def target(self, s: ExprBuilder, member: Member) -> tuple[Index, Expr | None]:
        """Where an element of a scatter goes, and under which condition."""
        t = member.tensor
        assert isinstance(t, ScatterTensor)
        index, condition = t.place(s, s.unflatten(self.places["scatter"], t.sizes))
        from_index = ZERO
        for k, stride in zip(index, strides_of(t.shape)):
            from_index = from_index + k * stride
        return from_index, condition


def _is_one(n: Size | None) -> bool:
    return isinstance(n, int) and n == 1


def stages_of(kernel: Kernel, elements: Mapping[Tensor, Expr],
              s: ExprBuilder | None = None) -> dict[Tensor, int]:
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
        order = reachable_expressions([element]) if s is None else s.reachable([element])
        stage, delay, waits = _stage_of(kernel, order, stages, delays)
        if splits and waits and delay > LONG_CHAIN and m.role != "row":
            delays |= dict.fromkeys(waits, 0)
            moved = dict.fromkeys(waits, stage + 1)
            stage, delay, _ = _stage_of(kernel, order, {**stages, **moved}, delays)
        stages[m.tensor], delays[m.tensor] = stage, delay
    return stages


SPLIT_ROW = 256
HEAVY, LONG_CHAIN = 12, 20
"""Weights: an operation that is a long chain by itself, and a chain too long for one loop."""


def _stage_of(kernel: Kernel, order: Sequence[Expr], stages: Mapping[Tensor, int],
              delays: Mapping[Tensor, int]) -> tuple[int, int, list[Tensor]]:
    """The stage of the last of some expressions, how long its chain is there, and which members
    that waits for."""
    members = [e.aux for e in order if e.op == "local"]
    stage = max([stages[t] + (kernel.role(t) == "reduce_row") for t in members], default=0)
    delay: dict[Expr, int] = {}
    waits = []
    i, weight = kernel.i, ELEMENTWISE.weight
    for e in order:
        longest = 0
        if e.op == "local":
            if stages[e.aux] == stage and kernel.role(e.aux) == "full":
                longest = delays[e.aux]
                if longest >= HEAVY:
                    waits.append(e.aux)
        elif e.args:
            for a in e.args:
                if delay[a] > longest:
                    longest = delay[a]
            if i in e.variables:
                longest += weight(e.op)
        delay[e] = longest
    return stage, delay[order[-1]], waits


# --- The matrix over which a root is computed: which of its dimensions are rows, and which the row

class PreferredLoopNest(Record, frozen=False):
    """What a root is by itself: the domain that suits it, its role there, and what it reads."""

    domain: Domain
    role: str
    reads: frozenset[Tensor]
    order: tuple[int, ...] = ()

    def member(self, root: Tensor) -> Member:
        return Member(root, self.role, self.order)

    def roles_in(self, root: Tensor, domain: Domain) -> list[Member]:
        """The roles that the root can have in a domain."""
        if self.order:
            return [self.member(root)] if domain == self.domain else []
        return roles_in(root, domain)


def preferred_loop_nest(root: Tensor, is_stored: Callable[[Tensor], bool],
                        in_any_order: bool = False) -> PreferredLoopNest:
    """The domain in which a root reads memory in order.

    With `in_any_order`, of many short reductions each is a row.
    """
    known = _pointwise_reads(root, is_stored)
    if known is not None:  # whatever is read is read as one run
        domain = split_long_row(Domain(1, product(root.shape)))
        return PreferredLoopNest(domain, "full", known)
    s = ExprBuilder(is_stored)
    kept = [LoopVar(f"k{d}", n) for d, n in enumerate(_shape(root))]
    folded = [LoopVar(f"r{d}", n) for d, n in enumerate(root.sizes)] \
        if isinstance(root, Reduce) else []
    index = tuple([Index.of(v) if not _is_one(v.high) else ZERO for v in (*kept, *folded)])
    exprs: list[Expr] = []
    if isinstance(root, Reduce):
        exprs.append(root.element(s, index))
    elif isinstance(root, ScatterTensor):
        exprs.append(root.element(s, index))
        places, condition = root.place(s, index)
        exprs.extend(s.index(k, "i64") for k in places)
        exprs.extend([condition] if condition is not None else [])
    else:
        exprs.append(root.define(s, index))
    found = accesses(exprs)
    reads = frozenset(t for t, _ in found if t is not None)
    if isinstance(root, ScatterTensor):
        reads |= {root.base}
    indices = [i for _, i in found]
    kept_runs = _merged([v for v in kept if not _is_one(v.high)], indices)
    folded_runs = _merged([v for v in folded if not _is_one(v.high)], indices)
    order: tuple[int, ...] = ()
    if isinstance(root, Reduce) and not _is_mark(root):
        domain, role = _of_reduction(kept_runs, folded_runs, indices,
                                     step_along if in_any_order else Index.coefficient)
        if in_any_order and role != "reduce_row" and _are_short(root, domain, role):
            domain, role = Domain(root.size, product(root.sizes)), "reduce_row"
        elif in_any_order and (near := _run_in_memory(kept_runs, folded_runs, indices)):
            row = run_size(near)
            columns = [kept.index(v) for v in near]
            order = (*[d for d in range(len(kept)) if d not in columns], *columns)
            parts = product([run_size(run) for run in kept_runs if run is not near])
            domain = Domain(parts * product(root.sizes), row, parts)
            role = "reduce_column"
    else:
        role = "any_flag" if _is_mark(root) else "scatter" if isinstance(root,
                                                                         ScatterTensor) else "full"
        runs = folded_runs if role == "any_flag" else kept_runs
        if role == "full":
            runs = with_longer_row(runs, kept, root, s) if in_any_order else \
                with_whole_vectors(runs, kept, root, s)
        rows = product([run_size(r) for r in runs[:-1]])
        row = run_size(runs[-1]) if runs else 1
        domain = Domain(rows, row)
        if role != "scatter":
            domain = split_long_row(domain)
    return PreferredLoopNest(domain, role, reads, order)


def _pointwise_reads(root: Tensor, is_stored: Callable[[Tensor], bool]
                     ) -> frozenset[Tensor] | None:
    """What a root reads from memory that is elementwise with all that is inlined in it; None if it
    is not. Nearly all of a long chain of operations is, and needs no expressions to tell."""
    shape = root.shape
    if not isinstance(root, Map) or not root.pointwise \
            or not all(type(n) is int for n in shape):
        return None
    reads: set[Tensor] = set()
    seen: set[Tensor] = set()
    stack = list(root.operands)
    while stack:
        t = stack.pop()
        if t in seen:
            continue
        seen.add(t)
        if t.shape and t.shape != shape:
            return None
        if is_stored(t):
            if t.known is not None:  # a kernel may have its elements in its text
                return None
            reads.add(t)
        elif isinstance(t, Map) and t.pointwise:
            stack += t.operands
        else:
            return None
    return frozenset(reads)


def split_long_row(domain: Domain) -> Domain:
    """One long line as rows of `SERVER.chunk` elements."""
    if not _is_one(domain.rows) or (isinstance(domain.row, int) and domain.row <= SERVER.chunk):
        return domain
    return Domain((domain.row + (SERVER.chunk - 1)) // SERVER.chunk, SERVER.chunk, 1, domain.row)


def _of_reduction(kept: list[list[LoopVar]], folded: list[list[LoopVar]],
                  indices: Sequence[Index], step: Callable[[Index, LoopVar], Size | None]
                  ) -> tuple[Domain, str]:
    keep = product([run_size(r) for r in kept])
    fold = product([run_size(r) for r in folded])
    # what is the same along the reduction is read once for all of it
    indices = [i for i in indices if _depends_on(i, folded)] or list(indices)
    # and a vector that is the same for all that is kept is small beside what is not
    indices = [i for i in indices if _depends_on(i, kept)] or indices
    along_fold = sum(_is_one(step(i, folded[-1][-1])) for i in indices) if folded else 1
    along_kept = sum(_is_one(step(i, kept[-1][-1])) for i in indices) if kept else 0
    if along_kept > along_fold or (along_kept == along_fold and kept and folded
                                  and smaller(run_size(folded[-1]), run_size(kept[-1]))):
        row = run_size(kept[-1])
        parts = product([run_size(r) for r in kept[:-1]])
        return Domain(parts * fold, row, parts), "reduce_column"
    row = run_size(folded[-1]) if folded else 1
    lead = product([run_size(r) for r in folded[:-1]])
    if not _is_one(lead):
        return Domain(keep * lead, row, keep), "reduce_all"
    if isinstance(keep, int) and keep < SERVER.few_rows \
            and (not isinstance(row, int) or row >= SERVER.long_row):
        if keep == 1:
            chunk = SERVER.chunk
            return Domain((row + (chunk - 1)) // chunk, chunk, 1, row), "reduce_all"
        piece = _divisor(row)
        if piece is not None:
            return Domain(keep * (row // piece), piece, keep), "reduce_all"
    return Domain(keep, row), "reduce_row"


LEAST_RUN = 32
"""Neighbours in memory that a warp reads at once."""


def _run_in_memory(kept: list[list[LoopVar]], folded: list[list[LoopVar]],
                   indices: Sequence[Index]) -> list[LoopVar] | None:
    """What is kept that most reads have side by side in memory, if it is not the last run.

    None where reads go along what is kept last, or along the reduction.
    """
    reads = [i for i in indices if _depends_on(i, folded) and _depends_on(i, kept)]

    def along(run: list[LoopVar]) -> int:
        return sum(step_along(i, run[-1]) == 1 for i in reads)

    if not kept or not folded or along(kept[-1]) or along(folded[-1]):
        return None
    found = max(kept[:-1], key=along, default=None)
    if found is None or not along(found):
        return None
    row = run_size(found)
    return found if isinstance(row, int) and row >= LEAST_RUN else None


SHORT_REDUCTION, MANY_REDUCTIONS, FEW_COLUMNS = 1024, 1024, 16
"""Lengths of reductions of which a program has several, how many these are at least, and columns
that do not fill a warp. Of 147,456 sums of 2 x 6 products each had a program: 182 us on an H100."""


def _are_short(root: Reduce, domain: Domain, role: str) -> bool:
    """Whether a program would have little to do for each of many reductions."""
    keep, fold = root.size, product(root.sizes)
    return isinstance(keep, int) and isinstance(fold, int) and keep >= MANY_REDUCTIONS \
        and fold <= SHORT_REDUCTION and (
            role == "reduce_all" or smaller(domain.row, FEW_COLUMNS)) \
        and not _is_one(domain.parts)


def _depends_on(index: Index, runs: list[list[LoopVar]]) -> bool:
    return any(index.depends_on(v) for run in runs for v in run)


def _divisor(n: Size) -> int | None:
    """A divisor of n near `SERVER.chunk`, if there is one."""
    if not isinstance(n, int):
        return None
    for piece in range(2 * SERVER.chunk, SERVER.chunk // 8, -1):
        if n % piece == 0 and piece % 16 == 0:
            return piece
    return None


def roles_in(root: Tensor, domain: Domain) -> list[Member]:
    """The roles that a root can have in a domain, by its sizes."""
    found = []
    if isinstance(root, ScatterTensor):
        return []
    if isinstance(root, Reduce):
        if _is_mark(root):
            return _of_elements(product(root.sizes), root, domain, "any_flag", "any_flag_row")
        keep, fold = root.size, product(root.sizes)
        if domain.total is None:
            if keep == domain.rows and fold == domain.row:
                found.append(Member(root, "reduce_row"))
            per_part = domain.rows // domain.parts
            if keep == domain.parts * domain.row and fold == per_part:
                found.append(Member(root, "reduce_column"))
            if keep == domain.parts and fold == per_part * domain.row:
                found.append(Member(root, "reduce_all"))
        elif _is_one(keep) and fold == domain.total:
            found.append(Member(root, "reduce_all"))
        return found
    return _of_elements(root.size, root, domain, "full", "row")


def _is_mark(root: Tensor) -> bool:
    return isinstance(root, AnyFlag) and not root.is_few


def _of_elements(size: Size, root: Tensor, domain: Domain, each: str, of_rows: str
                 ) -> list[Member]:
    """The roles of what has `size` elements: each by itself, or one for every row."""
    found = []
    if size == domain.size:
        found.append(Member(root, each))
    if size == domain.rows and domain.total is None and not _is_one(domain.row):
        found.append(Member(root, of_rows))
    return found


def _shape(root: Tensor) -> tuple[Size, ...]:
    return root.sizes if isinstance(root, ScatterTensor) else root.shape


def _merged(variables: list[LoopVar], indices: Sequence[Index]) -> list[list[LoopVar]]:
    """Runs of neighbouring dimensions that every access walks as one."""
    runs: list[list[LoopVar]] = []
    for v in variables:
        if runs and all(_as_one(runs[-1][-1], v, i) for i in indices):
            runs[-1].append(v)
        else:
            runs.append([v])
    return runs


def _as_one(outer: LoopVar, inner: LoopVar, index: Index) -> bool:
    a, b = index.coefficient(outer), index.coefficient(inner)
    if a != b * inner.high:
        return False
    # of what is computed the loads are accesses, too
    return not any(not isinstance(atom, LoopVar | Computed) and _inside(atom, outer, inner)
                   for atom in index.terms)


def _inside(atom: object, *variables: LoopVar) -> bool:
    index = Index({atom: 1})  # type: ignore[dict-item]
    return any(index.depends_on(v) for v in variables)


# --- What each step of a schedule reads from memory, found once

class Reads:
    """The tensors that steps read, in order; expressions are built once for each kernel.

    Built anew for every product, they took two thirds of the time to lower a transformer.
    """

    def __init__(self) -> None:
        # with the steps, so that ids stay
        self._known: dict[int, tuple[Kernel | Call, KeysView[Tensor]]] = {}

    def of(self, step: Kernel | Call, is_stored: Callable[[Tensor], bool]) -> KeysView[Tensor]:
        known = self._known.get(id(step))
        if known is None:
            found = step.operands if isinstance(step, Call) else step.loads(step.shared(is_stored))
            known = self._known[id(step)] = step, dict.fromkeys(found).keys()
        return known[1]
