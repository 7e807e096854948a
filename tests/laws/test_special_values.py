"""Elementwise functions at zeros, ones, infinities, NaN, denormal and the largest numbers.

Values and sign bits are those of NumPy and SciPy, eagerly and compiled. Complex functions follow
ISO C99, annex G, as NumPy does but for expm1; the formulas of compiled programs are compared too.
"""

import json
from pathlib import Path

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans.lowering.passes import complex_math
from functrans.scipy import special

UNARY = """sin cos tan arcsin arccos arctan sinh cosh tanh arcsinh arccosh arctanh exp exp2 expm1
    log log1p log2 log10 sqrt cbrt square reciprocal absolute fabs negative positive sign floor ceil
    trunc rint fix sinc deg2rad rad2deg nan_to_num isnan isinf isfinite signbit isposinf isneginf
    conj real imag angle round modf frexp i0""".split()  # noqa: SIM905
BINARY = """add subtract multiply divide floor_divide remainder fmod divmod power float_power
    maximum minimum fmax fmin hypot arctan2 logaddexp logaddexp2 copysign heaviside nextafter equal
    less less_equal greater not_equal greater_equal""".split()  # noqa: SIM905
COMPLEX = """sin cos tan arcsin arccos arctan sinh cosh tanh arcsinh arccosh arctanh exp exp2 expm1
    log log1p log2 log10 sqrt square reciprocal absolute negative sign rint conj real imag angle
    isnan isinf isfinite nan_to_num""".split()  # noqa: SIM905
PAIRS = {"sin": "sin", "cos": "cos", "tan": "tan", "asin": "arcsin", "acos": "arccos",
         "atan": "arctan", "sinh": "sinh", "cosh": "cosh", "tanh": "tanh", "asinh": "arcsinh",
         "acosh": "arccosh", "atanh": "arctanh", "exp": "exp", "exp2": "exp2", "expm1": "expm1",
         "log": "log", "log1p": "log1p", "sqrt": "sqrt", "signum": "sign", "absolute": "absolute"}
SPECIAL = """entr erf erfc erfinv expit gamma gammasgn i0 i0e i1 i1e log_ndtr logit loggamma ndtr
    ndtri digamma""".split()  # noqa: SIM905
SPECIAL_TWO = "boxcox boxcox1p gammainc gammaincc kl_div rel_entr xlog1py xlogy".split()  # noqa: SIM905
GOLDEN = json.loads((Path(__file__).parents[1] / "data" / "scipy.json").read_text())["special"]
TOLERANCE = {np.float32: 3e-6, np.float64: 1e-12}


def grid(dtype):
    info = np.finfo(dtype)
    sizes = [0.0, 1.0, 0.5, 2.0, 3.0, np.inf, info.tiny, info.smallest_subnormal, info.max]
    return np.array([s * v for v in sizes for s in (1, -1)] + [np.nan], dtype)


def complex_grid():
    parts = np.array([0.0, -0.0, 1.0, -1.0, 0.5, -2.0, np.inf, -np.inf, np.nan])
    re, im = (v.ravel() for v in np.meshgrid(parts, parts))
    z = np.empty(re.size, np.complex128)
    z.real, z.imag = re, im
    return z


def same(got, expected, tolerance):
    """Where values agree, and the sign bits of zeros and infinities do."""
    got, expected = np.asarray(got), np.asarray(expected)
    if expected.dtype.kind == "c":
        return same(got.real, expected.real, tolerance) & same(got.imag, expected.imag, tolerance)
    if expected.dtype.kind != "f":
        return got == expected
    with np.errstate(all="ignore"):
        close = np.abs(got - expected) <= tolerance * np.abs(expected) + np.finfo(got.dtype).tiny
        close &= np.isfinite(got) & np.isfinite(expected) & ((expected != 0) | (got == 0))
        equal = ((got == expected) | close) & (np.signbit(got) == np.signbit(expected))
    return equal | (np.isnan(got) & np.isnan(expected))


def leaves(x):
    return x if isinstance(x, (tuple, list)) else (x,)


