"""What compiled programs leave to Python is what docs/cpu.md says."""

import re
from pathlib import Path

import functrans as ft
from functrans.core import dtypes
from functrans.lowering.loops.tensor import HostCall
from functrans.lowering.passes.pipeline import simplify
from functrans.lowering.rules.graph import graph_of
from tests.laws.primitives import all_cases

PAGE = Path(__file__).parents[2] / "docs" / "cpu.md"


def documented():
    section = PAGE.read_text().split("## What goes to the host\n")[1].split("\n## ")[0]
    cells = re.findall(r"^\| ([^|]+) \|", section, re.MULTILINE)[1:]
    return {name for cell in cells for name in re.findall(r"`(\w+)`", cell)}


def host_calls(case):
    """The primitives of a sample that Python evaluates."""
    closed = ft.make_jaxpr(lambda *args: case.outs(*args))(*case.args)
    graph = graph_of(simplify(closed.jaxpr.hoist_consts()))
    return {item.eqn.primitive.name for item in graph.items if isinstance(item, HostCall)}


def test_the_table_names_what_goes_to_the_host():
    real = [c for c in all_cases() if not any(dtypes.kind(a.dtype) == "c"
                                              for a in (*c.args, *c.outs(*c.args)))]
    found = set().union(*map(host_calls, real))
    assert found
    assert found <= documented()


def test_the_table_names_nothing_else():
    found = set().union(*map(host_calls, all_cases()))
    by_kind = {"complex", "real", "imag", "conj"}
    every = {c.primitive.name for c in all_cases()}
    named = documented() & every
    assert named - found <= by_kind
