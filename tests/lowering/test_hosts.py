"""What compiled programs leave to Python is what docs/cpu.md says."""

import re
from pathlib import Path

import functrans as ft
from functrans.lowering.c.functions import graph_with_lanes
from functrans.lowering.loops.tensor import HostCall
from functrans.lowering.passes.complex_parts import split_complex
from functrans.lowering.passes.pipeline import simplify
from tests.laws.primitives import all_cases

PAGE = Path(__file__).parents[2] / "docs" / "cpu.md"


def documented():
    section = PAGE.read_text().split("## What goes to the host\n")[1].split("\n## ")[0]
    cells = re.findall(r"^\| ([^|]+) \|", section, re.MULTILINE)[1:]
    return {name for cell in cells for name in re.findall(r"`(\w+)`", cell)}


def host_calls(case):
    """The primitives of a sample that Python evaluates."""
    closed = ft.make_jaxpr(lambda *args: case.outs(*args))(*case.args)
    simplified = simplify(split_complex(simplify(closed.jaxpr.hoist_consts())))
    graph = graph_with_lanes(simplified)
    return {item.eqn.primitive.name for item in graph.items if isinstance(item, HostCall)}


def test_the_table_is_what_goes_to_the_host():
    cases = all_cases()
    found = set().union(*map(host_calls, cases))
    assert found == documented() & {c.primitive.name for c in cases}
