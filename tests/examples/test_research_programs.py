"""The suite of whole programs: all of them run, and the table says what happened."""

import json
import math
import os
import signal
import subprocess
import sys
from pathlib import Path

import complex_programs
import held_programs
import numpy as np
import ordinary_programs
import program_rows
import program_supervisor
import program_worker
import programs
import pytest

import functrans as ft

ROOT = Path(__file__).parents[2]
NAMES = programs.names()
SUITES = [(suite, name) for suite in (programs, complex_programs, ordinary_programs,
                                       held_programs)
          for name in suite.names()]
of_suites = pytest.mark.parametrize(("suite", "name"), SUITES,
                                    ids=lambda x: getattr(x, "__name__", x))
QUICK = ("--size", "tiny", "--quick", "--no-peers", "--only", "message_passing")


@pytest.mark.one_in(5)
@of_suites
def test_programs_run(suite, name):
    step, arguments = suite.make(name, ft, "tiny")
    results = [np.asarray(x) for x in ft.tree.leaves(ft.jit(step)(*arguments))]
    assert results
    assert all(np.isfinite(x).all() for x in results)
    assert any(x.any() for x in results)


@of_suites
def test_programs_are_what_the_suite_asks_for(suite, name):
    program = suite.load(name)
    assert program.__doc__.splitlines()[0].endswith(".") and program.FIELD
    assert list(program.SIZES) == ["tiny", "small", "large"]
    assert len({tuple(size) for size in program.SIZES.values()}) == 1
    assert len(Path(program.__file__).read_text().splitlines()) <= 100
    _, arguments = suite.make(name, ft, "tiny")
    _, again = suite.make(name, ft, "tiny")
    for x, y in zip(ft.tree.leaves(arguments), ft.tree.leaves(again), strict=True):
        assert isinstance(x, np.ndarray | np.generic)
        assert x.dtype.itemsize <= (8 if x.dtype.kind == "c" else 4)
        np.testing.assert_array_equal(x, y)


def test_programs_import_no_library():
    code = f"""import sys, programs, complex_programs, ordinary_programs, held_programs
for name in {NAMES}: programs.load(name)
for name in {complex_programs.names()}: complex_programs.load(name)
for name in {ordinary_programs.names()}: ordinary_programs.load(name)
for name in {held_programs.names()}: held_programs.load(name)
print('jax' in sys.modules, 'functrans' in sys.modules)"""
    found = subprocess.run([sys.executable, "-c", code], cwd=ROOT / "benchmarks", text=True,
                           capture_output=True, check=True)  # fmt: skip
    assert found.stdout.split() == ["False", "False"]


def test_tolerances():
    assert programs.tolerance("message_passing", "cpu") == programs.TOLERANCES["cpu"]
    assert programs.tolerance("message_passing", "gpu") == programs.TOLERANCES["gpu"]
    assert programs.tolerance("language_model", "cpu") > programs.TOLERANCES["cpu"]


def test_results_are_compared_in_norm():
    compare = program_supervisor.compare
    a = np.array([3.0, 4.0], np.float32)
    assert compare([a], [a]) == (0.0, "")
    assert compare([a, a + np.float32(0.5)], [a, a])[0] == pytest.approx(math.sqrt(0.5) / 5)
    assert compare([1j * a], [a])[0] == pytest.approx(math.sqrt(2))
    assert "2 results instead of 1" in compare([a, a], [a])[1]
    assert "shape (2,) instead of (1,)" in compare([a], [a[:1]])[1]
    assert "of functrans is not finite" in compare([a * np.nan], [a])[1]
    assert "of jax is not finite" in compare([a], [a * np.inf])[1]


def test_results_far_from_each_other_are_compared_with_exact_ones():
    exact, off = np.array([3.0, 4.0]), np.array([0.0, 0.5])
    error, reason, said = program_supervisor.judged([exact + off], [exact - off], [exact], 1e-2)
    assert error == pytest.approx(0.1) and not reason and "jax 1.0e-01" in said
    _, reason, _ = program_supervisor.judged([exact + 2 * off], [exact + off], [exact], 1e-2)
    assert "2.0e-01" in reason
    assert not program_supervisor.judged([exact + 2 * off], [exact], [exact], 0.3)[1]


def test_a_program_of_narrow_numbers_in_float32():
    lib = program_worker.InFloat32(ft)
    assert lib.numpy.ones(2, lib.numpy.bfloat16).dtype == np.float32
    assert lib.numpy.ones(2, lib.numpy.int8).dtype == np.int8
    assert lib.nn is ft.nn


