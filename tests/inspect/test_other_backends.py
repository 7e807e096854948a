"""A backend of another distribution is called by its own name, and tells what the protocol asks."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans.core.errors import BackendError
from functrans.lowering import backend as registry
from functrans.lowering.reference import ReferenceBackend

X = np.ones((8, 4), np.float32)


class Executable(registry.Executable):
    """NumPy's, whose analyses are of its own."""

    def __init__(self, inner):
        self.run = inner.run

    def as_text(self):
        return "the program in words of its own"

    def cost_analysis(self):
        return {"flops": 4321, "bytes accessed": 1234}

    def memory_analysis(self):
        return {"arguments": 5, "outputs": 6, "temporaries": 7, "peak": 18}


class Abacus(registry.Backend):
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


def test_what_does_not_inherit_the_interface_is_refused():
    class Sketch:
        name = "sketch"

    with pytest.raises(BackendError, match=r"class Sketch\(functrans.lowering.backend.Backend\)"):
        registry.register_backend(Sketch())
    with pytest.raises(TypeError, match="abstract"):
        registry.Backend()


def test_its_devices_say_where_it_takes_arrays():
    assert not registry.computes_on_gpus("abacus") and registry.makes_machine_code("abacus")
    assert registry.computes_on_gpus("auto") and registry.computes_on_gpus("triton")
    assert not registry.computes_on_gpus("cuda:90") and not registry.computes_on_gpus("c")
    assert not registry.makes_machine_code("reference")
    assert registry.is_built_in("auto") and not registry.is_built_in("abacus")
