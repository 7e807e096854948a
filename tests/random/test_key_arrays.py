"""Keys are arrays: leaves, indexed, joined and selected like others, under every transform."""

from __future__ import annotations

import copy
import pickle
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import functrans as ft
from functrans import export, lax, random
from functrans import numpy as jnp
from functrans.core.errors import DTypeError, FunctransError, KeyTypeError, PromotionError

Function = Callable[..., Any]
KEYS = random.split(random.key(3), 4)
WORDS = np.asarray(random.key_data(KEYS))
EACH_GENERATOR = pytest.mark.usefixtures("each_generator")
BACKENDS = ("c", "triton", "reference")


def words(keys: Any) -> np.ndarray:
    return np.asarray(random.key_data(keys))


@pytest.fixture(params=["threefry2x32", "philox"])
def each_generator(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
                   ) -> Iterator[None]:
    """Keys are of one generator, then of the other."""
    module = sys.modules[__name__]
    with ft.config.default_prng_impl(request.param):
        monkeypatch.setattr(module, "KEYS", random.split(random.key(3), 4))
        monkeypatch.setattr(module, "WORDS", words(module.KEYS))
        yield


# What moves keys, as functions of four keys; NumPy does the same to their words, two in one.
MOVES: dict[str, Function] = {
    "stack": lambda n, k: n.stack([k[0], k[1]]),
    "concatenate": lambda n, k: n.concatenate([k, k[1:]]),
    "where": lambda n, k: n.where(n.asarray([True, False, True, False]), k, k[0]),
    "newaxis": lambda n, k: k[None, :, None],
    "reverse": lambda n, k: k[::-1],
    "integers": lambda n, k: k[n.asarray([2, 0, 0])],
    "mask": lambda n, k: k[np.array([True, False, False, True])],
    "reshape": lambda n, k: k.reshape(2, 2),
    "transpose": lambda n, k: k.reshape(2, 2).T,
    "broadcast_to": lambda n, k: n.broadcast_to(k, (3, 4)),
    "take": lambda n, k: n.take(k, n.asarray([3, 1])),
    "take_along_axis": lambda n, k: n.take_along_axis(k, n.asarray([3, 1]), 0),
    "squeeze": lambda n, k: n.squeeze(k[None]),
    "expand_dims": lambda n, k: n.expand_dims(k, (0, 2)),
    "ravel": lambda n, k: n.ravel(k.reshape(2, 2)),
    "tile": lambda n, k: n.tile(k, 2),
    "repeat": lambda n, k: n.repeat(k, 2),
    "roll": lambda n, k: n.roll(k, 1),
    "flip": lambda n, k: n.flip(k),
    "rot90": lambda n, k: n.rot90(k.reshape(2, 2)),
    "split": lambda n, k: n.concatenate(n.split(k, 2)[::-1]),
    "append": lambda n, k: n.append(k, k[0]),
    "delete": lambda n, k: n.delete(k, 1),
    "insert": lambda n, k: n.insert(k, 1, k[3]),
    "swapaxes": lambda n, k: n.swapaxes(k.reshape(2, 2), 0, 1),
    "select": lambda n, k: n.select([n.asarray([True, False, False, False])], [k], k[::-1]),
    "meshgrid": lambda n, k: n.meshgrid(k, k)[0],
    "equal": lambda n, k: k == k[1],
    "not_equal": lambda n, k: k != k[1],
}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", MOVES)
def test_what_moves_arrays_moves_keys(name: str) -> None:
    move = MOVES[name]
    expected = move(np, WORDS.view(np.uint64)[:, 0])
    for f in (move, lambda n, k: ft.jit(lambda x: move(n, x))(k)):
        got = f(jnp, KEYS)
        if expected.dtype == bool:
            assert got.tolist() == expected.tolist()
        else:
            assert got.dtype == KEYS.dtype and got.shape == expected.shape
            np.testing.assert_array_equal(words(got).view(np.uint64)[..., 0], expected)


@EACH_GENERATOR
def test_updates() -> None:
    new = random.key(9)
    for at in (1, jnp.array([0, 2]), slice(1, 3), np.array([True, False, False, True])):
        want = WORDS.copy()
        want[at] = [0, 9]
        np.testing.assert_array_equal(words(KEYS.at[at].set(new)), want)
        np.testing.assert_array_equal(words(ft.jit(lambda k, at=at: k.at[at].set(new))(KEYS)), want)
    filled = KEYS.at[jnp.array([1, 9])].get(mode="fill")
    assert words(filled).tolist() == [WORDS[1].tolist(), [2**32 - 1] * 2]
    masked = ft.jit(lambda k, m: k.at[m].set(new))(KEYS, jnp.array([True, False, True, False]))
    assert words(masked).tolist() == [[0, 9], WORDS[1].tolist(), [0, 9], WORDS[3].tolist()]


