"""Scatters that combine: updates sorted by their places, and those of one place folded in order.

Atomic operations add in the order in which programs happen to run, and there are none that
multiply, or that compare with NaN. Sorting gives the same bits in every run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from functrans.core import config
from functrans.core.avals import ShapedArray
from functrans.core.jaxpr import Equation, Jaxpr
from functrans.core.primitive import Primitive
from functrans.core.staging import stage
from functrans.lowering.loops.expr import Builder
from functrans.lowering.loops.index import Index, LoopVar
from functrans.lowering.loops.tensor import NARROW, Map, Tensor, compute_dtype, dtype_name
from functrans.lowering.rules import indexing
from functrans.lowering.rules.calls import results_of
from functrans.lowering.triton.calls import Launches
from functrans.lowering.triton.choices import inlined
from functrans.lowering.triton.expressions import narrow, widened
from functrans.lowering.triton.folds import Fold
from functrans.lowering.triton.kernel import Partial, power_of_two
from functrans.lowering.triton.names import MEMORY, literal
from functrans.lowering.triton.rows import AlongRows, module_text
from functrans.lowering.triton.templates.kernel import Argument, Kernel, pointer
from functrans.primitives.arithmetic import add, max_p, min_p, mul
from functrans.primitives.broadcast import broadcast_in_dim
from functrans.primitives.compare import ge, le, select_n_p
from functrans.primitives.convert import convert_element_type
from functrans.primitives.index import scatter_add_p
from functrans.primitives.index_layout import GatherScatterMode, window_sizes
from functrans.primitives.scatter import scatter_max_p, scatter_min_p, scatter_mul_p
from functrans.primitives.shape import broadcasted_iota, iota, reshape, slice_in_dim
from functrans.primitives.sort import sort

__all__ = ["COMBINING", "FOLDS", "ordered_scatters"]

OPS = {scatter_add_p: "add", scatter_mul_p: "mul", scatter_min_p: "min", scatter_max_p: "max"}
EXACT = frozenset(("i32", "i64", "u32", "u64"))
ATOMIC = {"add": EXACT | {"f32", "f64", "f16", "bf16"}, "max": EXACT, "min": EXACT, "mul": ()}
"""What atomic operations do; the order changes nothing where they are exact."""
TILE = 1024  # elements of updates that a program reads at a time
# and where many are of one row: 262,144 rows of 256 into 4 take 5.4 ms in tiles of 1024
LARGE = 8192


class FoldSorted(Primitive, abstract=True):
    """Rows of updates folded into rows of a base: those of update order[p] into row keys[p].

    Keys are ascending; one that is no row of the base is of none. A part of programs for GPUs.
    """

    name = "fold_sorted"

    def type(self, base: ShapedArray, keys: ShapedArray, order: ShapedArray, updates: ShapedArray,
             *, op: str) -> ShapedArray:
        return base


fold_sorted_p = FoldSorted()


# --------------------------------------------------------------------------- programs


def ordered_scatters(jaxpr: Jaxpr) -> Jaxpr:
    """A program whose scatters that combine are atomic operations that do, or sorted ones."""
    if not any(map(_is_ordered, jaxpr.eqns)):
        return jaxpr
    eqns: list[Equation] = []
    for eqn in jaxpr.eqns:
        if not _is_ordered(eqn):
            eqns.append(eqn)
            continue
        staged = stage(partial(_sorted, eqn), [x.aval for x in eqn.invars], name=jaxpr.name)
        (out,) = inlined(staged.jaxpr, eqn.invars, eqns)
        assert eqns[-1].outvars == (out,)
        eqns[-1] = eqns[-1].replace(outvars=eqn.outvars)
    return Jaxpr(jaxpr.constvars, jaxpr.invars, tuple(eqns), jaxpr.outvars, name=jaxpr.name)


def _is_ordered(eqn: Equation) -> bool:
    op = OPS.get(eqn.primitive)
    dtype = dtype_name(eqn.outvars[0].aval.dtype)
    if op is None or dtype is None or dtype == "bool":
        return False
    sizes = [n for x in eqn.invars for n in x.aval.shape]
    if not all(isinstance(n, int) for n in sizes) or 0 in sizes \
            or max(x.aval.size for x in eqn.invars) >= 2**31:
        return False
    return not _is_atomic(eqn)


def _is_atomic(eqn: Equation) -> bool:
    """Whether atomic operations compute a scatter, and in deterministic programs in any order."""
    dtype = dtype_name(eqn.outvars[0].aval.dtype)
    return dtype in ATOMIC[OPS[eqn.primitive]] and (
        not config.current().deterministic or dtype in EXACT or bool(eqn.params["unique_indices"]))


def _sorted(eqn: Equation, base: Any, indices: Any, updates: Any) -> list[Any]:
    """The scatter of an equation by its updates in the order of their places.

    Trailing dimensions that windows cover are columns; all others together are rows.
    """
    columns = _covered(eqn)
    shape, lead = base.shape, updates.ndim - columns
    rows = base.ndim - columns
    width = int(np.prod(shape[rows:], dtype=int))
    keys = reshape(_rows_of(eqn, indices, rows, updates.shape[:lead]), (-1,))
    count = keys.shape[0]
    keys, order = sort((keys, iota(np.int32, count)), num_keys=1)
    out = fold_sorted_p.bind(reshape(base, (base.size // width, width)), keys, order,
                             reshape(updates, (count, width)), op=OPS[eqn.primitive])
    return [reshape(out, shape)]


def _covered(eqn: Equation) -> int:
    """How many trailing dimensions of the operand are the same ones of the updates."""
    numbers = eqn.params["dimension_numbers"]
    shape, updates = eqn.invars[0].aval.shape, eqn.invars[2].aval.shape
    other = {*numbers.inserted_window_dims, *numbers.operand_batching_dims,
             *numbers.scatter_dims_to_operand_dims}
    count = 0
    while count < min(len(shape), len(updates)) and len(shape) - 1 - count not in other \
            and len(updates) - 1 - count in numbers.update_window_dims \
            and shape[-1 - count] == updates[-1 - count]:
        count += 1
    return count


def _rows_of(eqn: Equation, indices: Any, rank: int, lead: Sequence[int]) -> Any:
    """The row of every update, over its first `rank` dimensions; their number where it is none."""
    numbers, shape = eqn.params["dimension_numbers"], eqn.invars[0].aval.shape
    windows = window_sizes(numbers, eqn.invars[2].aval, len(shape))
    batch = [d for d in range(eqn.invars[2].aval.ndim) if d not in numbers.update_window_dims]
    unwindowed = (*numbers.inserted_window_dims, *numbers.operand_batching_dims)
    inside = dict(zip([d for d in range(len(shape)) if d not in unwindowed],
                      numbers.update_window_dims, strict=True))
    row: Any = broadcast_in_dim(np.int32(0), lead, ())
    valid: Any = None
    for d in range(rank):
        place: Any = broadcast_in_dim(np.int32(0), lead, ())
        if d in inside:
            place = broadcasted_iota(np.int32, lead, inside[d])
        elif d in numbers.operand_batching_dims:
            at = numbers.scatter_indices_batching_dims[numbers.operand_batching_dims.index(d)]
            place = broadcasted_iota(np.int32, lead, batch[at])
        if d in numbers.scatter_dims_to_operand_dims:
            k = numbers.scatter_dims_to_operand_dims.index(d)
            start = slice_in_dim(indices, k, k + 1, axis=indices.ndim - 1)
            start = convert_element_type(reshape(start, indices.shape[:-1]), np.int64)
            last = shape[d] - windows[d]
            if eqn.params["mode"] is GatherScatterMode.FILL_OR_DROP:
                here = ge(start, np.int64(0)) & le(start, np.int64(last))
                valid = here if valid is None else valid & here
            start = max_p.bind(min_p.bind(start, np.int64(last)), np.int64(0))
            start = convert_element_type(start, np.int32)
            place = add(place, broadcast_in_dim(start, lead, batch))
        row = add(mul(row, np.int32(shape[d])), place)
    if valid is None:
        return row
    outside = np.int32(np.prod(shape[:rank], dtype=int))
    return select_n_p.bind(broadcast_in_dim(valid, lead, batch),
                           broadcast_in_dim(outside, lead, ()), row)


# --------------------------------------------------------------------------- kernels


class Folded(AlongRows):
    """`fold_sorted`: where the updates of each row begin and end, and a program for each row."""

    name = "fold of sorted rows"

    def __init__(self, eqn: Equation, xs: Sequence[Tensor]) -> None:
        base, self.keys, self.order, self.updates = xs
        self.start = _constant(base)
        self.base = None if self.start is not None else base
        operands = [t for t in (self.base, *xs[1:]) if t is not None]
        super().__init__(operands, results_of(eqn), eqn.source)
        self.rows, self.width = map(int, base.shape)  # type: ignore[arg-type]
        self.count = int(self.keys.size)  # type: ignore[arg-type]
        self.fold = Fold(eqn.params["op"], compute_dtype(base.dtype))

    def launches(self) -> Launches:
        bounds = Partial(1, 2 * self.rows, "i32")
        places = {"out": (self.results[0], 0), "keys": (self.keys, 0), "order": (self.order, 0),
                  "updates": (self.updates, 0), "begins": (bounds, 0),
                  "ends": (bounds, 4 * self.rows)}
        if self.base is not None:
            places["base"] = (self.base, 0)
        return Launches([self._cleared(), self._bounds(), self._folded()], places)

    def _kernel(self, name: str, arguments: Sequence[Argument], lines: Sequence[str], grid: int,
                warps: int = 4) -> Kernel:
        names = ", ".join(a.name for a in arguments)
        text = f"@triton.jit\ndef {name}({names}):\n" + "".join(f"    {x}\n" for x in lines)
        return Kernel(name, module_text(text), tuple(arguments), (grid, 1, 1), warps, 3)

    def _cleared(self) -> Kernel:
        size = 2 * self.rows
        return self._kernel("cleared", [pointer("begins", "i32")], [
            f"i = tl.program_id(0) * {TILE} + tl.arange(0, {TILE})",
            f"tl.store(begins + i, 0, mask=i < {size})"], -(-size // TILE))

    def _bounds(self) -> Kernel:
        n = self.count
        lines = [f"p = tl.program_id(0) * {TILE} + tl.arange(0, {TILE})", f"inside = p < {n}",
                 f"key = tl.load(keys + p, mask=inside, other={self.rows})",
                 "before = tl.load(keys + p - 1, mask=inside & (p > 0), other=-1)",
                 "first = inside & (key != before)",
                 f"tl.store(begins + key, p, mask=first & (key < {self.rows}))",
                 "tl.store(ends + before, p, mask=first & (p > 0))",
                 f"tl.store(ends + key, p + 1, mask=(p == {n - 1}) & (key < {self.rows}))"]
        return self._kernel("bounds", [pointer("keys", "i32"), pointer("begins", "i32"),
                                       pointer("ends", "i32", self.rows % 4 == 0)], lines,
                            -(-n // TILE))

    def _folded(self) -> Kernel:
        """A row and some of its columns: updates in tiles, one below the other, then the tile."""
        width, fold, dtype = self.width, self.fold, self.results[0].dtype
        block_c = min(power_of_two(width), TILE)  # few programs: most rows have few updates
        block_p, many = TILE // block_c, LARGE // block_c
        across = -(-width // block_c)
        wide = ".to(tl.int64)"

        def load(text: str, mask: str) -> str:
            text = f"tl.load({text}, mask={mask}, other=0)"
            return widened(text, dtype) if dtype in NARROW else text

        def tile(step: int) -> list[str]:
            value = fold.masked(load(f"updates + at{wide} * {width} + c", "inside"), "inside")
            return [f"    p = t + tl.arange(0, {step})[:, None]",
                    "    at = tl.load(order + p, mask=p < end, other=0)",
                    f"    inside = (p < end) & (c < {width})", f"    value = {value}"]

        lines = ["pid = tl.program_id(0)", f"row = pid // {across}",
                 f"c = (pid % {across}) * {block_c} + tl.arange(0, {block_c})[None, :]",
                 "begin = tl.load(begins + row)", "end = tl.load(ends + row)",
                 f"acc = {fold.initial(f'(1, {block_c})')[0]}",
                 f"rest = begin + (end - begin) // {many} * {many}",
                 f"for t in range(begin, rest, {many}):", *tile(many),
                 f"    acc = {fold.combined(['acc'], [fold.folded(['value'], 0)])}",
                 f"tail = {fold.initial(f'({block_p}, {block_c})')[0]}",
                 f"for t in range(rest, end, {block_p}):", *tile(block_p),
                 f"    tail = {fold.combined(['tail'], ['value'])}",
                 f"found = {fold.combined(['acc'], [fold.folded(['tail'], 0)])}",
                 f"place = row{wide} * {width} + c"]
        if self.start is not None:
            lines.append(f"old = {literal(self.start, fold.dtype)}")
        else:
            lines.append(f"old = {load('base + place', f'c < {width}')}")
        value = f"tl.where(begin < end, {fold.combined(['old'], ['found'])}, old)"
        if dtype in NARROW:
            value = narrow(f"({value})", dtype)
        lines.append(f"tl.store(out + place, {value}, mask=c < {width})")
        memory = MEMORY[dtype]
        arguments = [pointer("out", memory), pointer("updates", memory), pointer("order", "i32"),
                     pointer("begins", "i32"), pointer("ends", "i32", self.rows % 4 == 0)]
        if self.base is not None:
            arguments.append(pointer("base", memory))
        return self._kernel("folded", arguments, lines, self.rows * across)


def _constant(t: Tensor) -> Any:
    """The number that every element of a tensor is, or None."""
    variables = tuple([Index.of(LoopVar(f"d{k}", n)) for k, n in enumerate(t.shape)])
    e = t.at(Builder(lambda x: not isinstance(x, Map)), variables)
    return e.aux if e.op == "const" else None


def _combining(name: str) -> Callable[[Equation, list[Tensor]], Tensor | None]:
    def rule(eqn: Equation, xs: list[Tensor]) -> Tensor | None:
        found = indexing.RULES[name](eqn, xs) if _is_atomic(eqn) else None
        return None if found is None else found[0]
    return rule


COMBINING = frozenset(p.name for p in OPS)
FOLDS = {"fold_sorted": Folded, **{name: _combining(name) for name in COMBINING}}
