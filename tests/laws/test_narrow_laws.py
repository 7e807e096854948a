"""Every primitive in numbers of few bits: what programs compute is what NumPy does, to the bit."""

import numpy as np
import pytest

import functrans as ft
from functrans.core import dtypes
from functrans.lowering.c.lower import lower
from functrans.lowering.passes.narrow_formats import FLOATS, INTEGERS
from functrans.primitives.coordinate_products import coo_dot_p
from functrans.primitives.sparse import csr_dot_p, csr_sample_p
from tests.laws.primitives import Case, all_cases, groups, variants

NARROW = {"f": FLOATS, "i": INTEGERS}
SPARSE_PRODUCTS = (csr_dot_p, csr_sample_p, coo_dot_p)


def has_nan(x):
    """float8_e8m0fnu has neither zero nor negative numbers."""
    return x.dtype.name in FLOATS and np.isnan(x.astype("f")).any()


def results(found: Case):
    outs = found.outs(*[ft.numpy.asarray(a) for a in found.args])
    return [np.asarray(out) for out in outs]


@pytest.mark.one_in(7)
@pytest.mark.parametrize("cases", groups(all_cases(), 3), ids=lambda cases: str(cases[0]))
def test_compiled_is_eager(cases):
    found = [v for case in cases for v in variants(case, NARROW) if not any(map(has_nan, v.args))]
    if not found:
        return

    def fun(*args):
        rest = iter(args)
        return [v.outs(*[next(rest) for _ in v.args]) for v in found]

    args = [a for v in found for a in v.args]
    program = lower(ft.lower(fun, *args).jaxpr, frozenset())
    hosts = [] if program is None else program.text.hosts  # None: nothing is computed
    assert not hosts or found[0].primitive.name == "pure_callback"
    for v, outs in zip(found, ft.jit(fun)(*args), strict=True):
        for actual, expected in zip(outs, results(v), strict=True):
            assert_near(v, np.asarray(actual), expected)


def assert_near(case, actual, expected):
    """To the bit; of what float32 rounds elsewhere, to the next number.

    Products of sparse arrays add up in another order: their terms may be larger than the sum.
    """
    assert actual.dtype == expected.dtype, (case, case.args[0].dtype)
    if dtypes.kind(actual.dtype) not in "fc":
        np.testing.assert_array_equal(actual, expected, err_msg=f"{case} {case.args[0].dtype}")
        return
    step = float(dtypes.finfo(actual.dtype).eps)
    least = float(dtypes.finfo(actual.dtype).smallest_subnormal)
    if case.primitive in SPARSE_PRODUCTS and expected.size:
        least = max(least, step * float(np.abs(expected).max()))
    wide = "D" if dtypes.kind(actual.dtype) == "c" else "d"
    np.testing.assert_allclose(actual.astype(wide), expected.astype(wide), rtol=1.01 * step,
                               atol=least,
                               err_msg=f"{case} {case.args[0].dtype}")
