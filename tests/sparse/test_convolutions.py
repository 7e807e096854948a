"""Convolutions of sparse arrays are those of the dense ones."""

import numpy as np
import pytest

import functrans as ft
from functrans import lax
from functrans.core.errors import ArgumentError
from functrans.experimental import sparse

rng = np.random.default_rng(0)


@pytest.mark.parametrize("options", [
    {"window_strides": (1,), "padding": "SAME"},
    {"window_strides": (2,), "padding": [(2, 1)], "rhs_dilation": (2,)}])
def test_convolutions_of_sparse_arrays(options):
    x, k = (rng.standard_normal(s) * (rng.random(s) < 0.3) for s in ((2, 3, 9), (4, 3, 3)))
    for n_batch in (0, 1):
        sparse_x = sparse.bcoo_fromdense(x, n_batch=n_batch)
        sparse_k = sparse.bcoo_fromdense(k)
        dense = lax.conv_general_dilated(x, k, **options)
        for of in (sparse.bcoo_conv_general_dilated,
                   ft.jit(lambda a, b: sparse.bcoo_conv_general_dilated(a, b, **options))):
            given = {} if of is not sparse.bcoo_conv_general_dilated else options
            np.testing.assert_allclose(of(sparse_x, sparse_k, **given).todense(), dense, atol=1e-12)
    with pytest.raises(ArgumentError, match="rhs is a"):
        sparse.bcoo_conv_general_dilated(sparse_x, k, **options)
