"""Pictures of the notebooks: a function a picture, so that cells show what is computed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle
from numpy.typing import ArrayLike, NDArray

BLUE, ORANGE, GREEN, GREY, PINK = "#0072B2", "#D55E00", "#009E73", "#777777", "#CC79A7"


def style() -> None:
    """The look of all pictures: no frames, titles at the left, one size of text."""
    plt.rcParams.update({
        "figure.figsize": (8, 3), "figure.dpi": 90, "figure.constrained_layout.use": True,
        "axes.spines.top": False, "axes.spines.right": False, "axes.titlelocation": "left",
        "axes.titlesize": 10, "legend.frameon": False, "legend.fontsize": 9})


def curves(x: ArrayLike, lines: Mapping[str, tuple[ArrayLike, str, str]], **labels: Any) -> Axes:
    """Lines over one axis: a name to (values, format of matplotlib, colour)."""
    _, axis = plt.subplots()
    for name, (values, form, colour) in lines.items():
        axis.plot(x, values, form, color=colour, label=name, linewidth=1.5)
    axis.set(**labels)
    axis.legend(ncols=3)
    return axis


def bars(values: Mapping[str, float], unit: str, reference: float | None = None, *,
         peers: Mapping[str, Mapping[str, float]] | None = None, log: bool = False,
         title: str = "") -> None:
    """A horizontal bar for each name with its number, thinner ones below it for peers."""
    rows = {"functrans": values, **(peers or {})}
    colours = dict(zip(rows, (BLUE, ORANGE, GREEN, GREY), strict=False))
    height = 0.8 / len(rows)
    _, axis = plt.subplots(figsize=(8, 0.5 + (0.2 + 0.2 * len(rows)) * len(values)))
    for k, (who, numbers) in enumerate(rows.items()):
        places = [row + (k - (len(rows) - 1) / 2) * height
                  for row, name in enumerate(values) if name in numbers]
        lengths = [numbers[name] for name in values if name in numbers]
        axis.barh(places, lengths, height, color=colours[who], label=who)
        for place, length in zip(places, lengths, strict=True):
            text = f"{length:,.0f}" if length >= 100 else f"{length:.3g}"
            axis.annotate(text, (length, place), (3, 0), va="center", fontsize=8,
                          textcoords="offset points")
    axis.set_yticks(range(len(values)), list(values))
    axis.invert_yaxis()
    axis.margins(x=0.1)
    axis.set(xlabel=unit, title=title, xscale="log" if log else "linear")
    if reference is not None:
        axis.axvline(reference, color="black", linestyle=":", linewidth=1, zorder=0)
    if peers:
        axis.legend(loc="upper left", bbox_to_anchor=(1, 1))


# 01: a pendulum

def ellipses(points: NDArray[Any], centre: ArrayLike, covariance: ArrayLike,
             names: Sequence[str], pairs: Sequence[tuple[int, int]], title: str) -> None:
    """Points in pairs of their coordinates, and ellipses of one and two deviations."""
    middle, spread = np.asarray(centre), np.asarray(covariance)
    turn = np.linspace(0, 2 * np.pi, 200)
    circle = np.stack([np.cos(turn), np.sin(turn)])
    _, axes = plt.subplots(1, len(pairs), figsize=(10, 3.2))
    for axis, (first, second) in zip(axes, pairs, strict=True):
        root = np.linalg.cholesky(spread[np.ix_([first, second], [first, second])])
        for radius in (1, 2):
            ring = radius * root @ circle
            axis.plot(middle[first] + ring[0], middle[second] + ring[1], color=ORANGE)
        axis.plot(points[:, first], points[:, second], ".", color=BLUE, alpha=0.35, markersize=4)
        axis.set(xlabel=names[first], ylabel=names[second])
    axes[0].set_title(title)


def influence(times: NDArray[Any], predicted: NDArray[Any], refitted: NDArray[Any],
              names: Sequence[str], special: int) -> None:
    """What leaving a measurement out does, and the prediction beside the fit without it."""
    _, (left, right) = plt.subplots(1, 2, figsize=(10, 3.2), width_ratios=[1.6, 1])
    colours = [ORANGE if index == special else BLUE for index in range(len(times))]
    left.bar(times, predicted[:, 0], width=0.07, color=colours)
    left.set(xlabel="time of the measurement (s)", ylabel="influence (deviations)",
             title=f"What leaving a measurement out does to the {names[0]}")
    extent = 1.1 * np.abs(refitted).max()
    right.plot([-extent, extent], [-extent, extent], color=GREY, linewidth=0.8)
    for index, colour in enumerate([BLUE, GREEN, ORANGE, PINK]):
        right.plot(refitted[:, index], predicted[:, index], ".", color=colour, markersize=5,
                   label=names[index])
    right.set(xlabel="fitted again without it", ylabel="predicted by its gradient")
    right.legend(fontsize=8)


def period(amplitudes: NDArray[Any], periods: ArrayLike, slopes: ArrayLike, small: float) -> None:
    """The period of a pendulum and its derivative, beside finite differences."""
    _, (left, right) = plt.subplots(1, 2, figsize=(10, 3))
    left.plot(amplitudes, periods, color=BLUE)
    left.axhline(small, color=GREY, linewidth=0.8, linestyle="--")
    left.set(xlabel="amplitude (rad)", ylabel="period (s)", ylim=(0, None),
             title="Period of the fitted pendulum; dashed: small swings")
    right.plot(amplitudes, slopes, color=ORANGE, label="custom rule, vmap(grad)")
    right.plot(amplitudes[1:-1:6], np.gradient(np.asarray(periods), amplitudes)[1:-1:6], ".",
               color=BLUE, label="finite differences")
    right.set(xlabel="amplitude (rad)", ylabel="d period / d amplitude", yscale="log")
    right.legend()


# 02: digits, and gradients of single samples

def digit(axis: Axes, image: NDArray[Any], text: str, colour: str = "black") -> None:
    """An image of 8 x 8 pixels in a frame, with a title."""
    axis.imshow(image.reshape(8, 8), cmap="gray_r")
    axis.set(xticks=[], yticks=[])
    axis.set_title(text, loc="center", fontsize=9, color=colour, pad=3)
    for side in axis.spines.values():
        side.set(visible=True, color=colour, linewidth=1.5)


def row_of_digits(images: NDArray[Any], labels: NDArray[Any]) -> None:
    """The first twelve images with their labels."""
    _, axes = plt.subplots(1, 12, figsize=(10, 1.2))
    for axis, image, label in zip(axes, images, labels, strict=False):
        digit(axis, image, str(label))


def two_ways(names: Sequence[str], compiled: ArrayLike, materialised: ArrayLike,
             reference: Sequence[float]) -> None:
    """Seconds and megabytes [programs, 2] of two ways to compute each program, on log axes."""
    ways = {"as compiled": (np.asarray(compiled), BLUE),
            'materialised, algebra("off")': (np.asarray(materialised), ORANGE)}
    rows = np.arange(len(names))
    _, axes = plt.subplots(1, 2, figsize=(10, 3.6), sharey=True)
    titles = ["Time for 256 images", "Memory for 256 images, with arguments and results"]
    for k, (axis, scale, unit) in enumerate(zip(axes, [1e3, 1], ["time (ms)", "peak (MB)"],
                                                strict=True)):
        both = scale * np.stack([numbers[:, k] for numbers, _ in ways.values()])
        axis.hlines(rows, *both, color=GREY, linewidth=1, zorder=1)
        for values, other, (name, (_, colour)) in zip(both, both[::-1], ways.items(), strict=True):
            axis.plot(values, rows, "o", color=colour, label=name)
            for row, value, is_left in zip(rows, values, values < other, strict=True):
                axis.annotate(f"{value:.3g}", (value, row), (-7 if is_left else 7, 0),
                              textcoords="offset points", ha="right" if is_left else "left",
                              va="center", fontsize=8, color=colour)
        axis.axvline(scale * reference[k], color="black", linestyle=":", linewidth=1,
                     label="the mean gradient", zorder=0)
        axis.set(xscale="log", xlim=(both.min() / 2.5, both.max() * 3), xlabel=unit,
                 title=titles[k])
    axes[0].set_yticks(rows, names)
    axes[0].invert_yaxis()
    axes[0].legend(loc="upper right", fontsize=8)


def private_training(shown: NDArray[Any], accuracies: Mapping[str, Sequence[float]],
                     spent: Sequence[float], met: Sequence[NDArray[Any]], bound: float) -> None:
    """Accuracies (%), the privacy spent, and the norms that the first, middle, last steps met."""
    _, axes = plt.subplots(1, 3, figsize=(11, 3.2))
    for (name, reached), colour in zip(accuracies.items(), (GREY, BLUE), strict=True):
        axes[0].plot(shown, reached, color=colour,
                     label=f"{name}, at the end {reached[-1]:.1f} %")
    axes[0].set(xlabel="step", ylabel="accuracy on test images (%)", ylim=(50, 100),
                title="What privacy costs")
    axes[1].plot(shown, spent, color=BLUE)
    axes[1].set(xlabel="step", ylabel=r"$\varepsilon$ at $\delta = 10^{-4}$", ylim=(0, None),
                title=f"Privacy spent: $\\varepsilon$ = {spent[-1]:.1f} at the end")
    bins, middle, last = np.geomspace(1e-3, 30, 50), len(met) // 2, len(met) - 30
    colours = ["#7AD151", "#22A884", "#414487"]
    for begin, colour in zip((0, middle - 15, last), colours, strict=True):
        norms = np.concatenate(met[begin:begin + 30])
        values, share = np.clip(norms, bins[0], bins[-1]), np.full(norms.size, 100 / norms.size)
        axes[2].hist(values, bins, weights=share, color=colour, alpha=0.2)
        axes[2].hist(values, bins, weights=share, color=colour, histtype="step",
                     label=f"steps {begin + 1}-{begin + 30}: "
                           f"{100 * np.mean(norms > bound):.0f} % clipped")
    axes[2].axvline(bound, color="black", linestyle=":", label="the bound $C$")
    axes[2].set(xscale="log", xlabel="norm of a sample's gradient", ylabel="% of samples",
                title="Norms met in private training")
    axes[2].margins(y=0.5)
    axes[0].legend(loc="lower right")
    axes[2].legend(loc="upper left", fontsize=8)


def noise_scale(single: NDArray[Any], averaged: NDArray[Any], exact: Mapping[int, float],
                batch: int, sizes: NDArray[Any],
                checks: Mapping[int, tuple[float, NDArray[Any]]]) -> None:
    """Estimates of the noise scale while training, and what it predicts of batches."""
    _, (left, right) = plt.subplots(1, 2, figsize=(10, 3.4))
    left.plot(np.where(single > 0, single, np.nan), ".", color=GREY, alpha=0.4, markersize=4,
              label="estimates of single batches")
    left.plot(averaged, color=BLUE, label="averaged over 31 steps")
    left.plot(list(exact), list(exact.values()), "o", color=ORANGE, fillstyle="none",
              label="from all training images")
    left.axhline(batch, color="black", linestyle=":", linewidth=1,
                 label=f"the batch, {batch} samples")
    left.set(yscale="log", xlabel="step", ylabel="noise scale (samples)", ylim=(3, 3e4),
             title="The batch that is worth its cost grows while training")
    left.legend(fontsize=8, loc="lower right", ncols=2)
    smooth = np.geomspace(sizes[0], sizes[-1])
    for (step, (scale, shares)), colour in zip(checks.items(), [GREEN, BLUE, ORANGE], strict=True):
        right.plot(smooth, 100 / (1 + scale / smooth), color=colour, linewidth=1,
                   label=f"step {step}, noise scale {scale:.0f}")
        right.plot(sizes, shares, "o", color=colour, markersize=4)
    right.axhline(50, color="black", linestyle=":", linewidth=1)
    right.set(xscale="log", xlabel="batch size (samples)", ylim=(0, 100),
              ylabel="signal in the squared length (%)",
              title="Lines: predicted; dots: measured on 400 batches each")
    right.legend(fontsize=8)


def influences(rows: Iterable[tuple[tuple[NDArray[Any], str], list[tuple[NDArray[Any], str]],
                                    list[tuple[NDArray[Any], str]]]]) -> None:
    """A row for each misread image: itself, those that helped most, and those that hurt most."""
    pictures = list(rows)
    figure = plt.figure(figsize=(10, 1.3 * len(pictures)))
    parts = figure.subfigures(1, 3, width_ratios=[1.15, 4, 4])
    titles = {"Misread": "black", "Training images that helped most, with labels": GREEN,
              "Training images that hurt most, with labels": ORANGE}
    for part, columns, k in zip(parts, (1, 4, 4), range(3), strict=True):
        axes = part.subplots(len(pictures), columns, squeeze=False)
        for line, row in zip(axes, pictures, strict=True):
            images = [row[0]] if k == 0 else row[k]
            for axis, (image, text) in zip(line, images, strict=False):
                digit(axis, image, text, list(titles.values())[k])
        part.suptitle(list(titles)[k], fontsize=10, color=list(titles.values())[k])


def wrong_labels(found: NDArray[Any], total: int,
                 suspicious: Sequence[tuple[NDArray[Any], str, bool]]) -> None:
    """Of the wrong labels, how many the first images of a ranking have; and those images."""
    figure = plt.figure(figsize=(10, 3.3))
    left, right = figure.subfigures(1, 2, width_ratios=[1, 1.25])
    axis, count = left.subplots(), int(found[-1])
    looked = np.arange(1, 151)
    axis.plot(looked, 100 * found[:150] / count, color=BLUE, label="ranked by self-influence")
    axis.plot(looked, 100 * looked / total, color=GREY, linestyle="--", label="in any order")
    axis.plot(looked, 100 * np.minimum(looked / count, 1), color="black", linestyle=":",
              linewidth=1, label="best possible")
    axis.set(xlabel="images looked at", ylabel="wrong labels found (%)", ylim=(0, 104),
             title=f"{count} wrong labels among {total}")
    axis.legend(loc="center right")
    for panel, (image, text, wrong) in zip(right.subplots(3, 8).flat, suspicious, strict=False):
        digit(panel, image, text, ORANGE if wrong else GREEN)
    right.suptitle("The 24 most suspicious. Orange: label was changed; green: it is right",
                   fontsize=10, x=0.01, ha="left")


def kernels(matrices: Mapping[str, NDArray[Any]]) -> None:
    """Matrices of 30 images a digit, and their eigenvalues."""
    _, axes = plt.subplots(1, 3, figsize=(11, 3.3), width_ratios=[1, 1, 1.15])
    for axis, (title, matrix), colour in zip(axes, matrices.items(), [GREY, BLUE], strict=False):
        picture = axis.imshow(matrix, cmap="viridis")
        axis.set_xticks(np.arange(15, 300, 30), range(10))
        axis.set_yticks(np.arange(15, 300, 30), range(10))
        axis.set(xlabel="image, sorted by digit", ylabel="image, sorted by digit",
                 title=f"Tangent kernel {title}")
        plt.colorbar(picture, ax=axis, shrink=0.8)
        spectrum = np.linalg.eigvalsh(matrix.astype(np.float64))[::-1]
        needed = 1 + np.searchsorted(np.cumsum(spectrum) / spectrum.sum(), 0.9)
        axes[2].loglog(np.arange(1, len(spectrum) + 1), spectrum, ".-", markersize=3,
                       color=colour, label=f"{title}: {needed} make up 90 %")
    axes[2].set(xlabel="number of the eigenvalue", ylabel="eigenvalue",
                title="Eigenvalues of the kernels")
    axes[2].legend(loc="lower left")


# 03: a GPU

def attention(weights: NDArray[Any], words: Sequence[str]) -> None:
    """Of each word (row), how much it takes from each other one (column)."""
    _, axis = plt.subplots(figsize=(4.6, 4))
    picture = axis.imshow(weights, cmap="viridis", vmin=0)
    axis.set_xticks(range(len(words)), words, rotation=60, ha="right", fontsize=8)
    axis.set_yticks(range(len(words)), words, fontsize=8)
    axis.set(xlabel="takes from", ylabel="the word", title="Attention of one head")
    plt.colorbar(picture, ax=axis, shrink=0.8)


def lanes(ends: NDArray[Any], counts: NDArray[Any], xs: NDArray[Any], ys: NDArray[Any]) -> None:
    """Where trajectories of Lorenz's system end, and how long pixels of a Mandelbrot set stay."""
    _, (left, right) = plt.subplots(1, 2, figsize=(9, 4))
    left.hist2d(ends[:, 0], ends[:, 2], bins=240, cmap="magma", norm="log")
    left.set(title="Where the trajectories end", xlabel="x", ylabel="z")
    right.imshow(np.log(1 + counts), extent=(xs[0], xs[-1], ys[0], ys[-1]), cmap="magma")
    right.set(title="How long a pixel stays", xlabel="real part", ylabel="imaginary part")


