"""C text: sizes, indices, and the expressions of elements; what the text of a kernel is."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field
from types import MappingProxyType
from typing import Any, Final, Protocol

from functrans.core.dims import Dim, Size
from functrans.core.record import Record
from functrans.lowering.c.prelude import Prelude
from functrans.lowering.loops.expr import Expr
from functrans.lowering.loops.index import Computed, Index, LoopVar, Quotient, Remainder
from functrans.lowering.loops.permuted_reads import offsets_of
from functrans.lowering.loops.tensor import Tensor
from functrans.lowering.schedule.group import MarkedRows, Schedule, has_constant_stride
from functrans.lowering.schedule.kernel import Kernel

__all__ = ["C_TYPES", "Angles", "BlockTotals", "CodeScope", "ExprWriter", "KernelText",
           "PlaceScratch", "RowMarks", "Scratch", "ctype", "expression_text", "is_number",
           "operation_text", "size_text"]


# --- sizes

def expression_text(size: Dim, names: dict[str, str]) -> str:
    """`2*B + 1` as a C expression of type i64."""
    return _text(size.expr, names)


def _text(e: Any, names: dict[str, str]) -> str:
    name = type(e).__name__  # sympy is not imported for programs without such sizes
    if e.is_Integer:
        return f"({int(e)}LL)"
    if e.is_Symbol:
        return names[str(e)]
    if e.is_Add:
        return "(" + " + ".join(_text(a, names) for a in e.args) + ")"
    if e.is_Mul:
        return "(" + " * ".join(_text(a, names) for a in e.args) + ")"
    if e.is_Pow and e.exp.is_Integer and e.exp > 0:
        return "(" + " * ".join([_text(e.base, names)] * int(e.exp)) + ")"
    if name == "floor":
        numerator, denominator = e.args[0].together().as_numer_denom()
        return f"ft_floordiv({_text(numerator, names)}, {_text(denominator, names)})"
    if name == "Mod":
        return f"ft_mod({_text(e.args[0], names)}, {_text(e.args[1], names)})"
    if name in ("Max", "Min"):
        f = "ft_max" if name == "Max" else "ft_min"
        out = _text(e.args[0], names)
        for a in e.args[1:]:
            out = f"{f}({out}, {_text(a, names)})"
        return out
    raise ValueError(f"the size {e} has no form in C")


# --- element types and index arithmetic

C_TYPES = {"f32": "float", "f64": "double", "f16": "u16", "bf16": "u16", "i8": "i8", "i16": "i16",
           "i32": "i32", "i64": "i64", "u8": "u8", "u16": "u16", "u32": "u32", "u64": "u64",
           "bool": "u8"}
"""The types of elements in memory; the integer names are typedefs of the prelude."""


def size_text(size: Size, names: dict[str, str]) -> str:
    """A size as a C expression; `names` has the C expression of every named size."""
    if not isinstance(size, Dim):
        return str(int(size))
    if size.is_name:
        return names[size.name]
    return expression_text(size, names)


NO_OTHERS: Final[Mapping[LoopVar, str]] = MappingProxyType({})


def index_text(index: Index, names: dict[str, str],
               computed: Callable[[Computed], str] | None = None,
               variables: Mapping[LoopVar, str] = NO_OTHERS) -> str:
    """An index as a C expression; `computed(atom)` gives the expression of a computed value, and
    `variables` what others are called than by their names."""
    parts = []
    for atom, c in index.terms.items():
        if isinstance(atom, LoopVar):
            text = variables.get(atom, atom.name)
        elif isinstance(atom, (Quotient, Remainder)):
            inner = index_text(atom.index, names, computed, variables)
            sign = "/" if isinstance(atom, Quotient) else "%"
            text = f"(({inner}) {sign} {size_text(atom.divisor, names)})"
        else:
            assert computed is not None
            text = computed(atom)
        parts.append(text if isinstance(c, int) and c == 1 else f"{text} * {size_text(c, names)}")
    if not parts or not (isinstance(index.const, int) and index.const == 0):
        parts.append(size_text(index.const, names))
    return " + ".join(parts)


# --- What the text of a kernel is, and what it needs when it runs

class Scratch(Record):
    """Memory that a kernel needs besides its operands: partial results of its chunks.

    `number` is that of the reduction it belongs to, so that each has memory of its own.
    """

    dtype: str
    size: Size
    number: int


class PlaceScratch(Scratch):
    """Scratch for places, apart from that for values of the same size."""


class BlockTotals(Scratch):
    """Scratch for the totals of blocks of rows, apart from that for the sums of a block."""


class RowMarks(Scratch):
    """A mark for each row of a value, from the step that writes the rows to the last that reads
    them."""

    tensor: Tensor


class KernelText(Record, frozen=False, eq=False, repr=False):
    """A kernel in C: `text` defines the functions, with NAME for its name.

    `operands` are what its argument array points to, in order; after them the sizes. It runs over
    `count` ranges, then `finish`, if there is one, in the calling thread. `lanes` elements are
    computed at once. A scatter that may make lists of its rows has memory for them.
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
    lanes: int = 1
    values: dict[str, tuple[Tensor, ...]] = field(default_factory=dict)
    """The values of the program that variables of the text are, or are elements of."""
    lists: Scratch | None = None


