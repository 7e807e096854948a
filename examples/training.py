"""Adam, and the two training loops: mean gradients, and private ones."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import dpsgd
import numpy as np
from networks import Network
from tqdm import tqdm

import functrans as ft
import functrans.numpy as jnp

BATCH = 64
EVALUATE_EVERY = 20


class Data(NamedTuple):
    """Images [n, 8, 8] in [0, 1] and labels [n], for training and held out."""

    train_images: np.ndarray
    train_labels: np.ndarray
    test_images: np.ndarray
    test_labels: np.ndarray


class State(NamedTuple):
    """Parameters, Adam's moments of the gradient, and the number of steps taken."""

    params: Any
    mean: Any
    square: Any
    count: Any


@dataclass
class Run:
    """What one training left behind."""

    title: str
    network: Network
    private: bool
    params: Any = None
    steps: list[int] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)
    batch_losses: list[float] = field(default_factory=list)
    accuracy: float = 0.0
    norms: list[np.ndarray] = field(default_factory=list)


def make_loss(network: Network) -> Callable:
    """Cross-entropy of one image [8, 8] and its label, in nats."""

    def loss(params, image, label):
        return -ft.nn.log_softmax(network.apply(params, image))[label]

    return loss


def make_batch_loss(network: Network) -> Callable:
    """Mean cross-entropy of images [batch, 8, 8] and labels [batch]."""
    losses = ft.vmap(make_loss(network), in_axes=(None, 0, 0))
    return lambda params, images, labels: jnp.mean(losses(params, images, labels))


def initial_state(params) -> State:
    zeros = ft.tree.map(jnp.zeros_like, params)
    return State(params, zeros, zeros, jnp.asarray(0.0))


def adam(state: State, gradients, rate, decay1=0.9, decay2=0.99) -> State:
    """One step of Adam (Kingma and Ba 2015) at learning rate `rate`."""
    count = state.count + 1
    mean = ft.tree.map(lambda m, g: decay1 * m + (1 - decay1) * g, state.mean, gradients)
    square = ft.tree.map(lambda s, g: decay2 * s + (1 - decay2) * g * g, state.square, gradients)
    scale1, scale2 = 1 - decay1**count, 1 - decay2**count

    def move(param, m, s):
        return param - rate * (m / scale1) / (jnp.sqrt(s / scale2) + 1e-8)

    return State(ft.tree.map(move, state.params, mean, square), mean, square, count)


def cosine(rate: float, step: int, steps: int) -> float:
    """A learning rate that falls from `rate` to a twentieth of it."""
    return rate * (0.05 + 0.95 * 0.5 * (1 + math.cos(math.pi * step / steps)))


def evaluator(network: Network, data: Data) -> Callable[[Any], tuple[float, float]]:
    """A function from parameters to the held-out mean loss and accuracy."""

    @ft.jit
    def evaluate(params, images, labels):
        log_p = ft.nn.log_softmax(ft.vmap(network.apply, in_axes=(None, 0))(params, images))
        hits = jnp.argmax(log_p, axis=1) == labels
        picked = jnp.sum(log_p * ft.nn.one_hot(labels, log_p.shape[1]), axis=1)
        return -jnp.mean(picked), jnp.mean(hits)

    def held_out(params) -> tuple[float, float]:
        loss, accuracy = evaluate(params, data.test_images, data.test_labels)
        return float(loss), float(accuracy)

    return held_out


def follow(run: Run, updates: Iterable[Any], steps: int, data: Data) -> Run:
    """Consume `updates`, which yields parameters, under a progress bar; evaluate now and then."""
    evaluate = evaluator(run.network, data)
    terminal = sys.stderr.isatty()
    start = time.perf_counter()
    bar = tqdm(updates, run.title.ljust(11), steps, unit="step", ncols=96, disable=not terminal)
    for index, run.params in enumerate(bar, 1):
        if index % EVALUATE_EVERY == 0 or index == steps or index == 1:
            loss, run.accuracy = evaluate(run.params)
            run.steps.append(index)
            run.losses.append(loss)
            bar.set_postfix_str(f"held-out loss {loss:.3f}, accuracy {run.accuracy:.1%}")
    if not terminal:
        seconds = time.perf_counter() - start
        print(
            f"{run.title:<11} {steps} steps in {seconds:4.1f} s, "
            f"held-out loss {run.losses[-1]:.3f}, accuracy {run.accuracy:.1%}",
            flush=True,
        )
    return run


def shuffled(rng: np.random.Generator, examples: int) -> Iterator[np.ndarray]:
    """Batches of indices, epoch after epoch, each example at most once an epoch."""
    while True:
        order = rng.permutation(examples)
        yield from order[: examples // BATCH * BATCH].reshape(-1, BATCH)


def train(network: Network, data: Data, seed: int, steps: int, rate: float) -> Run:
    """Train on mean gradients from `value_and_grad`."""
    batch_loss = make_batch_loss(network)

    @ft.jit
    def update(state: State, images, labels, rate):
        loss, gradients = ft.value_and_grad(batch_loss)(state.params, images, labels)
        return adam(state, gradients, rate), loss

    run = Run(network.name, network, private=False)

    def updates():
        batches = shuffled(np.random.default_rng(seed), len(data.train_labels))
        state = initial_state(network.init(ft.random.key(seed)))
        for index, chosen in zip(range(steps), batches):
            images, labels = data.train_images[chosen], data.train_labels[chosen]
            state, loss = update(state, images, labels, cosine(rate, index, steps))
            run.batch_losses.append(float(loss))
            yield state.params

    return follow(run, updates(), steps, data)


def train_privately(
    network: Network, data: Data, seed: int, steps: int, rate: float, privacy: dpsgd.Privacy
) -> Run:
    """Train on the gradients of single examples, each clipped, and noise on their sum."""
    gradient = dpsgd.private_gradient(make_loss(network), privacy)

    @ft.jit
    def update(state: State, images, labels, mask, key, rate):
        private, norms = gradient(state.params, images, labels, key=key, weights=mask)
        return adam(state, private, rate), norms

    run = Run(f"{network.name} DP-SGD", network, private=True)

    def updates():
        rng = np.random.default_rng(seed)
        init_key, noise_key = ft.random.split(ft.random.key(seed))
        state = initial_state(network.init(init_key))
        for index in range(steps):
            chosen, mask = dpsgd.poisson_sample(rng, len(data.train_labels), privacy)
            images, labels = data.train_images[chosen], data.train_labels[chosen]
            key = ft.random.fold_in(noise_key, index)
            rate_now = cosine(rate, index, steps)
            state, norms = update(state, images, labels, mask, key, rate_now)
            run.norms.append(np.asarray(norms)[mask > 0])
            yield state.params

    return follow(run, updates(), steps, data)
