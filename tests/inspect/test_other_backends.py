"""A backend of another distribution is called by its own name, and tells what the protocol asks."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans.lowering import backend as registry
from functrans.lowering.reference import ReferenceBackend

X = np.ones((8, 4), np.float32)


class Executable:
    """NumPy's, whose analyses are of its own."""

    specialized, kernels = "", ()

    def __init__(self, inner):
        self.run = inner.run

    def at(self, shapes):
        return self

    def on(self, gpu):
        return self

    def as_text(self):
        return "the program in words of its own"

    def cost_analysis(self):
        return {"flops": 4321, "bytes accessed": 1234}

    def memory_analysis(self):
        return {"arguments": 5, "outputs": 6, "temporaries": 7, "peak": 18}


class Abacus:
    name = "abacus"

    def compile(self, jaxpr, donated=frozenset(), require_inplace=False):
        return Executable(ReferenceBackend().compile(jaxpr))


@pytest.fixture(autouse=True)
def abacus(monkeypatch):
    monkeypatch.setattr(registry, "_backends", dict(registry._backends))
    registry.register_backend(Abacus())
    with ft.config.use_backend("abacus"):
        yield


def f(x):
    return jnp.sin(x @ x.T).sum()


def test_explain_is_of_the_backend():
    explained = ft.explain(f, X)
    (step,) = explained.kernels
    assert (explained.report.target, step.flops, step.moved) == ("abacus", 4321, 1234)
    assert "(abacus)" in str(explained) and "NumPy" not in str(explained)
    assert explained.source(step.name) == "the program in words of its own"
    assert explained.report.bytes["temporaries"] == 7


def test_profile_is_of_the_backend():
    profiled = ft.profile(f, X)
    assert "(abacus)" in str(profiled) and " C " not in str(profiled)
    (step,) = profiled.steps
    assert step.kernel.flops == 4321 and step.seconds == profiled.seconds > 0
    assert "abacus tells of no steps" in str(profiled)


def test_pages_and_pictures():
    assert "abacus" in ft.explain(f, X)._repr_html_()
    assert "abacus" in ft.profile(f, X)._repr_html_()