# 04, 05: bytes, calls and formulas

def traffic(ways: Mapping[str, Sequence[float]]) -> None:
    """Megabytes that go through memory, a piece for each operation or kernel."""
    _, axis = plt.subplots(figsize=(8, 2.4))
    for row, (sizes, colour) in enumerate(zip(ways.values(), (ORANGE, BLUE), strict=True)):
        ends = np.cumsum(sizes)
        axis.barh(row, sizes, left=ends - sizes, color=colour, alpha=0.75, edgecolor="white")
        axis.text(ends[-1] + 1, row, f"{ends[-1]:.0f} MB", va="center")
    axis.set_yticks(range(len(ways)), list(ways))
    axis.invert_yaxis()
    axis.margins(x=0.15)
    axis.set(title="Bytes that go through memory", xlabel="MB")


def calls(ways: Mapping[str, Sequence[float]]) -> None:
    """Milliseconds of each call, and the seconds of all calls so far."""
    _, (left, right) = plt.subplots(1, 2, figsize=(9, 3.2))
    for (label, times), colour in zip(ways.items(), (ORANGE, BLUE), strict=True):
        count, total = np.arange(1, len(times) + 1), np.cumsum(times) / 1e3
        left.semilogy(count, times, "o", color=colour, markersize=4, label=label)
        right.plot(count, total, color=colour, linewidth=2)
        right.text(count[-1] + 0.5, total[-1], f"{total[-1]:.2f} s", color=colour, va="center")
        right.set_xlim(0, len(times) + 6)
    left.set(title="Time of each call", ylabel="milliseconds (log scale)")
    left.legend(loc="center right", fontsize=8)
    right.set(title="Time of all calls so far", ylabel="seconds")
    for axis in (left, right):
        axis.set_xlabel("call, each with a batch size not seen before")


