"""Programs in complex numbers as programs in pairs of real ones: they compute the same."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans import lax
from functrans.core import dtypes
from functrans.core.evaluate import interpret
from functrans.core.jaxpr import subjaxprs
from functrans.lowering.passes.complex_parts import split_complex
from tests.laws.primitives import all_cases

RNG = np.random.default_rng(3)
BORDER = {"real", "imag", "complex"}


def numbers(*shape, dtype="complex128", scale=2.0):
    return (scale * (RNG.normal(size=shape) + 1j * RNG.normal(size=shape))).astype(dtype)


def complex_operations(jaxpr):
    found = set()
    for eqn in jaxpr.eqns:
        if any(dtypes.kind(v.aval.dtype) == "c" for v in (*eqn.invars, *eqn.outvars)):
            found.add(eqn.primitive.name)
        for body in subjaxprs(eqn):
            found |= complex_operations(body)
    return found


def check(fun, *args, rtol=1e-13, left=frozenset()):
    """Compare a function with its program in parts; the operations on complex arrays are `left`."""
    closed = ft.make_jaxpr(fun)(*args)
    jaxpr = closed.jaxpr.hoist_consts()
    split = split_complex(jaxpr)
    assert complex_operations(split) - BORDER == left
    arrays = [*map(np.asarray, closed.consts), *map(np.asarray, ft.tree.leaves(args))]
    for actual, expected in zip(interpret(split, arrays), interpret(jaxpr, arrays), strict=True):
        assert (actual.shape, actual.dtype) == (expected.shape, expected.dtype)
        np.testing.assert_allclose(actual, expected, rtol, rtol)
    return split


FUNCTIONS = ["exp", "expm1", "log", "log1p", "sqrt", "rsqrt", "sin", "cos", "tan", "asin",
             "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "logistic", "neg",
             "conj", "abs", "sign", "real", "imag", "is_finite", "exp2"]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_one_number(name):
    fun = getattr(lax, name)
    # on the branch cuts, at 0, next to 1, and where real formulas would overflow
    special = np.array([0, 1, -1, 1j, -1j, 2, -2, 2j, -2j, complex(-1, -0.0), complex(2, -0.0),
                        1 + 1e-9j, 1e-9 + 1j, 30 + 1j, -30 + 0.5j])
    if name in ("rsqrt", "log", "atanh", "log1p", "atan"):
        special = special[(special != 0) & (abs(special) != 1)]
    check(fun, np.concatenate([numbers(200), special]), rtol=2e-11)


@pytest.mark.parametrize("name", ["add", "sub", "mul", "div", "pow", "eq", "ne"])
def test_functions_of_two_numbers(name):
    x, y = numbers(50), numbers(50)
    x[:3], y[:2] = y[:3], [0.5, 2j]
    check(getattr(lax, name), x, y, rtol=1e-12)


def test_quotients_and_moduli_do_not_overflow():
    big, small = np.array([1e200 + 1e200j, 3e-200 + 4e-200j]), np.array([1e200 - 1e199j, 1e-200j])
    check(lax.div, big, small)
    check(lax.abs, np.array([3e200 + 4e200j, 3e-200j, np.inf + np.nan * 1j, np.nan + 1j]))
    check(lax.div, np.array([1 + 1j, -1j]), np.array([0j, 0j]))


@pytest.mark.parametrize("exponent", [-3, -1, 0, 1, 2, 5])
def test_integer_powers(exponent):
    check(lambda z: lax.integer_pow(z, exponent), numbers(20), rtol=1e-12)


@pytest.mark.parametrize("power", [lambda r: r**2, lambda r: r * r, lambda r: r**6, jnp.square])
def test_even_powers_of_a_modulus_need_no_root(power):
    z = np.concatenate([numbers(50), [0, complex(np.inf, np.nan), complex(np.nan, 1), 1e200,
                                      complex(-np.inf, 1), 1e-170j, complex(1e160, 1e-160)]])
    with np.errstate(over="ignore"):
        split = check(lambda z: power(lax.abs(z)), z, rtol=1e-13)
    assert not {"sqrt", "div"} & {eqn.primitive.name for eqn in split.eqns}
    split = check(lambda z: (lax.abs(z) ** 3, lax.abs(z) ** 2), numbers(50))
    assert "sqrt" in {eqn.primitive.name for eqn in split.eqns}


def everywhere(jaxpr):
    """The names of all operations, in bodies too."""
    return {eqn.primitive.name for eqn in jaxpr.eqns}.union(
        *[everywhere(body) for eqn in jaxpr.eqns for body in subjaxprs(eqn)])


def test_exponentials_of_imaginary_numbers_need_no_real_one():
    x = np.array([0.0, -0.0, 1, -2, 50, np.inf, -np.inf, np.nan, 1e-300])
    with np.errstate(invalid="ignore"):
        split = check(lambda x: jnp.exp(1j * x), x)
        assert "exp" not in everywhere(split)
        split = check(lambda x: jnp.exp(-0.5j * x[::-1] * 3 + 1j * x), x)
    assert "exp" not in everywhere(split)
    assert "exp" in everywhere(check(lambda x: jnp.exp((0.1 + 1j) * x), np.array([0.0, 1, -2])))


def test_what_is_known_of_constants_of_loops():
    def f(u, gamma, other):
        phase = 1j * gamma

        def step(u, k):
            return u * jnp.exp(phase * lax.abs(u) ** 2) + other, jnp.exp(phase * k)

        once, _ = lax.scan(step, u, jnp.arange(3.0))
        twice = lax.while_loop(lambda c: c[1] < 3,
                               lambda c: (c[0] * jnp.exp(phase * 0.1), c[1] + 1), (once, 0))[0]
        return lax.cond(gamma > 0, lambda p, u: u * jnp.exp(p), lambda p, u: u, phase, twice)

    split = check(f, numbers(5), np.float64(0.3), numbers(5))
    assert not {"exp", "sqrt"} & everywhere(split)

    def carried(u, phase):  # the carry begins imaginary and does not stay so
        return lax.scan(lambda c, _: (c + 0.1, jnp.exp(c)), 1j * phase, None, length=3)[1] * u

    assert "exp" in everywhere(check(carried, numbers(1)[0], np.float64(0.3)))


def test_numbers_that_are_none_come_last():
    nan = np.nan
    z = np.array([complex(nan, nan), complex(1, nan), 3j, complex(nan, 2), complex(-1, nan), 2,
                  complex(nan, 1), complex(-0.0, 2), complex(0.0, 1), np.inf, 1 - 1j])
    check(jnp.sort, z)
    check(jnp.argsort, z)


def test_what_is_not_multiplied_stays():
    z = np.array([np.inf + 1j, np.nan, 2, 3j])
    check(lambda z: z.at[jnp.array([2, 2])].multiply(jnp.array([1j, 2j])), z)


PROGRAMS = {
    "literals": lambda z, w: (2j * z + (1 - 1j)) * 0.5,
    "real and complex": lambda z, w: z * z.real + jnp.arange(6.0),
    "angle": lambda z, w: jnp.angle(z) + abs(w[:6, 0]),
    "movement": lambda z, w: jnp.concatenate([z[::-1], jnp.pad(z[1:3], 1, constant_values=2j)]),
    "transposed": lambda z, w: w.T.reshape(3, 2, 3)[:, 1],
    "sums": lambda z, w: (w.sum(), w.mean(0), jnp.cumsum(w, 1)),
    "product": lambda z, w: (jnp.prod(w), jnp.prod(w, 1), jnp.prod(w[:0], 0), jnp.prod(z)),
    "running products": lambda z, w: (jnp.cumprod(w, 0), lax.cumprod(z, reverse=True)),
    "matrices": lambda z, w: w @ w.conj().T,
    "picked": lambda z, w: (w[jnp.array([5, 0, 5])], z[jnp.array([9, -1])]),
    "filled": lambda z, w: z.at[jnp.array([9, 1])].get(mode="fill", fill_value=1j),
    "sorted": lambda z, w: (jnp.sort(w, 0), lax.sort((z, jnp.arange(6), z * 2j)),
                            lax.sort((jnp.arange(6) // 2, z, abs(z)), num_keys=2),
                            jnp.argsort(jnp.round(w.real) + 1j * jnp.round(w.imag), axis=0)),
    "multiplied": lambda z, w: (z.at[jnp.array([1, 4, 1, 9, 1])].multiply(z[:5] + 1, mode="drop"),
                                w.at[jnp.array([5, 0, 5])].multiply(w[:3]),
                                w.at[1, jnp.array([2, 2])].multiply(z[:2]),
                                w.at[:0].multiply(w[:0])),
    "put": lambda z, w: (z.at[2].set(3j), z.at[jnp.array([1, 1])].add(z[:2])),
    "chosen": lambda z, w: jnp.where(z.real > 0, z, 1j),
    "dtypes": lambda z, w: (z.astype("complex64"), z.astype(bool), z.astype(float), z == 0),
    "slice": lambda z, w: lax.dynamic_update_slice(w, w[:2] * 1j, (jnp.int32(1), 0)),
    "loop": lambda z, w: lax.scan(lambda c, x: (c * x[0] + 1j, (c, abs(c))), z[0], w),
    "while": lambda z, w: lax.while_loop(lambda c: abs(c[0]) < 10, lambda c: (c[0] * 2j, c[1] + 1),
                                         (z[1], 0)),
    "branch": lambda z, w: lax.cond(z[0].real > 0, lambda: z * 1j, lambda: z + 1),
    "inside only": lambda z, w: abs(lax.complex(w.real, w.imag) * 1j),
    "gradient": lambda z, w: ft.grad(lambda w: abs(jnp.tanh(w @ w.T)).sum())(w),
}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_programs(name, dtype):
    tolerance = 1e-5 if dtype == "complex64" else 1e-12
    check(PROGRAMS[name], numbers(6, dtype=dtype), numbers(6, 3, dtype=dtype), rtol=tolerance)


def test_convolutions():
    check(lambda x, k: lax.conv_general_dilated(x, k, (1,), "SAME"), numbers(2, 3, 9),
          numbers(4, 3, 3))


def test_operations_without_a_rule_take_whole_arrays():
    split = check(lambda z: jnp.linalg.inv(z * 1j) + z, numbers(3, 3), left={"solve"}, rtol=1e-10)
    assert [e.primitive.name for e in split.eqns].count("real") == 2  # of the input and the inverse


def test_real_programs_stay_as_they_are():
    jaxpr = ft.make_jaxpr(lambda x: jnp.sin(x) + 1)(1.0).jaxpr
    assert split_complex(jaxpr) is jaxpr


CASES = [case for case in all_cases() if any(np.iscomplexobj(a) for a in case.args)]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_primitives(case):
    jaxpr = ft.make_jaxpr(lambda *args: case.outs(*args))(*case.args).jaxpr
    for a, e in zip(interpret(split_complex(jaxpr), case.args), interpret(jaxpr, case.args)):
        np.testing.assert_allclose(a, e, 1e-5, 1e-6)


@pytest.mark.parametrize("n", [1, 3, 16, 33, 1000])
def test_complex64_in_as_many_lanes_as_float32(n):
    z, w = numbers(4, n, dtype="complex64"), numbers(n, dtype="complex64")

    def f(z, w):
        turned = z * jnp.exp(1j * lax.abs(w)) + w
        return turned, jnp.where(z.real > 0, turned, w), lax.abs(turned).max(1), (z * w).sum(0)

    wide = [x.astype("complex128") for x in (z, w)]
    turned = wide[0] * np.exp(1j * np.abs(wide[1])) + wide[1]
    expected = (turned, np.where(z.real > 0, turned, wide[1]), np.abs(turned).max(1),
                (wide[0] * wide[1]).sum(0))
    for found, exact in zip(ft.jit(f)(z, w), expected, strict=True):
        np.testing.assert_allclose(found, exact, 1e-5, 1e-5)
