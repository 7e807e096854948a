"""Convolutions with few results of a place are products with all taps."""

import numpy as np
import pytest

import functrans as ft
from functrans import lax
from functrans import numpy as xp
from functrans.core.evaluate import interpret
from functrans.lowering.passes import few_features
from functrans.lowering.passes.few_features import few_features_as_products
from functrans.lowering.schedule.target import HOPPER
from functrans.primitives.conv import conv_general_dilated_p

NAMES = {1: ("NWC", "WIO", "NWC"), 2: ("NHWC", "HWIO", "NHWC"), 3: ("NDHWC", "DHWIO", "NDHWC")}


def rewritten(fun, *args):
    """The program before and after the pass."""
    jaxpr = ft.make_jaxpr(fun)(*args).jaxpr.hoist_consts()
    known = HOPPER.measured
    return jaxpr, few_features_as_products(jaxpr, known.bandwidth, known.again, known.launch)


def convolutions(jaxpr):
    return sum(eqn.primitive is conv_general_dilated_p for eqn in jaxpr.eqns)


def conv(x, w, padding="SAME", dilation=1, names=None):
    rank = x.ndim - 2
    return lax.conv_general_dilated(x, w, (1,) * rank, padding, rhs_dilation=(dilation,) * rank,
                                    dimension_numbers=names or NAMES[rank])


CASES = {
    "few results": (lambda x, w: conv(x, w), (2, 9, 10, 16), (3, 3, 16, 3)),
    "cropped": (lambda x, w: conv(x, w, "VALID"), (2, 9, 10, 16), (4, 3, 16, 2)),
    "dilated": (lambda x, w: conv(x, w, ((3, 1), (0, 4)), 2), (2, 9, 10, 16), (3, 3, 16, 1)),
    "one axis": (lambda x, w: conv(x, w), (2, 30, 24), (5, 24, 4)),
    "three axes": (lambda x, w: conv(x, w), (1, 4, 5, 6, 16), (3, 3, 3, 16, 2)),
    "features first in the result": (
        lambda x, w: conv(x, w, names=("NHWC", "OIHW", "NCHW")), (2, 9, 10, 16), (3, 16, 3, 3)),
    "gradient of an image": (
        ft.grad(lambda x, w: xp.sum(xp.sin(conv(x, w))), 0), (2, 9, 10, 3), (5, 3, 3, 16)),
    "gradient of a filter": (
        ft.grad(lambda w, x: xp.sum(xp.sin(conv(x, w))), 0), (3, 5, 16, 3), (2, 9, 10, 16)),
    "gradient of a filter, cropped": (
        ft.grad(lambda w, x: xp.sum(xp.sin(conv(x, w, "VALID"))), 0), (3, 2, 16, 2),
        (2, 9, 10, 16)),
}


@pytest.mark.parametrize("case", CASES)
def test_products_compute_the_same(case, monkeypatch):
    fun, *shapes = CASES[case]
    monkeypatch.setattr(few_features, "LEAST_PLACES", 1)
    monkeypatch.setattr(few_features, "WORTH", np.inf)
    rng = np.random.default_rng(0)
    args = [rng.standard_normal(shape).astype("float32") for shape in shapes]
    before, after = rewritten(fun, *args)
    assert convolutions(after) == (1 if case == "gradient of an image" else
                                   0 if "gradient" not in case else convolutions(before) - 2)
    for a, e in zip(interpret(after, args), interpret(before, args), strict=True):
        assert (a.shape, a.dtype) == (e.shape, e.dtype)
        np.testing.assert_allclose(a, e, 1e-4, 1e-4)


def test_it_pays_where_tiles_would_read_a_place_for_each_tap():
    def typed(*shape, dtype="float32"):
        return ft.ShapeDtypeStruct(shape, dtype)

    _, after = rewritten(conv, typed(256, 64, 64, 64), typed(5, 5, 64, 3))
    assert not convolutions(after)
    for x, w in (((256, 64, 64, 64), (5, 5, 64, 64)), ((256, 64, 64, 3), (5, 5, 3, 64)),
                 ((2, 16, 16, 64), (5, 5, 64, 3))):
        assert convolutions(rewritten(conv, typed(*x), typed(*w))[1]) == 1
    halves = [typed(16, 384, 384, 64, dtype="bfloat16"), typed(16, 384, 384, 3, dtype="bfloat16")]
    filter_ = typed(3, 3, 64, 3, dtype="bfloat16")

    def gradient(x, ct):
        return ft.linear_transpose(lambda w: conv(x, w), filter_)(ct)

    assert not convolutions(rewritten(gradient, *halves)[1])