def formulas(panels: Sequence[tuple[str, str, Mapping[str, Callable[[int], float]],
                                    Sequence[tuple[int, float]]]], title: str) -> None:
    """For each panel (title, unit, formulas of a length, measured points): lines and dots."""
    curve = np.linspace(64, 1024, 25).astype(int)
    figure, axes = plt.subplots(1, len(panels), figsize=(10, 3.3))
    for axis, (name, unit, lines, points) in zip(axes, panels, strict=True):
        for (label, formula), form in zip(lines.items(), ("-", "--", ":"), strict=False):
            axis.plot(curve, [formula(s) for s in curve], form, color=BLUE, label=label)
        if points:
            axis.plot(*np.array(points).T, "o", color=ORANGE, label="measured")
        axis.set(title=name, ylabel=unit, xlabel="S, words in a sentence", ylim=(0, None))
        axis.legend(fontsize=8, loc="upper left")
    figure.suptitle(title, x=0.01, ha="left", fontsize=11)


# 06: NumPy code

def plates(pictures: Mapping[str, NDArray[Any]], losses: Sequence[float]) -> None:
    """Pictures of a plate side by side, and a misfit on a log axis."""
    _, panels = plt.subplots(1, len(pictures) + 1, figsize=(11, 2.8),
                             width_ratios=[*[1] * len(pictures), 1.2])
    for panel, (title, picture) in zip(panels, pictures.items(), strict=False):
        panel.imshow(picture, cmap="magma", vmin=0, vmax=1)
        panel.set_title(title)
        panel.axis("off")
    panels[-1].semilogy(losses, color=BLUE)
    panels[-1].set(title="misfit", xlabel="gradient step")


