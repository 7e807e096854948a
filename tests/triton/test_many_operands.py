"""Sums over rows of kernels that read many operands: small tiles, and lanes beside each other."""

import re

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as xp
from functrans.lowering.schedule.target import HOPPER
from functrans.lowering.triton.lower import lower
from tests.triton.emulated import check

RNG = np.random.default_rng(0)


def arrays(count, *shape):
    return [RNG.uniform(0.5, 1.5, shape).astype(np.float32) for _ in range(count)]


def sums_of_many(*xs):
    total = xs[0]
    for x in xs[1:]:
        total = total * x + 0.1
    return total, xp.sum(total, axis=0)


def steps_of(fun, *args):
    return lower(ft.make_jaxpr(fun)(*args).jaxpr, frozenset(), False, False, HOPPER, None).program


def first_launch(program):
    return next(s for s in program.steps if hasattr(s, "warps"))


@pytest.mark.parametrize("count, elements", [(3, 2048), (12, 512), (24, 256)])
def test_a_round_of_many_operands_has_four_warps(count, elements):
    program = steps_of(sums_of_many, *arrays(count, 8192, 96))
    sides = re.search(r"tl.full\(\((\d+), (\d+)\), 0", program.sources[0]).groups()
    assert np.prod([*map(int, sides)]) == elements
    assert elements == 2048 or first_launch(program).warps == 4


def test_many_operands_are_summed():
    check(sums_of_many, *arrays(12, 300, 70))


def joined(x, y, z):
    """Parts side by side whose widths are odd: places are remainders."""
    return xp.sum(xp.concatenate([x, y, z], axis=2).reshape(x.shape[0], -1), axis=0)


def test_lanes_have_neighbours_where_remainders_hide_them():
    args = [np.ones((2048, 16, n), np.float32) for n in (8, 8, 7)]
    assert "fm.by_lanes(" in steps_of(joined, *args).sources[0]
    assert "fm.by_lanes(" not in steps_of(lambda x: xp.sum(x, axis=0), args[0]).sources[0]
    check(joined, *[RNG.standard_normal((37, 4, n)).astype(np.float32) for n in (8, 8, 7)])


def test_sums_of_many_short_parts_have_all_rows_at_once():
    """The gradient of a quadratic form of each column: 33 numbers are read of each element."""
    def form(x, g):
        y = sum(g[:, :, d, None, :] * x[:, None, d] for d in range(8))
        return xp.sum(x * y, axis=1)

    x, g = arrays(1, 2, 8, 40, 64)[0], arrays(1, 2, 8, 8, 64)[0]
    check(form, x, g)
