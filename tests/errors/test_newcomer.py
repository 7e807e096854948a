"""Public functions called with anything: what comes back is a result or a message of ours."""

import random
import re
import warnings
from collections.abc import Callable, Iterator
from types import GenericAlias
from typing import Any

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans import lax
from functrans.core.errors import ArgumentError, FunctransError
from tests.errors.expect import caught, internal_frames

MODULES = {"jnp": jnp, "lax": lax, "linalg": jnp.linalg, "fft": jnp.fft, "random": ft.random,
           "nn": ft.nn, "special": ft.scipy.special}
FUNCTIONS = sorted(
    (f"{name}.{key}", f) for name, module in MODULES.items() for key in module.__all__
    if callable(f := getattr(module, key)) and not isinstance(f, type)
    and not isinstance(f, (type(jnp.float32), GenericAlias)))
ARITY = re.compile(r"positional argument|keyword argument|missing \d+ required|multiple values")


def anything() -> list[Any]:
    cycle: list[Any] = []
    cycle.append(cycle)
    return [
        None, "a", b"x", True, 0, 1, -1, 2**40, 1.5, float("nan"), 1j, (), [], {}, (1, 2),
        [[1], [2, 3]], (-1,), cycle, iter([1]), object(), {1, 2}, range(3), slice(None), Ellipsis,
        np.array([None]), np.array(["a"]), np.ones(3), np.int64(3), np.datetime64("2020"),
        jnp.ones(3), jnp.ones((2, 3)), jnp.ones((2, 2)), jnp.zeros(0), jnp.zeros((0, 3)),
        jnp.arange(3), jnp.ones(3, bool), jnp.ones((2, 3, 4)), jnp.array(1.0), jnp.array(2),
        jnp.ones(3, "bfloat16"), jnp.ones(2, "complex64"), "float32", np.float32,
        ft.random.key(0), ft.ShapeDtypeStruct((3,), "float32"), jnp.full((2,), float("nan"))]


def calls(seed: int, count: int) -> Iterator[tuple[str, Callable[[], Any]]]:
    rng = random.Random(seed)
    for _ in range(count):
        name, f = rng.choice(FUNCTIONS)
        pool = anything()
        args = [rng.choice(pool) for _ in range(rng.choice([1, 1, 2, 2, 3]))]
        yield name, lambda f=f, args=args: f(*args)  # type: ignore[misc]


@pytest.mark.parametrize("seed", range(3))
def test_no_internal_error_is_reachable(seed: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, call in calls(seed, 700):
            try:
                call()
            except FunctransError as error:
                assert str(error) and "  Where: " in str(error)
                assert len(internal_frames(error.__traceback__)) <= 1, name
            except TypeError as error:  # the wrong number of arguments is Python's to report
                assert ARITY.search(str(error)), (name, error)


def test_what_was_not_foreseen_names_the_function_its_arguments_and_the_reason() -> None:
    caught(lambda: jnp.triu_indices(1j), ArgumentError, "triu_indices(1j) failed",
           "TypeError: '<=' not supported", "help(triu_indices)", "FUNCTRANS_DEBUG=1")
    caught(lambda: lax.slice_in_dim(jnp.ones(3), None, None, axis="x"), ArgumentError,
           "slice_in_dim(f32[3], None, None, axis='x')")
    with pytest.raises(TypeError, match=r"sum\(\) missing 1 required positional argument: 'a'"):
        jnp.sum()
    with pytest.raises(TypeError, match=r"object of type 'int' has no len\(\)"):
        ft.tree.map(len, [1])