def alignment(a: NDArray[Any], b: NDArray[Any], costs: NDArray[Any], path: NDArray[Any]) -> None:
    """Costs with the path through them, and the two signals with what is aligned."""
    _, (left, right) = plt.subplots(1, 2, figsize=(9.5, 3), width_ratios=[1, 1.6])
    left.imshow(costs, cmap="Greys", origin="lower")
    rows, columns = np.nonzero(path)
    left.plot(columns, rows, "o-", color=ORANGE, markersize=4)
    left.set(xlabel="time of b", ylabel="time of a", title="costs, and their gradient")
    right.plot(a + 2.5, "o-", color=BLUE, markersize=3)
    right.plot(b, "o-", color=GREEN, markersize=3)
    for i, j in zip(rows, columns, strict=True):
        right.plot([i, j], [a[i] + 2.5, b[j]], color=GREY, linewidth=0.6, zorder=0)
    right.text(len(a), a[-1] + 2.5, "a", color=BLUE)
    right.text(len(b), b[-1], "b", color=GREEN)
    right.set(xlabel="time", title="what is aligned with what", yticks=[])


def particles(stages: Mapping[str, tuple[NDArray[Any], NDArray[Any]]], brightest: float) -> None:
    """For each stage the particles and their density."""
    _, panels = plt.subplots(1, 2 * len(stages), figsize=(11, 2.9))
    for k, (title, (points, grid)) in enumerate(stages.items()):
        panels[2 * k].plot(points[:, 1], points[:, 0], ".", color=BLUE, markersize=2.5)
        panels[2 * k].set(xlim=(0, len(grid)), ylim=(0, len(grid)), aspect="equal", title=title)
        panels[2 * k + 1].imshow(grid, origin="lower", vmin=0, vmax=brightest)
        panels[2 * k + 1].set_title("their density")
    for panel in panels:
        panel.axis("off")


