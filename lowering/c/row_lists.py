"""Lists of the rows of a scatter, by the slices of its result that they go to.

Few threads find the rows of their slices by walking all rows, and repeat each other's work. More of
them first make lists together: for each block of rows, which of them go to which slice. Then each
walks its own parts of the lists alone, which are in the order of the rows. Which is faster the
runtime finds out (`csrc/list_choice.h`).

Processor time in ms of 10^6 rows of float32 that go to random ones of 10^5 places, of 16 threads on
two cores that walk all rows, that have lists, and of one thread: single elements 51, 4.3 and 0.9;
rows of 3 32, 14 and 4.3; rows of 16 41, 20 and 5. Rows in order: 11.5, 2.9 and 1.1; 24, 7.5 and
6.7; 21, 5.7 and 3.8.
"""

from __future__ import annotations

from collections.abc import Callable

from functrans.core.dims import Size
from functrans.lowering.c.expressions import CodeScope, ExprWriter, KernelText, Scratch, is_number
from functrans.lowering.c.kernel import CKernelWriter
from functrans.lowering.c.prelude import Prelude
from functrans.lowering.c.scatters import SLICES
from functrans.lowering.schedule.group import Schedule
from functrans.lowering.schedule.kernel import Domain, Kernel

__all__ = ["LIST_ROWS", "run_with_lists", "write_kernel"]

BLOCK = 1024
"""Rows of a list: their numbers in it have 16 bits."""

STARTS = SLICES + 2
"""Of a list: where the rows of each slice begin, the end, and whether rows are in that order."""

LEAST_BLOCKS = 16
"""Fewer cost less to walk than one more loop on all threads."""

LIST_ROWS = f"""\
typedef int (*ft_list_function)(void *ctx, int (*parallel)(void *, ft_range, void *, i64, i64),
                                const ft_range *loops, void *arg, i64 slices, i64 blocks);
static void ft_list_rows(const u8 *slice, i64 rows, u16 *starts, u16 *list) {{
  i64 ordered = 1, s = 0;
  while (ordered < rows && slice[ordered - 1] <= slice[ordered]) ordered++;
  starts[{STARTS - 1}] = ordered == rows;
  if (ordered == rows) {{
    for (i64 k = 0;;) {{
      while (s <= slice[k]) starts[s++] = k;
      i64 low = k, high = rows - 1;
      if (slice[high] == slice[k]) break;
      while (high - low > 1) {{
        const i64 middle = (low + high) / 2;
        if (slice[middle] > slice[k]) high = middle;
        else low = middle;
      }}
      k = high;
    }}
    while (s <= {SLICES}) starts[s++] = rows;
    return;
  }}
  u16 next[2][{SLICES + 1}] = {{{{0}}}}, total = 0;
  for (i64 k = 0; k < rows; k++) next[k & 1][slice[k]]++;
  for (; s <= {SLICES}; s++) {{
    starts[s] = total;
    total += next[0][s] + next[1][s];
    next[0][s] = starts[s];
  }}
  for (i64 k = 0; k < rows; k++) list[next[0][slice[k]]++] = k;
}}
"""
"""What lists the rows of a block by their slices, and keeps their order in each."""


def write_kernel(kernel: Kernel, schedule: Schedule, prelude: Prelude,
                 sizes: dict[str, str]) -> KernelText:
    """The C text of a kernel, with functions that make and walk lists if it is a long scatter."""
    main = CKernelWriter(kernel, schedule, prelude, sizes)
    text = main.write()
    if not main.sliced:
        return text
    listed = _ListedScatter(_by_elements(kernel), schedule, prelude, sizes)
    return listed.with_walk_by(CKernelWriter(kernel, schedule, prelude, sizes)) \
        if listed.has_lists() else text


