"""What programs cost: one walk, which looks into whatever a call runs."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans import lax
from functrans.core.cost import jaxpr_cost
from functrans.core.errors import MissingRuleError
from functrans.core.jaxpr import subjaxprs
from functrans.core.primitive import HigherOrder
from functrans.lowering.analysis import cost_of


def loop(x):
    return lax.fori_loop(0, 100, lambda i, v: v * 1.0001 + jnp.sin(v), x)


def with_jvp_rule(fun):
    call = ft.custom_jvp(fun)
    call.defjvp(lambda primals, tangents: (call(*primals), tangents[0]))
    return call


def with_vjp_rule(fun):
    call = ft.custom_vjp(fun)
    call.defvjp(lambda x: (call(x), None), lambda _, ct: (ct,))
    return call


CALLS = {"jit": ft.jit, "jit of jit": lambda f: ft.jit(ft.jit(f)), "checkpoint": ft.checkpoint,
         "custom_jvp": with_jvp_rule, "custom_vjp": with_vjp_rule,
         "checked": lambda f: ft.checked(f)}
each_call = pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)


def equations(jaxpr):
    for eqn in jaxpr.eqns:
        yield eqn
        for body in subjaxprs(eqn):
            yield from equations(body)


@each_call
def test_a_call_costs_what_it_runs(call):
    x = np.ones(16, np.float32)
    plain, called = (ft.make_jaxpr(f)(x).jaxpr for f in (loop, call(loop)))
    assert jaxpr_cost(called) == jaxpr_cost(plain)
    assert cost_of(called)["flops"] >= 100 * 2 * 16


@each_call
def test_lanes_that_branch_see_through_calls(call):
    """A branch is as expensive in a call: lanes are taken in the same blocks."""
    x, taken = np.ones((1024, 16), np.float32), np.arange(1024) % 100 == 0

    def lanes(branch):
        one = ft.vmap(lambda c, v: lax.cond(c, branch, lambda v: v * 2, v))
        program = ft.jit(one).lower(taken, x).jaxpr
        return sorted((e.params["length"], e.params["num_carry"]) for e in equations(program)
                      if e.primitive.name == "scan")

    assert lanes(call(loop)) == lanes(loop)
    assert any(num_carry == 0 for _, num_carry in lanes(loop))  # a scan over blocks of lanes


def test_the_most_expensive_branch_counts():
    x = np.ones(8, np.float32)
    branches = [lambda v: v, loop]
    for first, second in (branches, branches[::-1]):
        program = ft.make_jaxpr(lambda c, v, f=first, g=second: lax.cond(c, f, g, v))(True, x)
        assert jaxpr_cost(program.jaxpr).flops >= jaxpr_cost(ft.make_jaxpr(loop)(x).jaxpr).flops


def test_a_while_loop_costs_its_predicate_and_one_iteration():
    def body(v):
        return jnp.sin(v) + 1

    program = ft.make_jaxpr(lambda v: lax.while_loop(lambda v: v.sum() < 9, body, v))(np.ones(8))
    params = program.jaxpr.eqns[0].params
    expected = jaxpr_cost(params["cond_jaxpr"]).flops + jaxpr_cost(params["body_jaxpr"]).flops
    assert jaxpr_cost(program.jaxpr).flops == expected


def test_costs_of_branches_of_symbolic_sizes_are_bounds():
    n = ft.dim("n")
    x = ft.ShapeDtypeStruct((n,), np.float32)
    program = ft.make_jaxpr(lambda c, v: lax.cond(c, loop, jnp.sin, v))(True, x).jaxpr
    assert jaxpr_cost(program).flops.substitute({"n": 8}) >= 100 * 2 * 8


def test_a_higher_order_primitive_without_a_cost_is_refused():
    with pytest.raises(MissingRuleError, match="no rule 'cost'"):
        class Repeat(HigherOrder):
            def type(self, *avals, jaxpr):
                return list(jaxpr.out_avals)

            evaluate = jvp = linearize = batch = type
