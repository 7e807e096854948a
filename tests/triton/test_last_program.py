"""The last program of a launch combines their partial results and resets the arrival counter."""

import re

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans.lowering.triton.emulator.interpret import InterpretedProgram
from functrans.lowering.triton.machine.device import binaries
from tests.triton.emulated import kernels_of, program_of

RNG = np.random.default_rng(5)
TALL = RNG.normal(size=(3000, 22)).astype("f")
WIDE = RNG.normal(size=(600, 130)).astype("f")


class Repeated(InterpretedProgram):
    """Runs a program three times, with one memory for arrival counters."""

    def __call__(self, arrays):
        p = self.program
        self.arrival_counters = np.zeros(p.arrival_counters, np.int32)
        found = []
        for _ in range(3):
            outputs = [np.empty(a.shape, a.dtype) for a in p.outputs]
            self._run(p.steps, {"input": arrays, "output": outputs, "constant": p.constants,
                                "arena": [np.empty(p.arena_bytes + 64, np.uint8)],
                                "tickets": [self.arrival_counters]})
            found.append(outputs)
        return found


FOLDS = {  # a function, its NumPy counterpart, and arguments
    "columns": (lambda x: x.sum(0), lambda x: x.astype("f8").sum(0), TALL),
    "all": (lambda x: x.max(), lambda x: x.max(), TALL),
    "a long line": (lambda x: x.sum(), lambda x: x.astype("f8").sum(), TALL.reshape(-1)),
    "columns of parts": (lambda x: x.min(1), lambda x: x.min(1), np.stack([TALL, TALL + 1])),
    "places": (lambda x: x.argmax(0), lambda x: x.argmax(0), TALL),
    "beside what is turned": (lambda x: ((x * 2).T, jnp.abs(x).sum(0)),
                              lambda x: ((x * 2).T, np.abs(x.astype("f8")).sum(0)), WIDE),
    "places beside what is turned": (lambda x: ((x + 1).T, x.argmin(0)),
                                     lambda x: ((x + 1).T, x.argmin(0)), WIDE[:300]),
    "booleans": (lambda x: (x > 3.5).any(0), lambda x: (x > 3.5).any(0), TALL),
    "halves": (lambda x: x.astype("bfloat16").max(0),
               lambda x: np.asarray(jnp.asarray(x).astype("bfloat16")).max(0), TALL),
}


@pytest.mark.one_in(4)
@pytest.mark.parametrize("name", FOLDS)
def test_runs_of_one_launch_are_alike(name):
    fun, expected, x = FOLDS[name]
    _, program, _ = program_of(fun, x)
    assert len(kernels_of(program)) == 1
    assert program.arrival_counters > 0
    run = Repeated(program)
    found = run([x])
    assert not run.arrival_counters.any()
    for outs in found:
        for y, first, e in zip(outs, found[0], ft.tree.leaves(expected(x)), strict=True):
            np.testing.assert_array_equal(y, first)
            np.testing.assert_allclose(y.astype("f8"), np.asarray(e, "f8"), 1e-5, 1e-4)


def test_columns_and_all_have_arrival_counters_of_their_own():
    fun = lambda x: ((x * 2).sum(0), (x * 2).sum(), (x * 3).max(0))
    _, program, _ = program_of(fun, TALL)
    (outs, *_) = Repeated(program)([TALL])
    for y, e in zip(outs, fun(TALL.astype("f8")), strict=True):
        np.testing.assert_allclose(y, e, 1e-5, 1e-2)


def test_what_is_much_is_folded_by_a_second_launch():
    def gradients(x, g):
        y = x / jnp.sqrt((x * x).mean(-1, keepdims=True))
        return (g * y).sum()

    _, program, _ = program_of(ft.grad(gradients, (0, 1)), jnp.ones((4096, 2048)), jnp.ones(2048))
    assert len(kernels_of(program)) == 2
    assert program.arrival_counters == 0


