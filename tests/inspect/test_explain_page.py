"""The page of an explanation, its data, and the steps of its passes."""

import json
import re
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans.core.errors import ArgumentError
from functrans.core.jaxpr import Literal
from functrans.core.notation import Names, equation_line
from functrans.inspect.explain.code import values_by_line
from functrans.inspect.regions import regions_of, repeats_in
from functrans.lowering.schedule.advice import ADVICE, advice_on
from tests.inspect.pages import Page
from tests.inspect.programs import loss

W, X = ft.ShapeDtypeStruct((64, 32), "float32"), ft.ShapeDtypeStruct((128, 64), "float32")


def layers(params, x):
    for p in params:
        x = jnp.tanh(x @ p["w"] + p["b"]) + 1e-5
    return {"mean": x.mean(), "last": x}


LAYERS = [{"w": ft.ShapeDtypeStruct((32, 32), "float32"),
           "b": ft.ShapeDtypeStruct((32,), "float32")} for _ in range(4)]
BATCH = ft.ShapeDtypeStruct((64, 32), "float32")


def newton(x):
    def step(c, h):
        c = ft.lax.while_loop(lambda s: s[1] < 20,
                              lambda s: (jnp.cos(s[0] @ s[0]) * h, s[1] + 1), (c, 0))[0]
        return c, c.sum()
    return ft.lax.scan(step, x, jnp.ones(50))


@pytest.fixture(scope="module")
def explained():
    return ft.explain(ft.grad(lambda w, x: loss(w, x).sum()), W, X, target="cpu")


def test_page(explained, tmp_path):
    page = Page(explained._repr_html_())
    page.check_links()
    assert explained._repr_html_() == explained._repr_html_()
    assert {t[0] for t in page.related} == {"e", "k", "l"}
    explained.save(tmp_path / "page.html")
    saved = Page((tmp_path / "page.html").read_text())
    saved.check_links()
    assert any(re.fullmatch(r"k\d+c\d+", t) for t in saved.related)  # machine code, by line of C
    with pytest.raises(ArgumentError, match="no name for that"):
        explained.save(tmp_path / "page.pdf")


def test_what_costs_comes_first(explained):
    text = str(explained)
    assert text.index("What costs") < text.index("Program, simplified") < text.index("Kernels")
    costs = explained.costs
    assert sum(c.share for c in costs.steps) == pytest.approx(1)
    assert all(a.seconds >= b.seconds for a, b in pairwise(costs.steps))
    assert costs.launches == sum(k.runs for k in explained.kernels) and not costs.on_host
    assert costs.peak == explained.memory["peak"]


def test_steps_of_layers_that_repeat_are_told_once():
    def network(layers, x):
        for w in layers:
            x = jnp.tanh(x @ w)
        return x

    layers = [np.ones((32, 32), "float32")] * 4
    explained = ft.explain(network, layers, np.ones((64, 32), "float32"), target="cpu")
    (group,) = explained.costs.groups
    assert len(group.steps) == 4 and group.share == pytest.approx(1)
    assert f"{group.name}, 4 such" in str(explained)
    assert f"<b>{group.name} × 4</b>" in explained._repr_html_()


def test_what_runs_on_the_host_is_told():
    told = ft.explain(lambda x: ft.pure_callback(np.sin, x, x) + 1, X, target="cpu")
    ((_, why),) = told.costs.on_host
    assert "a call of Python" in why and f"on the host: host call 0: {why}" in str(told)


def test_launches_of_loops_are_counted():
    costs = ft.explain(newton, np.ones((8, 8), np.float32), target="cpu").costs
    inside = [c.kernel for c in costs.steps if c.kernel.place]
    assert {k.runs for k in inside} == {50} and {k.per for k in inside} == {"", "iteration"}
    assert not costs.is_bounded and costs.launches >= 150
    assert not any(c.kernel.kind in ("scan", "while") for c in costs.steps)


def test_arguments_and_results_have_their_names():
    text = str(ft.explain(layers, LAYERS, BATCH, target="cpu"))
    assert "params[0].w:f32[32,32]" in text and "result.mean = " in text and "result.last" in text
    assert "1e-05" in text and "9.99" not in text and "[ij,jk->ik] x params[0].w" in text


