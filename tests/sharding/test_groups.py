"""Collectives within groups of positions are those of the groups, in NumPy."""

import numpy as np
import pytest

import functrans as ft
from functrans import lax
from functrans.sharding import P
from tests.sharding.meshes import mesh_of

PAIRS, UNEQUAL = [[0, 3], [2, 1]], [[2], [3, 0, 1]]


def group_of(groups, k):
    return next(g for g in groups if k in g)


def by_devices(f, x):
    return np.asarray(ft.shard_map(lambda v: f(v[0])[None], mesh_of(4), P("a"), P("a"))(x))


def by_lanes(f, x):
    return np.asarray(ft.vmap(f, axis_name="a")(x))


@pytest.mark.parametrize("over", [by_devices, by_lanes])
@pytest.mark.parametrize("size", [6, 9000])
def test_sums_and_extrema(over, size):
    x = np.random.default_rng(0).integers(-9, 9, (4, size)).astype(np.float32)
    with ft.config.use_backend("reference"):
        for groups in (PAIRS, UNEQUAL):
            members = [x[group_of(groups, k)] for k in range(4)]
            for f, of in ((lax.psum, np.sum), (lax.pmean, np.mean), (lax.pmax, np.max),
                          (lax.pmin, np.min)):
                found = over(lambda v, f=f, g=groups: f(v, "a", axis_index_groups=g), x)
                np.testing.assert_allclose(found, [of(m, axis=0) for m in members], rtol=1e-6)
        counts = over(lambda v: v * 0 + lax.psum(1, "a", axis_index_groups=UNEQUAL), x)
        np.testing.assert_array_equal(counts[:, 0], [3, 3, 1, 3])


@pytest.mark.parametrize("over", [by_devices, by_lanes])
def test_parts(over):
    x = np.random.default_rng(0).normal(size=(4, 2, 6)).astype(np.float32)
    groups = [group_of(PAIRS, k) for k in range(4)]
    places = [g.index(k) for k, g in enumerate(groups)]
    with ft.config.use_backend("reference"):
        found = over(lambda v: lax.all_gather(v, "a", axis_index_groups=PAIRS), x)
        np.testing.assert_array_equal(found, [x[g] for g in groups])
        found = over(lambda v: lax.psum_scatter(v, "a", axis_index_groups=PAIRS), x)
        np.testing.assert_allclose(
            found, [x[g].sum(0)[i] for g, i in zip(groups, places, strict=True)], rtol=1e-6)
        found = over(lambda v: lax.all_to_all(v, "a", 0, 0, axis_index_groups=PAIRS), x)
        np.testing.assert_array_equal(
            found, [x[g, i] for g, i in zip(groups, places, strict=True)])
        found = over(lambda v: lax.pswapaxes(v, "a", 0, axis_index_groups=PAIRS), x)
        np.testing.assert_array_equal(
            found, [x[g, i] for g, i in zip(groups, places, strict=True)])
