"""What an optimizer launches for a tree of twenty arrays, on a GPU and on a CPU."""

import pytest

import functrans as ft
import functrans.numpy as jnp
from tests.triton.emulated import kernels_of, program_of

PARAMS = {f"w{k}": jnp.ones((16 + k, 8)) for k in range(20)}
o = ft.optim
# launches on a GPU: all arrays together, and before them the scalars of a step or a norm
LAUNCHES = {
    "sgd": (lambda: o.sgd(1e-3, 0.9), 1),
    "lion": (lambda: o.lion(1e-3), 1),
    "rmsprop": (lambda: o.rmsprop(1e-3), 1),
    "adam": (lambda: o.adam(1e-3), 2),
    "adamw by a schedule": (lambda: o.adamw(o.cosine_decay_schedule(1.0, 100)), 2),
    "clipped adam": (lambda: o.chain(o.clip_by_global_norm(1.0), o.adam(1e-3)), 3),
}


def step_of(optimizer):
    def step(params, state, gradients):
        updates, state = optimizer.update(gradients, state, params)
        return o.apply_updates(params, updates), state

    return step, (PARAMS, optimizer.init(PARAMS), PARAMS)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", LAUNCHES)
def test_a_step_of_many_arrays(name):
    make, launches = LAUNCHES[name]
    step, args = step_of(make())
    _, program, _ = program_of(step, *args)
    assert len(program.steps) == len(kernels_of(program)) == launches


def test_a_step_on_a_cpu_passes_over_each_array_once():
    step, args = step_of(o.adam(1e-3))
    kernels = ft.explain(step, *args).kernels
    elements = sum(p.size for p in PARAMS.values())
    # the parameter, the gradient and two moments are read, all but the gradient written
    assert len(kernels) == len(PARAMS) + 1
    assert sum(k.moved for k in kernels) <= 4 * 7 * elements + 4 * 4 * len(kernels)
