"""Arrays that were saved in parts are read on other meshes, and by other numbers of processes."""

import numpy as np
import pytest

import functrans as ft
from functrans.errors import ArgumentError, TreeMismatchError
from functrans.sharding import NamedSharding, P
from tests.sharding.meshes import mesh_of

X = np.arange(48, dtype=np.float32).reshape(8, 6)


def on(spec, *shape):
    return NamedSharding(mesh_of(*shape), spec)


@pytest.mark.parametrize("saved", [on(P("a"), 4), on(P("b", "a"), 2, 2), on(P(), 2)])
@pytest.mark.parametrize("loaded", [on(P("a"), 2), on(P(None, "a"), 3), on(P("a", "b"), 4, 2)])
def test_other_meshes(saved, loaded, tmp_path):
    tree = {"w": ft.device_put(X, saved), "n": np.int32(3)}
    ft.weights.save_parts(tmp_path, tree)
    like = {"w": ft.ShapeDtypeStruct(X.shape, X.dtype, sharding=loaded),
            "n": ft.ShapeDtypeStruct((), "int32")}
    found = ft.weights.load_parts(tmp_path, like)
    assert found["w"].sharding == loaded
    np.testing.assert_array_equal(found["w"], X)
    assert int(found["n"]) == 3
    np.testing.assert_array_equal(ft.weights.load_parts(tmp_path, {"w": X})["w"], X)


def test_what_is_wrong_is_named(tmp_path):
    with pytest.raises(ArgumentError, match="has 0 files of parts"):
        ft.weights.load_parts(tmp_path, {"w": X})
    file = ft.weights.save_parts(tmp_path, {"w": ft.device_put(X, on(P("a"), 4))})
    with pytest.raises(TreeMismatchError, match="has no 'v'"):
        ft.weights.load_parts(tmp_path, {"v": X})
    with pytest.raises(TreeMismatchError, match="was saved as float32"):
        ft.weights.load_parts(tmp_path, {"w": X.astype("float64")})
    with pytest.raises(TreeMismatchError, match=r"48 of 54"):
        ft.weights.load_parts(tmp_path, {"w": np.zeros((9, 6), np.float32)})
    file.rename(tmp_path / "parts-00001-of-00002.safetensors")
    with pytest.raises(ArgumentError, match="1 files of parts, of runs of 2 processes"):
        ft.weights.load_parts(tmp_path, {"w": X})