def test_keys_are_arrays_with_a_dtype_of_their_own() -> None:
    key = random.key(1)
    assert isinstance(key, ft.Array) and key.shape == () and key.ndim == 0 and key.size == 1
    assert key.dtype == KEYS.dtype and key.dtype != np.uint64 and str(key.dtype) == "key<fry>"
    assert key.nbytes == key.itemsize == 8 and KEYS.nbytes == 32 and not key.weak_type
    assert ft.dtypes.issubdtype(key.dtype, ft.dtypes.prng_key)
    assert ft.dtypes.issubdtype(key.dtype, ft.dtypes.extended)
    assert not ft.dtypes.issubdtype(key.dtype, np.number)
    assert not jnp.issubdtype(np.uint32, ft.dtypes.prng_key)
    assert jnp.issubdtype(key.dtype, ft.dtypes.prng_key)
    assert [k.shape for k in KEYS] == [()] * 4 and len(KEYS) == 4
    first, second = random.split(key)
    assert words(first).tolist() != words(second).tolist()
    with pytest.raises(KeyTypeError, match="keys do not convert to NumPy arrays"):
        memoryview(KEYS)
    with pytest.raises(KeyTypeError, match="keys do not convert to NumPy arrays"):
        np.from_dlpack(KEYS)
    assert jnp.array([first, second]).shape == (2,) == jnp.stack(random.split(key)).shape
    assert jnp.array_equal(KEYS, KEYS) and (KEYS == KEYS).all()


@EACH_GENERATOR
def test_keys_are_saved_and_copied() -> None:
    for made in (pickle.loads(pickle.dumps(KEYS)), copy.copy(KEYS), copy.deepcopy({"k": KEYS})["k"],
                 ft.device_put(KEYS), ft.device_get({"k": KEYS})["k"], KEYS.copy()):
        assert type(made) is ft.Array and made.dtype == KEYS.dtype
        np.testing.assert_array_equal(words(made), WORDS)
    assert pickle.loads(pickle.dumps(KEYS.dtype)) == KEYS.dtype


@pytest.mark.parametrize("use", [
    lambda k: k + 1, lambda k: k + k, lambda k: -k, lambda k: k * 2.0, lambda k: 1 - k,
    lambda k: k & k, lambda k: ~k, lambda k: k ** 2, lambda k: k < k, lambda k: k >= k,
    abs, bool, int, float, complex, lambda k: k.item(), lambda k: k.tolist(), jnp.sin, jnp.exp,
    jnp.sum, jnp.mean, jnp.max, jnp.sort, jnp.argsort, jnp.argmax, jnp.cumsum, jnp.any, jnp.isnan,
    jnp.isfinite, jnp.abs, jnp.floor, jnp.square, jnp.logical_not, jnp.count_nonzero, jnp.unique,
    lambda k: jnp.dot(k, k), lambda k: jnp.maximum(k, k), lambda k: jnp.where(k, 1, 2),
    lambda k: jnp.clip(k, 0, 1), lambda k: k.astype("float32"), lambda k: k.astype("uint32"),
    lambda k: jnp.arange(3)[k], lambda k: KEYS.at[0].add(k), np.asarray,
    lambda k: jnp.zeros(2).at[0].set(k), lambda k: jnp.concatenate([jnp.zeros(1), k[None]]),
    lambda k: jnp.where(True, k, 0.0), lambda k: jnp.asarray([1, 2]).astype(k.dtype),
    lambda k: jnp.ones(2, k.dtype), lambda k: lax.add(k, k), lambda k: lax.sin(k),
    lambda k: lax.sort(k[None]), lambda k: jnp.linalg.norm(k[None]), jnp.ones_like,
    lambda k: lax.convert_element_type(k, "int32"), lambda k: jnp.promote_types(k.dtype, "int32"),
    lambda k: ft.grad(lambda x: 1.0)(k), lambda k: k == 1, lambda k: random.key(k)])
def test_keys_are_no_numbers(use: Function) -> None:
    for call in (use, ft.jit(use)):
        with pytest.raises((KeyTypeError, DTypeError, PromotionError, FunctransError)) as error:
            call(KEYS[0])
        assert isinstance(error.value, TypeError), error.value
        assert "defect" not in str(error.value)


# ------------------------------------------------------------------------------- transformations


def draw(key: Any) -> Any:
    return random.normal(key, (3,))


def expected_draws(keys: Any) -> np.ndarray:
    return np.stack([np.asarray(draw(k)) for k in keys])


