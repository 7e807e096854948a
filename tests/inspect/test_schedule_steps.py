"""Stepping through the schedule: what is computed once, fusion and its reasons, memory."""

import re
from itertools import pairwise

import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans.lowering.report import NAME
from tests.inspect.kernels import PROGRAMS, gpu_program, schedule_runs, shape
from tests.inspect.programs import loss


def runs_for_cpu(f, *args):
    return ft.explain(f, *args, target="cpu").report.schedule


def runs_for_gpu(f, *args):
    return schedule_runs(gpu_program(f, *args)[1])


RUNS = {"cpu": runs_for_cpu, "gpu": runs_for_gpu}


@pytest.mark.parametrize("backend", RUNS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_steps_go_on_where_the_one_before_ended(name, backend):
    f, args = PROGRAMS[name]
    runs = RUNS[backend](f, *args)
    assert runs[-1].name == "memory" and all(len(run.after) for run in runs)
    names = [run.name for run in runs]
    after_fusion = runs[names.index("fusion"):] if "fusion" in names else runs[-1:]
    for a, b in pairwise(after_fusion):
        assert a.after == b.before, (a.name, b.name)
    for run in runs:
        for side in (run.before, run.after):
            assert all(line.text.count(NAME) == len(line.of) for line in side)
        for d in run.decisions:
            assert d.text.text.count(NAME) == len(d.text.of)
            assert all(0 <= k < len(run.before) for k in d.before)
            assert all(0 <= k < len(run.after) for k in d.after)


def test_values_are_computed_once_for_a_reason():
    def f(x):
        y = jnp.exp(x) + 1
        return y.sum() * 2, jnp.sin(y[::-1]) * y

    first = runs_for_cpu(f, shape(512))[0]
    reasons = {d.reason for d in first.decisions}
    assert "it is a result" in reasons and "it is a reduction" in reasons
    assert any("read several times" in reason for reason in reasons)
    inlined = [line for line in first.after if "inlined where it is read" in line.text]
    assert len(inlined) + len(first.decisions) == len(first.after)


@pytest.mark.parametrize("name", ["rows", "network", "columns", "elements"])
def test_each_value_is_fused_or_begins_a_kernel_and_refusals_are_those_told(name):
    f, args = PROGRAMS[name]
    explained = ft.explain(f, *args, target="cpu")
    (fusion,) = [run for run in explained.report.schedule if run.name == "fusion"]
    kinds = [d.kind for d in fusion.decisions]
    kernels = sum(line.text.startswith("kernel") for line in fusion.after)
    alone = sum(line.text.startswith("kernel") for line in fusion.before)
    assert kinds.count("fused") == alone - kernels
    assert all(d.reason for d in fusion.decisions if d.kind in ("fused", "refused"))
    told = {r.why.removeprefix("is computed apart: ") for r in explained.reasons}
    assert {d.reason for d in fusion.decisions if d.kind == "refused"} <= told


def test_epilogues_and_their_refusals_are_a_step():
    f, args = PROGRAMS["network"]
    runs = {run.name: run for run in runs_for_cpu(f, *args)}
    step = runs["epilogues of products"]
    changed = [d.text.text for d in step.decisions if d.kind == "changed"]
    assert f"{NAME}: gemm -> gemm with epilogue" in changed
    runs = {run.name: run for run in runs_for_cpu(loss, *args)}
    (refused,) = [d for d in runs["epilogues of products"].decisions if d.kind == "refused"]
    assert "it reduces the product before anything else" in refused.reason


def test_chains_and_attention_are_steps():
    f, args = PROGRAMS["attention"]
    assert "chains of steps over blocks of rows" in [run.name for run in runs_for_cpu(f, *args)]
    assert "attention" in [run.name for run in runs_for_gpu(f, *args)]


@pytest.mark.parametrize("backend", RUNS)
def test_memory_has_each_value_that_is_stored(backend):
    f, args = PROGRAMS["network"]
    memory = RUNS[backend](f, *args)[-1]
    places = [re.search(r" at (arena \+ \d+|result \d+)", line.text) for line in memory.after
              if "in memory" in line.text]
    assert places and all(places)
    assert not any(" at " in line.text for line in memory.before)


def test_updates_that_are_copied_are_told():
    def update(table, row):
        return table.at[2].set(row)

    memory = runs_for_cpu(update, shape(8, 4), shape(4))[-1]
    assert any("is copied before" in d.reason for d in memory.decisions)
    given = ft.explain(ft.jit(update, donate_argnums=0), shape(8, 4), shape(4), target="cpu")
    assert any("which was donated" in d.reason for d in given.report.schedule[-1].decisions)


def test_stepping_goes_on_into_the_schedule():
    f, args = PROGRAMS["network_gradient"]
    explained = ft.explain(f, *args, target="cpu")
    stepping = explained.stepping
    assert len(stepping) == len(stepping.passes) + len(stepping.schedule)
    first = stepping.schedule[0]
    while stepping.forward() is not first:
        assert not stepping[first.number - 1].is_of_schedule
    assert stepping.backward() is stepping.passes[-1] and stepping.forward() is first
    fusion = next(step for step in stepping.schedule if step.run.name == "fusion")
    assert fusion.title.startswith(f"{fusion.number + 1}. schedule, fusion: ")
    text = str(fusion)
    assert " | " in text and NAME not in text and "by itself" in text
    names = {line.partition(":")[0].strip() for line in first.before}
    assert names & {line.partition(":")[0].strip() for line in stepping.passes[-1].after}
    for step in stepping.schedule:
        for part in step.parts:
            if part.kind == "equal":
                assert [step.before[k] for k in part.before] == [step.after[k] for k in part.after]


def test_a_schedule_that_is_made_again_changes_nothing():
    f, args = PROGRAMS["network_gradient"]
    _, program = gpu_program(f, *args)
    before = list(program.sources), program.steps
    assert [r.name for r in schedule_runs(program)] == [r.name for r in schedule_runs(program)]
    assert (program.sources, program.steps) == before
