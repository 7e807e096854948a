"""Derivatives at Python scalars are those at arrays without axes, eagerly and compiled.

Python scalars are weakly typed, so that a rule that puts a float beside a complex value must leave
the value its dtype.
"""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans import lax
from functrans.scipy import special

MODULES = {"numpy": jnp, "lax": lax, "nn": ft.nn, "special": special}


def named(module, names):
    return {f"{module}.{name}": getattr(MODULES[module], name) for name in names.split()}


ONE = {
    **named("numpy", "sin cos tan arcsin arccos arctan sinh cosh tanh arcsinh arccosh arctanh exp "
                     "exp2 expm1 log log1p log2 log10 sqrt square reciprocal sinc abs negative "
                     "positive conj real imag angle nan_to_num sign"),
    **named("lax", "acos acosh asin asinh atan atanh cos cosh exp exp2 expm1 log log1p logistic "
                   "neg rsqrt sin sinh sqrt square reciprocal tan tanh abs sign"),
    **named("nn", "sigmoid silu tanh logmeanexp"), **named("special", "expit logsumexp"),
    **{f"power {y}": lambda x, y=y: x ** y for y in (0, 1, 2, 3, -1, -2, 0.5, 2.5)},
    **{f"{y} power": lambda x, y=y: y ** x for y in (2, 1.5)},
    "scaled": lambda x: 2 * x + 1.5, "divided": lambda x: 1 / x - x / 3, "x**x": lambda x: x ** x,
    "integer_pow": lambda x: lax.integer_pow(x, -2), "root": lambda x: jnp.sqrt(x * x + 1),
    "branches": lambda x: jnp.where(abs(x) > 1, x * x, x),
}
REAL = {
    **named("numpy", "cbrt ceil floor rint trunc fabs deg2rad rad2deg i0"),
    **named("lax", "cbrt ceil floor digamma erf erf_inv erfc lgamma bessel_i0e bessel_i1e round"),
    **named("nn", "celu elu gelu hard_sigmoid hard_silu hard_tanh leaky_relu log_sigmoid mish relu "
                  "relu6 selu softplus soft_sign sparse_plus sparse_sigmoid squareplus log1mexp"),
    **named("special", "digamma entr erf erfc erfinv factorial gamma gammaln i0 i0e i1 i1e "
                       "log_ndtr logit ndtr ndtri"),
}
MODES = {
    "grad": lambda f, x: ft.grad(lambda v: jnp.real(f(v)))(x),
    "grad of grad": lambda f, x: ft.grad(lambda u: jnp.real(ft.grad(
        lambda v: jnp.real(f(v)))(u)))(x),
    "jvp": lambda f, x: ft.jvp(f, (x,), (type(x)(1),) if isinstance(x, (float, complex))
                               else (np.ones((), x.dtype),))[1],
}


def dtype_of(x):
    return {float: np.float32, complex: np.complex64}[type(x)]


@pytest.mark.one_in(6)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", [*ONE, *REAL])
def test_python_scalars_are_arrays_without_axes(name, mode):
    fun = ONE.get(name) or REAL[name]
    points = (0.7, 0.6 + 0.3j) if name in ONE else (0.7,)
    for x in points:
        expected = MODES[mode](fun, np.asarray(x, dtype_of(x)))
        for transform in (lambda f: f, ft.jit):
            got = transform(lambda v: MODES[mode](fun, v))(x)
            assert got.dtype == expected.dtype
            np.testing.assert_allclose(got, expected, rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("name", [n for n in ONE if "power" in n or n in ("scaled", "divided")])
def test_python_scalars_in_double_precision(name):
    with ft.default_dtypes("float64", "int64"):
        for x in (0.7, 0.6 + 0.3j):
            expected = MODES["grad"](ONE[name], np.asarray(x))
            got = MODES["grad"](ONE[name], x)
            assert got.dtype == expected.dtype == np.asarray(x).dtype
            np.testing.assert_allclose(got, expected, rtol=1e-12)
