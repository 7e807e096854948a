"""Reductions in Triton: initial values, how two tiles are combined, how one is reduced."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from functrans.core.record import Record
from functrans.lowering.loops.tensor import NARROW, Reduce, Tensor
from functrans.lowering.rules.reduce import identity_element
from functrans.lowering.triton.kernels.expressions import narrow
from functrans.lowering.triton.kernels.kernel_source import (
    REGISTER,
    KernelSource,
    PartialResults,
    SizeArguments,
)

__all__ = ["REDUCED_AT_ONCE", "TileReduction", "partials_of", "reduce_partials", "second_launch",
           "tile_reduction"]


class TileReduction(Record):
    """A reduction: of values alone, or of values and their places."""

    op: str
    dtype: str  # of the values

    @property
    def is_place(self) -> bool:
        return self.op in ("argmax", "argmin")

    @property
    def register(self) -> str:
        """The type of what is added up or compared."""
        return "tl.int32" if self.dtype == "bool" else REGISTER[self.dtype]

    @property
    def start(self) -> str:
        value = identity_element(self.op,
                                 "i32" if self.dtype == "bool" and self.op == "and" else self.dtype)
        if isinstance(value, float):
            return f"float('{'-' if value < 0 else ''}inf')" if value in (
                float("inf"), float("-inf")) else repr(value)
        return str(value)

    @property
    def starts(self) -> list[str]:
        """What values and places start from."""
        return [self.start, str(2**31 - 1)] if self.is_place else [self.start]

    def initial(self, shape: str) -> list[str]:
        """The accumulators of a tile."""
        return [f"tl.full({shape}, {start}, {register})" for start, register in
                zip(self.starts, (self.register, "tl.int32"), strict=False)]

    def masked(self, value: str, mask: str) -> str:
        """A value where it counts, over the shape of the mask."""
        if self.dtype == "bool":
            value = f"({value}).to(tl.int32)"
        return f"tl.where({mask}, {value}, {self.start}).to({self.register})"

    def combined(self, old: list[str], new: list[str]) -> str:
        """Two accumulators made one, element by element."""
        if self.op == "add":
            return f"{old[0]} + {new[0]}"
        return f"combine_{self.op}({', '.join([*old, *new])})"

    def reduced(self, names: list[str], axis: int) -> str:
        """Accumulators reduced along an axis, which stays with size 1."""
        values = names[0] if len(names) == 1 else f"({', '.join(names)})"
        return f"tl.reduce({values}, {axis}, combine_{self.op}, keep_dims=True)"

    def result(self, names: list[str]) -> str:
        """The value of a reduction that is done."""
        if self.is_place:
            return names[1]
        return f"({names[0]} != 0)" if self.dtype == "bool" else names[0]


def tile_reduction(tensor: Reduce) -> TileReduction:
    op = tensor.op
    if tensor.value_dtype == "bool":
        op = {"add": "or", "mul": "and", "max": "or", "min": "and"}.get(op, op)
    return TileReduction(op, tensor.value_dtype)


FUNCTIONS = '''
@triton.jit
def combine_add(a, b):
    return a + b


@triton.jit
def combine_max(a, b):
    return tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def combine_min(a, b):
    return tl.minimum(a, b, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def combine_mul(a, b):
    return a * b


@triton.jit
def combine_and(a, b):
    return a & b


@triton.jit
def combine_or(a, b):
    return a | b


@triton.jit
def combine_xor(a, b):
    return a ^ b


@triton.jit
def combine_argmax(a, i, b, j):
    same = (a == b) | ((a != a) & (b != b))
    better = (b > a) | ((b != b) & (a == a))
    take = better | (same & (j < i))
    return tl.where(take, b, a), tl.where(take, j, i)


@triton.jit
def combine_argmin(a, i, b, j):
    same = (a == b) | ((a != a) & (b != b))
    better = (b < a) | ((b != b) & (a == a))
    take = better | (same & (j < i))
    return tl.where(take, b, a), tl.where(take, j, i)


@triton.jit
def combine_logsumexp(a, b):
    top = tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)
    more = fm.log1p(fm.exp(-tl.abs(a - b)))
    return top + tl.where(a == b, 0.6931471805599453, more)
'''
"""The combine functions by name; a module has those that it calls."""


# --- Partial results of several programs, combined by the last one or by a second launch
#
# Either way in the order of the programs, so that results are always the same.

REDUCED_AT_ONCE = 2048


def partials_of(fold: TileReduction, count: int, size: int) -> list[PartialResults]:
    """Memory for the accumulators of `count` programs."""
    found = [PartialResults(count, size, "i32" if fold.dtype == "bool" else fold.dtype)]
    if fold.is_place:
        found.append(PartialResults(count, size, "i32"))
    return found


def reduce_partials(emit: Callable[[str], None], fresh: Callable[[], str], fold: TileReduction,
                    pointers: Sequence[str], tile: tuple[int, int], axis: int, count: str,
                    step: str,
                    place: str, mask: str | None) -> list[str]:
    """Write the reduction of partials somewhere, `step` from one to the next; the names of results.

    They are along an axis of the tile, places along the other. A program of the same launch may
    have written them: they are read from the second-level cache.
    """
    lane = ("[:, None]", "[None, :]")[axis]
    names = [fresh() for _ in pointers]
    for name, text in zip(names, fold.initial(str(tile)), strict=True):
        emit(f"{name} = {text}")
    emit(f"for s in range(0, {count}, {tile[axis]}):")
    emit(f"    r = s + tl.arange(0, {tile[axis]}){lane}")
    inside = f"(r < {count}){f' & ({mask})' if mask else ''}"
    new = [fresh() for _ in pointers]
    for name, pointer, start in zip(new, pointers, fold.starts, strict=True):
        emit(f"    {name} = tl.load({pointer} + r * {step} + {place}, mask={inside}, "
             f"other={start}, cache_modifier='.cg')")
    emit(f"    {', '.join(names)} = {fold.combined(names, new)}")
    done = [fresh() for _ in pointers]
    emit(f"{', '.join(done)} = {fold.reduced(names, axis)}")
    return done


def second_launch(t: Tensor, fold: TileReduction, partials: list[PartialResults], narrowest: int,
                  any_size: bool) -> KernelSource:
    """The launch that reduces the partials of the first one."""
    numbers = SizeArguments(any_size)
    columns = partials[0].size
    # all at once where there are few: each round waits for memory (132 x 1024: 7 us in 9 rounds)
    depth = min(numbers.extent(partials[0].count), 128)
    block = min(numbers.extent(columns), max(narrowest, REDUCED_AT_ONCE // depth), 128)
    count, size = (numbers.text(partials[0].count, "count", near=False),
                   numbers.text(columns, "size"))
    lines = ["pid = tl.program_id(0)", f"c = pid * {block} + tl.arange(0, {block})[None, :]"]
    fresh = iter([f"v{k}" for k in range(64)]).__next__
    done = reduce_partials(lines.append, fresh, fold, [f"p{k + 1}" for k in range(len(partials))],
                           (depth, block), 0, count, size, "c", f"c < {size}")
    lines.append(f"tl.store(p0 + c, {in_memory(fold.result(done), t)}, mask=c < {size})")
    arguments = ", ".join([f"p{k}" for k in range(len(partials) + 1)] + numbers.names)
    text = f"@triton.jit\ndef NAME({arguments}):\n" + "".join(f"    {x}\n" for x in lines)
    return KernelSource(text, [t, *partials], -(-columns // block), 4, numbers.found)


def in_memory(value: str, t: Tensor) -> str:
    """A result as it is stored."""
    if t.dtype == "bool":
        return f"({value}).to(tl.uint8)"
    return narrow(f"({value})", t.dtype) if t.dtype in NARROW else value
