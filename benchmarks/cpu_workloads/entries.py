"""How a workload is written down: a function that adds a program for each library to its row.

    @workload("softmax of rows, 4096^2", Share(0.7), gigabytes(2 * 4 * 4096**2))
    def softmax(add):
        x = normal(4096, 4096)
        add.traced(lambda lib: lambda x: lib.nn.softmax(x, axis=-1), x)
        add.torch(lambda x: add.lib.torch.softmax(x, -1), x)

The arrays of a row are made when its turn comes, and freed after it.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import copy_limit
import ml_dtypes
import numpy as np
from bounds import SUBJECT, AtMost, Bound, Share
from harness import Case, Timing, optional_module

import functrans as ft

JAX_MODULES = ("lax", "nn", "random", "scipy.special", "ops", "tree")
Make = Callable[[ModuleType], Callable[..., Any]]
Restore = Callable[..., Any] | None
Scope = Callable[[], contextlib.AbstractContextManager[Any]]


@dataclass(frozen=True)
class Work:
    """How much a program has to do, and the unit that its rate is shown in."""

    unit: str = ""
    amount: float = 0.0


def gigabytes(count: float) -> Work:
    """Bytes that are read and written once."""
    return Work("GB/s", count)


def gigaflops(count: float) -> Work:
    """Floating-point operations."""
    return Work("GFLOP/s", count)


@dataclass(frozen=True)
class Workload:
    """A row that is not made yet."""

    title: str
    bound: Bound
    work: Work
    tolerance: float
    fill: Callable[[Entries], None]

    def case(self, peers: Peers) -> Case:
        """The row with the programs of `peers`."""
        add = Entries(peers)
        self.fill(add)
        if isinstance(self.bound, Share):
            call = copy_limit.limits()[self.bound.limit]
            add.timings[self.bound.limit] = Timing("call()", {"call": call})
        return Case(self.title, add.timings, self.bound, unit=self.work.unit,
                    amount=self.work.amount, tolerance=self.tolerance,
                    reference=add.reference)  # fmt: skip


def workload(
    title: str, bound: Bound | float, work: Work | None = None, tolerance: float = 1e-4
) -> Callable[[Callable[[Entries], None]], Workload]:
    """Make a Workload of the function that fills its row; a number is a bound in seconds."""
    reach = bound if isinstance(bound, Bound) else AtMost(bound)
    return lambda fill: Workload(title, reach, work or Work(), tolerance, fill)


def workloads_of(module: ModuleType) -> Iterator[Workload]:
    """The workloads of a module, in the order of its source."""
    return (value for value in vars(module).values() if isinstance(value, Workload))


@dataclass(frozen=True)
class Peers:
    """The libraries to compare with; those that are None are left out."""

    jax: ModuleType | None = None
    torch: ModuleType | None = None
    numpy: bool = False
    compile: bool = False

    @classmethod
    def installed(cls, compile: bool = False) -> Peers:
        """All that can be imported; `compile` adds torch.compile."""
        jax, torch = optional_module("jax"), optional_module("torch")
        if jax is not None:
            for name in JAX_MODULES:
                importlib.import_module(f"jax.{name}")
        return cls(jax, torch, True, compile)


def normal(*shape: int, seed: int = 0, dtype: Any = np.float32, scale: float = 1.0) -> np.ndarray:
    """Normally distributed numbers."""
    values = np.random.default_rng(seed).standard_normal(shape, np.float32)
    return (values if scale == 1.0 else values * np.float32(scale)).astype(dtype, copy=False)


@dataclass
class Entries:
    """Takes the programs of one row. Arguments are NumPy arrays, in lists and tuples.

    `reference`, if set, gives the results that all others are compared with.
    """

    lib: Peers
    timings: dict[str, Timing] = field(default_factory=dict)
    reference: Callable[[], list[np.ndarray]] | None = None

    def libraries(self) -> dict[str, ModuleType]:
        """The libraries with JAX's names."""
        return {SUBJECT: ft} if self.lib.jax is None else {SUBJECT: ft, "jax": self.lib.jax}

    def traced(self, make: Make, *arguments: Any, wait: str = "") -> None:
        """`jit(make(library))` in functrans and JAX, called with `arguments`.

        `wait` is how to wait for the result, after the call; without it, for all leaves of it.
        """
        self.traced_with(
            make, lambda lib: lib.tree.map(lib.numpy.asarray, arguments), wait=wait
        )  # fmt: skip

    def traced_with(self, make: Make, arguments: Callable, *, wait: str = "") -> None:
        """The same where each library makes its own arguments."""
        for name, library in self.libraries().items():
            self.jitted(name, library, make(library), arguments(library), wait=wait)

    def jitted(
        self, name: str, library: ModuleType, function: Callable, values: Any, *,
        scope: Scope = contextlib.nullcontext, wait: str = "", check: bool = True
    ) -> None:  # fmt: skip
        """A column of `function`, jitted by a library, compiled and called inside `scope()`."""
        jitted, leaves = library.jit(function), library.tree.leaves

        def scoped(*values):
            with scope():
                return jitted(*values)

        run = jitted if scope is contextlib.nullcontext else scoped
        outcome = lambda: [np.asarray(leaf) for leaf in leaves(run(*values))]
        self.timings[name] = timing(
            run, values, outcome if check else None, wait, library.block_until_ready
        )

    def numpy(self, function: Callable, *arguments: Any, check: bool = True) -> None:
        """NumPy, where it has the function."""
        if self.lib.numpy:
            outcome = lambda: [np.asarray(function(*arguments))]
            self.timings["numpy"] = timing(function, arguments, outcome if check else None)

    def torch(
        self, function: Callable, *arguments: Any, check: bool = True, restore: Restore = None
    ) -> None:
        """PyTorch's eager program, and compiled if asked for."""
        if self.lib.torch is None:
            return
        values = self.tensors(arguments)
        for name, run in self.torch_variants(function):
            self.torch_column(name, run, values, check, restore)

    def torch_column(
        self, name: str, run: Callable, values: Any, check: bool = True, restore: Restore = None
    ) -> None:
        """A column of `run`, on tensors."""
        outcome = functools.partial(self.torch_outcome, run, values, restore)
        self.timings[name] = timing(run, values, outcome if check else None)

    def torch_gradient(
        self, loss: Callable, params: Any, *arguments: Any, restore: Restore = None
    ) -> None:
        """Gradients of a scalar `loss(params, *arguments)` by autograd, as users write it."""
        if self.lib.torch is None:
            return
        torch = self.lib.torch
        flatten = torch.utils._pytree.tree_leaves
        leaves_of = self.tensors(params, requires_grad=True)
        values = (leaves_of, *self.tensors(arguments))
        for name, forward in self.torch_variants(loss):

            def run(params, *arguments, forward=forward):
                return torch.autograd.grad(forward(params, *arguments), flatten(params))

            self.torch_column(name, run, values, restore=restore)

    def torch_pullback(
        self, function: Callable, cotangent: Any, *arguments: Any, restore: Restore = None
    ) -> None:
        """`function(*arguments)` and the gradients of its arguments for a cotangent."""
        if self.lib.torch is None:
            return
        torch = self.lib.torch
        values = (self.tensors(cotangent), *self.tensors(arguments, requires_grad=True))
        for name, forward in self.torch_variants(function):

            def run(cotangent, *arguments, forward=forward):
                out = forward(*arguments)
                return out, *torch.autograd.grad(out, arguments, cotangent)

            self.torch_column(name, run, values, restore=restore)

    def torch_variants(self, function: Callable) -> Iterator[tuple[str, Callable]]:
        yield "torch", function
        if self.lib.compile:
            yield "torch.compile", self.lib.torch.compile(function)

    def tensors(self, tree: Any, requires_grad: bool = False) -> Any:
        """The arrays of lists and tuples as tensors; bfloat16 by its bits."""
        if isinstance(tree, list | tuple):
            return type(tree)(self.tensors(child, requires_grad) for child in tree)
        torch = self.lib.torch
        if tree.dtype == ml_dtypes.bfloat16:
            return torch.from_numpy(tree.view(np.int16)).view(torch.bfloat16)
        found = torch.from_numpy(np.asarray(tree, order="C"))
        return found.requires_grad_() if requires_grad and found.is_floating_point() else found

    def torch_outcome(
        self, run: Callable, values: Any, restore: Restore
    ) -> list[np.ndarray]:
        """The tensors of a result as NumPy arrays; `restore` puts them into JAX's layout."""
        torch = self.lib.torch
        found = [leaf.detach() for leaf in torch.utils._pytree.tree_leaves(run(*values))]
        found = found if restore is None else restore(*found)
        return [(x.float() if x.dtype == torch.bfloat16 else x).numpy() for x in found]


def timing(run: Callable, values: Any, outcome: Callable | None, wait: str = "",
           wait_all: Callable | None = None) -> Timing:  # fmt: skip
    """`run(*values)`, followed by `wait`, or inside `wait_all`."""
    names = {f"a{index}": value for index, value in enumerate(values)}
    call = f"run({', '.join(names)})"
    if wait:
        return Timing(call + wait, {"run": run, **names}, outcome)
    if wait_all is None:
        return Timing(call, {"run": run, **names}, outcome)
    return Timing(f"wait({call})", {"run": run, "wait": wait_all, **names}, outcome)

