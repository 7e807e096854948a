"""Every statement that the benchmarks time runs; nothing is timed here."""

import json

import harness
import overheads
import profile_overheads
import pytest

FAMILIES = (
    overheads.elementwise_cases,
    overheads.jit_cases,
    overheads.gradient_cases,
    overheads.tracing_cases,
    overheads.large_cases,
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
    assert record["versions"]["numpy"]


@pytest.mark.parametrize(
    ("seconds", "text"), [(2.0, "2 s"), (0.25, "250 ms"), (3.14e-6, "3.14 us"), (5e-9, "5 ns")]
)
def test_durations(seconds, text):
    assert harness.duration(seconds) == text


def test_import_brings_in_nothing_lazy():
    assert overheads.modules_after_import() == []
