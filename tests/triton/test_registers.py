"""What would not fit the registers of a thread is not compiled to find that out."""

import re

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as xp
from functrans import lax
from functrans.lowering.schedule.target import HOPPER
from functrans.lowering.triton.lower import lower
from functrans.lowering.triton.templates.registers import certainly_spills, live_tiles

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


# as ptxas 12.9 reports them: tile, threads, epilogue, numbers spilled
MEASURED = [
    ((64, 64), 128, ("keep", 5), 0), ((64, 64), 128, ("mix", 8), 0), ((64, 64), 128, ("seq", 8), 6),
    ((64, 128), 128, ("keep", 2), 0), ((64, 128), 128, ("keep", 3), 26),
    ((64, 128), 128, ("math", 4), 0), ((64, 128), 128, ("mix", 6), 18),
    ((64, 128), 128, ("seq", 4), 26), ((64, 128), 128, ("math", 8), 464),
    ((128, 64), 128, ("math", 8), 476), ((128, 64), 128, ("mix", 4), 0),
    ((128, 128), 128, ("math", 2), 0), ((128, 128), 128, ("mix", 2), 50),
    ((128, 128), 128, ("math", 4), 752), ((128, 128), 128, ("math", 8), 1156),
    ((128, 128), 128, ("keep", 5), 1088), ((128, 128), 128, ("mix", 6), 668),
    ((128, 128), 256, ("mix", 8), 2), ((128, 256), 256, ("mix", 8), 0),
    ((128, 256), 256, ("keep", 3), 6),
]


@pytest.mark.parametrize("tile, threads, kind, spilled", MEASURED)
def test_what_is_certain_to_spill_does(tile, threads, kind, spilled):
    expected = certainly_spills(epilogue(*kind), "s", tile[0] * tile[1] // threads, threads)
    if expected:
        assert spilled > HOPPER.measured.spills
        assert spilled / 4 < expected < 4 * spilled


def test_most_of_what_spills_a_lot_is_foreseen():
    spilling = [m for m in MEASURED if m[3] > 500 and m[2][0] != "math"]
    assert spilling and all(certainly_spills(epilogue(*kind), "s", m * n // threads, threads)
                            for (m, n), threads, kind, _ in spilling)


def test_rows_and_numbers_are_no_tiles():
    lines = ["e1 = tl.load(p0 + i)", "e2 = tl.full((), 2.0, tl.float32)", "e3 = e1 * e2",
             "e4 = acc + e3", "tl.store(p1 + o * 8 + i, e4)"]
    assert live_tiles(lines, "e4") == (2, 1)


def gelu_gradient(x, w, y):
    return ft.vjp(ft.nn.gelu, y)[1](x @ w)[0]


def test_a_long_epilogue_is_a_kernel_of_its_own():
    x, w, y = (np.ones(s, np.float32) for s in ((8, 1280, 512), (8, 512, 1024), (8, 1280, 1024)))
    program = lowered(gelu_gradient, x, w, y)
    assert [bool(re.match("matmul", s.kernel)) for s in program.steps][-2:] == [True, False]


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


def test_a_loop_that_holds_more_than_it_can_is_launched():
    q = np.ones((512, 32), np.float32)
    program = lowered(ft.vmap(leapfrog, (0, 0, None, None)), q, q, NARROW,
                      np.ones(1024, np.float32))
    (note,) = [n for n in program.notes if "scan is" in n]
    assert "launched step by step" in note
