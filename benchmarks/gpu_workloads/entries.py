"""How a workload on a GPU is written down: as in cpu_workloads/entries.py, on its tensors.

    @workload("softmax of rows, 8192^2", Rate(2950, "GB/s"))
    def softmax(add):
        sets = add.sets(lambda: (add.normal(add.size(8192, 64), add.size(8192, 96)),))
        add.moves(2 * nbytes(sets[0]))
        add.traced(lambda lib: lambda x: lib.nn.softmax(x, axis=-1), sets)
        add.torch(lambda x: add.nn.softmax(x, -1), sets)

`sets` are argument lists: several, called in turn, where one would stay in the cache. The torch
program in float64 gives the results that all libraries are compared with.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from bounds import SUBJECT, AtMost, Bound
from cpu_workloads.entries import Make, Peers, Work

import functrans as ft
from gpu_workloads.arrays import leaves, to_library, to_tensor, tree_map

CACHE = 50 * 2**20
"""Bytes of the second cache of an H100."""
SMALL = 2**20
"""Arguments below this are those of latency rows, where a cache that is warm is the usual case."""
LIMIT, LATE_LIMIT = 45.0, 30.0
"""Seconds for functrans' first result, which compiles."""
Sets = list[tuple[Any, ...]]


@dataclass(frozen=True)
class Workload:
    """A row that is not made yet. `limit` is how many seconds functrans' first result may take."""

    title: str
    bound: Bound
    tolerance: float
    stray: float
    host: bool
    limit: float
    fill: Callable[[Entries], None]


def workload(
    title: str, bound: Bound | float, tolerance: float = 1e-3, *, stray: float = 0.0,
    host: bool = False, limit: float = 0.0,
) -> Callable[[Callable[[Entries], None]], Workload]:  # fmt: skip
    """Make a Workload of the function that fills its row; a number is a bound in seconds.

    `host`: functrans may have no kernels for it yet, so that it runs late, with less patience.
    """
    reach = bound if isinstance(bound, Bound) else AtMost(bound)
    limit = limit or (LATE_LIMIT if host else LIMIT)
    return lambda fill: Workload(title, reach, tolerance, stray, host, limit, fill)


def workloads_of(module: ModuleType) -> Iterator[Workload]:
    """The workloads of a module, in the order of its source."""
    return (value for value in vars(module).values() if isinstance(value, Workload))


def nbytes(tree: Any) -> int:
    """Bytes of all tensors of lists and tuples."""
    return sum(x.numel() * x.element_size() for x in leaves(tree))


@dataclass
class Column:
    """A library's program and its arguments; `wait` returns once a result is there."""

    run: Callable
    sets: Sets
    wait: Callable[[Any], Any]
    tensors: Callable[[Any], list[Any]] | None


