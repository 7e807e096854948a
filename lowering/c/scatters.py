"""Scatters: elements that go to places which the program computes, on one thread or on several.

Where two elements may go to one place, they are combined in order, so that the result is the same
on any number of threads: a thread walks all elements and takes those whose places are in its slices
of the result. Many threads may have lists of them instead (`row_lists.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from functrans.lowering.c.expressions import CodeScope, ExprWriter, ctype
from functrans.lowering.c.prelude import Prelude
from functrans.lowering.loops.expr import Expr, reachable_expressions
from functrans.lowering.loops.index import Computed, Index
from functrans.lowering.loops.tensor import ITEM_SIZES, ScatterTensor, Tensor
from functrans.lowering.schedule.cpu_target import SERVER
from functrans.lowering.schedule.group import Schedule, has_constant_stride
from functrans.lowering.schedule.kernel import Domain, Kernel, Member

if TYPE_CHECKING:
    from functrans.lowering.c.expressions import KernelText, Scratch

__all__ = ["SLICES", "Scatters"]

SLICES = 64
"""Of a result: threads take as many each as come out even."""

LOOKS = 7
"""Of so many elements and one more, one that goes to the place before it stays in a register: to
look at each, where a few places come in any order, would be foreseen wrongly too often."""

AHEAD = 64
"""Elements ahead whose places are fetched: 1.7 ms where 16 elements take 1.9 (10^6 places)."""

MOST_OPERATIONS = 12
"""Of a place that is computed twice, to fetch it."""

BLOCK = 256
"""Rows of which a thread lists its own at a time."""


def _number_of_place(place: Index, condition: Expr | None, t: Tensor) -> Expr | None:
    """The number x where an element goes to x if that is a place of a result, and else nowhere.

    It is given as x at the nearest place, if x is there; the test of the slice says as much.
    """
    if condition is None or condition.op != "eq" or place.const != 0 or len(place.terms) != 1:
        return None
    (atom, factor), = place.terms.items()
    x, other = condition.args
    if not isinstance(atom, Computed) or factor != 1 or x.dtype != "i64" or other.op != "index" \
            or other.aux != place:
        return None
    least = atom.value
    for op, limit in (("min", t.size - 1), ("max", 0)):
        if least.op != op or least.args[1].op != "const" or least.args[1].aux != limit:
            return None
        least = least.args[0]
    return x if least is x else None


class Scatters:
    """The part of a kernel's writer that writes to computed places."""

    kernel: Kernel
    domain: Domain
    schedule: Schedule
    prelude: Prelude
    lanes: int
    writer: ExprWriter
    sliced: str = ""
    """What belongs to one slice of the result as a whole: a "row", an "element", or nothing."""
    loop_end: str = ""
    """Where the loop along the row ends that is being written."""

    if TYPE_CHECKING:
        def operand(self, t: Tensor | Scratch) -> str: ...

        def size(self, n: Any) -> str: ...

        def _row(self, out: CodeScope) -> None: ...

        def row_with_marks(self, out: CodeScope) -> None: ...

    def _slicing(self) -> str:
        """What belongs to one slice: see `sliced`."""
        m = self.kernel.members[0]
        if len(self.kernel.members) > 1 or not isinstance(m.tensor, ScatterTensor) \
                or m.tensor.unique:
            return ""
        s = self.kernel.builder(self.schedule.is_stored)
        row = self.domain.row
        if self.domain.total is None and isinstance(row, int) and row > 1 \
                and self._writes_in_order(m):
            # rows that begin at different places have no place in common
            first = self._first(self.kernel.target(s, m)[0])
            if all(isinstance(c, int) and c % row == 0 for c in first.terms.values()):
                return "row"
        return "element" if self.lanes == 1 else ""

    def _first(self, place: Index) -> Index:
        """The place of the first element of a row."""
        return Index({a: c for a, c in place.terms.items() if a is not self.kernel.i}, place.const)

    def _writes_in_order(self, member: Member) -> bool:
        s = self.kernel.builder(self.schedule.is_stored)
        place, condition = self.kernel.target(s, member)
        i = self.kernel.i
        return (has_constant_stride(place, i) and place.coefficient(i) == 1
                and (condition is None or not condition.depends_on(i)))

    def _begin_slices(self, head: CodeScope) -> None:
        """The places that are in the slices of this call."""
        n = self.size(self.kernel.members[0].tensor.size)
        for name, end in (("low", "begin"), ("high", "end")):
            head.line(f"const i64 {name} = {n} / {SLICES} * {end} + {n} % {SLICES} * {end} "
                      f"/ {SLICES};")
        if self._keeps():
            t = self.kernel.members[0].tensor
            head.line(f"{ctype(t.compute)} kept = 0;")
            head.line("i64 kept_at = -1, before = -1;")

    def _keeps(self) -> bool:
        """Whether an element stays in a register in long runs of elements that go to its place.

        What is stored is read again after 12 cycles. 20 sums of 160,000 sorted elements, most of
        them of long runs, took 11.8 ms so; places in any order are as fast as without.
        """
        t = self.kernel.members[0].tensor
        return self.sliced == "element" and isinstance(t, ScatterTensor) and t.op != "set" \
            and t.dtype == t.compute

    def _end_slices(self, out: CodeScope) -> None:
        if self._keeps():
            t = self.kernel.members[0].tensor
            out.line(f"if (kept_at >= 0) {self._store_kept(t)};")

    def _store_kept(self, t: Tensor) -> str:
        return self.prelude.store_scalar(t.dtype, f"{self.operand(t)} + kept_at", "kept")

    def _rows_of_slices(self, out: CodeScope) -> None:
        """The loop over the rows that go to these slices, of which a list is made block by block.

        The list is made without branches: they would be taken at random, which costs more than a
        short row does. One thread that has all slices needs none: sums of 2^18 rows of 64 take 3.3
        ms for 4.9.
        """
        rows = self.size(self.domain.rows)
        s = self.kernel.builder(self.schedule.is_stored)
        place = self._first(self.kernel.target(s, self.kernel.members[0])[0])
        out.line(f"if (begin == 0 && end == {SLICES}) {{")  # one thread has all of them
        out.line(f"  for (i64 o = 0; o < {rows}; o++) {{")
        inner = out.nested().nested()
        self.row_with_marks(inner)
        out.take(inner)
        out.line("  }")
        out.line(f"}} else for (i64 first = 0; first < {rows}; first += {BLOCK}) {{")
        block = out.nested()
        block.line(f"const i64 last = ft_min(first + {BLOCK}, {rows});")
        block.line(f"i64 own[{BLOCK}], count = 0;")
        block.line("for (i64 o = first; o < last; o++) {")
        inner = block.nested()
        self.writer.begin_row(inner)
        inner.line(f"const i64 at = {self.writer.index(place, inner)};")
        inner.line("own[count] = o;")
        inner.line("count += (at >= low) & (at < high);")
        block.take(inner)
        block.line("}")
        block.line("for (i64 k = 0; k < count; k++) {")
        inner = block.nested()
        inner.line("const i64 o = own[k];")
        self.row_with_marks(inner)
        block.take(inner)
        block.line("}")
        out.take(block)
        out.line("}")

    def _scatter(self, m: Member, e: Expr, loop: CodeScope, s: Any) -> None:
        t = m.tensor
        assert isinstance(t, ScatterTensor)
        place, condition = self.kernel.target(s, m)
        out, p, lanes = self.operand(t), self.prelude, self.lanes
        scopes = [loop]

        def only_if(text: str) -> CodeScope:
            scopes[-1].line(f"if ({text}) {{")
            scopes.append(scopes[-1].nested())
            return scopes[-1]

        inner = loop
        whole = _number_of_place(place, condition, t) if self.sliced == "element" else None
        if condition is not None and whole is None:
            inner = only_if(self.writer.scalar(condition, loop))
        at = "" if self.sliced != "element" else self.writer.index(place, inner) \
            if whole is None else self.writer.scalar(whole, inner)
        if (at and condition is None) or whole is not None:
            self._fetch_place(t, place if whole is None else whole, loop)
        if at:
            inner.line(f"const i64 at = {at};")
            inner = only_if("(u64)(at - low) < (u64)(high - low)")
        value = self.writer.vector(e, inner)
        if at and self._keeps():
            self._combine_kept(t, out, value, inner)
            self._close(scopes)
            return
        at = f"{out} + {'at' if at else self.writer.index(place, inner)}"
        dtype, count = t.compute, self.writer.count
        if t.op != "set":
            before = at
            if t in self.schedule.marked:
                before = self.writer.marked_pointer(t, "is_written", at, inner)
            here = p.load(t.dtype, lanes, before, count) if lanes > 1 else \
                p.load_scalar(t.dtype, before)
            value = p.op(t.op, (dtype, dtype), (here, value), lanes)
        store = p.store(t.dtype, lanes, at, value, count) if lanes > 1 else \
            p.store_scalar(t.dtype, at, value)
        inner.line(store + ";")
        self._close(scopes)

    def _fetch_place(self, t: ScatterTensor, place: Index | Expr, loop: CodeScope) -> None:
        """Fetch the place of a later element, if that is far as a rule and soon computed.

        What computes it is written once more, where another i hides that of the loop.
        """
        row, size, writer = self.domain.row, t.size, self.writer
        atoms = [place] if isinstance(place, Expr) else \
            [a.value for a in place.terms if isinstance(a, Computed)]
        work = [e for e in reachable_expressions(atoms) if e.op != "const"]
        if not isinstance(size, int) or size * ITEM_SIZES[t.dtype] < SERVER.far_places_bytes or \
                not isinstance(row, int) or row < 4 * AHEAD or len(work) > MOST_OPERATIONS or \
                not any(e.op == "load" for e in work) or any(e.op == "local" for e in work):
            return
        fetched = loop.nested()
        with writer.hidden_loop():
            at = writer.scalar(place, fetched) if isinstance(place, Expr) else \
                writer.index(place, fetched)
        fetched.line(f"__builtin_prefetch({self.operand(t)} + {at}, 1);")
        loop.line(f"{{ const i64 next = ft_min(i + {AHEAD}, ({self.loop_end}) - 1);")
        loop.line("{ const i64 i = next;")
        loop.take(fetched)
        loop.line("} }")

    def _combine_kept(self, t: ScatterTensor, out: str, value: str, inner: CodeScope) -> None:
        p, both = self.prelude, (t.compute, t.compute)
        here = p.load_scalar(t.dtype, f"{out} + at")
        inner.line("if (at == kept_at) {")
        inner.line(f"  kept = {p.op(t.op, both, ('kept', value), 1)};")
        inner.line("} else {")
        inner.line("  if (kept_at >= 0) {")
        inner.line(f"    {self._store_kept(t)};")
        inner.line("    kept_at = -1;")
        inner.line("  }")
        inner.line(f"  const {ctype(t.compute)} sum = {p.op(t.op, both, (here, value), 1)};")
        inner.line(f"  {p.store_scalar(t.dtype, f'{out} + at', 'sum')};")
        inner.line(f"  if (((o + i) & {LOOKS}) == 0 && at == before) {{")
        inner.line("    kept = sum;")
        inner.line("    kept_at = at;")
        inner.line("  }")
        inner.line("  before = at;")
        inner.line("}")

    @staticmethod
    def _close(scopes: list[CodeScope]) -> None:
        for scope in reversed(scopes[:-1]):
            scope.take(scopes.pop())
            scope.line("}")

    def _finish_slices(self, text: KernelText) -> KernelText:
        """A kernel over slices instead of rows, of which each piece walks all rows."""
        text.count, text.grain = SLICES, -1
        return text
