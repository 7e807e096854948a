"""Handwritten digits, learnt with and without differential privacy.

An MLP and a small CNN are trained on the 1,797 digits that scikit-learn ships, once on mean
gradients and once by DP-SGD, whose per-sample gradients are

    ft.vmap(ft.grad(loss), in_axes=(None, 0, 0))(params, images, labels)

Run it with `python examples/digits.py`. It prints accuracies, privacy and the time per step, draws
a figure, and exits with status 1 if an accuracy misses its bound. The seeds are fixed.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from pathlib import Path

import dpsgd
import numpy as np
from digits_figure import draw
from networks import CNN, MLP, Network
from sklearn.datasets import load_digits
from threadpoolctl import threadpool_limits
from training import (
    BATCH,
    Data,
    Run,
    make_batch_loss,
    per_sample_gradients,
    train,
    train_privately,
)

import functrans as ft

SPLIT_SEED, TRAINING_SEED = 0, 0
HELD_OUT = 360
ACCURACY, PRIVATE_ACCURACY = 0.97, 0.90
DELTA = 1e-4
PRIVACY = dpsgd.Privacy(clip=1.0, noise=0.8, batch=64)


def load() -> Data:
    """The digits with pixels in [0, 1], shuffled; 360 of them are held out."""
    digits = load_digits()
    order = np.random.default_rng(SPLIT_SEED).permutation(len(digits.target))
    images = (digits.images[order] / 16).astype(np.float32)
    labels = digits.target[order].astype(np.int32)
    return Data(images[HELD_OUT:], labels[HELD_OUT:], images[:HELD_OUT], labels[:HELD_OUT])


def gradient_times(run: Run, data: Data, repeats: int = 15) -> list[float]:
    """Median seconds of the gradient of a batch's mean loss and of its per-sample gradients.

    Each compiled, then eager. They take turns, after a call of each to compile, so that all meet
    the same machine.
    """
    images, labels = data.train_images[:BATCH], data.train_labels[:BATCH]
    eager = [ft.grad(make_batch_loss(run.network)), per_sample_gradients(run.network)]
    functions = [*map(ft.jit, eager), *eager]
    times: list[list[float]] = [[] for _ in functions]
    for _ in range(repeats + 1):
        for function, taken in zip(functions, times, strict=True):
            start = time.perf_counter()
            ft.block_until_ready(function(run.params, images, labels))
            taken.append(time.perf_counter() - start)
    return [statistics.median(taken[1:]) for taken in times]


def parameter_count(run: Run) -> int:
    return sum(leaf.size for leaf in ft.tree.leaves(run.params))


def train_all(data: Data) -> list[Run]:
    """The four runs: each network plainly, then privately."""
    recipes: list[tuple[Network, int, float]] = [(MLP, 400, 8e-3), (CNN, 300, 1e-2)]
    runs = []
    for network, steps, rate in recipes:
        runs.append(train(network, data, TRAINING_SEED, steps, rate))
        runs.append(train_privately(network, data, TRAINING_SEED, 250, 2e-2, PRIVACY))
    return runs


def print_accuracies(runs: list[Run], examples: int) -> bool:
    """Print what was reached against what was asked; True if nothing was missed."""
    print("\n              parameters   steps   held-out accuracy   at least   epsilon")
    passed = True
    for run in runs:
        bound = PRIVATE_ACCURACY if run.private else ACCURACY
        steps = run.steps[-1]
        privacy = f"{dpsgd.epsilon(PRIVACY, examples, steps, DELTA):.1f}" if run.private else "-"
        verdict = "" if run.accuracy >= bound else "   MISSED"
        passed &= run.accuracy >= bound
        print(
            f"{run.title:<12} {parameter_count(run):>11,} {steps:>7} {run.accuracy:>19.1%}"
            f" {bound:>10.0%} {privacy:>9}{verdict}"
        )
    print(
        f"DP-SGD: gradients clipped to norm {PRIVACY.clip}, noise of {PRIVACY.noise} times that, "
        f"Poisson samples of {PRIVACY.batch}\nof {examples} examples; epsilon at delta {DELTA:g}."
    )
    return passed


def print_times(runs: list[Run], data: Data) -> None:
    """Print the time of batch and per-sample gradients of each network, compiled and eager."""
    print(f"\ntime per step of {BATCH}      compiled        eager   speed-up")
    for run in runs:
        if not run.private:
            times = gradient_times(run, data)
            for name, compiled, eager in zip(
                ("gradient", "per-sample"), times[:2], times[2:], strict=True
            ):
                print(
                    f"{run.title:<8} {name:<10} {compiled * 1e3:>10.3f} ms {eager * 1e3:>9.2f} ms"
                    f" {eager / compiled:>9.1f}x"
                )


def main() -> int:
    parser = argparse.ArgumentParser(description="Train on handwritten digits, also privately.")
    parser.add_argument(
        "--figure",
        type=Path,
        default=Path(__file__).parent / "output" / "digits.png",
        help="where to write the figure (default: examples/output/digits.png)",
    )
    figure = parser.parse_args().figure
    start = time.perf_counter()
    data = load()
    # These matrices are small: a second BLAS thread gains nothing, and where other programs want
    # the cores it spins (a weighted sum of 112 gradients: 0.1 ms alone, 8 ms with two threads).
    with threadpool_limits(limits=1, user_api="blas"):
        runs = train_all(data)
        passed = print_accuracies(runs, len(data.train_labels))
        print_times(runs, data)
    figure.parent.mkdir(parents=True, exist_ok=True)
    draw(runs, data, PRIVACY, figure)
    print(f"\nFigure: {figure}. All of it took {time.perf_counter() - start:.0f} s.")
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
