"""Keys: typed, immutable, trees of words; split and fold_in; misuse by its text."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import functrans as ft
from functrans import random
from functrans.core.errors import ArgumentError, IntegerOverflowError, KeyTypeError


def words(keys: Any) -> list[Any]:
    return random.key_data(keys).tolist()


def reference(k0: int, k1: int, x0: int, x1: int) -> tuple[int, int]:
    """Threefry-2x32 with 20 rounds in Python's integers (Salmon et al. 2011)."""
    mask = 0xFFFFFFFF
    schedule = [k0, k1, k0 ^ k1 ^ 0x1BD11BDA]
    x0, x1 = (x0 + k0) & mask, (x1 + k1) & mask
    for i in range(5):
        for rotation in ((13, 15, 26, 6), (17, 29, 16, 24))[i % 2]:
            x0 = (x0 + x1) & mask
            x1 = (x1 << rotation | x1 >> (32 - rotation)) & mask
            x1 ^= x0
        x0 = (x0 + schedule[(i + 1) % 3]) & mask
        x1 = (x1 + schedule[(i + 2) % 3] + i + 1) & mask
    return x0, x1


@pytest.mark.parametrize(
    ("args", "expected"),
    [  # the known answers that come with the Random123 library
        ((0, 0, 0, 0), (0x6B200159, 0x99BA4EFE)),
        ((0xFFFFFFFF,) * 4, (0x1CB996FC, 0xBB002BE7)),
        ((0x13198A2E, 0x03707344, 0x243F6A88, 0x85A308D3), (0xC4923A9C, 0x483DF7A0)),
    ],
)
def test_threefry_gives_the_known_answers(args: Any, expected: Any) -> None:
    assert reference(*args) == expected
    got = ft.primitives.random.threefry2x32(*(np.asarray(a, np.uint32) for a in args))
    assert tuple(map(int, got)) == expected


def test_split_is_the_hash_of_the_counter() -> None:
    key = random.key(7 << 32 | 5)
    assert words(key) == [7, 5]
    assert [tuple(w) for w in words(random.split(key, 4))] == [
        reference(7, 5, 0, i) for i in range(4)
    ]
    assert words(random.fold_in(key, 3)) == words(random.split(key, 4)[3])


@pytest.mark.parametrize(
    ("seed", "expected"),
    [
        (0, [0, 0]),
        (2**32 - 1, [0, 2**32 - 1]),
        (2**40 + 3, [256, 3]),
        (2**64 - 1, [2**32 - 1, 2**32 - 1]),
        (-1, [2**32 - 1, 2**32 - 1]),
        (np.int32(-1), [0, 2**32 - 1]),
        (np.int64(2**40 + 3), [256, 3]),
        (np.uint8(9), [0, 9]),
    ],
)
def test_seeds_of_any_width_count_in_full(seed: Any, expected: list[int]) -> None:
    assert words(random.key(seed)) == expected
    assert random.PRNGKey(seed).tolist() == expected


def test_shapes_indices_and_iteration() -> None:
    keys = random.split(random.key(1), (2, 3))
    assert (keys.shape, keys.ndim, keys.size, len(keys)) == ((2, 3), 2, 6, 2)
    assert keys[1, 2].shape == () and keys[..., 0].shape == (2,)
    assert keys[:, None].shape == (2, 1, 3)
    assert [k.shape for k in keys] == [(3,), (3,)]
    first, second = random.split(random.key(1))
    assert not bool(first == second) and bool(first != second) and bool(first == first)
    assert keys.flatten().shape == (6,) and keys.reshape(3, 2).shape == (3, 2)
    assert words(keys.flatten()[4]) == words(keys[1, 1])
    assert repr(random.key(3)) == "Array((), dtype=key<fry>) overlaying:\n[0 3]"
    assert repr(keys.dtype) == "dtype(key<fry>)" and keys.dtype.name == "key<fry>"


