"""References: what is compiled is pure, and they have what Python would leave in them."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans import lax
from functrans.errors import (
    ArgumentError,
    DonatedArrayError,
    DTypeError,
    IndexingError,
    LeakedTracerError,
    NonArrayError,
    ShapeError,
)
from functrans.test_util import check_grads


def test_reads_and_writes():
    r = ft.new_ref(jnp.arange(4.0))
    r[0] = 5
    r[1:3] += 1.0
    r[-1] = r[0]
    ft.ref.addupdate(r, jnp.array([1, 1]), 2.0)
    r.addupdate(1.0)
    assert r[...].tolist() == [6.0, 7.0, 4.0, 6.0] and r[jnp.array([3, 0])].tolist() == [6.0, 6.0]
    assert ft.ref.swap(r, 0, 1.0).item() == 6.0 and ft.ref.get(r, (0,)).item() == 1.0
    assert (r.shape, r.dtype, r.ndim, r.size, len(r)) == ((4,), "float32", 1, 4, 4)
    assert repr(r) == "Ref([1., 7., 4., 6.], dtype=float32)" and isinstance(r, ft.Ref)
    assert ft.jit(lambda i: r[ft.ds(i, 2)])(1).tolist() == [7.0, 4.0]
    assert ft.freeze(r).tolist() == [1.0, 7.0, 4.0, 6.0]
    with pytest.raises(DonatedArrayError, match="frozen"):
        r[...]


def test_what_does_not_fit():
    r = ft.new_ref(jnp.zeros(3))
    for index, value, error in ((0, 1j, DTypeError), (5, 1.0, IndexingError),
                                (slice(2), jnp.ones(3), ShapeError), (..., jnp.ones(2), ShapeError),
                                (0, jnp.ones((), "float64"), DTypeError)):
        with pytest.raises(error):
            r[index] = value
    for wrong in (lambda: jnp.sin(r), lambda: np.asarray(r), lambda: ft.new_ref(r),
                  lambda: list(r), lambda: bool(r), lambda: ft.jit(lambda: r)(),
                  lambda: lax.fori_loop(0, 2, lambda i, c: c, r)):
        with pytest.raises(NonArrayError):
            wrong()
    assert r[...].tolist() == [0.0, 0.0, 0.0]


def counting(x, count, total):
    """A program that touches two references, in a loop, a branch and a function of its own."""
    count[...] += 1

    @ft.jit
    def add(i):
        total[i] += x

    def body(i, s):
        add(i)
        lax.cond(i > 0, lambda: count.addupdate(10), lambda: None)
        return s + total[i]

    return lax.fori_loop(0, 3, body, jnp.zeros(()))


@pytest.mark.parametrize("around", [lambda f: f, ft.jit, lambda f: ft.jit(ft.jit(f))])
@pytest.mark.parametrize("given", [False, True])
def test_programs_leave_what_python_leaves(around, given):
    count, total = ft.new_ref(0), ft.new_ref(jnp.zeros(3))
    f = around(counting if given else lambda x: counting(x, count, total))
    more = (count, total) if given else ()
    assert [f(x, *more).item() for x in (1.0, 2.0, 2.0)] == [3.0, 9.0, 15.0]
    assert count[...].item() == 63 and total[...].tolist() == [5.0, 5.0, 5.0]
    with ft.disable_jit():
        f(1.0, *more)
    assert count[...].item() == 84 and total[...].tolist() == [6.0, 6.0, 6.0]


def test_loops():
    c = ft.new_ref(0)
    _, seen = lax.scan(lambda k, x: (c.addupdate(x), (k, c[...]))[1], None, jnp.arange(4))
    assert seen.tolist() == [0, 1, 3, 6]
    assert lax.while_loop(lambda i: c[...] < 10, lambda i: (c.addupdate(i), i + 1)[1], 1) == 4
    xs = ft.new_ref(jnp.zeros(3))

    def store(carry, x):
        x[0][...] = carry + x[1]
        return carry + 1, None

    for reverse, expected in ((False, [0.0, 2.0, 4.0]), (True, [2.0, 2.0, 2.0])):
        lax.scan(store, 0.0, (xs, jnp.arange(3.0)), reverse=reverse)
        assert xs[...].tolist() == expected
    with pytest.raises(ArgumentError, match="condition of while_loop writes"):
        lax.while_loop(lambda i: (c.addupdate(1), i < 3)[1], lambda i: i + 1, 0)
    assert lax.switch(1, [lambda: c.addupdate(1), lambda: c.addupdate(5)]) is None
    assert c[...].item() == 17


def smoothed(x):
    """A recurrence with its states in a reference made inside."""
    states = ft.new_ref(jnp.zeros(5, x.dtype))

    def step(i, _):
        states[i] = x[0] * states[i - 1] + jnp.sin(x[1])
        lax.cond(x[1] > 0, lambda: states.addupdate(x[1], i), lambda: None)

    lax.fori_loop(1, 5, step, None)
    return (ft.freeze(states) ** 2).sum()


def test_derivatives_and_lanes_of_references_made_inside():
    xs = jnp.asarray(np.random.default_rng(0).normal(size=(3, 2)))
    check_grads(smoothed, (xs[0],), order=2)
    np.testing.assert_allclose(ft.vmap(ft.grad(smoothed))(xs), [ft.grad(smoothed)(x) for x in xs])
    np.testing.assert_allclose(ft.jit(ft.grad(smoothed))(xs[1]), ft.grad(smoothed)(xs[1]))


def test_transforms_beside_references_from_outside():
    r, count = ft.new_ref(jnp.zeros(3)), ft.new_ref(0)

    def f(x):
        count[...] += 1
        r[0] = lax.stop_gradient(x)
        return x * x

    assert ft.grad(f)(3.0).item() == 6.0 and ft.jit(ft.grad(f))(2.0).item() == 4.0
    assert r[0].item() == 2.0 and count[...].item() == 2

    def write(x):
        r[0] = x
        return x

    for transformed in (ft.grad(write), lambda x: ft.vmap(write)(jnp.full(2, x))):
        with pytest.raises(LeakedTracerError, match="as an argument"):
            transformed(1.0)
    with pytest.raises(ArgumentError, match="from outside"):
        lax.while_loop(lambda x: write(x) < 3.0, lambda x: x, 1.0)
    assert r[0].item() == 2.0
    assert ft.vmap(lambda x: x + r[0])(jnp.arange(2.0)).tolist() == [2.0, 3.0]


@pytest.mark.parametrize("around", [lambda f: f, ft.jit])
def test_mapped_references(around):
    m, same = ft.new_ref(jnp.zeros((2, 3))), ft.new_ref(jnp.ones(2))

    def lane(x, q, s):
        q[0] = x
        q[1] += x * s[0]
        return q[...].sum()

    f = around(ft.vmap(lane, in_axes=(0, 1, None)))
    assert f(jnp.arange(3.0), m, same).tolist() == [0.0, 2.0, 4.0]
    assert f(jnp.arange(3.0), m, same).tolist() == [0.0, 3.0, 6.0]
    assert m[...].tolist() == [[0.0, 1.0, 2.0], [0.0, 2.0, 4.0]]


def test_one_reference_by_two_names():
    r = ft.new_ref(jnp.zeros(2))
    for wrong in (lambda: ft.jit(lambda a, b: a[0] + b[0])(r, r),
                  lambda: ft.jit(lambda a: a[0] + r[0])(r),
                  lambda: ft.vmap(lambda a, b: a[...] + b[...])(r, r)):
        with pytest.raises(ArgumentError, match="reference is"):
            wrong()
