"""Several processes give what one gives: started by mpiexec, and by environment variables."""

import numpy as np
import pytest

import functrans as ft
from functrans.sharding import NamedSharding, P
from tests.distributed.launch import is_open_mpi, mpiexec, run_by_environment, run_by_mpiexec
from tests.sharding.meshes import mesh_of


@pytest.mark.parametrize("count", [pytest.param(1, marks=pytest.mark.thorough), 2])
def test_laws_by_mpiexec(count, tmp_path):
    output = run_by_mpiexec(count, "-m", "tests.distributed.laws", str(tmp_path))
    assert all(f"process {rank} of {count} is well" in output for rank in range(count))
    # and what they saved is read by one process, on another number of devices
    x = np.arange(24.0).reshape(6, 4)
    rows = NamedSharding(mesh_of(4), P("a"))
    found = ft.weights.load_parts(tmp_path, {
        "rows": ft.ShapeDtypeStruct((4, 4), "float64", sharding=rows),
        "columns": ft.ShapeDtypeStruct((6, 4), "float64"),
        "whole": ft.ShapeDtypeStruct((4,), "float64"), "step": ft.ShapeDtypeStruct((), "int32")})
    assert found["rows"].sharding == rows
    np.testing.assert_array_equal(found["rows"], x[:4])
    np.testing.assert_array_equal(found["columns"], x)
    np.testing.assert_array_equal(found["whole"], x[0])
    assert int(found["step"]) == 7


def test_laws_by_environment():
    ended = run_by_environment(4, "-m", "tests.distributed.laws")
    if is_open_mpi(mpiexec()[0]):  # which comes up by its launcher alone
        for one in ended:
            assert one.code == 1
            assert "MPI has to be MPICH, and here is Open MPI" in one.output, one.output
        return
    for rank, one in enumerate(ended):
        assert one.code == 0, one.output
        assert f"process {rank} of 4 is well" in one.output
