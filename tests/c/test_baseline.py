"""The baseline build of a program: the same bits as the full one, which takes its place later."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans._runtime import Program
from functrans.lowering.c import baseline, lower
from functrans.lowering.c.executable import CExecutable
from functrans.lowering.c.toolchain import is_clang
from functrans.lowering.c.units import called_names
from tests.forks import holds_in_child
from tests.lowering.programs_of_lanes import PROGRAMS

CUT = ("branches", "nested", "rules", "running_sums")
"""Programs of lanes that have long straight code."""

pytestmark = pytest.mark.skipif(is_clang(), reason="baseline builds are gcc's")


def oscillators(count: int):
    """Lanes of a step with many powers, which a baseline build calls."""
    def lane(x, p):
        def going(state):
            return (state[0] < 3.0) & (state[2] < 20)

        def step(state):
            t, x, n = state
            for k in range(6):
                x = x + 0.01 * (jnp.abs(x) ** (p + k) - x)
            return t + 0.2 / (1 + jnp.abs(x) ** p), x, n + 1

        return ft.lax.while_loop(going, step, (0.0, x, 0))

    rng = np.random.default_rng(0)
    arrays = rng.uniform(0.2, 1.2, (2, count)).astype(np.float32)
    return ft.vmap(lane), tuple(arrays)


def lowered_of(f, args):
    closed = ft.make_jaxpr(f)(*args)
    found = lower.lower(closed.jaxpr if hasattr(closed, "jaxpr") else closed, frozenset())
    assert found is not None
    return found


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of programs of its own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "functrans"


def program_of(cache: Path) -> str:
    (manifest,) = cache.glob("*.manifest")
    return manifest.read_text(errors="replace")


def bits(results) -> list[bytes]:
    return [np.asarray(x).tobytes() for x in ft.tree.leaves(results)]


def wait_for_builds() -> None:
    thread = baseline._work.thread
    if thread is not None:
        thread.join()


def test_the_full_build_takes_the_place_of_the_baseline_one(cache, monkeypatch):
    monkeypatch.setattr(baseline, "AFTER", 1)
    replaced = []
    monkeypatch.setattr(lower, "build_fully", lambda text, cache, real=lower.build_fully: (
        replaced.append(text), real(text, cache))[1])
    f, args = oscillators(100)
    jitted = ft.jit(f)
    first = bits(jitted(*args))  # at its end the full build is begun
    wait_for_builds()
    assert len(replaced) == 1
    assert "'baseline': False" in program_of(cache)
    assert len(list(cache.glob("*.so"))) == 2
    assert bits(jitted(*args)) == first
    assert first == bits(ft.jit(f)(*args))


def test_a_program_that_hardly_runs_stays_a_baseline_build(cache):
    f, args = oscillators(40)
    first = bits(ft.jit(f)(*args))
    assert baseline._work.thread is None
    assert "'baseline': True" in program_of(cache)
    assert len(list(cache.glob("*.so"))) == 1
    source = f"""
        import sys
        sys.path.insert(0, {os.fspath(Path(__file__).parents[2])!r})
        from tests.c import test_baseline
        from functrans.lowering.c import baseline
        import functrans as ft
        baseline.AFTER = 1
        f, args = test_baseline.oscillators(40)
        jitted = ft.jit(f)
        first = test_baseline.bits(jitted(*args))
        test_baseline.wait_for_builds()
        assert test_baseline.bits(jitted(*args)) == first
        sys.stdout.buffer.write(b"".join(first))
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(source)], capture_output=True,
                          check=True, timeout=300, env={**os.environ})
    assert done.stdout == b"".join(first)  # another process takes it from the cache, ...
    assert "'baseline': False" in program_of(cache)  # ... and makes the full one


@pytest.mark.one_in(4)
@pytest.mark.parametrize("name", PROGRAMS)
def test_pieces_and_single_vectors_have_the_bits_of_the_full_build(name, cache, monkeypatch):
    """Kernels of lanes are cut wherever they are long straight code, and walk vector by vector."""
    fun, args, _ = PROGRAMS[name]
    monkeypatch.setattr(baseline, "LEAST_SAVED", -1_000_000)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(16)))
    monkeypatch.setattr(baseline, "PIECE", 12)
    monkeypatch.setattr(baseline, "LONG", 60)
    asked = []
    monkeypatch.setattr(lower, "baseline_units", lambda text, real=lower.baseline_units: (
        asked.append(real(text)), asked[-1])[1])
    first = bits(ft.jit(ft.vmap(fun))(*args))
    assert asked[0] is not None and "'baseline': True" in program_of(cache)
    assert name not in CUT or any("_piece0(struct" in unit for unit in asked[0])
    monkeypatch.setattr(lower, "baseline_units", lambda text: None)
    for file in cache.iterdir():
        if file.suffix in (".so", ".manifest"):
            file.unlink()
    assert bits(ft.jit(lambda *xs: ft.vmap(fun)(*xs))(*args)) == first
    assert "'baseline': False" in program_of(cache)


