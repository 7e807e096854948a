"""Derivatives at ties, kinks and singularities are JAX's, or finite where its are NaN.

`python -m tests.transforms.write_edges jax` stores JAX's, where that is installed.
"""

import json
from pathlib import Path

import numpy as np
import pytest

import functrans as ft
from tests.transforms.edge_table import CASES, derivatives

JAX = json.loads((Path(__file__).parent / "edges_of_jax.json").read_text())
# where ours differ (docs/reference/differences_from_jax.md): an element of the second derivative,
# or of the first one, and its value
OURS = {
    "abs": ("reverse", 0, 0.0),           # the subgradient of least norm, here and below
    "abs squared": ("second", 0, 0.0),    # of a product of slopes that are 0 there
    "copysign": ("reverse", 0, 0.0),
    "hypot": ("reverse", 0, 0.0),
    "norm 1": ("reverse", 0, 0.0),
    "cummax": ("reverse", 25, 2.0),       # equal shares, where JAX halves halves
    "fmax": ("reverse", 7, 3.0),          # half to each, as maximum
    "celu": ("second", 0, 1.0),           # that of elu
    "i0": ("second", 0, 0.5),             # JAX's is wrong
}


@pytest.mark.parametrize("name", CASES)
def test_derivatives_are_those_of_jax(name):
    with ft.enable_x64(True):
        found = {part: np.asarray(value).reshape(-1)
                 for part, value in derivatives(ft, name).items()}
    for part, expected in JAX[name].items():
        known = ~np.isnan(expected)
        if name not in OURS or part == "value":
            np.testing.assert_allclose(found[part][known], np.array(expected)[known], 1e-9, 1e-9,
                                       err_msg=part)
    # beside an infinite derivative one mode or the other has 0 times infinity
    modes = np.stack([found["forward"], found["reverse"]])
    forward, reverse = modes[:, ~np.isnan(modes).any(0)]
    np.testing.assert_allclose(forward, reverse, 1e-9, 1e-9)
    if name in OURS:
        part, place, value = OURS[name]
        assert found[part][place] == pytest.approx(value)
        assert JAX[name][part][place] != pytest.approx(value)


def test_where_jax_has_nan():
    """Our derivatives are finite in most of these, and never NaN where JAX's are not."""
    with ft.enable_x64(True):
        nan = {name for name in CASES for part, value in derivatives(ft, name).items()
               if np.isnan(np.asarray(value)).any()}
    theirs = {name for name, parts in JAX.items() if any(np.isnan(v).any() for v in parts.values())}
    assert nan < theirs
    assert {"norm", "norm 2", "norm fro", "norm axis", "where sqrt", "power 0.0", "logsumexp",
            "logaddexp"} <= theirs - nan
