"""edges_of_jax.json, written anew: `JAX_ENABLE_X64=1 python -m tests.transforms.write_edges jax`.

The argument is the module that has the functions. JAX 0.10.2 has to be installed for it; functrans
is not needed there, nor used.
"""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path

import numpy as np

from tests.transforms.edge_table import CASES, derivatives

PATH = Path(__file__).parent / "edges_of_jax.json"


def main() -> None:
    module = importlib.import_module(sys.argv[1])
    lines = []
    for name in CASES:
        figures = {part: [float(f"{v:.12g}") for v in np.asarray(value).reshape(-1)]
                   for part, value in derivatives(module, name).items()}
        lines.append(f"{json.dumps(name)}: {json.dumps(figures)}")
    PATH.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
