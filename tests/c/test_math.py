"""The vector math of generated C against mpmath: at most 2 ULP, and every special value."""

import importlib.util
import re
import shutil
from functools import partial
from pathlib import Path

import mpmath
import numpy as np
import pytest

from functrans.lowering.c.isa import AVX2, AVX512, host_isa
from functrans.lowering.c.vectors import builder

ROOT = Path(__file__).parent.parent.parent
_spec = importlib.util.spec_from_file_location("math_accuracy",
                                               ROOT / "benchmarks" / "math_accuracy.py")
accuracy = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(accuracy)

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc")

NAMES, DTYPES, FLOATS = tuple(accuracy.REFERENCES), ("f32", "f64"), accuracy.FLOATS
UNARY = tuple(n for n in NAMES if n not in accuracy.BINARY)
inf, nan = np.inf, np.nan
BOUND = 2.0
# bit for bit the eager function (normal samples agree), which rounds 1 - x^2 before its logarithm
BOUNDS = {("erf_inv", "f32"): 64.0}

# Where templates change their formula, and where results begin to overflow, underflow or vanish.
BORDERS = (0.25, 1 / 3, 0.3466, 0.4, 0.5, 0.55, 0.6, 2 / 3, 0.7071067811865476, 0.75, 0.785398, 0.9,
           0.92, 1.0, 4 / 3, 1.4142135623730951, 1.4616321449683622, 1.5, 1.5707963, 2.0, 2.5, 3.0,
           3.1415927, 4.0, 5.0, 8.0, 9.0, 10.0, 10.06, 16.6, 20.0, 26.54, 27.3, 36.0, 40.0, 87.33,
           88.72, 89.41, 90.0, 103.97, 126.0, 128.0, 149.5, 708.39, 709.78, 710.47, 745.13, 1022.0,
           1024.0, 1074.5, 2.0**16, 2.0**17, 2.0**24, 2.0**30, 2.0**53, 2.0**60, 2.0**100)


def grid(name, dtype):
    """Random operands and the borders with their neighbours; denormals and the largest numbers."""
    operands = accuracy.points(name, dtype, 40 if name not in ("lgamma", "digamma") else 25)
    info = np.finfo(FLOATS[dtype])
    edges = np.array([*BORDERS, info.smallest_subnormal, 3 * float(info.smallest_subnormal),
                      info.tiny / 2, info.tiny, info.max], FLOATS[dtype])
    zero = FLOATS[dtype](0)
    edges = np.concatenate([edges, np.nextafter(edges, zero), np.nextafter(edges, edges * 2)])
    edges = edges[np.isfinite(edges) & (edges != 0)]
    edges = np.concatenate([edges, -edges])
    if name not in accuracy.BINARY:
        return [np.concatenate([operands[0], edges])]
    second = np.random.default_rng(1).permutation(edges)
    return [np.concatenate(pair) for pair in zip(operands, (edges, second))]


@pytest.fixture(autouse=True)
def quiet():
    with np.errstate(all="ignore"):
        yield


@pytest.fixture(scope="module")
def library():
    return accuracy.compiled(NAMES)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", NAMES)
def test_within_two_ulp(name, dtype, library):
    operands = grid(name, dtype)
    assert_accurate(name, dtype, operands, accuracy.evaluate(library, name, dtype, *operands))


def assert_accurate(name, dtype, operands, results):
    """Returns the largest error in ulp."""
    bound = BOUNDS.get((name, dtype), BOUND)
    worst = 0.0
    for y, *x in zip(results, *operands):
        value = accuracy.exact(name, *x)
        if name in ("lgamma", "digamma") and x[0] < 0:
            assert near_gamma(name, dtype, float(x[0]), float(y), value), (name, x[0], y, value)
            continue
        error = accuracy.ulps(y, value, dtype)
        assert error <= bound, (name, x, y, mpmath.nstr(value, 20))
        worst = max(worst, error)
    return worst


def near_gamma(name, dtype, x, y, value):
    """For x < 0 float64 is as near as 4 ulp of the larger term of the reflection formula."""
    if name == "digamma" and x == round(x):
        return np.isnan(y)
    if dtype == "f32" or not mpmath.isfinite(value):
        return accuracy.ulps(y, value, dtype) <= BOUND
    term = abs(accuracy.exact(name, -x))
    if name == "digamma":
        term = max(term, abs(value), abs(mpmath.pi * mpmath.cot(mpmath.pi * mpmath.mpf(x))), -1 / x)
    return abs(y - value) <= 4 * 2.0**-52 * max(abs(value), term, 1)


IN_NUMPY = tuple(n for n in NAMES if hasattr(np, n))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", IN_NUMPY)
def test_special_values_are_those_of_numpy(name, dtype, library):
    assert_special_values_of_numpy(name, dtype, partial(accuracy.evaluate, library, name, dtype))


def assert_special_values_of_numpy(name, dtype, evaluate):
    """Zeros with their signs, infinities, NaN, and what is outside of the domain."""
    info = np.finfo(FLOATS[dtype])
    x = np.array([0.0, -0.0, inf, -inf, nan, 1, -1, 2, -2, 0.5, -0.5, 3, -3, info.max, info.min,
                  info.smallest_subnormal, -info.smallest_subnormal], FLOATS[dtype])
    operands = [x]
    if name in accuracy.BINARY:
        y = np.concatenate([x, np.array([4, -4, 2.5, 2.0**24, 2.0**24 + 2, 2.0**53, 1e30],
                                        FLOATS[dtype])])
        operands = [np.repeat(x, len(y)), np.tile(y, len(x))]
    results = evaluate(*operands)
    expected = getattr(np, name)(*operands)
    special = ~np.isfinite(expected) | (expected == 0)
    np.testing.assert_array_equal(results[special], expected[special])
    signed = special & ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(results[signed]), np.signbit(expected[signed]))
    np.testing.assert_allclose(results, expected, rtol=4 * info.eps)