# 07: recipes

def implicit_layer(points: NDArray[Any], kind: NDArray[Any], probability: ArrayLike,
                   counts: Sequence[int], memory: Sequence[float], own: float,
                   errors: Sequence[float]) -> None:
    """What the layer separates, and what an unrolled one costs and errs."""
    _, (left, middle, right) = plt.subplots(1, 3, figsize=(10, 3))
    left.imshow(probability, extent=(-1.5, 1.5, -1.5, 1.5), origin="lower", cmap="RdBu",
                vmin=0, vmax=1, alpha=0.7)
    left.scatter(*points.T, c=kind, cmap="RdBu", s=9, edgecolors="black", linewidths=0.3)
    left.set(title="what the layer separates", xticks=[], yticks=[])
    middle.loglog(counts, memory, "o-", color=ORANGE, label="unrolled")
    middle.axhline(own, color=BLUE, label="implicit")
    middle.set(title="memory of a gradient", xlabel="iterations", ylabel="MB", ylim=(0.1, 20))
    middle.legend()
    right.loglog(counts, errors, "o-", color=ORANGE)
    right.set(title="error of the unrolled gradient", xlabel="iterations")
    for axis in (middle, right):
        axis.set_xticks(counts, counts)
        axis.xaxis.set_minor_locator(plt.NullLocator())


