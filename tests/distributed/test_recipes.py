"""The recipes give on several devices what they give on one, in threads and in processes."""

import numpy as np
import pytest

import functrans as ft
from tests.distributed.launch import run_by_mpiexec
from tests.distributed.recipes import RECIPES, results
from tests.sharding.meshes import mesh_of


def mesh_called_x(count):
    return ft.make_mesh((count,), ("x",), devices=list(mesh_of(count).ranks))


@pytest.mark.parametrize("name", RECIPES)
def test_four_devices_give_what_one_gives(name):
    expected, found = results(name, mesh_called_x(1), 4), results(name, mesh_called_x(4))
    assert len(found) == len(expected) > 1
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-9)


SOME = ("pipeline", "dpsgd_over_ranks")


@pytest.mark.parametrize("names", [SOME, pytest.param(RECIPES, marks=pytest.mark.thorough)],
                         ids=["some", "all"])
def test_two_processes_give_what_one_gives(names, tmp_path):
    run_by_mpiexec(2, "-m", "tests.distributed.recipes", str(tmp_path), *names)
    for name in names:
        stored = np.load(tmp_path / f"{name}.npz")
        expected = results(name, mesh_called_x(1), 2)
        assert len(stored.files) == len(expected)
        for key, b in zip(stored.files, expected, strict=True):
            np.testing.assert_allclose(stored[key], b, rtol=1e-6, atol=1e-9)
