"""Kernels that are chosen by measurement, with a timer that says what the test wants."""

from dataclasses import dataclass

import numpy as np
import pytest

import functrans as ft
from functrans.core import config
from functrans.lowering.passes.pipeline import simplify
from functrans.lowering.schedule.target import HOPPER, cuda_target
from functrans.lowering.store.cache import Cache
from functrans.lowering.triton.emulator.interpret import InterpretedProgram
from functrans.lowering.triton.machine.tuning import Tuner, shape_class
from functrans.lowering.triton.program import write_program
from functrans.lowering.triton.steps.spec import Launch
from tests.triton import emulated

xp = ft.numpy
LARGE = [ft.ShapeDtypeStruct((4096, 4096), "bfloat16")] * 2


def jaxpr_of(fun, *args):
    return simplify(ft.make_jaxpr(fun)(*args).jaxpr.hoist_consts())


class Timer:
    """Likes many programs, or few; keeps what it timed."""

    def __init__(self, order=sorted):
        self.programs, self.order = [], order

    def __call__(self, programs):
        self.programs += programs
        counts = [p.steps[0].grid[0] for p in programs]
        return [1e-3 / n if self.order is sorted else 1e-3 * n for n in counts]


@pytest.fixture(autouse=True)
def not_compiled(monkeypatch):
    """No candidate is compiled: nothing but the timer looks at them."""
    monkeypatch.setattr("functrans.lowering.triton.machine.tuning.compiled_units", lambda *args: [])


def tuner(tmp_path, timer, **options):
    return Tuner(options.pop("target", HOPPER), options.pop("device", "a GPU"),
                 Cache(tmp_path / "kept"), timer, **options)


def written(choose, fun=lambda x, y: x @ y, args=LARGE):
    jaxpr = jaxpr_of(fun, *args)
    program = write_program(jaxpr, choose=choose)
    return write_program(jaxpr, choose=choose) if choose.tune(program) else program


def grids(program):
    return [s.grid[0] for s in program.steps if isinstance(s, Launch)]


def test_the_fastest_wins_and_is_remembered(tmp_path):
    many, few = Timer(), Timer(reversed)
    program = written(tuner(tmp_path / "a", many))
    assert 2 <= len(many.programs) <= 4
    assert grids(program)[0] == max(grids(p)[0] for p in many.programs)
    other = written(tuner(tmp_path / "b", few))
    assert grids(other)[0] == min(grids(p)[0] for p in few.programs) < grids(program)[0]
    (note,) = [n for n in program.notes if "timed on a GPU" in n]
    assert "product 4096 x 4096 x 4096 of bf16" in note
    assert note.count("Config(") == len(many.programs) == note.count(" us")
    # another process reads it
    again = Timer(reversed)
    same = written(tuner(tmp_path / "a", again))
    assert not again.programs and grids(same) == grids(program)
    assert note in same.notes
    # other GPUs are tuned by themselves
    elsewhere = Timer()
    written(tuner(tmp_path / "a", elsewhere, device="another GPU"))
    assert elsewhere.programs


def test_a_program_whose_first_configurations_win_is_not_written_again(tmp_path):
    jaxpr, first = jaxpr_of(lambda x, y: x @ y, *LARGE), Tuner(
        HOPPER, "a GPU", Cache(tmp_path / "kept"), lambda programs: [1.0, *[2.0] * (
            len(programs) - 1)])
    program = write_program(jaxpr, choose=first)
    assert not first.tune(program)
    again = write_program(jaxpr, choose=tuner(tmp_path, None))
    assert again.sources == program.sources and again.notes == program.notes
    assert "timed on a GPU" in program.notes[-1]


def test_small_products_are_left_to_the_model(tmp_path):
    small = [ft.ShapeDtypeStruct((256, 256), "bfloat16")] * 2
    timer = Timer()
    by_model = written(tuner(tmp_path, timer), args=small)
    assert not timer.programs
    thorough = written(tuner(tmp_path, timer, thorough=True), args=small)
    assert timer.programs and grids(thorough)[0] >= grids(by_model)[0]