@dataclass
class Entries:
    """Takes the programs of one row, whose sizes are small in a dry run."""

    torch_module: ModuleType
    lib: Peers
    device: str = "cuda"
    dry: bool = False
    columns: dict[str, Column] = field(default_factory=dict)
    reference: Callable[[], Any] | None = None
    work: Work = field(default_factory=Work)
    drawn: int = 0

    @property
    def nn(self) -> ModuleType:
        """torch.nn.functional."""
        return self.torch_module.nn.functional

    def size(self, full: int, dry: int) -> int:
        return dry if self.dry else full

    def moves(self, count: float) -> None:
        """The program reads and writes this many bytes."""
        self.work = Work("GB/s", count)

    def computes(self, count: float) -> None:
        """The program makes this many floating-point operations."""
        self.work = Work("TFLOP/s", count)

    def generator(self) -> Any:
        self.drawn += 1
        return self.torch_module.Generator(self.device).manual_seed(self.drawn)

    def normal(self, *shape: int, dtype: str = "float32", scale: float = 1.0) -> Any:
        """Normally distributed numbers; each call gives others."""
        torch = self.torch_module
        x = torch.randn(*shape, generator=self.generator(), device=self.device)
        return (x if scale == 1.0 else x.mul_(scale)).to(getattr(torch, dtype))

    def integers(self, most: int, *shape: int) -> Any:
        """Integers in [0, most), int32."""
        torch = self.torch_module
        return torch.randint(0, most, shape, generator=self.generator(), device=self.device,
                             dtype=torch.int32)  # fmt: skip

    def sets(self, draw: Callable[[], tuple[Any, ...]]) -> Sets:
        """Arguments, and more of them until all together are twice the cache."""
        first = draw()
        size = nbytes(first)
        count = -(-2 * CACHE // size) if SMALL <= size < CACHE else 1
        return [first, *(draw() for _ in range(min(count, 16) - 1))]

    def libraries(self) -> dict[str, ModuleType]:
        """The libraries with JAX's names; functrans last, so that it is what may not end."""
        jax = {} if self.lib.jax is None else {"jax": self.lib.jax}
        return jax | {SUBJECT: ft}

    def traced(self, make: Make, sets: Sets) -> None:
        """`jit(make(library))` in functrans and JAX."""
        for name, library in self.libraries().items():
            place = functools.partial(to_library, self.torch_module, library)
            self.jitted(name, library, make(library), [tree_map(place, x) for x in sets])

    def untraced(self, make: Make, sets: Sets) -> None:
        """`make(library)` in functrans and JAX, one operation after the other."""
        self.traced(make, sets)
        for name, library in self.libraries().items():
            self.columns[name].run = make(library)

    def jitted(self, name: str, library: ModuleType, function: Callable, sets: Sets) -> None:
        """A column of `function`, jitted by a library."""
        def tensors(out: Any) -> list[Any]:
            return [to_tensor(self.torch_module, x) for x in library.tree.leaves(out)]

        self.columns[name] = Column(
            library.jit(function), sets, library.block_until_ready, tensors
        )

    def torch(self, function: Callable, sets: Sets, check: bool = True) -> None:
        """PyTorch's eager program, compiled too if asked for; in float64 it is the reference."""
        self.expect(function, sets if check else None)
        for name, run in self.torch_variants(function):
            self.torch_column(name, run, sets, check)

    def torch_gradient(self, loss: Callable, sets: Sets, value: bool = True) -> None:
        """A scalar `loss(params, *rest)`, with `value`, and its gradients by autograd."""
        def gradient(forward: Callable) -> Callable:
            def run(params, *rest):
                found = forward(params, *rest)
                gradients = self.torch_module.autograd.grad(found, leaves(params))
                return (found, gradients) if value else gradients

            return run

        self.expect(gradient(loss), sets, 1)
        for name, forward in self.torch_variants(loss):
            self.torch_column(name, gradient(forward), self.tracked(sets, 1))

    def torch_pullback(self, function: Callable, sets: Sets) -> None:
        """The gradients of `function(*arguments)` for a cotangent, which is first in `sets`."""
        def pull(forward: Callable) -> Callable:
            def run(cotangent, *arguments):
                return self.torch_module.autograd.grad(forward(*arguments), arguments, cotangent)

            return run

        self.expect(pull(function), sets, None)
        for name, forward in self.torch_variants(function):
            self.torch_column(name, pull(forward), self.tracked(sets, None))

    def tracked(self, sets: Sets, count: int | None) -> Sets:
        """Gradients are taken of the first `count` arguments; None: of all but the first."""
        def track(x: Any) -> Any:
            return x.detach().requires_grad_()

        head = lambda x: (*tree_map(track, x[:count]), *x[count:])
        rest = lambda x: (x[0], *tree_map(track, x[1:]))
        return [(rest if count is None else head)(arguments) for arguments in sets]

    def expect(self, function: Callable, sets: Sets | None, tracked: int | None = 0) -> None:
        """Compare with `function` in float64, if nothing was said before."""
        if self.reference is None and sets is not None:
            def reference() -> list[Any]:
                torch = self.torch_module
                wide = lambda x: (x.double() if x.is_floating_point()
                                  else x.to(torch.complex128) if x.is_complex() else x)  # fmt: skip
                doubled = [tree_map(wide, sets[0])]
                if tracked != 0:
                    doubled = self.tracked(doubled, tracked)
                return leaves(function(*doubled[0]))

            self.reference = reference

    def torch_variants(self, function: Callable) -> Iterator[tuple[str, Callable]]:
        if self.lib.torch is not None:
            yield "torch", function
            if self.lib.compile:
                yield "torch.compile", self.torch_module.compile(function)

    def torch_column(self, name: str, run: Callable, sets: Sets, check: bool = True) -> None:
        cuda = self.torch_module.cuda
        wait = (lambda _: None) if self.device == "cpu" else (lambda _: cuda.synchronize())
        tensors = lambda out: [x.detach() for x in leaves(out)]
        self.columns[name] = Column(run, sets, wait, tensors if check else None)
