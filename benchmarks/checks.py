"""What a checked program costs beside the same one unchecked: ratios of interleaved medians.

    python benchmarks/checks.py [--only WORD] [--quick] [--no-write]

The programs are value_and_grad of an MLP and of transformers, on the CPU; the bound is 1.5.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import dynamic
from cpu_workloads import models
from programs import (
    make_mlp_loss,
    make_transformer_loss,
    mlp_arguments,
    transformer_arguments,
)
from table import Table, parse_options

import functrans as ft

BOUND = 1.5


def workloads() -> dict[str, tuple[Callable[..., Any], tuple[Any, ...]]]:
    """The functions and their arguments, by title."""
    large_mlp = models.mlp_arrays()
    return {
        "MLP 784-256-128-10, batch 256": (models.mlp_loss(ft), large_mlp),
        "MLP of 12 layers of 64, batch 32": (make_mlp_loss(ft.numpy), mlp_arguments()),
        "transformer, 2 blocks of 128": (models.transformer_loss(ft), models.transformer_arrays()),
        "transformer, 4 blocks of 32": (make_transformer_loss(ft.numpy), transformer_arguments()),
        "CNN on 28 x 28 images, batch 64": (models.cnn_loss(ft), models.cnn_arrays()),
    }


def main() -> int:
    options = parse_options("Checked programs beside unchecked ones.")
    items = {title: item for title, item in workloads().items() if options.only in title}
    table = Table("checks", options, list(items), 26)
    table.header()
    for title, (loss, arguments) in items.items():
        gradient = ft.value_and_grad(loss)
        arrays = ft.tree.map(ft.numpy.asarray, arguments)
        plain, checked = ft.jit(gradient), ft.checked(ft.jit(gradient))
        plain(*arrays)
        checked(*arrays)
        table.keep(dynamic.ratio(title, lambda f=checked, a=arrays: f(*a),
                                 lambda f=plain, a=arrays: f(*a), BOUND,
                                 5 if options.quick else 40))
    return table.close()


if __name__ == "__main__":
    sys.exit(main())
