"""A program on parts gives what it gives on whole arrays: every primitive on every sample."""

import numpy as np
import pytest

import functrans as ft
from functrans.core import dtypes
from functrans.core.avals import get_aval
from tests.laws.primitives import all_cases
from tests.laws.test_primitive_laws import assert_same
from tests.sharding.meshes import divided, mesh_of

CASES = [c for c in all_cases() if all(get_aval(a).is_static for a in c.args)]


@pytest.mark.one_sample_in(2)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_parts_give_what_the_whole_gives(case):
    rng = np.random.default_rng(len(str(case)))
    mesh = mesh_of(2, 3)
    with ft.config.use_backend("reference"):
        expected = case.outs(*case.args)
        for _ in range(2):
            args = [divided(rng, mesh, x) if isinstance(x, (ft.Array, np.ndarray)) else x
                    for x in case.args]
            found = ft.jit(case.outs)(*args)
            assert all(f.sharding.num_devices == 6 for f in found) or not args
            exact = all(dtypes.kind(e.dtype) not in "fc" for e in expected)
            assert_same(found, expected, 0 if exact else 3e-3 if any(
                e.dtype.itemsize < 4 for e in expected) else 1e-4)
