"""Samples against a table made with jax.random: exact, but for the last bits of transcendentals."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from functrans import random

sys.path.insert(0, str(Path(__file__).parent))
from golden_cases import CASES, SEEDS

GOLDEN = json.loads((Path(__file__).parent.parent / "data" / "random.json").read_text())


def bit_patterns(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Values as integers, ordered as they are, so that a difference is a distance in ULP."""
    if x.dtype.kind == "c":
        x = x.view(x.real.dtype)
    if x.dtype.kind in "biu":
        return x.astype(object)
    bits = x.view(f"u{x.dtype.itemsize}")
    top = 1 << (8 * x.dtype.itemsize - 1)
    values = bits.astype(object)
    return np.where(bits < top, values, top - values)


def expected(name: str, index: int) -> np.ndarray[Any, Any]:
    entry = GOLDEN[name]
    dtype = np.dtype(entry["dtype"])
    real = {"complex64": np.dtype("float32")}.get(entry["dtype"], dtype)
    stored = f"u{real.itemsize}" if real.kind not in "biu" else real
    flat = np.array(entry["bits"][index], stored).view(real)
    return flat.view(dtype).reshape(entry["shape"])


@pytest.mark.parametrize("name", CASES)
def test_samples_equal_the_table(name: str) -> None:
    case = CASES[name]
    for index, seed in enumerate(SEEDS):
        got = np.asarray(case.draw(random, random.key(seed)))
        want = expected(name, index)
        assert got.dtype == want.dtype and got.shape == want.shape
        distance = np.abs(bit_patterns(np.ascontiguousarray(got)) - bit_patterns(want))
        same = (got == want) | ((got != got) & (want != want))
        if got.dtype.kind != "c":
            distance = np.where(same, 0, distance)
        assert distance.size == 0 or distance.max() <= case.ulp, (seed, distance.max())


def test_every_case_is_in_the_table() -> None:
    assert set(GOLDEN) - {"source"} == set(CASES)
