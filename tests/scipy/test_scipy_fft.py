"""functrans.scipy.fft beside scipy.fft."""

import numpy as np
import pytest
import scipy.fft

import functrans as ft
from functrans.scipy import fft
from functrans.test_util import check_grads
from tests.scipy.comparing import Pair

both = Pair(fft, scipy.fft)
rng = np.random.default_rng(0)
NAMES = ["dct", "idct", "dst", "idst"]


@pytest.mark.parametrize("type", [1, 2, 3, 4])
@pytest.mark.parametrize("name", NAMES)
def test_transforms(name, type):
    for n in (1, 2, 5, 8):
        if n == 1 and type == 1 and name.endswith("ct"):
            continue
        x, y = rng.standard_normal((2, 3, n))
        for norm in (None, "ortho", "forward"):
            for orthogonalize in (None, True, False):
                both(name, x, type, norm=norm, orthogonalize=orthogonalize)
            both(name, x + 1j * y, type, norm=norm)
    both(name, rng.standard_normal((6, 3)), type, n=4, axis=0)
    both(name, rng.standard_normal((6, 3)), type, n=9, axis=0)
    both(name + "n", rng.standard_normal((4, 5, 3)), type, axes=(0, 2), norm="ortho")
    both(name + "n", rng.standard_normal((4, 5)), type, s=(6, 4))


@pytest.mark.parametrize("name", NAMES)
def test_derivatives(name):
    for type in (1, 2, 3, 4):
        check_grads(lambda x: getattr(fft, name)(x, type), (rng.standard_normal(5),), 1)  # noqa: B023


def test_lengths():
    for n in range(1, 300):
        assert fft.next_fast_len(n) == scipy.fft.next_fast_len(n)
        assert fft.next_fast_len(n, real=True) == scipy.fft.next_fast_len(n, real=True)
        assert fft.prev_fast_len(n) == scipy.fft.prev_fast_len(n)


def test_bad_arguments():
    for bad in ({"type": 5}, {"norm": "up"}, {"n": 0}):
        with pytest.raises(ft.core.errors.ArgumentError):
            fft.dct(np.ones(4), **bad)
    with pytest.raises(ft.core.errors.ShapeError):
        fft.dct(np.ones(1), 1)
