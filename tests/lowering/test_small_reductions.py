"""Reductions over columns of small matrices are apart from those along rows."""

import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans.lowering.passes.pipeline import simplify
from functrans.lowering.rules.graph import CALLS, graph_of
from functrans.lowering.rules.reduce import summed_dot_general
from functrans.lowering.schedule.group import schedule_of
from functrans.lowering.schedule.split_reductions import split_small_reductions
from functrans.primitives.dot import dot_general_p


def roles_of(shape, fun):
    jaxpr = simplify(ft.make_jaxpr(fun)(ft.ShapeDtypeStruct(shape, "float32")).jaxpr.hoist_consts())
    schedule = split_small_reductions(schedule_of(graph_of(jaxpr)))
    for step in schedule.steps:
        step.loads(step.builder(schedule.is_stored))  # everything that it reads is in memory
    return [{m.role for m in step.members} for step in schedule.steps]


def in_turn(x):
    return jnp.sin(x + x.sum(1)[:, None]).sum(0)


@pytest.mark.parametrize(("shape", "apart"), [
    ((256, 256), True),
    ((4096, 10), False),  # the last program has little to reduce
    ((4096, 512), False),  # much to read again
    ((3000, 80), False),  # many rows for one program
])
def test_what_is_apart(shape, apart):
    assert roles_of(shape, in_turn) == ([{"reduce_row"}, {"reduce_column"}] if apart else
                                        [{"reduce_row", "reduce_column"}])


@pytest.mark.parametrize("fun", [
    lambda x: (x * jnp.arange(3000.0)[:, None]).sum(0), lambda x: x.T @ jnp.sin(x[:, 0]),
    lambda x: (x * x[:, :1]).sum(0)])
def test_a_weight_of_each_row_does_not_turn_the_loops(fun):
    """It is read in order along the columns; so are few of many elements."""
    jaxpr = simplify(ft.make_jaxpr(fun)(ft.ShapeDtypeStruct((3000, 80), "float32"))
                     .jaxpr.hoist_consts())
    graph = graph_of(jaxpr, rules={**CALLS, dot_general_p: summed_dot_general})
    assert {"reduce_column"} in [{m.role for m in s.members} for s in schedule_of(graph).steps]
