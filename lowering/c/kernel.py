"""The C text of a kernel: one function over a range of rows (or of chunks of rows)."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable
from typing import Any

from functrans.core.dims import Size
from functrans.lowering.c.column_reductions import ColumnReductions
from functrans.lowering.c.expressions import (
    C_TYPES,
    CodeScope,
    ExprWriter,
    KernelText,
    Scratch,
    is_number,
)
from functrans.lowering.c.marked_rows import RowsWithMarks
from functrans.lowering.c.prelude import Prelude
from functrans.lowering.c.row_reductions import RowReduction, total_dtype
from functrans.lowering.c.scatters import Scatters
from functrans.lowering.c.transposed_reads import TILE_ROWS, TransposedReads
from functrans.lowering.loops.expr import (
    Expr,
    ExprBuilder,
    Range,
    reachable_expressions,
    values_of_names,
)
from functrans.lowering.loops.index import Index, LoopVar, at_least_zero
from functrans.lowering.loops.tensor import ITEM_SIZES, Reduce, ScatterTensor, Tensor
from functrans.lowering.rules.elementwise import ELEMENTWISE
from functrans.lowering.schedule.cpu_target import SERVER
from functrans.lowering.schedule.group import Schedule, has_constant_stride
from functrans.lowering.schedule.kernel import Kernel, Member, stages_of

__all__ = ["CKernelWriter", "write_kernel"]

# Tests that the loop does not decide are turned into branches up to this depth, each of which
# repeats the code of the loop; below it they are selections.
BRANCH_DEPTH = 3
MOST_SEGMENTS = 5
_SIZES = re.compile(r"\bs\d+\b")


def write_kernel(kernel: Kernel, schedule: Schedule, prelude: Prelude,
                 sizes: dict[str, str]) -> KernelText:
    """The C text of a kernel; `sizes` has the C expression of every named size."""
    return CKernelWriter(kernel, schedule, prelude, sizes).write()


# What is done with complex64 as integers of 64 bits, by the type of the first operand.
_UNPACKING = frozenset({("shift_right_logical", "i64"), ("shift_left", "i64"), ("or", "i64"),
                        ("convert", "i32"), ("convert", "u32"), ("select", "bool")})


def _packed(everything: Iterable[Expr], i: LoopVar) -> bool:
    """Whether all values of 64 bits are complex64 next to each other, of which parts are used.

    A vector of their parts is as wide as the machine's: two vectors of 64-bit integers hold it.
    """
    parts = False
    for e in everything:
        parts |= e.dtype == "f32" and e.op not in ("load", "const", "bitcast")
        if any(x.dtype == "i64" for x in e.args) and e.dtype != "i64" and (
                e.op, e.dtype) != ("convert", "i32"):
            return False
        if ITEM_SIZES[e.dtype] < 8 or e.op == "const":
            continue
        if e.op == "load":
            step = e.aux[1].coefficient(i) if has_constant_stride(e.aux[1], i) else None
            if e.dtype != "i64" or not (is_number(step, 0) or is_number(step, 1)):
                return False
        elif e.op != "local" and (e.op, e.args[0].dtype if e.args else "") not in _UNPACKING:
            return False
    return parts


# Of vectors for rows that are shorter than those of the machine. Half a vector in parts takes 1.3
# to 2 times as long as a whole one of half the width: stores in parts are not forwarded to loads.
FEWEST_LANES = 4


class CKernelWriter(ColumnReductions, TransposedReads, Scatters, RowsWithMarks):
    first_name = 0
    """From where on variables are numbered: those of two functions have different names."""

    def __init__(self, kernel: Kernel, schedule: Schedule, prelude: Prelude,
                 sizes: dict[str, str]) -> None:
        self.kernel = kernel
        self.domain = kernel.domain
        self.schedule = schedule
        self.prelude = prelude
        self.table = sizes
        self.sizes = {name: f"s{k}" for k, name in enumerate(sizes)}
        self.operands: list[Tensor | Scratch] = []
        self._built: dict[Any, tuple[ExprBuilder, dict[Tensor, Expr]]] = {}
        self.stages = self._stages()
        self.later = self._read_later()
        self.lanes = self._lanes()
        self.columns = [m for m in kernel.members if m.role in ("reduce_column", "reduce_all")]
        self.row_buffers: dict[Tensor, str] = {}
        self._buffers: list[tuple[str, str, int]] = []
        self.folds: dict[str, Tensor] = {}
        self.streamed = False

    # --- what is computed when

    def built(self, facts: dict[Range, bool]) -> tuple[ExprBuilder, dict[Tensor, Expr]]:
        """The expressions of all members under some facts, made once."""
        key = (frozenset(facts.items()) if facts else None, self.kernel.i.low, self.kernel.i.high)
        if key not in self._built:
            is_stored = self.schedule.is_stored
            s = (self.kernel.as_scheduled(is_stored) if not facts and not self._built else None) \
                or self.kernel.builder(is_stored, facts)
            elements = {m.tensor: self.kernel.element(s, m) for m in self.kernel.members}
            read = {e.aux for e in s.reachable(elements.values()) if e.op == "local"}
            self._built[key] = s, {
                m.tensor: self._as_stored(s, m, elements[m.tensor]) if m.tensor in read
                else elements[m.tensor] for m in self.kernel.members}
        return self._built[key]

    def _as_stored(self, s: ExprBuilder, m: Member, e: Expr) -> Expr:
        """A value as its readers in other kernels see it: a half that is stored is rounded.

        Where this kernel does not read it the store alone rounds.
        """
        t = m.tensor
        if m.role not in ("full", "row") or t not in self.schedule.stored \
                or t.compute in (t.dtype, "bool"):
            return e
        return s.op("round_to", e, aux=t.dtype)

    def _stages(self) -> dict[Tensor, int]:
        """The number of the loop over a row in which each member is computed."""
        s, elements = self.built({})
        everything = s.reachable(elements.values())
        self.weight = max(1, _weight(everything))
        self.packed = _packed([e for e in everything if e.depends_on(self.kernel.i)],
                              self.kernel.i)
        # a number that is the same along the row is loaded as a scalar
        self.loads: list[Tensor] = [e.aux[0] for e in everything
                                    if e.op == "load" and e.depends_on(self.kernel.i)]
        return stages_of(self.kernel, elements, s)

    def _read_later(self) -> dict[Tensor, int]:
        """Full members that a later loop over the row reads, and the number of the last one."""
        found: dict[Tensor, int] = {}
        if not any(self.stages.values()):
            return found
        s, elements = self.built({})
        for m in self.kernel.members:
            stage = self.stages[m.tensor]
            for e in s.reachable([elements[m.tensor]]):
                if e.op == "local" and self.kernel.role(e.aux) == "full" \
                        and self.stages[e.aux] < stage:
                    found[e.aux] = max(found.get(e.aux, 0), stage)
        return found

    def _lanes(self) -> int:
        if any(m.role == "scatter" and not self._writes_in_order(m) for m in self.kernel.members):
            return 1
        if isinstance(self.domain.row, int) and self.domain.row == 1:
            return 1
        dtypes = {m.tensor.compute for m in self.kernel.members}
        dtypes |= {m.tensor.value_dtype for m in self.kernel.members
                   if isinstance(m.tensor, Reduce)}
        dtypes |= {t.compute for t in self.loads}
        if self.packed and not any(isinstance(m.tensor, Reduce | ScatterTensor)
                                   and m.tensor.dtype == "i64" for m in self.kernel.members):
            dtypes.discard("i64")
        widest = max(ITEM_SIZES[d] for d in dtypes if d != "bool") if dtypes - {"bool"} else 4
        lanes = max(1, self.prelude.isa.vector_bytes // max(widest, 4))
        row = self.domain.row
        while isinstance(row, int) and row <= lanes // 2 and lanes > FEWEST_LANES:
            lanes //= 2
        return lanes

    # --- the function

    def write(self) -> KernelText:
        self.writer = ExprWriter(self, self.first_name)
        head = CodeScope("  ")
        self.head = head
        body = CodeScope("    ")
        if self.columns:
            return self._write_chunks(head, body)
        tiles = self.transposed(*self.built({}))
        if tiles:
            self.tiled_rows(tiles, head, body)
            return self._finish(head, body, self.domain.rows, grain=TILE_ROWS)
        self.sliced = self._slicing()
        if self.sliced:
            self._begin_slices(body)
        if self.sliced == "row":
            self._rows_of_slices(body)
        else:
            rows = f"0; o < {self.size(self.domain.rows)}" if self.sliced else "begin; o < end"
            body.line(f"for (i64 o = {rows}; o++) {{")
            inner = body.nested()
            self.row_with_marks(inner)
            body.take(inner)
            body.line("}")
        if self.sliced:
            self._end_slices(body)
        serial = any(isinstance(m.tensor, ScatterTensor) and not m.tensor.unique
                     for m in self.kernel.members) and not self.sliced
        text = self._finish(head, body, self.domain.rows, serial=serial)
        return self._finish_slices(text) if self.sliced else text

    def _finish(self, head: CodeScope, body: CodeScope, count: Size, finish: str = "",
                serial: bool = False, grain: Size = 1) -> KernelText:
        text = self._entry("NAME", f"{head.text()}{body.text()}{self._frees()}") + finish
        return KernelText(text, self.operands, count, grain, self.weight, self.domain.size,
                          bool(finish), serial, [m.tensor.source for m in self.kernel.members],
                          self.lanes, self._values())

    def _frees(self) -> str:
        frees = "".join(f"  ft->release({name});\n" for name, _, _ in self._buffers)
        return f"{frees}  {self.prelude.fence()};\n" if self.streamed else frees

    def _entry(self, name: str, body: str) -> str:
        """A function over ranges, with the operands so far and the sizes that it names."""
        pointers = "".join(
            f"  {C_TYPES[t.dtype]} *p{k} = a[{k}];\n" for k, t in enumerate(self.operands))
        return (f"static void {name}(void *arg, i64 begin, i64 end) {{\n  void *const *a = arg;\n"
                f"{pointers}{self._sizes(body)}{body}  ft_clear_upper();\n}}\n")

    def _values(self) -> dict[str, tuple[Tensor, ...]]:
        """The values that variables are elements of, and those that pointers are of."""
        made = [(t, e) for s, elements in self._built.values() for t, e in [
            *((t, e) for (t, _), e in s.reads().items()), *elements.items()]]
        found = values_of_names(self.writer.named, made)
        found.update((f"p{k}", (t,)) for k, t in enumerate(self.operands) if isinstance(t, Tensor))
        return {**found, **{name: (t,) for name, t in self.folds.items()}}

    def _sizes(self, text: str) -> str:
        """The sizes of a text as variables: the compiler reads the table again after each store."""
        lines = [f"  const i64 *z = a[{len(self.operands)}];\n  (void)z;\n"]
        used = set(_SIZES.findall(text)) if self.sizes else ()
        lines += [f"  const i64 {name} = {self.table[n]};\n" for n, name in self.sizes.items()
                  if name in used]
        return "".join(lines)

    def operand(self, t: Tensor | Scratch) -> str:
        """The name of the pointer to an operand."""
        if t not in self.operands:
            self.operands.append(t)
        return f"p{self.operands.index(t)}"

    def size(self, n: Size) -> str:
        return self.writer.size(n)

    # --- one row

    def _row(self, out: CodeScope, facts: dict[Range, bool] | None = None, depth: int = 0) -> None:
        """Everything that is computed for one row, under tests whose outcome is known."""
        facts = facts or {}
        if self.domain.total is not None and depth == 0:
            out.line(f"const i64 R = ft_min({self.size(self.domain.row)}, "
                     f"{self.size(self.domain.total)} - o * {self.size(self.domain.row)});")
        if depth < BRANCH_DEPTH:
            test = self._open_test(facts)
            if test is not None:
                index, low, high = test
                at = self.writer.index(index, CodeScope(""))
                out.line(f"if (({at}) >= {self.size(low)} && ({at}) < {self.size(high)}) {{")
                for outcome in (True, False):
                    inner = out.nested()
                    self._row(inner, {**facts, test: outcome}, depth + 1)
                    out.take(inner)
                    out.line("} else {" if outcome else "}")
                return
            test = self._test_of_piece(facts)
            if test is not None:
                self._piece(test, out, facts, depth)
                return
        self.writer.begin_row(out)
        _, elements = self.built(facts)
        for stage in range(1 + max(self.stages.values())):
            for m in self.kernel.members:
                if self.stages[m.tensor] == stage and m.role == "row":
                    self._row_member(m, elements[m.tensor], out)
            along = [m for m in self.kernel.members
                     if self.stages[m.tensor] == stage and m.role != "row"]
            if along:
                self._loop(along, stage, out, facts)

    def _piece(self, test: Range, out: CodeScope, facts: dict[Range, bool], depth: int) -> None:
        """A piece of a line where a test holds for all elements, for none, or for some.

        Only in the last are operands gathered: two vectors of 1,000,000 float64 joined take 0.54 ms
        where each element asked took 1.4.
        """
        index, low, high = test
        first = index - Index.of(self.kernel.i)
        at = self.writer.index(first, CodeScope(""))
        begins, ends = self.size(low), self.size(high)
        if self.domain.total is not None and list(first.terms.values()) == [self.domain.row]:
            facts = {**facts, (index - index.const, 0, self.domain.total): True}
        for line, known in ((f"if (({at}) >= {begins} && ({at}) + R <= {ends}) {{", {test: True}),
                            (f"}} else if (({at}) + R <= {begins} || ({at}) >= {ends}) {{",
                             {test: False}), ("} else {", None)):
            out.line(line)
            inner = out.nested()
            if known is None:
                self._row(inner, facts, BRANCH_DEPTH)
            else:
                self._row(inner, {**facts, **known}, depth + 1)
            out.take(inner)
        out.line("}")

    def _test_of_piece(self, facts: dict[Range, bool]) -> Range | None:
        """A test on the place along a line in pieces, whose outcome is not known."""
        if self.domain.total is None:
            return None
        i = self.kernel.i
        for index, low, high in self.built(facts)[0].undecided:
            if is_number(index.coefficient(i), 1) and not index.has_computed \
                    and not (index - Index.of(i)).depends_on(i):
                return index, low, high
        return None

    def _open_test(self, facts: dict[Range, bool]) -> Range | None:
        """A test that is the same along the row, whose outcome is not known."""
        s, _ = self.built(facts)
        for index, low, high in s.undecided:
            if not index.depends_on(self.kernel.i) and not index.has_computed:
                return index, low, high
        return None

    def _row_member(self, m: Member, e: Expr, out: CodeScope) -> None:
        t = m.tensor
        name = self.writer.scalar(e, out)
        self.writer.locals[t] = name
        if t in self.schedule.stored:
            pointer = f"{self.operand(t)} + o"
            out.line(self.prelude.store_scalar(t.dtype, pointer, name) + ";")

    # --- one loop over a row

    def _loop(self, members: list[Member], stage: int, out: CodeScope,
              facts: dict[Range, bool]) -> None:
        folds = [RowReduction(m, None, self._reduction_dtype(m), f"f{stage}_{k}")  # type: ignore[arg-type]
                 for k, m in enumerate(members) if m.role in ("reduce_row", "reduce_all")]
        segments = self._segments(members, facts)
        unroll = 1
        if len(segments) == 1:
            for f in folds:
                f.searched = self._is_searched(f, facts)
            s, elements = self.built(facts)
            weight = _weight(s.reachable([elements[m.tensor] for m in members]))
            unroll = self._unroll(members, folds, weight)
        self.folds.update((f"f{stage}_{k}", m.tensor) for k, m in enumerate(members)
                          if m.role in ("reduce_row", "reduce_all"))
        for f in folds:
            f.cascaded = self.is_long_sum(f, unroll * self.lanes)
            self._begin_reduction(f, out, unroll)
        i = self.kernel.i
        low, high = i.low, i.high
        for a, b in segments:
            i.low, i.high = a, b
            if len(segments) == 1:
                i.low, i.high = low, high
            self._segment(members, folds, stage, out, facts, a, b, unroll)
        i.low, i.high = low, high
        for f in folds:
            if f.searched:
                self._search(f, self.built(facts)[1], stage, out, unroll)
            self._end_reduction(f, out, unroll)

    def _is_searched(self, f: RowReduction, facts: dict[Range, bool]) -> bool:
        """Whether the place of an extreme value is found by a second loop, which is faster."""
        t = f.member.tensor
        assert isinstance(t, Reduce)
        if not t.op.startswith("arg") or self.lanes == 1:
            return False
        e = self.built(facts)[1][t]
        return not any(x.op == "local" and self.stages[x.aux] == self.stages[t]
                       for x in reachable_expressions([e]))

    def _search(self, f: RowReduction, elements: dict[Tensor, Expr], stage: int, out: CodeScope,
                unroll: int) -> None:
        """The loop that finds the first place at which a value is the extreme one."""
        self._begin_search(f, out, unroll)
        for begin, end, _, part in self._pieces(0, self.domain.row, 1):
            loop = out.nested()
            self.writer.begin_loop(out, stage, "n" if part else None)
            if part:
                loop.line(f"const i64 n = {self._part(0, self.domain.row, begin, end, 1)};")
            self._search_step(f, self.writer.vector(elements[f.member.tensor], loop), loop)
            if stage == 0:
                self._prefetch(elements, loop)
            out.line(f"for (i64 i = {begin}; i < {end}; i += {self.lanes}) {{")
            out.take(loop)
            out.line("}")

    def _segments(self, members: list[Member],
                  facts: dict[Range, bool]) -> list[tuple[Size, Size]]:
        """Pieces of the row in which tests on the place along it have one outcome."""
        row = self.domain.row
        if self.domain.total is not None:
            return [(0, row)]
        s, _ = self.built(facts)
        cuts: list[Size] = [0, row]
        i = self.kernel.i
        for index, low, high in s.undecided:
            if set(index.terms) == {i} and is_number(index.terms[i], 1):
                cuts += [c - index.const for c in (low, high)]
        inside = _ascending(cuts, row)
        if inside is None or len(inside) - 1 > MOST_SEGMENTS:
            return [(0, row)]
        return list(itertools.pairwise(inside))

    def _segment(self, members: list[Member], folds: list[RowReduction], stage: int, out: CodeScope,
                 facts: dict[Range, bool], a: Size, b: Size, unroll: int) -> None:
        lanes = self.lanes
        s, elements = self.built(facts)
        exprs = [elements[m.tensor] for m in members]
        by_tensor = {f.member.tensor: f for f in folds}
        for begin, end, steps, part in self._pieces(a, b, unroll):
            loop, self.loop_end = out.nested(), end
            self.writer.begin_loop(out, stage, "n" if part else None)
            if part:
                loop.line(f"const i64 n = {self._part(a, b, begin, end, unroll)};")
            for u in range(steps):
                if u:
                    self.writer.begin_loop(out, stage, None, u * lanes)
                for m, e in zip(members, exprs):
                    self._member(m, e, stage, loop, by_tensor.get(m.tensor), u, s)
                if stage == 1:
                    self._prefetch(elements, loop)
            if lanes == 1 and is_number(self.domain.row, 1):
                out.line("{ const i64 i = 0; (void)i;")
            elif any(f.cascaded for f in folds) and not part:
                self._blocks(folds, begin, end, steps * lanes, steps, loop, out)
                continue
            else:
                out.line(f"for (i64 i = {begin}; i < {end}; i += {steps * lanes}) {{")
            out.take(loop)
            out.line("}")

    def _blocks(self, folds: list[RowReduction], begin: str, end: str, step: int, unroll: int,
                loop: CodeScope, out: CodeScope) -> None:
        """The loop along a piece of the row in blocks, whose sums are added to their totals."""
        wide = all(total_dtype(f.dtype) == f.dtype for f in folds if f.cascaded)
        block = step * self.steps_in_block(unroll, wide)
        out.line(f"for (i64 b = {begin}; b < {end}; b += {block}) {{")
        inner = out.nested()
        inner.line(f"const i64 b9 = ft_min(b + {block}, {end});")
        inner.line(f"for (i64 i = b; i < b9; i += {step}) {{")
        inner.take(loop)
        inner.line("}")
        for f in folds:
            if f.cascaded:
                self._end_block(f, inner, unroll)
        out.take(inner)
        out.line("}")

    def _pieces(self, a: Size, b: Size, unroll: int) -> list[tuple[str, str, int, bool]]:
        """The loops over a piece of the row: begin, end, vectors at a time, and whether in parts.

        What is whole comes first: in parts a sum takes twice as long.
        """
        begin, end, lengths = self._ends(a, b)
        lanes = self.lanes
        if lanes == 1 or all(isinstance(n, int) and n % (lanes * unroll) == 0 for n in lengths):
            return [(begin, end, unroll, False)]
        vectors = all(isinstance(n, int) and n % lanes == 0 for n in lengths)
        if not vectors and not self.peels(lengths):
            return [(begin, end, unroll, True)]
        stop = f"{begin} + ({end} - {begin}) / {lanes * unroll} * {lanes * unroll}"
        return [(begin, stop, unroll, False), (stop, end, 1, not vectors)]

    def _part(self, a: Size, b: Size, begin: str, end: str, unroll: int) -> str:
        """How many elements the vector at i has: a constant where it is the only one in parts.

        Elements that lie apart are then read without a loop, whose vector is not forwarded: a
        maximum over 12 elements at a stride took 27 ns so, now 6. An epilogue has any columns of a
        row, and does not know which.
        """
        if isinstance(a, int) and isinstance(b, int) and end == self.size(b) and (
                b - a < self.lanes or (unroll == 1 and begin != self.size(a))):
            return str((b - a) % self.lanes)
        return f"ft_min({self.lanes}, {end} - i)"

    def _ends(self, a: Size, b: Size) -> tuple[str, str, list[Size]]:
        """Where loops over a piece of the row begin and end, and how long they may be."""
        total = self.domain.total
        if total is None:
            return self.size(a), self.size(b), [b - a]
        return self.size(a), "R", [b - a, total]

    def _prefetch(self, elements: dict[Tensor, Expr], loop: CodeScope) -> None:
        """Ask for the next row while the second loop computes: the first one only waits for it.

        Measured on logsumexp of 8192 rows of 8192 float32: 15 GB/s without, 26 with.
        """
        d, kernel = self.domain, self.kernel
        if self.lanes == 1:
            return
        first = [elements[m.tensor] for m in kernel.members if self.stages[m.tensor] == 0]
        for e in reachable_expressions(first):
            if e.op != "load":
                continue
            t, place = e.aux
            if not self._is_in_memory(t):
                continue
            nbytes = ITEM_SIZES[t.dtype]
            if (is_number(place.coefficient(kernel.i), 1) and place.coefficient(kernel.o) == d.row
                    and (not isinstance(t.size, int) or t.size * nbytes >= SERVER.prefetched_bytes)
                    and (not isinstance(d.row, int)
                         or 1024 <= d.row * nbytes <= SERVER.longest_prefetch)):
                start = self.writer.pointer(self.operand(t), place, t)
                ahead = f"{start} + {self.writer.i_text} + {self.size(d.row)}"
                loop.line(f"__builtin_prefetch({ahead}, 0, 2);")

    def _is_in_memory(self, t: Tensor) -> bool:
        """Whether a value that is loaded has an address that the kernel is given."""
        return True

    def _member(self, m: Member, e: Expr, stage: int, loop: CodeScope, fold: RowReduction | None,
                u: int,
                s: Any) -> None:
        t = m.tensor
        if m.role == "scatter":
            self._scatter(m, e, loop, s)
            return
        name = self.writer.vector(e, loop)
        if m.role == "full":
            self.writer.locals[t] = name
            self.writer.local_stage[t] = stage
            if t in self.schedule.stored:
                self._store(t, self.operand(t), name, loop)
            if t in self.later and (t not in self.schedule.stored or t.dtype != t.compute):
                pointer = self._row_buffer(t)
                i = self.writer.i_text
                loop.line(self.prelude.store(t.compute, self.lanes, f"{pointer} + {i}", name,
                                             self.writer.count) + ";")
        elif m.role == "reduce_column":
            self._add_to_column(t, name, loop)
        else:
            assert fold is not None
            self._reduce_vector(fold, name, loop, u)

    def _store(self, t: Tensor, pointer: str, name: str, loop: CodeScope) -> None:
        base = self.writer.pointer(pointer, self.kernel.places["full"], t)
        if self._streams(t):
            text = self.prelude.stream(t.dtype, self.lanes, f"{base} + {self.writer.i_text}", name)
            if text is not None:
                self.streamed = True
                loop.line(text + ";")
                return
        text = self.prelude.store(t.dtype, self.lanes, f"{base} + {self.writer.i_text}", name,
                                  self.writer.count) if self.lanes > 1 else \
            self.prelude.store_scalar(t.dtype, f"{base} + {self.writer.i_text}", name)
        loop.line(text + ";")

    def _streams(self, t: Tensor) -> bool:
        """Whether a result is too large for the cache, and whole vectors of it are aligned."""
        row, i = self.domain.row, self.kernel.i
        return (self.lanes > 1 and self.writer.count is None and t not in self.later
                and isinstance(t.size, int)
                and t.size * ITEM_SIZES[t.dtype] >= SERVER.streamed_bytes
                and isinstance(row, int) and row % self.lanes == 0
                and isinstance(i.low, int) and i.low % self.lanes == 0)

    def _row_buffer(self, t: Tensor) -> str:
        """Memory for one row of a value that a later loop over the row reads.

        Values of one dtype share it where none is needed longer: two rows of 16 KB stay in the
        first cache, and gcc takes 0.7 of the time for a chain of 24 loops with 23 of them.
        """
        name = self.row_buffers.get(t)
        if name is None:
            stage, last, ctype = self.stages[t], self.later[t], C_TYPES[t.compute]
            k = next((k for k, (_, of, end) in enumerate(self._buffers)
                      if of == ctype and end < stage), None)
            if k is None:
                k = len(self._buffers)
                self._buffers.append((f"row{k}", ctype, last))
                size = f"({self.size(self.domain.row)} + 64) * {ITEM_SIZES[t.compute]}"
                self.head.line(f"{ctype} *row{k} = ft->allocate({size});")
            name = self.row_buffers[t] = f"row{k}"
            self._buffers[k] = (name, ctype, last)
        return name


def _ascending(cuts: list[Size], row: Size) -> list[Size] | None:
    """The cuts within a row, each once and in order; None where the order is not known."""
    inside: list[Size] = []
    for c in cuts:
        if c in inside or at_least_zero(-1 - c) or at_least_zero(c - row - 1):
            continue
        k = sum(at_least_zero(c - b) for b in inside)
        if not at_least_zero(c) or not at_least_zero(row - c) \
                or not all(at_least_zero(b - c) for b in inside[k:]):
            return None
        inside.insert(k, c)
    return inside


def _weight(exprs: Iterable[Expr]) -> int:
    """What some expressions cost, in additions."""
    return sum(map(ELEMENTWISE.weight, [e.op for e in exprs
                                        if e.op not in ("const", "local", "index")]))