def loop(key: Any) -> Any:
    return lax.scan(lambda k, _: (random.split(k)[0], draw(k)), key, None, length=3)


PROGRAMS: dict[str, Function] = {
    "draw": draw,
    "jit": ft.jit(draw),
    "checkpoint": ft.checkpoint(draw),
    "split": lambda k: jnp.concatenate([draw(x) for x in random.split(k)]),
    "fold": lambda k: draw(random.fold_in(k, 7)),
    "carry": lambda k: loop(k)[1],
    "last": lambda k: draw(loop(k)[0]),
    "inputs": lambda k: lax.scan(lambda c, x: (c, draw(x)), 0.0, random.split(k, 2))[1],
    "outputs": lambda k: ft.vmap(draw)(lax.scan(lambda c, _: tuple(random.split(c)), k,
                                               None, length=2)[1]),
    "cond": lambda k: draw(lax.cond(draw(k)[0] > 0, lambda x: random.split(x)[0], lambda x: x, k)),
    "switch": lambda k: lax.switch(1, [draw, lambda x: draw(random.split(x)[1])], k),
    "while": lambda k: draw(lax.while_loop(lambda s: draw(s)[0] < 0.5,
                                           lambda s: random.split(s)[0], k)),
    "fori": lambda k: draw(lax.fori_loop(0, 3, lambda i, s: random.fold_in(s, i), k)),
    "select": lambda k: draw(jnp.where(draw(k)[0] > 0, k, random.split(k)[1])),
    "data": lambda k: draw(random.wrap_key_data(random.key_data(k) + np.uint32(1))),
    "map": lambda k: lax.map(draw, random.split(k, 3)),
    "closure": lambda k: ft.vmap(lambda x: draw(k) * x)(jnp.arange(2.0)),
    "dynamic": lambda k: draw(random.split(k, 5)[lax.convert_element_type(
        random.bits(k) % np.uint32(5), "int32")]),
    "update": lambda k: ft.vmap(draw)(random.split(k, 3).at[random.randint(k, (), 0, 3)].set(k)),
}


@pytest.mark.one_in(9)
@EACH_GENERATOR
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_with_keys(name: str) -> None:
    program = PROGRAMS[name]
    want = np.stack([np.asarray(program(k)) for k in KEYS])
    for f in (ft.vmap(program), ft.jit(ft.vmap(program)), ft.vmap(ft.jit(program)),
              lambda ks: lax.map(program, ks), ft.jit(lambda ks: lax.map(program, ks)),
              lambda ks: jnp.stack([ft.jit(program)(k) for k in ks]),
              ft.vmap(ft.checkpoint(program))):
        np.testing.assert_allclose(np.asarray(f(KEYS)), want, rtol=2e-6)


@EACH_GENERATOR
@pytest.mark.parametrize("backend", BACKENDS)
def test_backends_agree(backend: str) -> None:
    def program(keys: Any, index: Any) -> Any:
        moved = jnp.where(index > 1, keys[index], jnp.roll(keys, 1)[::-1])
        pairs = jnp.stack([moved, keys.at[index[0]].set(keys[3])], 1)
        return pairs, random.key_data(pairs.reshape(2, 4)), ft.vmap(random.bits)(keys)

    index = jnp.array([2, 0, 3, 1])
    want = program(KEYS, index)
    with ft.config.use_backend(backend):
        got = ft.jit(program)(KEYS, index)
    for g, w in zip(got, want, strict=True):
        assert g.dtype == w.dtype
        np.testing.assert_array_equal(*(words(x) if x.dtype == KEYS.dtype else np.asarray(x)
                                        for x in (g, w)))


def test_types_and_programs_as_text() -> None:
    key = random.key(0)
    spec = ft.eval_shape(random.split, key)
    assert spec.shape == (2,) and spec.dtype == key.dtype
    assert ft.eval_shape(draw, ft.ShapeDtypeStruct((), key.dtype)).shape == (3,)
    printed = str(ft.make_jaxpr(lambda k: random.split(k)[0])(key))
    assert "a:key<fry>[]" in printed and "key<fry>[2]" in printed
    assert "key<fry>" in ft.explain(lambda k: jnp.stack([k, k]), key).__str__()