def test_layers_are_folded():
    traced = ft.make_jaxpr(layers)(LAYERS, BATCH).jaxpr
    folded = [r for r in regions_of(traced) if r.count > 1]
    assert [r.count for r in folded] == [4]
    found = [k for r in regions_of(traced) for n in range(r.count) for k in r.repeat.at(n)]
    assert found == list(range(len(traced.eqns)))
    assert "4 times, 5 equations each (0-19), the first:" in str(
        ft.explain(layers, LAYERS, BATCH, target="cpu"))


@pytest.mark.parametrize("text, parts", [
    ("abcdabcdabcdx", [(0, 4, 3), (12, 1, 1)]), ("xyabcdeabcde", [(0, 2, 1), (2, 5, 2)]),
    ("aaaaaaaa", [(0, 4, 2)]), ("abcab", [(0, 5, 1)]), ("", [])])
def test_repeats(text, parts):
    assert [(r.start, r.period, r.count) for r in repeats_in(text)] == parts


def test_axes_of_products_are_letters():
    def f(a, b):
        return jnp.einsum("bhsd,bhtd->bhst", a, b), jnp.tensordot(a, b, 4)

    x = ft.ShapeDtypeStruct((2, 3, 4, 5), "float32")
    jaxpr = ft.make_jaxpr(f)(x, x).jaxpr
    told = [str(equation_line(e, Names())) for e in jaxpr.eqns
            if e.primitive.name == "dot_general"]
    assert "[bcij,bckj->bcik]" in told[0] and "[ijkl,ijkl->]" in told[1]


@pytest.mark.parametrize("value, text", [
    (np.float32(1e-5), "1e-05"), (np.float16(0.1), "0.1"), (np.int32(3), "3"),
    (np.float64(0.1), "0.1"), (np.complex64(1 + 2j), "(1+2j)"), (np.bool_(True), "True")])
def test_numbers_are_the_shortest_of_their_dtype(value, text):
    literal = ft.make_jaxpr(lambda x: x + 1)(1.0).jaxpr.eqns[0].invars[1]
    assert isinstance(literal, Literal)
    assert Names()(Literal(value, literal.aval)) == text
    assert type(value)(complex(text) if "j" in text else eval(text)) == value


def test_jaxprs_of_notebooks_are_coloured_and_folded():
    page = Page(ft.make_jaxpr(newton)(np.ones((8, 8), np.float32))._repr_html_())
    assert "body: " in "".join(page.text) and "condition: " in "".join(page.text)


def test_the_source_is_linked_with_equations(explained):
    kernel = next(k for k in explained.kernels if k.source)
    linked = values_by_line(kernel)
    numbers = {v.equation for values in linked for v in values if v.equation is not None}
    assert numbers & set(kernel.equations)
    for text, values in zip(kernel.source.split("\n"), linked, strict=True):
        assert values or not re.match(r" +const f32x\d+ v\d+ = ", text)
    lines = kernel.instruction_lines()
    assert {line for _, line in lines} - {-1} <= set(range(len(linked)))
    assert len({line for _, line in lines}) > 3
    assert explained.machine_code(kernel.name).split("\n")[1:] == [text for text, _ in lines]


# --- the passes one by one

@pytest.mark.parametrize("f, args", [
    (layers, (LAYERS, BATCH)), (newton, (np.ones((8, 8), np.float32),)),
    (ft.grad(lambda x: (jnp.exp(x * 2j) * x).real.sum()), (np.ones(8, np.float32),)),
    (ft.vmap(ft.grad(lambda x: (x @ x.T).sum())), (np.ones((3, 4, 4), np.float32),))])
