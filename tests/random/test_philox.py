"""Keys of philox: known answers, which word an element is, streams apart, and every backend."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import functrans as ft
from functrans import random
from functrans.core.errors import ArgumentError, PromotionError
from functrans.primitives.random import philox4x32
from functrans.random import generators

KEY = random.key(7 << 32 | 5, impl="philox")
DRAW, CHILD = 0, 1  # the last words of counters


def reference(k0: int, k1: int, *x: int) -> tuple[int, ...]:
    """Philox-4x32 with 10 rounds in Python's integers (Salmon et al. 2011)."""
    mask = 0xFFFFFFFF
    a, b, c, d = x
    for i in range(10):
        first, second = 0xD2511F53 * a, 0xCD9E8D57 * c
        a, b = second >> 32 ^ b ^ (k0 + i * 0x9E3779B9 & mask), second & mask
        c, d = first >> 32 ^ d ^ (k1 + i * 0xBB67AE85 & mask), first & mask
    return a, b, c, d


def words(keys: Any) -> list[Any]:
    return random.key_data(keys).tolist()


@pytest.mark.parametrize(
    ("args", "expected"),
    [  # the known answers that come with the Random123 library
        ((0,) * 6, (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
        ((0xFFFFFFFF,) * 6, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
        ((0xA4093822, 0x299F31D0, 0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
         (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1)),
    ],
)
@pytest.mark.parametrize("backend", ["eager", "c", "triton", "reference"])
def test_philox_gives_the_known_answers(args: Any, expected: Any, backend: str) -> None:
    assert reference(*args) == expected
    operands = [np.full(5, a, np.uint32) for a in args]
    if backend == "eager":
        got = philox4x32(*operands)
    else:
        with ft.config.use_backend(backend):
            got = ft.jit(philox4x32)(*operands)
    np.testing.assert_array_equal(np.stack(got, 1), [expected] * 5)


def test_elements_are_words_of_the_blocks_in_order() -> None:
    blocks = np.array([reference(7, 5, i, 0, 0, DRAW) for i in range(3)], np.uint32)
    np.testing.assert_array_equal(random.bits(KEY, (2, 5), "uint32"),
                                  blocks.ravel()[:10].reshape(2, 5))
    np.testing.assert_array_equal(random.bits(KEY, (7,), "uint8"), blocks.ravel()[:7] & 0xFF)
    pairs = blocks.reshape(-1, 2).astype(np.uint64)
    np.testing.assert_array_equal(random.bits(KEY, (5,), "uint64"),
                                  (pairs[:, 0] << np.uint64(32) | pairs[:, 1])[:5])
    assert int(random.bits(KEY, (), "uint32")) == blocks[0, 0]


def test_keys_are_words_of_other_counters() -> None:
    children = [list(reference(7, 5, i, 0, 0, CHILD)[:2]) for i in range(4)]
    assert words(random.split(KEY, 4)) == children
    assert words(random.fold_in(KEY, 3)) == children[3]
    assert words(random.fold_in(KEY, 2**32 - 1)) == \
        list(reference(7, 5, 2**32 - 1, 0, 0, CHILD)[:2])
    assert random.split(KEY).dtype == KEY.dtype == random.fold_in(KEY, 1).dtype


@pytest.mark.parametrize("width", [32, 64])
def test_draws_of_more_than_2_to_the_32_numbers(width: int, monkeypatch: Any) -> None:
    """Their counters have a second word; only the numbers around there are drawn."""
    index = np.arange(2**34 - 6, 2**34 + 6, dtype=np.uint64)
    both = (index >> np.uint64(32)).astype(np.uint32), index.astype(np.uint32)
    monkeypatch.setattr(generators, "counters", lambda shape: both)
    per = 128 // width
    want = []
    for i in index.tolist():
        block = reference(7, 5, i // per & 0xFFFFFFFF, i // per >> 32, 0, DRAW)
        at = i % per
        want.append(block[at] if width == 32 else block[2 * at] << 32 | block[2 * at + 1])
    got = ft.jit(lambda k: random.bits(k, index.shape, f"uint{width}"))(KEY)
    assert got.tolist() == want


@pytest.mark.one_in(2)
@pytest.mark.parametrize("shape", [(), (3,), (5, 3), (0,), (8, 16), (1001,)])
def test_the_same_bits_however_they_are_computed(shape: tuple[int, ...]) -> None:
    def draw(key: Any) -> Any:
        return (*(random.bits(key, shape, f"uint{width}") for width in (8, 32, 64)),
                random.uniform(key, shape), random.fold_in(key, 1))

    want = draw(KEY)
    mapped = ft.vmap(draw)(random.key(0, impl="philox")[None])
    runs = [ft.jit(draw)(KEY), [x[1] for x in ft.vmap(draw)(ft.numpy.stack(
        [random.key(0, impl="philox"), KEY]))]]
    with ft.config.use_backend("triton"):
        runs += [ft.jit(draw)(KEY), [x[0] for x in ft.jit(ft.vmap(draw))(KEY[None])]]
    for run in runs:
        for got, expected in zip(run[:-1], want[:-1], strict=True):
            assert got.dtype == expected.dtype and got.shape == shape
            np.testing.assert_array_equal(got, expected)
        assert bool(run[-1] == want[-1])
    for got, expected in zip(mapped[:-1], draw(random.key(0, impl="philox"))[:-1], strict=True):
        np.testing.assert_array_equal(got[0], expected)


def test_words_are_even_and_bits_independent() -> None:
    """Bytes are uniform by chi-square; neighbours, columns of bits and seeds do not correlate."""
    drawn = np.asarray(random.bits(KEY, (1 << 16,), "uint32"))
    counts = np.bincount(drawn.view(np.uint8), minlength=256)
    expected = drawn.nbytes / 256
    assert abs(((counts - expected) ** 2 / expected).sum() - 255) < 5 * (2 * 255) ** 0.5
    bits = np.unpackbits(drawn.view(np.uint8)).reshape(-1, 32).astype(np.float64) * 2 - 1
    bound = 5.5 / len(bits) ** 0.5
    between = bits.T @ bits / len(bits) - np.eye(32)
    assert abs(between).max() < bound
    for lag in (1, 2, 3, 4, 5):
        assert abs((bits[lag:] * bits[:-lag]).mean(0)).max() < bound
    near = ft.vmap(lambda i: random.bits(random.key(i, impl="philox"), (64,), "uint32"))(
        ft.numpy.arange(1024))
    columns = np.unpackbits(np.asarray(near).view(np.uint8)).astype(np.float64).reshape(1024, -1)
    assert abs(columns.mean(0) - 0.5).max() < 5.5 * 0.5 / 1024**0.5
    split = np.asarray(random.key_data(random.split(KEY, 1 << 14)))
    assert len(np.unique(split.view(np.uint64))) == 1 << 14


def test_the_type_of_a_key_says_its_generator() -> None:
    fry = random.key(0)
    assert (random.key_impl(KEY), random.key_impl(fry)) == ("philox", "threefry2x32")
    assert KEY.dtype.name == "key<philox>" and repr(KEY.dtype) == "dtype(key<philox>)"
    assert KEY.dtype != fry.dtype and ft.dtypes.issubdtype(KEY.dtype, ft.dtypes.prng_key)
    assert repr(KEY) == "Array((), dtype=key<philox>) overlaying:\n[7 5]"
    assert "key<philox>[2]" in str(ft.make_jaxpr(random.split)(KEY))
    wrapped = random.wrap_key_data(random.key_data(KEY), impl="philox")
    assert wrapped.dtype == KEY.dtype and bool(wrapped == KEY)
    assert bool(random.clone(KEY) == KEY)
    draw = ft.jit(random.bits)  # one function, a program for each type
    assert int(draw(KEY)) != int(draw(random.wrap_key_data(random.key_data(KEY))))
    assert int(draw(KEY)) == int(random.bits(KEY))


def test_the_generator_of_the_scope() -> None:
    plain = random.PRNGKey(7 << 32 | 5)
    with ft.config.default_prng_impl("philox"):
        assert random.key(7 << 32 | 5).dtype == KEY.dtype == random.wrap_key_data(plain).dtype
        assert random.key_impl(plain) == "philox"
        assert int(random.bits(plain)) == int(random.bits(KEY)) == int(ft.jit(random.bits)(plain))
        assert random.key_impl(random.key(0, impl="threefry2x32")) == "threefry2x32"
    assert random.key_impl(plain) == "threefry2x32" == random.key_impl(random.key(0))
    assert int(ft.jit(random.bits)(plain)) == int(random.bits(random.key(7 << 32 | 5)))
    with pytest.raises(ValueError, match="default_prng_impl is 'threefry2x32' or 'philox', not 'r"):
        ft.config.default_prng_impl("ranlux")
    for make in (random.key, random.PRNGKey, random.wrap_key_data):
        with pytest.raises(ArgumentError, match="'ranlux'; there are 'threefry2x32', 'philox'"):
            make(plain, impl="ranlux")


@pytest.mark.parametrize("mix", [
    lambda a, b: ft.numpy.stack([a, b]), lambda a, b: ft.numpy.where(True, a, b),
    lambda a, b: ft.numpy.concatenate([a[None], b[None]]), lambda a, b: a == b,
    lambda a, b: a[None].at[0].set(b), lambda a, b: ft.numpy.asarray([a, b]),
    lambda a, b: ft.lax.cond(True, lambda a, b: a, lambda a, b: b, a, b)])
def test_keys_of_two_generators_do_not_mix(mix: Any) -> None:
    for call in (mix, ft.jit(mix)):
        with pytest.raises(PromotionError, match="keys of different generators have no common dt"):
            call(KEY, random.key(0))
