"""Complex numbers in kernels: what programs compute, in how many kernels, not on the host."""

from dataclasses import replace

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans import lax
from functrans.core.errors import DTypeError
from functrans.lowering.triton.host_steps import REASONS
from functrans.lowering.triton.libraries.replace import FUNCTIONS as LIBRARY
from functrans.lowering.triton.machine.device import binaries
from functrans.lowering.triton.steps.spec import HostStep
from tests.laws.primitives import all_cases
from tests.triton.emulated import check, kernels_of, program_of

RNG = np.random.default_rng(0)


def numbers(*shape):
    return RNG.normal(size=shape) + 1j * RNG.normal(size=shape)


Z, W = numbers(40, 33), numbers(40, 33)
PROGRAMS = {  # a function of two arrays, and how many kernels it is
    "arithmetic": (lambda z, w: z * w + w.conj() / (1 + z * z.conj()), 1),
    "functions": (lambda z, w: jnp.exp(1j * z) + jnp.sqrt(w), 1),
    "of real numbers": (lambda z, w: lax.complex(abs(z), jnp.angle(w)), 1),
    "parts": (lambda z, w: (z.real, w.imag, abs(z)), 1),
    "dtypes": (lambda z, w: (z.astype("complex64"), z.astype("complex128")), 1),
    "rows": (lambda z, w: z / jnp.sqrt((abs(z) ** 2).sum(1, keepdims=True)), 1),
    "sums": (lambda z, w: (z * w).sum(1), 1),
    "turned": (lambda z, w: z.T.reshape(-1)[::-1] * 2j, 1),
    "gathered": (lambda z, w: z[jnp.array([3, 3, -1])] * w[:3], 1),
    "scattered": (lambda z, w: z.at[jnp.array([1, 1])].add(w[:2]), None),
    "matrices": (lambda z, w: z @ w.conj().T + 1, None),
    "products": (lambda z, w: jnp.prod(z[:, :12], 1), 2),
    "running products": (lambda z, w: jnp.cumprod(z[:, :9], 1), None),
    "constants": (lambda z, w: z + np.arange(33) * 1j, 1),
    "handed through": (lambda z, w: (z, w, z[:2]), 1),
    "loop": (lambda z, w: lax.scan(lambda c, x: (c * x, c), z[0], w[:3]), None),
    "empty": (lambda z, w: z[:0] * w[:0], None),
    "one number": (lambda z, w: z[0, 0] * w[0, 0], 1),
}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name, dtype):
    fun, kernels = PROGRAMS[name]
    program = check(fun, Z.astype(dtype), W.astype(dtype))
    if dtype == "complex64":
        assert not any(isinstance(step, HostStep) for step in program.steps)
        assert kernels in (None, len(kernels_of(program)))


@pytest.mark.one_in(2)
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("name", ["arithmetic", "rows", "matrices"])
def test_programs_compile(name, dtype):
    _, program, _ = program_of(PROGRAMS[name][0], Z.astype(dtype), W.astype(dtype))
    for binary in binaries(program).values():
        assert binary.cubin[:4] == b"\x7fELF" and binary.spills == 0


def test_a_number_is_one_access():
    _, program, _ = program_of(lambda z: z * z, Z.astype("complex64"))
    (binary,) = binaries(program).values()
    assert "ld.global.v2.b64" in binary.ptx and "st.global.v2.b64" in binary.ptx


def test_what_has_no_rule_is_left_to_the_host_alone():
    program = check(lambda z: (z * 2).at[jnp.array([1, 0, 1])].max(z) * 2, Z[:3])
    assert [type(step) for step in program.steps].count(HostStep) == 1
    assert len(kernels_of(program)) == 2


APART = {*[p.name for p in LIBRARY], "eig", "adjugate", "clamp"}


def complex_cases():
    """The samples of all primitives that take complex numbers, with imaginary parts."""
    for case in all_cases():
        of_real = case.params.keys() & {"preferred_element_type", "callback"}
        if case.primitive.name in APART or of_real or not case.floating:
            continue
        args = tuple([(a + 0.5j * a[::-1] if a.ndim else a + 0.5j).astype("complex64")
                      if i in case.floating else a for i, a in enumerate(case.args)])
        changed = replace(case, args=args)
        try:
            ft.make_jaxpr(changed.outs)(*args)
        except DTypeError:
            continue
        yield changed


HOSTED = {"bitcast_convert_type", "scatter_min", "scatter_max"}


@pytest.mark.one_in(6)
@pytest.mark.parametrize("case", list(complex_cases()), ids=str)
def test_primitives(case):
    program = check(case.outs, *case.args)
    if case.primitive.name not in HOSTED and all(a.size for a in case.args):
        hosted = {s.call.eqn.primitive for s in program.steps if isinstance(s, HostStep)}
        assert hosted <= REASONS.keys()
        assert hosted == {case.primitive} or case.primitive not in REASONS
