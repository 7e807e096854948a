"""Transforms composed over symbolic sizes: one program or two, right at all sizes, 0 and 1 too."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans import lax, per_sample

SIZES = (5, 2, 1, 0, 9)
W = np.random.default_rng(1).normal(size=(4, 4)) / 2


def loss(w, x):
    return (jnp.tanh(jnp.tanh(x @ w) @ w) ** 2).sum() + w.sum()


def recurrent(w, xs):
    def step(h, x):
        h = jnp.tanh(h @ w + x)
        return h, h.sum()
    return lax.scan(step, np.zeros(4), xs)


def doubled(w, xs):
    """A loop that stops by a value, over rows of which each needs its own number of turns."""
    return ft.vmap(lambda x: lax.while_loop(lambda c: c[0] < 3 + x[0] % 2, lambda c: (
        c[0] + 1, jnp.tanh(c[1] @ w)), (0, x))[1])(xs)


@ft.custom_vjp
def clipped(x):
    return x * 2


clipped.defvjp(lambda x: (clipped(x), x), lambda x, ct: (jnp.clip(ct, -1, 1) * x.shape[0],))

COMPOSED = {
    "vmap": lambda w, xs: ft.vmap(lambda x: jnp.tanh(x @ w) * x.sum())(xs),
    "vmap_of_axis_1": lambda w, xs: ft.vmap(lambda x: x - x.sum(), 1, 1)(xs),
    "vmap_of_vmap": lambda w, xs: ft.vmap(lambda x: ft.vmap(lambda y: x @ w @ y)(xs))(xs),
    "vmap_in_chunks": lambda w, xs: ft.vmap(lambda x: jnp.tanh(x @ w), chunk_size=2)(
        jnp.concatenate([xs, xs])),
    "vmap_of_scan": lambda w, xs: ft.vmap(lambda x: lax.scan(
        lambda c, e: (c + e, c * e), x.sum(), xs[:, 0]))(xs),
    "vmap_of_while": doubled,
    "vmap_of_cond": lambda w, xs: ft.vmap(lambda x: lax.cond(
        x[0] > 0, lambda a: a @ w, lambda a: a * 2, x))(xs),
    "named_axis": lambda w, xs: ft.vmap(lambda x: x / lax.psum(jnp.exp(x), "i"), axis_name="i")(xs),
    "scan": recurrent,
    "scan_gradient": lambda w, xs: ft.grad(
        lambda w, xs: recurrent(w, xs)[1].sum(), (0, 1))(w, xs),
    "scan_reversed": lambda w, xs: lax.scan(lambda c, x: (c @ w + x, c), np.ones(4), xs,
                                            reverse=True),
    "scan_of_vmap": lambda w, xs: lax.scan(lambda c, _: (ft.vmap(lambda x: jnp.tanh(x @ w))(c),
                                                         c.sum()), xs, None, length=3),
    "running_sum": lambda w, xs: jnp.cumsum(xs @ w, 0),
    "fori_loop": lambda w, xs: lax.fori_loop(0, xs.shape[0], lambda i, c: c @ w + i, np.ones(4)),
    "grad": ft.grad(loss, (0, 1)),
    "jvp_of_grad": lambda w, xs: ft.jvp(lambda w: ft.grad(loss)(w, xs), (w,), (w * 2,)),
    "grad_of_grad": ft.grad(lambda w, xs: (ft.grad(loss)(w, xs) ** 2).sum()),
    "checkpoint": ft.grad(lambda w, xs: ft.checkpoint(loss)(w, xs)),
    "jacobian": lambda w, xs: ft.jacfwd(lambda s: (xs * s).sum(0))(np.ones(4)),
    "custom_vjp": lambda w, xs: ft.grad(lambda x: clipped(x @ w).sum())(xs),
    "gradients": lambda w, xs: per_sample.grads(loss)(w, xs),
    "norms": lambda w, xs: per_sample.norms(loss)(w, xs),
    "clipped_sums": lambda w, xs: ft.grad(lambda w: (
        ft.vmap(loss, (None, 0))(w, xs) * jnp.minimum(1, 1 / per_sample.norms(loss)(w, xs))
    ).sum())(w),
}
LOOPS = [name for name in COMPOSED if "scan" in name or "loop" in name or "while" in name]
REST = [name for name in COMPOSED if name not in LOOPS]
GROUPS = [LOOPS, *[REST[k::3] for k in range(3)]]  # Triton compiles the first for each size


def check(names, sizes):
    """All of them in one program, which serves all sizes."""
    def everything(w, xs):
        return [COMPOSED[name](w, xs) for name in names]

    bound = ft.dim("B", min=0)
    jitted = ft.jit(everything, dynamic_shapes={"xs": {0: bound}})
    for n in sizes:
        xs = np.random.default_rng(n).normal(size=(n, 4))
        for name, actual, expected in zip(names, jitted(W, xs), everything(W, jnp.asarray(xs)),
                                          strict=True):
            for a, e in zip(ft.tree.leaves(actual), ft.tree.leaves(expected), strict=True):
                assert (a.shape, a.dtype) == (e.shape, e.dtype), name
                np.testing.assert_allclose(a, e, rtol=1e-9, atol=1e-9, err_msg=name)
    return ft.explain_retrace(jitted)


@pytest.mark.parametrize("names", GROUPS, ids=lambda names: names[0])
def test_in_c(names):
    table = check(names, SIZES)
    assert len(table) <= 2, table  # a product of mapped values asks whether there is one
    assert not any(c.failure for c in table.compilations), table


@pytest.mark.parametrize("names", GROUPS, ids=lambda names: names[0])
def test_in_kernels_of_triton(names):
    with ft.config.use_backend("triton"):
        table = check(names, (5, 1, 0))
    assert any(c.failure for c in table.compilations) == (names is LOOPS), table
