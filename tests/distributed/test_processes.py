"""Several processes give what one gives: started by mpiexec, and by environment variables."""

import pytest

from tests.distributed.launch import run_by_environment, run_by_mpiexec


@pytest.mark.parametrize("count", [1, 2])
def test_laws_of_collectives_by_mpiexec(count):
    output = run_by_mpiexec(count, "-m", "tests.distributed.laws")
    assert all(f"process {rank} of {count} is well" in output for rank in range(count))


@pytest.mark.parametrize("count", [4])
def test_laws_of_collectives_by_environment(count):
    ended = run_by_environment(count, "-m", "tests.distributed.laws")
    for rank, one in enumerate(ended):
        assert one.code == 0, one.output
        assert f"process {rank} of {count} is well" in one.output
