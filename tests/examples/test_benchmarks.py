"""Every statement that the benchmarks time runs; nothing is timed here."""

import json

import bounds
import checks
import compile_time
import copy_limit
import cpu
import dynamic
import explanations
import harness
import neighbour
import numpy as np
import overheads
import profile_overheads
import pytest
from cpu_workloads import small
from cpu_workloads.entries import Peers, workloads_of

import functrans as ft

FAMILIES = (
    overheads.elementwise_cases,
    overheads.jit_cases,
    overheads.gradient_cases,
    overheads.tracing_cases,
    overheads.large_cases,
    explanations.cases,
)
CASES = [case for family in FAMILIES for case in family()]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.title)
def test_statements_run(case):
    timing = case.timings[harness.SUBJECT]
    timing.timer().timeit(1)


def test_ladder_runs():
    names = profile_overheads.program()
    for _, statement in profile_overheads.LADDER:
        exec(statement, dict(names))


class Clock:
    """A clock of a process whose other threads compute for so long."""

    def __init__(self, busy):
        self.now, self.busy = 0.0, busy

    def perf_counter(self):
        return self.now

    def process_time(self):
        return min(self.now, self.busy)

    def sleep(self, seconds):
        self.now += seconds


@pytest.mark.parametrize("busy, waited", [(0.0, 0.01), (0.045, 0.06), (60.0, 0.5)])
def test_a_round_begins_when_the_threads_of_the_one_before_sleep(monkeypatch, busy, waited):
    clock = Clock(busy)
    monkeypatch.setattr(harness, "time", clock)
    harness.await_quiet(0.01)
    assert clock.now == pytest.approx(waited, abs=0.011)


def test_a_row_is_judged_by_its_bound_or_by_a_peer():
    samples = {"functrans": [2.0, 3.0, 4.0], "numpy": [3.0, 3.0, 3.0]}
    assert harness.summarise("", samples, 3.0).passed
    assert not harness.summarise("", samples, 2.9).passed
    assert harness.summarise("", samples, "numpy").passed
    assert not harness.summarise("", samples, "numpy", slack=0.9).passed


def test_results_are_written(tmp_path, monkeypatch):
    monkeypatch.setattr(harness, "RESULTS", tmp_path)
    row = harness.summarise("title", {"functrans": [1.0, 2.0, 3.0]}, 5.0)
    record = json.loads(harness.write_results("name", [row], 0.1).read_text())
    assert record["rows"][0]["seconds"] == {"functrans": 2.0}
    assert record["rows"][0]["passed"]
    assert record["versions"]["numpy"] and "name" not in record["device"]
    path = harness.write_results("name", [row], 0.1, gpu="NVIDIA H100 80GB HBM3")
    assert path.name == "name-h100.json"
    assert json.loads(path.read_text())["device"]["name"] == "NVIDIA H100 80GB HBM3"


@pytest.mark.parametrize(
    ("seconds", "text"), [(2.0, "2 s"), (0.25, "250 ms"), (3.14e-6, "3.14 us"), (5e-9, "5 ns")]
)
def test_durations(seconds, text):
    assert harness.duration(seconds) == text


def test_import_brings_in_nothing_lazy():
    assert overheads.modules_after_import() == []


SMALL = list(workloads_of(small))


@pytest.mark.parametrize("item", SMALL, ids=lambda item: item.title)
def test_small_programs_of_the_cpu_benchmark_run(item):
    timing = item.case(Peers()).timings[harness.SUBJECT]
    timing.timer().timeit(1)
    assert all(np.isfinite(array).all() for array in timing.outcome())


def test_rows_of_the_cpu_benchmark_have_names_of_their_own():
    titles = [item.title for item in cpu.workloads()] + compile_time.TITLES + neighbour.TITLES
    assert len(titles) == len(set(titles)) > len(SMALL)


