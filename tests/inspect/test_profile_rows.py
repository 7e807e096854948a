"""All of the time of a run is in the rows of a profile, with the work of loops, and compared."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans.core.errors import ArgumentError
from functrans.inspect.machine import Machine, stable_minimum
from functrans.inspect.profile import Profile, Timed
from functrans.lowering.c.timed import TimedProgram
from functrans.lowering.report import KernelReport
from tests.inspect.pages import Page
from tests.inspect.programs import loss

W, X = np.ones((64, 32), np.float32), np.ones((128, 64), np.float32)
SQUARE = np.full((16, 16), 0.01, np.float32)


def walk(x):
    def step(c, h):
        c = ft.lax.while_loop(lambda s: s[1] < 3, lambda s: (jnp.sin(s[0] @ s[0]) + h, s[1] + 1),
                              (c, 0))[0]
        return c, c.sum()
    return ft.lax.scan(step, x, jnp.ones(40))


@pytest.fixture(scope="module")
def walked():
    return ft.profile(walk, SQUARE)


@pytest.fixture(scope="module")
def profiled():
    return ft.profile(loss, W, X)


def test_rows_add_up_to_a_run(walked, profiled):
    for p in (walked, profiled):
        assert sum(row.seconds for row in p.rows) == pytest.approx(p.seconds)
        assert sum(row.share for row in p.rows) == pytest.approx(1)
        inner, last = p.rows[:-1], p.rows[-1]
        assert last.name == "between" and last.step is None
        assert sorted(inner, key=lambda r: -r.seconds) == list(inner)
        assert abs(p.between) < 0.5 * p.seconds


def test_steps_of_loops_have_their_time_and_work(walked):
    inside = {t.kernel.name: t for t in walked.steps if t.kernel.place}
    product = next(t for name, t in inside.items() if name.startswith("gemm"))
    assert product.kernel.runs == 40 * 3 and product.kernel.per == ""
    assert product.kernel.flops >= 40 * 3 * 2 * 16**3 and product.seconds > 0
    predicate = [t for t in walked.steps if t.kernel.runs == 40 * 4]
    assert predicate and all(t.kernel.place == "while" for t in predicate)
    loops = [t for t in walked.steps if t.kernel.kind in ("scan", "while")]
    assert len(loops) == 2 and not any(t.kernel.flops or t.kernel.moved for t in loops)
    assert sum(t.seconds for t in walked.steps if t.kernel.place) > 0.3 * walked.seconds


def test_iterations_on_threads_are_of_their_loop():
    def f(x):
        return ft.lax.map(lambda a: (jnp.sort(a) @ a).sum(), x)

    p = ft.profile(f, np.random.default_rng(0).normal(size=(64, 40, 40)).astype(np.float32))
    assert sum(row.seconds for row in p.rows) == pytest.approx(p.seconds)
    for t in p.steps:
        assert t.seconds > 0 and (t.kernel.kind != "scan" or t.kernel.moved or len(p.steps) > 1)


def test_clocks_in_bodies_change_no_result():
    lowered = ft.lower(walk, SQUARE)
    timed = TimedProgram(lowered.jaxpr)
    steps, spent, counts = timed.run_with_clocks(lowered.inputs(SQUARE))
    assert len(steps) == 2 and all(t > 0 for t in spent) and {*counts} == {40, 120, 160}
    _, again, _ = timed.run_with_clocks(lowered.inputs(SQUARE))
    assert sum(again) < 20 * sum(spent)  # they begin at 0 in each run
    for a, b in zip(timed._run([SQUARE, *lowered.inputs(SQUARE)[1:]]), ft.jit(walk)(SQUARE),
                    strict=True):
        np.testing.assert_array_equal(a, b)


def told_of(moved, flops, seconds):
    kernel = KernelReport("k0", "kernel", (), (), "", flops, moved)
    report = ft.explain(loss, W, X, target="cpu").report
    return Profile(report, [Timed(kernel, seconds)], seconds, Machine(1e9, 1e10))


@pytest.mark.parametrize("moved, flops, text", [
    (5 * 10**8, 0, "50% of bandwidth"), (3 * 10**9, 0, "cache: 3.0 x memory"),
    (1, 5 * 10**9, "50% of FLOP rate"), (1, 2 * 10**10, "2.0 x a large product"), (0, 0, "")])
def test_rates_above_the_roof_are_the_caches(moved, flops, text):
    assert told_of(moved, flops, 1.0).rows[0].reaches == text


def test_what_uses_little_of_a_cpu_is_told_with_why():
    (line,) = told_of(10**7, 0, 1.0).idle
    assert "reaches 1% of bandwidth, for 100% of the run: " in line
    assert f"! {line}" in str(told_of(10**7, 0, 1.0))
    assert told_of(9 * 10**8, 0, 1.0).idle == ()
    kernel = KernelReport("gather on the host", "host call", (), (), "", 0, 0, on_host="a callback")
    p = Profile(told_of(1, 1, 1.0).report, [Timed(kernel, 1.0)], 1.0, Machine(1e9, 1e10))
    assert p.idle == ("gather on the host runs on the host for 100% of the run: a callback",)


def test_the_line_is_that_of_the_costliest_equation():
    def f(w, x):
        y = x * 2 + 1
        return jnp.tanh(y @ w) - 3

    p = ft.profile(f, W, X)
    row = next(r for r in p.rows if r.step is not None and "gemm" in r.step.kernel.kind)
    assert row.line.text == "return jnp.tanh(y @ w) - 3"


def test_the_roof_is_measured_until_it_is_stable():
    def measured(times, step=0.0):
        source, clock = iter(times), iter(range(10**6))
        return stable_minimum(lambda: next(source), lambda: step * next(clock))

    assert measured([5.0] + [1.0] * 20) == (1.0, True)
    falling = [1 / (1 + 0.05 * k) for k in range(60)]
    assert measured([*falling, *[falling[-1]] * 9]) == (falling[-1], True)
    best, stable = measured([1 / (1 + 0.05 * k) for k in range(400)], step=0.1)
    assert not stable and best > 0.002
    assert "at least: it is busy" in Profile(told_of(1, 1, 1.0).report, [], 1.0,
                                             Machine(1e9, 1e9, False)).head


def test_memory_over_time(profiled, tmp_path):
    assert max(s.nbytes for s in profiled.timeline) == profiled.report.peak.nbytes
    profiled.save(tmp_path / "profile.html")
    page = Page((tmp_path / "profile.html").read_text())
    text = " ".join(page.text)
    assert "Memory over time" in text and "between" in text and not page.external
    with pytest.raises(ArgumentError, match="no name for that"):
        profiled.save(tmp_path / "profile.txt")


# --- two runs

def test_a_comparison_adds_up(profiled):
    def doubled(w, x):
        return loss(w, x * 2)

    other = ft.profile(doubled, W, X)
    compared = ft.profile.compare(profiled, other)
    assert sum(r.difference for r in compared.rows) == pytest.approx(
        other.seconds - profiled.seconds)
    assert sum(r.before or 0 for r in compared.rows) == pytest.approx(profiled.seconds)
    new = [r for r in compared.rows if r.before is None]
    assert len(new) == len(other.steps) - len(profiled.steps) == 1
    assert not [r for r in compared.rows if r.after is None]
    assert "loss and doubled: " in str(compared)
    Page(compared._repr_html_())


def test_a_profile_is_itself(profiled):
    compared = ft.profile.compare(profiled, profiled)
    assert all(r.difference == 0 and r.before is not None for r in compared.rows)
    assert len(compared.rows) == len(profiled.rows) and "1.00 times as fast" in compared.head


def test_the_same_work_at_other_lines_is_compared(profiled, tmp_path):
    def elsewhere(w, x):
        h = jnp.tanh(x @ w)
        return (h * h).sum(axis=0)

    compared = ft.profile.compare(profiled, ft.profile(elsewhere, W, X))
    assert all(r.before is not None and r.after is not None for r in compared.rows)
    compared.save(tmp_path / "compared.html")
    assert not Page((tmp_path / "compared.html").read_text()).external
    with pytest.raises(ArgumentError, match="no name for that"):
        compared.save(tmp_path / "compared.txt")


def test_only_profiles_are_compared(profiled):
    with pytest.raises(ArgumentError, match="compare takes what"):
        ft.profile.compare(profiled, loss)