def test_steps_are_the_passes_that_ran(f, args):
    told = ft.explain(f, *args, target="cpu")
    runs = [run for run in told.report.passes if run.depth == 0]
    assert runs[0].before is told.report.traced and runs[-1].after is told.report.simplified
    assert all(a.after is b.before for a, b in pairwise(runs))
    rewrites = [r for run in told.report.passes for r in run.rewrites]
    assert sum(law.count for law in told.laws) == len(rewrites)
    for step in told.stepping.passes:
        assert len(step.before) >= len(step.run.before.eqns)
        assert any(part.kind != "equal" for part in step.parts)  # bodies are shown, too
        before = [step.before[k] for part in step.parts for k in part.before]
        after = [step.after[k] for part in step.parts for k in part.after]
        assert before == list(step.before) and after == list(step.after)
        for part in step.parts:
            if part.kind == "equal":
                assert [step.before[k] for k in part.before] == [step.after[k] for k in part.after]


def test_rewrites_are_found_in_both_programs():
    told = ft.explain(loss, W, X, target="cpu")
    (step,) = told.stepping.passes
    (rewrite,) = [r for r in step.rewrites if r.rewrite.table == "algebra"]
    assert "mul" in step.before[rewrite.before[0]] and "tanh" in step.after[rewrite.after[0]]
    assert "x * 1 = x" in str(step) and " | " in str(step)


def test_stepping_walks_forwards_and_backwards():
    stepping = ft.explain(newton, np.ones((8, 8), np.float32), target="cpu").stepping
    first = stepping.forward()
    assert first is stepping[0] and stepping.forward() is stepping[1]
    assert stepping[:2] == [stepping[0], stepping[1]]
    assert stepping.backward() is first
    with pytest.raises(ArgumentError, match="no step before"):
        stepping.backward()
    with pytest.raises(IndexError):
        stepping[len(stepping)]
    assert len(str(stepping).splitlines()) == len(stepping)


def test_the_page_has_the_steps(explained):
    found = re.search(r'data-ft="passes">(.*?)</script>', explained._repr_html_(), re.S)
    data = json.loads(found[1])
    assert [p["title"] for p in data["passes"]] == [s.title for s in explained.stepping]
    decisions = sum(len(step.rewrites) for step in explained.stepping.schedule)
    assert sum(len(p["rewrites"]) for p in data["passes"]) == decisions + sum(
        r.count for r in explained.laws)


# --- data

def test_reasons_have_advice(explained):
    reasons = explained.reasons
    assert [str(r) for r in explained.report.reasons] == explained.report.apart
    assert reasons and all(r.nbytes for r in reasons if r.value)
    assert any("right after it" in r.advice or "reads its operands" in r.advice for r in reasons)


def test_every_refusal_has_advice_or_nothing_to_say():
    folder = Path(__file__).parents[2] / "lowering" / "schedule"
    told = [reason for name in ("group", "epilogues", "chains", "epilogue_costs")
            for reason in re.findall(r'(?:Refused\(f?|return f?|reason = )"([a-z][^"]{12,})"',
                                     (folder / f"{name}.py").read_text())]
    assert len(told) > 15
    for reason in told:
        assert any(re.search(pattern, reason) for pattern, _ in ADVICE), reason
    assert advice_on("a reason that nobody knows") == ""


def test_arrays_and_what_was_never_made():
    def norms(w, x):
        grads = ft.vmap(ft.grad(lambda w, x: jnp.tanh(x @ w).sum()), (None, 0))(w, x)
        return (grads ** 2).sum((1, 2))

    told = ft.explain(norms, W, X, target="cpu")
    large = (128, 64, 32)
    assert any(a.shape == large and a.nbytes == 4 * 128 * 64 * 32 for a in told.arrays("traced"))
    assert not any(a.shape == large for a in told.arrays())
    (decision,) = told.contracted
    assert decision.never_made and decision.factors_flops < decision.made_flops
    with pytest.raises(ArgumentError, match="no program 'compiled'"):
        told.arrays("compiled")


def test_the_timeline_has_the_peak(explained):
    peak = explained.report.peak
    assert max(s.nbytes for s in explained.timeline) == peak.nbytes
    assert len(explained.timeline) == len([k for k in explained.kernels if not k.place])
    step = next(s for s in explained.timeline if s.step == peak.step)
    assert step.values == peak.values and sum(v.nbytes for v in step.values) == step.nbytes