def test_bounds_come_from_what_is_measured_in_the_row():
    measured = {"functrans": 9.0, "jax": 4.0, "torch": 2.0, "copy limit": 0.5, "read limit": 0.25}
    assert bounds.Best().seconds(measured, 0) == 2.0
    assert bounds.Best(speed=2).seconds(measured, 0) == 1.0
    assert bounds.Best(time=0.5).seconds(measured, 0) == 1.0
    assert bounds.Peer("jax", 0.5).seconds(measured, 0) == 2.0
    assert bounds.Share(0.5).seconds(measured, 2 * bounds.LIMIT_BYTES) == 2.0
    assert bounds.Share(0.5, bounds.READ).seconds(measured, bounds.LIMIT_BYTES) == 0.5
    assert np.isnan(bounds.Best().seconds({"functrans": 1.0, "copy limit": 1.0}, 0))
    assert bounds.AtMost(3.0).seconds({}, 0) == 3.0


def instant(*arrays):
    """A statement that takes no time, with a result."""
    return harness.Timing("None", {}, lambda: [np.array(array, np.float32) for array in arrays])


def measured_case(subject):
    case = harness.Case("", {"functrans": subject, "numpy": instant([1, 2])}, 1.0)
    return harness.measure(case, rounds=2, seconds=0, least=2)


def test_a_right_result_passes_and_a_wrong_one_fails_however_fast():
    assert measured_case(instant([1, 2])).verdict == "pass"
    for wrong in ([1, 2.1], [1, np.nan], [[1, 2]]):
        row = measured_case(instant(wrong))
        assert not row.passed and row.verdict == "FAIL wrong"
    assert measured_case(instant([1, 2], [3])).verdict == "FAIL wrong"


def test_what_a_row_raises_is_reported_in_it():
    row = measured_case(harness.Timing("1 / 0", {}))
    assert row.verdict == "FAIL error" and "ZeroDivisionError" in row.errors["functrans"]
    assert "numpy" in row.seconds and not row.passed


def test_a_row_without_its_peer_does_not_pass():
    row = harness.summarise("", {"functrans": [1.0, 1.0]}, bounds.Best())
    assert row.verdict == "no peer" and not row.passed
    row = harness.summarise("", {"functrans": [1.0, 1.0]}, bounds.Best(), kept={"jax": 2.0})
    assert row.verdict == "pass"


def test_rows_of_earlier_runs_stay_in_the_file(tmp_path, monkeypatch):
    monkeypatch.setattr(harness, "RESULTS", tmp_path)
    rows = [harness.summarise(title, {"functrans": [1.0, 1.0]}, 5.0) for title in "ab"]
    harness.write_results("name", rows, 0.0)
    later = harness.summarise("a", {"functrans": [2.0, 2.0]}, 5.0)
    harness.write_results("name", [later], 0.0, list(harness.read_results("name").values()))
    found = harness.read_results("name")
    assert [found[title]["seconds"]["functrans"] for title in "ab"] == [2.0, 1.0]


def test_limits_move_bytes():
    for call in copy_limit.limits().values():
        call()


def test_one_program_for_several_batch_sizes():
    seconds, programs = dynamic.calls(ft, *dynamic.arrays(range(2, 6)))
    assert len(seconds) == 4
    assert programs == 1


def test_checked_programs_give_what_the_others_do():
    gradient, arguments = checks.cpu_programs()["MLP of 12 layers of 64, batch 32"]
    arrays = ft.tree.map(ft.numpy.asarray, arguments)
    found, wanted = ft.checked(gradient)(*arrays), ft.jit(gradient)(*arrays)
    assert ft.tree.all(ft.tree.map(lambda a, b: np.allclose(a, b, atol=1e-5), found, wanted))


@pytest.mark.parametrize("name", dynamic.GPU_KERNELS)
def test_programs_of_named_sizes_for_gpus_run(name):
    fun, shapes, names = dynamic.GPU_KERNELS[name]
    run = ft.jit(lambda *args: fun(ft, *args), dynamic_shapes=names)
    x = np.random.default_rng(0).standard_normal((6, 6)).astype("f")
    assert run(*[x for _ in shapes]).shape == (6, 6)
