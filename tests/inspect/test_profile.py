"""Times of steps: all are there, add up, and are written as tables, pages and traces."""

import json
import xml.etree.ElementTree as ET

import numpy as np
import pytest

import functrans as ft
from functrans.core.errors import ArgumentError, BackendError
from functrans.inspect.profile import Timed
from functrans.inspect.report import Kernel
from functrans.lowering.c.timed import TimedProgram
from tests.inspect.programs import loss

W, X = np.ones((64, 32), np.float32), np.ones((128, 64), np.float32)


@pytest.fixture(scope="module")
def profiled():
    return ft.profile(loss, W, X)


def test_steps_are_those_of_the_explanation(profiled):
    assert [s.kernel for s in profiled.steps] == list(ft.explain(loss, W, X).kernels)
    assert all(s.seconds > 0 for s in profiled.steps)
    assert sum(s.seconds for s in profiled.steps) < 2 * profiled.seconds


def test_rates(profiled):
    step = profiled.steps[0]
    assert step.flops == step.kernel.flops / step.seconds
    assert step.bandwidth == step.kernel.moved / step.seconds
    share, of = profiled.share(step)
    assert of in ("bandwidth", "FLOP rate") and share > 0
    assert profiled.machine.bandwidth > 1e8 and profiled.machine.flops > 1e8


def test_table(profiled):
    head, titles, rule, *rows = str(profiled).splitlines()
    assert head.startswith("loss: ") and titles.split()[:3] == ["step", "time", "share"]
    assert set(rule) == {"-"}
    assert [row.split("  ")[0] for row in rows] == ["gemm 0", "k0", "between"]
    assert "programs.py:7" in rows[0]


def test_page_has_a_roofline(profiled):
    picture = ET.fromstring(profiled.roofline())
    circles = [e for e in picture.iter() if e.tag.endswith("circle")]
    assert len(circles) == 2
    assert "<svg" in profiled._repr_html_() and "<table>" in profiled._repr_html_()


def test_trace(profiled, tmp_path):
    profiled.save_trace(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    steps = [e for e in events if e["ph"] == "X"]
    assert [e["name"] for e in steps] == ["gemm 0", "k0"]
    assert steps[1]["ts"] == pytest.approx(steps[0]["ts"] + steps[0]["dur"])
    assert all(e["dur"] > 0 and e["args"]["lines"] for e in steps)


def test_timed_programs_compute_the_same():
    lowered = ft.lower(loss, W, X)
    timed = TimedProgram(lowered.jaxpr)
    first, second = timed.run(lowered.inputs(W, X)), timed.run(lowered.inputs(W, X))
    assert len(first) == len(second) == 3 and min(second) >= 0
    np.testing.assert_array_equal(timed._run([W, X])[0], ft.jit(loss)(W, X))


def test_arguments_need_values():
    with pytest.raises(ArgumentError, match="has no value"):
        ft.profile(loss, ft.ShapeDtypeStruct((64, 32), "float32"), X)


def test_what_is_not_compiled_cannot_be_timed():
    with pytest.raises(BackendError, match="cannot be timed"):
        ft.profile(lambda x: x, X)


def test_unknown_work_has_no_rate():
    kernel = Kernel("call", "call", (), (), "", 0, 0)
    assert Timed(kernel, 1.0).flops == 0.0 and Timed(kernel, 0.0).bandwidth == 0.0


def test_arguments_are_not_donated():
    step = ft.jit(lambda w, g: w.at[2].set(g), donate_argnums=0)
    w = ft.numpy.ones((50, 3))
    profiled = ft.profile(step, w, ft.numpy.zeros(3))
    assert not any("donated" in note for note in profiled.report.memory)
    assert float(w.sum()) == 150
    assert "donated" in str(ft.explain(step, w, ft.numpy.zeros(3), target="cpu"))
