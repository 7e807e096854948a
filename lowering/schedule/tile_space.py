"""Values over one common axis as tiles: which steps a program can compute for one index of it.

A value has `rows x cols` elements for each index of the axis, next to each other in memory. A
program takes one index, or a block of them if no value has rows: then the indices are the rows of
its tiles. What is read of a value of the program has to be all of it, a row, a column or an
element, as it is or transposed; what is in memory may be read in any way.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator
from typing import NamedTuple

from functrans.core.record import Record
from functrans.lowering.loops.expr import (
    Expr,
    ExprBuilder,
    IterationSpaceMismatch,
    reachable_expressions,
)
from functrans.lowering.loops.index import ZERO, Index, LoopVar, flatten, unflatten
from functrans.lowering.loops.tensor import AnyFlag, Gemm, Map, Reduce, ScatterTensor, Tensor
from functrans.lowering.rules.elementwise import ELEMENTWISE

__all__ = [
    "Product",
    "TileAccess",
    "TileMismatch",
    "TileSize",
    "TileSpace",
    "TileValue",
    "extent",
]

MOST_ROWS, MOST_COLUMNS = 128, 128
"""Of a tile of one index."""

MOST_TOTAL = 1024
"""Elements of a part of a product that sums over the axis: with those of 64 x 64 a program of
float32 spills 350 to 880 numbers of each thread."""

PRODUCT_DTYPES = frozenset(("f32", "bf16", "f16"))
PLACES = frozenset(("argmax", "argmin"))


def extent(n: int) -> int:
    """The extent of a tile over so many rows or columns."""
    return 1 if n == 1 else max(16, 1 << (n - 1).bit_length())


class TileMismatch(Exception):
    """A value is none of tiles over the axis; the message says why."""


class TileSize(NamedTuple):
    """How many rows and columns the matrix of a value has for one index."""

    rows: int
    cols: int


class TileAccess(NamedTuple):
    """What is read of a value of the program: one row or column of it, or all; transposed."""

    tensor: Tensor
    row: int | None
    col: int | None
    transposed: bool


class Product(NamedTuple):
    """The operands of a product of m x k and k x n for each index.

    Where n is 1, the second one is a row, where m is, the first is a column: then elements are
    multiplied and added up.
    """

    gemm: Gemm
    m: int
    n: int
    k: int


class TileValue(Record, eq=False):
    """A value of a program: its elements as expressions over a tile.

    A reduction folds `axes` of a tile of the form `over`; a product has two expressions, of its
    operands. Of a `total` over all indices a program has a part, which none of its values reads.
    """

    tensor: Tensor
    form: TileSize
    exprs: tuple[tuple[Expr, TileSize], ...]
    axes: tuple[int, ...] = ()
    product: Product | None = None
    total: bool = False

    @property
    def parts(self) -> list[Expr]:
        """The expressions under its elements."""
        return reachable_expressions([e for e, _ in self.exprs])

    @property
    def inside(self) -> dict[TileAccess, None]:
        """What it reads of values of the program."""
        return dict.fromkeys(e.aux for e in self.parts if e.op == "local")

    @property
    def outside(self) -> dict[Tensor, None]:
        """What it reads from memory."""
        return dict.fromkeys(e.aux[0] for e in self.parts if e.op == "load")

    @property
    def weight(self) -> int:
        """Operations on an element, in additions."""
        return sum(ELEMENTWISE.weight(e.op) for e in self.parts if e.args)


class TileSpace:
    """The values of a program over an axis of `count` indices.

    `by_rows`: they have no rows, and a program takes a block of indices. Those that are `shared`
    belong to no index.
    """

    def __init__(self, count: int, by_rows: bool, is_stored: Callable[[Tensor], bool],
                 shared: Collection[Tensor] = ()) -> None:
        self.count, self.by_rows, self.shared = count, by_rows, shared
        self.index = LoopVar("l", count)
        self.forms: dict[Tensor, TileSize] = {}
        self._is_stored = is_stored
        self._rows: dict[int, LoopVar] = {}
        self._cols: dict[int, LoopVar] = {}
        self._builders: dict[TileSize, _TileBuilder] = {}

    def row(self, n: int) -> Index:
        """The number of the row of a tile with n rows."""
        return ZERO if n == 1 else Index.of(self._rows.setdefault(n, LoopVar(f"r{n}", n)))

    def col(self, n: int) -> Index:
        """The number of the column."""
        return ZERO if n == 1 else Index.of(self._cols.setdefault(n, LoopVar(f"c{n}", n)))

    @property
    def extents(self) -> tuple[list[int], list[int]]:
        """The numbers of rows and columns that tiles have."""
        return [*self._rows], [*self._cols]

    def place(self, form: TileSize) -> Index:
        """Where an element of a value is in memory."""
        return Index.of(self.index) * (form.rows * form.cols) + self._inner(form)

    def _inner(self, form: TileSize) -> Index:
        return self.row(form.rows) * form.cols + self.col(form.cols)

    def builder(self, form: TileSize) -> _TileBuilder:
        """The builder of expressions over tiles of a form."""
        found = self._builders.get(form)
        if found is None:
            found = self._builders[form] = _TileBuilder(self, form, self._is_stored)
        return found

    # --------------------------------------------------------------------------- values

    def value(self, t: Tensor) -> TileValue:
        """A value of a kernel, which is in the space from now on. Raises TileMismatch."""
        if isinstance(t, (AnyFlag, ScatterTensor)) or not isinstance(t, (Map, Reduce)):
            raise TileMismatch("its elements go to computed places")
        n = self._per_index(t)
        for found in self._reduced(t, n) if isinstance(t, Reduce) else self._mapped(t, n):
            self.forms[t] = found.form
            return found
        raise TileMismatch("what it reads are no tiles")

    def _per_index(self, t: Tensor) -> int:
        """How many elements a value has for each index."""
        size, first = 1, 0
        while size < self.count and first < len(t.shape):
            n = t.shape[first]
            if not isinstance(n, int):
                raise TileMismatch("a size is not known")
            size, first = size * n, first + 1
        if size != self.count or t in self.shared or not isinstance(t.size, int):
            raise TileMismatch("it is not split along the axis")
        return t.size // self.count

    def _mapped(self, t: Tensor, n: int) -> Iterator[TileValue]:
        for form in self._splits(t.shape, n):
            s = self.builder(form)
            try:
                e = t.define(s, unflatten(self.place(form), t.shape))
            except IterationSpaceMismatch:
                continue
            yield TileValue(t, form, ((e, form),))

    def _reduced(self, t: Reduce, n: int) -> Iterator[TileValue]:
        if t.op in PLACES or not all(isinstance(k, int) for k in t.sizes):
            raise TileMismatch("it looks for a place")
        folded = 1
        for k in t.sizes:
            folded *= int(k)
        ways: list[tuple[TileSize, tuple[int, ...], TileSize]] = []
        if n == 1:
            ways += [(over, tuple([a for a in (1, 0) if over[a] > 1]), TileSize(1, 1))
                     for over in self._splits(t.sizes, folded)]
        elif not self.by_rows:
            ways += [(TileSize(folded, n), (0,), TileSize(1, n)),
                     (TileSize(n, folded), (1,), TileSize(n, 1))]
        for over, axes, form in ways:
            if max(over.rows, over.cols) > MOST_COLUMNS or (self.by_rows and over.rows > 1):
                continue
            s = self.builder(over)
            if n == 1:
                kept, inner = ZERO, self._inner(over)
            else:
                row, col = self.row(over.rows), self.col(over.cols)
                kept, inner = (col, row) if axes == (0,) else (row, col)
            place = Index.of(self.index) * n + kept
            try:
                e = t.element(s, unflatten(place, t.shape) + unflatten(inner, t.sizes))
            except IterationSpaceMismatch:
                continue
            yield TileValue(t, form, ((e, over),), axes)

    def _splits(self, shape: Collection[object], n: int) -> Iterator[TileSize]:
        """The matrices that n elements of the last dimensions of a shape are."""
        cols = 1
        found: dict[TileSize, None] = {}
        sizes = [k for k in shape if isinstance(k, int) and k > 1]
        for size in [*reversed(sizes), 1]:
            if n % cols == 0 and (n // cols == 1 or not self.by_rows):
                found[TileSize(n // cols, cols)] = None
            if cols >= n:
                break
            cols *= size
        # with rows and columns first
        for form in sorted(found, key=lambda f: (min(f) == 1, f.rows)):
            if form.rows <= MOST_ROWS and form.cols <= MOST_COLUMNS:
                yield form

    # --------------------------------------------------------------------------- products

    def product(self, gemm: Gemm) -> TileValue:
        """A product for each index, which is in the space from now on. Raises TileMismatch."""
        f, t = gemm.fields, gemm.results[0]
        if type(gemm) is not Gemm or not all(isinstance(x, int) for x in (
                *f.values(), gemm.a_offset, gemm.b_offset)):
            raise TileMismatch("its sizes are not known")
        if {x.dtype for x in (*gemm.operands, t)} - PRODUCT_DTYPES:
            raise TileMismatch("its dtype is none of tiles")
        m, n, k = int(f["m"]), int(f["n"]), int(f["k"])
        batch: int = f["batch0"] * f["batch1"]
        axis = Index.of(self.index)
        if batch == self.count and not self.by_rows:
            first, last = (f["batch0"], f["batch1"])
            starts = {}
            for x in "abc":
                step = f[f"{x}_batch1"] if last != 1 else f[f"{x}_batch0"]
                if 1 not in (first, last) and f[f"{x}_batch0"] != step * last:
                    raise TileMismatch("its batch has two axes")
                starts[x] = axis * step
        elif batch == 1 and m % self.count == 0 and (m == self.count or not self.by_rows):
            m //= self.count
            starts = {"a": axis * (m * f["a_row"]), "b": ZERO, "c": axis * (m * f["c_row"])}
        else:
            raise TileMismatch("it mixes the axis, or is of another one")
        if max(m, n, k) > MOST_COLUMNS or k == 0:
            raise TileMismatch("its tiles are large")
        form = TileSize(m, n)
        at = starts["c"] + self.row(m) * f["c_row"] + self.col(n) * f["c_col"]
        if at != self.place(form) or t.size != self.count * m * n:
            raise TileMismatch("its result has another layout")

        def operand(x: str, t: Tensor, offset: object, rows: int, cols: int,
                    turned: bool) -> tuple[Expr, TileSize]:
            over = TileSize(cols, rows) if turned else TileSize(rows, cols)
            row, col = self.row(over.rows), self.col(over.cols)
            if turned:
                row, col = col, row
            place = starts[x] + row * f[f"{x}_row"] + col * f[f"{x}_col"] + offset  # type: ignore[operator]
            return self.builder(over).at(t, place), over

        a, b = gemm.operands
        turned = n == 1 and (m > 1 or self.by_rows)
        if m == 1 and not self.by_rows and not turned:
            sides = (operand("a", a, gemm.a_offset, m, k, turned=True),
                     operand("b", b, gemm.b_offset, k, n, turned=False))
        else:
            sides = (operand("a", a, gemm.a_offset, m, k, turned=False),
                     operand("b", b, gemm.b_offset, k, n, turned=turned))
        if self.by_rows and any(e.op == "local" or e.depends_on(self.index) for e, _ in sides[1:]):
            raise TileMismatch("both operands have the axis")
        self.forms[t] = form
        return TileValue(t, form, sides, product=Product(gemm, m, n, k))

    # --------------------------------------------------------------------------- totals

    def total(self, t: Tensor) -> TileValue:
        """A sum over all indices, of which a program has a part. Raises TileMismatch."""
        if not isinstance(t, Reduce) or t.op != "add" or t.value_dtype != "f32" or not all(
                isinstance(k, int) for k in (*t.shape, *t.sizes)):
            raise TileMismatch("it is no sum over the axis")
        n, folded = (math.prod(map(int, sizes)) for sizes in (t.shape, t.sizes))
        inner = folded // self.count
        if inner * self.count != folded or max(n, inner) > MOST_COLUMNS or (
                self.by_rows and min(n, inner) > 1):
            raise TileMismatch("its tiles are large")
        over = TileSize(1, inner) if n == 1 else TileSize(inner, n)
        axes = tuple([a for a in (1, 0) if over[a] > 1 and (a == 0 or n == 1)])
        kept = ZERO if n == 1 else self.col(n)
        at = self._inner(over) if n == 1 else self.row(inner)
        s = self.builder(over)
        try:
            e = t.element(s, unflatten(kept, t.shape)
                          + unflatten(Index.of(self.index) * inner + at, t.sizes))
        except IterationSpaceMismatch:
            raise TileMismatch("what it reads are no tiles") from None
        if not e.depends_on(self.index):
            raise TileMismatch("it has no axis")
        return TileValue(t, TileSize(1, n), ((e, over),),
                         (*axes, 0) if self.by_rows else axes, total=True)

    def total_product(self, gemm: Gemm) -> TileValue:
        """A product that sums over all indices, of which a program has a part.

        Raises TileMismatch.
        """
        f, t = gemm.fields, gemm.results[0]
        if type(gemm) is not Gemm or not all(isinstance(x, int) for x in (
                *f.values(), gemm.a_offset, gemm.b_offset)):
            raise TileMismatch("its sizes are not known")
        m, n, k = int(f["m"]), int(f["n"]), int(f["k"])
        inner = k // self.count
        if f["batch0"] != 1 or f["batch1"] != 1 or inner * self.count != k or (
                self.by_rows and inner > 1):
            raise TileMismatch("it does not sum over the axis")
        if {x.dtype for x in (*gemm.operands, t)} - PRODUCT_DTYPES \
                or max(m, n, inner) > MOST_COLUMNS:
            raise TileMismatch("its tiles are large")
        if extent(m) * extent(n) > MOST_TOTAL:
            raise TileMismatch("a part of it takes many registers")
        at = self.row(m) * f["c_row"] + self.col(n) * f["c_col"]
        if at != self._inner(TileSize(m, n)) or t.size != m * n:
            raise TileMismatch("its result has another layout")
        down = Index.of(self.index) * inner + self.row(inner)
        sides = []
        for x, size, step, along, offset in (
                (gemm.operands[0], m, f["a_col"], f["a_row"], gemm.a_offset),
                (gemm.operands[1], n, f["b_row"], f["b_col"], gemm.b_offset)):
            place = down * step + self.col(size) * along + offset
            over = TileSize(inner, size)
            sides.append((self.builder(over).at(x, place), over))
        form = TileSize(1, m * n) if 1 in (m, n) else TileSize(m, n)
        self._inner(form)
        if any(e.op == "load" and not e.depends_on(self.index) for e, _ in sides):
            raise TileMismatch("it has no axis")
        return TileValue(t, form, tuple(sides), product=Product(gemm, m, n, inner), total=True)

    # --------------------------------------------------------------------------- reads

    def access(self, t: Tensor, at: Index, seen: TileSize) -> TileAccess:
        """What of a value an index reads, over tiles of a form."""
        form = self.forms[t]
        rest = at - Index.of(self.index) * (form.rows * form.cols)
        variables = {v for x in (self.row(seen.rows), self.col(seen.cols)) for v in x.terms}
        if not rest.terms.keys() <= variables or not isinstance(rest.const, int):
            raise IterationSpaceMismatch(t)
        steps = [rest.coefficient(v) if (v := next(iter(x.terms), None)) is not None else 0
                 for x in (self.row(seen.rows), self.col(seen.cols))]
        row, col = divmod(rest.const, form.cols)
        for order in ((0, 1), (1, 0)):
            down, along = steps[order[0]], steps[order[1]]
            moves = (form.rows > 1 and down == form.cols and seen[order[0]] == form.rows,
                     form.cols > 1 and along == 1 and seen[order[1]] == form.cols)
            if (moves[0] or down == 0) and (moves[1] or along == 0) \
                    and not (moves[0] and row) and not (moves[1] and col) and 0 <= row < form.rows:
                whole = form.rows == 1, form.cols == 1
                return TileAccess(t, None if moves[0] or whole[0] else row,
                                  None if moves[1] or whole[1] else col,
                                  order == (1, 0) and any(moves))
        raise IterationSpaceMismatch(t)


class _TileBuilder(ExprBuilder):
    """Reads values of the program from their tiles."""

    def __init__(self, space: TileSpace, form: TileSize,
                 is_stored: Callable[[Tensor], bool]) -> None:
        super().__init__(is_stored)
        self._space, self._form = space, form

    def read(self, tensor: Tensor, index: tuple[Index, ...]) -> Expr:
        if tensor in self._space.forms:
            return self.at(tensor, flatten(index, tensor.shape))
        if isinstance(tensor, (Reduce, ScatterTensor)) and not self._is_stored(tensor):
            raise IterationSpaceMismatch(tensor)
        return super().read(tensor, index)

    def _is_inlined(self, tensor: Tensor, index: tuple[Index, ...]) -> bool:
        return tensor not in self._space.forms and super()._is_inlined(tensor, index)

    def at(self, tensor: Tensor, place: Index) -> Expr:
        """The element at a place of a tensor that is in memory, or a value of the program."""
        if tensor not in self._space.forms:
            return self._make("load", (), tensor.compute, (tensor, place), place.variables())
        how = self._space.access(tensor, place, self._form)
        return self._make("local", (), tensor.compute, how, place.variables())
