"""From a graph to steps: roots that are computed over the same matrix become one kernel."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any, Protocol

from functrans.core.dims import Size
from functrans.core.record import Record
from functrans.core.source import Source
from functrans.lowering.loops.expr import ExprBuilder, IterationSpaceMismatch
from functrans.lowering.loops.index import Index, LoopVar
from functrans.lowering.loops.tensor import (
    Call,
    Map,
    Reduce,
    ScatterTensor,
    Stored,
    Tensor,
    tensor_text,
)
from functrans.lowering.rules.graph import Graph, live_items
from functrans.lowering.schedule.kernel import (
    HEAVY,
    Domain,
    Kernel,
    Member,
    PreferredLoopNest,
    Reads,
    accesses,
    preferred_loop_nest,
    roles_in,
)

__all__ = ["MOST_NESTED", "FusionLog", "FusionNote", "MarkedRows", "Schedule", "Step",
           "choose_roots", "nested_reads", "reasons_of_roots", "schedule_of"]


# --- Roots: the values that are computed once, for all who read them. All others are inlined

# Computing a value again is cheaper than storing and loading it (4 bytes each way, at 15 bytes a
# nanosecond for two cores) up to so many additions of a vector.
SHARED_WEIGHT = 8
# ... and for each element that a broadcast or a gather reads again
REPEATED_WEIGHT = 4
# Reading so many arrays again costs as much as one store and one load of the result.
SHARED_LOADS = 3
# Larger expressions run out of registers, and take long to compile.
MOST_WEIGHT, MOST_LOADS = 480, 24
# A scatter takes its elements one at a time: what takes more than an operation is computed in
# vectors before. 98,304 of exp(w) took 206 us, of where(w > 0, 2 * w + 1, 0) 462.
VECTOR_WEIGHT = 2
MOST_NESTED = 200
"""Operations that are read within one another, of which each takes three calls of Python: there are
1,000, and callers have theirs."""
MOVE_NESTS = 10
"""As how many of these one counts that moves elements: indices of a chain of transposes and
reshapes double, 20 of them took gcc two minutes."""
SHARED = "it is read several times, and computing it again costs more than memory"
SCATTERED = "it is computed in vectors, and goes to computed places one by one"
REPEATED = "its elements are read again and again, and computing them again costs more than memory"


def choose_roots(items: Sequence[Tensor | Call], outputs: Iterable[Tensor],
                 one_by_one: bool = False) -> set[Tensor]:
    """The tensors of `items` (live ones, in order) that are not inlined where they are read.

    With `one_by_one`, what goes to computed places goes there an element at a time.
    """
    return set(reasons_of_roots(items, outputs, one_by_one))


def reasons_of_roots(items: Sequence[Tensor | Call], outputs: Iterable[Tensor],
                     one_by_one: bool = False) -> dict[Tensor, str]:
    """As `choose_roots`, with the reason for each."""
    roots = {t: "it is a result" for t in outputs if not isinstance(t, Stored)}
    readers: dict[Tensor, list[Tensor]] = {}
    for item in items:
        if isinstance(item, Call):
            for x in (*item.operands, *item.results):
                if not isinstance(x, Stored):
                    roots.setdefault(x, f"a {item.name} has it in memory")
            continue
        if isinstance(item, ScatterTensor) and not isinstance(item.base, Stored):
            roots.setdefault(item.base, "elements of it are replaced")
        for x in dict.fromkeys(item.operands):
            readers.setdefault(x, []).append(item)
    uses: dict[Tensor, int] = {}
    for item in reversed(items):
        if isinstance(item, Tensor):
            n = 0
            for r in readers.get(item, ()):
                n += uses.get(r, 1) if _moves(r) else 1
            uses[item] = n
    weight: dict[Tensor, int] = {}
    loads: dict[Tensor, int] = {}
    chain: dict[Tensor, int] = {}
    nested: dict[Tensor, int] = {}
    for t in items:
        if isinstance(t, Call):
            continue
        if one_by_one and isinstance(t, ScatterTensor) and not _writes_rows(t):
            for x in _without_movement(t.operands):
                if x not in roots and weight.get(x, 0) >= VECTOR_WEIGHT:
                    roots.setdefault(x, SCATTERED)
        if isinstance(t, (Reduce, ScatterTensor)):
            roots.setdefault(t, "it is a reduction" if isinstance(t, Reduce)
                             else "elements of it are replaced")
            continue
        assert isinstance(t, Map)
        inlined = [x for x in t.operands if x not in roots and not isinstance(x, Stored)]
        inside, loaded, longest, deepest = 0, len(t.operands) - len(inlined), 0, 0
        for x in inlined:  # what is not known is a literal, say
            inside += weight.get(x, 0)
            loaded += loads.get(x, 0)
            longest = max(longest, chain.get(x, 0))
            deepest = max(deepest, nested.get(x, 0))
        weight[t] = t.weight + t.terms * inside
        loads[t] = t.terms * loaded
        chain[t] = t.weight + t.terms * longest
        nested[t] = deepest + _nests(t)
        if t.weight >= HEAVY:  # where a loop over a row may be split
            heavy = [x for x in inlined if x.shape == t.shape and chain.get(x, 0) >= HEAVY
                     and not _moves(x)]
            for x in heavy:
                roots.setdefault(x, "a long chain of operations follows another one")
            if heavy:
                weight[t] = chain[t] = t.weight
                loads[t] = len(t.operands)
        shared = uses[t] > 1 and (
            weight[t] >= SHARED_WEIGHT or (weight[t] >= 2 and loads[t] >= SHARED_LOADS))
        repeated = bool(t.shape) and (
            (weight[t] >= REPEATED_WEIGHT and any(_repeats(r, readers) for r in readers.get(t, ())))
            or (_moves(t) and len(t.operands) > 1 and _is_in_products(t, readers)))
        if shared or repeated:
            roots.setdefault(t, SHARED if shared else REPEATED)
        elif weight[t] > MOST_WEIGHT or loads[t] > MOST_LOADS or nested[t] > MOST_NESTED:
            roots.setdefault(t, "it is a long expression")
    return roots


def _without_movement(operands: Iterable[Tensor]) -> list[Tensor]:
    """What values are in another order or shape, or parts of."""
    found = dict.fromkeys(operands)
    waiting = list(found)
    while waiting:
        t = waiting.pop()
        inside = [x for x in t.operands if _moves(t) and x not in found]
        found.update(dict.fromkeys(inside))
        waiting += inside
    return [t for t in found if not _moves(t)]


def _writes_rows(t: ScatterTensor) -> bool:
    """Whether neighbours of what is scattered go to neighbouring places, as vectors do."""
    s = ExprBuilder(lambda _: True)
    variables = [LoopVar(f"u{k}", n) for k, n in enumerate(t.sizes)]
    place, _ = t.place(s, tuple(map(Index.of, variables)))
    longer = [v for v in variables if v.high != 1]
    return not longer or s.flatten(place, t.shape).coefficient(longer[-1]) == 1


def nested_reads(roots: Iterable[Tensor], stops: Callable[[Tensor], bool]) -> int:
    """How many operations are read within one another, from some roots to what `stops` there."""
    depths: dict[Tensor, int] = {}
    waiting = list(roots)
    while waiting:
        t = waiting[-1]
        inside = [x for x in t.operands if not stops(x)]
        unknown = [x for x in inside if x not in depths]
        if unknown:
            waiting += unknown
            continue
        waiting.pop()
        depths[t] = max([depths[x] for x in inside], default=0) + _nests(t)
    return max(depths.values(), default=0)


def _nests(t: Tensor) -> int:
    return MOVE_NESTS if _moves(t) and not t.pointwise else 1


def _moves(t: Tensor) -> bool:
    return isinstance(t, Map) and t.weight == 0


def _repeats(reader: Tensor, readers: dict[Tensor, list[Tensor]]) -> bool:
    """Whether a reader, or who reads it when it only moves, asks for an element several times."""
    if isinstance(reader, Map):
        if reader.repeats:
            return True
        if reader.weight == 0:
            return any(_repeats(r, readers) for r in readers.get(reader, ()))
    return False


def _is_in_products(t: Tensor, readers: dict[Tensor, list[Tensor]]) -> bool:
    """Whether sums of products read it: the place of each factor would choose among operands."""
    return any(r.terms > 1 or (_moves(r) and _is_in_products(r, readers))
               for r in readers.get(t, ()) if isinstance(r, Map))


# A kernel with more members or expressions runs out of registers and takes long to compile.
MOST_MEMBERS, MOST_EXPRESSIONS = 24, 400
# A row that is kept between the loops of a kernel must stay in the second-level cache; one of a
# symbolic length is thought to: softmax of 1000 x 1024 takes 1.1 times as long in four kernels.
LONGEST_KEPT_ROW = 65536
# Kernels over so few elements are joined even if they share nothing: a call costs more.
TINY = 2048

Step = Kernel | Call


class FusionNote(Record):
    """Why a value was not computed in the kernel of another."""

    tensor: Tensor
    source: Source | None
    reason: str

    def __str__(self) -> str:
        return f"{self.source or 'somewhere'}: {self.tensor} is computed apart: {self.reason}"


class MarkedRows(Record):
    """Rows of `row` elements of a value in memory: those without a mark are all `fill`."""

    row: int
    rows: int
    fill: Any


class Schedule(Record, frozen=False):
    """Kernels and calls in order, and the tensors that live in memory between them."""

    steps: list[Step]
    stored: set[Tensor]
    notes: list[FusionNote] = field(default_factory=list)
    after: Mapping[Tensor, Collection[Tensor]] = field(default_factory=dict)
    """Values that are computed before others (see `Later`)."""
    marked: Mapping[Tensor, MarkedRows] = field(default_factory=dict)
    """Results of scatters of which some rows are not in memory (see `mark_rows`)."""

    def is_stored(self, tensor: Tensor) -> bool:
        return isinstance(tensor, Stored) or tensor in self.stored

    def after_of(self, step: Step) -> set[Tensor]:
        """The values that are computed before a step, besides those that it reads."""
        if not self.after:
            return set()
        found = set(step.after) if isinstance(step, Call) else set()
        kernel = getattr(step, "kernel", step)  # of a product with an epilogue
        for m in kernel.members if isinstance(kernel, Kernel) else ():
            found.update(self.after.get(m.tensor, ()))
        return found


class FusionRefused(Exception):
    """A root does not fit in a kernel; the message says why."""


Told = tuple[str, Tensor, "Tensor | None", str]
"""What became of a root: `alone`, `fused` or `refused`, the first member of the kernel, and why."""


READS_IT = "it reads what that kernel computes, at the same places"
READ_THE_SAME = "both read the same memory over the same elements"
BOTH_SMALL = "both are small: a launch, or a call, costs more than either"


class FusionLog(Protocol):
    """Who wants to know how a schedule came about."""

    def chose(self, items: Sequence[Tensor | Call], why: Mapping[Tensor, str]) -> None:
        """The roots among some items, and the reason for each."""

    def grouped(self, alone: Sequence[Step], schedule: Schedule, told: Sequence[Told]) -> None:
        """A kernel for each root by itself, and what became of them."""


class _Scheduler:
    def __init__(self, graph: Graph, reads: Reads, in_any_order: bool,
                 log: FusionLog | None) -> None:
        self.reads, self.in_any_order, self.log = reads, in_any_order, log
        self.told: list[Told] = []
        self.items = live_items(graph.items, graph.outputs)
        self.outputs = graph.outputs
        self.roots = choose_roots(self.items, graph.outputs, not in_any_order)
        self.steps: list[Step] = []
        self.made_in: dict[Tensor, int] = {}
        self.loaded_by: dict[Tensor, set[int]] = {}  # arrays, and the kernels that load them
        self.notes: list[FusionNote] = []
        self.natures: dict[Tensor, PreferredLoopNest] = {}
        self.tried: set[tuple[Tensor, int]] = set()
        self.gone: set[int] = set()
        self.after = graph.after

    def is_stored(self, tensor: Tensor) -> bool:
        return isinstance(tensor, Stored) or tensor in self.roots

    def run(self) -> Schedule:
        done: set[Tensor] = set()
        for root in self._numbers_of_inputs():
            self.ensure(root, done)
        for item in self.items:
            if isinstance(item, Call):
                for x in item.operands:
                    self.ensure(x, done)
                for r in item.results:
                    done.add(r)
                    self.made_in[r] = len(self.steps)
                self.steps.append(item)
            elif item in self.roots:
                self.ensure(item, done)
        for t in self.outputs:
            self.ensure(t, done)
        self._fuse_late()
        found = Schedule(self.steps, self._materialized(), self.notes, self.after)
        if self.log is not None:
            self.log.chose(self.items, reasons_of_roots(self.items, self.outputs,
                                                        not self.in_any_order))
            self.log.grouped(self._alone(), found, self.told)
        return found

    def _alone(self) -> list[Step]:
        """The steps as if no roots were computed together."""
        kernels = {t: Kernel(n.domain, [n.member(t)]) for t, n in self.natures.items()}
        return [x if isinstance(x, Call) else kernels[x] for x in self.items
                if isinstance(x, Call) or x in kernels]

    def _numbers_of_inputs(self) -> list[Tensor]:
        """Scalars of scalars that are inputs, and that arrays are computed with, before all else.

        A program of Adam counts its steps after the moments of all arrays: with the counts among
        the last of these no update could be computed along with its moments.
        """
        known: set[Tensor] = set()
        read: set[Tensor] = set()
        computed: set[Tensor] = set()  # by calls
        for item in self.items:
            if isinstance(item, Call):
                computed.update(item.results)
            elif isinstance(item, Map) and not item.shape and all(
                    not x.shape and (x in known or (isinstance(x, Stored) and x not in computed))
                    for x in item.operands):
                known.add(item)
            elif item.shape:
                read.update(item.operands)
        for item in reversed(self.items):
            if item in known and item in read:
                read.update(item.operands)
        return [x for x in self.items if x in known and x in read and x in self.roots]

    def ensure(self, root: Tensor, done: set[Tensor]) -> None:
        if isinstance(root, Stored) or root in done:
            return
        done.add(root)
        if isinstance(root.size, int) and root.size == 0:
            return  # nothing to compute
        self.natures[root] = preferred = preferred_loop_nest(
            root, self.is_stored, self.in_any_order)
        if self._placed(root, preferred, len(self.steps)):
            return
        self.made_in[root] = len(self.steps)
        self.told.append(("alone", root, None, ""))
        self.steps.append(Kernel(preferred.domain, [preferred.member(root)]))
        self._loads(preferred, len(self.steps) - 1)

    def _loads(self, preferred: PreferredLoopNest, k: int) -> None:
        for t in preferred.reads:
            if t.shape:
                self.loaded_by.setdefault(t, set()).add(k)

    def _placed(self, root: Tensor, preferred: PreferredLoopNest, before: int) -> bool:
        """Whether root is computed in one of the kernels before a step from now on."""
        for k in self._candidates(root, preferred, before):
            kernel = self.steps[k]
            assert isinstance(kernel, Kernel)
            self.tried.add((root, k))
            try:
                self.steps[k] = self._joined(kernel, root, preferred)
            except FusionRefused as refusal:
                self.notes.append(FusionNote(root, root.source, str(refusal)))
                self.told.append(("refused", root, kernel.members[0].tensor, str(refusal)))
                continue
            if self.log is not None:
                self.told.append(("fused", root, kernel.members[0].tensor,
                                  self._why_joined(root, preferred, kernel, k)))
            self.made_in[root] = k
            self._loads(preferred, k)
            return True
        return False

    def _why_joined(self, root: Tensor, preferred: PreferredLoopNest, kernel: Kernel,
                    k: int) -> str:
        """Why a root is computed in a kernel."""
        members = {m.tensor for m in kernel.members}
        if members & preferred.reads:
            return READS_IT
        return READ_THE_SAME if any(k in self.loaded_by.get(t, ())
                                    for t in preferred.reads) else BOTH_SMALL

    def _fuse_late(self) -> None:
        """Single roots join kernels that have come to read the same after them.

        The sum of a cotangent over rows comes before the rows are read for a gradient.
        """
        for k, step in enumerate(self.steps):
            if isinstance(step, Kernel) and len(step.members) == 1:
                root = step.members[0].tensor
                if self._placed(root, self.natures[root], k):
                    self.gone.add(k)
        self.steps = [step for k, step in enumerate(self.steps) if k not in self.gone]

    def _candidates(self, root: Tensor, preferred: PreferredLoopNest, before: int) -> list[int]:
        """Kernels that root may join, those that share most with it first."""
        if isinstance(root, ScatterTensor):
            return []
        local = {self.made_in[t] for t in preferred.reads if t in self.made_in}
        local |= {self.made_in[t] for t in self.after.get(root, ()) if t in self.made_in}
        shared: set[int] = set().union(*[self.loaded_by.get(t, ()) for t in preferred.reads])
        first = max(local, default=0)
        is_tiny = _at_most(preferred.domain.size, TINY)
        found = []
        for k in range(first, before) if is_tiny else local | shared:
            if not first <= k < before or (root, k) in self.tried or k in self.gone:
                continue
            kernel = self.steps[k]
            if not isinstance(kernel, Kernel) or kernel.members[0].role == "scatter":
                continue
            if k in local or k in shared or _at_most(kernel.domain.size, TINY):
                found.append((k not in local, k not in shared, -k))
        return [-k for _, _, k in sorted(found)]

    def _joined(self, kernel: Kernel, root: Tensor, preferred: PreferredLoopNest) -> Kernel:
        if len(kernel.members) >= MOST_MEMBERS:
            raise FusionRefused("the kernel is full")
        reason = "the elements are not those of the kernel"
        for domain in _domains(kernel, preferred):
            choices = [[m] if m.order and domain == kernel.domain else [] if m.order
                       else roles_in(m.tensor, domain) for m in kernel.members]
            mine = preferred.roles_in(root, domain)
            if not mine or not all(choices):
                continue
            # the role that a member has already, where it is possible, else the first
            members = [m if m in c else c[0] for m, c in zip(kernel.members, choices)]
            same = domain == kernel.domain and members == kernel.members
            for role in mine:
                joined = kernel.with_member(role) if same else Kernel(domain, [*members, role])
                try:
                    self._check(joined, [role] if same else joined.members, kernel)
                    return joined
                except IterationSpaceMismatch as e:
                    reason = _mismatch_reason(joined, e.tensor)
                except FusionRefused as e:
                    reason = str(e)
                if same:
                    kernel.discard_member(role)
        raise FusionRefused(reason)

    def _check(self, kernel: Kernel, new: list[Member], before: Kernel) -> None:
        s = kernel.shared(self.is_stored)
        exprs = [kernel.element(s, m) for m in new]
        if s.count > MOST_EXPRESSIONS:
            raise FusionRefused("the kernel would be too large")
        for tensor, index in accesses(exprs, s):
            if not self.in_any_order and not has_constant_stride(index, kernel.i):
                what = "an index" if tensor is None else f"the {tensor_text(tensor)}"
                raise FusionRefused(f"{what} is not read in order along the rows of the kernel")
        folds = {m.tensor for m in kernel.members if m.role == "reduce_row"}
        row = kernel.domain.row
        if folds and isinstance(row, int) and row > LONGEST_KEPT_ROW:
            raise FusionRefused("the rows are too long to stay in the cache between two loops")
        column_like = {m.role for m in kernel.members} & {"reduce_column", "reduce_all"}
        if column_like and kernel.domain.parts != before.domain.parts and any(
                m.role in ("reduce_column", "reduce_all") for m in before.members):
            raise FusionRefused("the kernel reduces over other rows")

    def _materialized(self) -> set[Tensor]:
        """The roots that another step than their own reads, or the caller gets."""
        stored = {t for t in self.outputs if not isinstance(t, Stored)}
        for step in self.steps:
            for m in step.members if isinstance(step, Kernel) else ():
                if isinstance(m.tensor, ScatterTensor):
                    stored.update(t for t in (m.tensor, m.tensor.base) if not isinstance(t, Stored))
            # kept for later: kernels load the same where no other roots are in memory than these
            stored.update(t for t in self.reads.of(step, self.is_stored)
                          if not isinstance(t, Stored))
        return stored


def _domains(kernel: Kernel, preferred: PreferredLoopNest) -> list[Domain]:
    """The matrices over which a kernel and a root might be computed together."""
    d, n = kernel.domain, preferred.domain
    found = [d]
    if n != d and n.size == d.size:
        found.append(n)
    if n.parts != d.parts and d.total is None and n.size == d.size:
        for parts in (n.parts, 1):
            if _divides(parts, d.rows):
                found.append(Domain(d.rows, d.row, parts))
    return list(dict.fromkeys(found))


def has_constant_stride(index: Index, i: LoopVar) -> bool:
    """Whether an index moves along a row by a constant step."""
    return not any(not isinstance(a, LoopVar) and Index({a: 1}).depends_on(i)
                   for a in index.terms)


def _mismatch_reason(kernel: Kernel, tensor: Tensor) -> str:
    if kernel.role(tensor) in ("reduce_column", "reduce_all"):
        return f"the {tensor_text(tensor)} folds over the rows of the kernel, and is known after " \
               "its loops"
    return f"the {tensor_text(tensor)} is read at another place than it is computed"


def _divides(a: Size, b: Size) -> bool:
    return isinstance(a, int) and isinstance(b, int) and a > 0 and b % a == 0


def _at_most(size: Size, limit: int) -> bool:
    return isinstance(size, int) and size <= limit


def schedule_of(graph: Graph, reads: Reads | None = None, in_any_order: bool = False,
                log: FusionLog | None = None) -> Schedule:
    """Decide which values of a graph are stored, and compute the others where they are read.

    What the steps read is known to `reads` then. `in_any_order`: kernels read memory for several
    values at other places than in order along their rows, as vectors cannot and threads can. A
    `log` is told each decision.
    """
    return _Scheduler(graph, Reads() if reads is None else reads, in_any_order, log).run()
