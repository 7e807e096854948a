"""Reads through quotients and remainders: as wide as neighbours in memory go on, and right."""

import re

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans.lowering.schedule.target import HOPPER
from functrans.lowering.triton.machine.compile import compile_unit
from functrans.lowering.triton.machine.device import unit_of
from functrans.lowering.triton.steps.spec import launches_in
from tests.triton.emulated import check, program_of

S = ft.ShapeDtypeStruct
RNG = np.random.default_rng(0)
ACCESS = re.compile(r"(ld|st)\.global(?!\.cg)\S*?(?:\.v(\d))?\.b(\d+)")


def patchify(x, side, first=True):
    """Patches of pictures, with colours last or first in memory."""
    if not first:
        b, h, w, c = x.shape
        x = x.reshape(b, h // side, side, w // side, side, c).transpose(0, 1, 3, 2, 4, 5)
    else:
        b, c, h, w = x.shape
        x = x.reshape(b, c, h // side, side, w // side, side).transpose(0, 2, 4, 1, 3, 5)
    return 2 * x.reshape(b, (h // side) * (w // side), side * side * c)


def unpatchify(x, side, colours=3):
    b, n, _ = x.shape
    k = int(n**0.5)
    x = x.reshape(b, k, k, side, side, colours).transpose(0, 1, 3, 2, 4, 5)
    return 2 * x.reshape(b, k * side, k * side, colours)


def shuffle(x, r):
    b, h, w, c = x.shape
    x = x.reshape(b, h, w, r, r, c // r**2).transpose(0, 1, 3, 2, 4, 5)
    return 2 * x.reshape(b, h * r, w * r, c // r**2)


def windows(x, side=7):
    b, h, w, c = x.shape
    x = x.reshape(b, h // side, side, w // side, side, c).transpose(0, 1, 3, 2, 4, 5)
    return 2 * x.reshape(-1, side * side, c)


def split(x, heads):
    b, s, n = x.shape
    return 2 * x.reshape(b, s, heads, n // heads).transpose(0, 2, 1, 3)


def merged_with_sum(g):
    """The gradients of a product and of the bias after it, from that of heads."""
    b, h, s, d = g.shape
    y = g.transpose(0, 2, 1, 3).reshape(b, s, h * d)
    return y, y.sum((0, 1))


def gradient(f):
    return lambda x, g: ft.vjp(f, x)[1](g)


def bytes_at_once(f, *args):
    """The bytes of the narrowest load and the widest store of a thread in the first launch.

    But of what other programs have stored: partial sums.
    """
    program = program_of(f, *args)[1]
    ptx = compile_unit(unit_of(program, next(iter(launches_in(program.steps))), HOPPER)).ptx
    found = {"ld": set(), "st": set()}
    for kind, count, bits in ACCESS.findall(ptx):
        found[kind].add(int(count or 1) * int(bits) // 8)
    return min(found["ld"]), max(found["st"])


PROGRAMS = {
    "patches": (lambda x: patchify(x, 16, False), (2, 64, 64, 3), (2, 16, 768)),
    "patches, colours first": (lambda x: patchify(x, 16), (2, 3, 64, 64), (2, 16, 768)),
    "pictures": (lambda x: unpatchify(x, 16), (2, 16, 768), (2, 64, 64, 3)),
    "pixel shuffle": (lambda x: shuffle(x, 4), (2, 20, 12, 48), (2, 80, 48, 3)),
    "windows": (windows, (2, 14, 14, 96), (8, 49, 96)),
    **{f"heads of {d}": (lambda x: split(x, 4), (2, 96, 4 * d), (2, 4, 96, d))
       for d in (40, 64, 80)},
}


def arrays_of(dtype, *shapes):
    return [RNG.integers(-8, 9, s).astype(jnp.dtype(dtype)) for s in shapes]


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_values_and_gradients(name, dtype):
    f, shape, result = PROGRAMS[name]
    x, g = arrays_of(dtype, shape, result)
    check(f, x)
    check(gradient(f), x, g)


@pytest.mark.parametrize("name", PROGRAMS)
def test_threads_read_and_write_many_bytes_at_once(name):
    f, shape, result = PROGRAMS[name]
    x, g = S(shape, "bfloat16"), S(result, "bfloat16")
    loads = 8 if name == "pixel shuffle" else 16  # 4 columns of a row of 4 x 3 numbers
    assert bytes_at_once(f, x) == (loads, 16)
    assert bytes_at_once(gradient(f), x, g) == (loads, 16)


def test_sums_over_rows_of_what_is_merged_read_as_widely():
    """Bias gradients of heads, whose columns are remainders."""
    for heads, d in ((8, 40), (6, 64), (4, 80)):
        check(merged_with_sum, *arrays_of("float32", (2, heads, 48, d)))
        assert bytes_at_once(merged_with_sum, S((8, heads, 512, d), "bfloat16")) == (16, 16)
    # three columns go on: neighbours are those of other lanes
    assert bytes_at_once(merged_with_sum, S((8, 32, 512, 3), "bfloat16")) == (2, 4)


def test_short_rows_become_longer_where_reads_go_on():
    """Not where a number of each pixel is read, or a short row is read as such."""
    def rows(f, *args):
        return program_of(f, *args)[1].sources[0]

    x = S((8, 196, 768), "bfloat16")
    mean = S((3,), "bfloat16")
    assert "arange(0, 1024)" in rows(lambda x: unpatchify(x, 16), x)
    assert "arange(0, 1024)" in rows(lambda x, m: unpatchify(x, 16) + m, x, mean)
    scale = S((8, 224, 224, 1), "bfloat16")
    assert "arange(0, 4)" in rows(lambda x, s: unpatchify(x, 16) * s, x, scale)
    check(lambda x, m: unpatchify(x, 4) + m, *arrays_of("bfloat16", (3, 25, 48), (3,)))
    check(lambda x, s: unpatchify(x, 4) * s, *arrays_of("float32", (3, 25, 48), (3, 20, 20, 1)))
