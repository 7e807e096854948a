"""Runs the recipes of examples/distributed/ on all devices there are, and stores what they give.

    mpiexec -n 2 python -m tests.distributed.recipes FOLDER [names]
"""

import importlib
import sys
from pathlib import Path

import numpy as np

import functrans as ft

FOLDER = Path(__file__).parents[2] / "examples" / "distributed"
RECIPES = ("data_parallel", "fully_sharded", "tensor_parallel", "pipeline", "expert_parallel",
           "ring_attention", "dpsgd_over_ranks", "embedding_rows")
# what a device has one of
COUNTED = {"pipeline": "layers", "expert_parallel": "experts"}


def results(name, mesh, count=None):
    """The numbers of a recipe, leaf by leaf."""
    if str(FOLDER) not in sys.path:
        sys.path.append(str(FOLDER))
    train = importlib.import_module(name).train
    more = {COUNTED[name]: count or mesh.size} if name in COUNTED else {}
    return [np.asarray(x) for x in ft.tree.leaves(train(mesh, **more))]


def main():
    ft.distributed.initialize()
    mesh = ft.make_mesh((ft.device_count("cpu"),), ("x",), devices=ft.devices("cpu"))
    for name in sys.argv[2:] or RECIPES:
        found = results(name, mesh)
        if ft.process_index() == 0:
            np.savez(Path(sys.argv[1]) / f"{name}.npz", *found)


if __name__ == "__main__":
    main()
