"""Random networks at real sizes: programs as plain source, the same for the same seed.

How a program is compiled depends on its sizes, and on which operations are neighbours. A network
has one to six layers over up to millions of elements, a loss, and the gradient of it, or the norms
of the gradients of single samples.
"""

from __future__ import annotations

import linecache
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

import functrans as ft
from tests.laws.network_families import (
    ORDINARY_LAYERS,
    draw_ordinary_loss,
    draw_ordinary_shape,
)
from tests.laws.network_layers import LAYERS, Draft, draw_loss, draw_size

__all__ = ["ORDINARY", "Kind", "Network", "draw_network", "networks"]

HEAD = """\
import numpy as np

import functrans as ft
from functrans import lax, nn
from functrans import numpy as n
"""
MOST_ELEMENTS = 1 << 22
Shares = Mapping[str, float]


def draw_shape(rng: np.random.Generator, per_sample: bool, most_elements: int) -> list[int]:
    """The shape of an x of rows, or of rows of rows."""
    rank = 3 if rng.random() < 0.4 else 2
    if rank == 2:
        shape = [draw_size(rng, 1, 256 if per_sample else 8192), draw_size(rng, 3, 1000)]
    else:
        shape = [draw_size(rng, 1, 128), draw_size(rng, 2, 256), draw_size(rng, 3, 512)]
    while np.prod(shape) > most_elements:
        shape[int(np.argmax(shape))] //= 2
    return shape


@dataclass(frozen=True)
class Kind:
    """What networks are drawn from: shapes of x, layers, losses, dtypes and programs."""

    dtypes: Shares
    programs: Shares
    shape: Callable[[np.random.Generator, bool, int], list[int]] = draw_shape
    layers: Mapping[str, tuple[float, Callable[[Draft], bool | None]]] = field(
        default_factory=lambda: LAYERS)
    loss: Callable[[Draft], str] = draw_loss
    most_elements: int = MOST_ELEMENTS
    most_layers: int = 6
    per_sample: Shares = field(default_factory=lambda: {
        "ft.per_sample.norms(loss, in_axes=AXES)": 1.0})
    share_per_sample: float = 0.2


ANY: Final = Kind(
    {"float32": 0.7, "bfloat16": 0.2, "float64": 0.1},
    {"ft.value_and_grad(loss, (0, 1))": 0.5, "ft.value_and_grad(loss)": 0.3,
     "ft.jit(ft.value_and_grad(loss, (0, 1)))": 0.1, "loss": 0.1})
"""Layers in any order at sizes that a CPU computes as well."""

ORDINARY: Final = Kind(
    {"float32": 0.5, "bfloat16": 0.35, "float16": 0.15},
    {"ft.value_and_grad(loss, (0, 1))": 0.1, "ft.value_and_grad(loss)": 0.35, "loss": 0.1,
     "adam_step": 0.15, "mixed": 0.12, "forward_mode": 0.09, "hessian_product": 0.09},
    draw_ordinary_shape, ORDINARY_LAYERS, draw_ordinary_loss, 1 << 29, 8,
    {"ft.per_sample.norms(loss, in_axes=AXES)": 0.3, "ft.vmap(ft.grad(loss), (None, *AXES))": 0.4,
     "clipped": 0.3}, 0.12)
"""Networks as users have them, at the sizes of a GPU: to be compiled, not to be run here."""

WRAPPERS: Final = {
    "adam_step": """
def adam_step(params, *rest):
    value, slope = ft.value_and_grad(loss)(params, *rest)
    moments = [(0.9 * p + 0.1 * g, 0.999 * p * p + 0.001 * g * g) for p, g in zip(params, slope)]
    return value, [(p - 1e-3 * m / (n.sqrt(v) + 1e-8), m, v)
                   for p, (m, v) in zip(params, moments)]
""",
    "mixed": """
def mixed(params, x, *rest):
    def half(params):
        halves = [p.astype(n.bfloat16) for p in params]
        return loss(halves, x.astype(n.bfloat16), *rest).astype(n.float32)
    return ft.value_and_grad(half)(list(params))
""",
    "forward_mode": """
def forward_mode(params, *rest):
    return ft.jvp(lambda params: loss(params, *rest), (params,), (params,))
""",
    "hessian_product": """
def hessian_product(params, *rest):
    return ft.jvp(ft.grad(lambda params: loss(params, *rest)), (params,), (params,))[1]
""",
    "clipped": """
def clipped(params, *rest):
    grads = ft.vmap(ft.grad(loss), (None, *AXES))(params, *rest)
    squares = sum(n.sum(g * g, tuple(range(1, g.ndim))) for g in grads)
    scale = n.minimum(1, lax.rsqrt(squares + 1e-12))
    return [n.tensordot(scale, g, 1) for g in grads]
""",
}
"""Programs that take more than a line, by their names."""