def is_number(n: Any, value: int) -> bool:
    """Whether a size is known to be `value`."""
    return isinstance(n, int) and n == value


FILLED = 16
"""Elements of a constant that stands for what is not in memory: of the longest vector."""

# --- Expressions as C statements: each once, and as far out of the loops as it can stand

INT32_LIMIT = 2**31


class CodeScope:
    """Lines of C at one depth."""

    def __init__(self, indent: str) -> None:
        self._indent = indent
        self._lines: list[str] = []

    def line(self, text: str) -> int:
        """Add a line; its number."""
        self._lines.append(self._indent + text + "\n")
        return len(self._lines) - 1

    def replace(self, number: int, texts: Sequence[str]) -> None:
        """Other lines in place of one."""
        self._lines[number] = "".join([self._indent + text + "\n" for text in texts])

    def nested(self) -> CodeScope:
        return CodeScope(self._indent + "  ")

    def take(self, inner: CodeScope) -> None:
        self._lines.extend(inner._lines)

    def text(self) -> str:
        return "".join(self._lines)


class Angles:
    """Sines and cosines that were written: both of one angle become one call."""

    OTHER: Final = {"sin": "cos", "cos": "sin"}

    def __init__(self, prelude: Prelude) -> None:
        self.prelude = prelude
        self._alone: dict[Any, tuple[CodeScope, int, str]] = {}

    def forget(self) -> None:
        """Leave what was written as it is."""
        self._alone.clear()

    def written(self, e: Expr, lanes: int, scope: CodeScope, number: int, name: str) -> None:
        """Note the line of a variable."""
        if e.op in self.OTHER:
            self._alone[e.op, e.args[0], lanes] = scope, number, name

    def joined(self, e: Expr, arg: str, lanes: int, scope: CodeScope,
               fresh: Callable[[], str]) -> str | None:
        """The variable with the value of a function, if the line of the other one gives both."""
        other = self.OTHER.get(e.op)
        where, number, name = self._alone.pop((other, e.args[0], lanes), (None, 0, ""))
        if where is not scope:
            return None
        p, both, mine = self.prelude, fresh(), fresh()
        sine, cosine = (mine, name) if e.op == "sin" else (name, mine)
        one, two = p.vtype(e.dtype, lanes), p.vtype(e.dtype, 2 * lanes)
        lo, hi = (p.function(half, e.dtype, 2 * lanes) for half in ("lo", "hi"))
        scope.replace(number, [
            f"const {two} {both} = {p.function('sine_cosine', e.dtype, lanes)}({arg});",
            f"const {one} {sine} = {lo}({both});", f"const {one} {cosine} = {hi}({both});"])
        return mine


