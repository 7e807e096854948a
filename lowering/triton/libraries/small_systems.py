"""Factorizations and systems of small matrices, several to a program, in registers.

A program holds some matrices as a tile [matrix, row, column] and eliminates a column in each round
of a loop. A column, a row or an element of a tile is the sum of the tile where it is that, and of
zeros. Rows are not exchanged: each row of an LU factorization knows its place, where it is stored.

The libraries take 0.50 ms for Cholesky factors of 4,096 matrices of 64 rows, and nearly as long for
smaller ones; and a program's CUDA graphs end at their calls.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

from functrans.core.jaxpr import Equation
from functrans.core.primitive import Primitive
from functrans.lowering.loops.tensor import Stored, Tensor
from functrans.lowering.passes.systems import SMALL
from functrans.lowering.rules.graph import CallRule, results_of
from functrans.lowering.schedule.target import Target
from functrans.lowering.triton.kernels.axis_calls import AxisCall, module_text, sizes
from functrans.lowering.triton.kernels.kernel_source import (
    MEMORY,
    REGISTER,
    Launches,
    power_of_two,
)
from functrans.lowering.triton.libraries.substitution import Substitution, has_many_sides
from functrans.lowering.triton.templates.kernel import Argument, TemplateKernel, pointer
from functrans.primitives.linalg import cholesky_p, lu_p
from functrans.primitives.solve import det_p, slogdet_p, solve_p, triangular_solve_p

__all__ = ["RULES", "SmallSystem", "Times", "is_small", "is_small_and_fast", "library_time",
           "times_of"]

TILE: Final = 1024
"""Elements of the matrices of a program, where they are smaller than that."""
SIDES: Final = 64
"""Right-hand sides of a program, or as many as fill a tile; of more, programs factor the matrix
again."""
IN_A_THREAD: Final = 16
"""Elements of a tile."""
MOST_WARPS: Final = 8
PANEL: Final = 16
"""Columns that larger Cholesky factors eliminate before products subtract them from the others: of
64 rows that is a third of the operations."""
PANELS_FROM: Final = 32
"""Rows of the largest matrices that are eliminated without panels."""

OPERATIONS: Final[dict[Primitive, int]] = {cholesky_p: 10, triangular_solve_p: 6, lu_p: 12,
                                           solve_p: 16, det_p: 12, slogdet_p: 12}
"""Of each element of the tile in a round."""


def is_small(eqn: Equation) -> bool:
    """Whether an equation has a kernel here: of known sizes, float32 or float64."""
    if eqn.primitive not in OPERATIONS:
        return False
    avals = [x.aval for x in eqn.invars]
    return all(isinstance(n, int) and n > 0 for a in avals for n in a.shape) \
        and max(avals[0].shape[-2:]) <= SMALL \
        and math.prod(avals[0].shape) < 2**31 and avals[0].dtype.name in ("float32", "float64")


def is_small_and_fast(eqn: Equation, target: Target) -> bool:
    """Whether it has a kernel that is estimated to be as fast as the library."""
    return is_small(eqn) \
        and target.measured.launch + times_of(eqn, target).launched <= library_time(eqn, target)


def library_time(eqn: Equation, target: Target) -> float:
    """Nanoseconds that a library is estimated to take for an equation."""
    known, a = target.measured, eqn.invars[0].aval
    sides = sum(b.aval.nbytes for b in eqn.invars[1:])
    return known.library_call + known.library_side / 4 * sides \
        + max(min(a.shape[-2:]) * known.triangular_row, known.library_element / 4 * a.nbytes)


class Times(NamedTuple):
    """Nanoseconds of a kernel: of one program that does all of it, and on the whole GPU."""

    alone: float
    launched: float


def times_of(eqn: Equation, target: Target) -> Times:
    """What an equation with a kernel here is estimated to take."""
    known = target.measured
    xs = [Stored(x.aval.shape, "f32", ()) for x in eqn.invars]
    if has_many_sides(eqn):
        launched = Substitution(eqn, xs).seconds(target)
        return Times(launched * target.multiprocessors, launched)
    call = SmallSystem(eqn, xs)
    wide = eqn.invars[0].aval.dtype.itemsize // 4
    program = OPERATIONS[eqn.primitive] * call.rounds * call.tile * wide / known.small_system_rate
    rounds = call.rounds * known.small_system_round
    return Times(call.programs * max(rounds, program),
                 max(rounds, call.programs * program / target.multiprocessors))


class SmallSystem(AxisCall):
    """Cholesky and LU factors, solutions and determinants of a stack of small matrices."""

    name = "small systems"

    def __init__(self, eqn: Equation, xs: Sequence[Tensor]) -> None:
        super().__init__(list(dict.fromkeys(xs)), results_of(eqn), eqn.source)
        self.primitive, self.params = eqn.primitive, eqn.params
        self.xs = list(xs)
        *lead, m, n = [int(k) for k in xs[0].shape]
        self.count, self.m, self.n = math.prod(lead), m, n
        self.rounds = min(m, n)
        self.rows, self.columns = power_of_two(m), power_of_two(n)
        left = self.params.get("left_side", True)
        self.sides = int(xs[1].shape[-1 if left else -2]) if len(xs) > 1 else 0
        most = max(SIDES, TILE // self.rows)
        self.width = min(most, power_of_two(self.sides)) if self.sides else 0
        tile = self.rows * ((0 if self.primitive is triangular_solve_p else self.columns)
                            + self.width)
        fitting = max(1, TILE // tile)
        self.beside = min(power_of_two(self.count), 1 << (fitting.bit_length() - 1))
        self.tile = self.beside * tile
        self.has_panels = self.primitive is cholesky_p and n > PANELS_FROM
        if self.has_panels:
            self.tile = self.rows * PANEL
        self.chunks = -(-self.sides // self.width) if self.sides else 1
        self.programs = -(-self.count // self.beside) * self.chunks
        self.dtype = xs[0].dtype

    def launches(self) -> Launches:
        names = {t: f"x{k}" for k, t in enumerate(self.operands)}
        places: dict[str, tuple[Any, int]] = {name: (t, 0) for t, name in names.items()}
        places |= {f"y{k}": (y, 0) for k, y in enumerate(self.results)}
        inputs = [names[t] for t in self.xs]
        arguments: dict[str, Argument] = {
            name: pointer(name, MEMORY[t.dtype]) for name, (t, _) in places.items()}
        arguments |= sizes(count=self.count)
        name = self.primitive.name
        lines = [*self._places(), *_BODIES[self.primitive](self, *inputs)]
        text = f"@triton.jit\ndef {name}({', '.join(arguments)}):\n" + "".join(
            f"    {line}\n" for line in lines)
        warps = min(MOST_WARPS, power_of_two(max(1, self.tile // (32 * IN_A_THREAD))))
        kernel = TemplateKernel(name, module_text(text), tuple(arguments.values()),
                                (self.programs, 1, 1), warps, 1)
        return Launches([kernel], places)

    # --------------------------------------------------------------------------- text

    def _places(self) -> list[str]:
        """The numbers of the matrices, rows, columns and right-hand sides of a tile."""
        lines = ["pid = tl.program_id(0)",
                 f"b = (pid // {self.chunks}) * {self.beside} "
                 f"+ tl.arange(0, {self.beside})[:, None, None]",
                 "there = b < count", "b = b.to(tl.int64)",
                 f"i = tl.arange(0, {self.rows})[None, :, None]",
                 f"j = tl.arange(0, {self.columns})[None, None, :]"]
        if self.width:
            lines += [f"s = (pid % {self.chunks}) * {self.width} "
                      f"+ tl.arange(0, {self.width})[None, None, :]",
                      f"inside = there & (i < {self.m}) & (s < {self.sides})"]
        return lines

    def _zeros(self, columns: int, dtype: str = "") -> str:
        return f"tl.zeros([{self.beside}, {self.rows}, {columns}], " \
               f"{dtype or REGISTER[self.dtype]})"

    def divided(self, x: str, y: str) -> str:
        """A quotient that is rounded once."""
        return f"tl.div_rn({x}, {y})" if self.dtype == "f32" else f"{x} / {y}"

    def rooted(self, x: str) -> str:
        """A square root that is rounded once."""
        return f"tl.sqrt_rn({x})" if self.dtype == "f32" else f"fm.sqrt({x})"

    def cholesky(self, a: str) -> Iterable[str]:
        n = self.n
        if self.has_panels:
            yield from self._cholesky_by_panels(a)
            return
        yield f"whole = there & (i < {n}) & (j < {n})"
        # a symmetric tile, of which memory has the lower triangle
        yield f"at = b * {n * n} + tl.maximum(i, j) * {n} + tl.minimum(i, j)"
        yield f"a = tl.load({a} + at, mask=whole, other=0)"
        yield "failed = b < 0"
        yield f"for k in range({n}):"
        yield "    column = tl.sum(tl.where(j == k, a, 0), 2, keep_dims=True)"
        yield "    row = tl.sum(tl.where(i == k, a, 0), 1, keep_dims=True)"
        yield "    pivot = tl.sum(tl.where(i == k, column, 0), 1, keep_dims=True)"
        yield "    failed = failed | ((pivot > 0) == 0)"
        yield f"    pivot = {self.rooted('pivot')}"
        yield f"    column = {self.divided('column', 'pivot')}"
        yield f"    row = {self.divided('row', 'pivot')}"
        yield "    a = tl.where((i > k) & (j > k), a - column * row, tl.where(j == k, column, a))"
        yield "a = tl.where(j <= i, tl.where(failed, float('nan'), a), 0)"
        yield f"tl.store(y0 + b * {n * n} + i * {n} + j, a, mask=whole)"

    def _cholesky_by_panels(self, a: str) -> Iterable[str]:
        """One matrix, of which earlier panels are read again from memory."""
        n, rows = self.n, self.rows
        yield f"there = pid.to(tl.int64) * {n * n}"
        yield f"i = tl.arange(0, {rows})[:, None]"
        yield f"j = tl.arange(0, {PANEL})[None, :]"
        yield f"e = tl.arange(0, {PANEL})[:, None]"
        yield "failed = pid < 0"
        yield f"for panel in range({-(-n // PANEL)}):"
        yield f"    start = panel * {PANEL}"
        yield "    c = start + j"
        yield f"    inside = (i < {n}) & (c < {n})"
        yield f"    at = there + tl.maximum(i, c) * {n} + tl.minimum(i, c)"
        yield f"    a = tl.load({a} + at, mask=inside, other=0)"
        yield "    for before in range(panel):"
        yield f"        left = tl.load(y0 + there + i * {n} + before * {PANEL} + j, " \
              f"mask=i < {n}, other=0)"
        yield f"        above = tl.load(y0 + there + c * {n} + before * {PANEL} + e, " \
              f"mask=c < {n}, other=0)"
        yield "        a -= tl.dot(left, above, input_precision='ieee', " \
              f"out_dtype={REGISTER[self.dtype]})"
        yield f"    for k in range({PANEL}):"
        yield "        column = tl.sum(tl.where(j == k, a, 0), 1, keep_dims=True)"
        yield "        row = tl.sum(tl.where(i == start + k, a, 0), 0, keep_dims=True)"
        yield "        pivot = tl.sum(tl.where(j == k, row, 0))"
        yield f"        failed = failed | (((pivot > 0) == 0) & (start + k < {n}))"
        yield f"        pivot = {self.rooted('pivot')}"
        yield f"        column = {self.divided('column', 'pivot')}"
        yield f"        row = {self.divided('row', 'pivot')}"
        yield "        a = tl.where((i > start + k) & (j > k), a - column * row, " \
              "tl.where(j == k, column, a))"
        yield f"    tl.store(y0 + there + i * {n} + c, tl.where(c <= i, a, 0), mask=inside)"
        yield "    tl.debug_barrier()"
        yield f"c = tl.arange(0, {rows})[None, :]"
        yield f"tl.store(y0 + there + i * {n} + c, float('nan'), " \
              f"mask=failed & (c <= i) & (i < {n}))"

    def triangular_solve(self, a: str, b: str) -> Iterable[str]:
        """M x = c for a lower triangle M: an upper one is that of the opposite order."""
        n, p, sides = self.n, self.params, self.sides
        transposed = p["transpose_a"] == p["left_side"]
        along, across = (1, n) if transposed else (n, 1)
        is_lower = p["lower"] != transposed
        place, column = ("i", "k + 1") if is_lower else (f"({n - 1} - i)", f"{n - 2} - k")
        first = "0" if is_lower else str(n - 1)
        at = f"{place} * {sides} + s" if p["left_side"] else f"s * {n} + {place}"
        yield f"x = tl.load({b} + b * {n * sides} + {at}, mask=inside, other=0)"
        yield f"m = {a} + b * {n * n} + {place} * {along}"
        yield f"column = tl.load(m + {first} * {across}, mask=there & (i < {n}), other=0)"
        yield f"for k in range({n}):"
        # what the next round reads is on its way
        yield f"    following = tl.load(m + ({column}) * {across}, " \
              f"mask=there & (i < {n}) & (i > k) & (k < {n - 1}), other=0)"
        yield "    here = tl.sum(tl.where(i == k, x, 0), 1, keep_dims=True)"
        if not p["unit_diagonal"]:
            yield "    pivot = tl.sum(tl.where(i == k, column, 0), 1, keep_dims=True)"
            yield f"    here = {self.divided('here', 'pivot')}"
        yield "    x = tl.where(i == k, here, tl.where(i > k, x - column * here, x))"
        yield "    column = following"
        yield f"tl.store(y0 + b * {n * sides} + {at}, x, mask=inside)"

    def _eliminated(self, a: str, more: Sequence[str] = ()) -> Iterable[str]:
        """L and U in `a`, where the row of place p is row p of the factors.

        `more` lines are of a round, which knows the place `p` of the row that is exchanged with
        row `k`, that row as `row` and as those where `here`, and `factor` by which it is subtracted
        from later rows.
        """
        m, n = self.m, self.n
        yield f"whole = there & (i < {m}) & (j < {n})"
        yield f"a = tl.load({a} + b * {m * n} + i * {n} + j, mask=whole, other=0)"
        yield f"place = i + {self._zeros(1, 'tl.int32')}"
        yield f"for k in range({self.rounds}):"
        yield "    column = tl.sum(tl.where(j == k, a, 0), 2, keep_dims=True)"
        yield "    size = tl.where(column == column, tl.abs(column), float('inf'))"
        yield f"    size = tl.where((place >= k) & (i < {m}), size, -1.0)"
        yield "    largest = tl.max(size, 1, keep_dims=True)"
        yield f"    p = tl.min(tl.where(size == largest, place, {self.rows}), 1, keep_dims=True)"
        yield "    here = place == p"
        yield "    row = tl.sum(tl.where(here, a, 0), 1, keep_dims=True)"
        yield "    pivot = tl.sum(tl.where(here, column, 0), 1, keep_dims=True)"
        yield "    place = tl.where(here, k, tl.where(place == k, p, place))"
        yield "    divisor = tl.where(pivot == 0, 1.0, pivot)"
        yield f"    factor = {self.divided('column', 'divisor')}"
        yield "    later = place > k"
        yield "    a = tl.where(later & (j > k), a - factor * row, " \
              "tl.where(later & (j == k), factor, a))"
        yield from (f"    {line}" for line in more)

    def lu(self, a: str) -> Iterable[str]:
        m, n, k = self.m, self.n, self.rounds
        yield f"e = tl.arange(0, {power_of_two(k)})[None, None, :]"
        yield f"pivots = tl.zeros([{self.beside}, 1, {power_of_two(k)}], tl.int32)"
        yield from self._eliminated(a, ["pivots = tl.where(e == k, p, pivots)"])
        yield f"tl.store(y0 + b * {m * n} + place * {n} + j, a, mask=whole)"
        if len(self.results) > 1:
            yield f"tl.store(y1 + b * {k} + e, pivots, mask=there & (e < {k}))"
        if len(self.results) > 2:
            yield f"tl.store(y2 + b * {m} + place, i + {self._zeros(1, 'tl.int32')}, " \
                  f"mask=there & (i < {m}))"

    def solve(self, a: str, b: str) -> Iterable[str]:
        n, sides = self.n, self.sides
        yield f"x = tl.load({b} + b * {n * sides} + i * {sides} + s, mask=inside, other=0)"
        yield from self._eliminated(a, [
            "first = tl.sum(tl.where(here, x, 0), 1, keep_dims=True)",
            "x = tl.where(later, x - factor * first, x)"])
        yield f"for l in range({n}):"
        yield f"    k = {n - 1} - l"
        yield "    here = place == k"
        yield "    column = tl.sum(tl.where(j == k, a, 0), 2, keep_dims=True)"
        yield "    pivot = tl.sum(tl.where(here, column, 0), 1, keep_dims=True)"
        yield "    last = tl.sum(tl.where(here, x, 0), 1, keep_dims=True)"
        yield f"    last = {self.divided('last', 'pivot')}"
        yield "    x = tl.where(here, last, tl.where(place < k, x - column * last, x))"
        yield f"tl.store(y0 + b * {n * sides} + place * {sides} + s, x, mask=inside)"

    def _one(self, value: str) -> str:
        return f"tl.full([{self.beside}, 1, 1], {value}, {REGISTER[self.dtype]})"

    def det(self, a: str) -> Iterable[str]:
        yield f"product = {self._one('1.0')}"
        yield from self._eliminated(a, ["product = product * tl.where(p == k, pivot, -pivot)"])
        yield "tl.store(y0 + b, product, mask=there)"

    def slogdet(self, a: str) -> Iterable[str]:
        yield f"sign = {self._one('1.0')}"
        yield f"total = {self._one('0.0')}"
        yield from self._eliminated(a, [
            "toward = tl.where(pivot > 0, 1.0, tl.where(pivot < 0, -1.0, pivot))",
            "sign = sign * tl.where(p == k, toward, -toward)",
            "total = total + fm.log(tl.abs(pivot))"])
        yield "tl.store(y0 + b, sign, mask=there)"
        if len(self.results) > 1:
            yield "tl.store(y1 + b, total, mask=there)"


_BODIES: Final[dict[Primitive, Any]] = {
    cholesky_p: SmallSystem.cholesky, triangular_solve_p: SmallSystem.triangular_solve,
    lu_p: SmallSystem.lu, solve_p: SmallSystem.solve, det_p: SmallSystem.det,
    slogdet_p: SmallSystem.slogdet}


def _rule(eqn: Equation, xs: list[Tensor]) -> SmallSystem | Substitution | None:
    if not is_small(eqn):
        return None
    return Substitution(eqn, xs) if has_many_sides(eqn) else SmallSystem(eqn, xs)


RULES: Final[dict[Primitive, CallRule]] = dict.fromkeys(OPERATIONS, _rule)
