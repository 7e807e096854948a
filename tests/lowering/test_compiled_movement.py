"""Random chains of movement, gathers, scatters and reductions: compiled code does what NumPy does.

More examples than a test run has time for: FUNCTRANS_EXAMPLES=2000 pytest on this file.
"""

import os

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import functrans as ft
from tests.lowering.movements import arrays, chains

MANY = int(os.environ.get("FUNCTRANS_EXAMPLES", "0"))


def assert_same(actual, expected):
    actual, expected = np.asarray(actual), np.asarray(expected)
    assert actual.dtype == expected.dtype
    assert actual.shape == expected.shape
    if actual.dtype.kind in "iub":
        np.testing.assert_array_equal(actual, expected)
    else:
        half = actual.dtype.itemsize == 2
        np.testing.assert_allclose(actual.astype(np.float64), expected.astype(np.float64),
                                   rtol=0.05 if half else 1e-6, atol=0.5 if half else 1e-6)


@given(st.data())
@settings(max_examples=MANY or 25, deadline=None, derandomize=not MANY, database=None,
          print_blob=False, suppress_health_check=list(HealthCheck))
def test_chains_of_movement(data):
    inputs = data.draw(st.lists(arrays(), min_size=1, max_size=3))
    programs = [data.draw(chains(x)) for x in inputs]

    def fun(*xs):
        return [program(x) for program, x in zip(programs, xs, strict=True)]

    expected = fun(*map(ft.numpy.asarray, inputs))
    with ft.config.use_backend("c"), np.errstate(all="ignore"):
        actual = ft.jit(fun)(*inputs)
    for got, wanted in zip(actual, expected, strict=True):
        for a, e in zip(got, wanted, strict=True):
            assert_same(a, e)
