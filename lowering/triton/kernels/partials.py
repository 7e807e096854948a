"""Partial results of several programs, combined by the last one or by a second launch.

Either way in the order of the programs, so that results are always the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from functrans.lowering.loops.tensor import NARROW, Tensor
from functrans.lowering.triton.kernels.expressions import narrow
from functrans.lowering.triton.kernels.kernel_source import KernelSource, PartialResults
from functrans.lowering.triton.kernels.reductions import TileReduction
from functrans.lowering.triton.kernels.size_arguments import SizeArguments

__all__ = ["REDUCED_AT_ONCE", "partials_of", "reduce_partials", "second_launch"]

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
