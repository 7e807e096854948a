"""Keys that are used twice are found, those that are made anew or cloned are not."""

import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans import random
from functrans.core.errors import KeyReuseError

SAMPLERS = {
    "normal": lambda k: random.normal(k, (2,)), "split": random.split,
    "choice": lambda k: random.choice(k, 5, (2,), replace=False),
    "choice with p": lambda k: random.choice(k, 2, (2,), p=jnp.array([0.5, 0.5])),
    "gamma": lambda k: random.gamma(k, 2.0), "ball": lambda k: random.ball(k, 2),
    "multinomial": lambda k: random.multinomial(k, 3, jnp.array([0.5, 0.5])),
    "jit": ft.jit(random.bits), "grad": lambda k: ft.grad(lambda x: x * random.normal(k))(1.0),
    "vmap": lambda k: ft.vmap(random.bits)(jnp.stack([k, random.key(9)])),
}


@pytest.mark.parametrize("name", SAMPLERS)
def test_a_second_use_is_found(name):
    with ft.debug_key_reuse(True):
        key = random.key(1)
        SAMPLERS[name](key)  # one sampler uses a key once, whatever it is composed of
        with pytest.raises(KeyReuseError, match=r"used before.*test_key_reuse.py:\d+"):
            random.uniform(key)
    SAMPLERS[name](random.key(1))
    SAMPLERS[name](random.key(1))


def test_the_same_element_is_the_same_key():
    with ft.debug_key_reuse(True):
        keys = random.split(random.key(0), 3)
        random.normal(keys[1])
        random.normal(keys[2])
        with pytest.raises(KeyReuseError, match=r"ft\.random\.normal got a key"):
            random.normal(keys[1])
        with pytest.raises(KeyReuseError):
            ft.vmap(random.normal)(keys)


def test_new_keys_are_new():
    with ft.debug_key_reuse(True):
        for _ in range(2):
            key = random.key(3)  # made anew: a source, as in JAX
            random.fold_in(key, 1), random.fold_in(key, 2)  # does not use the key up
            random.key_data(key)
            random.normal(random.clone(key))
            random.normal(random.clone(key))
        words = random.PRNGKey(0)  # plain words are not checked
        random.normal(words), random.normal(words)
    key = random.key(0)
    with ft.debug_key_reuse(False):
        random.normal(key), random.normal(key)


def test_loops_and_traced_keys():
    def twice(key):
        return random.normal(key) + random.normal(key)

    key = random.key(0)
    with ft.debug_key_reuse(True):
        with pytest.raises(KeyReuseError):
            ft.make_jaxpr(twice)(key)
        with pytest.raises(KeyReuseError):
            ft.lax.fori_loop(0, 3, lambda i, x: x + random.normal(key), 0.0)
        ft.lax.scan(lambda x, k: (x + random.normal(k), None), 0.0, random.split(random.key(5), 3))


def test_rbg_is_a_name_of_philox():
    assert random.key(4, impl="rbg").dtype == random.key_dtype("philox")
    assert int(random.bits(random.key(4, impl="unsafe_rbg"))) == \
        int(random.bits(random.key(4, impl="philox")))
    with ft.config.default_prng_impl("rbg"):
        assert random.key_impl(random.key(4)) == "philox"
        assert random.key_dtype() == random.key_dtype(random.key(0).dtype)