SPECIAL_VALUES = [
    ("rsqrt", [0.0, -0.0, inf, -1, nan], [inf, -inf, 0.0, nan, nan]),
    ("logistic", [0.0, inf, -inf, nan], [0.5, 1, 0.0, nan]),
    ("erf", [0.0, -0.0, inf, -inf, nan], [0.0, -0.0, 1, -1, nan]),
    ("erfc", [0.0, -0.0, inf, -inf, nan], [1, 1, 0.0, 2, nan]),
    ("erf_inv", [0.0, -0.0, 1, -1, 1.5, -inf, nan], [0.0, -0.0, inf, -inf, nan, nan, nan]),
    ("lgamma", [0.0, -0.0, 1, 2, -1, -7, inf, -inf, nan],
     [inf, inf, 0.0, 0.0, inf, inf, inf, inf, nan]),
    ("digamma", [0.0, -0.0, -1, -7, inf, -inf, nan], [nan, nan, nan, nan, inf, nan, nan]),
]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name, x, y", SPECIAL_VALUES)
def test_special_values_without_numpy(name, x, y, dtype, library):
    assert_special_values(x, y, dtype, partial(accuracy.evaluate, library, name, dtype))


def assert_special_values(x, y, dtype, evaluate):
    results = evaluate(np.array(x, FLOATS[dtype]))
    np.testing.assert_array_equal(results, np.array(y, FLOATS[dtype]))
    known = ~np.isnan(y)
    np.testing.assert_array_equal(np.signbit(results[known]), np.signbit(y)[known])


ANGLES = ("sin", "cos", "tan")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ANGLES)
def test_huge_angles(name, dtype, library):
    assert_huge_angles(name, dtype, partial(accuracy.evaluate, library, name, dtype))


def assert_huge_angles(name, dtype, evaluate):
    """Payne and Hanek's reduction in some lanes, beside small angles and infinity in others."""
    rng = np.random.default_rng(2)
    info = np.finfo(FLOATS[dtype])
    x = np.ldexp(rng.uniform(1, 2, 300), rng.integers(15, info.maxexp, 300))
    # the number nearest to a multiple of pi/2 (K. C. Ng, "Good to the last bit", 1992)
    nearest = 6381956970095103.0 * 2.0**797 if dtype == "f64" else 16367173.0 * 2.0**72
    x = np.concatenate([x, [nearest, 1.0, inf]]).astype(FLOATS[dtype])
    results = evaluate(x)
    assert np.isnan(results[-1])
    for y, angle in zip(results[:-1], x[:-1]):
        with mpmath.workdps(400):
            value = accuracy.REFERENCES[name](mpmath.mpf(float(angle)))
        assert accuracy.ulps(y, value, dtype) <= BOUND, (name, angle)


def test_rounding_of_the_reference():
    """The distance is 0 for a float itself and 1 for its neighbour."""
    for dtype, kind in FLOATS.items():
        for x in (1.5, np.finfo(kind).tiny / 8, np.finfo(kind).max):
            x = kind(x)
            assert accuracy.ulps(x, mpmath.mpf(float(x)), dtype) == 0
            assert accuracy.ulps(np.nextafter(x, kind(0)), mpmath.mpf(float(x)), dtype) == 1
    assert accuracy.ulps(1.0, mpmath.mpf(1) + mpmath.mpf(2) ** -50, "f64") == 4


# the same bits everywhere ------------------------------------------------------------------------

WIDTHS = [("avx512", (("f32", 8), ("f64", 4))), ("avx512", (("f32", 1), ("f64", 1))),
          ("avx2", (("f32", 8), ("f64", 4))), ("avx2", (("f32", 16), ("f64", 8)))]


@pytest.mark.parametrize("isa, lanes", WIDTHS)
def test_every_width_gives_the_same_bits(isa, lanes, library):
    """Only exactly rounded operations are used, so a result depends on no instruction set."""
    host = host_isa().name
    if host not in ("avx512", "avx2") or (isa == "avx512" and host == "avx2"):
        pytest.skip(f"this machine has no {isa}")
    other = accuracy.compiled(NAMES, lanes, AVX512 if isa == "avx512" else AVX2)
    for name in NAMES:
        for dtype in DTYPES:
            operands = accuracy.points(name, dtype, 500, seed=3)
            ends = np.array([0.0, -0.0, inf, -inf, nan], FLOATS[dtype])
            operands = [np.concatenate([v, ends]) for v in operands]
            np.testing.assert_array_equal(accuracy.evaluate(other, name, dtype, *operands),
                                          accuracy.evaluate(library, name, dtype, *operands),
                                          err_msg=f"{name} {dtype}")


@pytest.mark.parametrize("dtype", DTYPES)
def test_templates_name_what_they_need(dtype):
    """The text of a function uses nothing beyond its list, and the list nothing beyond the text."""
    for name, (needs, text) in builder.math_functions(dtype).items():
        code = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
        used = set(re.findall(r"\b\w+_[VD]\b", code)) - {f"{name}_V"}
        assert used == set(needs), (name, used ^ set(needs))
