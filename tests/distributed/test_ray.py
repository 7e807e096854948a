"""Functions and exported programs on the workers of Ray give what they give here."""

import os
import sys

import numpy as np
import pytest

import functrans as ft
from tests.distributed.launch import ROOT

ray = pytest.importorskip("ray", reason="Ray is no dependency: pip install ray")
FOLDER = ROOT / "examples" / "distributed"
sys.path.append(str(FOLDER))

# what Ray and its own libraries warn of is not ours; its processes take 10 s to start
pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.thorough]


@pytest.fixture(scope="module")
def engine():
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, runtime_env={
        "env_vars": {"PYTHONPATH": str(FOLDER)}})
    yield
    ray.shutdown()


def test_parts_and_actors(engine):
    import on_ray  # noqa: PLC0415 (it imports Ray)

    shares, w, (x, y) = on_ray.main(parts=4)
    assert shares.shape == (400,)
    np.testing.assert_array_equal(shares[100:200], on_ray.estimates(1))
    assert abs(4 * shares.mean() - np.pi) < 0.05
    expected = np.zeros(4, np.float32)
    for _ in range(60):
        expected = expected - 1.0 * np.asarray(ft.grad(on_ray.loss)(expected, x, y))
    np.testing.assert_allclose(w, expected, rtol=1e-4)
    np.testing.assert_allclose(w, [0.5, -1, 0.25, 2], atol=0.2)


def test_what_a_dead_worker_had_is_run_again(engine, tmp_path):
    marker = tmp_path / "died"
    double = ft.jit(lambda x: 2 * x)

    @ray.remote
    def part(k):
        if k == 1 and not marker.exists():
            marker.touch()
            os._exit(1)
        return int(double(k))

    assert ray.get([part.remote(k) for k in range(4)]) == [0, 2, 4, 6]
    assert marker.exists()