def recurrence(params, xs):
    """Loops forward and backward, products with epilogues, scatters, and functions of float64."""
    def step(h, x):
        z = gate(x @ params["w"] + h @ params["u"])
        h = jnp.tanh(h * z + x @ params["v"])
        return h, h.at[0].add(jnp.sum(z)) @ params["o"]

    def gate(x):
        return 1 / (1 + jnp.exp(-x))

    h, ys = ft.lax.scan(step, jnp.zeros_like(params["h"]), xs)
    rows = jnp.zeros((6, ys.shape[-1])).at[jnp.arange(len(xs)) % 6].add(ys[:, 0])
    power = jnp.abs(h).astype("float64") ** 1.5
    return jnp.sum(ft.nn.log_softmax(ys) ** 2) + jnp.sum(rows ** 3) + jnp.sum(power)


def test_small_units_have_the_bits_of_the_full_build(cache, monkeypatch):
    """Bodies of loops, steps, kernels and functions are in units of their own."""
    monkeypatch.setattr(baseline, "LEAST_SAVED", -1_000_000)
    monkeypatch.setattr(baseline, "PIECE", 20)
    monkeypatch.setattr(baseline, "APART", 20)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(16)))
    rng = np.random.default_rng(0)
    shapes = {"w": (5, 8), "u": (8, 8), "v": (5, 8), "o": (8, 4), "h": (3, 8)}
    params = {k: rng.standard_normal(s).astype(np.float32) for k, s in shapes.items()}
    args = params, rng.standard_normal((9, 3, 5)).astype(np.float32)
    asked = []
    monkeypatch.setattr(lower, "baseline_units", lambda text, real=lower.baseline_units: (
        asked.append(real(text)), asked[-1])[1])
    first = bits(ft.jit(ft.value_and_grad(recurrence))(*args))
    units = asked[0]
    assert len(units) > 8 and "'baseline': True" in program_of(cache)
    homes = {name: [k for k, unit in enumerate(units)
                    if any(f" {name}(void" in line and line.endswith("{")
                           for line in unit.split("\n"))] for name in ("body0", "body1", "k0")}
    assert all(len(home) == 1 for home in homes.values())
    assert len({home[0] for home in homes.values()}) == 3
    monkeypatch.setattr(lower, "baseline_units", lambda text: None)
    for file in cache.iterdir():
        if file.suffix in (".so", ".manifest"):
            file.unlink()
    assert bits(ft.jit(ft.value_and_grad(lambda *xs: recurrence(*xs)))(*args)) == first
    assert "'baseline': False" in program_of(cache)


def test_names_before_parentheses():
    text = "static f32 k0(void *arg) {\n  x = (-exp_f32(load(p + (i * 2)), a[min(2)]));\n" \
           "  if (y) f->g(!isnan(z)); (void)z; }"
    assert called_names(text) == ["k0", "exp_f32", "load", "min", "g", "isnan"]


def test_no_unit_sets_the_compiler_up_again():
    """The attribute `target` takes gcc as long as many kernels."""
    text = lowered_of(*oscillators(64)).text
    assert "ft_stops(ctx)" in text.text and "target(" not in text.text


def test_small_programs_have_no_baseline_build():
    f, args = lambda x: jnp.tanh(x) * 2, (np.ones(100, np.float32),)
    assert baseline.baseline_units(lowered_of(f, args).text) is None


def test_long_programs_have_no_baseline_build(monkeypatch):
    found = lowered_of(*oscillators(64))
    units = baseline.baseline_units(found.text)
    assert units is not None and len(units) == len(found.text.units)
    assert all("static __attribute__((noinline)) f32x" in u for u in units if " k0(void" in u)
    monkeypatch.setattr(baseline, "MOST_WORK", 100)
    assert baseline.baseline_units(found.text) is None


def test_python_ends_while_a_build_is_under_way(cache):
    source = f"""
        import sys
        sys.path.insert(0, {os.fspath(Path(__file__).parents[2])!r})
        from tests.c import test_baseline
        from functrans.lowering.c import baseline
        import functrans as ft
        baseline.AFTER = 1
        f, args = test_baseline.oscillators(40)
        ft.jit(f)(*args)
        assert baseline._work.thread is not None
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(source)], check=True, timeout=300)
    assert not list(cache.glob(".work-*"))


def test_a_child_process_computes_while_a_build_is_under_way(cache, monkeypatch):
    monkeypatch.setattr(baseline, "AFTER", 1)
    f, args = oscillators(48)
    jitted = ft.jit(f)
    first = bits(jitted(*args))
    assert holds_in_child(lambda: bits(jitted(*args)) == first and baseline._work.thread is None)
    wait_for_builds()


def test_an_error_of_the_watcher_is_that_of_the_call(cache):
    jitted = ft.jit(lambda x: x * 3)
    x = np.ones(4, np.float32)
    executable = jitted.lower(x).compile()
    found = [obj for obj in vars(executable).values() if isinstance(obj, CExecutable)]
    program = found[0].run
    assert isinstance(program, Program)

    def interrupted(watched: Program) -> None:
        assert watched is program
        raise KeyboardInterrupt

    program.watch(interrupted, 1)
    with pytest.raises(KeyboardInterrupt):
        program([x])
    np.testing.assert_array_equal(program([x])[0], 3 * x)  # it is called once


def test_a_file_that_is_no_program_leaves_a_program_as_it_is(tmp_path):
    x = np.ones(4, np.float32)
    executable = ft.jit(lambda x: x * 5).lower(x).compile()
    program = next(o for o in vars(executable).values() if isinstance(o, CExecutable)).run
    with pytest.raises(OSError, match="cannot load"):
        program.replace(tmp_path / "none.so")
    np.testing.assert_array_equal(program([x])[0], 5 * x)
