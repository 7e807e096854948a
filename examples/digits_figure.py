"""The figure of examples/digits.py: losses, per-sample gradient norms, and the hardest digits."""

from __future__ import annotations

from pathlib import Path

import dpsgd
import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from training import Data, Run, make_loss

import functrans as ft
from functrans import per_sample

# Okabe and Ito's colours, told apart by everyone.
COLOURS = {"MLP": "#0072B2", "CNN": "#D55E00"}
STRIP = 14


def tidy(axis) -> None:
    axis.spines[["top", "right"]].set_visible(False)
    axis.grid(True, alpha=0.25, linewidth=0.6)
    axis.set_axisbelow(True)


def draw_losses(axis, runs: list[Run]) -> None:
    """Held-out loss of every run, and behind it the loss of every batch."""
    for run in runs:
        colour = COLOURS[run.network.name]
        if run.batch_losses:
            steps = np.arange(1, len(run.batch_losses) + 1)
            axis.plot(steps, run.batch_losses, color=colour, alpha=0.18, linewidth=0.8)
        style = "--" if run.private else "-"
        label = f"{run.title}: {run.accuracy:.1%}"
        axis.plot(run.steps, run.losses, style, color=colour, linewidth=1.8, label=label)
    axis.set(yscale="log", ylim=(0.01, 3), xlabel="step", ylabel="held-out loss (nats)")
    axis.set_title("Loss; held-out accuracy at the end", loc="left")
    axis.legend(frameon=False, loc="upper right")
    tidy(axis)


def draw_norms(axis, run: Run, privacy: dpsgd.Privacy) -> None:
    """How per-sample gradient norms are distributed at three stages of private training."""
    fifth = len(run.norms) // 5
    stages = {
        "first fifth": run.norms[:fifth],
        "middle fifth": run.norms[2 * fifth : 3 * fifth],
        "last fifth": run.norms[-fifth:],
    }
    bins = np.geomspace(1e-7, 300, 60)
    colours = plt.get_cmap("viridis")([0.8, 0.5, 0.15])
    for (stage, norms), colour in zip(stages.items(), colours, strict=True):
        values = np.clip(np.concatenate(norms), bins[0], bins[-1])
        weights = np.full(values.size, 100 / values.size)
        kept = np.mean(values <= privacy.clip)
        label = f"{stage} of the steps: {kept:.0%} kept whole"
        axis.hist(values, bins, weights=weights, color=colour, alpha=0.25)
        axis.hist(values, bins, weights=weights, color=colour, histtype="step", label=label)
    axis.axvline(privacy.clip, color="black", linewidth=1, linestyle=":")
    axis.text(privacy.clip * 0.85, 0.4, "clipped beyond", rotation=90, ha="right",
              transform=axis.get_xaxis_transform(), fontsize=8)  # fmt: skip
    axis.set(xscale="log", xlabel="norm of one example's gradient", ylabel="% of examples")
    axis.set_title(f"Per-sample gradient norms, {run.title}", loc="left")
    axis.margins(y=0.35)
    axis.legend(frameon=False, loc="upper left", fontsize=8)
    tidy(axis)


def draw_hardest(axes, run: Run, data: Data) -> None:
    """The held-out digits whose gradients are largest under the trained model."""
    norms_of = ft.jit(per_sample.norms(make_loss(run.network)))
    norms = norms_of(run.params, data.test_images, data.test_labels)
    logits = ft.vmap(run.network.apply, in_axes=(None, 0))(run.params, data.test_images)
    guesses = np.argmax(np.asarray(logits), axis=1)
    hardest = np.argsort(-np.asarray(norms))[: len(axes)]
    for axis, index in zip(axes, hardest, strict=True):
        label, guess = data.test_labels[index], guesses[index]
        axis.imshow(data.test_images[index], cmap="gray_r")
        axis.set_xticks([])
        axis.set_yticks([])
        text = f"{label}" if label == guess else f"{label}, read as {guess}"
        axis.set_xlabel(text, fontsize=8, color="black" if label == guess else "#B00020")


def draw(runs: list[Run], data: Data, privacy: dpsgd.Privacy, path: Path) -> None:
    """Write the figure to `path` as a PNG."""
    figure = plt.figure(figsize=(15, 6.4), layout="constrained")
    top, bottom = figure.subfigures(2, 1, height_ratios=[4.2, 1.2])
    losses, *histograms = top.subplots(1, 3, width_ratios=[1.15, 1, 1])
    draw_losses(losses, runs)
    for axis, run in zip(histograms, [run for run in runs if run.private], strict=True):
        draw_norms(axis, run, privacy)
    network = next(run for run in reversed(runs) if not run.private)
    title = f"Held-out digits of the largest gradient norm, {network.title}"
    bottom.suptitle(title, x=0.005, ha="left")
    draw_hardest(bottom.subplots(1, STRIP), network, data)
    figure.savefig(path, dpi=120)
    plt.close(figure)
