"""Selection evaluates large arrays by their bits: every dtype, layout and special value."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from functrans.primitives.compare import select_n_p

DTYPES = [np.bool_, np.int8, np.uint64, np.float16, ml_dtypes.bfloat16, np.float32, np.float64,
          np.complex64, np.complex128]


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: np.dtype(d).name)
@pytest.mark.parametrize("shape", [(3, 5), (80, 50)])
def test_select_is_where(dtype: Any, shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(0)
    x, y = ((rng.normal(size=shape) * 5).astype(dtype) for _ in range(2))
    mask = rng.random(shape) > 0.5
    for m, a, b in [(mask, x, y), (mask.T, x.T, np.broadcast_to(y[:1], shape).T),
                    (mask[::2, ::-1], x[::2], y[::2]), (np.array(True), x, y)]:
        out = select_n_p.evaluate(m, a, b)
        assert out.dtype == np.dtype(dtype) and out.shape == a.shape
        np.testing.assert_array_equal(out, np.where(m, b, a))


def test_special_values_are_not_mixed() -> None:
    x, y = np.full(5000, np.nan), np.full(5000, -np.inf)
    y[::2] = -0.0
    mask = np.arange(5000) % 3 == 0
    out = select_n_p.evaluate(mask, x, y)
    assert np.array_equal(np.isnan(out), ~mask)
    assert np.array_equal(np.signbit(out[mask]), np.ones(mask.sum(), bool))
