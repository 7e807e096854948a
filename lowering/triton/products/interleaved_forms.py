"""Bilinear forms of interleaved matrices: a lane keeps its matrix, and reads pairs of vectors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from functrans.core.jaxpr import Equation
from functrans.core.primitive import Primitive
from functrans.lowering.loops.tensor import Tensor
from functrans.lowering.passes.interleaved_forms import InterleavedForms, interleaved_form_p
from functrans.lowering.passes.interleaved_products import WARP
from functrans.lowering.rules.graph import CallRule, results_of
from functrans.lowering.triton.kernels.axis_calls import AxisCall, module_text
from functrans.lowering.triton.kernels.kernel_source import MEMORY, Launches
from functrans.lowering.triton.products.interleaved import offset_of, place_of, sign
from functrans.lowering.triton.templates.kernel import TemplateKernel, pointer

__all__ = ["RULES", "InterleavedFormsCall"]


class InterleavedFormsCall(AxisCall):
    """`interleaved_form`: the parts of x, of y and of matrices to forms."""

    name = "interleaved forms"

    def __init__(self, eqn: Equation, xs: Sequence[Tensor]) -> None:
        super().__init__(list(dict.fromkeys(xs)), results_of(eqn), eqn.source)
        self.forms: InterleavedForms = eqn.params["forms"]
        self.xs = list(xs)

    def launches(self) -> Launches:
        names = {t: f"x{k}" for k, t in enumerate(self.operands)}
        places: dict[str, tuple[Any, int]] = {name: (t, 0) for t, name in names.items()}
        places |= {f"z{k}": (z, 0) for k, z in enumerate(self.results)}
        arguments = {name: pointer(name, MEMORY[t.dtype]) for name, (t, _) in places.items()}
        text = f"@triton.jit\ndef forms({', '.join(arguments)}):\n" + "".join(
            f"    {line}\n" for line in _lines(self.forms, [names[x] for x in self.xs]))
        kernel = TemplateKernel("forms", module_text(text), tuple(arguments.values()),
                                (self.forms.programs, 1, 1), 1, 1)
        return Launches([kernel], places)


def _lines(p: InterleavedForms, xs: Sequence[str]) -> Iterator[str]:
    parts, lanes = "ri"[:p.parts], p.sizes[p.lane]
    x, y, g = (xs[k * p.parts:(k + 1) * p.parts] for k in range(3))
    tiles, m, n = -(-lanes // WARP), p.size(p.rows), p.size(p.columns)
    yield "pid = tl.program_id(0)"
    yield f"lane = pid % {tiles} * {WARP} + tl.arange(0, {WARP})"
    yield f"inside = lane < {lanes}"
    yield f"split = pid // {tiles} % {p.splits}"
    yield f"batch = pid // {tiles * p.splits}"
    for part, at in zip(parts, g, strict=True):
        for k in range(m * n):
            yield f"g{part}{k // n}_{k % n} = tl.load({at} + batch * {m * n * lanes} + lane + " \
                  f"{k * lanes}, mask=inside, other=0)"
    yield f"for t in range(split, {p.size(p.pairs)}, {p.splits}):"
    for line in _pair(p, m, n, x, y):
        yield f"    {line}"


def _pair(p: InterleavedForms, m: int, n: int, x: Sequence[str], y: Sequence[str]
          ) -> Iterator[str]:
    """The form of a pair of vectors."""
    variables = {"batch": p.batch, "t": p.pairs}
    known: dict[str, str] = {}
    u: dict[str, str] = {}
    v: dict[str, str] = {}
    for found, side, pointers, names, free, count in ((u, "u", x, p.x, p.rows, m),
                                                      (v, "v", y, p.y, p.columns, n)):
        for k in range(count):
            for part, at in zip("ri", pointers, strict=False):
                where = f"{at} + {place_of(names, p.sizes, variables)} + lane + " \
                        f"{offset_of(k, names, free, p.sizes)}"
                if where not in known:
                    known[where] = f"{side}{part}{k}"
                    yield f"{known[where]} = tl.load({where}, mask=inside, other=0)"
                found[f"{part}{k}"] = known[where]
    of_x, of_y, of_g = (-1 if c else 1 for c in p.conjugates)
    kept = "ri"[:1 if p.is_real else p.parts]
    for part in kept:
        yield f"s{part} = tl.zeros(({WARP},), tl.float32)"
    for j in range(n):
        for i in range(m):
            plus = "+=" if i else "="
            yield f"hr {plus} {u[f'r{i}']} * gr{i}_{j}"
            if p.is_complex:
                yield f"hr {sign(-of_x * of_g)}= {u[f'i{i}']} * gi{i}_{j}"
                first = "" if i or of_g > 0 else "-"
                yield f"hi {plus if of_g > 0 or not i else '-='} {first}{u[f'r{i}']} * gi{i}_{j}"
                yield f"hi {sign(of_x)}= {u[f'i{i}']} * gr{i}_{j}"
        yield f"sr += hr * {v[f'r{j}']}"
        if p.is_complex:
            yield f"sr {sign(-of_y)}= hi * {v[f'i{j}']}"
            if not p.is_real:
                yield f"si {sign(of_y)}= hr * {v[f'i{j}']}"
                yield f"si += hi * {v[f'r{j}']}"
    names = (*p.batch, *p.pairs, p.lane)
    for k, part in enumerate(kept):
        yield f"tl.store(z{k} + {place_of(names, p.sizes, variables)} + lane, s{part}, mask=inside)"


RULES: Final[dict[Primitive, CallRule]] = {interleaved_form_p: InterleavedFormsCall}
