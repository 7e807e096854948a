"""Quotients and remainders of integers, by zero too: eagerly, in C and in Triton as in JAX."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans import lax

SIGNED, UNSIGNED = ("int8", "int16", "int32", "int64"), ("uint8", "uint16", "uint32", "uint64")


def operands(dtype):
    """Every pair of: the ends of the dtype, 0, and some numbers of either sign."""
    info = np.iinfo(dtype)
    numbers = [0, 1, 2, 3, 7, info.max] + ([-1, -2, -3, -7, info.min] if info.min else [])
    x, y = np.meshgrid(np.array(numbers, dtype), np.array(numbers, dtype))
    return x.reshape(-1), y.reshape(-1)


def expected(name, x, y):
    """What JAX gives: numpy's quotient by 0 is -2 (-1 for 0, the largest unsigned), its rest 0."""
    zero, safe = y == 0, np.where(y == 0, 1, y).astype(y.dtype)
    with np.errstate(all="ignore"):
        floor, rest = np.floor_divide(x, safe), np.remainder(x, safe)
        cut = np.fmod(x, safe)
        quotient = (floor + ((rest != 0) & ((x < 0) != (safe < 0)))).astype(x.dtype)
    ones = np.array(-1).astype(x.dtype)
    below = ones if x.dtype.kind == "u" else np.where(x == 0, -1, -2).astype(x.dtype)
    return {"floor_divide": np.where(zero, below, floor), "remainder": np.where(zero, 0, rest),
            "fmod": np.where(zero, 0, cut), "div": np.where(zero, ones, quotient),
            "rem": np.where(zero, x, cut)}[name]


FUNCTIONS = {"floor_divide": jnp.floor_divide, "remainder": jnp.remainder, "fmod": jnp.fmod,
             "div": lax.div, "rem": lax.rem}
OPERATORS = {"floor_divide": lambda x, y: x // y, "remainder": lambda x, y: x % y}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("dtype", SIGNED + UNSIGNED)
@pytest.mark.parametrize("backend", ["eager", "c", "triton"])
def test_quotients_and_rests_are_those_of_jax(dtype, backend):
    x, y = operands(dtype)

    def all_of_them(x, y):
        found = {name: f(x, y) for name, f in FUNCTIONS.items()}
        found["divmod"] = jnp.divmod(x, y)
        found["operators"] = {name: f(x, y) for name, f in OPERATORS.items()}
        found["by zero"] = x // 0, x % 0
        return found

    if backend == "eager":
        found = all_of_them(jnp.asarray(x), jnp.asarray(y))
    else:
        with ft.config.use_backend(backend):
            found = ft.jit(all_of_them)(x, y)
    wanted = {name: expected(name, x, y) for name in FUNCTIONS}
    wanted["divmod"] = wanted["floor_divide"], wanted["remainder"]
    wanted["operators"] = {name: wanted[name] for name in OPERATORS}
    wanted["by zero"] = tuple(expected(name, x, np.zeros_like(x)) for name in OPERATORS)
    assert ft.tree.structure(found) == ft.tree.structure(wanted)
    for a, b in zip(ft.tree.leaves(found), ft.tree.leaves(wanted), strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)


def test_single_numbers_by_zero():
    for i in (7, -7, 0):
        x = jnp.asarray(np.int32(i))
        assert (int(x // 0), int(x % 0)) == (-2 if i else -1, 0)
        assert tuple(map(int, divmod(x, 0))) == (-2 if i else -1, 0)
        assert int(jnp.asarray(i) // jnp.asarray(0)) == (-2 if i else -1)
