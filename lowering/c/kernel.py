"""The C text of a kernel: one function over a range of rows (or of chunks of rows)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from functrans.core.dims import Size
from functrans.lowering.c.expressions import Scope, Writer, ctype
from functrans.lowering.c.names import C_TYPES, ITEM_SIZES
from functrans.lowering.c.prelude import Prelude
from functrans.lowering.loops.expr import Expr, Range
from functrans.lowering.loops.index import Computed
from functrans.lowering.loops.tensor import Reduce, Scatter, Tensor
from functrans.lowering.rules.elementwise import WEIGHTS
from functrans.lowering.rules.reduce import neutral
from functrans.lowering.schedule.group import Schedule, is_straight
from functrans.lowering.schedule.kernel import Kernel, Member, reached

__all__ = ["KernelText", "Scratch", "write_kernel"]

# Tests that the loop does not decide are turned into branches up to this depth, each of which
# repeats the code of the loop; below it they are selections.
BRANCH_DEPTH = 3
MOST_SEGMENTS = 5
# rows in one chunk of a reduction over rows: as many as are added into one sum in sequence
CHUNK_ELEMENTS, CHUNK_ROWS = 65536, 512
UNROLL_BELOW = 14  # expressions in the body of a reduction that is worth several accumulators


@dataclass(frozen=True)
class Scratch:
    """Memory that a kernel needs besides its operands: partial results of its chunks."""

    dtype: str
    size: Size


@dataclass
class KernelText:
    """A kernel in C: `text` defines the functions, with NAME for its name.

    `operands` are what its argument array points to, in order; after them the sizes. It runs over
    `count` ranges, then `finish`, if there is one, in the calling thread.
    """

    text: str
    operands: list[Tensor | Scratch]
    count: Size
    grain: Size
    weight: int
    size: Size
    has_finish: bool
    serial: bool
    sources: list[Any] = field(default_factory=list)


def write_kernel(kernel: Kernel, schedule: Schedule, prelude: Prelude,
                 sizes: dict[str, str]) -> KernelText:
    """The C text of a kernel; `sizes` has the C expression of every named size."""
    return _KernelWriter(kernel, schedule, prelude, sizes).write()


@dataclass
class _Fold:
    """A reduction along the rows while its loop is written."""

    member: Member
    value: Expr
    dtype: str
    name: str


class _KernelWriter:
    def __init__(self, kernel: Kernel, schedule: Schedule, prelude: Prelude,
                 sizes: dict[str, str]) -> None:
        self.kernel = kernel
        self.domain = kernel.domain
        self.schedule = schedule
        self.prelude = prelude
        self.sizes = sizes
        self.operands: list[Tensor | Scratch] = []
        self.stages = self._stages()
        self.later = self._read_later()
        self.lanes = self._lanes()
        self.columns = [m for m in kernel.members if m.role in ("fold_column", "fold_all")]
        self.row_buffers: dict[Tensor, str] = {}

    # --- what is computed when

    def _levels(self, exprs: list[Expr], stages: dict[Tensor, int]) -> dict[Expr, int]:
        levels: dict[Expr, int] = {}
        for e in reached(exprs):
            level = max((levels[a] for a in e.args), default=0)
            if e.op == "local":
                role = self.kernel.role(e.aux)
                level = stages[e.aux] + (role == "fold_row")
            elif e.op in ("load", "index"):
                level = max((levels[a] for a in self.kernel.inside(e)), default=0)
            levels[e] = level
        return levels

    def _stages(self) -> dict[Tensor, int]:
        """The number of the loop over a row in which each member is computed."""
        s = self.kernel.builder(self.schedule.is_stored)
        stages: dict[Tensor, int] = {}
        self.weight = 1
        self.loads: list[Tensor] = []
        exprs = []
        for m in self.kernel.members:
            e = self.kernel.element(s, m)
            stages[m.tensor] = self._levels([e], stages)[e]
            exprs.append(e)
        everything = reached(exprs)
        self.expressions = len(everything)
        self.weight = max(1, sum(_weight(e) for e in everything))
        self.loads = [e.aux[0] for e in everything if e.op == "load"]
        return stages

    def _read_later(self) -> set[Tensor]:
        """Full members that a later loop over the row reads."""
        s = self.kernel.builder(self.schedule.is_stored)
        found = set()
        for m in self.kernel.members:
            for e in reached([self.kernel.element(s, m)]):
                if e.op == "local" and self.kernel.role(e.aux) == "full" \
                        and self.stages[e.aux] < self.stages[m.tensor]:
                    found.add(e.aux)
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
        widest = max(ITEM_SIZES[d] for d in dtypes if d != "bool") if dtypes - {"bool"} else 4
        return max(1, self.prelude.isa.vector_bytes // max(widest, 4))

    def _writes_in_order(self, member: Member) -> bool:
        s = self.kernel.builder(self.schedule.is_stored)
        place, condition = self.kernel.target(s, member)
        i = self.kernel.i
        return (is_straight(place, i) and place.coefficient(i) == 1
                and (condition is None or not condition.depends_on(i)))

    # --- the function

    def write(self) -> KernelText:
        self.writer = Writer(self)
        head = Scope("  ")
        self.head = head
        body = Scope("    ")
        if self.columns:
            return self._write_chunks(head, body)
        body.line(f"for (i64 o = begin; o < end; o++) {{")
        inner = body.nested()
        self._row(inner)
        body.take(inner)
        body.line("}")
        serial = any(m.role == "scatter" and not m.tensor.unique  # type: ignore[attr-defined]
                     for m in self.kernel.members)
        return self._finish(head, body, self.domain.rows, serial=serial)

    def _finish(self, head: Scope, body: Scope, count: Size, finish: str = "",
                serial: bool = False, grain: Size = 1) -> KernelText:
        pointers = "".join(
            f"  {C_TYPES[t.dtype]} *p{k} = a[{k}];\n" for k, t in enumerate(self.operands))
        sizes = f"  const i64 *z = a[{len(self.operands)}];\n  (void)z;\n"
        frees = "".join(f"  ft->release({name});\n" for name in self.row_buffers.values())
        text = (f"static void NAME(void *arg, i64 begin, i64 end) {{\n  void *const *a = arg;\n"
                f"{pointers}{sizes}{head.text()}{body.text()}{frees}}}\n{finish}")
        return KernelText(text, self.operands, count, grain, self.weight, self.domain.size,
                          bool(finish), serial, [m.tensor.source for m in self.kernel.members])

    def operand(self, t: Tensor | Scratch) -> str:
        """The name of the pointer to an operand."""
        if t not in self.operands:
            self.operands.append(t)
        return f"p{self.operands.index(t)}"

    def size(self, n: Size) -> str:
        return self.writer.size(n)

    # --- reductions over rows

    def _write_chunks(self, head: Scope, body: Scope) -> KernelText:
        d = self.domain
        per_part = d.rows // d.parts if not _is(d.parts, 1) else d.rows
        rows = CHUNK_ROWS // 8 if not isinstance(d.row, int) else \
            max(1, min(CHUNK_ROWS, CHUNK_ELEMENTS // max(d.row, 1)))
        chunks = (per_part + (rows - 1)) // rows
        if isinstance(per_part, int):
            if (isinstance(d.parts, int) and d.parts >= 16 and per_part <= 2 * CHUNK_ROWS):
                rows, chunks = max(per_part, 1), 1
            chunks = max(chunks, 1)
        one = isinstance(chunks, int) and chunks == 1
        self.accumulators: dict[Tensor, str] = {}
        finish: list[str] = []
        before, after = Scope("    "), Scope("    ")
        before.line(f"const i64 part = c / {self.size(chunks)}, chunk = c % {self.size(chunks)};")
        before.line(f"const i64 o0 = part * {self.size(per_part)} + chunk * {rows};")
        before.line(f"const i64 o9 = ft_min(o0 + {rows}, (part + 1) * {self.size(per_part)});")
        for k, m in enumerate(self.columns):
            self._accumulator(k, m, one, chunks, before, after, finish)
        body.line("for (i64 c = begin; c < end; c++) {")
        body.take(before)
        body.line("  for (i64 o = o0; o < o9; o++) {")
        inner = body.nested().nested()
        self._row(inner)
        body.take(inner)
        body.line("  }")
        body.take(after)
        body.line("}")
        text = "".join(finish)
        if text:
            pointers = "".join(
                f"  {C_TYPES[t.dtype]} *p{k} = a[{k}];\n  (void)p{k};\n"
                for k, t in enumerate(self.operands))
            text = (f"static void NAME_finish(void *arg) {{\n  void *const *a = arg;\n{pointers}"
                    f"  const i64 *z = a[{len(self.operands)}];\n  (void)z;\n{text}}}\n")
        return self._finish(head, body, d.parts * chunks, text)

    def _accumulator(self, k: int, m: Member, one: bool, chunks: Size, before: Scope,
                     after: Scope, finish: list[str]) -> None:
        t = m.tensor
        assert isinstance(t, Reduce)
        dtype = "i32" if t.value_dtype == "bool" else t.value_dtype
        start = self.prelude.literal(neutral(t.op, t.value_dtype), dtype)
        parts = self.domain.parts
        arg = t.op.startswith("arg")
        if m.role == "fold_column":
            row = self.size(self.domain.row)
            direct = one and t.dtype == dtype and t in self.schedule.stored
            where = t if direct else Scratch(dtype, parts * chunks * self.domain.row)
            pointer = self.operand(where)
            at = "part" if direct else "c"
            before.line(f"{C_TYPES[dtype]} *acc{k} = {pointer} + {at} * {row};")
            before.line(f"for (i64 i = 0; i < {row}; i++) acc{k}[i] = {start};")
            self.accumulators[t] = f"acc{k}"
            if direct:
                return
            out = self.operand(t)
            total = self._combined(t.op, dtype, "total", f"{pointer}[(part * {self.size(chunks)} "
                                   f"+ c) * {row} + i]")
            finish.append(
                f"  for (i64 part = 0; part < {self.size(parts)}; part++)\n"
                f"    for (i64 i = 0; i < {row}; i++) {{\n"
                f"      {ctype(dtype)} total = {start};\n"
                f"      for (i64 c = 0; c < {self.size(chunks)}; c++) total = {total};\n"
                f"      {self._stored(t, f'{out} + part * {row} + i', 'total', dtype)};\n    }}\n")
            return
        before.line(f"{ctype(dtype)} acc{k} = {start};")
        self.accumulators[t] = f"acc{k}"
        if arg:
            before.line(f"i64 at{k} = -1;")
        direct = one and t in self.schedule.stored
        if direct:
            out = self.operand(t)
            value = f"at{k}" if arg else f"acc{k}"
            after.line(self._stored(t, f"{out} + part", value, "i64" if arg else dtype) + ";")
            return
        partial = self.operand(Scratch(dtype, parts * chunks))
        after.line(f"{partial}[c] = acc{k};")
        out = self.operand(t)
        n = self.size(chunks)
        if arg:
            places = self.operand(_Places("i64", parts * chunks))
            after.line(f"{places}[c] = at{k};")
            better = self._is_better(t.op, dtype, f"{partial}[part * {n} + c]", "best")
            finish.append(
                f"  for (i64 part = 0; part < {self.size(parts)}; part++) {{\n"
                f"    {ctype(dtype)} best = {start};\n    i64 at = -1;\n"
                f"    for (i64 c = 0; c < {n}; c++)\n"
                f"      if ({places}[part * {n} + c] >= 0 && (at < 0 || {better})) {{\n"
                f"        best = {partial}[part * {n} + c];\n"
                f"        at = {places}[part * {n} + c];\n      }}\n"
                f"    {self._stored(t, f'{out} + part', 'at', 'i64')};\n  }}\n")
            return
        total = self._combined(t.op, dtype, "total", f"{partial}[part * {n} + c]")
        finish.append(
            f"  for (i64 part = 0; part < {self.size(parts)}; part++) {{\n"
            f"    {ctype(dtype)} total = {start};\n"
            f"    for (i64 c = 0; c < {n}; c++) total = {total};\n"
            f"    {self._stored(t, f'{out} + part', 'total', dtype)};\n  }}\n")

    def _combined(self, op: str, dtype: str, a: str, b: str) -> str:
        return self.prelude.op(op, (dtype, dtype), (a, b), 1)

    def _stored(self, t: Tensor, pointer: str, value: str, dtype: str) -> str:
        if t.compute == "bool":
            value = f"({value} != 0)"
        elif dtype != t.compute:
            value = self.prelude.convert(dtype, t.compute, value, 1)
        return self.prelude.store_scalar(t.dtype, pointer, value)

    def _is_better(self, op: str, dtype: str, a: str, b: str) -> str:
        sign = ">" if op == "argmax" else "<"
        if dtype[0] == "f":  # NaN is extreme, the first one wins
            return f"({a} {sign} {b} || ({a} != {a} && {b} == {b}))"
        return f"({a} {sign} {b})"

    # --- one row

    def _row(self, out: Scope, facts: dict[Range, bool] | None = None, depth: int = 0) -> None:
        """Everything that is computed for one row, under tests whose outcome is known."""
        facts = facts or {}
        if depth < BRANCH_DEPTH:
            test = self._open_test(facts)
            if test is not None:
                index, low, high = test
                at = self.writer.index(index, Scope(""))
                out.line(f"if (({at}) >= {self.size(low)} && ({at}) < {self.size(high)}) {{")
                for outcome in (True, False):
                    inner = out.nested()
                    self._row(inner, {**facts, test: outcome}, depth + 1)
                    out.take(inner)
                    out.line("} else {" if outcome else "}")
                return
        self.writer.begin_row(out)
        if self.domain.total is not None:
            out.line(f"const i64 R = ft_min({self.size(self.domain.row)}, "
                     f"{self.size(self.domain.total)} - o * {self.size(self.domain.row)});")
        s = self.kernel.builder(self.schedule.is_stored, facts)
        for stage in range(1 + max(self.stages.values())):
            for m in self.kernel.members:
                if self.stages[m.tensor] == stage and m.role == "row":
                    self._row_member(m, self.kernel.element(s, m), out)
            inner = [m for m in self.kernel.members
                     if self.stages[m.tensor] == stage and m.role != "row"]
            if inner:
                self._loop(inner, stage, out, facts)

    def _open_test(self, facts: dict[Range, bool]) -> Range | None:
        """A test that is the same along the row, whose outcome is not known."""
        s = self.kernel.builder(self.schedule.is_stored, facts)
        for m in self.kernel.members:
            self.kernel.element(s, m)
        for index, low, high in s.undecided:
            if not index.depends_on(self.kernel.i) and not any(
                    isinstance(a, Computed) for a in index.terms):
                return index, low, high
        return None

    def _row_member(self, m: Member, e: Expr, out: Scope) -> None:
        name = self.writer.scalar(e, out)
        self.writer.locals[m.tensor] = name
        if m.tensor in self.schedule.stored:
            pointer = f"{self.operand(m.tensor)} + o"
            out.line(self.prelude.store_scalar(m.tensor.dtype, pointer, name) + ";")

    # --- one loop over a row

    def _loop(self, members: list[Member], stage: int, out: Scope,
              facts: dict[Range, bool]) -> None:
        folds = [_Fold(m, None, self._fold_dtype(m), f"f{stage}_{k}")  # type: ignore[arg-type]
                 for k, m in enumerate(members) if m.role in ("fold_row", "fold_all")]
        unroll = self._unroll(members, folds)
        for f in folds:
            self._begin_fold(f, out, unroll)
        segments = self._segments(members, facts)
        i = self.kernel.i
        low, high = i.low, i.high
        for a, b in segments:
            i.low, i.high = a, b
            if len(segments) == 1:
                i.low, i.high = low, high
            self._segment(members, folds, stage, out, facts, a, b, unroll)
        i.low, i.high = low, high
        for f in folds:
            self._end_fold(f, out, unroll)

    def _segments(self, members: list[Member],
                  facts: dict[Range, bool]) -> list[tuple[Size, Size]]:
        """Pieces of the row in which tests on the place along it have one outcome."""
        row = self.domain.row
        if not isinstance(row, int) or self.domain.total is not None:
            return [(0, row)]
        s = self.kernel.builder(self.schedule.is_stored, facts)
        for m in members:
            self.kernel.element(s, m)
        cuts = {0, row}
        i = self.kernel.i
        for index, low, high in s.undecided:
            if set(index.terms) == {i} and index.terms[i] == 1 and isinstance(index.const, int):
                cuts |= {c - index.const for c in (low, high) if isinstance(c, int)}
        inside = sorted(c for c in cuts if 0 <= c <= row)
        if len(inside) - 1 > MOST_SEGMENTS:
            return [(0, row)]
        return list(zip(inside[:-1], inside[1:]))

    def _segment(self, members: list[Member], folds: list[_Fold], stage: int, out: Scope,
                 facts: dict[Range, bool], a: Size, b: Size, unroll: int) -> None:
        lanes, kernel = self.lanes, self.kernel
        s = kernel.builder(self.schedule.is_stored, facts)
        exprs = [kernel.element(s, m) for m in members]
        end = "R" if self.domain.total is not None else self.size(b)
        whole = (isinstance(a, int) and isinstance(b, int) and (b - a) % lanes == 0
                 and (self.domain.total is None or (isinstance(self.domain.total, int)
                                                    and self.domain.total % lanes == 0)))
        step = lanes * unroll
        loop = out.nested()
        self.writer.begin_loop(out, stage, None if whole or lanes == 1 else "n")
        if not whole and lanes > 1:
            loop.line(f"const i64 n = ft_min({lanes}, {end} - i);")
        by_tensor = {f.member.tensor: f for f in folds}
        for u in range(unroll):
            if u:
                self.writer.begin_loop(out, stage, None, u * lanes)
            for m, e in zip(members, exprs):
                self._member(m, e, stage, loop, by_tensor.get(m.tensor), u, s)
        if lanes == 1 and _is(self.domain.row, 1):
            out.line("{ const i64 i = 0; (void)i;")
        else:
            out.line(f"for (i64 i = {self.size(a)}; i < {end}; i += {step}) {{")
        out.take(loop)
        out.line("}")

    def _member(self, m: Member, e: Expr, stage: int, loop: Scope, fold: _Fold | None, u: int,
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
        elif m.role == "fold_column":
            self._add_to_column(t, name, loop)
        else:
            assert fold is not None
            self._fold(fold, name, loop, u)

    def _store(self, t: Tensor, pointer: str, name: str, loop: Scope) -> None:
        base = self.writer.pointer(pointer, self.kernel.places["full"], t)
        text = self.prelude.store(t.dtype, self.lanes, f"{base} + {self.writer.i_text}", name,
                                  self.writer.count) if self.lanes > 1 else \
            self.prelude.store_scalar(t.dtype, f"{base} + {self.writer.i_text}", name)
        loop.line(text + ";")

    def _row_buffer(self, t: Tensor) -> str:
        """Memory for one row of a value that a later loop over the row reads."""
        name = self.row_buffers.get(t)
        if name is None:
            name = self.row_buffers[t] = f"row{len(self.row_buffers)}"
            ctype = C_TYPES[t.compute]
            size = f"({self.size(self.domain.row)} + 64) * {ITEM_SIZES[t.compute]}"
            self.head.line(f"{ctype} *{name} = ft->allocate({size});")
        return name

    def _add_to_column(self, t: Tensor, name: str, loop: Scope) -> None:
        assert isinstance(t, Reduce)
        p, lanes, count = self.prelude, self.lanes, self.writer.count
        acc, dtype, value = self.accumulators[t], self._fold_dtype_of(t), name
        if t.value_dtype == "bool":
            value = self.writer.as_int(name)
        at = f"{acc} + {self.writer.i_text}"
        if lanes == 1:
            total = p.op(t.op, (dtype, dtype), (f"*({at})", value), 1)
            loop.line(f"*({at}) = {total};")
            return
        total = p.op(t.op, (dtype, dtype), (p.load(dtype, lanes, at, count), value), lanes)
        loop.line(p.store(dtype, lanes, at, total, count) + ";")

    # --- reductions along the row

    def _fold_dtype_of(self, t: Reduce) -> str:
        return "i32" if t.value_dtype == "bool" else t.value_dtype

    def _fold_dtype(self, m: Member) -> str:
        assert isinstance(m.tensor, Reduce)
        return self._fold_dtype_of(m.tensor)

    def _unroll(self, members: list[Member], folds: list[_Fold]) -> int:
        row, lanes = self.domain.row, self.lanes
        if lanes == 1 or not folds or self.expressions > UNROLL_BELOW or len(members) > 1 \
                or folds[0].member.tensor.op.startswith("arg"):  # type: ignore[attr-defined]
            return 1
        total = self.domain.total
        for unroll in (4, 2):
            if isinstance(row, int) and row % (unroll * lanes) == 0 and (
                    total is None or (isinstance(total, int) and total % (unroll * lanes) == 0)):
                return unroll
        return 1

    def _begin_fold(self, f: _Fold, out: Scope, unroll: int) -> None:
        t, p, lanes = f.member.tensor, self.prelude, self.lanes
        assert isinstance(t, Reduce)
        start = p.literal(neutral(t.op, t.value_dtype), f.dtype)
        vtype = p.vtype(f.dtype, lanes)
        for u in range(unroll):
            out.line(f"{vtype} {f.name}_{u} = {p.broadcast(f.dtype, lanes, start)};")
        if t.op.startswith("arg"):
            places = _place_dtype(f.dtype)
            none = p.broadcast(places, lanes, "-1")
            out.line(f"{p.vtype(places, lanes)} {f.name}_at = {none};")

    def _fold(self, f: _Fold, name: str, loop: Scope, u: int) -> None:
        t, p, lanes, count = f.member.tensor, self.prelude, self.lanes, self.writer.count
        assert isinstance(t, Reduce)
        if t.value_dtype == "bool":
            name = self.writer.as_int(name)
        if t.op.startswith("arg"):
            self._fold_place(f, t, name, loop)
            return
        if count is not None:
            start = p.literal(neutral(t.op, t.value_dtype), f.dtype)
            name = p.select_tail(f.dtype, lanes, name, count, start)
        acc = f"{f.name}_{u}"
        loop.line(f"{acc} = {p.op(t.op, (f.dtype, f.dtype), (acc, name), lanes)};")

    def _fold_place(self, f: _Fold, t: Reduce, name: str, loop: Scope) -> None:
        p, lanes, count = self.prelude, self.lanes, self.writer.count
        places, best = _place_dtype(f.dtype), f"{f.name}_0"
        two = (f.dtype, f.dtype)
        if count is not None:  # lanes beyond the end repeat what is best so far
            mask = self.writer.tail_mask(count)
            name = p.op("select", ("bool", *two), (mask, name, best), lanes)
        value = self.writer.fresh(loop, p.vtype(f.dtype, lanes), name)
        mask_type = p.vtype("bool", lanes)
        better = p.op("gt" if t.op == "argmax" else "lt", two, (value, best), lanes)
        if f.dtype[0] == "f":
            is_nan = p.op("ne", two, (value, value), lanes)
            was_number = p.op("eq", two, (best, best), lanes)
            nan_first = p.op("and", ("bool", "bool"), (is_nan, was_number), lanes)
            better = p.op("or", ("bool", "bool"), (better, nan_first), lanes)
        none = p.op("lt", (places, places),
                    (f"{f.name}_at", p.broadcast(places, lanes, "0")), lanes)
        if count is not None:
            none = p.op("and", ("bool", "bool"), (none, mask), lanes)
        better = p.op("or", ("bool", "bool"), (better, none), lanes)
        m = self.writer.fresh(loop, mask_type, better)
        iota = p.iota(places, lanes, self.writer.i_text)
        loop.line(f"{best} = {p.op('select', ('bool', *two), (m, value, best), lanes)};")
        chosen = p.op("select", ("bool", places, places), (m, iota, f"{f.name}_at"), lanes)
        loop.line(f"{f.name}_at = {chosen};")

    def _end_fold(self, f: _Fold, out: Scope, unroll: int) -> None:
        t, p, lanes = f.member.tensor, self.prelude, self.lanes
        assert isinstance(t, Reduce)
        if t.op.startswith("arg"):
            self._end_place(f, t, out)
            return
        names = [f"{f.name}_{u}" for u in range(unroll)]
        while len(names) > 1:
            names = [p.op(t.op, (f.dtype, f.dtype), (a, b), lanes)
                     for a, b in zip(names[::2], names[1::2])]
        total = p.reduce(t.op, f.dtype, lanes, names[0]) if lanes > 1 else names[0]
        name = self.writer.fresh(out, ctype(f.dtype), total)
        if f.member.role == "fold_all":
            acc = self.accumulators[t]
            out.line(f"{acc} = {self._combined(t.op, f.dtype, acc, name)};")
            return
        self.writer.locals[t] = self._rounded(t, name, f.dtype, out)
        if t in self.schedule.stored:
            self._store_fold(t, name, f.dtype, out)

    def _rounded(self, t: Reduce, name: str, dtype: str, out: Scope) -> str:
        if t.compute == "bool":
            return self.writer.fresh(out, "int", f"{name} != 0")
        if t.compute != dtype:
            return self.writer.fresh(out, ctype(t.compute),
                                     self.prelude.convert(dtype, t.compute, name, 1))
        return name

    def _store_fold(self, t: Reduce, name: str, dtype: str, out: Scope) -> None:
        out.line(self._stored(t, f"{self.operand(t)} + o", name, dtype) + ";")

    def _end_place(self, f: _Fold, t: Reduce, out: Scope) -> None:
        p, lanes = self.prelude, self.lanes
        places = _place_dtype(f.dtype)
        best, at = f"{f.name}_0", f"{f.name}_at"
        kind = "max" if t.op == "argmax" else "min"
        if lanes > 1:
            two = (f.dtype, f.dtype)
            top = self.writer.fresh(out, ctype(f.dtype), p.reduce(kind, f.dtype, lanes, best))
            equal = p.op("eq", two, (best, p.broadcast(f.dtype, lanes, top)), lanes)
            if f.dtype[0] == "f":  # the extreme is NaN: lanes that hold it
                is_nan = p.op("ne", two, (best, best), lanes)
                equal = p.op("or", ("bool", "bool"), (equal, is_nan), lanes)
            seen = p.op("ge", (places, places), (at, p.broadcast(places, lanes, "0")), lanes)
            equal = p.op("and", ("bool", "bool"), (equal, seen), lanes)
            far = p.broadcast(places, lanes, p.literal(np.iinfo(places.replace("i", "int")).max,
                                                       places))
            lane = p.op("select", ("bool", places, places), (equal, at, far), lanes)
            best, at = top, p.reduce("min", places, lanes, lane)
        at = self.writer.fresh(out, "i64", at)
        if f.member.role == "fold_all":
            acc = self.accumulators[t]
            number = acc.removeprefix("acc")
            d = self.domain
            per_part = self.size(d.rows // d.parts if not _is(d.parts, 1) else d.rows)
            better = self._is_better(t.op, f.dtype, best, acc)
            out.line(f"if (at{number} < 0 || {better}) {{ {acc} = {best}; at{number} = "
                     f"(o % {per_part}) * {self.size(d.row)} + {at}; }}")
            return
        self.writer.locals[t] = self.writer.fresh(out, ctype(t.compute), at)
        if t in self.schedule.stored:
            self._store_fold(t, at, "i64", out)

    # --- scatter

    def _scatter(self, m: Member, e: Expr, loop: Scope, s: Any) -> None:
        t = m.tensor
        assert isinstance(t, Scatter)
        place, condition = self.kernel.target(s, m)
        out, p, lanes = self.operand(t), self.prelude, self.lanes
        inner = loop
        if condition is not None:
            loop.line(f"if ({self.writer.scalar(condition, loop)}) {{")
            inner = loop.nested()
        value = self.writer.vector(e, inner)
        at = f"{out} + {self.writer.index(place, inner)}"
        dtype, count = t.compute, self.writer.count
        if t.op != "set":
            here = p.load(t.dtype, lanes, at, count) if lanes > 1 else p.load_scalar(t.dtype, at)
            value = p.op(t.op, (dtype, dtype), (here, value), lanes)
        store = p.store(t.dtype, lanes, at, value, count) if lanes > 1 else \
            p.store_scalar(t.dtype, at, value)
        inner.line(store + ";")
        if condition is not None:
            loop.take(inner)
            loop.line("}")


@dataclass(frozen=True)
class _Places(Scratch):
    """Scratch for places, apart from that for values of the same size."""


def _place_dtype(dtype: str) -> str:
    return "i64" if ITEM_SIZES[dtype] == 8 else "i32"


def _weight(e: Expr) -> int:
    return 0 if e.op in ("const", "local", "index") else WEIGHTS.get(e.op, 1)


def _is(n: Any, value: int) -> bool:
    return isinstance(n, int) and n == value
