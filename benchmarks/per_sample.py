"""Reductions of per-sample gradients beside JAX and PyTorch, and beside a gradient of the batch.

    python benchmarks/per_sample.py [--only WORD] [--rounds N] [--quick] [--compile]
                                    [--subject-only] [--no-write]

Norms, clipped means, variances and tangent kernels are written as plain programs over
`vmap(grad(loss))`, which functrans and JAX trace from the same source. The columns:

    batch gradient   functrans' gradient of the mean loss, which bounds are multiples of
    materialised     functrans' same program without contraction algebra
    jax              the same program, jitted
    jax by hand      forward and backward pass written out, norms from activations and cotangents
    torch            the same program by torch.func, eager; compiled too with --compile (minutes)
    ghost clipping   torch modules with hooks and two backward passes, as Opacus does it

All are compared with the same program in float64. Rows of peak memory (arguments, results and
temporaries, as the compilers report them) come last. --subject-only measures functrans alone and
takes the peers' figures from the results file; --quick makes short rounds and writes no file. Close
other programs first. The exit status is 1 if a bound is missed.
"""

from __future__ import annotations

import gc
import sys

from bounds import GRADIENT, SUBJECT
from harness import Row
from per_sample_workloads.rows import MEMORY, TASKS
from table import Table, parse_options, peers_for

REACH = 26


def with_ratio(row: Row) -> Row:
    """The row, with a note of its part of the batch gradient's."""
    if SUBJECT in row.seconds and GRADIENT in row.seconds:
        row.note = f"{row.seconds[SUBJECT] / row.seconds[GRADIENT]:.3g}x the {GRADIENT}"
    return row


def main() -> int:
    options = parse_options("Reductions of per-sample gradients beside peers.")
    timed = [task for task in TASKS if options.only in task.title]
    sized = [task for task in TASKS if options.only in task.title + MEMORY]
    table = Table("per-sample", options, [task.title + MEMORY for task in sized], REACH)
    peers = peers_for(options)
    table.header()
    for task in timed:
        table.keep(with_ratio(table.measured(task.workload(), peers)))
        gc.collect()
    for task in sized:
        title = task.title + MEMORY
        try:
            row = with_ratio(task.memory(peers, table.kept(title)))
        except Exception as error:  # one program that cannot be compiled must not end the table
            row = table.failed(title, error)
        table.keep(row)
    return table.close()


if __name__ == "__main__":
    sys.exit(main())
