"""Products of small matrices that are interleaved in memory: each lane has matrices of its own.

The sums are numbers in registers, written out, and each step of the sum reads a row of lanes of
every element: nothing is copied, transposed or read twice. The gradient of a beamformer has 4,112
products of complex matrices of 8 rows with sums of 255 terms: four products with copies of their
operands moved 820 MB for each factor of 67 MB, and these read 71.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from functrans.core.jaxpr import Equation
from functrans.core.primitive import Primitive
from functrans.lowering.loops.index import strides_of
from functrans.lowering.loops.tensor import Tensor
from functrans.lowering.passes.interleaved_products import (
    WARP,
    InterleavedLayout,
    Names,
    interleaved_product_p,
)
from functrans.lowering.rules.graph import CallRule, results_of
from functrans.lowering.triton.kernels.axis_calls import AxisCall, module_text
from functrans.lowering.triton.kernels.kernel_source import MEMORY, Launches
from functrans.lowering.triton.templates.kernel import TemplateKernel, pointer

__all__ = ["RULES", "InterleavedCall", "offset_of", "place_of", "sign"]


class InterleavedCall(AxisCall):
    """`interleaved_product`: the parts of x and y, and what weighs the terms, to parts of sums."""

    name = "interleaved products"

    def __init__(self, eqn: Equation, xs: Sequence[Tensor]) -> None:
        super().__init__(list(dict.fromkeys(xs)), results_of(eqn), eqn.source)
        self.layout: InterleavedLayout = eqn.params["layout"]
        self.xs = list(xs)

    def launches(self) -> Launches:
        names = {t: f"x{k}" for k, t in enumerate(self.operands)}
        places: dict[str, tuple[Any, int]] = {name: (t, 0) for t, name in names.items()}
        places |= {f"z{k}": (z, 0) for k, z in enumerate(self.results)}
        arguments = {name: pointer(name, MEMORY[t.dtype]) for name, (t, _) in places.items()}
        text = f"@triton.jit\ndef interleaved({', '.join(arguments)}):\n" + "".join(
            f"    {line}\n" for line in _Writer(self.layout, [names[x] for x in self.xs]).lines())
        kernel = TemplateKernel("interleaved", module_text(text), tuple(arguments.values()),
                                (self.layout.programs * self.layout.splits, 1, 1), 1, 1)
        return Launches([kernel], places)


class _Writer:
    """Writes the text of a kernel."""

    def __init__(self, layout: InterleavedLayout, xs: Sequence[str]) -> None:
        self.layout, parts = layout, layout.parts
        self.x, self.y, self.weight = xs[:parts], xs[parts:2 * parts], xs[2 * parts:]
        self.m, self.n = layout.size(layout.rows), layout.size(layout.columns)

    def lines(self) -> Iterator[str]:
        p = self.layout
        across, along = p.blocks
        tiles = -(-p.sizes[p.lane] // WARP)
        yield "pid = tl.program_id(0)"
        yield f"lane = pid % {tiles} * {WARP} + tl.arange(0, {WARP})"
        yield f"inside = lane < {p.sizes[p.lane]}"
        yield f"split = pid // {tiles} % {p.splits}"
        yield f"batch = pid // {tiles * p.splits} % {p.size(p.batch)}"
        if across * along > 1:
            block = f"pid // {tiles * p.splits * p.size(p.batch)}"
            yield f"i = {block} // {along} * {p.block[0]}"
            yield f"j = {block} % {along} * {p.block[1]}"
        places = [(i, j) for i in range(p.block[0]) for j in range(p.block[1])
                  if not p.has_half or i <= j]
        for i, j in places:
            for part in "ri"[:p.parts]:
                yield f"{part}{i}_{j} = tl.zeros(({WARP},), tl.float32)"
        yield f"for t in range(split, {p.size(p.contracted)}, {p.splits}):"
        for line in self._added(places):
            yield f"    {line}"
        yield from self._stored(places)

    def _added(self, places: Sequence[tuple[int, int]]) -> Iterator[str]:
        """Load the factors of a term, and add their products to the sums."""
        p = self.layout
        variables = {"batch": p.batch, "t": p.contracted}
        if self.weight:
            assert p.weight is not None
            own = " + lane, mask=inside, other=0" if p.lane in p.weight else ""
            yield f"w = tl.load({self.weight[0]} + {place_of(p.weight, p.sizes, variables)}{own})"
        u: dict[str, str] = {}
        v: dict[str, str] = {}
        known: dict[str, str] = {}
        for found, side, pointers, names, free in ((u, "i", self.x, p.x, p.rows),
                                                   (v, "j", self.y, p.y, p.columns)):
            for k in range(p.block["ij".index(side)]):
                for part, at in zip("ri", pointers, strict=False):
                    where = f"{at} + {place_of(names, p.sizes, variables)} + lane + " \
                        + self._at(side, k, names, free)
                    if where not in known:
                        known[where] = f"{side}{part}{k}"
                        yield f"{known[where]} = tl.load({where}, mask={self._inside(side, k)}, " \
                              "other=0)"
                    found[f"{part}{k}"] = known[where]
        if self.weight:
            for key, name in v.items():
                v[key] = f"w{key}"
                yield f"w{key} = {name} * w"
        first, second = (-1 if c else 1 for c in p.conjugates)
        for i, j in places:
            yield f"r{i}_{j} += {u[f'r{i}']} * {v[f'r{j}']}"
            if p.is_complex:
                yield f"r{i}_{j} {sign(-first * second)}= {u[f'i{i}']} * {v[f'i{j}']}"
                yield f"i{i}_{j} {sign(second)}= {u[f'r{i}']} * {v[f'i{j}']}"
                yield f"i{i}_{j} {sign(first)}= {u[f'i{i}']} * {v[f'r{j}']}"

    def _stored(self, places: Sequence[tuple[int, int]]) -> Iterator[str]:
        p, lanes = self.layout, self.layout.sizes[self.layout.lane]
        first = "" if p.blocks == (1, 1) else f" + (i * {self.n} + j) * {lanes}"
        yield f"at = (split * {p.size(p.batch)} + batch) * {self.m * self.n * lanes} + lane{first}"
        for i, j in places:
            mask = " & ".join(dict.fromkeys([self._inside("i", i), self._inside("j", j)]))
            for k, part in enumerate("ri"[:p.parts]):
                yield f"tl.store(z{k} + at + {(i * self.n + j) * lanes}, {part}{i}_{j}, " \
                      f"mask={mask})"
                if p.has_half and i < j:
                    yield f"tl.store(z{k} + at + {(j * self.n + i) * lanes}, " \
                          f"{'-' if part == 'i' else ''}{part}{i}_{j}, mask={mask})"

    def _at(self, side: str, k: int, names: Names, free: Names) -> str:
        """The place of a row or a column of a block in an operand."""
        if self.layout.blocks != (1, 1):
            return f"({side} + {k}) * {_steps(names, self.layout.sizes)[free[0]]}"
        return str(offset_of(k, names, free, self.layout.sizes))

    def _inside(self, side: str, k: int) -> str:
        """The mask of a row or a column of a block: the last one may have fewer."""
        which = "ij".index(side)
        size, block = (self.m, self.n)[which], self.layout.block[which]
        return f"inside & ({side} + {k} < {size})" if size % block and k >= size % block \
            else "inside"

def sign(factor: int) -> str:
    return "+" if factor > 0 else "-"


def _steps(names: Names, sizes: Sequence[int]) -> dict[int, int]:
    """How far each axis moves in an operand."""
    steps = strides_of(tuple([sizes[n] for n in names]))
    return {n: int(step) for n, step in zip(names, steps, strict=True)}


def place_of(names: Names, sizes: Sequence[int], variables: Mapping[str, Names]) -> str:
    """Where in an operand that is which variables count, each the places of some axes."""
    steps, terms = _steps(names, sizes), []
    for variable, axes in variables.items():
        below = 1
        for n in reversed(axes):
            index = variable if below == 1 else f"{variable} // {below}"
            if n in steps and sizes[n] > 1:
                index = index if n == axes[0] else f"({index}) % {sizes[n]}"
                terms.append(f"({index}) * {steps[n]}")
            below *= sizes[n]
    return " + ".join(terms) or "0"


def offset_of(k: int, names: Names, free: Names, sizes: Sequence[int]) -> int:
    """How far place k of some axes is in an operand."""
    steps, total = _steps(names, sizes), 0
    for n in reversed(free):
        k, index = divmod(k, sizes[n])
        total += index * steps[n]
    return total


RULES: Final[dict[Primitive, CallRule]] = {interleaved_product_p: InterleavedCall}
