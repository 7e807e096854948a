"""Programs of `to_c`, built for a machine by the commands in their headers, and called there."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import functrans as ft
from functrans.export import to_c
from tests.portable.machines import Executable, Machine

NAME = "exported_function"


def build(machine: Machine, fun: Callable[..., Any], specs: Sequence[Any], folder: Path,
          sizes: int = 0, openmp: bool = False) -> Executable:
    """The program of `fun` as the function NAME."""
    header = to_c(fun, list(specs), folder, name=NAME, isa=machine.isa.name)
    commands = [line[2:].split() for line in header.read_text().splitlines() if "   cc " in line]
    arrays = len(ft.tree.leaves(tuple(specs))) + len(ft.tree.leaves(ft.eval_shape(fun, *specs)))
    functions = {NAME: "i" * sizes + "p" * arrays + "r"}
    (folder / "yours.c").write_text(f'#include "{NAME}.h"\n' + Executable.driver(functions))
    target = (folder / "main").with_suffix(machine.suffix)
    for _, *words in commands:
        command = [*machine.compiler, "-Werror=incompatible-pointer-types", *words]
        command = [w for w in command if openmp or w != "-fopenmp"]
        command += ["-o", str(target)] if "yours.c" in words else []
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        assert done.returncode == 0, f"{' '.join(command)}\n{done.stderr[-4000:]}"
    return Executable(machine, functions, target)


def run(machine: Machine, fun: Callable[..., Any], args: Sequence[Any], folder: Path,
        openmp: bool = False) -> list[np.ndarray]:
    """The leaves of its results for these arguments."""
    outs = [np.empty(x.shape, x.dtype) for x in ft.tree.leaves(ft.eval_shape(fun, *args))]
    inputs = [np.asarray(x) for x in ft.tree.leaves(tuple(args))]
    with build(machine, fun, args, folder, openmp=openmp) as there:
        assert there.call(NAME, *inputs, *outs) == 0
    return outs
