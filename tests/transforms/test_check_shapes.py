"""Contracts on shapes, verified for all sizes; costs as formulas."""

import numpy as np
import pytest
import sympy

import functrans as ft
import functrans.numpy as jnp
from functrans.core.errors import (
    ArgumentError,
    ConcretizationError,
    ShapeError,
    TreeMismatchError,
)

HOLDS = [
    (lambda x, w: x @ w, "B S D, D E -> B S E"),
    (lambda x: (x.sum(0), x.reshape(-1)), "B D -> D, B*D"),
    (lambda x: jnp.concatenate([x, x[1:]]), "B 3 -> 2*B-1 3"),
    (lambda x: x.sum(), "B -> ()"),
    (lambda q, k: ft.nn.softmax(jnp.einsum("bqd,bkd->bqk", q, k)), "B Q D, B K D -> B Q K"),
    (ft.vmap(ft.grad(lambda x: (x ** 2).sum())), "B D -> B D"),
    (lambda i, t: t[i], "int32[B], V D -> B D"),
]


@pytest.mark.parametrize(("fun", "contract"), HOLDS, ids=[c for _, c in HOLDS])
def test_contracts_that_hold(fun, contract):
    ft.check_shapes(fun, contract)


BROKEN = [
    (lambda x, w: x @ w, "B D, E D -> B E", "D"),
    (lambda x, w: x @ w, "B D, D E -> E B", "axis 0 of the result is B, and the contract says E"),
    (lambda x: x[1:], "B -> B", "axis 0 of the result is B - 1, and the contract says B"),
    (lambda x, y: x + y, "B, N -> B", "axis -1 has sizes"),
    (lambda x: x, "B D -> B", "the result has 2 axes, and the contract 1"),
    (lambda x: x > 0, "B -> float32[B]", "is bool, and the contract says float32"),
    (lambda x: (x, x[:, 0]), "B D -> B D, D", r"axis 0 of the result\[1\] is B"),
]


@pytest.mark.parametrize(("fun", "contract", "words"), BROKEN, ids=[c for _, c, _ in BROKEN])
def test_contracts_that_do_not(fun, contract, words):
    with pytest.raises(ShapeError, match=words):
        ft.check_shapes(fun, contract)


def test_trees():
    def layer(p, x):
        return {"y": x @ p["w"] + p["b"]}
    specs = {"w": "D E", "b": "E"}, "B D"
    assert ft.check_shapes(layer, *specs, result={"y": "B E"})["y"].ndim == 2
    with pytest.raises(ShapeError, match=r"axis 1 of the result\['y'\] is E"):
        ft.check_shapes(layer, *specs, result={"y": "B D"})
    with pytest.raises(TreeMismatchError):
        ft.check_shapes(layer, *specs, result="B E")


def test_decisions_on_sizes_have_no_answer():
    with pytest.raises(ConcretizationError, match="whether B > 4 holds"):
        ft.check_shapes(lambda x: x if x.shape[0] > 4 else x * 2, "B -> B")


@pytest.mark.parametrize("wrong", ["B +", "B/2", "f(B)", "1.5"])
def test_what_is_no_shape(wrong):
    with pytest.raises(ArgumentError, match="is no size"):
        ft.check_shapes(jnp.sin, wrong)


def test_costs_are_formulas():
    B, D = ft.dim("B"), ft.dim("D")
    x, w = ft.ShapeDtypeStruct((B, D), "float32"), ft.ShapeDtypeStruct((D, 8), "float32")
    compiled = ft.lower(lambda x, w: jnp.tanh(x @ w), x, w, target="cpu").compile()
    memory, cost = compiled.memory_analysis(), compiled.cost_analysis()
    b, d = B.expr, D.expr
    assert sympy.expand(memory["arguments"].expr - (4 * b * d + 32 * d)) == 0
    assert sympy.expand(memory["outputs"].expr - 32 * b) == 0
    assert sympy.diff(cost["flops"].expr, b, d) == 16
    for n, k in ((5, 3), (64, 32)):
        exact = ft.lower(lambda x, w: jnp.tanh(x @ w), ft.ShapeDtypeStruct((n, k), "float32"),
                         ft.ShapeDtypeStruct((k, 8), "float32"), target="cpu").compile()
        sizes = {"B": n, "D": k}
        assert cost["flops"].substitute(sizes) == exact.cost_analysis()["flops"]
        assert memory["outputs"].substitute(sizes) == exact.memory_analysis()["outputs"]


@pytest.mark.parametrize(("contract", "words"), [
    ("B,D -> B,D", r"2 arguments \(B, D\), and double takes others: too many"),
    ("(B, D) -> (B, D)", r"'\(B' is no size"), ("B D => B D", "'=>' is no size"),
    ("2 * B D -> 2*B D", r"'\*' is no size"), ("2B D -> 2B D", "'2B' is no size"),
])
def test_contracts_that_are_written_wrong(contract, words):
    def double(x):
        return x * 2

    with pytest.raises(ArgumentError, match=words) as error:
        ft.check_shapes(double, contract)
    assert "blanks" in str(error.value)


def test_arguments_that_are_missing():
    with pytest.raises(ArgumentError, match="missing a required argument: 'y'"):
        ft.check_shapes(lambda x, y: x, "B D -> B D")


def test_arrays_stand_for_their_shapes():
    found = ft.check_shapes(lambda w, x: x @ w, np.ones((3, 4), "f"), "B 3", result="B 4")
    assert str(found.shape) == "(B, 4)"