def test_plain_arrays_are_keys_too_and_give_plain_arrays() -> None:
    plain = random.PRNGKey(3)
    assert isinstance(random.split(plain), ft.Array)
    assert random.split(plain).tolist() == words(random.split(random.key(3)))
    assert random.fold_in(plain, 1).tolist() == words(random.fold_in(random.key(3), 1))
    assert random.uniform(plain) == random.uniform(random.key(3))
    assert bool(random.wrap_key_data(plain) == random.key(3))
    assert random.key_impl(plain) == "threefry2x32"
    assert bool(random.clone(random.key(3)) == random.key(3))


def test_keys_are_leaves() -> None:
    keys = random.split(random.key(0), 3)
    (leaf,) = ft.tree.leaves(keys)
    assert leaf is keys and isinstance(keys, ft.Array)
    assert [ft.tree_util.keystr(p) for p, _ in ft.tree.leaves_with_path([keys])] == ["[0]"]
    assert ft.tree.map(lambda x: x.shape, {"k": keys}) == {"k": (3,)}


def test_keys_under_transformations() -> None:
    key = random.key(5)
    keys = random.split(key, 4)
    expected = np.stack([np.asarray(random.normal(k, (3,))) for k in keys])

    def draw(k: Any) -> Any:
        return random.normal(k, (3,))

    np.testing.assert_array_equal(np.asarray(ft.vmap(draw)(keys)), expected)
    np.testing.assert_array_equal(np.asarray(ft.jit(ft.vmap(draw))(keys)), expected)
    np.testing.assert_array_equal(np.asarray(ft.vmap(ft.jit(draw))(keys)), expected)
    np.testing.assert_array_equal(np.asarray(ft.lax.map(draw, keys)), expected)

    def step(carry: Any, x: Any) -> Any:
        carry, use = random.split(carry)
        return carry, random.normal(use) + x

    end, drawn = ft.lax.scan(step, key, ft.numpy.zeros(3))
    loop = key
    for i in range(3):
        loop, use = random.split(loop)
        assert float(drawn[i]) == float(random.normal(use))
    assert bool(end == loop)
    grid = ft.vmap(lambda k: random.split(k, (2, 2)))(keys)
    assert grid.shape == (4, 2, 2)
    assert words(grid[3, 1, 0]) == words(random.split(keys[3], (2, 2))[1, 0])
    folded = ft.vmap(random.fold_in, (None, 0))(key, ft.numpy.arange(4))
    assert words(folded) == words(random.split(key, 4))
    seeded = ft.vmap(random.key)(ft.numpy.arange(3))
    assert words(seeded) == [[0, 0], [0, 1], [0, 2]]


def test_misuse_is_named() -> None:
    keys = random.split(random.key(0), 3)
    with pytest.raises(KeyTypeError, match=r"normal takes one key and got keys of shape \(3,\)"):
        random.normal(keys)
    with pytest.raises(KeyTypeError, match=r"ft\.vmap\(ft\.random\.normal\)\(keys\)"):
        random.normal(keys)
    with pytest.raises(TypeError, match=r"uniform takes a key and got int"):
        random.uniform(0)
    with pytest.raises(TypeError, match=r"takes a key and got float32 of shape \(2,\)"):
        random.uniform(np.zeros(2, np.float32))
    with pytest.raises(IndexError, match="too many indices"):
        random.key(0)[0]
    with pytest.raises(TypeError, match=r"len\(\) of an array of shape \(\)"):
        len(random.key(0))
    with pytest.raises(KeyTypeError, match="integer seed and got a key"):
        random.key(random.key(0))
    with pytest.raises(KeyTypeError, match=r"a seed is one integer, got float32 of shape \(\)"):
        random.key(1.0)
    with pytest.raises(KeyTypeError, match=r"ft\.vmap\(ft\.random\.key\)\(seeds\)"):
        random.key(np.arange(3))
    with pytest.raises(IntegerOverflowError, match="more than 64 bits"):
        random.key(2**64)
    with pytest.raises(OverflowError, match="uint32"):
        random.fold_in(random.key(0), -1)
    with pytest.raises(ArgumentError, match="no generator 'mt'"):
        random.key(0, impl="mt")
    with pytest.raises(KeyTypeError, match="do not convert to NumPy"):
        np.asarray(random.key(0))
