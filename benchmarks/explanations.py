"""How long explanations take: text, page and picture of the gradient of a 4-block transformer.

    python benchmarks/explanations.py [--rounds 20]

For a CPU; for GPUs the kernels are compiled, unless the disk has them. Results go to
benchmarks/results/; the exit status is 1 if a bound is missed. Close other programs first.
"""

from __future__ import annotations

import argparse
import sys

from harness import SUBJECT, Case, Timing, load, measure, print_table, write_results
from traced_programs import make_transformer_loss, transformer_arguments

import functrans as ft


def cases() -> list[Case]:
    """What a user waits for, each from the function to what is shown."""
    gradient = ft.value_and_grad(make_transformer_loss(ft.numpy))
    arguments = transformer_arguments()
    names = {
        "explain": lambda: ft.explain(gradient, *arguments, target="cpu"),
        "draw": lambda: ft.draw(gradient, *arguments, target="cpu"),
        "explained": ft.explain(gradient, *arguments, target="cpu"),
    }
    statements = {
        "explain": ("str(explain())", 2.0),
        "its page for a notebook": ("explained._repr_html_()", 1.0),
        "draw": ("draw().svg", 2.0),
    }
    return [Case(f"{title}: 4-block transformer's value_and_grad", {SUBJECT: Timing(code, names)},
                 bound) for title, (code, bound) in statements.items()]


def main() -> int:
    parser = argparse.ArgumentParser(description="How long explanations take.")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--no-write", action="store_true", help="leave the results file alone")
    options = parser.parse_args()
    busy = load()
    if busy > 0.5:
        print(f"The machine is busy (load {busy:.1f}): the figures will be too high.")
    rows = [measure(case, options.rounds) for case in cases()]
    print_table(rows)
    if not options.no_write:
        print(f"\nwritten: benchmarks/results/{write_results('explanations', rows, busy).name}")
    return int(not all(row.passed for row in rows))


if __name__ == "__main__":
    sys.exit(main())
