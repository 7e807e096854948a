"""Initializers: bit for bit (nearly) what jax 0.10 gives for the same key, and their moments."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import functrans as ft

init = ft.nn.initializers
GOLDEN = json.loads((Path(__file__).parent.parent / "data" / "nn.json").read_text())["initializers"]
CASES: dict[str, Any] = {
    "uniform": init.uniform(0.5), "normal": init.normal(2.0),
    "truncated_normal": init.truncated_normal(0.3),
    "truncated_normal_bounds": init.truncated_normal(1.0, lower=-1.0, upper=0.5),
    "glorot_uniform": init.glorot_uniform(), "glorot_normal": init.glorot_normal(),
    "lecun_uniform": init.lecun_uniform(), "lecun_normal": init.lecun_normal(),
    "he_uniform": init.he_uniform(), "he_normal": init.he_normal(in_axis=1, out_axis=0),
    "variance_scaling": init.variance_scaling(2.0, "fan_geo_avg", "normal", batch_axis=0),
    "orthogonal": init.orthogonal(2.0), "orthogonal_wide": init.orthogonal(column_axis=0),
    "delta_orthogonal": init.delta_orthogonal()}


@pytest.mark.parametrize("name", sorted(GOLDEN))
def test_golden_numbers(name: str) -> None:
    golden = GOLDEN[name]
    value = CASES[name](ft.random.key(7), tuple(golden["shape"]), np.float32)
    assert list(value.shape) == golden["shape"] and value.dtype == np.float32
    np.testing.assert_allclose(np.asarray(value).ravel(), golden["value"], rtol=2e-5, atol=1e-6)


def test_constants() -> None:
    assert init.zeros(None, (2,)).tolist() == [0, 0] and init.ones(None, (2,)).tolist() == [1, 1]
    assert init.constant([1.0, 2.0])(None, (2, 2)).tolist() == [[1, 2], [1, 2]]
    assert init.zeros(None, (2,), "bfloat16").dtype.name == "bfloat16"


@pytest.mark.parametrize("name", sorted(CASES))
def test_dtypes(name: str) -> None:
    shape = tuple(GOLDEN[name]["shape"])
    assert CASES[name](ft.random.key(0), shape).dtype == np.float32
    assert CASES[name](ft.random.key(0), shape, np.float64).dtype == np.float64
    with ft.default_dtypes("float64"):
        assert CASES[name](ft.random.key(0), shape).dtype == np.float64


@pytest.mark.parametrize(("maker", "variance"), [
    (init.glorot_uniform, 1 / 250), (init.glorot_normal, 1 / 250), (init.lecun_normal, 1 / 200),
    (init.lecun_uniform, 1 / 200), (init.he_normal, 2 / 200), (init.he_uniform, 2 / 200)])
def test_variances(maker: Any, variance: float) -> None:
    x = np.asarray(maker()(ft.random.key(3), (200, 300)))
    assert x.var() == pytest.approx(variance, rel=0.02) and abs(x.mean()) < 0.001


def test_receptive_fields_count() -> None:
    x = np.asarray(init.he_normal()(ft.random.key(1), (3, 3, 20, 50)))
    assert x.var() == pytest.approx(2 / (9 * 20), rel=0.05)


def test_same_names() -> None:
    assert init.xavier_normal is init.glorot_normal and init.kaiming_uniform is init.he_uniform


@pytest.mark.parametrize(("shape", "axis"), [((6, 4), -1), ((4, 6), -1), ((2, 3, 5), 0),
                                             ((5, 2, 3), 1)])
def test_orthogonal(shape: tuple[int, ...], axis: int) -> None:
    w = np.asarray(init.orthogonal(3.0, column_axis=axis)(ft.random.key(2), shape, np.float64))
    flat = np.moveaxis(w, axis, -1).reshape(-1, shape[axis])
    gram = flat.T @ flat if flat.shape[0] >= flat.shape[1] else flat @ flat.T
    np.testing.assert_allclose(gram, 9 * np.eye(len(gram)), atol=1e-12)


def test_errors() -> None:
    key = ft.random.key(0)
    with pytest.raises(ValueError, match="has no fans"):
        init.he_normal()(key, (3,))
    with pytest.raises(ValueError, match="no matrix"):
        init.orthogonal()(key, (3,))
    with pytest.raises(ValueError, match="delta_orthogonal"):
        init.delta_orthogonal()(key, (3, 3, 4, 2))
    with pytest.raises(ValueError, match="fan_max"):
        init.variance_scaling(1.0, "fan_max", "normal")


def test_under_vmap_and_jit() -> None:
    keys = ft.random.split(ft.random.key(0), 3)
    make = lambda key: init.lecun_normal()(key, (2, 4))
    many = np.asarray(ft.vmap(make)(keys))
    for i in range(3):
        np.testing.assert_array_equal(many[i], np.asarray(make(keys[i])))
        np.testing.assert_array_equal(np.asarray(ft.jit(make)(keys[i])), many[i])
