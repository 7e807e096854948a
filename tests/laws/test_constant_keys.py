"""The passes over lanes know values by keys: that of a constant is what the operation gives."""

import warnings

import numpy as np
import pytest

from functrans.lowering.passes.lane_classes import _applied, _literal, _value
from functrans.transforms.staged import make_jaxpr
from tests.laws.primitives import all_cases

CASES = [case for case in all_cases() if not case.primitive.multiple_results]


@pytest.mark.one_in(4)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_keys_of_equal_elements(case):
    args = [np.full(np.shape(x), 1).astype(np.asarray(x).dtype) for x in case.args]
    if any(a.dtype.kind not in "biuf" for a in args):
        return
    eqn = make_jaxpr(lambda *xs: case.primitive.bind(*xs, **case.params))(*args).eqns[-1]
    keys = [_literal(np.ones((), v.aval.dtype)) for v in eqn.invars]
    key = _applied(eqn, keys, 0)
    if key[0] == "literal":
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            value = np.asarray(case.primitive.evaluate(*args, **case.params))
        assert np.array_equal(value, np.full_like(value, _value(key)), equal_nan=True)
