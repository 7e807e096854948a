"""What a checked program costs beside the same one unchecked: ratios of interleaved medians.

    python benchmarks/checks.py [--gpu] [--only WORD] [--quick] [--no-write]

The programs are gradients of MLPs, transformers and others, and single operations, on the CPU or a
GPU, from a call to its results; the bound is 1.5.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import dynamic
import numpy as np
from cpu_workloads import models
from gpu_workloads.models import transformer_loss
from harness import first_line
from table import Table, parse_options
from traced_programs import (
    make_mlp_loss,
    make_transformer_loss,
    mlp_arguments,
    transformer_arguments,
)

import functrans as ft

BOUND = 1.5
Programs = dict[str, tuple[Callable[..., Any], tuple[Any, ...]]]
WIDTH, HEADS = 1024, 16


def gradients(losses: Programs) -> Programs:
    return {title: (ft.value_and_grad(loss), args) for title, (loss, args) in losses.items()}


def cpu_programs() -> Programs:
    """The functions and their arguments, by title."""
    matrix = np.random.default_rng(0).standard_normal((1000, 1000), np.float32)
    return gradients({
        "MLP 784-256-128-10, batch 256": (models.mlp_loss(ft), models.mlp_arrays()),
        "MLP of 12 layers of 64, batch 32": (make_mlp_loss(ft.numpy), mlp_arguments()),
        "transformer, 2 blocks of 128": (models.transformer_loss(ft), models.transformer_arrays()),
        "transformer, 4 blocks of 32": (make_transformer_loss(ft.numpy), transformer_arguments()),
        "CNN on 28 x 28 images, batch 64": (models.cnn_loss(ft), models.cnn_arrays()),
    }) | {
        "x + 1, 1000 x 1000": (lambda x: x + 1, (matrix,)),
        "softmax of rows, 1000 x 1000": (ft.nn.softmax, (matrix,)),
        "x.T + x, 1000 x 1000": (lambda x: x.T + x, (matrix,)),
        "sin(x) 100 times by while_loop, 100,000": (
            lambda x: ft.lax.while_loop(lambda c: c[0] < 100, lambda c: (
                c[0] + 1, ft.numpy.sin(c[1])), (0, x))[1], (matrix[:100].reshape(-1),)),
    }


def gpu_programs() -> Programs:
    """The functions and their arguments, by title."""
    rng = np.random.default_rng(0)
    found: Programs = {}
    for batch in (128, 4096):
        parameters, batches = dynamic.arrays([batch])
        found[f"MLP 784-256-128-10, batch {batch}"] = (dynamic.loss(ft), (parameters, *batches[0]))
    for batch, length in ((8, 1024), (2, 4096)):
        title = f"transformer, 2 blocks of {WIDTH}, {batch} x {length}, bfloat16"
        found[title] = transformer_loss(ft), transformer_parts(rng, batch, length)
    rows = rng.standard_normal((8192, 1024), np.float32)
    found["softmax of rows, 8192 x 1024"] = (lambda x: (ft.nn.softmax(x) ** 2).sum(), (rows,))
    return gradients(found)


def transformer_parts(rng: np.random.Generator, batch: int, length: int) -> tuple[Any, ...]:
    """The parameters of two blocks, an input and a target."""
    head = WIDTH // HEADS

    def dense(*shape: int, inputs: int = WIDTH) -> Any:
        x = rng.standard_normal(shape, np.float32) / np.sqrt(inputs, dtype=np.float32)
        return ft.numpy.asarray(x).astype("bfloat16")

    def block() -> list[Any]:
        norm = [dense(WIDTH, inputs=1) for _ in range(2)]
        return [*norm, *[dense(WIDTH, HEADS, head) for _ in range(3)], dense(HEADS, head, WIDTH),
                *norm, dense(WIDTH, 4 * WIDTH), dense(4 * WIDTH), dense(4 * WIDTH, WIDTH)]

    return [block(), block()], *[dense(batch, length, WIDTH, inputs=1) for _ in range(2)]


def main() -> int:
    options = parse_options("Checked programs beside unchecked ones.", gpu="on a GPU")
    try:
        gpu = dynamic.gpu_name() if options.gpu else ""
    except RuntimeError as error:
        print(f"--gpu: functrans has no GPU here: {first_line(error)}")
        return 1
    with ft.config.default_device("gpu" if gpu else "cpu"):
        programs = gpu_programs() if gpu else cpu_programs()
        items = {title: item for title, item in programs.items() if options.only in title}
        table = Table("checks", options, list(items), 26, gpu)
        table.header()
        for title, (fun, arguments) in items.items():
            arrays = ft.tree.map(ft.numpy.asarray, arguments)
            plain, checked = ft.jit(fun), ft.checked(ft.jit(fun))
            table.keep(dynamic.ratio(
                title, lambda f=checked, a=arrays: ft.block_until_ready(f(*a)),
                lambda f=plain, a=arrays: ft.block_until_ready(f(*a)), BOUND,
                5 if options.quick else 40))
    return table.close()


if __name__ == "__main__":
    sys.exit(main())
