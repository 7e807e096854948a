"""Whether scatters make lists of rows, by simulated times: the faster way, at a bounded cost."""

import ctypes
import subprocess
from pathlib import Path

import numpy as np
import pytest

HERE = Path(__file__).parent
RUNS = 3000


@pytest.fixture(scope="module")
def lists(tmp_path_factory):
    """A function that runs a new scatter so often; whether each run made lists."""
    path = tmp_path_factory.mktemp("lists") / "simulated_lists.so"
    subprocess.run(["c++", "-std=gnu++17", "-O1", "-shared", "-fPIC",
                    str(HERE / "simulated_lists.cpp"), "-o", path], check=True)  # fmt: skip
    made = ctypes.CDLL(str(path))

    def run(threads, walk, listed, runs=RUNS):
        run.number += 1
        used = np.zeros(runs, np.int32)
        made.simulated_lists(ctypes.c_uint64(run.number), threads, ctypes.c_int64(walk),
                             ctypes.c_int64(listed), runs,
                             used.ctypes.data_as(ctypes.c_void_p))  # fmt: skip
        return used.astype(bool)

    run.number = 0
    return run


@pytest.mark.parametrize("threads", [3, 8, 16])
@pytest.mark.parametrize("walk, listed", [(1000, 200), (200, 1000), (1000, 850)])
def test_the_faster_way_is_kept(lists, threads, walk, listed):
    used = lists(threads, walk, listed)
    faster = listed < walk
    assert (used[24:] == faster).mean() > 0.99


@pytest.mark.parametrize("threads", [3, 16])
@pytest.mark.parametrize("slower", [2, 5])
def test_trials_of_the_slower_way_cost_little(lists, threads, slower):
    for walk, listed in ((1000, 1000 * slower), (1000 * slower, 1000)):
        used = lists(threads, walk, listed)
        took = np.where(used, listed, walk).sum()
        assert took < (1 + 0.015 * slower) * RUNS * min(walk, listed)


def test_lists_have_to_be_faster_by_a_tenth(lists):
    assert not lists(16, 1000, 950)[24:256].any()
    assert lists(16, 1000, 900)[24:256].all()


def test_many_threads_begin_with_lists(lists):
    assert lists(8, 1000, 1000, 1)[0]
    assert not lists(7, 1000, 1000, 1)[0]
