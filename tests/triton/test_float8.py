"""float8: converted exactly as NumPy does, computed in float32, multiplied in float8."""

import inspect
import re

import ml_dtypes
import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans import lax
from functrans.lowering.triton.emulator.emulation import emulation
from functrans.lowering.triton.emulator.interpret import Buffer, interpreted
from functrans.lowering.triton.kernels import device_math
from functrans.lowering.triton.kernels.source import module_of
from functrans.lowering.triton.machine.device import binaries
from functrans.lowering.triton.steps.spec import HostStep
from tests.triton.emulated import check, kernels_of, program_of

RNG = np.random.default_rng(0)
DTYPES = {"f8e4": ml_dtypes.float8_e4m3fn, "f8e5": ml_dtypes.float8_e5m2}
FUNCTIONS = ("_to_float8", "to_f8e4", "to_f8e5", "from_f8e4", "from_f8e5")
COUNT = 2048
KERNEL = """
@triton.jit
def kernel(x, y):
    i = tl.arange(0, {count})
    tl.store(y + i, {function}(tl.load(x + i)))
"""


def on_device(function, x, dtype):
    """A function of `device_math` itself: under the interpreter kernels call others."""
    sources = [inspect.getsource(getattr(device_math, n).fn) for n in FUNCTIONS]
    text = "import triton\nimport triton.language as tl\n\n\n" + "\n\n".join(sources) + \
        KERNEL.format(count=COUNT, function=function)
    out = np.zeros(COUNT, dtype)
    names = {"float32": "fp32", "uint8": "u8"}
    with np.errstate(all="ignore"), emulation():
        interpreted(module_of(text))["kernel"][(1,)](Buffer(x, names[x.dtype.name]),
                                                     Buffer(out, names[out.dtype.name]))
    return out


def around(dtype):
    """Numbers of a dtype, what is half way between them, and next to that; and what is beyond."""
    codes = np.arange(256, dtype=np.uint8).view(dtype).astype(np.float32)
    finite = np.unique(codes[np.isfinite(codes)])
    middle = (finite[1:] + finite[:-1]) / 2
    above, below = (np.nextafter(middle, np.float32(x)) for x in (np.inf, -np.inf))
    top = finite[-1] + (finite[-1] - finite[-2]) / 2
    far = np.array([top, np.nextafter(top, np.float32(np.inf)), np.nextafter(top, np.float32(0)),
                    1e30, np.inf, np.nan, 1e-30, 1e-42, 0.0], np.float32)
    found = np.concatenate([finite, middle, above, below, far, -far])
    return np.resize(found, COUNT).astype(np.float32)


def same(a, e):
    """Equal bits, but that a NaN is any NaN."""
    nan = np.isnan(e.astype("f4"))
    np.testing.assert_array_equal(np.isnan(a.astype("f4")), nan)
    np.testing.assert_array_equal(a.view("u1")[~nan], e.view("u1")[~nan])


@pytest.mark.parametrize("name", DTYPES)
def test_kernels_round_as_numpy(name):
    x = around(DTYPES[name])
    with np.errstate(all="ignore"):
        expected = x.astype(DTYPES[name])
    same(on_device(f"to_{name}", x, "u1").view(DTYPES[name]), expected)
    codes = np.resize(np.arange(256, dtype="u1"), COUNT)
    np.testing.assert_array_equal(on_device(f"from_{name}", codes, "f4"),
                                  codes.view(DTYPES[name]).astype("f4"))


def eight(dtype, *shape, scale=1.0):
    return jnp.asarray((RNG.normal(size=shape) * scale).astype("f4")).astype(dtype)


PROGRAMS = {
    "to float8": lambda x: (x.astype("float32") * 100).astype(x.dtype),
    "from float8": lambda x: x.astype("float32"), "to integers": lambda x: x.astype("int32"),
    "one operation": lambda x: x * x, "a function": jnp.tanh, "compared": lambda x: x < 0.5,
    "moved": lambda x: jnp.concatenate([x.T[::-1], x.T[:2]]), "sum": lambda x: x.sum(0),
    "maximum": lambda x: x.max(), "gathered": lambda x: x[jnp.array([3, 0, 3])],
    "put": lambda x: x.at[2].set(x[0]), "largest put": lambda x: x.at[jnp.array([1, 1])].max(x[:2]),
    "a constant": lambda x: jnp.where(x > 0, x, jnp.asarray(0.3, x.dtype)),
    "a loop": lambda x: lax.fori_loop(0, 3, lambda i, y: -y, x)}


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name, dtype):
    program = check(PROGRAMS[name], eight(dtype, 9, 40), tolerance=0.1)
    assert not any(isinstance(s, HostStep) for s in program.steps)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2"])
@pytest.mark.parametrize("out", ["float32", "bfloat16", None])
def test_products(dtype, out):
    x, y = eight(dtype, 70, 96, scale=0.3), eight(dtype, 96, 40, scale=0.3)

    def product(x, y):
        return jnp.matmul(x, y, preferred_element_type=out)

    _, program, _ = program_of(product, x, y)
    with ft.config.use_backend("triton"):
        found = ft.jit(product)(x, y)
    expected = np.asarray(x).astype("f4") @ np.asarray(y).astype("f4")
    assert found.dtype == (dtype if out is None else out)
    limit = {None: 0.26, "bfloat16": 0.02, "float32": 1e-5}[out]
    np.testing.assert_allclose(np.asarray(found).astype("f4"), expected, limit, limit / 4)
    assert len(kernels_of(program)) == 1
    assert all(b.cubin[:4] == b"\x7fELF" for b in binaries(program).values())


def test_what_follows_a_product_is_computed_with_it():
    x, w = eight("float8_e4m3fn", 70, 96, scale=0.3), eight("float8_e4m3fn", 96, 40, scale=0.3)

    def layer(x, w, b):
        y = jnp.tanh(jnp.matmul(x, w, preferred_element_type="float32") + b)
        return y.astype(x.dtype), (y > 0.5)

    program = check(layer, x, w, np.ones(40, "f4"), tolerance=0.1)
    assert len(kernels_of(program)) == 1


def test_products_add_up_in_float32_where_that_is_asked_for():
    x = eight("float8_e4m3fn", 64, 256)
    counts = []
    for precision in ("default", "highest"):
        _, program, _ = program_of(lambda x, p=precision: jnp.matmul(
            x, x.T, preferred_element_type="float32", precision=p), x)
        counts.append(re.findall(r"max_num_imprecise_acc=(\d+)", "".join(program.sources)))
    assert counts == [[], ["128"]]


def test_the_cpu_computes_the_same():
    x = eight("float8_e4m3fn", 9, 40)
    for name, fun in PROGRAMS.items():
        np.testing.assert_array_equal(np.asarray(ft.jit(fun)(x)), np.asarray(fun(x)), name)


def test_operands_across_the_sum_are_copied_where_the_product_is_large():
    x = np.zeros((2048, 2048), ml_dtypes.float8_e4m3fn)
    for turned, count in ((True, 1), (False, 2)):
        _, program, _ = program_of(lambda x, t=turned: jnp.matmul(
            x, x.T if t else x, preferred_element_type="float32"), x)
        assert len(kernels_of(program)) == count
