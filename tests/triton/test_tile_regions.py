"""Regions over lanes: a kernel for samples that share small matrices, and for sums over them."""


import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans.lowering.passes import tile_regions as regions
from functrans.lowering.triton.kernels.source import RejectedKernels
from functrans.lowering.triton.loops import tile_regions as kernels
from functrans.lowering.triton.products.choosing import Chooser
from functrans.lowering.triton.program import write_program
from functrans.lowering.triton.steps.spec import launches_in
from tests.triton.emulated import check, kernels_of, program_of
from tests.triton.small_networks import layers, network, normal

RNG = np.random.default_rng(11)


def squares(params, x, y):
    return ((network(params, x) - y) ** 2).mean()


def entropies(params, x, y):
    """Softmax and layer norm of a sample."""
    z = network(params, x)
    z = (z - z.mean(-1, keepdims=True)) / jnp.sqrt(z.var(-1, keepdims=True) + 0.1)
    return -(ft.nn.log_softmax(z) * y).sum(-1).mean()


def of_samples(params, x, y):
    return ft.vmap(lambda x, y: ((network(params, x) - y) ** 2).sum())(x, y).mean()


def step(params, x, y):
    """What needs the sums, and a result of every sample."""
    value, gradient = ft.value_and_grad(squares)(params, x, y)
    norm = jnp.sqrt(sum((g ** 2).sum() for g in ft.tree.leaves(gradient)))
    return ft.tree.map(lambda p, g: p - 0.1 * g / norm, params, gradient), value, \
        network(params, x)[:, 0]


PROGRAMS = {
    "squares": (ft.value_and_grad(squares), layers(5, 20, 20, 2), 97),
    "whole tiles": (ft.value_and_grad(squares), layers(16, 32, 16), 128),
    "entropies": (ft.grad(entropies), layers(7, 33, 5), 130),
    "of samples": (ft.grad(of_samples, (0, 1)), layers(4, 17, 3), 100),
    "one component": (ft.grad(squares), layers(1, 20, 20, 1), 90),
    "a step": (step, layers(6, 24, 3), 101),
}


@pytest.fixture
def everywhere(monkeypatch):
    """Regions wherever they can be formed."""
    monkeypatch.setattr(regions, "LEAST_LANES", 64)
    monkeypatch.setattr(kernels, "GAIN", np.inf)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_region_computes_what_its_steps_compute(name, everywhere):
    fun, params, count = PROGRAMS[name]
    x, y = normal(count, params[0][0].shape[0]), normal(count, params[-1][0].shape[1])
    program = check(fun, params, x, y)
    assert kernels_of(program).count("tile_region") == 1


def test_a_gradient_of_a_small_network_is_two_launches():
    params = layers(5, 64, 64, 2)
    _, program, _ = program_of(ft.grad(squares), params, normal(32768, 5), normal(32768, 2))
    assert kernels_of(program) == ["tile_region", "tile_sums"]


def test_what_takes_lanes_together_ends_a_region(everywhere):
    """The maximum over samples is computed from what the region leaves in memory."""
    def loss(params, x):
        z = network(params, x)
        return (z * z).sum() + (z - z.max(0)).sum()

    params = layers(5, 16, 16, 3)
    check(ft.grad(loss), params, normal(80, 5))


def test_a_region_that_spills_has_smaller_tiles_and_then_steps(everywhere):
    params = layers(5, 64, 64, 2)
    jaxpr, program, _ = program_of(ft.grad(squares), params, normal(32768, 5), normal(32768, 2))
    rejected, texts = RejectedKernels(), set()
    while True:
        program = write_program(jaxpr, choose=Chooser(rejected=rejected))
        launch = next((s for s in launches_in(program.steps) if s.kernel == "tile_region"), None)
        if launch is None:
            break
        texts.add(program.sources[launch.module])
        assert rejected.add_spilling(program, launch, 500)
    assert len(texts) == len(kernels.BLOCKS)
    assert any("its lanes take each step together" in note for note in program.notes)
