"""Reductions over rows: each chunk of rows has accumulators of its own, combined at the end.

Chunks are as many as the shapes say, not the threads: results do not depend on the machine.
Sums of floats are cascaded: rows are added in blocks, their sums in the chunk, and those of chunks
in pairs, so that the error grows with the logarithm of what is summed.
"""

from __future__ import annotations

from abc import abstractmethod

from functrans.core.dims import Size
from functrans.lowering.c.expressions import (
    C_TYPES,
    BlockTotals,
    CodeScope,
    KernelText,
    PlaceScratch,
    Scratch,
    ctype,
    is_number,
)
from functrans.lowering.c.row_reductions import RowReductions, cascades, place_dtype, total_dtype
from functrans.lowering.loops.expr import Expr, ExprBuilder, Range
from functrans.lowering.loops.tensor import Reduce, Tensor
from functrans.lowering.rules.reduce import identity_element
from functrans.lowering.schedule.kernel import Member

__all__ = ["ColumnReductions"]

# Elements (of a sum) and rows in one chunk, and how many chunks there are while the rows are not
# exceeded: no more rows are added into one sum in sequence.
CHUNK_ELEMENTS, CHUNK_ROWS, MOST_CHUNKS = 65536, 512, 32
# Rows that are added in sequence, where a chunk has more than twice as many: into accumulators for
# every column, and into one.
BLOCK_ROWS, BLOCK_TOTALS = 16, 8


def _total_or_identity(n: str, total: str, start: str) -> str:
    """The total of n chunks, or the identity where there are none and no total was written."""
    return total if n.isdigit() and n != "0" else f"({n} ? {total} : {start})"


