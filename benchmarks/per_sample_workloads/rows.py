"""The rows of per_sample.py: a quantity of a model, timed; and what memory it takes."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np
from bounds import GRADIENT, MATERIALISED, SUBJECT, Best, Bound, Each, Peer
from cpu_workloads.entries import Entries, Peers, Work, Workload
from cpu_workloads.models import (
    cnn_arrays,
    cnn_loss,
    mlp_arrays,
    mlp_loss,
    restore_cnn,
    torch_cnn_arrays,
    torch_cnn_loss,
    torch_mlp_loss,
)
from harness import Row, summarise

import functrans as ft
from per_sample_workloads import by_hand, ghost, models, quantities

MEMORY = ", peak memory"
MEMORY_BOUND = Peer(GRADIENT, 2)
OFF = functools.partial(ft.config.algebra, "off")


@dataclass(frozen=True)
class Model:
    """A loss and its arrays, in JAX's and in torch's layout; `restore` undoes torch's.

    `max_norm` is what gradients are clipped to: between the norms of the samples, so that clipped
    and unclipped ones are compared, but for the MLP, whose norms are all above the customary 1.
    """

    name: str
    title: str
    loss: Callable
    arrays: Callable
    torch_loss: Callable
    torch_arrays: Callable
    restore: Callable | None = None
    max_norm: float = 1.0


MLP = Model("MLP", "MLP 784-256-128-10, batch 256", mlp_loss, mlp_arrays,
            torch_mlp_loss, mlp_arrays)  # fmt: skip
OUTPUTS = Model("MLP", "MLP 784-256-128-10, batch 256", models.output_sum, models.output_arrays,
                models.torch_output_sum, models.output_arrays)  # fmt: skip
CNN = Model("CNN", "CNN 28x28, batch 64", cnn_loss, cnn_arrays,
            torch_cnn_loss, torch_cnn_arrays, restore_cnn, max_norm=39.0)  # fmt: skip
LANGUAGE = Model("transformer", "2-layer transformer d128 S64 B16", models.language_loss,
                 models.language_arrays, models.torch_language_loss,
                 models.language_arrays, max_norm=4.5)  # fmt: skip
LSTM = Model("LSTM", "LSTM 32 steps h128, batch 64", models.lstm_loss, models.lstm_arrays,
             models.torch_lstm_loss, models.lstm_arrays, max_norm=2.7)  # fmt: skip
BAG = Model("embedding bag", "embedding bag 5000x64, batch 128", models.bag_loss,
            models.bag_arrays, models.torch_bag_loss, models.bag_arrays, max_norm=3.0)  # fmt: skip


@dataclass(frozen=True)
class Task:
    """A quantity of a model, and what its time must keep."""

    model: Model
    name: str
    quantity: Callable
    bound: Bound

    @property
    def title(self) -> str:
        return f"{self.model.title}: {self.name}"

    def make(self, lib: ModuleType) -> Callable:
        """The program, in functrans or JAX."""
        return quantities.of_gradients(self.quantity, self.model.loss(lib), lib)

    def by_hand(self, lib: ModuleType) -> Callable | None:
        """The program that avoids per-sample gradients in its source, where there is one."""
        return by_hand.program(self.model.name, self.name, self.model.max_norm, lib)

    def columns(self) -> dict[str, tuple[Callable, Callable]]:
        """What functrans computes by itself, and the scope that it does so in."""
        return {
            GRADIENT: (ft.grad(self.model.loss(ft)), ft.config.scope),
            MATERIALISED: (self.make(ft), OFF),
        }

    def workload(self) -> Workload:
        """The timed row."""
        return Workload(self.title, self.bound, Work(), 1e-4, self.fill)

    def fill(self, add: Entries) -> None:
        """The programs of the timed row."""
        arrays = self.model.arrays()
        add.reference = functools.partial(double, self.make, arrays, add.lib.jax)
        add.traced(self.make, *arrays)
        values = ft.tree.map(ft.numpy.asarray, arrays)
        for name, (function, scope) in self.columns().items():
            add.jitted(name, ft, function, values, scope=scope, check=name != GRADIENT)
        if (jax := add.lib.jax) and (hand := self.by_hand(jax)):
            add.jitted("jax by hand", jax, hand, jax.tree.map(jax.numpy.asarray, arrays))
        if torch := add.lib.torch:
            self.fill_torch(add, torch)

    def fill_torch(self, add: Entries, torch: ModuleType) -> None:
        """torch.func, and ghost clipping by hooks."""
        params, *batch = self.model.torch_arrays()
        # gradients come back in torch's layout; numbers of samples do not
        restore = self.model.restore if self.name in ("clipped mean", "variance") else None
        program = quantities.of_torch_gradients(self.quantity, self.model.torch_loss(torch), torch)
        add.torch(program, params, *batch, restore=restore)
        made = ghost.programs(torch, self.model.name, add.tensors(params), self.model.max_norm)
        if run := made.get(self.name):
            add.torch_column("ghost clipping", run, add.tensors(batch), restore=restore)

    def memory(self, peers: Peers, kept: dict[str, float]) -> Row:
        """The row of arguments, results and temporaries, in megabytes, of what reports them."""
        arrays = self.model.arrays()
        peaks = {SUBJECT: own_peak(self.make(ft), arrays)}
        for name, (function, scope) in self.columns().items():
            with scope():
                peaks[name] = own_peak(function, arrays)
        if jax := peers.jax:
            peaks["jax"] = jax_peak(jax, self.make(jax), arrays)
            if hand := self.by_hand(jax):
                peaks["jax by hand"] = jax_peak(jax, hand, arrays)
        samples = {name: [peak / 1e6] for name, peak in peaks.items()}
        return summarise(self.title + MEMORY, samples, MEMORY_BOUND, unit="MB", kept=kept)


def own_peak(function: Callable, arrays: Any) -> int:
    values = ft.tree.map(ft.numpy.asarray, arrays)
    return ft.jit(function).lower(*values).compile().memory_analysis()["peak"]


def jax_peak(jax: ModuleType, function: Callable, arrays: Any) -> int:
    found = jax.jit(function).lower(*arrays).compile().memory_analysis()
    return (found.argument_size_in_bytes + found.output_size_in_bytes
            + found.temp_size_in_bytes)  # fmt: skip


def double(make: Callable, arrays: Any, jax: ModuleType | None) -> list[np.ndarray]:
    """The results of the program in float64, by JAX or, without it, with all gradients formed."""
    lib, scope = (ft, OFF) if jax is None else (jax, jax.enable_x64)
    wide = ft.tree.map(lambda x: x.astype(np.float64) if x.dtype.kind == "f" else x, arrays)
    with scope():
        return [np.asarray(leaf) for leaf in lib.tree.leaves(lib.jit(make(lib))(*wide))]


def within(time: float) -> Bound:
    """`time` times the gradient of the batch, and no peer faster."""
    return Each((Peer(GRADIENT, time), Best()))


def norms(model: Model, bound: Bound) -> Task:
    return Task(model, "norms", quantities.norms, bound)


def clipped_mean(model: Model, bound: Bound) -> Task:
    return Task(model, "clipped mean", quantities.clipped_mean(model.max_norm), bound)


def variance(model: Model, bound: Bound) -> Task:
    return Task(model, "variance", quantities.variance, bound)


TASKS = [
    clipped_mean(MLP, within(1.5)),
    norms(MLP, within(1.2)),
    variance(MLP, within(1.5)),
    Task(OUTPUTS, "NTK", quantities.ntk, Peer(MATERIALISED, 0.1)),
    *(make(model, within(2)) for model in (CNN, LANGUAGE, LSTM) for make in (clipped_mean, norms)),
    *(make(BAG, within(2)) for make in (norms, clipped_mean, variance)),
]