def check(names, functions, references, args, tolerance, adjust=lambda name, e: e):
    """Functions agree with their references, eagerly and in one compiled program of all."""
    with np.errstate(all="ignore"):
        expected = [adjust(n, r(*args)) for n, r in zip(names, references, strict=True)]
    eager = [f(*args) for f in functions]
    compiled = ft.jit(lambda *xs: [f(*xs) for f in functions])(*args)
    wrong = []
    for name, want, *found in zip(names, expected, eager, compiled, strict=True):
        for how, got in zip(("eager", "compiled"), found, strict=True):
            for g, w in zip(leaves(got), leaves(want), strict=True):
                with np.errstate(over="ignore"):  # NumPy's float_power is of doubles
                    w = np.asarray(w).astype(np.asarray(g).dtype)
                ok = same(g, w, tolerance)
                wrong += [(name, how, *[a[k] for a in args], np.asarray(g)[k], w[k])
                          for k in np.flatnonzero(~ok)]
    assert not wrong


def of(module, names):
    return [getattr(module, n) for n in names]


def golden(names):
    """SciPy's values on the grid, as functions."""
    return [lambda *xs, n=n: np.array(GOLDEN[n], np.float64) for n in names]


def i0_at_infinity(name, expected):
    return np.where(np.isnan(expected), np.inf, expected) if name == "i0" else expected


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_one_operand(dtype):
    x = grid(dtype)[:-1]  # of NaN i0 is NaN, and infinite at infinities, where NumPy's is NaN
    check(UNARY, of(jnp, UNARY), of(np, UNARY), [x], TOLERANCE[dtype], i0_at_infinity)
    nan = grid(dtype)[-1:]
    check(UNARY, of(jnp, UNARY), of(np, UNARY), [nan], TOLERANCE[dtype])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_two_operands(dtype):
    args = [v.ravel() for v in np.meshgrid(grid(dtype), grid(dtype))]
    check(BINARY, of(jnp, BINARY), of(np, BINARY), args, TOLERANCE[dtype])


def expm1_by_annex_g(name, expected):
    if name == "expm1":
        z = complex_grid()
        lost = np.isinf(z.real) & ~np.isfinite(z.imag)
        expected = expected.copy()
        with np.errstate(all="ignore"):
            expected.real = np.where((z.imag == 0) | lost, np.expm1(z.real), expected.real)
            expected.imag = np.exp(z).imag
    return expected


def test_complex_numbers():
    check(COMPLEX, of(jnp, COMPLEX), of(np, COMPLEX), [complex_grid()], 1e-12, expm1_by_annex_g)


@pytest.mark.parametrize("name", PAIRS)
def test_formulas_of_pairs(name):
    z = complex_grid()
    with np.errstate(all="ignore"):
        expected = expm1_by_annex_g(PAIRS[name], getattr(np, PAIRS[name])(z)).astype(z.dtype)
    found = getattr(complex_math, name)(complex_math.Pair(jnp.asarray(z.real), jnp.asarray(z.imag)))
    got = np.zeros_like(z)
    got.real, got.imag = (found, 0.0) if name == "absolute" else map(np.asarray, found)
    # annex G leaves signs open where the other part is infinite or NaN
    known = np.isfinite(z.real) & np.isfinite(z.imag)
    small = (np.abs(expected.real) < 1e-15) | (np.abs(expected.imag) < 1e-15)  # of pi / 2, say
    assert same(got[known & ~small], expected[known & ~small], 1e-12).all()
    assert np.allclose(got[known & small], expected[known & small], 1e-12, 1e-15, equal_nan=True)
    for part in ("real", "imag"):
        found, wanted = (np.abs(getattr(v[~known], part)) for v in (got, expected))
        assert same(found, wanted, 1e-12).all()


def test_special_functions():
    x = grid(np.float64)
    x = x[(np.abs(x) > 1e-300) | (x == 0) | np.isnan(x)]

    def adjust(name, expected):
        if name in ("erfinv", "i1", "i1e"):  # odd functions
            return np.where(x == 0, x, expected)
        return np.where(x == 0, np.nan, expected) if name == "digamma" else expected  # a pole

    check(SPECIAL, of(special, SPECIAL), golden(SPECIAL), [x], 1e-11, adjust)


def test_special_functions_of_two_operands():
    x = np.array([0.0, -0.0, 1.0, -1.0, 0.5, 2.0, -2.0, 3.0, np.inf, -np.inf, np.nan])
    check(SPECIAL_TWO, of(special, SPECIAL_TWO), golden(SPECIAL_TWO),
          [v.ravel() for v in np.meshgrid(x, x)], 1e-11,
          lambda name, e: e + 0.0 if name == "kl_div" else e)  # of (0, -0) it is 0
