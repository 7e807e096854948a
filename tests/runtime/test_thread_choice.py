"""How many threads loops and programs get, by simulated times: the best, at a bounded cost."""

import ctypes
import subprocess
from pathlib import Path

import numpy as np
import pytest

HERE = Path(__file__).parent
THREADS = 16
LEVELS = 2 ** np.arange(5)
SHAPES = {
    "ideal": 1 / LEVELS,
    "flat": np.ones(5),
    "shared memory": np.maximum(1 / LEVELS, 0.3),
    "slower at once": np.array([1, 1.3, 1.5, 1.7, 2.0]),
    "best on 4": np.array([1, 0.6, 0.4, 0.5, 0.7]),
    "best on 8": np.array([1, 0.7, 0.45, 0.3, 0.4]),
    "only all are worth it": np.array([1, 0.9, 0.7, 0.5, 0.35]),
}


@pytest.fixture(scope="module")
def simulated(tmp_path_factory):
    """The choices of the runtime, compiled apart, with times that are given."""
    path = tmp_path_factory.mktemp("threads") / "simulated_threads.so"
    subprocess.run(["c++", "-std=gnu++17", "-O1", "-shared", "-fPIC",
                    str(HERE / "simulated_threads.cpp"), "-o", path], check=True)  # fmt: skip
    made = ctypes.CDLL(str(path))
    made.new_program.restype = ctypes.c_void_p
    made.delete_program.argtypes = [ctypes.c_void_p]
    return made


@pytest.fixture
def program(simulated):
    """A function that runs one program so often; the threads of each run."""
    made = simulated.new_program()

    def run(times, runs, noise=0.02, varies=0, seed=0, threads=THREADS):
        used = np.zeros(runs, np.int32)
        simulated.simulated_program(
            ctypes.c_void_p(made), pointer(np.asarray(times, float)), threads, runs, varies,
            ctypes.c_double(noise), seed, pointer(used))  # fmt: skip
        return used

    yield run
    simulated.delete_program(made)


@pytest.fixture
def loop(simulated):
    """A function that runs a new loop so often; the threads of each run."""

    def run(times, runs, estimate):
        loop.number += 1
        used = np.zeros(runs, np.int32)
        simulated.simulated_loop(
            loop.number, estimate, pointer(np.asarray(times, float)), THREADS, runs,
            ctypes.c_double(0.02), loop.number, pointer(used))  # fmt: skip
        return used

    return run


loop.number = 0


def pointer(array):
    return array.ctypes.data_as(ctypes.c_void_p)


def spent(times, used):
    """What runs take without noise."""
    return np.asarray(times)[np.log2(used).astype(int)]


@pytest.mark.parametrize("scale", [1e6, 5e7])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_program_settles_on_the_fewest_threads_that_are_fastest(program, shape, scale):
    times = SHAPES[shape] * scale
    used = program(times, 4000)
    late = spent(times, used[100:])
    assert late.mean() <= 1.02 * times.min() * 1.02, "no more than a fiftieth is lost to trials"
    assert np.median(used[100:]) == LEVELS[np.argmin(times)]


@pytest.mark.parametrize("shape", SHAPES)
def test_the_first_trials_of_a_long_program_cost_a_few_runs(program, shape):
    times = SHAPES[shape]
    used = program(times * 5e7, 40)
    best = np.minimum.accumulate(spent(times, used))  # all threads, until fewer are known
    assert np.sum(spent(times, used) / best - 1) <= 8


@pytest.mark.parametrize("shape", SHAPES)
def test_noise_costs_a_program_little(program, shape):
    times = SHAPES[shape] * 1e6
    lost = [spent(times, program(times, 1000, noise=0.1, seed=s)[200:]).mean() / times.min()
            for s in range(5)]  # fmt: skip
    assert np.median(lost) < 1.06


def test_a_program_that_grows_begins_anew(program):
    assert np.median(program(SHAPES["flat"] * 1e5, 200)[-50:]) == 1
    assert np.median(program(SHAPES["ideal"] * 1e7, 200)[-50:]) == THREADS


def test_runs_that_differ_are_not_compared(program):
    assert np.all(program(SHAPES["slower at once"] * 1e6, 500, varies=2) == THREADS)
    assert np.all(program(SHAPES["slower at once"] * 1e6, 500, noise=3.0)[:12] == THREADS)


def test_one_thread_is_one(program):
    assert np.all(program([1e6], 50, threads=1) == 1)


def test_a_number_of_threads_that_is_no_power_of_two(program):
    assert np.median(program([1e6, 6e5, 4e5, 3e5], 300, threads=6)[-50:]) == 6
    assert np.median(program([1e6, 6e5, 4e5, 5e5], 300, threads=6)[-50:]) == 4


@pytest.mark.parametrize("microseconds", [0.5, 5, 9])
def test_a_loop_below_the_threshold_takes_one_thread(loop, microseconds):
    times = SHAPES["ideal"] * microseconds * 1000
    assert np.all(loop(times, 500, estimate=100_000) == 1)
    used = loop(times, 500, estimate=10_000_000)
    assert np.all(used[1:] == 1), "an estimate counts until the first run is done"


@pytest.mark.parametrize("estimate", [100_000, 10_000_000])
@pytest.mark.parametrize("microseconds", [50, 150, 3000])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_loop_takes_the_threads_that_pay(loop, shape, microseconds, estimate):
    times = SHAPES[shape] * microseconds * 1000
    used = loop(times, 4000, estimate)
    late = spent(times, used[100:])
    chosen = np.median(used[100:])
    # the fewest threads of which half would take a tenth longer
    assert chosen == LEVELS[np.argmin(times * 1.1 ** np.arange(5))]
    assert late.mean() <= 1.02 * np.median(late), "no more than a fiftieth is lost to trials"
