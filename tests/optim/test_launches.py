"""What an optimizer launches on a GPU: its scalars, and all of its arrays together."""

import pytest

import functrans as ft
import functrans.numpy as fnp
from tests.triton.emulated import kernels_of, program_of


@pytest.mark.parametrize("name", ["adam", "lion"])
def test_a_step_of_many_arrays(name):
    params = {f"w{k}": fnp.ones((16 + k, 8)) for k in range(12)}
    optimizer = getattr(ft.optim, name)(1e-3)

    def step(params, state, gradients):
        updates, state = optimizer.update(gradients, state, params)
        return ft.optim.apply_updates(params, updates), state

    _, program, _ = program_of(step, params, optimizer.init(params), params)
    assert len(kernels_of(program)) <= 2
