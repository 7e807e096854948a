"""Parameters in files: every dtype comes back, nothing is copied, and what is wrong is named."""

import json

import ml_dtypes
import numpy as np
import pytest
import safetensors.numpy

import functrans as ft
import functrans.numpy as jnp
from functrans import weights
from functrans.core.errors import ArgumentError, KeyTypeError, TreeMismatchError

DTYPES = ["bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64",
          "float16", "bfloat16", "float32", "float64", "complex64", "float8_e4m3fn", "float8_e5m2"]
TREE = {"layers": [{"w": np.arange(6.0).reshape(2, 3), "b": np.zeros(3, ml_dtypes.bfloat16)},
                   {"w": np.ones((2, 3)), "b": np.ones(3, ml_dtypes.bfloat16)}],
        "scale": np.float32(2.5), "empty": np.zeros((0, 3))}


def same(a, b):
    for x, y in zip(ft.tree.leaves(a), ft.tree.leaves(b), strict=True):
        assert x.dtype == y.dtype
        np.testing.assert_array_equal(np.asarray(x), np.asarray(y))


@pytest.mark.parametrize("dtype", DTYPES)
def test_dtypes(dtype, tmp_path):
    x = np.arange(7).astype(np.dtype(dtype))
    weights.save(tmp_path / "x.safetensors", {"a": x, "z": np.float32(1), "odd": x[:3]})
    found = weights.load(tmp_path / "x.safetensors")
    same([found["a"], found["odd"]], [x, x[:3]])
    if not dtype.startswith("float8"):  # which the library does not load into NumPy
        theirs = safetensors.numpy.load_file(tmp_path / "x.safetensors")
        assert theirs["z"] == 1 and theirs["a"].shape == (7,)


@pytest.mark.parametrize("shard_size", [None, 50, "1MB", "0.0001MB"])
def test_trees(shard_size, tmp_path):
    path = tmp_path / "model"
    files = weights.save(path, TREE, shard_size=shard_size, metadata={"step": "3"})
    same(weights.load(path, like=TREE), TREE)
    nested = weights.load(path)
    assert nested.keys() == {"layers", "scale", "empty"} and nested["layers"].keys() == {"0", "1"}
    if shard_size is not None:
        index = json.loads(files[-1].read_text())
        assert index["weight_map"].keys() == weights.names_of(TREE).keys()
        assert index["metadata"]["total_size"] == sum(x.nbytes for x in ft.tree.leaves(TREE))
        same(weights.load(files[-1], like=TREE), TREE)
    assert len(files) == {None: 1, 50: 6, "1MB": 2, "0.0001MB": 3}[shard_size]


def test_arrays_stay_in_the_mapped_file(tmp_path):
    weights.save(tmp_path / "m", {"w": jnp.ones((64, 64))})
    w = weights.load(tmp_path / "m")["w"]
    assert not np.asarray(w).flags.owndata and not np.asarray(w).flags.writeable
    np.testing.assert_array_equal(ft.jit(lambda w: w @ w)(w), np.full((64, 64), 64))
    assert isinstance(np.asarray(w).base, object) and w.at[0].set(0)[0, 0] == 0


def test_files_of_others_may_be_unaligned(tmp_path):
    header = json.dumps({"a": {"dtype": "U8", "shape": [3], "data_offsets": [0, 3]},
                         "b": {"dtype": "F32", "shape": [2], "data_offsets": [3, 11]}}).encode()
    data = len(header).to_bytes(8, "little") + header + b"abc" + np.float32([1, 2]).tobytes()
    (tmp_path / "m").write_bytes(data)
    found = weights.load(tmp_path / "m")
    assert found["b"].tolist() == [1, 2] and ft.jit(lambda x: x + 1)(found["b"]).tolist() == [2, 3]


def test_what_is_wrong_is_named(tmp_path):
    path = tmp_path / "m.safetensors"
    weights.save(path, TREE)
    with pytest.raises(TreeMismatchError, match="it lacks 'x'; it also has 'empty'"):
        weights.load(path, like={"x": 1.0})
    with pytest.raises(TreeMismatchError, match=r"'scale' .* is f32\[\], and f32\[2\]"):
        weights.load(path, like={**TREE, "scale": np.ones(2, np.float32)})
    with pytest.raises(ArgumentError, match="no file"):
        weights.load(tmp_path / "nothing")
    with pytest.raises(ArgumentError, match="no safetensors files"):
        (tmp_path / "folder").mkdir()
        weights.load(tmp_path / "folder")
    for broken in (path.read_bytes()[:-5], b"", b"\xff" * 64):
        (tmp_path / "broken").write_bytes(broken)
        with pytest.raises(ArgumentError, match="no whole safetensors file"):
            weights.load(tmp_path / "broken")
    with pytest.raises(KeyTypeError, match="'k' is a random key"):
        weights.save(path, {"k": ft.random.key(0)})
    with pytest.raises(ArgumentError, match="dtype complex128"):
        weights.save(path, {"c": np.ones(2, complex)})
    with pytest.raises(ArgumentError, match=r"the name 'a\.b'"):
        weights.save(path, {"a": {"b": 1.0}, "a.b": 2.0})
    with pytest.raises(ArgumentError, match="shard_size='large'"):
        weights.save(path, TREE, shard_size="large")
    weights.save(path, {"a": 1.0, "a.b": 2.0})
    with pytest.raises(ArgumentError, match="inside of another"):
        weights.load(path)
