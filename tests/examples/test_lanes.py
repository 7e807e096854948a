"""Programs over lanes: functrans gives what was written by hand, and the table says how fast."""

import ctypes
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import by_hand
import lane_rows
import lanes
import numpy as np
import program_supervisor
import pytest

import functrans as ft

ROOT = Path(__file__).parents[2]
CUDA_ON_CPU = r"""
#include <math.h>
#include <string.h>
#define __CUDACC__
#define __device__
#define __global__
#define __forceinline__ inline
#define __launch_bounds__(threads)
#define __ldg(pointer) (*(pointer))
#define __popc __builtin_popcount
#define rsqrtf(x) (1 / sqrtf(x))
static struct { int x; } blockIdx, threadIdx;
static unsigned __funnelshift_l(unsigned low, unsigned high, int n) {
    return high << n | low >> (32 - n);
}
static float __uint_as_float(unsigned x) { float y; memcpy(&y, &x, 4); return y; }
extern "C" void be(int block, int thread) { blockIdx.x = block; threadIdx.x = thread; }
"""
NAMES = lanes.names()
COMPILER = shutil.which(by_hand.compiler()) is not None
needs_compiler = pytest.mark.skipif(not COMPILER, reason="needs a C++ compiler")


def results_and_arguments(name):
    step, arguments = lanes.make(name, ft, "tiny")
    return [np.asarray(x) for x in ft.tree.leaves(ft.jit(step)(*arguments))], arguments


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", NAMES)
def test_results_are_what_the_program_says(name):
    """One shape and dtype for each result, in the order of `outputs`, and something in it."""
    sizes = lanes.load(name).SIZES["tiny"]
    results, _ = results_and_arguments(name)
    said = lanes.load(name).outputs(**sizes)
    assert [(x.shape, x.dtype) for x in results] == [(s, np.dtype(d)) for s, d in said]
    assert all(np.isfinite(x).all() and x.any() for x in results)


@pytest.fixture
def compiled_quickly(monkeypatch):
    flags = tuple(f.replace("-O3", "-O1") for f in by_hand.FLAGS)
    monkeypatch.setattr(by_hand, "FLAGS", flags)


@needs_compiler
@pytest.mark.one_in(5)
@pytest.mark.parametrize("name", NAMES)
def test_functrans_gives_what_was_written_by_hand(name, tmp_path, compiled_quickly):
    results, arguments = results_and_arguments(name)
    program = lanes.load(name)
    run = by_hand.compiled(program, program.SIZES["tiny"], arguments, tmp_path, gpu=False)
    error, reason = program_supervisor.compare(results, run(), "by hand")
    assert not reason and error <= lanes.tolerance(name, "cpu")


@needs_compiler
@pytest.mark.one_in(5)
@pytest.mark.parametrize("name", NAMES)
def test_functrans_gives_what_the_text_for_a_gpu_says(name, tmp_path, compiled_quickly):
    """Thread after thread of it runs on the CPU."""
    results, arguments = results_and_arguments(name)
    program = lanes.load(name)
    sizes = program.SIZES["tiny"]
    text = CUDA_ON_CPU + by_hand.source(program, sizes, arguments, gpu=True)
    thread = by_hand.entry_of(text, tmp_path)
    be = ctypes.CDLL(str(next(tmp_path.glob("*.so")))).be
    found = [np.zeros(shape, dtype) for shape, dtype in program.outputs(**sizes)]
    arrays = [*(np.ascontiguousarray(x) for x in arguments), *found]
    pointers = [ctypes.c_void_p(x.ctypes.data) for x in arrays]
    for lane in range(by_hand.lanes_of(program, sizes)):
        be(*divmod(lane, by_hand.BLOCK))
        thread(*pointers)
    error, reason = program_supervisor.compare(results, found, "by hand")
    assert not reason and error <= lanes.tolerance(name, "cpu")


@pytest.mark.parametrize("name", NAMES)
def test_programs_are_what_the_suite_asks_for(name):
    program = lanes.load(name)
    assert program.__doc__.splitlines()[0].endswith(".") and program.FIELD
    assert list(program.SIZES) == ["tiny", "small", "large"]
    assert len({tuple(size) for size in program.SIZES.values()}) == 1
    assert all(by_hand.lanes_of(program, sizes) % 64 == 0 for sizes in program.SIZES.values())
    _, arguments = lanes.make(name, by_hand.NoLibrary(), "tiny")
    _, again = lanes.make(name, ft, "tiny")
    for x, y in zip(arguments, again, strict=True):
        assert x.dtype.name in by_hand.TYPES and (x.flags.c_contiguous or not x.ndim)
        np.testing.assert_array_equal(x, y)


def test_the_text_for_a_gpu_has_a_thread_for_each_lane():
    program = lanes.load("lorenz")
    _, arguments = lanes.make("lorenz", by_hand.NoLibrary(), "tiny")
    text = by_hand.source(program, program.SIZES["tiny"], arguments, gpu=True)
    assert "#define LANES 64" in text and "#define STEPS 10" in text
    assert "const float *__restrict__ a1, float *__restrict__ r0) {" in text
    assert "if (i < LANES) lane(i, a0, a1, r0);" in text.replace("*__restrict__ ", "")


def row(subject=1.0, hand=1.0, title="title", kind=lane_rows.LaneRow, **errors):
    return kind(title, "field", "small", {"functrans": 2.0},
                {"functrans": subject, "by hand": hand}, errors=errors)  # fmt: skip


def test_rows_are_judged_by_what_was_written_by_hand(capsys):
    assert row(1.9).verdict == "pass" and row(2.1).verdict == "slower"
    assert row(functrans="wrong").verdict == "FAIL"
    assert lane_rows.passes([row(1.8), row(0.5)]) and not lane_rows.passes([row(1.25)])
    assert lane_rows.passes([row(1.25, kind=lane_rows.kind(True))])
    lane_rows.print_summary([row(0.75), row(3.0, title="slow")])
    text = capsys.readouterr().out
    assert "geometric mean 1.50" in text and "the worst slow 3.00" in text


def command(*arguments):
    return subprocess.run([sys.executable, ROOT / "benchmarks" / "lanes.py", *arguments],
                          text=True, capture_output=True,
                          env=os.environ | {"OMP_NUM_THREADS": "1"})  # fmt: skip


@needs_compiler
def test_the_table(tmp_path):
    path = tmp_path / "lanes.json"
    done = command("--size", "tiny", "--quick", "--no-peers", "--only", "kepler", "--out", path)
    assert "1 of 1 programs" in done.stdout, done.stderr
    (found,) = json.loads(path.read_text())["rows"]
    assert found["title"] == "kepler" and not found["errors"]
    assert set(found["seconds"]) == {"functrans", "by hand"}
    assert found["error"] <= lanes.tolerance("kepler", "cpu")
    assert "kepler" in command("--show", str(path)).stdout


def test_programs_are_listed():
    assert "rigid_spheres" in command("--list").stdout
