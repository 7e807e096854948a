"""Results have the same bits on any number of threads, while the runtime looks for the best one."""

import numpy as np
import pytest

import functrans as ft

RUNS = 40  # loops and programs are tried on other numbers of threads meanwhile


def sums_products_and_scatters(x, w, places):
    y = ft.numpy.tanh(x @ w)
    total = ft.ops.segment_sum(y, places, num_segments=300)
    columns = ft.numpy.sum(y, axis=0) + ft.numpy.exp(y).mean(axis=0)
    return total, columns, ft.numpy.cumsum(y[:, 0]), ft.numpy.sum(y)


def steps_in_a_scan(x, w, places):
    def step(state, row):
        new = ft.numpy.tanh(state @ w + row)
        return new, ft.numpy.sum(new)

    return ft.lax.scan(step, x[:64, : w.shape[0]] * 0, x[:10])


def scatters_with_lists(x, w, places):
    """So many rows that they are listed by slices, in some of the runs."""
    y = ft.numpy.tanh(x @ w)
    rows, places = ft.numpy.tile(y[:, :3], (5, 1)), ft.numpy.tile(places, 5)
    elements = ft.numpy.zeros(301).at[places].add(ft.numpy.exp(rows[:, 0]))

    def step(total, k):
        return total.at[places].add(rows * k), None

    return ft.lax.scan(step, ft.numpy.zeros((300, 3)), ft.numpy.arange(2.0))[0], elements


@pytest.mark.parametrize("program", [sums_products_and_scatters, steps_in_a_scan,
                                     scatters_with_lists])
@pytest.mark.parametrize("layer", ["functrans", "openmp"])
def test_bits_do_not_depend_on_threads(program, layer):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((4000, 64)).astype(np.float32)
    w = rng.standard_normal((64, 64)).astype(np.float32) / 8
    arguments = x, w, rng.integers(0, 300, 4000).astype(np.int32)
    run = ft.jit(ft.value_and_grad(lambda *a: sum(ft.numpy.sum(r) for r in
                                                  ft.tree.leaves(program(*a))), (0, 1)))
    with ft.config.threads(count=1):
        expected = [np.asarray(r).tobytes() for r in ft.tree.leaves(run(*arguments))]
    for count in (2, 3, 16):
        with ft.config.threads(layer, count):
            for _ in range(RUNS):
                found = [np.asarray(r).tobytes() for r in ft.tree.leaves(run(*arguments))]
                assert found == expected, f"other bits on {count} threads"
