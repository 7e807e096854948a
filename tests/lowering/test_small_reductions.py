"""Reductions over columns of small matrices are apart from those along rows."""

import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans.lowering.passes.pipeline import simplify
from functrans.lowering.rules.graph import graph_of
from functrans.lowering.schedule.group import schedule_of
from functrans.lowering.schedule.split_reductions import split_small_reductions


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