@pytest.mark.parametrize("fun", [lambda x: x.sum(0), lambda x: x.sum(), lambda x: x.argmin()])
def test_stores_come_before_the_arrival_and_loads_behind_it(fun):
    _, program, _ = program_of(fun, TALL)
    (binary,) = binaries(program).values()
    steps = re.findall(r"\b(bar\.sync|st\.global|atom\.\S+|ld\.global\S*)", binary.ptx)
    arrival = next(k for k, s in enumerate(steps) if s.startswith("atom"))
    assert "acq_rel" in steps[arrival] and "gpu" in steps[arrival]
    before, behind = steps[:arrival], steps[arrival + 1:]
    assert "bar.sync" in before[max(k for k, s in enumerate(before) if s == "st.global"):]
    loads = [k for k, s in enumerate(behind) if s.startswith("ld.global")]
    assert loads and all(".cg" in behind[k] for k in loads)
    assert "bar.sync" in behind[:loads[0]]


LONG = RNG.normal(size=(3000, 22)).astype("f")
IMAGES = RNG.normal(size=(1, 4, 64, 64)).astype("f")
FILTERS = RNG.normal(size=(4, 4, 33, 33)).astype("f")
SPLIT = {  # calls whose sums several programs share, and arguments
    "product": (lambda x, y: jnp.tanh(x.T @ y) + y[0], (TALL, LONG)),
    "batch of products": (lambda x, y: jnp.einsum("bik,bjk->bij", x, y),
                          (TALL.reshape(2, 11, 3000), LONG.reshape(2, 11, 3000))),
    "product without an epilogue": (lambda x, y: x.T @ y, (TALL, LONG)),
    "convolution": (lambda x, w: ft.lax.conv_general_dilated(x, w, (1, 1), "VALID")[..., :9, :9],
                    (IMAGES[..., :60, :60], FILTERS[..., :29, :29])),
}
SLOW = ("convolution",)


@pytest.mark.parametrize("name", [
    pytest.param(n, marks=pytest.mark.thorough) if n in SLOW else n for n in SPLIT])
def test_the_last_program_of_a_tile_adds_split_sums(name):
    fun, args = SPLIT[name]
    _, program, _ = program_of(fun, *args)
    assert not any("combine" in kernel for kernel in kernels_of(program))
    assert program.arrival_counters > 0
    run = Repeated(program)
    found = run([*args])
    assert not run.arrival_counters.any()
    with ft.config.use_backend("c"):
        expected = ft.jit(fun)(*args)
    for outs in found:
        np.testing.assert_array_equal(outs[0], found[0][0])
        np.testing.assert_allclose(outs[0], expected, 1e-3, 5e-2)


def test_partial_sums_of_a_product_are_stored_before_the_arrival():
    _, program, _ = program_of(lambda x, y: x.T @ y, TALL, LONG)
    (binary,) = binaries(program).values()
    steps = re.findall(r"\b(bar\.sync|st\.global|atom\.global\S+|ld\.global\S*)", binary.ptx)
    arrival = next(k for k, s in enumerate(steps) if s.startswith("atom"))
    assert "acq_rel" in steps[arrival] and "gpu" in steps[arrival]
    before, behind = steps[:arrival], steps[arrival + 1:]
    assert "bar.sync" in before[max(k for k, s in enumerate(before) if s == "st.global"):]
    loads = [k for k, s in enumerate(behind) if s.startswith("ld.global")]
    assert loads and all(".cg" in behind[k] for k in loads)
    assert "bar.sync" in behind[:loads[0]]


def test_convolutions_within_a_loop_that_is_one_kernel_have_no_arrival_counters():
    def fun(x, w):
        return ft.lax.fori_loop(0, 2, lambda k, x: x + jnp.tanh(
            ft.lax.conv_general_dilated(x, w, (1, 1), "SAME")), x)

    x, w = IMAGES[:, :, :4, :4], FILTERS[:, :, :3, :3]
    _, program, _ = program_of(fun, x, w)
    assert kernels_of(program) == ["loop"] and program.arrival_counters == 0


def test_loops_of_launches_share_arrival_counters():
    def fun(x):
        return ft.lax.fori_loop(0, 2, lambda k, x: x / x.max(0), x)

    x = np.abs(TALL) + 1
    _, program, _ = program_of(fun, x)
    assert program.arrival_counters > 0
    (outs, *_) = Repeated(program)([x])
    e = x
    for _ in range(2):
        e = e / e.max(0)
    np.testing.assert_allclose(outs[0], e, 1e-5)
