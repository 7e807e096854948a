"""The picture of docs/benchmarks.md and README.md: per-sample gradients and whole programs."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Mapping
from typing import Any

from bounds import GRADIENT, SUBJECT
from harness import optional_module

TASKS = {
    "MLP 784-256-128-10, batch 256: clipped mean": "MLP, clipped mean",
    "MLP 784-256-128-10, batch 256: norms": "MLP, norms",
    "embedding bag 5000x64, batch 128: norms": "embedding, norms",
    "LSTM 32 steps h128, batch 64: clipped mean": "LSTM, clipped mean",
    "CNN 28x28, batch 64: clipped mean": "CNN, clipped mean",
    "2-layer transformer d128 S64 B16: clipped mean": "transformer, clipped mean",
}
LIBRARIES = {SUBJECT: "functrans", "jax": "JAX", "torch": "PyTorch"}
# text, grid, and the colours of Okabe and Ito, of which the dark theme has lighter ones
PICTURES = {
    "light": ("#1f2328", "#d0d7de", ("#0072B2", "#E69F00", "#CC5500", "#009E73")),
    "dark": ("#e6edf3", "#3d444d", ("#56B4E9", "#F0E442", "#FF8C42", "#3DDBA5")),
}

Figures = dict[str, Any]


def figures(per_sample: Mapping[str, Any], cpu: Mapping[str, Any], gpu: Mapping[str, Any]
            ) -> Figures:
    """What the picture shows: times of a batch gradient, and times by JAX's of each program."""
    rows = {row["title"]: row["seconds"] for row in per_sample["rows"]}
    return {
        "per sample": {short: {name: round(rows[title][name] / rows[title][GRADIENT], 3)
                               for name in LIBRARIES} for title, short in TASKS.items()},
        "programs": {where: {row["title"]: round(row["seconds"][SUBJECT] / row["seconds"]["jax"], 3)
                             for row in results["rows"]
                             if {SUBJECT, "jax"} <= set(row["seconds"])}
                     for where, results in (("4 cores of a CPU", cpu), ("H100", gpu))},
    }


def described(svg: str) -> Figures:
    """The figures that a picture shows, which are in its description."""
    text = re.search(r"<desc>(.*?)</desc>", svg, re.DOTALL)
    assert text is not None, "a picture without figures"
    found: Figures = json.loads(text[1])
    return found


def picture(shown: Figures, theme: str) -> str:
    """An SVG of two panels with a transparent background, without the date of its making."""
    matplotlib = optional_module("matplotlib")
    if matplotlib is None:
        raise SystemExit("The picture needs matplotlib: pip install matplotlib")
    matplotlib.use("Agg")
    plt = optional_module("matplotlib.pyplot")
    assert plt is not None
    text, grid, colours = PICTURES[theme]
    style = {"svg.hashsalt": "functrans", "svg.fonttype": "none", "font.size": 11,
             "font.family": "sans-serif", "text.color": text, "axes.labelcolor": text,
             "xtick.color": text, "ytick.color": text, "axes.edgecolor": grid}
    with plt.rc_context(style):
        figure, (left, right) = plt.subplots(1, 2, figsize=(11.5, 3.7), layout="constrained",
                                             width_ratios=[1.15, 1])
        draw_per_sample(left, shown["per sample"], grid, colours)
        draw_programs(right, shown["programs"], grid, text, colours)
        written = io.StringIO()
        figure.savefig(written, format="svg", transparent=True, metadata={"Date": None})
        plt.close(figure)
    start, end = written.getvalue().split("<defs>", 1)
    return f"{start}<desc>{json.dumps(shown)}</desc>\n <defs>{end}"


def draw_per_sample(axis: Any, tasks: Mapping[str, Mapping[str, float]], grid: str,
                    colours: tuple[str, ...]) -> None:
    """Bars from 1, the plain gradient, on a logarithmic axis."""
    height = 0.26
    for at, values in enumerate(tasks.values()):
        for i, (library, colour) in enumerate(zip(LIBRARIES, colours, strict=False)):
            value = values[library]
            y = at + (i - 1) * height
            axis.barh(y, value, height * 0.9, color=colour,
                      label=LIBRARIES[library] if at == 0 else None)
            axis.text(value * 1.12, y, f"{value:.2g}" if value < 100 else f"{value:.0f}",
                      va="center", fontsize=8.5)
    axis.axvline(1, color=grid, linewidth=1.5, zorder=0)
    axis.set(xscale="log", xlim=(0.3, 3000), xlabel="times of a plain batch gradient")
    axis.set_yticks(range(len(tasks)), tasks)
    axis.set_xticks([1, 10, 100, 1000], ["1", "10", "100", "1,000"])
    axis.invert_yaxis()
    axis.set_title("Per-sample gradients, 2 cores of a CPU", loc="left")
    axis.legend(frameon=False, loc="lower right")
    axis.spines[["top", "right", "left"]].set_visible(False)
    axis.tick_params(left=False, which="both")


def draw_programs(axis: Any, suites: Mapping[str, Mapping[str, float]], grid: str, text: str,
                  colours: tuple[str, ...]) -> None:
    """Each program's time by JAX's, in order; below the line functrans is faster."""
    marks = (colours[0], "o"), (colours[3], "s")
    for (where, ratios), (colour, mark) in zip(suites.items(), marks, strict=True):
        values = sorted(ratios.values())
        faster = sum(value < 1 for value in values)
        axis.plot(range(1, len(values) + 1), values, mark, color=colour, markersize=4.5,
                  label=f"{where}: {faster} of {len(values)} faster")
    axis.axhline(1, color=text, linewidth=1)
    axis.text(1, 1.1, "JAX", fontsize=9)
    axis.set(yscale="log", ylim=(0.02, 12), xlabel="programs, in order",
             ylabel="functrans' time by JAX's")
    axis.set_yticks([0.1, 1, 10], ["0.1", "1", "10"])
    axis.set_title("Whole research programs, a call", loc="left")
    axis.legend(frameon=False, loc="lower right")
    axis.grid(True, axis="y", color=grid, linewidth=0.6)
    axis.set_axisbelow(True)
    axis.spines[["top", "right"]].set_visible(False)
