"""What compiled programs leave to Python is what docs/internals/cpu.md says."""

import re
from pathlib import Path

import numpy as np

import functrans as ft
import functrans.numpy as jnp
from functrans.lowering.c.functions import graph_with_lanes
from functrans.lowering.c.lower import in_real_numbers, lower
from functrans.lowering.loops.tensor import HostCall
from functrans.lowering.passes.pipeline import simplify
from tests.laws.primitives import all_cases

PAGE = Path(__file__).parents[2] / "docs" / "internals" / "cpu.md"


def documented():
    section = PAGE.read_text().split("## What goes to the host\n")[1].split("\n## ")[0]
    cells = re.findall(r"^\| ([^|]+) \|", section, re.MULTILINE)[1:]
    return {name for cell in cells for name in re.findall(r"`(\w+)`", cell)}


def host_calls(case):
    """The primitives of a sample that Python evaluates."""
    closed = ft.make_jaxpr(lambda *args: case.outs(*args))(*case.args)
    graph = graph_with_lanes(in_real_numbers(simplify(closed.jaxpr.hoist_consts())))
    return {item.eqn.primitive.name for item in graph.items if isinstance(item, HostCall)}


def test_the_table_is_what_goes_to_the_host():
    cases = all_cases()
    found = set().union(*map(host_calls, cases))
    assert found == documented() & {c.primitive.name for c in cases}


def test_complex_arrays_are_moved_by_kernels():
    z = np.ones((4, 5), np.complex64)
    for fun in (lambda z: (z * z).T, lambda z: jnp.broadcast_to(z[0] * 2, (3, 5)),
                lambda z: z.T.reshape(-1) ** 2, lambda z: jnp.prod(z, axis=1)):
        assert not lower(ft.lower(fun, z).jaxpr, frozenset()).text.hosts
