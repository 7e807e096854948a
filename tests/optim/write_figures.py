"""optax_figures.json, written anew by optax 0.2.8 on JAX 0.10.2.

    python -m venv /tmp/optax && /tmp/optax/bin/pip install optax==0.2.8 jax==0.10.2
    JAX_ENABLE_X64=1 /tmp/optax/bin/python -m tests.optim.write_figures

functrans is not needed there, nor used. Without 64 bits JAX would round the float64 parameters.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import optax

from tests.optim.optimizer_table import (
    CASES,
    COUNTS,
    OPTIMIZERS,
    PARAMS,
    SCHEDULES,
    STEPS,
    case_id,
    gradients,
)

PATH = Path(__file__).parent / "optax_figures.json"
DIGITS = 8


def numbers(x: Any) -> list[float]:
    """The numbers of an array in a row, a complex one as two."""
    flat = np.asarray(x).reshape(-1)
    flat = flat.view(flat.real.dtype) if np.iscomplexobj(flat) else flat
    return [float(f"{v:.{DIGITS}g}") for v in flat.astype(np.float64)]


def trained(optimizer: Any, leaves: list[str]) -> dict[str, Any]:
    params = {name: PARAMS[name] for name in leaves}
    state = optimizer.init(params)
    for step in range(STEPS):
        updates, state = optimizer.update(gradients(step, params), state, params)
        params = optax.apply_updates(params, updates)
    return params


def main() -> None:
    found = {case_id(name, leaves): trained(OPTIMIZERS[name](optax), leaves)
             for name, leaves in CASES}
    figures = {
        "optimizers": {key: {name: numbers(p) for name, p in params.items()}
                       for key, params in found.items()},
        "schedules": {name: numbers(np.array([make(optax)(k) for k in COUNTS]))
                      for name, make in SCHEDULES.items()}}
    lines = [f'"{part}": {{\n' + ",\n".join(
        f'"{key}": {json.dumps(value)}' for key, value in table.items()) + "\n}"
        for part, table in figures.items()]
    PATH.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