class ExprOwner(Protocol):
    """What a writer needs to know of the kernel that it writes for."""

    kernel: Kernel
    prelude: Prelude
    sizes: dict[str, str]
    lanes: int
    head: CodeScope
    row_buffers: dict[Tensor, str]
    schedule: Schedule

    def operand(self, t: Any) -> str: ...


def ctype(dtype: str) -> str:
    """The C type of one value in a register."""
    return {"f32": "float", "f64": "double", "bool": "int"}.get(dtype, dtype)


class ExprWriter:
    """Writes expressions at three depths: the function, the row, the loop over vectors."""

    def __init__(self, owner: ExprOwner, first_name: int = 0) -> None:
        self.owner = owner
        self.kernel = owner.kernel
        self.prelude = owner.prelude
        self.lanes = owner.lanes
        self.last_name = first_name
        self._head: dict[Any, str] = {}
        self._row: dict[Any, str] = {}
        self._loop: dict[Any, str] = {}
        self._is_fixed: dict[Expr, bool] = {}
        self.locals: dict[Tensor, str] = {}
        self.local_stage: dict[Tensor, int] = {}
        self.tiles: dict[Any, str] = {}
        self.named: dict[str, Expr] = {}
        self.unmarked: Collection[Tensor] = ()
        """Values of which the row that is written has no mark."""
        self.angles = Angles(self.prelude)
        self.stage = 0
        self.i_text = "i"
        self.count: str | None = None
        self.row_scope = CodeScope("")

    # --- scopes

    def begin_row(self, out: CodeScope) -> None:
        self.row_scope = out
        self._row = {}
        self.locals = {}
        self.local_stage = {}

    def begin_loop(self, row: CodeScope, stage: int, count: str | None, offset: int = 0) -> None:
        self.row_scope = row
        self._loop = {}
        self.angles.forget()
        self.stage = stage
        self.count = count
        self.i_text = f"(i + {offset})" if offset else "i"

    @contextmanager
    def hidden_loop(self) -> Iterator[None]:
        """Expressions of another place along the row, whose names are known within alone."""
        outside, self._loop = self._loop, {}
        try:
            yield
        finally:
            self._loop = outside

    def fresh(self, scope: CodeScope, type_name: str, text: str) -> str:
        """A new variable with the value of a C expression."""
        name = self._new_name()
        scope.line(f"const {type_name} {name} = {text};")
        return name

    def _new_name(self) -> str:
        self.last_name += 1
        return f"v{self.last_name}"

    def _operated(self, e: Expr, args: list[str], lanes: int, scope: CodeScope) -> str:
        """A new variable with the value of an operation."""
        joined = self.angles.joined(e, args[0], lanes, scope, self._new_name) \
            if e.op in Angles.OTHER else None
        if joined is not None:
            return joined
        kind = ctype(e.dtype) if lanes == 1 else self.prelude.vtype(e.dtype, lanes)
        name = self._new_name()
        number = scope.line(f"const {kind} {name} = "
                            f"{operation_text(self.prelude, e, args, lanes)};")
        self.angles.written(e, lanes, scope, number, name)
        return name

    def size(self, n: Size) -> str:
        return size_text(n, self.owner.sizes)

    # --- numbers that are the same along the row

    def index(self, index: Index, scope: CodeScope) -> str:
        """An index as a C expression of i64."""

        def computed(atom: Computed) -> str:
            value = atom.value
            if self.lanes == 1 or not value.depends_on(self.kernel.i):
                return self.scalar(value, scope)
            raise AssertionError("a place that changes along the row is no scalar")

        return index_text(index, self.owner.sizes, computed)

    def pointer(self, base: str, place: Index, t: Tensor) -> str:
        """A pointer to what a place is at the beginning of the row."""
        i = self.kernel.i
        rest = Index({a: c for a, c in place.terms.items() if a is not i}, place.const)
        if rest.is_const and isinstance(rest.const, int) and rest.const == 0:
            return base
        key = (base, rest)
        if key not in self._row:
            text = f"{base} + ({self.index(rest, self.row_scope)})"
            self.last_name += 1
            name = f"q{self.last_name}"
            self.row_scope.line(f"{C_TYPES[t.dtype]} *{name} = {text};")
            self._row[key] = name
        return self._row[key]

    def _fixed(self, e: Expr) -> bool:
        """Whether an expression is the same for all rows."""
        known = self._is_fixed.get(e)
        if known is None:
            known = (e.op != "local" and not e.variables and all(map(self._fixed, e.args))
                     and all(map(self._fixed, self.kernel.inside(e))))
            self._is_fixed[e] = known
        return known

    def scalar(self, e: Expr, scope: CodeScope) -> str:
        """The value of an expression that is the same along the row (or of one element)."""
        p = self.prelude
        if e.op == "const":
            return p.literal(e.aux, e.dtype)
        if e.op == "local":
            return self.locals[e.aux]
        along = e.depends_on(self.kernel.i)
        memo = self._loop if along else self._head if self._fixed(e) else self._row
        key = (e, 1)
        if key not in memo:
            where = scope if along else self.owner.head if memo is self._head else self.row_scope
            args = [self.scalar(a, scope) for a in e.args]
            if e.op == "load":
                t, place = e.aux
                at = self.index(place, where)
                pointer = f"{self.owner.operand(t)} + ({at})"
                if t in self.owner.schedule.marked:
                    mark = f"{self.marks(t)}[(u64)({at}) / {self._rows(t).row}]"
                    pointer = self.marked_pointer(t, mark, pointer, where)
                text = p.load_scalar(t.dtype, pointer)
            elif e.op == "index":
                text = p.convert("i64", e.dtype, f"((i64)({self.index(e.aux, where)}))", 1) \
                    if e.dtype != "i64" else f"((i64)({self.index(e.aux, where)}))"
            else:
                text = ""
            memo[key] = self.fresh(where, ctype(e.dtype), text) if text else \
                self._operated(e, args, 1, where)
            self.named[memo[key]] = e
        return memo[key]

    # --- vectors

    def vector(self, e: Expr, loop: CodeScope) -> str:
        """The value of an expression for the lanes at i, i + 1, ..."""
        if self.lanes == 1:
            return self._local(e, loop) if e.op == "local" else self.scalar(e, loop)
        key = (e, self.lanes)
        if not e.depends_on(self.kernel.i):
            return self._spread(e)
        if e.op == "local":
            return self._local(e, loop)
        if key not in self._loop:
            args = [self.vector(a, loop) for a in e.args]
            if e.op == "load":
                tensor, place = e.aux
                text = self._load(tensor, place, loop)
            elif e.op == "index":
                text = self._number(e, loop)
            else:
                text = ""
            self._loop[key] = self._operated(e, args, self.lanes, loop) if not text else \
                self.fresh(loop, self.prelude.vtype(e.dtype, self.lanes), text)
            self.named[self._loop[key]] = e
        return self._loop[key]

    def _spread(self, e: Expr) -> str:
        """A number that is the same along the row, in all lanes."""
        memo, where = (self._head, self.owner.head) if e.op == "const" or self._fixed(e) else \
            (self._row, self.row_scope)
        # copies of a loop for other rows have expressions of their own, and the same constants
        key = (self.scalar(e, where), e.dtype, self.lanes) if e.op == "const" else (e, self.lanes)
        if key not in memo:
            text = self.prelude.broadcast(e.dtype, self.lanes, self.scalar(e, where))
            memo[key] = self.fresh(where, self.prelude.vtype(e.dtype, self.lanes), text)
        return memo[key]

    def _local(self, e: Expr, loop: CodeScope) -> str:
        """A value of the kernel at this place: from this loop, or left by an earlier one."""
        t = e.aux
        if t not in self.local_stage or self.local_stage[t] == self.stage:
            name = self.locals[t]
            if self.lanes == 1 or t in self.local_stage:
                return name
            return self._spread(e)
        key = (e, self.lanes)
        if key not in self._loop:
            buffer = self.owner.row_buffers.get(t)
            base = buffer if buffer is not None else self.pointer(
                self.owner.operand(t), self.kernel.places["full"], t)
            self._loop[key] = self.fresh(loop, self.prelude.vtype(t.compute, self.lanes),
                                         self._read(t.compute, f"{base} + {self.i_text}"))
        return self._loop[key]

    def _read(self, dtype: str, pointer: str) -> str:
        if self.lanes == 1:
            return self.prelude.load_scalar(dtype, pointer)
        return self.prelude.load(dtype, self.lanes, pointer, self.count)

    def _load(self, t: Tensor, place: Index, loop: CodeScope) -> str:
        p, i = self.prelude, self.kernel.i
        base = self.owner.operand(t)
        permuted = self._permuted(t, place, base)
        if permuted is not None:
            return permuted
        if not has_constant_stride(place, i):
            dtype = "i32" if isinstance(t.size, int) and t.size < INT32_LIMIT else "i64"
            return p.gather(t.dtype, self.lanes, base, self._numbers(place, dtype, loop), dtype,
                            self.count)
        step = place.coefficient(i)
        if (t, place) in self.tiles:
            return p.load(t.dtype, self.lanes, self.tiles[t, place], self.count)
        start = self.pointer(base, place, t)
        if isinstance(step, int) and step == 1:
            pointer = f"{start} + {self.i_text}"
            if t in self.unmarked:
                return p.broadcast(t.dtype, self.lanes, p.literal(self._rows(t).fill, t.dtype))
            if t in self.owner.schedule.marked:
                pointer = self.marked_pointer(t, self._mark(t, place), pointer, loop)
            return p.load(t.dtype, self.lanes, pointer, self.count)
        stride = self.size(step)
        return p.strided(t.dtype, self.lanes, f"{start} + {self.i_text} * ({stride})", stride,
                         self.count)

    # --- rows that may not be in memory

    def _rows(self, t: Tensor) -> MarkedRows:
        return self.owner.schedule.marked[t]

    def marks(self, t: Tensor) -> str:
        """The name of the pointer to the marks of the rows of a value."""
        return self.owner.operand(RowMarks("u8", self._rows(t).rows, 0, t))

    def _mark(self, t: Tensor, place: Index) -> str:
        """The mark of the row that the vector at i is in."""
        return self.mark_of_row(t, place) or (
            f"{self.marks(t)}[(u64)({self.index(self._begin(place), self.row_scope)} + "
            f"{self.i_text}) / {self._rows(t).row}]")

    def _begin(self, place: Index) -> Index:
        """The place at the beginning of the row."""
        return Index({a: c for a, c in place.terms.items() if a is not self.kernel.i}, place.const)

    def mark_of_row(self, t: Tensor, place: Index) -> str | None:
        """The mark of what the kernel reads for a row, if that is all in one row of the value."""
        row, domain, rest = self._rows(t).row, self.kernel.domain, self._begin(place)
        if domain.total is not None or domain.row > row or any(
                c % row for c in (*rest.terms.values(), rest.const)):
            return None
        key = ("mark", t, rest)
        if key not in self._row:
            at = self.index(rest, self.row_scope)
            self._row[key] = self.fresh(self.row_scope, "u8", f"{self.marks(t)}[({at}) / {row}]")
        return self._row[key]

    def marked_pointer(self, t: Tensor, mark: str, pointer: str, scope: CodeScope) -> str:
        """A pointer to elements of a row, or to the constant that they are where it has no mark."""
        fill = self._rows(t).fill
        key = ("fill", t.dtype, repr(fill))
        if key not in self._head:
            literal = self.prelude.literal(fill, t.dtype)
            self.last_name += 1
            self._head[key] = f"fill{self.last_name}"
            self.owner.head.line(f"static {C_TYPES[t.dtype]} {self._head[key]}[{FILLED}] = "
                                 f"{{{', '.join([literal] * FILLED)}}};")
        self.last_name += 1
        scope.line(f"{C_TYPES[t.dtype]} *q{self.last_name} = {mark} ? {pointer} : "
                   f"{self._head[key]};")
        return f"q{self.last_name}"

    def _permuted(self, t: Tensor, place: Index, base: str) -> str | None:
        """Whole vectors in another order, where each has all elements of its neighbourhood."""
        i = self.kernel.i
        if self.count is not None or place.has_computed or (t, place) in self.tiles \
                or (has_constant_stride(place, i) and place.coefficient(i) in (0, 1)):
            return None
        offsets = offsets_of(place, i, self.lanes)
        if offsets is None:
            return None
        first = index_text(place, self.owner.sizes, None, {i: f"({self.i_text})"})
        return self.prelude.permuted(t.dtype, self.lanes, f"{base} + ({first})", offsets)

    def _number(self, e: Expr, loop: CodeScope) -> str:
        low, high = e.aux.bounds()
        small = (isinstance(low, int) and isinstance(high, int)
                 and low >= -INT32_LIMIT and high < INT32_LIMIT)
        dtype = "i32" if small else "i64"
        value = self._numbers(e.aux, dtype, loop)
        return value if e.dtype == dtype else self.prelude.convert(dtype, e.dtype, value,
                                                                   self.lanes)

    def _numbers(self, index: Index, dtype: str, loop: CodeScope) -> str:
        """The values of an index in all lanes."""
        p, lanes, i = self.prelude, self.lanes, self.kernel.i
        same = Index({a: c for a, c in index.terms.items()
                      if not Index({a: 1}).depends_on(i)}, index.const)
        two = (dtype, dtype)
        total = p.broadcast(dtype, lanes, f"({dtype})({self.index(same, loop)})")
        for atom, c in index.terms.items():
            if atom in same.terms:
                continue
            if isinstance(atom, LoopVar):
                value = p.iota(dtype, lanes, f"({dtype})({self.i_text})")
            elif isinstance(atom, Computed):
                value = self.vector(atom.value, loop)
                if atom.value.dtype != dtype:
                    value = p.convert(atom.value.dtype, dtype, value, lanes)
            else:
                inner = self._numbers(atom.index, dtype, loop)
                by = p.broadcast(dtype, lanes, f"({dtype})({self.size(atom.divisor)})")
                value = p.op("div" if isinstance(atom, Quotient) else "rem", two, (inner, by),
                             lanes)
            if not (isinstance(c, int) and c == 1):
                factor = p.broadcast(dtype, lanes, f"({dtype})({self.size(c)})")
                value = p.op("mul", two, (value, factor), lanes)
            total = p.op("add", two, (total, value), lanes)
        return total

    def as_int(self, mask: str) -> str:
        return self.prelude.convert("bool", "i32", mask, self.lanes)

    def tail_mask(self, count: str) -> str:
        p, lanes = self.prelude, self.lanes
        return p.op("lt", ("i32", "i32"), (p.iota("i32", lanes, "0"),
                                           p.broadcast("i32", lanes, f"(i32)({count})")), lanes)


def operation_text(p: Prelude, e: Expr, args: list[str], lanes: int) -> str:
    """The C text of an operation on texts of its operands, in some lanes."""
    if e.op == "convert":
        return p.convert(e.args[0].dtype, e.dtype, args[0], lanes)
    if e.op == "round_to":
        return p.convert(e.args[0].dtype, e.aux, args[0], lanes)
    if e.op == "bitcast":
        return p.bitcast(e.args[0].dtype, e.dtype, args[0], lanes)
    if e.op == "bits_of_half":
        return p.bitcast("f16", "u16", args[0], lanes)
    if e.op == "half_of_bits":
        return p.bitcast("u16", "f16", args[0], lanes)
    if e.op == "rotate_left":
        return f"(({args[0]} << {e.aux}) | ({args[0]} >> {32 - e.aux}))"
    if e.op == "mul_low":
        return f"({args[0]} * {args[1]})"
    return p.op(e.op, tuple([a.dtype for a in e.args]), args, lanes)
