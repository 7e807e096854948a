"""Programs of Triton kernels, run by Triton's interpreter on NumPy arrays."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans import lax
from functrans.core.evaluate import interpret
from functrans.lowering.triton.emulator.interpret import InterpretedProgram
from functrans.lowering.triton.machine.device import binaries
from tests.laws.primitives import Case, all_cases
from tests.laws.test_primitive_laws import assert_same
from tests.triton.emulated import kernels_of, program_of

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(37, 130)).astype("f"), RNG.normal(size=(37, 130)).astype("f")
G = RNG.normal(size=130).astype("f")


@pytest.mark.one_in(3)
@pytest.mark.one_sample_in(3)
@pytest.mark.parametrize("case", all_cases(), ids=str)
def test_values_are_eager_values(case: Case):
    with ft.config.use_backend("triton"):
        outs = ft.jit(lambda *args: case.outs(*args))(*case.args)
    assert_same(outs, case.outs(*case.args))


def layer_norm(x, g):
    mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    return (x - mean) * lax.rsqrt(variance + 1e-5) * g


def mlp(params, x):
    for w, b in params[:-1]:
        x = ft.nn.relu(x @ w + b)
    w, b = params[-1]
    return x @ w + b


def mlp_loss(params, x, y):
    scores = ft.nn.log_softmax(mlp(params, x))
    return -jnp.take_along_axis(scores, y[:, None], -1).mean()


PARAMS = [(RNG.normal(size=s).astype("f") / 4, np.zeros(s[1], "f")) for s in ((20, 16), (16, 5))]
BATCH = RNG.normal(size=(9, 20)).astype("f"), RNG.integers(0, 5, 9).astype("i")

PROGRAMS = {  # a function, its arguments, and how many kernels it takes
    "chain": (lambda x, y: jnp.sin(x) * y + 1, (X, Y), 1),
    "transpose": (lambda x, y: x.T + y.T * 2, (X, Y), 1),
    "softmax": (lambda x: ft.nn.softmax(x, -1), (X,), 1),
    "softmax of long rows": (lambda x: ft.nn.softmax(x, -1), (
        RNG.normal(size=(3, 20000)).astype("f"),), 1),
    "layer norm": (layer_norm, (X, G), 1),
    "gradient of layer norm": (ft.grad(lambda x, g: (layer_norm(x, g) ** 2).sum(), (0, 1)),
                               (X, G), 1),
    "sum over rows": (lambda x: x.sum(0), (X,), 1),
    "sum over many rows": (lambda x: x.sum(0), (RNG.normal(size=(5000, 130)).astype("f"),), 1),
    "sum along rows": (lambda x: x.sum(1), (X,), 1),
    "sum of all": (lambda x: x.sum(), (X,), 1),
    "sums over some axes": (lambda x: x.reshape(37, 13, 10).sum((0, 2)), (X,), 1),
    "places of extremes": (lambda x: (x.argmax(1), x.argmin(0)), (X,), 1),
    "gather": (lambda x: x[jnp.array([3, -1, 2])], (X,), 1),
    "scatter by adding": (lambda x: x.at[jnp.array([3, 1, 3])].add(x[:3]), (X,), 1),
    "the last of several": (lambda x: x.at[jnp.array([3, 1, 3])].set(x[:3]), (X,), 3),
    "random": (lambda k: ft.random.normal(ft.random.wrap_key_data(k), (100,)),
               (np.array([1, 2], "u4"),), 1),
    "bfloat16": (lambda x: (x.astype("bfloat16") * 2).sum(0), (X,), 1),
    "product": (lambda x, y: x @ y.T, (X, Y), 1),
    "products in a batch": (lambda x: jnp.einsum("bij,bkj->bik", x, x), (X.reshape(37, 13, 10),),
                            1),
    "gradient of a network": (ft.grad(mlp_loss), (PARAMS, *BATCH), None),
    "clipped mean": (ft.per_sample.clipped_mean(
        lambda p, x, y: mlp_loss(p, x[None], y[None]), 1.0), (PARAMS, *BATCH), None),
}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name):
    fun, args, kernels = PROGRAMS[name]
    jaxpr, program, consts = program_of(fun, *args)
    assert kernels in (None, len(kernels_of(program)))
    arrays = [*consts, *map(np.asarray, ft.tree.leaves(args))]
    for a, e in zip(InterpretedProgram(program)(arrays), interpret(jaxpr, arrays), strict=True):
        assert (a.shape, a.dtype) == (e.shape, e.dtype)
        tolerance = 2e-2 if a.dtype.name == "bfloat16" else 2e-4
        np.testing.assert_allclose(a.astype("f8"), e.astype("f8"), tolerance, tolerance)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", ["chain", "softmax", "sum over rows", "places of extremes",
                                  "the last of several", "product"])
def test_kernels_compile_without_a_gpu(name):
    fun, args, _ = PROGRAMS[name]
    _, program, _ = program_of(fun, *args)
    for binary in binaries(program).values():
        assert binary.cubin[:4] == b"\x7fELF"
        assert ".target sm_90" in binary.ptx


def test_rows_are_read_sixteen_bytes_at_a_time():
    x = np.zeros((64, 1024), "f")
    for fun in (lambda x: jnp.exp(x) + x, lambda x: ft.nn.softmax(x, -1), lambda x: x.T + x.T):
        _, program, _ = program_of(fun, x)
        (binary,) = binaries(program).values()
        assert "ld.global.v4" in binary.ptx
        assert "ld.global.b32" not in binary.ptx


def test_reads_at_computed_places_share_a_kernel():
    """A search: each step reads where the one before it says."""
    row, values = np.sort(X[0]), X[1:]
    _, program, _ = program_of(jnp.searchsorted, row, values)
    assert len(kernels_of(program)) == 1
    np.testing.assert_array_equal(InterpretedProgram(program)([row, values])[0],
                                  np.searchsorted(row, values))


def test_what_is_left_to_the_host_is_a_step():
    _, program, _ = program_of(lambda x: jnp.linalg.eigvals(x * x) + 1, np.eye(4, dtype="f"))
    kinds = [type(s).__name__ for s in program.steps]
    assert kinds == ["Launch", "HostStep", "Launch"]


def test_the_text_of_a_program():
    with ft.config.use_backend("triton"):
        text = ft.jit(lambda x: jnp.sin(x) + 1).lower(X).compile().as_text()
    assert "@triton.jit\ndef k_" in text and "(p0, p1):" in text


def test_a_product_of_a_vector_is_repeated_by_a_kernel_of_its_own():
    rng = np.random.default_rng(0)
    v, w, x = (rng.normal(size=shape).astype("f") for shape in ((1, 4), (4, 4), (4, 4)))
    with ft.config.use_backend("triton"):
        found = ft.jit(lambda v, w, x: (v @ w) * x + 1)(v, w, x)
    np.testing.assert_allclose(found, (v @ w) * x + 1, rtol=1e-5)