def predators(times: NDArray[Any], counted: NDArray[Any], fine: NDArray[Any],
              fitted: NDArray[Any], truth: NDArray[Any], guess: NDArray[Any]) -> None:
    """Two populations: counted, fitted, true, and of the first guess (pale)."""
    _, axis = plt.subplots(figsize=(9, 2.8))
    for k, (name, colour) in enumerate([("prey", BLUE), ("predators", ORANGE)]):
        axis.plot(times, counted[:, k], "o", color=colour, markersize=4)
        axis.plot(fine, fitted[:, k], color=colour, label=name)
        axis.plot(fine, truth[:, k], ":", color="black", linewidth=1, label="truth" if k else None)
        axis.plot(fine, guess[:, k], color=colour, alpha=0.25)
    axis.axvline(times[-1], color=GREY, linewidth=0.8)
    axis.set(title="counted, fitted and foretold (pale: the first guess)", xlabel="time")
    axis.legend(loc="upper right", ncols=3)


def process(x: ArrayLike, y: ArrayLike, new: NDArray[Any], mean: NDArray[Any],
            deviation: NDArray[Any], truth: NDArray[Any]) -> None:
    """The prediction of a Gaussian process with two deviations, data and truth."""
    _, axis = plt.subplots(figsize=(9, 2.8))
    axis.fill_between(new, mean - 2 * deviation, mean + 2 * deviation, color=BLUE, alpha=0.2,
                      linewidth=0, label="mean and 2 standard deviations")
    axis.plot(new, mean, color=BLUE)
    axis.plot(new, truth, ":", color="black", linewidth=1, label="truth")
    axis.plot(x, y, "o", color=ORANGE, markersize=4, label="data")
    axis.set(title="wide where there are no data", xlabel="x", ylim=(-2.4, 2))
    axis.legend(loc="lower left", ncols=3)


