"""An elementwise primitive takes its class and one entry to run in kernels of C and of Triton."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from triton.compiler.errors import CompilationError

import functrans as ft
import functrans.numpy as jnp
from functrans.lowering.c.isa import AVX2
from functrans.lowering.c.lower import lower
from functrans.lowering.rules.elementwise import (
    ELEMENTWISE,
    TRANSCENDENTAL,
    ElementwiseLowering,
)
from functrans.lowering.triton.steps.spec import HostStep
from functrans.primitives.arithmetic import div, mul
from functrans.primitives.elementwise import Elementwise
from functrans.primitives.transcendental import exp_p
from tests.laws.primitives import all_primitives
from tests.triton.compiled import compile_kernels
from tests.triton.emulated import check, program_of


class Rcbrt(Elementwise):
    """1 / cbrt(x)."""

    kinds = "f"
    domain = ((0.5, 2.0),)
    derivatives = (lambda t, out, x: mul(t, div(out, mul(x, -3.0))),)

    def evaluate(self, x):
        return 1 / np.cbrt(x)


rcbrt_p = Rcbrt()
ELEMENTWISE.register(rcbrt_p, ElementwiseLowering(
    TRANSCENDENTAL, triton={"f": "fm.libdevice.rcbrt({0})"},
    c="//: rcbrt_V needs cbrt_V\nINL F rcbrt_V(F x) { return 1.0f / cbrt_V(x); }"))

PAGE = (Path(__file__).parents[2] / "docs" / "internals" / "architecture.md").read_text()
EXAMPLE = {"__name__": "example"}
"""The class and the entry of the page, which composes its function of others."""
for code in re.findall(r"```python\n(.*?)```", PAGE.split("## Adding a transform")[0], re.DOTALL):
    exec(code, EXAMPLE)
softplus_p = EXAMPLE["softplus_p"]

PRIMITIVES = (softplus_p, rcbrt_p)
each = pytest.mark.parametrize("f", [p.eager for p in PRIMITIVES], ids=map(str, PRIMITIVES))
X = np.linspace(0.5, 2, 37, dtype=np.float32)
FORMS = {
    "itself": lambda f: f,
    "jvp": lambda f: lambda x: ft.jvp(f, (x,), (jnp.cos(x),)),
    "vmap": lambda f: lambda x: ft.vmap(lambda a: f(a) * x)(x[:5]),
    "grad": lambda f: ft.grad(lambda x: jnp.sum(f(x) ** 2)),
    "grad of grad": lambda f: ft.vmap(ft.grad(ft.grad(f))),
}
each_form = pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)


@pytest.mark.one_in(3)
@each
@each_form
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_in_c(f, form, dtype):
    x = X.astype(dtype)
    fun = form(f)
    text = lower(ft.lower(fun, x).jaxpr, frozenset(), isa=AVX2)
    assert text is not None and text.text.hosts == []
    tolerance = {"float32": 1e-5, "float64": 1e-12, "float16": 1e-2}[dtype]
    for found, expected in zip(ft.tree.leaves(ft.jit(fun)(x)), ft.tree.leaves(fun(x)), strict=True):
        np.testing.assert_allclose(np.asarray(found, "f8"), np.asarray(expected, "f8"),
                                   tolerance, tolerance)


@each
@each_form
def test_in_triton(f, form):
    program = check(form(f), X)
    assert not any(isinstance(step, HostStep) for step in program.steps)


def test_values_and_derivatives():
    np.testing.assert_allclose(np.asarray(ft.jit(softplus_p.eager)(X)), np.log1p(np.exp(X)), 1e-5)
    np.testing.assert_allclose(np.asarray(ft.jit(ft.vmap(ft.grad(rcbrt_p.eager)))(X)),
                               -X ** (-4 / 3) / 3, 1e-5)


def test_a_function_of_cudas_library_compiles():
    """The interpreter takes `evaluate` for it; the compiler of a GPU needs the function itself."""
    _, program, _ = program_of(lambda x: rcbrt_p.eager(x) + 1, X)
    assert any("fm.libdevice.rcbrt(" in text for text in program.sources)
    compile_kernels(program)
    with pytest.raises(CompilationError, match="no_such_function"):
        compile_kernels(replace(program, sources=[
            text.replace("libdevice.rcbrt", "libdevice.no_such_function")
            for text in program.sources]))


def test_an_entry_is_not_replaced():
    with pytest.raises(ValueError, match="exp has an entry"):
        ELEMENTWISE.register(exp_p, ElementwiseLowering())
    with pytest.raises(ValueError, match="its operation tanh has one"):
        ELEMENTWISE.register(Rcbrt(), ElementwiseLowering(op="tanh"))


def on_host(primitive):
    """The backends whose programs leave a primitive to the host, on its first sample."""
    sample = next(iter(primitive.samples()))
    fun = lambda *args: primitive.bind(*args, **sample.params)
    text = lower(ft.lower(fun, *sample.args).jaxpr, frozenset(), isa=AVX2)
    found = {"c"} if text is None or text.text.hosts else set()
    _, program, _ = program_of(fun, *sample.args)
    return found | ({"triton"} if any(isinstance(s, HostStep) for s in program.steps) else set())


@pytest.mark.one_in(3)
@pytest.mark.parametrize("primitive", [p for p in all_primitives() if isinstance(p, Elementwise)],
                         ids=lambda p: p.name)
def test_no_elementwise_primitive_runs_on_the_host(primitive):
    """One that does needs an entry in `rules/elementwise.py`."""
    assert on_host(primitive) == set()
