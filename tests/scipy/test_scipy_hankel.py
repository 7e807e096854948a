"""Hankel transforms beside scipy.fft, and its settings."""

import itertools
import warnings

import numpy as np
import pytest
import scipy.fft

import functrans as ft
from functrans.core.errors import ArgumentError
from functrans.scipy import fft
from functrans.test_util import check_grads
from tests.scipy.comparing import same

rng = np.random.default_rng(0)
OFFSETS = [{}, {"offset": 0.3}, {"bias": 0.4}, {"bias": -0.6, "offset": -0.2}, {"bias": 1.0},
           {"bias": -1.0}]


def test_hankel_transforms():
    for n, mu, options in itertools.product((16, 1), (0.0, 0.5, 7.3, -0.5, -2.0), OFFSETS):
        a = rng.standard_normal((2, n))
        for name in ("fht", "ifht"):
            with warnings.catch_warnings(record=True) as found:
                warnings.simplefilter("always")
                ours = getattr(fft, name)(a, 0.1, mu, **options)
                mine = len(found)
                known = getattr(scipy.fft, name)(a, 0.1, mu, **options)
            same(ours, known, what=(name, n, mu, options))
            assert mine == len(found) - mine, (name, mu, options)
    for bias in (0, 0.3):
        same(fft.fhtoffset(0.1, 1.3, 0.2, bias), scipy.fft.fhtoffset(0.1, 1.3, 0.2, bias))


def test_hankel_transforms_of_tracers():
    a = rng.standard_normal(8)
    arguments = (a, *(np.array(v) for v in (0.5, 1.3, 0.2, 0.1)))
    check_grads(fft.fht, arguments, 1)
    same(ft.jit(fft.fht)(*arguments), scipy.fft.fht(*arguments))
    same(ft.jit(fft.fhtoffset)(np.array(0.1), np.array(1.3)), scipy.fft.fhtoffset(0.1, 1.3))
    same(ft.vmap(lambda a: fft.fht(a, 0.5, 1.0))(a.reshape(2, 4)), scipy.fft.fht(
        a.reshape(2, 4), 0.5, 1.0))


def test_settings():
    assert fft.get_workers() == 1
    with fft.set_workers(3):
        assert fft.get_workers() == 3
        with fft.set_workers(-1):
            assert fft.get_workers() == -1
    assert fft.get_workers() == 1
    for wrong in (0, 1.5, "two"):
        with pytest.raises(ArgumentError, match="workers"), fft.set_workers(wrong):
            pass
    for name in ("set_backend", "skip_backend", "set_global_backend", "register_backend"):
        with pytest.raises(ArgumentError, match="uarray"):
            getattr(fft, name)("scipy")
