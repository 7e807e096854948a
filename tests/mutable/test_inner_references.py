"""References that are made inside of what is differentiated, beside JAX."""

import json
from pathlib import Path

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans import lax
from functrans.errors import LeakedTracerError

from .inner_references import KINDS, PLACES, TRANSFORMS, rule, run

OF_JAX = json.loads((Path(__file__).parents[1] / "data" / "inner_references.json").read_text())
SAME = {"scan": "unrolled", "jit of scan": "unrolled", "jit": "plain", "cond": "plain"}


def known(kind, place, transform):
    """What JAX gives, or gives for a program that computes the same.

    Its scans keep one reference for all iterations, which a rule sees that writes what it reads.
    """
    found = OF_JAX[f"{kind}, {place}, {transform}"]
    if found is not None and (kind != "reads and writes" or "scan" not in place):
        return found
    if place in SAME:
        return known(kind, SAME[place], transform)
    assert transform == "jacrev"
    return known(kind, place, "grad")


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.one_in(2)
def test_results_of_jax(kind, place, transform):
    np.testing.assert_allclose(run(ft, kind, place, transform), known(kind, place, transform),
                               rtol=3e-6)


@ft.custom_vjp
def scaled(x, r):
    """x, whose cotangent is multiplied by what is in the reference, which is counted up."""
    return x


def scale(r, ct):
    now = r[...]
    r[...] = now + 1
    return now * ct, None


scaled.defvjp(lambda x, r: (x, r), scale)
AROUND = [lambda f: f, ft.jit, ft.checkpoint, lambda f: lambda x: ft.vmap(f)(x[None])[0],
          lambda f: lambda x: lax.cond(x > 0, f, lambda x: x, x)]


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("start", [2.0, 2])
def test_bodies_inside_of_the_function(around, start):
    """The rules run backwards: 5 of a scan, 1 of a branch, 1 of a jitted function, 1 at first."""
    def f(x):
        r = ft.new_ref(start)
        y = scaled(x, r)
        y = ft.jit(scaled)(y, r)
        y = lax.cond(y > 0, lambda y: scaled(y, r), lambda y: y, y)
        y = lax.scan(lambda y, _: (scaled(y, r), None), y, None, length=5)[0]
        r[...] = r[...] + 1
        return y

    want = np.prod(np.arange(3.0, 11.0))
    x = np.float64(0.5)
    for transform in (ft.grad(around(f)), ft.jit(ft.grad(around(f))), ft.grad(ft.jit(around(f))),
                      lambda x: ft.vmap(ft.grad(around(f)))(x[None])[0]):
        np.testing.assert_allclose(transform(x), want)


def test_lanes_of_a_reference_that_is_written_after_an_unmapped_call():
    def lane(w, x):
        r = ft.new_ref(1.0)
        y = scaled(w, r)
        r[...] = x
        return y * x

    xs = jnp.arange(1.0, 4.0)
    for f in (lane, ft.jit(lane)):
        assert ft.grad(lambda w, f=f: ft.vmap(lambda x: f(w, x))(xs).sum())(2.0).item() == 14.0


def test_lanes_that_have_a_reference_in_common():
    """Rules may read it, and JAX, too, refuses those that write."""
    xs, r = jnp.arange(1.0, 4.0), ft.new_ref(3.0)

    def inside(use):
        return lambda x: use(x, ft.new_ref(3.0))

    for kind in ("reads", "writes"):
        f = rule(ft, kind)

        def closed(x, r, f=f):
            return ft.vmap(lambda x: f(x, r))(x).sum()

        def given(x, r, f=f):
            return ft.vmap(f, (0, None))(x, r).sum()

        for use in (closed, given):
            for g in (lambda x, use=use: use(x, r), inside(use), ft.jit(inside(use))):
                if kind == "reads":
                    assert ft.grad(g)(xs).tolist() == [6.0, 12.0, 18.0]
                else:
                    with pytest.raises(LeakedTracerError, match="written into a reference"):
                        ft.grad(g)(xs)


def test_references_in_lanes_of_references():
    def lane(x, r):
        q = ft.new_ref(2.0 * x)
        return scaled(scaled(x, r), q)

    x, r = jnp.arange(1.0, 4.0), ft.new_ref(jnp.array([5.0, 6.0, 7.0]))
    np.testing.assert_allclose(ft.grad(lambda x: ft.jit(ft.vmap(lane))(x, r).sum())(x),
                               [10.0, 24.0, 42.0])
    np.testing.assert_allclose(r[...], [6.0, 7.0, 8.0])


def test_references_that_are_kept_from_a_function_that_has_ended():
    kept = []

    @ft.jit
    def f(x):
        kept.append(ft.new_ref(x))
        return x

    f(1.0)
    for late in (lambda x: x * kept[0][...], ft.jit(lambda x: x * kept[0][...])):
        with pytest.raises(LeakedTracerError):
            late(1.0)
    assert ft.grad(ft.jit(lambda x: x * ft.freeze(ft.new_ref(x))))(3.0).item() == 6.0