class ColumnReductions(RowReductions):
    """The part of a kernel's writer that reduces columns."""

    flush: CodeScope | None
    columns: list[Member]
    weight: int
    operands: list[Tensor | Scratch]

    @abstractmethod
    def built(self, facts: dict[Range, bool]) -> tuple[ExprBuilder, dict[Tensor, Expr]]:
        """The expressions of all members under some facts, made once."""

    @abstractmethod
    def _row(self, out: CodeScope) -> None:
        """Write the loop along one row."""

    @abstractmethod
    def _sizes(self, text: str) -> str:
        """The lines before a text that name the sizes in it."""

    @abstractmethod
    def _finish(self, head: CodeScope, body: CodeScope, count: Size, finish: str = "",
                serial: bool = False, grain: Size = 1) -> KernelText:
        """The text of the kernel around what was written."""

    def _write_chunks(self, head: CodeScope, body: CodeScope) -> KernelText:
        d = self.domain
        per_part = d.rows // d.parts if not is_number(d.parts, 1) else d.rows
        rows = CHUNK_ROWS // 8
        if isinstance(per_part, int) and isinstance(d.row, int):
            # as few chunks as keep the threads busy: each has accumulators for a whole row
            elements = per_part * d.row * (2 + self.weight) // 3  # of a sum, in the same time
            pieces = max(1, min(MOST_CHUNKS, elements // CHUNK_ELEMENTS))
            rows = max(1, min(CHUNK_ROWS, -(-per_part // pieces)))
        chunks = (per_part + (rows - 1)) // rows
        if isinstance(per_part, int):
            if isinstance(d.parts, int) and d.parts >= 16 and per_part <= 2 * CHUNK_ROWS:
                rows, chunks = max(per_part, 1), 1
            chunks = max(chunks, 1)
        one = is_number(chunks, 1)
        self.accumulators: dict[Tensor, str] = {}
        self.vectors = set()
        finish: list[str] = []
        before, after = CodeScope("    "), CodeScope("    ")
        flush = CodeScope("        ")
        block = BLOCK_ROWS if any(m.role == "reduce_column" for m in self.columns) else BLOCK_TOTALS
        self.flush = flush if rows > 2 * block else None
        count = "" if isinstance(chunks, int) else f"  const i64 chunks = {self.size(chunks)};\n"
        n = "chunks" if count else self.size(chunks)
        if count:
            head.line(count.strip())
        before.line(f"const i64 part = c / {n}, chunk = c % {n};")
        before.line(f"const i64 o0 = part * {self.size(per_part)} + chunk * {rows};")
        before.line(f"const i64 o9 = ft_min(o0 + {rows}, (part + 1) * {self.size(per_part)});")
        for k, m in enumerate(self.columns):
            self._accumulator(k, m, one, chunks, rows, before, after, finish, n)
        body.line("for (i64 c = begin; c < end; c++) {")
        body.take(before)
        body.line("  for (i64 o = o0; o < o9; o++) {")
        inner = body.nested().nested()
        self._row(inner)
        body.take(inner)
        if flush.text():
            body.line(f"    if ((o - o0) % {block} == {block - 1}) {{")
            body.take(flush)
            body.line("    }")
        body.line("  }")
        body.take(after)
        body.line("}")
        text = "".join(finish)
        if text:
            pointers = "".join(
                f"  {C_TYPES[t.dtype]} *p{k} = a[{k}];\n  (void)p{k};\n"
                for k, t in enumerate(self.operands))
            text = (f"static void NAME_finish(void *arg) {{\n  void *const *a = arg;\n{pointers}"
                    f"{self._sizes(count + text)}{count}{text}  ft_clear_upper();\n}}\n")
        return self._finish(head, body, d.parts * chunks, text)

    def _accumulator(self, k: int, m: Member, one: bool, chunks: Size, rows: int,
                     before: CodeScope, after: CodeScope, finish: list[str], n: str) -> None:
        t = m.tensor
        assert isinstance(t, Reduce)
        dtype = "i32" if t.value_dtype == "bool" else t.value_dtype
        start = self.prelude.literal(identity_element(t.op, t.value_dtype), dtype)
        parts = self.domain.parts
        arg = t.op.startswith("arg")
        if m.role == "reduce_column" and arg:
            self._best_of_columns(k, t, one, chunks, rows, before, finish, n)
            return
        if m.role == "reduce_column":
            row = self.size(self.domain.row)
            direct = one and t.dtype == dtype and t in self.schedule.stored
            where = t if direct else Scratch(dtype, parts * chunks * self.domain.row, k)
            pointer = self.operand(where)
            place = f"{pointer} + {'part' if direct else 'c'} * {row}"
            out = pointer if direct else self.operand(t)
            short = not isinstance(chunks, int) and t.dtype == dtype and t in self.schedule.stored
            if short:  # one chunk, as it turns out, has its sums where the result is
                place = f"chunks == 1 ? {out} + part * {row} : {place}"
            self.accumulators[t] = f"acc{k}"
            in_registers = self._in_registers()
            if in_registers:
                self.vectors.add(t)
                self._vector_accumulator(k, t, dtype, place, before, after)
            else:
                before.line(f"{C_TYPES[dtype]} *acc{k} = {place};")
                before.line(f"for (i64 i = 0; i < {row}; i++) acc{k}[i] = {start};")
            if not in_registers and self.flush is not None and cascades(t.op, dtype):
                wide = total_dtype(dtype)
                total = self.operand(BlockTotals(wide, parts * chunks * self.domain.row, k))
                before.line(f"{C_TYPES[wide]} *top{k} = {total} + c * {row};")
                before.line(f"for (i64 i = 0; i < {row}; i++) top{k}[i] = {start};")
                self._add_along(self.flush, dtype, f"acc{k}", f"top{k}", start)
                self._add_along(after, dtype, f"acc{k}", f"top{k}")
            if not direct:
                finish.append(f"  {'if (chunks != 1) ' if short else ''}"
                              f"for (i64 part = 0; part < {self.size(parts)}; part++)\n"
                              + self._sum_of_chunks(t, dtype, pointer, out, n))
            return
        in_lanes = cascades(t.op, dtype) and self.lanes > 1 and self._in_registers()
        if in_lanes:
            self._accumulator_of_lanes(k, t, dtype, before, after)
        if cascades(t.op, dtype) and total_dtype(dtype) != dtype:
            dtype = total_dtype(dtype)
            start = self.prelude.literal(0, dtype)
        before.line(f"{ctype(dtype)} acc{k} = {start};")
        self.accumulators[t] = f"sum{k}" if in_lanes else f"acc{k}"
        if self.flush is not None and cascades(t.op, dtype) and not in_lanes:
            both = self._combined(t.op, dtype, f"top{k}", f"acc{k}")
            before.line(f"{ctype(dtype)} top{k} = {start};")
            self.flush.line(f"top{k} = {both};")
            self.flush.line(f"acc{k} = {start};")
            after.line(f"acc{k} = {both};")
        if arg:
            before.line(f"i64 at{k} = -1;")
        direct = one and t in self.schedule.stored
        if direct:
            out = self.operand(t)
            value = f"at{k}" if arg else f"acc{k}"
            after.line(self._stored(t, f"{out} + part", value, "i64" if arg else dtype) + ";")
            return
        partial = self.operand(Scratch(dtype, parts * chunks, k))
        after.line(f"{partial}[c] = acc{k};")
        out = self.operand(t)
        if arg:
            places = self.operand(PlaceScratch("i64", parts * chunks, k))
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
        if cascades(t.op, dtype):
            at = f"{partial}[part * {n} + c]"
            both = self._combined(t.op, dtype, at, f"{partial}[part * {n} + c + w]")
            total = _total_or_identity(n, f"{partial}[part * {n}]", start)
            finish.append(
                f"  for (i64 part = 0; part < {self.size(parts)}; part++) {{\n"
                f"    for (i64 w = 1; w < {n}; w *= 2)\n"
                f"      for (i64 c = 0; c + w < {n}; c += 2 * w) {at} = {both};\n"
                f"    {self._stored(t, f'{out} + part', total, dtype)};\n"
                f"  }}\n")
            return
        total = self._combined(t.op, dtype, "total", f"{partial}[part * {n} + c]")
        finish.append(
            f"  for (i64 part = 0; part < {self.size(parts)}; part++) {{\n"
            f"    {ctype(dtype)} total = {start};\n"
            f"    for (i64 c = 0; c < {n}; c++) total = {total};\n"
            f"    {self._stored(t, f'{out} + part', 'total', dtype)};\n  }}\n")

    def _accumulator_of_lanes(self, k: int, t: Reduce, dtype: str, before: CodeScope,
                              after: CodeScope) -> None:
        """A sum over rows of one vector: its lanes are added up once for a block of rows.

        Three sums of products over 256 rows of 4 took 4.4 us with a sum for each row.
        """
        p, lanes, wide = self.prelude, self.lanes, total_dtype(dtype)
        zero = p.broadcast(dtype, lanes, p.literal(0, dtype))
        total = p.convert(dtype, wide, p.reduce("add", dtype, lanes, f"sum{k}"), 1)
        before.line(f"{p.vtype(dtype, lanes)} sum{k} = {zero};")
        if self.flush is not None:
            self.flush.line(f"acc{k} = {self._combined('add', wide, f'acc{k}', total)};")
            self.flush.line(f"sum{k} = {zero};")
        after.line(f"acc{k} = {self._combined('add', wide, f'acc{k}', total)};")
        self.vectors.add(t)

    def _in_registers(self) -> bool:
        """Whether the accumulators of a row are one vector.

        100,000 rows of 10 take 0.2 of the time: what is stored in parts is not forwarded to loads.
        """
        row = self.domain.row
        return isinstance(row, int) and 1 < row <= self.lanes and not self.built({})[0].undecided

    def _vector_accumulator(self, k: int, t: Reduce, dtype: str, place: str, before: CodeScope,
                            after: CodeScope) -> None:
        """Accumulators of rows of one vector: `place` gets them at the end of the chunk."""
        p, lanes, row = self.prelude, self.lanes, self.domain.row
        start = p.broadcast(dtype, lanes, p.literal(identity_element(t.op, t.value_dtype), dtype))
        before.line(f"{p.vtype(dtype, lanes)} acc{k} = {start};")
        if self.flush is not None and cascades(t.op, dtype):
            wide = total_dtype(dtype)
            zero = p.broadcast(wide, lanes, p.literal(0, wide))
            before.line(f"{p.vtype(wide, lanes)} top{k} = {zero};")
            both = p.op("add", (wide, wide), (
                f"top{k}", p.convert(dtype, wide, f"acc{k}", lanes)), lanes)
            self.flush.line(f"top{k} = {both};")
            self.flush.line(f"acc{k} = {start};")
            after.line(f"acc{k} = {p.convert(wide, dtype, both, lanes)};")
        part = None if row == lanes else str(row)
        after.line(p.store(dtype, lanes, f"({place})", f"acc{k}", part) + ";")

    def _add_along(self, out: CodeScope, dtype: str, acc: str, top: str, start: str = "") -> None:
        """The loop along a row that adds accumulators to their totals and starts them again, or
        adds totals to the accumulators."""
        p, row, lanes, wide = self.prelude, self.size(self.domain.row), self.lanes, \
            total_dtype(dtype)
        part = "m" if lanes > 1 and not (
            isinstance(self.domain.row, int) and self.domain.row % lanes == 0) else None
        out.line(f"for (i64 i = 0; i < {row}; i += {lanes}) {{")
        if part:
            out.line(f"  const i64 m = ft_min({lanes}, {row} - i);")
        block = p.convert(dtype, wide, p.load(dtype, lanes, f"{acc} + i", part), lanes)
        both = p.op("add", (wide, wide), (p.load(wide, lanes, f"{top} + i", part), block), lanes)
        if start:
            out.line(f"  {p.store(wide, lanes, f'{top} + i', both, part)};")
            first = p.broadcast(dtype, lanes, start)
            out.line(f"  {p.store(dtype, lanes, f'{acc} + i', first, part)};")
        else:
            both = p.convert(wide, dtype, both, lanes)
            out.line(f"  {p.store(dtype, lanes, f'{acc} + i', both, part)};")
        out.line("}")

    def _sum_of_chunks(self, t: Reduce, dtype: str, partial: str, out: str, n: str) -> str:
        """The loop that combines the sums that the chunks of a part have for the columns."""
        p, d = self.prelude, self.domain
        row = self.size(d.row)
        lanes = 1 if t.compute == "bool" else self.lanes
        part = None if isinstance(d.row, int) and d.row % lanes == 0 else "m"
        start = p.literal(identity_element(t.op, t.value_dtype), dtype)
        at = f"{partial} + (part * {n} + c) * {row} + i"
        to = f"{out} + part * {row} + i"
        if lanes == 1:
            kind, last = ctype(dtype), self._stored(t, to, "total", dtype)
            read = f"*({at})"
        else:
            kind, start = p.vtype(dtype, lanes), p.broadcast(dtype, lanes, start)
            read = p.load(dtype, lanes, at, part)
            total = "total" if dtype == t.compute else p.convert(dtype, t.compute, "total", lanes)
            last = p.store(t.dtype, lanes, to, total, part)
        if cascades(t.op, dtype):
            return self._pairs_of_chunks(dtype, at, last, part, n)
        total = p.op(t.op, (dtype, dtype), ("total", read), lanes)
        tail = f"      const i64 m = ft_min({lanes}, {row} - i);\n" if part else ""
        return (f"    for (i64 i = 0; i < {row}; i += {lanes}) {{\n{tail}"
                f"      {kind} total = {start};\n"
                f"      for (i64 c = 0; c < {n}; c++) total = {total};\n"
                f"      {last};\n    }}\n")

    def _pairs_of_chunks(self, dtype: str, at: str, last: str, part: str | None, n: str) -> str:
        """The loop that adds the sums of chunks in pairs, then of pairs; `last` stores `total`."""
        p, row, lanes = self.prelude, self.size(self.domain.row), self.lanes
        there = at.replace("+ c)", "+ c + w)")
        if lanes == 1:
            kind, first = ctype(dtype), f"*({at.replace('+ c)', '+ 0)')})"
            both = p.op("add", (dtype, dtype), (f"*({at})", f"*({there})"), 1)
            store = f"*({at}) = {both}"
        else:
            kind = p.vtype(dtype, lanes)
            first = p.load(dtype, lanes, at.replace("+ c)", "+ 0)"), part)
            both = p.op("add", (dtype, dtype), (p.load(dtype, lanes, at, part),
                                                p.load(dtype, lanes, there, part)), lanes)
            store = p.store(dtype, lanes, at, both, part)
        start = p.literal(identity_element("add", dtype), dtype)
        start = p.broadcast(dtype, lanes, start) if lanes > 1 else start
        tail = f"const i64 m = ft_min({lanes}, {row} - i);" if part else ""
        return (f"    {{\n      for (i64 w = 1; w < {n}; w *= 2)\n"
                f"        for (i64 c = 0; c + w < {n}; c += 2 * w)\n"
                f"          for (i64 i = 0; i < {row}; i += {lanes}) {{\n"
                f"            {tail}\n            {store};\n          }}\n"
                f"      for (i64 i = 0; i < {row}; i += {lanes}) {{\n"
                f"        {tail}\n        const {kind} total = "
                f"{_total_or_identity(n, first, start)};\n"
                f"        {last};\n      }}\n    }}\n")

    def _best_of_columns(self, k: int, t: Reduce, one: bool, chunks: Size, rows: int,
                         before: CodeScope, finish: list[str], n: str) -> None:
        """Two accumulators for every column: the extreme value, and the row where it is."""
        dtype = t.value_dtype
        places, row = place_dtype(dtype), self.size(self.domain.row)
        parts = self.domain.parts
        size = parts * chunks * self.domain.row
        best = self.operand(Scratch(dtype, size, k))
        direct = one and t.dtype == places and t in self.schedule.stored
        at = self.operand(t if direct else PlaceScratch(places, size, k))
        start = self.prelude.literal(identity_element(t.op, dtype), dtype)
        self.accumulators[t] = f"acc{k}"
        before.line(f"{C_TYPES[dtype]} *acc{k} = {best} + c * {row};")
        before.line(f"{C_TYPES[places]} *at{k} = {at} + {'part' if direct else 'c'} * {row};")
        # where nothing is more extreme than the start, the first row has the extreme value
        before.line(f"for (i64 i = 0; i < {row}; i++) {{ acc{k}[i] = {start}; "
                    f"at{k}[i] = chunk * {rows}; }}")
        if direct:
            return
        here = f"[(part * {n} + c) * {row} + i]"
        better = self._is_better(t.op, dtype, f"{best}{here}", "best")
        out = self.operand(t)
        finish.append(
            f"  for (i64 part = 0; part < {self.size(parts)}; part++)\n"
            f"    for (i64 i = 0; i < {row}; i++) {{\n"
            f"      i64 c = 0;\n"
            f"      {ctype(dtype)} best = {best}{here};\n"
            f"      i64 at = {at}{here};\n"
            f"      for (c = 1; c < {n}; c++)\n"
            f"        if ({better}) {{ best = {best}{here}; at = {at}{here}; }}\n"
            f"      {self._stored(t, f'{out} + part * {row} + i', 'at', 'i64')};\n    }}\n")

    def _best_in_column(self, t: Reduce, name: str, loop: CodeScope) -> None:
        p, lanes, count, dtype = self.prelude, self.lanes, self.writer.count, t.value_dtype
        acc, i, places = self.accumulators[t], self.writer.i_text, place_dtype(dtype)
        best_at, at = f"{acc} + {i}", f"{acc.replace('acc', 'at')} + {i}"
        value = self.writer.fresh(loop, p.vtype(dtype, lanes), name)
        best = self.writer.fresh(loop, p.vtype(dtype, lanes), p.load(dtype, lanes, best_at, count))
        m = self.writer.fresh(loop, p.vtype("bool", lanes), self._beats(t.op, dtype, value, best))
        value = p.op("select", ("bool", dtype, dtype), (m, value, best), lanes)
        d = self.domain
        per_part = d.rows // d.parts
        q = "o" if is_number(d.parts, 1) else f"(o - part * {self.size(per_part)})"
        place = p.op("select", ("bool", places, places),
                     (m, p.broadcast(places, lanes, f"({places}){q}"),
                      p.load(places, lanes, at, count)), lanes)
        loop.line(p.store(dtype, lanes, best_at, value, count) + ";")
        loop.line(p.store(places, lanes, at, place, count) + ";")

    def _add_to_column(self, t: Tensor, name: str, loop: CodeScope) -> None:
        assert isinstance(t, Reduce)
        if t.op.startswith("arg"):
            self._best_in_column(t, name, loop)
            return
        p, lanes, count = self.prelude, self.lanes, self.writer.count
        acc, dtype, value = self.accumulators[t], self._reduction_dtype_of(t), name
        if t.value_dtype == "bool":
            value = self.writer.as_int(name)
        if t in self.vectors:
            loop.line(f"{acc} = {p.op(t.op, (dtype, dtype), (acc, value), lanes)};")
            return
        at = f"{acc} + {self.writer.i_text}"
        if lanes == 1:
            total = p.op(t.op, (dtype, dtype), (f"*({at})", value), 1)
            loop.line(f"*({at}) = {total};")
            return
        total = p.op(t.op, (dtype, dtype), (p.load(dtype, lanes, at, count), value), lanes)
        loop.line(p.store(dtype, lanes, at, total, count) + ";")
