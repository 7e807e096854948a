"""What would not fit the registers of a thread is not compiled to find that out."""


import numpy as np
import pytest

import functrans as ft
import functrans.numpy as xp
from functrans import lax
from functrans.lowering.schedule.forms import preferring
from functrans.lowering.schedule.target import HOPPER
from functrans.lowering.triton.loops.lane_tiles import TILES
from functrans.lowering.triton.lower import lower
from functrans.lowering.triton.templates.registers import expected_spills, live_tiles

NARROW = np.ones((1024, 32), np.float32)


def lowered(fun, *args):
    return lower(ft.make_jaxpr(fun)(*args).jaxpr, frozenset(), False, False, HOPPER, None).program


def epilogue(kind, count):
    """Lines as of the table below."""
    loads = [f"e{j} = tl.load(p0 + o * 1024 + i + {j * 7})" for j in range(count)]
    if kind == "keep":
        return [*loads, "s = fm.exp(acc)", *[f"s = s * e{j}" for j in range(count)],
                *[f"s = s + e{j}" for j in range(count)]]
    if kind == "seq":
        return ["s = acc", *[line for j in range(count) for line in (
            loads[j], f"s = s + e{j} * {1.5 + j}")]]
    made = [f"e{j} = fm.exp(acc * {1.1 + j})" for j in range(count)] if kind == "math" else [
        *loads[:count // 2], *[f"e{j} = e{j - count // 2} * acc + {j}.0"
                               for j in range(count // 2, count)]]
    return [*made, "s = acc", *[f"s = s * e{j} + e{(j * 3 + 1) % count}"
                                for j in reversed(range(count))]]


# as ptxas 12.9 reports them, for TensorFloat-32: tile, threads, epilogue, numbers spilled
MEASURED = [
    ((128, 256), 256, ("keep", 1), 44), ((128, 256), 256, ("keep", 3), 494),
    ((128, 256), 256, ("keep", 5), 746), ((128, 256), 256, ("mix", 4), 214),
    ((128, 256), 256, ("mix", 8), 622), ((128, 256), 256, ("seq", 4), 466),
    ((128, 256), 256, ("seq", 8), 878), ((128, 256), 256, ("math", 2), 0),
    ((128, 256), 256, ("math", 4), 700), ((128, 128), 128, ("keep", 1), 32),
    ((128, 128), 128, ("keep", 3), 446), ((128, 128), 128, ("mix", 4), 254),
    ((128, 128), 128, ("seq", 8), 888), ((128, 128), 128, ("math", 4), 700),
    ((128, 128), 256, ("keep", 1), 0), ((128, 128), 256, ("keep", 3), 42),
    ((128, 128), 256, ("keep", 5), 216), ((128, 128), 256, ("mix", 4), 0),
    ((128, 128), 256, ("mix", 8), 80), ((128, 128), 256, ("seq", 4), 20),
    ((128, 128), 256, ("seq", 8), 204), ((128, 128), 256, ("math", 4), 0),
    ((128, 64), 256, ("keep", 5), 0), ((128, 64), 256, ("mix", 8), 0),
    ((128, 64), 256, ("seq", 8), 0), ((128, 64), 256, ("math", 4), 0),
]


@pytest.mark.parametrize("tile, threads, kind, spilled", MEASURED)
def test_what_is_expected_to_spill_does(tile, threads, kind, spilled):
    expected = expected_spills(epilogue(*kind), "s", tile[0] * tile[1] // threads)
    if expected:
        assert spilled >= 80
        assert spilled / 4.5 < expected < 4.5 * spilled


def test_what_spills_a_lot_is_foreseen():
    spilling = [m for m in MEASURED if m[3] > 250]
    assert spilling and all(expected_spills(epilogue(*kind), "s", m * n // threads)
                            for (m, n), threads, kind, _ in spilling)


def test_rows_and_numbers_are_no_tiles():
    lines = ["e1 = tl.load(p0 + i)", "e2 = tl.full((), 2.0, tl.float32)", "e3 = e1 * e2",
             "e4 = acc + e3", "tl.store(p1 + o * 8 + i, e4)"]
    assert live_tiles(lines, "e4") == (2, 0, 2)


def gelu_gradient(x, w, y):
    return ft.vjp(ft.nn.gelu, y)[1](x @ w)[0]


@pytest.mark.one_in(2)
@pytest.mark.parametrize("k", [256, 8192])
@pytest.mark.parametrize("fun", [gelu_gradient, lambda x, w, y: ft.nn.relu(x @ w) + y])
def test_a_long_epilogue_is_a_kernel_of_its_own(fun, k):
    """By the estimate: behind it a product of float32 has smaller tiles."""
    x, w, y = (np.ones(s, np.float32) for s in ((8, 1280, k), (8, k, 1024), (8, 1280, 1024)))
    program = lowered(fun, x, w, y)
    products = [s for s in program.steps if s.kernel == "matmul"]
    assert (program.steps[-1] in products) == (fun is not gelu_gradient)
    text = program.sources[products[-1].module]
    assert ("e1 = " in text) == (fun is not gelu_gradient)


def leapfrog(q, p, x, y):
    """Two gradients of a logistic regression in a step, of which one could hold the matrix."""
    def slope(q):
        return ft.grad(lambda q: (y * (x @ q) - xp.logaddexp(0.0, x @ q)).sum() - (q * q).sum())(q)

    def step(i, c):
        q, p = c
        p = p + 0.01 * slope(q)
        q = q + 0.01 * p
        return q, p + 0.01 * slope(q)
    return lax.fori_loop(0, 8, step, (q, p))


def test_a_loop_that_holds_more_than_it_can_is_in_tiles_or_launched():
    """The loop in one kernel for all chains would spill 1,508 numbers of each thread."""
    q = np.ones((512, 32), np.float32)
    for form in (TILES, "launched step by step"):
        with preferring(form):
            program = lowered(ft.vmap(leapfrog, (0, 0, None, None)), q, q, NARROW,
                              np.ones(1024, np.float32))
        (note,) = [n for n in program.notes if "scan is" in n]
        assert form in note