def test_a_program_without_tensor_float_32(tmp_path):
    bench = program_worker.Bench("functrans", tmp_path, programs.FOLDER)
    bench.take("message_passing", "tiny")
    with np.load(bench.exact("message_passing", "tiny")["results"]) as file:
        exact = [file[key] for key in file.files]
    assert program_supervisor.compare(bench.arrays(bench.run(*bench.arguments)), exact)[0] < 1e-5


def row(subject=1.0, peer=1.0, **errors):
    return program_rows.ProgramRow(
        "title", "field", "small", {"functrans": 2.0, "jax": 1.0},
        {"functrans": subject, "jax": peer}, errors=errors)  # fmt: skip


def test_verdicts():
    assert row().verdict == row(1.04).verdict == "pass"
    assert row(1.06).verdict == "slower"
    assert row(functrans="wrong").verdict == "FAIL"
    assert row(jax="cannot").verdict == "no peer"
    assert program_rows.ProgramRow("", "", "", {}, {"jax": 1.0}).verdict == "FAIL"


def test_summary(capsys):
    program_rows.print_summary([row(0.5), row(2.0), row(functrans="wrong")])
    text = capsys.readouterr().out
    assert "a call: geometric mean 1.000" in text and "first call: geometric mean 2.000" in text
    assert "failed: title" in text


def test_rows_of_other_programs_stay_in_the_file(tmp_path):
    path = tmp_path / "programs.json"
    beside = [{"title": "other", "size": "small"}, {"title": "title", "size": "small"}]
    program_rows.write(path, [row(0.5)], "", {}, 0.25, beside)
    first, second = program_rows.earlier_rows(path)
    assert first == beside[0] and second["seconds"]["functrans"] == 0.5
    assert second["verdict"] == "pass" and second["error"] is None
    assert json.loads(path.read_text())["geometric_means"] == {"first": 2.0, "seconds": 0.5}


def command(*arguments, **environment):
    return subprocess.run(
        [sys.executable, ROOT / "benchmarks" / "programs.py", *arguments], text=True,
        capture_output=True, env=os.environ | environment)  # fmt: skip


def test_the_table(tmp_path):
    path = tmp_path / "programs.json"
    done = command(*QUICK, "--out", str(path))
    assert done.returncode == 0, done.stderr
    assert "1 of 1 programs" in done.stdout
    record = json.loads(path.read_text())
    (found,) = record["rows"]
    assert found["title"] == "message_passing" and found["verdict"] == "no peer"
    assert 0 < found["seconds"]["functrans"] < found["first"]["functrans"]
    assert record["versions"]["functrans"]["numpy"]


def test_the_table_of_a_file(tmp_path):
    path = tmp_path / "programs.json"
    program_rows.write(path, [row(0.5, functrans="wrong")], "", {}, 0.0, [])
    (found,) = map(program_rows.from_record, program_rows.earlier_rows(path))
    assert math.isnan(found.error) and found.remarks == ["functrans: wrong"]
    shown = command("--show", str(path)).stdout
    assert "title" in shown and "0.50" in shown and "FAIL" in shown


def test_programs_that_are_not_run_are_listed():
    done = command(*QUICK, "--budget", "0")
    assert done.returncode == 1 and "message_passing not run: 0 s are over" in done.stdout


def test_a_gpu_that_is_not_there_is_missed():
    done = command(*QUICK, "--gpu", CUDA_VISIBLE_DEVICES="")
    assert done.returncode == 1 and "functrans has no GPU here" in done.stderr


def test_programs_are_listed():
    assert "message_passing" in command("--list").stdout


def test_a_process_that_ends_is_replaced():
    with program_supervisor.started(False, {"functrans": sys.executable}) as workers:
        worker = workers["functrans"]
        worker.start()
        with pytest.raises(program_supervisor.WorkerError, match="No module named"):
            worker.ask("first", 60, program="nothing", size="tiny")
        os.kill(worker.process.pid, signal.SIGKILL)
        limits = program_supervisor.Limits(60.0, math.inf, 2)
        lost = program_supervisor.measure("message_passing", "tiny", "cpu", workers, limits)
        assert lost.verdict == "FAIL" and "ended with status -9" in lost.errors["functrans"]
        again = program_supervisor.measure("message_passing", "tiny", "cpu", workers, limits)
        assert again.verdict == "no peer" and not again.errors
        with pytest.raises(program_supervisor.WorkerLost, match="no result within 0 s"):
            worker.ask("first", 0.0, program="message_passing", size="tiny")
        assert worker.process is None
