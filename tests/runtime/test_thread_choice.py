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
    "a little faster each time": np.array([1, 0.9, 0.8, 0.71, 0.63]),
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
    """A function that runs a new loop, or the last again; the threads of each run."""

    def run(times, runs, estimate=100_000, again=False, sound=True, noise=0.02):
        loop.number += not again
        used = np.zeros(runs, np.int32)
        simulated.simulated_loop(
            loop.number, estimate, pointer(np.asarray(times, float)), THREADS, runs, int(sound),
            ctypes.c_double(noise), loop.number, pointer(used))  # fmt: skip
        return used

    return run


loop.number = 0


def pointer(array):
    return array.ctypes.data_as(ctypes.c_void_p)


def fewest(times):
    """The fewest threads that are a twentieth slower than the fastest at most.

    Of short loops those of which half would take a tenth longer.
    """
    if times[0] < 2e5:
        return LEVELS[np.argmin(times * 1.1 ** np.arange(len(times)))]
    return LEVELS[np.argmax(times <= 1.05 * times.min())]


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
    assert np.all(loop(times, 500) == 1)
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
    assert chosen == fewest(times)
    assert late.mean() <= 1.02 * np.median(late), "no more than a fiftieth is lost to trials"


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("before", "after"), [(1, 7000), (60, 7000), (7000, 50), (7000, 1)])
def test_a_loop_that_changed_is_soon_measured_anew(loop, before, after, shape):
    on = np.median(loop(SHAPES[shape] * before * 1000, 300)[-50:])
    times, late = SHAPES[shape] * after * 1000, 2 if on == 1 else 8
    used = loop(times, 60, again=True)
    fresh = loop(times, 60 - late)
    assert np.median(used[30:]) == np.median(fresh[30:])
    assert spent(times, used).sum() <= 1.1 * spent(times, fresh).sum() + late * times.max()


def test_one_run_that_took_long_changes_nothing(loop):
    fast = SHAPES["best on 4"] * 100_000
    loop(fast, 300)
    for _ in range(20):
        loop(fast * 10, 1, again=True)
        assert np.median(loop(fast, 20, again=True)) == 4


def test_a_loop_with_data_in_caches_and_in_memory_is_seldom_measured_anew(loop):
    slow, fast = SHAPES["ideal"] * 1e6, SHAPES["ideal"] * 2e5
    loop(slow, 100)
    used = np.concatenate([loop(times, 4, again=True)
                           for _ in range(500) for times in (fast, slow)])  # fmt: skip
    assert np.mean(used == THREADS) > 0.95


@pytest.mark.parametrize("estimate", [100_000, 10_000_000])
def test_a_loop_on_more_threads_than_cores_leaves_them(loop, estimate):
    crowded = np.array([8e5, 5e5, 26e6, 26e6, 26e6])
    used = loop(crowded, 1000, estimate, sound=False)
    assert np.sum(used > 2) <= 12, "a few runs are on too many threads, ever"
    assert spent(crowded, used[20:]).mean() < 1.1 * crowded[0]
    free = SHAPES["ideal"] * 8e5
    used = loop(free, 8000, estimate, again=True)
    assert used[-1] == THREADS, "which are tried again when the CPUs are free"


@pytest.mark.parametrize("microseconds", [100, 1000, 5000])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_trial_on_more_threads_is_repeated_when_they_are_awake(simulated, shape, microseconds):
    """The first runs on all threads were slow, and each that wakes some is: they are found."""
    times, used = SHAPES[shape] * microseconds * 1000, np.zeros(600, np.int32)
    loop.number += 1
    simulated.simulated_waking_loop(
        loop.number, pointer(times), ctypes.c_double(80_000), THREADS, 4, len(used),
        ctypes.c_double(0.02), loop.number, pointer(used))  # fmt: skip
    assert np.median(used[-200:]) == fewest(times)


@pytest.mark.parametrize("shape", SHAPES)
def test_trials_of_loops_and_programs_become_rare(loop, program, shape):
    for used in (loop(SHAPES[shape] * 3e5, 20000), program(SHAPES[shape] * 1e6, 20000)):
        early, late = used[1000:3000], used[-2000:]
        usual = np.median(late)
        assert np.sum(late != usual) <= 20 and np.sum(late != usual) <= np.sum(early != usual)


def test_more_threads_have_to_gain_a_twentieth(program):
    times = np.array([1, 0.985, 0.99, 0.98, 0.985]) * 1e6
    assert np.median(program(times, 300)[100:]) == 1
    assert np.median(program(times * np.array([1, 0.9, 1, 1, 1]), 300)[-100:]) == 2


@pytest.mark.parametrize("microseconds", [12, 30, 60])
@pytest.mark.parametrize("threads", [2, 4, 16])
def test_loops_that_share_data_find_what_pays_all_of_them(simulated, threads, microseconds):
    loops, levels = 50, LEVELS[: threads.bit_length()]
    times = (0.1 + 0.9 / levels) * microseconds * 1000 + 500 * np.log2(levels)
    made, taken = simulated.new_program(), np.zeros(200)
    simulated.simulated_loops(
        ctypes.c_void_p(made), 10_000 * (threads + 100 * microseconds), loops, pointer(times),
        ctypes.c_double(3000), threads, len(taken), ctypes.c_double(0.02), threads,
        pointer(taken))  # fmt: skip
    simulated.delete_program(made)
    together = loops * times[levels == fewest(times)][0]
    assert np.median(taken[-100:]) <= 1.06 * together
