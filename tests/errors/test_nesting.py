"""What is nested too deep says so, and how to go on."""

import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans.core.errors import NestingError


def nested(transform, depth):
    f = jnp.sin
    for _ in range(depth):
        f = transform(lambda x, f=f: f(x) + 1)
    return f


@pytest.mark.parametrize("transform", [ft.jit, ft.grad, ft.checkpoint])
def test_functions_in_functions(transform):
    with pytest.raises(NestingError, match=r"limit of .* nested calls") as error:
        nested(transform, 1000)(1.0)
    assert isinstance(error.value, RecursionError) and not isinstance(error.value, ValueError)
    assert "sys.setrecursionlimit" in error.value.fix and "defect" not in str(error.value)


def test_fifty_are_not_too_many():
    assert float(nested(ft.jit, 50)(0.0)) == 50


def test_containers_in_containers():
    x = jnp.ones(2)
    for _ in range(3000):
        x = [x]
    for use in (ft.jit(lambda tree: 1), ft.grad(lambda tree: 1.0), ft.vmap(lambda tree: 1),
                lambda tree: ft.tree.map(lambda leaf: leaf, tree)):
        with pytest.raises(NestingError, match="containers in containers") as error:
            use(x)
        assert "a flat list" in error.value.fix


def test_a_function_without_an_end_is_the_users():
    def f(x):
        return f(x)
    with pytest.raises(RecursionError):
        ft.jit(f)(1.0)
