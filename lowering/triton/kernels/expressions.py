"""Expressions as Triton statements: each once, over a tile of rows and places along them.

`o` has the shape [rows, 1], `i` [1, places]: what varies over neither is a scalar, and Triton
repeats what varies over one of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from functrans.lowering.defects import UnsupportedKernel
from functrans.lowering.loops.expr import Expr
from functrans.lowering.loops.index import Computed, Index, LoopVar, Quotient
from functrans.lowering.loops.tensor import FLOAT8, ITEM_SIZES, NARROW, Tensor
from functrans.lowering.rules.elementwise import ELEMENTWISE
from functrans.lowering.schedule.kernel import Kernel
from functrans.lowering.triton.kernels.kernel_source import REGISTER, SizeArguments, literal

__all__ = ["TileWriter", "UnsupportedKernel", "narrow", "widened"]

INT32_LIMIT = 2**31
IN_TEXT = SizeArguments(are_arguments=False)


class TileWriter:
    """Writes the expressions of a kernel at one tile.

    `numbers` gives the text of those that may come from sizes.
    """

    def __init__(self, kernel: Kernel, emit: Callable[[str], None],
                 pointer: Callable[[Tensor], str], fresh: Callable[[], str],
                 masks: dict[str, str | None],
                 numbers: SizeArguments = IN_TEXT) -> None:
        self.kernel = kernel
        self._numbers, self._number = numbers, numbers.text
        self._emit = emit
        self._pointer = pointer
        self._fresh = fresh
        self.masks = masks  # of "o" and "i": the name of the mask, None where all is inside
        self.locals: dict[Tensor, str] = {}
        self._known: dict[Any, str] = {}
        self._linear = kernel.domain.row if kernel.domain.total is not None else None

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

    def index(self, index: Index, wide: bool) -> str:
        """An index as text; a line in pieces is one line here, along `i`."""
        parts = []
        terms = dict(index.terms)
        in_pieces = False
        if self._linear is not None:
            at = terms.get(self.kernel.o, 0)
            # i // 8 within pieces of 4096 is o * 512 + i // 8: then pieces and places are told
            in_pieces = at != terms.get(self.kernel.i, 0) * self._linear
            if not in_pieces:
                terms.pop(self.kernel.o, None)
        for atom, c in terms.items():
            if isinstance(atom, LoopVar):
                text = self._piece(atom) if in_pieces else atom.name
            elif isinstance(atom, Computed):
                text = self.expression(atom.value)
            else:
                inner = self.index(atom.index, wide)
                sign = "//" if isinstance(atom, Quotient) else "%"
                text = f"(({inner}) {sign} {self._number(atom.divisor)})"
            if wide:
                text = f"{text}.to(tl.int64)" if text.isidentifier() else f"({text})"
            parts.append(text if isinstance(c, int) and c == 1 else f"{text} * {self._number(c)}")
        if not parts or index.const != 0:
            parts.append(self._number(index.const))
        return " + ".join(parts)

    def _piece(self, variable: LoopVar) -> str:
        """The number of the piece of a line, or the place in it."""
        assert self._linear is not None
        return f"(i {'//' if variable is self.kernel.o else '%'} {self._number(self._linear)})"

    def place(self, tensor: Tensor, index: Index) -> str:
        wide = not (isinstance(tensor.size, int) and tensor.size < INT32_LIMIT)
        return self.index(index, wide)

    # --------------------------------------------------------------------------- values

    def expression(self, e: Expr) -> str:
        """The name of the value of an expression."""
        if e.op == "local":
            return self.locals[e.aux]
        found = self._known.get(e)
        if found is None:
            found = self._known[e] = self._written(e)
        return found

    def _written(self, e: Expr) -> str:
        if e.op == "const":
            return self.name(self._numbers.constant(e.aux, e.dtype))
        if e.op == "load":
            tensor, index = e.aux
            return self._load(tensor, index, e)
        if e.op == "index":
            low, high = e.aux.bounds()
            small = isinstance(low, int) and isinstance(high, int) \
                and low >= -INT32_LIMIT and high < INT32_LIMIT
            text = self.index(e.aux, not small)
            if e.aux.is_const:
                return self.name(literal(e.aux.const, e.dtype))
            return self.name(f"({text}).to({REGISTER[e.dtype]})")
        return self.name(self._operation(e, [self.expression(a) for a in e.args]))

    def _load(self, tensor: Tensor, index: Index, e: Expr) -> str:
        text = f"tl.load({self._pointer(tensor)} + {self.place(tensor, index)}"
        mask = self.mask(e.variables)
        text += f", mask={mask}, other=0)" if mask else ")"
        if tensor.dtype in NARROW:
            text = widened(text, tensor.dtype)
        elif tensor.dtype == "bool":
            text = f"({text} != 0)"
        return self.name(text)

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
        if op == "rotate_left":
            return f"({args[0]} << {e.aux}) | ({args[0]} >> {32 - e.aux})"
        if op in ("mul_high", "mul_low"):  # one multiply-wide gives both, `tl.umulhi` but one
            wide = f"({args[0]}.to(tl.uint64) * {args[1]}.to(tl.uint64))"
            return f"{wide}.to(tl.uint32)" if op == "mul_low" else f"({wide} >> 32).to(tl.uint32)"
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
