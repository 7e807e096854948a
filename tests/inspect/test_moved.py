"""What steps are said to move: what they read and write, not all of what that is a part of."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp

ROWS, COLUMNS, WIDE = 512, 1024, 4
COLUMN, WHOLE = WIDE * ROWS, WIDE * ROWS * COLUMNS
MATRIX = ft.ShapeDtypeStruct((ROWS, COLUMNS), np.float32)
VECTOR = ft.ShapeDtypeStruct((ROWS,), np.float32)
PLACES = ft.ShapeDtypeStruct((ROWS,), np.int32)

PROGRAMS = {
    "a column": (lambda x: x[:, 5] * 2, (MATRIX,), 2 * COLUMN),
    "two columns": (lambda x: x[:, 5] * x[:, 7], (MATRIX,), 3 * COLUMN),
    "a sum of rows": (lambda x: x[:8].sum(0), (MATRIX,), 9 * WIDE * COLUMNS),
    "rows by number": (lambda x, at: x[at, 3], (MATRIX, PLACES), 3 * COLUMN),
    "all of it, reversed": (lambda x: x[::-1] * 2, (MATRIX,), 2 * WHOLE),
    "all of it, twice": (lambda x: jnp.roll(x, 1, 0) + x, (MATRIX,), 2 * WHOLE),
    "a vector with a matrix": (lambda x, v: x + v[:, None], (MATRIX, VECTOR), 2 * WHOLE + COLUMN),
}


@pytest.mark.parametrize("target", ["cpu", "cuda:90"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_bytes_are_those_that_are_read_and_written(name, target):
    f, args, expected = PROGRAMS[name]
    (kernel,) = ft.explain(f, *args, target=target).kernels
    assert kernel.moved == expected


@pytest.mark.parametrize("target", ["cpu", "cuda:90"])
def test_an_update_in_place_moves_what_it_updates(target):
    f = ft.jit(lambda x, v: x.at[:, -1].set(v), donate_argnums=0)
    (kernel,) = ft.explain(f, MATRIX, VECTOR, target=target).kernels
    assert kernel.moved == 2 * COLUMN


def test_an_update_in_a_loop_is_not_what_keeps_a_gpu():
    def f(x, v):
        def step(x, _):
            x = x.at[:, -1].set(x[:, -2] + v)
            return jnp.tanh(x), None
        return ft.lax.scan(step, x, None, length=8)[0]

    x, v = [ft.ShapeDtypeStruct(s, np.float32) for s in ((2**14, COLUMNS), (2**14,))]
    update, whole = ft.explain(f, x, v, target="cuda:90").kernels
    assert update.runs == 8 and update.moved == 8 * 3 * WIDE * 2**14
    assert whole.moved == 8 * 2 * WIDE * 2**14 * COLUMNS and whole.estimate > 5 * update.estimate


def test_a_copy_of_an_operand_has_no_arithmetic():
    def best(score, table):
        options = score[:, :, None] + table
        return options.max(1), options.argmax(1)

    score, table = [ft.ShapeDtypeStruct(s, np.float32) for s in ((1024, 64), (64, 64))]
    copy, search = ft.explain(best, score, table, target="cuda:90").kernels
    assert copy.flops == 0 and copy.moved == 2 * WIDE * 64 * 64
    assert search.flops >= 1024 * 64 * 64