def run_with_lists(name: str, text: KernelText, size: Callable[[Size], str], work: str,
                   function: str) -> str:
    """The statement that leaves it to the runtime whether lists are made, if rows are many."""
    assert text.lists is not None
    blocks = size(text.lists.size // (STARTS + BLOCK))
    return (f"const ft_range loops[] = {{{name}, {name}_lists, {name}_listed}}; "
            f"if ({work} > FT_PARALLEL_WORK && {blocks} >= {LEAST_BLOCKS}) "
            f"{{ if (((ft_list_function){function})(ctx, ft->parallel, loops, a, "
            f"{size(text.count)}, {blocks})) return 1; ft_clear_upper(); }} else ")


def _by_elements(kernel: Kernel) -> Kernel:
    """A scatter of one long row as one of rows of an element, of which lists can be made."""
    d = kernel.domain
    return Kernel(Domain(d.row, 1), kernel.members) if is_number(d.rows, 1) else kernel


class _ListedScatter(CKernelWriter):
    """Writes the functions of a scatter that make lists, and that walk them."""

    def has_lists(self) -> bool:
        rows = self.domain.rows
        if isinstance(rows, int) and rows <= BLOCK * (LEAST_BLOCKS - 1):
            return False
        return self.domain.total is None and (is_number(self.domain.row, 1)
                                              or self._slicing() == "row")

    def with_walk_by(self, other: CKernelWriter) -> KernelText:
        """The text of the kernel by another writer, which walks all rows, and these functions."""
        self.writer = ExprWriter(self)
        self.head = head = CodeScope("  ")
        self.sliced = "row"
        lists = self._list()
        making = self._making(lists)
        making = head.text() + making
        body = CodeScope("    ")
        self._walk(lists, body)
        walking = "".join([head.text(), body.text(), self._frees()])
        other.operands, other.first_name = self.operands, self.writer.last_name
        text = other.write()
        text.lists = lists
        text.text += self._entry("NAME_lists", making) + self._entry("NAME_listed", walking)
        text.values = {**self._values(), **text.values}
        return text

    def _list(self) -> Scratch:
        """Memory for the starts of all blocks, and after them for their rows."""
        return Scratch("u16", self._list_count() * (STARTS + BLOCK), 0)

    def _list_count(self) -> Size:
        return (self.domain.rows + (BLOCK - 1)) // BLOCK

    def _making(self, lists: Scratch) -> str:
        """The loop that makes the lists of some blocks.

        A row that is dropped goes to a slice of its own, which nobody takes. Rows that are in the
        order of their slices need no list: those of a slice follow one another.
        """
        size = self.size(self.kernel.members[0].tensor.size)
        p, out = self.operand(lists), CodeScope("    ")
        out.line(f"const u64 size = {size}, factor = size ? ((u64){SLICES} << 32) / size : 0;")
        out.line("for (i64 b = begin; b < end; b++) {")
        block = out.nested()
        self._begin_block(block, "b", p)
        block.line(f"u8 slice[{BLOCK}];")
        block.line("for (i64 o = first; o < last; o++) {")
        row = block.nested()
        s = self.kernel.builder(self.schedule.is_stored)
        place, condition = self.kernel.target(s, self.kernel.members[0])
        self.writer.begin_row(row)
        row.line(f"const u64 at = {self.writer.index(self._first(place), row)};")
        inside = "at < size"
        if condition is not None:
            inside = f"(({self.writer.scalar(condition, row)}) != 0) & ({inside})"
        row.line(f"slice[o - first] = {inside} ? at * factor >> 32 : {SLICES};")
        block.take(row)
        block.line("}")
        block.line("ft_list_rows(slice, last - first, starts, list);")
        out.take(block)
        out.line("}")
        return out.text()

    def _begin_block(self, out: CodeScope, number: str, p: str) -> None:
        """The rows of a block, and the places of its list."""
        rows = self.size(self.domain.rows)
        out.line(f"const i64 first = {number} * {BLOCK}, last = ft_min(first + {BLOCK}, {rows});")
        out.line(f"u16 *const starts = {p} + {number} * {STARTS};")
        out.line(f"u16 *const list = {p} + {self.size(self._list_count())} * {STARTS} + first;")

    def _walk(self, lists: Scratch, out: CodeScope) -> None:
        """The loop over the rows of some slices."""
        out.line(f"u16 in_order[{BLOCK}];")
        out.line(f"for (i64 k = 0; k < {BLOCK}; k++) in_order[k] = k;")
        out.line(f"for (i64 b = 0; b < {self.size(self._list_count())}; b++) {{")
        block = out.nested()
        self._begin_block(block, "b", self.operand(lists))
        block.line("(void)last;")
        block.line(f"const u16 *own = starts[{STARTS - 1}] ? in_order : list;")
        block.line("for (i64 k = starts[begin]; k < starts[end]; k++) {")
        row = block.nested()
        row.line("const i64 o = first + own[k];")
        self.row_with_marks(row)
        block.take(row)
        block.line("}")
        out.take(block)
        out.line("}")