def flow(data: NDArray[Any], density: ArrayLike, drawn: NDArray[Any]) -> None:
    """Data, the density of a flow on [-2.5, 2.5]^2, and its samples."""
    _, (left, middle, right) = plt.subplots(1, 3, figsize=(10, 2.9))
    left.plot(*data.T, ".", color=ORANGE, markersize=3)
    right.plot(*drawn.T, ".", color=BLUE, markersize=3)
    middle.imshow(density, extent=(-2.5, 2.5, -2.5, 2.5), origin="lower", cmap="magma",
                  aspect="auto")
    titles = f"{len(data)} data", "density of the flow", f"{len(drawn)} samples of the flow"
    for axis, title in zip((left, middle, right), titles, strict=True):
        axis.set(title=title, xlim=(-2, 2), ylim=(-1.4, 1.4), xticks=[], yticks=[])


def planes(x: NDArray[Any], kind: NDArray[Any],
           pictures: Mapping[str, tuple[ArrayLike, str, float | None]]) -> None:
    """Values on [-4, 4]^2 behind points of two kinds: a title to (values, colours, highest)."""
    figure, panels = plt.subplots(1, len(pictures), figsize=(10, 3))
    for axis, (title, (values, colours, high)) in zip(panels, pictures.items(), strict=True):
        picture = axis.imshow(values, extent=(-4, 4, -4, 4), origin="lower", cmap=colours, vmin=0,
                              vmax=high)
        axis.scatter(*x.T, c=kind, cmap="RdBu", s=8, edgecolors="black", linewidths=0.3)
        axis.set(title=title, xticks=[], yticks=[])
        figure.colorbar(picture, ax=axis, shrink=0.8)


def rates(time: NDArray[Any], events: NDArray[Any], found: ArrayLike, truth: ArrayLike,
          changes: Sequence[float]) -> None:
    """A rate of events that was found, beside the events, and the steps of the method."""
    _, (left, right) = plt.subplots(1, 2, figsize=(10, 2.9), width_ratios=[2.2, 1])
    left.plot(time.reshape(-1, 100).mean(1), events.reshape(-1, 100).mean(1), ".", color=GREY,
              markersize=2, alpha=0.6, label="events, mean of 100 bins")
    left.plot(time, found, color=BLUE, label="found")
    left.plot(time, truth, ":", color="black", label="truth")
    left.set(title="rate of events in a bin", xlabel="time")
    left.legend(loc="upper left")
    right.semilogy(range(1, len(changes) + 1), changes, "o-", color=ORANGE)
    right.set(title="largest change of the log rate", xlabel="step of Newton's method")


# 09: two moons and a pendulum, by libraries of JAX's

def mistaken_labels(losses: Sequence[float], points: NDArray[Any], labels: NDArray[Any],
                    wrong: NDArray[Any], probability: ArrayLike, norms: ArrayLike) -> None:
    """A training's loss, what the network says on a square, and norms with wrong labels marked."""
    _, (left, middle, right) = plt.subplots(1, 3, figsize=(11, 3))
    left.plot(losses, color=BLUE)
    left.set(title="loss of the training", xlabel="step")
    middle.imshow(probability, extent=(-2, 2, -2, 2), origin="lower", cmap="RdBu", vmin=0, vmax=1,
                  alpha=0.6, aspect="auto")
    middle.scatter(*points.T, c=labels, cmap="RdBu", s=9, edgecolors="black", linewidths=0.3)
    middle.scatter(*points[wrong].T, s=34, facecolors="none", edgecolors=ORANGE)
    middle.set(title="what the network says (ringed: wrong)", xticks=[], yticks=[])
    lengths = np.asarray(norms)
    order = np.argsort(-lengths)
    ranks = np.argsort(order)
    right.semilogy(lengths[order], color=GREY)
    right.plot(ranks[wrong], lengths[wrong], "o", color=ORANGE, markersize=4, label="wrong label")
    right.set(title="norms of the gradients of samples", xlabel="rank")
    right.legend()


def swings(times: ArrayLike, filmed: ArrayLike, fitted: ArrayLike, lengths: ArrayLike,
           special: int) -> None:
    """Three swings, filmed and fitted, and the norm of every swing's gradient."""
    _, (left, right) = plt.subplots(1, 2, figsize=(10, 3), width_ratios=[1.8, 1])
    for k, colour in ((2, GREEN), (special, ORANGE), (11, BLUE)):
        left.plot(times, np.asarray(filmed)[k], "o", color=colour, markersize=4)
        left.plot(times, np.asarray(fitted)[k], color=colour, label=f"swing {k}")
    left.set(title="filmed, and fitted", xlabel="time", ylabel="angle", ylim=(-3.2, 4.2))
    left.legend(loc="upper right", ncols=3)
    numbers = np.arange(len(np.asarray(lengths)))
    right.barh(numbers, lengths, color=[ORANGE if k == special else GREY for k in numbers])
    right.set(title="norms of their gradients", ylabel="swing", yticks=numbers)


