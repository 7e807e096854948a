"""Random networks at real sizes: programs as plain source, the same for the same seed.

How a program is compiled depends on its sizes, and on which operations are neighbours. A network
has one to six layers over up to millions of elements, a loss, and the gradient of it, or the norms
of the gradients of single samples.
"""

from __future__ import annotations

import linecache
from dataclasses import dataclass
from typing import Any

import numpy as np

import functrans as ft
from tests.laws.network_layers import LAYERS, Draft, draw_loss, draw_size

__all__ = ["Network", "draw_network", "networks"]

HEAD = """\
import numpy as np

import functrans as ft
from functrans import lax, nn
from functrans import numpy as n
"""
DTYPES, SHARES = ("float32", "bfloat16", "float64"), (0.7, 0.2, 0.1)
MOST_ELEMENTS = 1 << 22


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


def draw_network(seed: int, most_elements: int = MOST_ELEMENTS) -> Network:
    """The network of a seed; no value in it has more elements than `most_elements`."""
    rng = np.random.default_rng(seed)
    per_sample = bool(rng.random() < 0.2)
    dtype = DTYPES[rng.choice(3, p=SHARES)]
    rank = 3 if rng.random() < 0.4 else 2
    if rank == 2:
        shape = [draw_size(rng, 1, 256 if per_sample else 8192), draw_size(rng, 3, 1000)]
    else:
        shape = [draw_size(rng, 1, 128), draw_size(rng, 2, 256), draw_size(rng, 3, 512)]
    while np.prod(shape) > most_elements:
        shape[int(np.argmax(shape))] //= 2
    d = Draft(rng, tuple(shape), per_sample, most_elements)
    names, weights = zip(*LAYERS.items())
    chances = np.array([w for w, _ in weights])
    layers = 0
    wanted = int(rng.integers(1, 7))
    while layers < wanted:
        layer = weights[rng.choice(len(names), p=chances / chances.sum())][1]
        layers += layer(d) is not False
    if not d.params:
        LAYERS["dense"][1](d)
    result = draw_loss(d)
    return Network(f"{seed}-{dtype}-{'x'.join(map(str, shape))}",
                   _source(d, seed, dtype, result), dtype,
                   tuple([shape for _, shape, _ in d.params]),
                   ((tuple(shape), ""), *[(s, "int32" if high else "bool")
                                          for _, s, high, _ in d.extras]),
                   3 * d.work)


def networks(seeds: range, most_elements: int = MOST_ELEMENTS,
             most_work: float = np.inf) -> list[Network]:
    """The networks of some seeds that take no more operations than `most_work`."""
    drawn = [draw_network(seed, most_elements) for seed in seeds]
    return [network for network in drawn if network.work <= most_work]


def _source(d: Draft, seed: int, dtype: str, result: str) -> str:
    names = [name for name, _, _ in d.params]
    extras = [name for name, _, _, _ in d.extras]
    arguments = ", ".join(["params", "x", *extras])
    made = [f"    {name} = draw.standard_normal({shape}) * {scale:.4g}"
            for name, shape, scale in d.params]
    made += [f"    {name} = draw.integers(0, {high}, {shape}).astype(np.int32)" if high else
             f"    {name} = draw.random({shape}) < 0.6" for name, shape, high, _ in d.extras]
    cast = " ".join([f"{name}.astype(dtype)," for name in names])
    given = ", ".join([f"({cast})", "x.astype(dtype)", *extras])
    if d.per_sample:
        mapped = ["0", *["0" if by_row else "None" for _, _, _, by_row in d.extras]]
        program = f"ft.per_sample.norms(loss, in_axes=({', '.join(mapped)},))"
    else:
        program = ("ft.value_and_grad(loss, (0, 1))", "ft.value_and_grad(loss)",
                   "ft.jit(ft.value_and_grad(loss, (0, 1)))", "loss")[
                       d.rng.choice(4, p=(0.5, 0.3, 0.1, 0.1))]
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


program = {program}

if __name__ == "__main__":
    print(ft.jit(program)(*arguments()))
"""