@EACH_GENERATOR
def test_derivatives_beside_keys() -> None:
    def loss(w: Any, key: Any) -> Any:
        return jnp.sum(w * draw(key)), key

    key = random.key(2)
    grads, back = ft.grad(loss, has_aux=True)(2.0, key)
    np.testing.assert_allclose(float(grads), float(draw(key).sum()), rtol=1e-6)
    assert back == key
    both = ft.grad(lambda p: loss(p["w"], p["k"])[0], allow_int=True)({"w": 2.0, "k": key})
    assert both["k"].dtype == ft.float0 and both["k"].shape == ()
    _, push = ft.linearize(lambda w: loss(w, key)[0], 2.0)
    np.testing.assert_allclose(push(1.0), draw(key).sum(), rtol=1e-6)
    _, tangent = ft.jvp(lambda w, k: loss(w, k)[0], (2.0, key), (1.0, np.zeros((), ft.float0)))
    np.testing.assert_allclose(tangent, draw(key).sum(), rtol=1e-6)

    def step(carry: Any, _: Any) -> Any:
        w, k = carry
        k, use = random.split(k)
        return (w * random.uniform(use), k), None

    def run(w: Any) -> Any:
        return lax.scan(step, (w, key), None, length=4)[0][0]

    for f in (ft.grad(run), ft.jit(ft.grad(run)), ft.grad(ft.jit(run)),
              ft.grad(ft.checkpoint(run))):
        np.testing.assert_allclose(f(3.0), run(1.0), rtol=1e-5)


@EACH_GENERATOR
def test_rules_of_functions_of_keys() -> None:
    @ft.custom_vjp
    def noisy(x: Any, key: Any) -> Any:
        return x * random.normal(key)

    noisy.defvjp(lambda x, key: (noisy(x, key), key),
                 lambda key, ct: (2.0 * ct * random.normal(key), None))

    @ft.custom_jvp
    def other(x: Any, key: Any) -> Any:
        return x * random.normal(key)

    @other.defjvp
    def rule(primals: Any, tangents: Any) -> Any:
        (x, key), (t, _) = primals, tangents
        return other(x, key), 2.0 * t * random.normal(key)

    want = 2.0 * np.asarray(ft.vmap(random.normal)(KEYS))
    for f in (noisy, other):
        for g in (ft.grad(f), ft.jit(ft.grad(f)), ft.grad(ft.jit(f)), ft.grad(ft.checkpoint(f))):
            np.testing.assert_allclose(ft.vmap(g, (None, 0))(1.5, KEYS), want, rtol=1e-6)
        by_closure = ft.vmap(lambda k, f=f: ft.grad(lambda x: f(x, k))(1.5))(KEYS)
        np.testing.assert_allclose(by_closure, want, rtol=1e-6)


def test_a_rule_that_closes_over_a_mapped_key() -> None:
    def run(key: Any) -> Any:
        @ft.custom_jvp
        def f(x: Any) -> Any:
            return x * random.normal(key)

        f.defjvp(lambda p, t: (f(p[0]), t[0] * random.normal(key)))
        return f(1.0)

    want = np.asarray(ft.vmap(random.normal)(KEYS))
    np.testing.assert_allclose(ft.vmap(run)(KEYS), want, rtol=1e-6)
    np.testing.assert_allclose(ft.jit(ft.vmap(run))(KEYS), want, rtol=1e-6)


@EACH_GENERATOR
def test_donated_and_static_keys() -> None:
    swap = ft.jit(lambda k: k[::-1], donate_argnums=0)
    given = random.wrap_key_data(random.key_data(KEYS) + np.uint32(0))
    np.testing.assert_array_equal(words(swap(given)), WORDS[::-1])
    many = ft.jit(lambda k: random.split(k, 3))
    for seed in range(5):  # the second call is the runtime's own
        np.testing.assert_array_equal(words(many(random.key(seed))),
                                      words(random.split(random.key(seed), 3)))
    assert many(random.key(0)).dtype == KEYS.dtype


@EACH_GENERATOR
def test_keys_in_exported_programs() -> None:
    program = export.export(ft.jit(lambda k, x: (random.split(k), x * random.normal(k))))(
        random.key(0), 2.0)
    back = export.deserialize(program.serialize())
    for seed in (0, 5):
        split, value = back.call(random.key(seed), 2.0)
        assert split.dtype == KEYS.dtype
        np.testing.assert_array_equal(words(split), words(random.split(random.key(seed))))
        np.testing.assert_allclose(value, 2.0 * random.normal(random.key(seed)), rtol=1e-6)


@EACH_GENERATOR
def test_threads_of_symbolic_sizes() -> None:
    count = ft.jit(lambda k: (k[::-1], ft.vmap(random.bits)(k)), dynamic_shapes={0: {0: "N"}})
    for n in (3, 5):
        keys = random.split(random.key(0), n)
        flipped, bits = count(keys)
        np.testing.assert_array_equal(words(flipped), words(keys)[::-1])
        np.testing.assert_array_equal(bits, ft.vmap(random.bits)(keys))