# 08: many devices

OF_DEVICES = (BLUE, "#E69F00", GREEN, PINK)


def layouts(pieces: Mapping[str, Mapping[int, tuple[slice, ...]]], side: int) -> None:
    """Square arrays in the colours of the devices that have each element, striped where several."""
    _, axes = plt.subplots(1, len(pieces), figsize=(12, 2.6))
    for axis, (title, devices) in zip(axes, pieces.items(), strict=True):
        where: dict[tuple[int, int], list[int]] = {}
        for device, (rows, columns) in devices.items():
            for i in range(*rows.indices(side)):
                for j in range(*columns.indices(side)):
                    where.setdefault((i, j), []).append(device)
        for (i, j), ids in where.items():
            for k, device in enumerate(ids):
                place = (j + k / len(ids), i)
                axis.add_patch(Rectangle(place, 1 / len(ids), 1, color=OF_DEVICES[device]))
            axis.add_patch(Rectangle((j, i), 1, 1, fill=False, edgecolor="white"))
        axis.set(xlim=(0, side), ylim=(side, 0), aspect="equal", xticks=[], yticks=[], title=title)
    handles = [Rectangle((0, 0), 1, 1, color=colour) for colour in OF_DEVICES]
    axes[0].figure.legend(handles, [f"device {k}" for k in range(4)], ncols=4,
                          loc="outside lower center")


def on_devices(one: Sequence[float], four: Sequence[float],
               parts: Sequence[NDArray[Any]]) -> None:
    """Losses on one device and on four, and values of samples in the colours of devices."""
    _, (left, right) = plt.subplots(1, 2, figsize=(10, 2.8))
    left.plot(one, color=GREY, linewidth=5, alpha=0.4, label="one device")
    left.plot(four, color=BLUE, label="four devices")
    left.set(title="The same losses", xlabel="step", ylabel="loss")
    left.legend()
    for k, part in enumerate(parts):
        right.bar(np.arange(len(part)) + len(part) * k, part, width=1, color=OF_DEVICES[k])
    right.set(title="Norms of gradients, in the colours of devices", xlabel="sample")


def timeline(events: Sequence[tuple[int, str, float]]) -> None:
    """What each device does and when: notes of (device, what begins, seconds)."""
    _, axis = plt.subplots(figsize=(10, 2.4))
    first = min(seconds for _, _, seconds in events)
    devices = sorted({device for device, _, _ in events})
    for device in devices:
        notes = sorted((seconds, what) for d, what, seconds in events if d == device)
        for (begin, what), (end, _) in pairwise(notes):
            axis.barh(device, (end - begin) * 1e3, left=(begin - first) * 1e3, height=0.7,
                      edgecolor="white", color=BLUE if what == "compute" else "#DDDDDD")
    axis.set_yticks(devices, [f"device {device}" for device in devices])
    axis.invert_yaxis()
    axis.set(title="Four rounds: blue computes, grey is in a collective or waits for it",
             xlabel="ms")


def gpu_timeline(kernels: Sequence[tuple[int, bool, str, float, float]]) -> None:
    """What GPUs do and when: (GPU, whether it is a collective, name, begin, microseconds)."""
    _, axis = plt.subplots(figsize=(10, 2.2))
    gpus = sorted({gpu for gpu, *_ in kernels})
    for gpu in gpus:
        for row, (exchanges, colour) in enumerate(((True, ORANGE), (False, BLUE))):
            spans = [(begin / 1e3, length / 1e3) for g, e, _, begin, length in kernels
                     if g == gpu and e == exchanges]
            axis.broken_barh(spans, (2.4 * gpu + row, 0.9), color=colour, linewidth=0)
    axis.set_yticks([2.4 * gpu + 1 for gpu in gpus], [f"GPU {gpu}" for gpu in gpus])
    axis.invert_yaxis()
    axis.set(title="A step of a transformer on two H100: orange is exchanged, blue computed",
             xlabel="ms")