def test_the_longest_calls_of_a_program_are_timed(tmp_path):
    def layers(x, *ws):
        return [x @ w for w in ws]

    widths = (*range(2, 14), 16, 20, 24, 28, 32, 40, 48, 56, 64)  # classes of sizes
    args = [LARGE[0], *[ft.ShapeDtypeStruct((4096, 1024 * k), "bfloat16") for k in widths]]
    auto, thorough = (Timer(), Timer())
    choose = tuner(tmp_path / "a", auto)
    again = written(choose, layers, args)
    # the calls that were left out are not timed when the program is written again
    assert choose.untuned and not choose.tune(again)
    written(tuner(tmp_path / "b", thorough, thorough=True), layers, args)
    widths = [{p.inputs[1].shape[0] // 8192 for p in t.programs} for t in (auto, thorough)]
    assert len(widths[0]) == 16 and min(widths[0]) > min(widths[1]) and len(widths[1]) > 16


def test_a_candidate_is_timed_once(tmp_path):
    choose = tuner(tmp_path, Timer())
    best = choose("a product", (1, 2), ["a", "b", "a", "c", "d"], str, lambda c: 1e6)
    (found,) = choose.untuned.values()
    assert best == "a" and found.configs == ["a", "b", "c"]


def test_without_a_timer_only_what_is_known_is_taken(tmp_path):
    by_model = written(tuner(tmp_path, None))
    timed = written(tuner(tmp_path, Timer()))
    assert grids(written(tuner(tmp_path, None))) == grids(timed) != grids(by_model)


def test_candidates_that_fail_are_none(tmp_path):
    class Failing(Timer):
        def __call__(self, programs):
            super().__call__(programs)
            return [None, None, *[1.0] * (len(programs) - 2)]

    timer = Failing()
    choose = tuner(tmp_path, timer, thorough=True)
    program = written(choose)
    assert len(timer.programs) == 4 and len(program.notes[-1].split("Config(")) == 3
    assert grids(program) in [grids(p) for p in timer.programs[2:]]

    def fail(programs):
        return [None] * len(programs)

    assert grids(written(tuner(tmp_path / "other", fail))) == grids(
        written(tuner(tmp_path / "model", None)))


def test_a_corrupt_entry_is_timed_again(tmp_path):
    timer = Timer()
    written(tuner(tmp_path, timer))
    (entry,) = (tmp_path / "kept").glob("*.tuned")
    entry.write_bytes(entry.read_bytes()[:-1])
    count = len(timer.programs)
    written(tuner(tmp_path, timer))
    assert len(timer.programs) == 2 * count
    cache = Cache(tmp_path / "kept")
    for words in ("[", "{}", "{'problem': 1, 'configs': [], 'seconds': []}",
                  "{'problem': '', 'configs': ['x'], 'seconds': [1.0]}"):
        cache.write(entry.name, words.encode())
        before = len(timer.programs)
        written(tuner(tmp_path, timer))
        assert len(timer.programs) == before + count, words


def test_fused_products_attention_and_convolutions_are_tuned(tmp_path):
    x = ft.ShapeDtypeStruct((4096, 4096), "bfloat16")
    q = ft.ShapeDtypeStruct((8, 16, 2048, 64), "bfloat16")
    image = ft.ShapeDtypeStruct((32, 256, 56, 56), "bfloat16")
    window = ft.ShapeDtypeStruct((256, 256, 3, 3), "bfloat16")

    def attention(q, k, v):
        weights = ft.nn.softmax(xp.einsum("bhqd,bhkd->bhqk", q, k), axis=-1)
        return xp.einsum("bhqk,bhkd->bhqd", weights, v).astype("float32").sum()

    for fun, args, words in (
            (lambda x, y: xp.tanh(x @ y + y[0]), (x, x), ["product", "values from it"]),
            (ft.grad(attention, (0, 1, 2)), (q, q, q),
             ["attention 1: 8 x 16 x 2048 x 2048 x 64", "gradient of attention 1",
              "gradient of attention 2"]),
            (lambda x, w: ft.lax.conv(x, w, (1, 1), "SAME"), (image, window),
             ["convolution of 32 x 56 x 56 x 256 by 3 x 3 x 256"])):
        timer = Timer()
        program = written(tuner(tmp_path, timer), fun, args)
        assert timer.programs
        for word in words:
            assert any(word in n and "timed" in n for n in program.notes), (word, program.notes)
        for p in timer.programs:  # each has memory for its arguments
            for step in p.steps:
                assert len(step.arguments) == len(step.types) == len(step.divisible)


def test_every_candidate_computes_the_same(tmp_path):
    """Whatever wins, the result is that of the product."""
    rng = np.random.default_rng(0)
    x, y = (rng.standard_normal((96, 96)).astype("f4") for _ in range(2))

    def fun(x, y):
        return xp.tanh(x @ y + y[0]), (x @ y).sum(1)

    expected = [np.tanh(x @ y + y[0]), (x @ y).sum(1)]
    for k, order in enumerate((sorted, reversed)):
        choose = tuner(tmp_path / str(k), Timer(order), thorough=True)
        program = written(choose, fun, (x, y))
        for a, b in zip(InterpretedProgram(program)([x, y]), expected, strict=True):
            np.testing.assert_allclose(a, b, 1e-4, 1e-3)
    emulated.check(fun, x, y)


def test_tiles_fit_the_target(tmp_path):
    for capability in (80, 86, 90, 120):
        target = cuda_target(capability)
        timer = Timer()
        program = written(tuner(tmp_path, timer, target=target, device=str(capability)))
        for p in (program, *timer.programs):
            text = "".join(p.sources)
            assert ("make_tensor_descriptor" in text) == (capability >= 90)


@dataclass(frozen=True)
class Problem:
    m: int
    aligned: bool = True


def test_classes_of_sizes():
    near = {shape_class(Problem(n)) for n in range(1792, 2049, 16)}
    assert near == {"Problem(1792/16,True)", "Problem(2048/16,True)"}
    assert shape_class(Problem(2048)) != shape_class(Problem(2047))
    assert shape_class(Problem(2048)) != shape_class(Problem(2048, False))
    assert shape_class((3, None, "x", 1.5)) == "(3,None,'x',1.5)"
    assert shape_class(-200) == "-192/8"


def test_the_setting():
    for word in ("auto", "off", "thorough"):
        with config.autotune(word):
            assert config.current().autotune == word
    with pytest.raises(ValueError, match="'auto', 'off' or 'thorough'"):
        ft.config.autotune("always")
