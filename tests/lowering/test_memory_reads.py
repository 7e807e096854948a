"""The memory of a program is planned in a time that grows as the program does."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans.lowering.passes.pipeline import simplify
from functrans.lowering.schedule.kernel import Kernel
from functrans.lowering.triton import program


def step(weights, first, second, matrix, x):
    """A step of Adam: three results of each gradient, of many tensors in one launch."""
    def loss(weights):
        y = x
        for w in weights:
            y = jnp.tanh(y @ matrix + w)
        return jnp.sum(y**2)

    slopes = ft.grad(loss)(weights)
    first = [0.9 * m + 0.1 * g for m, g in zip(first, slopes, strict=True)]
    second = [0.999 * s + 0.001 * g * g for s, g in zip(second, slopes, strict=True)]
    return first, second, [w - 1e-3 * m / (jnp.sqrt(s) + 1e-3)
                           for w, m, s in zip(weights, first, second, strict=True)]


@pytest.fixture
def expressions(monkeypatch):
    """How many expressions the plan of the memory of so many layers asks kernels for."""
    asked = []
    element, plan_memory = Kernel.element, program.plan_memory

    def planned(*args):
        with monkeypatch.context() as patched:
            patched.setattr(Kernel, "element", lambda self, s, member: (
                asked.append(member), element(self, s, member))[1])
            return plan_memory(*args)

    monkeypatch.setattr(program, "plan_memory", planned)

    def count(layers):
        weights = [ft.ShapeDtypeStruct((64,), np.float32)] * layers
        matrix, x = (ft.ShapeDtypeStruct((n, 64), np.float32) for n in (64, 4096))
        jaxpr = simplify(ft.lower(step, weights, weights, weights, matrix, x).jaxpr)
        asked.clear()
        program.write_program(jaxpr)
        return len(asked)

    return count


def test_pairs_of_tensors_ask_kernels_once(expressions):
    # each result may be in the memory of each gradient, and a launch computes the results of many
    few, many = expressions(16), expressions(32)
    assert 0 < many <= 2.5 * few, (few, many)
