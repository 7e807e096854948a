"""Functions on the workers of Dask give what they give here, and outlive a worker."""

import os
import sys

import cloudpickle
import numpy as np
import pytest

import functrans as ft
from tests.distributed.launch import ROOT

sys.path.append(str(ROOT / "examples" / "distributed"))

# what Dask and its own libraries warn of is not ours
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def client():
    from dask.distributed import Client, LocalCluster  # noqa: PLC0415 (it takes a second)

    with LocalCluster(n_workers=4, threads_per_worker=1, dashboard_address=None) as cluster, \
            Client(cluster) as found:
        yield found


@pytest.mark.thorough  # four workers compile three programs each: 10 s of one core
def test_chains_sweep_and_statistics(client):
    import on_dask  # noqa: PLC0415 (it imports Dask)

    cloudpickle.register_pickle_by_value(on_dask)  # as a script's functions are
    means, losses, found, (w, x, y) = on_dask.main(client)
    assert means.shape == (1000, 2)
    np.testing.assert_array_equal(means[250:375], on_dask.chains(2))
    assert len(np.unique(means, axis=0)) == 1000
    np.testing.assert_allclose(means.mean(0), [0, 1], atol=0.15)
    assert len(losses) == 12
    rate = min(losses, key=losses.get)
    assert losses[rate] == float(on_dask.trained(rate, w, x[:200], y[:200]))
    gradients = ft.vmap(ft.grad(on_dask.loss), (None, 0, 0))(w, x, y)
    np.testing.assert_allclose(found, np.linalg.norm(gradients, axis=1), rtol=1e-4)


def test_what_a_dead_worker_had_is_run_again(client, tmp_path):
    marker = tmp_path / "died"
    double = ft.jit(lambda x: 2 * x)

    def part(k):
        if k == 3 and not marker.exists():
            marker.touch()
            os._exit(1)
        return int(double(k))

    assert client.gather(client.map(part, range(8), pure=False)) == [2 * k for k in range(8)]
    assert marker.exists()
