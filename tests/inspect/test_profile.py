"""Times of steps: all are there, add up, and are written as tables, pages and traces."""

import json
import math
import xml.etree.ElementTree as ET
from dataclasses import replace

import numpy as np
import pytest

import functrans as ft
from functrans import numpy as jnp
from functrans.core.errors import ArgumentError, BackendError, ConcretizationError
from functrans.inspect.profile import Profile, Timed
from functrans.inspect.profile.roofline import roofline
from functrans.lowering.c.timed import TimedProgram
from functrans.lowering.report import KernelReport
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
    rows = [row for row in rows if not row.startswith("!")]
    assert {row.split("  ")[0] for row in rows[:2]} == {"gemm 0", "k0"}
    assert rows[2].split("  ")[0] == "between"
    assert "programs.py:7" in next(row for row in rows if row.startswith("gemm 0"))


def test_page_has_a_roofline(profiled):
    picture = ET.fromstring(profiled.roofline())
    circles = [e for e in picture.iter() if e.tag.endswith("circle")]
    assert len(circles) == 2
    assert "<svg" in profiled._repr_html_() and "<table" in profiled._repr_html_()


def test_names_of_a_roofline_are_not_over_the_name_of_the_roof():
    bandwidth, flops = 89e9, 335e9
    points = [("step 0", 36.6, 2.13e11, 1.6e-4), ("step with a name 1", 2.74, 1.13e11, 1.3e-5),
              ("step 2", 4.55, 1.1e11, 1.2e-5), ("step 3", 0.25, 2.77e10, 2e-6)]
    picture = ET.fromstring(roofline(points, bandwidth, flops))
    texts = {e.text: (float(e.get("x")), float(e.get("y"))) for e in picture.iter()
             if e.tag.endswith("text")}
    told = "89 GB/s: a copy"
    (turn,) = [e.get("transform") for e in picture.iter() if e.tag.endswith("}g")
               and e[0].text == told]
    slope = math.radians(float(turn.partition("(")[2].split()[0]))
    x, y = texts[told]
    letters = [(x + 6 * k * math.cos(slope), y - 4 + 6 * k * math.sin(slope))
               for k in range(-len(told) // 2 + 1, len(told) // 2)]
    named = [(a, a + 6.6 * len(text), b - 9, b + 1) for text, (a, b) in texts.items()
             if text.startswith("step ")]
    assert named and not any(left < a < right and top < b < bottom
                             for left, right, top, bottom in named for a, b in letters)


def test_trace(profiled, tmp_path):
    profiled.save_trace(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    steps = [e for e in events if e["ph"] == "X"]
    assert [e["name"] for e in steps][:2] == ["gemm 0", "k0"]
    assert sum(e["dur"] for e in steps) == pytest.approx(
        1e6 * (profiled.seconds - min(profiled.between, 0)))
    counted = [e["args"]["bytes"] for e in events if e["ph"] == "C"]
    assert max(counted) == profiled.report.peak.nbytes
    assert steps[1]["ts"] == pytest.approx(steps[0]["ts"] + steps[0]["dur"])
    assert all(e["dur"] > 0 and e["args"]["lines"] for e in steps[:2])


def test_timed_programs_compute_the_same():
    lowered = ft.lower(loss, W, X)
    timed = TimedProgram(lowered.jaxpr)
    first, second = timed.run(lowered.inputs(W, X)), timed.run(lowered.inputs(W, X))
    assert len(first) == len(second) == 3 and min(second) >= 0
    np.testing.assert_array_equal(timed._run([W, X])[0], ft.jit(loss)(W, X))


def test_arguments_need_values():
    with pytest.raises(ArgumentError, match="has no value"):
        ft.profile(loss, ft.ShapeDtypeStruct((64, 32), "float32"), X)


@pytest.mark.parametrize("f", [lambda x: x, lambda x: x * 1, lambda x: 3.0])
def test_what_computes_nothing_cannot_be_timed(f):
    with pytest.raises(BackendError, match="no steps that can be timed") as caught:
        ft.profile(f, X)
    assert "functrans.profile(lambda x:" in caught.value.fix


def test_arguments_that_do_not_fit_are_told():
    for see in (ft.profile, ft.explain):
        for args in ((), (W,), (W, X, X)):
            with pytest.raises(ArgumentError, match="positional argument") as caught:
                see(loss, *args)
            assert "loss has the parameters (w, x)" in caught.value.fix
        with pytest.raises(TypeError, match="unsupported operand"):
            see(loss, None, X)
        with pytest.raises(ArgumentError, match="a function is needed"):
            see(loss(W, X), W, X)
        with pytest.raises(ConcretizationError, match=r"lax\.cond"):
            see(lambda x: x if x.sum() > 0 else -x, X)
    with pytest.raises(ArgumentError, match="profile has no target"):
        ft.profile(loss, W, X, target="cpu")


def test_a_tracer_has_no_times():
    def f(x):
        ft.profile(loss, W, x)
        return x.sum()

    for transformed in (ft.jit(f), ft.grad(f), ft.vmap(f)):
        with pytest.raises(ArgumentError, match="is traced") as caught:
            transformed(X)
        assert "outside of jit" in caught.value.fix


def test_what_was_lowered_is_timed_on_arguments():
    lowered = ft.lower(loss, W, X)
    assert [s.kernel.name for s in ft.profile(lowered, W, X).steps] == ["gemm 0", "k0"]
    with pytest.raises(ArgumentError, match="other arguments"):
        ft.profile(lowered)


def test_what_is_timed_is_where_the_arguments_are():
    with ft.config.use_backend("triton"):
        profiled = ft.profile(loss, W, X)
    assert profiled.report.target.startswith("C for ")
    assert [s.kernel.name for s in profiled.steps] == ["gemm 0", "k0"]


def test_exported_functions_have_their_names():
    exported = ft.export.export(loss)(W, X)
    assert str(ft.profile(exported.call, W, X)).startswith("loss: ")
    assert str(ft.explain(exported.call, W, X)).startswith("loss: ")


def test_launches_and_notes_are_told(profiled):
    (first, second), whole = profiled.steps, profiled.seconds
    steps = [Timed(replace(first.kernel, runs=3), 0.8 * whole), Timed(second.kernel, 0.4 * whole)]
    told = Profile(profiled.report, steps, whole, profiled.machine, "as it is")
    lines = str(told).splitlines()
    assert lines[3].startswith("gemm 0 x 3 ") and lines[-1] == "as it is"
    assert told.between == pytest.approx(-0.2 * whole)
    assert "-20%" in next(line for line in lines if line.startswith("between"))
    assert "gemm 0 x 3" in told._repr_html_() and "as it is" in told._repr_html_()


def test_unknown_work_has_no_rate():
    kernel = KernelReport("call", "call", (), (), "", 0, 0)
    assert Timed(kernel, 1.0).flops == 0.0 and Timed(kernel, 0.0).bandwidth == 0.0


def test_arguments_are_not_donated():
    step = ft.jit(lambda w, g: w.at[2].set(g), donate_argnums=0)
    w = ft.numpy.ones((50, 3))
    profiled = ft.profile(step, w, ft.numpy.zeros(3))
    assert not any("donated" in note for note in profiled.report.memory)
    assert float(w.sum()) == 150
    assert "donated" in str(ft.explain(step, w, ft.numpy.zeros(3), target="cpu"))


def mean_square(w, x):
    return (jnp.tanh(x @ w) ** 2).mean()


def on_four_devices():
    with ft.config.cpu_devices(4):
        mesh = ft.make_mesh((4,), ("x",), devices=ft.devices("cpu"))
    rows = ft.sharding.NamedSharding(mesh, ft.P("x"))
    return mesh, ft.device_put(np.ones((32, 8), "f"), rows), ft.device_put(
        np.ones((64, 32), "f"), rows)


def test_collectives_have_times_bytes_and_rates(tmp_path):
    _, w, x = on_four_devices()

    def steps(w, x):
        def body(w, _):
            return w - 0.1 * ft.grad(mean_square)(w, x), None
        return ft.lax.scan(body, w, None, length=3)[0]

    profiled = ft.profile(steps, w, x)
    found = {c.kernel.name: c for c in profiled.collectives if c.nbytes > 100}
    assert list(found) == ["all_gather over x", "psum_scatter over x"]
    for c in found.values():  # three quarters of 1 kB, three times
        assert (c.kernel.runs, c.nbytes) == (3, 3 * 768)
        assert c.bus_rate == c.nbytes / c.seconds > 0
        assert "test_profile.py" in str(c.kernel.lines[0])
    assert profiled.steps  # and the kernels between them
    assert "collective" not in [t.kernel.kind for t in profiled.steps]
    times = sum(row.seconds for row in profiled.rows)
    assert times == pytest.approx(profiled.seconds)
    assert 0 <= profiled.overlap <= profiled.exchanging
    assert "/s of bus" in str(profiled)
    assert "psum_scatter over x x 3" in profiled._repr_html_()
    profiled.save_trace(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    spans = [e for e in events if e.get("cat") == "collective"]
    assert {e["tid"] for e in spans} == {2}
    assert spans[0]["args"]["bytes received"] == "2304"


def test_overlap_is_what_both_take_together_and_the_run_does_not():
    _, w, x = on_four_devices()
    found = ft.profile(lambda w, x: w - 0.1 * ft.grad(mean_square)(w, x), w, x)

    def told(seconds, computing):
        return type(found)(found.report, found.steps, seconds, found.machine, "",
                           found.collectives, computing)

    exchanging = found.exchanging
    assert told(1.0, 1.0).overlap == pytest.approx(exchanging)
    assert told(1.0 + exchanging, 1.0).overlap == pytest.approx(0)
    assert told(1.0 + exchanging / 2, 1.0).overlap == pytest.approx(exchanging / 2)
    assert "at once" in str(told(1.0, 1.0))


def test_a_loop_that_ends_by_an_exchange_is_not_timed_apart():
    mesh, w, _ = on_four_devices()

    def doubled(w):
        return ft.lax.while_loop(lambda w: ft.lax.pmax(jnp.abs(w).max(), "x") < 10,
                                 lambda w: w * 2, w)

    profiled = ft.profile(ft.shard_map(doubled, mesh, ft.P("x"), ft.P("x")), w)
    assert profiled.computing is None
    assert "cannot be timed apart" in profiled.note
    assert [c.kernel.name for c in profiled.collectives] == ["pmax over x"]
