"""Expressions as Triton statements: each once, over a tile of rows and places along them.

`o` has the shape [rows, 1], `i` [1, places]: what varies over neither is a scalar, and Triton
repeats what varies over one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping, Sequence
from functools import partial
from typing import Any, Protocol

from functrans.core.dims import Size
from functrans.lowering.defects import UnsupportedKernel
from functrans.lowering.loops.expr import DEEP, Expr, unclamped
from functrans.lowering.loops.index import Atom, Computed, Index, LoopVar, Quotient, Remainder
from functrans.lowering.loops.tensor import FLOAT8, ITEM_SIZES, NARROW, Tensor
from functrans.lowering.rules.elementwise import ELEMENTWISE
from functrans.lowering.schedule.kernel import Kernel
from functrans.lowering.triton.kernels.kernel_source import (
    REGISTER,
    PartialResults,
    SizeArguments,
    literal,
)

__all__ = ["TileWriter", "UnsupportedKernel", "is_inverse_root_cubed", "narrow", "widened"]

INT32_LIMIT = 2**31
FIT_INT32 = frozenset(("i32", "i16", "i8", "u16", "u8", "bool"))
COMPARISONS = frozenset(("eq", "ne", "lt", "le", "gt", "ge"))
IN_TEXT = SizeArguments(are_arguments=False)


class Packed(Protocol):
    """A copy of an operand."""

    @property
    def room(self) -> PartialResults: ...


PackedLoads = Mapping[tuple[Tensor, Index], tuple[Packed, Index]]
"""Loads that read a copy, and where: see `packed_operands.py`."""

ROWS_APART = 8
"""Rows that are loaded as such, in a tile of several."""


class TileWriter:
    """Writes the expressions of a kernel at one tile.

    `numbers` gives the text of those that may come from sizes. Without a kernel they are scalars.
    """

    tile_of_zeros = "zero"
    """What gives an index the shape of a tile: a name that kernels define, or an expression."""

    def __init__(self, kernel: Kernel | None, emit: Callable[[str], None],
                 pointer: Callable[[Any], str], fresh: Callable[[], str],
                 masks: dict[str, str | None],
                 numbers: SizeArguments = IN_TEXT, packed: PackedLoads | None = None) -> None:
        self._numbers, self._number = numbers, numbers.text
        self._emit = emit
        self._pointer = pointer
        self._fresh = fresh
        self._packed = packed or {}
        self.masks = masks  # of "o" and "i": the name of the mask, None where all is inside
        self.locals: dict[Any, str] = {}
        self.atoms: dict[Atom, str] = {}  # quotients and remainders that have a name
        self._known: MutableMapping[Any, str] = {}
        self._seen: set[Any] = set()  # what was written once, without a name
        self.named: dict[str, Expr] = {}  # for who looks at the kernel
        self._rows = 0
        self._nested = 0  # expressions that wait for an operand
        self._linear: Size | None = None  # elements of a row, of lines in pieces
        self._o: LoopVar | None = None
        self._i: LoopVar | None = None
        if kernel is not None and kernel.domain.total is not None:
            self._linear, self._o, self._i = kernel.domain.row, kernel.o, kernel.i

    def name(self, text: str) -> str:
        name = self._fresh()
        self._emit(f"{name} = {text}")
        return name

    # --------------------------------------------------------------------------- indices

    def mask(self, variables: frozenset[LoopVar]) -> str | None:
        """The mask of what varies over some variables."""
        parts = [self.masks[v.name] for v in sorted(variables, key=lambda v: v.name)]
        texts = [p for p in parts if p is not None]
        return " & ".join(texts) if texts else None

    def index(self, index: Index, wide: bool, named: bool = False) -> str:
        """An index as text; a line in pieces is one line here, along `i`.

        Where it is `named`, quotients and remainders that are there again have a name.
        """
        parts = []
        terms = dict(index.terms)
        in_pieces = False
        if self._linear is not None and self._o is not None and self._i is not None:
            at = terms.get(self._o, 0)
            # i // 8 within pieces of 4096 is o * 512 + i // 8: then pieces and places are told
            in_pieces = at != terms.get(self._i, 0) * self._linear
            if not in_pieces:
                terms.pop(self._o, None)
        for atom, c in terms.items():
            if isinstance(atom, LoopVar):
                text = self._piece(atom) if in_pieces else atom.name
            elif atom in self.atoms:
                text = self.atoms[atom]
            elif isinstance(atom, Computed):
                text = self.narrowed(atom.value) or self.expression(atom.value)
            elif named:
                text = self._repeated((atom, wide), partial(self._divided, atom, wide, named))
            else:
                text = self._divided(atom, wide, named)
            if wide:
                text = f"{text}.to(tl.int64)" if text.isidentifier() else f"({text})"
            parts.append(text if isinstance(c, int) and c == 1 else f"{text} * {self._number(c)}")
        if not parts or index.const != 0:
            parts.append(self._number(index.const))
        return " + ".join(parts)

    def _divided(self, atom: Quotient | Remainder, wide: bool, named: bool) -> str:
        """A quotient or remainder as text."""
        sign = "//" if isinstance(atom, Quotient) else "%"
        return f"(({self.index(atom.index, wide, named)}) {sign} {self._number(atom.divisor)})"

    def _repeated(self, key: Any, text: Callable[[], str]) -> str:
        """The text of a value, or its name: it gets one where it is written a second time.

        Triton's parser takes 50 us for an operation, and reads of neighbours repeat most of them.
        """
        if self._numbers.are_arguments:  # of a text: each has its own
            return text()
        if key not in self._known:
            if key not in self._seen:
                self._seen.add(key)
                return text()
            self._known[key] = self.name(text())
        return self._known[key]

    def _piece(self, variable: LoopVar) -> str:
        """The number of the piece of a line, or the place in it."""
        assert self._linear is not None
        return f"(i {'//' if variable is self._o else '%'} {self._number(self._linear)})"

    def place(self, tensor: Tensor, index: Index, named: bool = False) -> str:
        wide = not (isinstance(tensor.size, int) and tensor.size < INT32_LIMIT)
        return self.index(index, wide, named)

    def _address(self, pointer: str, tensor: Tensor, index: Index) -> str:
        """The address of an element: neighbours have all but a constant in common."""
        near = index - index.const
        if index.is_const or self._numbers.are_arguments:
            return f"{pointer} + {self.place(tensor, index)}"
        text = self._repeated(("address", pointer, near),
                              lambda: f"{pointer} + {self.place(tensor, near, named=True)}")
        return f"{text} + {self._number(index.const)}" if index.const != 0 else text

    # --------------------------------------------------------------------------- values

    def expression(self, e: Expr) -> str:
        """The name of the value of an expression."""
        if e.op == "local":
            return self.locals[e.aux]
        found = self._known.get(e)
        if found is None:
            self._nested += 1
            if self._nested % DEEP == 0:
                self._write_operands(e)
            found = self._known[e] = self._written(e)
            self._nested -= 1
            self.named[found] = e
        return found

    def _write_operands(self, e: Expr) -> None:
        """Write what an expression is made of, operands first: Python nests 1,000 calls."""
        waiting = list(e.args)
        while waiting:
            x = waiting[-1]
            inside = [a for a in x.args if a.args and a not in self._known]
            if x.args and x not in self._known and inside:
                waiting += reversed(inside)
                continue
            waiting.pop()
            if x.args:
                self.expression(x)

    def _written(self, e: Expr) -> str:
        if e.op == "const":
            return self.name(self._numbers.constant(e.aux, e.dtype))
        if e.op == "load":
            tensor, index = e.aux
            return self._load(tensor, index, e)
        if e.op == "index":
            text = self.index(e.aux, not is_small(e.aux), named=True)
            if e.aux.is_const:
                return self.name(literal(e.aux.const, e.dtype))
            return self.name(f"({text}).to({REGISTER[e.dtype]})")
        if e.op == "select" and (rolled := self._wrapped(e)) is not None:
            return self.name(rolled)
        small = self._narrow_args(e.args) if e.op in COMPARISONS else None
        if small is not None:
            return self.name(self._text_of(e.op, "i32", small))
        return self.name(self._operation(e, [self.expression(a) for a in e.args]))

    # --------------------------------------------------------------------------- 64 bits in 32
    #
    # A program's indices have 64 bits, which a GPU adds and compares in two operations each, and
    # which take two registers. Those that are known to be small are 32 bits wide.

    def narrowed(self, e: Expr) -> str | None:
        """The name of an integer of 64 bits in 32, where it is known to fit."""
        if e.dtype != "i64" or e.op not in ("const", "index", "convert", "min", "max", "select"):
            return None
        key = ("narrow", e)
        if key not in self._known:
            text = self._narrow_text(e)
            if text is None:
                return None
            self._known[key] = self.name(text)
        return self._known[key]

    def _narrow_text(self, e: Expr) -> str | None:
        if e.op == "const":
            fits = -INT32_LIMIT <= int(e.aux) < INT32_LIMIT
            return self._numbers.constant(e.aux, "i32") if fits else None
        if e.op == "index":
            if not is_plain(e.aux):
                return None
            return literal(e.aux.const, "i32") if e.aux.is_const else \
                f"({self.index(e.aux, wide=False, named=True)}).to(tl.int32)"
        if e.op == "convert":
            source = e.args[0].dtype
            return f"{self.expression(e.args[0])}.to(tl.int32)" if source in FIT_INT32 else None
        args = self._narrow_args(e.args[1:] if e.op == "select" else e.args)
        if args is None:
            return None
        if e.op == "select":
            return f"tl.where({self.expression(e.args[0])}, {args[0]}, {args[1]})"
        return self._text_of(e.op, "i32", args)

    def _narrow_args(self, args: Sequence[Expr]) -> list[str] | None:
        if not all(map(fits_int32, args)):
            return None
        return [name for name in map(self.narrowed, args) if name is not None]

    def _load(self, tensor: Tensor, index: Index, e: Expr) -> str:
        copy, index = self._packed.get((tensor, index), (None, index))
        index, tests = self._tested(index)
        pointer = self._pointer(tensor if copy is None else copy.room)
        address = self._address(pointer, tensor, index)
        if self._is_one_row_of_many(e.variables):
            address += f" + {self.tile_of_zeros}"
        mask = " & ".join(filter(None, [self.mask(e.variables), *tests]))
        return self.name(self._loaded(tensor, address, mask))

    def _loaded(self, tensor: Tensor, address: str, mask: str | None) -> str:
        text = f"tl.load({address}" + (f", mask={mask}, other=0)" if mask else ")")
        if tensor.dtype in NARROW:
            return widened(text, tensor.dtype)
        return f"({text} != 0)" if tensor.dtype == "bool" else text

    def _wrapped(self, e: Expr) -> str | None:
        """One load for the two parts of an array that has been rolled; None where `e` is no such.

        Two loads, each with a mask, take twice the instructions: energies of 64 x 256 x 256 spins,
        with two rolls, 14 us where these take 11.
        """
        condition, near, far = e.args
        if not (near.op == far.op == "load") or near.aux[0] is not far.aux[0] \
                or near in self._known or far in self._known:
            return None
        tensor = near.aux[0]
        here = tested_range(condition)
        if here is None or any((tensor, x.aux[1]) in self._packed for x in (near, far)):
            return None
        at, count = here
        places = []
        for x, (low, high) in ((near, (0, count)), (far, (count, None))):
            index = x.aux[1]
            for atom, c in list(index.terms.items()):
                free = unclamped(atom) if isinstance(atom, Computed) else None
                if free is None:
                    continue
                # inside wherever this load is chosen
                end = atom.high if high is None else high - low
                if free != at - low or end != atom.high or (not at.within(0, low + atom.high) \
                        and high is None):
                    return None
                index = index - Index({atom: c}) + free * c
            places.append(index)
        apart = places[0] - places[1]
        if not apart.is_const or not is_plain(places[1]):
            return None
        chosen = f"tl.where({self.expression(condition)}, {self._number(apart.const)}, 0)"
        address = self._address(self._pointer(tensor), tensor, places[1])
        return self._loaded(tensor, f"{address} + {chosen}", self.mask(e.variables))

    def _is_one_row_of_many(self, variables: frozenset[LoopVar]) -> bool:
        """Whether what is loaded is a row for all rows of the tile, and several were before.

        A row has a layout of its own, and goes to that of the tile through shared memory, with two
        barriers: the 49 taps of a filter of 7 x 7 are read as tiles, from the first-level cache.
        """
        if {v.name for v in variables} != {"i"} or self._linear is not None:
            return False
        self._rows += 1
        return self._rows > ROWS_APART

    def _tested(self, index: Index) -> tuple[Index, list[str]]:
        """An index that is not moved into bounds, and the names of the tests that it is inside.

        What is outside is not read, and neighbours are seen to be neighbours in memory.
        """
        tests: list[str] = []
        for atom, c in list(index.terms.items()):
            if not isinstance(atom, Computed):
                continue
            free = unclamped(atom)
            if free is None or not is_plain(free):
                continue
            key = ("inside", free, atom.high)
            if key not in self._known:
                at = self.name(self.index(self._tested(free)[0], wide=False, named=True))
                self._known[key] = self.name(f"({at} >= 0) & ({at} < {self._number(atom.high)})")
            tests.append(self._known[key])
            free, more = self._tested(free)
            tests += more
            index = index - Index({atom: c}) + free * c
        return index, tests

    def stored(self, value: str, tensor: Tensor) -> str:
        """A value as it is in memory."""
        if tensor.dtype == "bool":
            return f"{value}.to(tl.uint8)"
        if tensor.dtype in NARROW:
            return narrow(value, tensor.dtype)
        return value

    def as_stored(self, value: str, tensor: Tensor) -> str:
        """A value that is stored as its other readers see it: a narrow float is rounded.

        Else kernels would compute different things from one value, and comparisons would differ.
        """
        if tensor.dtype not in NARROW:
            return value
        return self.name(widened(narrow(value, tensor.dtype), tensor.dtype))

    def _operation(self, e: Expr, args: list[str]) -> str:
        op, dtype = e.op, e.args[0].dtype
        if op == "select":
            return f"tl.where({args[0]}, {args[1]}, {args[2]})"
        if op == "convert":
            return self._converted(args[0], dtype, e.dtype)
        if op == "round_to":
            return widened(narrow(args[0], e.aux), e.aux)
        if op == "bitcast":
            return f"{args[0]}.to({REGISTER[e.dtype]}, bitcast=True)"
        if is_inverse_root_cubed(e):
            return f"fm.inverse_root_cubed({args[1]})"
        if is_root_like_power(e):
            return f"fm.root_like_power({args[0]}, {float(e.args[1].aux)})"
        if op == "bits_of_half":
            return f"{narrow(args[0], 'f16')}.to(tl.uint16, bitcast=True)"
        if op == "half_of_bits":
            return widened(f"{args[0]}.to(tl.float16, bitcast=True)", "f16")
        if op == "rotate_left":
            return f"({args[0]} << {e.aux}) | ({args[0]} >> {32 - e.aux})"
        if op in ("mul_high", "mul_low"):  # one multiply-wide gives both, `tl.umulhi` but one
            wide = f"({args[0]}.to(tl.uint64) * {args[1]}.to(tl.uint64))"
            return f"{wide}.to(tl.uint32)" if op == "mul_low" else f"({wide} >> 32).to(tl.uint32)"
        return self._text_of(op, dtype, args)

    def _text_of(self, op: str, dtype: str, args: list[str]) -> str:
        entry = ELEMENTWISE.operation(op)
        text = None if entry is None else entry.triton_text(dtype)
        if text is None:
            raise UnsupportedKernel(f"{op} of {dtype}")
        bits = ITEM_SIZES[dtype] * 8
        return text.format(*args, bits=bits, last=bits - 1, own=REGISTER[dtype])

    def _converted(self, x: str, source: str, target: str) -> str:
        if target == "bool":
            return f"({x} != 0)"
        if source[0] == "f" and target[0] in "iu":
            return f"fm.saturate({x}, {_least(target)}, {_greatest(target)}, " \
                   f"{_above(target, source)}).to({REGISTER[target]})"
        return f"{x}.to({REGISTER[target]})"



def is_inverse_root_cubed(e: Expr) -> bool:
    """Whether an expression is x ** -1.5, which pulls at bodies far from each other."""
    return e.op == "div" and e.dtype == "f32" and e.args[0].op == "rsqrt" \
        and e.args[0].args[0] is e.args[1]


def is_root_like_power(e: Expr) -> bool:
    """Whether an expression is a power that `root_like_power` computes."""
    return e.op == "pow" and e.dtype == "f32" and e.args[1].op == "const" \
        and 0 < abs(e.args[1].aux) <= 0.5


def tested_range(e: Expr) -> tuple[Index, int] | None:
    """The index i and the n of a test 0 <= i < n, as `ExprBuilder.when` writes it.

    It leaves out the comparisons that the bounds of the index decide.
    """
    index: Index | None = None
    low: Any = None
    high: Any = None
    for test in e.args if e.op == "and" else (e,):
        if test.op not in ("ge", "lt", "eq") or [x.op for x in test.args] != ["index", "const"] \
                or index not in (None, test.args[0].aux):
            return None
        index, bound = test.args[0].aux, int(test.args[1].aux)
        low = low if test.op == "lt" else bound
        high = high if test.op == "ge" else bound + (test.op == "eq")
    assert index is not None
    least, most = index.bounds()
    low, high = least if low is None else low, most + 1 if high is None else high
    return (index - low, high - low) if isinstance(low, int) and isinstance(high, int) else None


def is_small(index: Index) -> bool:
    """Whether an index fits 32 bits."""
    low, high = index.bounds()
    return isinstance(low, int) and isinstance(high, int) \
        and low >= -INT32_LIMIT and high < INT32_LIMIT


def is_plain(index: Index) -> bool:
    """Whether an index fits 32 bits and divides twice at most.

    LLVM makes pairs of less than 16 bits of remainders of remainders of remainders, and fails at an
    assertion (Triton 3.9); of 64 bits it makes none.
    """
    return is_small(index) and _depth(index) <= 2


def _depth(index: Index) -> int:
    """How many quotients and remainders are inside of each other."""
    return max((1 + _depth(atom.index) for atom in index.terms
                if isinstance(atom, (Quotient, Remainder))), default=0)


def fits_int32(e: Expr) -> bool:
    """Whether an integer of 64 bits is known to fit 32."""
    if e.dtype != "i64":
        return False
    if e.op == "const":
        return -INT32_LIMIT <= int(e.aux) < INT32_LIMIT
    if e.op == "index":
        return is_plain(e.aux)
    if e.op == "convert":
        return e.args[0].dtype in FIT_INT32
    return e.op in ("min", "max", "select") and all(
        map(fits_int32, e.args[1:] if e.op == "select" else e.args))


def widened(value: str, dtype: str) -> str:
    """A narrow float, as it is in memory, in float32."""
    return f"fm.from_{dtype}({value})" if dtype in FLOAT8 else f"{value}.to(tl.float32)"


def narrow(value: str, dtype: str) -> str:
    """A float32 as it is in the memory of a narrow float."""
    if dtype in FLOAT8:
        return f"fm.to_{dtype}({value})"
    return f"fm.bfloat16({value})" if dtype == "bf16" else f"{value}.to({REGISTER[dtype]})"


def _least(dtype: str) -> str:
    return str(-(1 << (int(dtype[1:]) - 1)) if dtype[0] == "i" else 0)


def _greatest(dtype: str) -> str:
    bits = int(dtype[1:])
    return str((1 << (bits - 1)) - 1 if dtype[0] == "i" else (1 << bits) - 1)


def _above(target: str, source: str) -> str:
    """The least number of the source that is too large."""
    bits = int(target[1:])
    return repr(float(1 << (bits - 1) if target[0] == "i" else 1 << bits))