@dataclass(frozen=True)
class Network:
    """A program of a network: `source` is a script of its own, which prints the results."""

    name: str
    source: str
    dtype: str
    params: tuple[tuple[int, ...], ...]
    inputs: tuple[tuple[tuple[int, ...], str], ...]
    work: float
    """About how many multiply-adds and other operations one run takes."""

    def _run(self) -> dict[str, Any]:
        """The names that the source defines; errors show its lines."""
        file = f"<network {self.name}>"
        linecache.cache[file] = (len(self.source), None, self.source.splitlines(True), file)
        names: dict[str, Any] = {"__name__": "network"}
        exec(compile(self.source, file, "exec"), names)
        return names

    @property
    def program(self) -> Any:
        """The function of `arguments()`."""
        return self._run()["program"]

    def arguments(self, dtype: str | None = None) -> tuple[Any, ...]:
        """NumPy arrays, the same at each call: parameters, the input, indices and masks."""
        return self._run()["arguments"](dtype or self.dtype)  # type: ignore[no-any-return]

    def types(self) -> tuple[Any, ...]:
        """The shapes and dtypes of the arguments, for compilers."""
        def typed(shape: tuple[int, ...], dtype: str) -> Any:
            return ft.ShapeDtypeStruct(shape, dtype)

        return (tuple([typed(s, self.dtype) for s in self.params]),
                *[typed(s, d or self.dtype) for s, d in self.inputs])

    def __str__(self) -> str:
        return self.name


def drawn(rng: np.random.Generator, shares: Shares) -> str:
    return list(shares)[rng.choice(len(shares), p=tuple(shares.values()))]


def draw_network(seed: int, most_elements: int | None = None, kind: Kind = ANY) -> Network:
    """The network of a seed; no value in it has more elements than `most_elements`."""
    rng = np.random.default_rng(seed)
    most = kind.most_elements if most_elements is None else most_elements
    per_sample = bool(rng.random() < kind.share_per_sample)
    dtype = drawn(rng, kind.dtypes)
    shape = kind.shape(rng, per_sample, most)
    d = Draft(rng, tuple(shape), per_sample, most)
    layers = list(kind.layers.values())
    chances = np.array([w for w, _ in layers])
    count, wanted = 0, int(rng.integers(1, kind.most_layers + 1))
    while count < wanted:
        count += layers[rng.choice(len(layers), p=chances / chances.sum())][1](d) is not False
    if not d.params:
        LAYERS["dense"][1](d)
    result = kind.loss(d)
    return Network(f"{seed}-{dtype}-{'x'.join(map(str, shape))}",
                   _source(d, seed, dtype, result, kind), dtype,
                   tuple([shape for _, shape, _ in d.params]),
                   ((tuple(shape), ""), *[(s, "int32" if high else "bool")
                                          for _, s, high, _ in d.extras]),
                   3 * d.work)


def networks(seeds: range, most_elements: int | None = None,
             most_work: float = np.inf) -> list[Network]:
    """The networks of some seeds that take no more operations than `most_work`."""
    drawn = [draw_network(seed, most_elements) for seed in seeds]
    return [network for network in drawn if network.work <= most_work]


def _source(d: Draft, seed: int, dtype: str, result: str, kind: Kind) -> str:
    names = [name for name, _, _ in d.params]
    extras = [name for name, _, _, _ in d.extras]
    arguments = ", ".join(["params", "x", *extras])
    made = [f"    {name} = draw.standard_normal({shape}) * {scale:.4g}"
            for name, shape, scale in d.params]
    made += [f"    {name} = draw.integers(0, {high}, {shape}).astype(np.int32)" if high else
             f"    {name} = draw.random({shape}) < 0.6" for name, shape, high, _ in d.extras]
    cast = " ".join([f"{name}.astype(dtype)," for name in names])
    given = ", ".join([f"({cast})", "x.astype(dtype)", *extras])
    program = drawn(d.rng, kind.per_sample if d.per_sample else kind.programs)
    if d.per_sample:
        mapped = ["0", *["0" if by_row else "None" for _, _, _, by_row in d.extras]]
        axes = f"({', '.join(mapped)},)"
        program = program.replace("AXES", axes)
        wrapped = WRAPPERS.get(program, "").replace("AXES", axes)
    else:
        wrapped = WRAPPERS.get(program, "")
    lines = "\n".join(made)
    body = "\n".join([f"    {line}" for line in d.lines])
    unpack = f"    ({', '.join(names)},) = params\n"
    return f"""{HEAD}

def loss({arguments}):
{unpack}{body}
    return {result}


def arguments(dtype="{dtype}"):
    draw = np.random.default_rng({seed})
    x = draw.standard_normal({tuple(d.first)})
{lines}
    return {given}

{wrapped}
program = {program}

if __name__ == "__main__":
    print(ft.jit(program)(*arguments()))
"""
