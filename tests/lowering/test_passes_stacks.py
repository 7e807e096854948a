"""Gradients per sample leave loops as factors: no array of the size of a weight of each sample is
carried, stacked or made in a loop, and the values stay."""

import math

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans import lax
from functrans.core.avals import ShapedArray
from functrans.core.check import check_jaxpr
from functrans.core.dims import Dim
from functrans.core.evaluate import interpret
from functrans.core.jaxpr import subjaxprs
from functrans.core.staging import stage
from functrans.lowering.passes.pipeline import simplify
from tests.lowering.test_passes import assert_same_values, program_of, simplified

RNG = np.random.default_rng(1)
SAMPLES, STEPS, LAYERS, SIZE = 6, 9, 3, 20


def normal(*shape):
    return RNG.normal(size=shape) * 0.4


def outer(x, y):
    return x[..., :, None] * y[..., None, :]


def last(step, h, *xs, **options):
    return lax.scan(lambda h, x: (step(h, *x), None), h, xs, **options)[0]


# ------------------------------------------------------------------------------- networks


def plain(p, xs):
    step = lambda h, x: jnp.tanh(p["w"] @ h + p["u"] @ x + p["b"])
    return (last(step, 0 * p["b"], xs) ** 2).sum()


def lstm(p, xs):
    def step(h, x):
        h, c = h
        i, f, g, o = jnp.split(p["w"] @ h + p["u"] @ x + p["b"], 4)
        c = ft.nn.sigmoid(f) * c + ft.nn.sigmoid(i) * jnp.tanh(g)
        return (ft.nn.sigmoid(o) * jnp.tanh(c), c), c

    zero = 0 * p["b"][:SIZE]
    return (lax.scan(step, (zero, zero), xs)[1] ** 2).sum()


def gru(p, xs):
    def step(h, x):
        z, r = (ft.nn.sigmoid(p["w"][i] @ h + p["u"][i] @ x) for i in (0, 1))
        return z * h + (1 - z) * jnp.tanh(p["w"][2] @ (r * h) + p["u"][2] @ x)

    p = {k: [p[k + name] for name in "zrn"] for k in "wu"}
    return (last(step, 0 * xs[0], xs, reverse=True) ** 2).sum()


def embedded(p, ids):
    return (last(lambda h, i: jnp.tanh(p["w"] @ h + p["e"][i]), 0 * p["e"][0], ids) ** 2).sum()


def tied(p, ids):
    def step(h, i):
        h = jnp.tanh(p["w"] @ h + p["e"][i])
        return h, p["e"] @ h

    logits = lax.scan(step, 0 * p["e"][0], ids)[1]
    return (logits - logits[:, :1] ** 2).sum()


def twice(p, x):
    def step(i, h):
        return jnp.tanh(p["w"] @ jnp.tanh(p["w"] @ h + p["u"] @ x))

    return (lax.fori_loop(0, STEPS, step, 0 * x) ** 2).sum()


def layers(p, x):
    return (last(lambda h, w: jnp.tanh(w @ h), x, p["w"]) ** 2).sum()


def normed_layers(p, x):
    def step(h, q):
        n = h - h.mean(-1, keepdims=True)
        n = n / jnp.sqrt((n * n).mean(-1, keepdims=True) + 1e-3) * q["g"]
        return h + jnp.tanh(n @ q["w"] + q["b"]) @ q["v"], None

    return (lax.scan(step, x, p)[0] ** 2).sum()


def time_in_layers(p, xs):
    def layer(xs, q):
        def step(h, x):
            h = jnp.tanh(q["w"] @ h + x)
            return h, h

        return lax.scan(step, 0 * xs[0], xs)[1], None

    return (lax.scan(layer, xs, p)[0] ** 2).sum()


def layers_in_time(p, xs):
    def step(hs, x):
        def layer(x, wh):
            h = jnp.tanh(wh[0] @ wh[1] + x)
            return h, h

        return lax.scan(layer, x, (p["w"], hs))[1]

    return (last(step, 0 * p["w"][:, 0], xs) ** 2).sum()


def convolved(p, x):
    return (lax.fori_loop(0, STEPS, lambda i, h: jnp.tanh(lax.conv_general_dilated(
        h[None], p["w"], (1, 1), "SAME")[0]), x) ** 2).sum()


W, U, B, E = normal(SIZE, SIZE), normal(SIZE, SIZE), normal(SIZE), normal(30, SIZE)
WS = normal(LAYERS, SIZE, SIZE)
SERIES = normal(SAMPLES, STEPS, SIZE)
IDS = RNG.integers(0, 30, (SAMPLES, STEPS)).astype(np.int32)
# loss, parameters, one input of each sample, elements of the smallest weight of a sample and layer
NETWORKS = {
    "plain": (plain, {"w": W, "u": U, "b": B}, SERIES, SIZE * SIZE),
    "lstm": (lstm, {"w": normal(4 * SIZE, SIZE), "u": normal(4 * SIZE, SIZE),
                    "b": normal(4 * SIZE)}, SERIES, 4 * SIZE * SIZE),
    "gru": (gru, {k: normal(SIZE, SIZE) for k in ("wz", "wr", "wn", "uz", "ur", "un")},
            SERIES, SIZE * SIZE),
    "embedded": (embedded, {"w": W, "e": E}, IDS, SIZE * SIZE),
    "tied": (tied, {"w": W, "e": E}, IDS, SIZE * SIZE),
    "twice": (twice, {"w": W, "u": U}, SERIES[:, 0], SIZE * SIZE),
    "layers": (layers, {"w": WS}, SERIES[:, 0], SIZE * SIZE),
    "normed_layers": (normed_layers, {"w": normal(LAYERS, SIZE, 30), "b": normal(LAYERS, 30),
                                      "v": normal(LAYERS, 30, SIZE), "g": normal(LAYERS, SIZE)},
                      SERIES[:, :3], 30 * SIZE),
    "time_in_layers": (time_in_layers, {"w": WS}, SERIES, SIZE * SIZE),
    "layers_in_time": (layers_in_time, {"w": WS}, SERIES, SIZE * SIZE),
    "convolved": (convolved, {"w": normal(10, 10, 3, 3)}, normal(SAMPLES, 10, 4, 4), 900),
}


def by_sample(loss):
    return ft.vmap(ft.grad(loss), (None, 0))


def by_chunk(loss):
    return ft.vmap(ft.grad(loss), (None, 0), chunk_size=2)


def by_batch(loss):
    return ft.grad(lambda p, xs: ft.vmap(loss, (None, 0))(p, xs).mean())


def cast(tree, dtype):
    return ft.tree.map(lambda x: x if x.dtype.kind == "i" else x.astype(dtype), tree)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("transform", [by_sample, by_chunk, by_batch])
@pytest.mark.parametrize("name", NETWORKS)
def test_gradients(name, transform, dtype):
    loss, p, xs, _ = NETWORKS[name]
    close = {"rtol": 1e-9, "atol": 1e-9} if dtype is np.float64 else {"rtol": 1e-3, "atol": 1e-4}
    simplified(transform(loss), *cast((p, xs), dtype), **close)


def loops_of(jaxpr):
    for eqn in jaxpr.eqns:
        if eqn.primitive.name in ("scan", "while"):
            yield eqn
        for body in subjaxprs(eqn):
            yield from loops_of(body)


def made_in_loops(jaxpr):
    """The elements of what loops carry and stack in each iteration, and make on the way."""
    for eqn in loops_of(jaxpr):
        for body in subjaxprs(eqn):
            for v in (*body.invars, *(v for e in body.eqns for v in e.outvars)):
                yield math.prod(v.aval.shape)


@pytest.mark.parametrize("name", NETWORKS)
def test_loops_make_no_weight_of_each_sample(name):
    loss, p, xs, size = NETWORKS[name]
    program = program_of(by_sample(loss), *cast((p, xs), np.float32))[0]
    assert max(made_in_loops(program)) >= SAMPLES * size
    assert max(made_in_loops(simplify(program))) < SAMPLES * size


@pytest.mark.parametrize("name", ["layers", "normed_layers"])
def test_chunks_make_no_weight_of_each_sample(name):
    loss, p, xs, size = NETWORKS[name]
    after = simplify(program_of(by_chunk(loss), *cast((p, xs), np.float32))[0])
    weights = {v for eqn in loops_of(after) for body in subjaxprs(eqn) for v in body.invars}
    made = [math.prod(v.aval.shape) for eqn in loops_of(after) for body in subjaxprs(eqn)
            for e in body.eqns for v in e.outvars if v not in weights]
    assert max(made) < 2 * size


# ------------------------------------------------------------------------------- forms

X, Y, Z = normal(STEPS, 4, 5), normal(STEPS, 4, 7), normal(STEPS, 4, 5)
PLACES = RNG.integers(0, 11, (STEPS, 4)).astype(np.int32)
KERNEL, IMAGES = normal(STEPS, 4, 6, 1, 3), normal(STEPS, 4, 1, 2, 9)


def step_of(state, x):
    return jnp.sin(state + x)


# what an iteration makes of two of its values, x: [4, 5] and y: [4, 7]
FORMS = {
    "outer": outer,
    "shared": lambda x, y: x.T @ y,
    "transposed": lambda x, y: jnp.transpose(outer(x, y), (2, 0, 1)),
    "reshaped": lambda x, y: outer(x, y).reshape(2, 2, 35),
    "negative": lambda x, y: -outer(x, y),
    "scaled": lambda x, y: outer(x, y) * 0.3,
    "padded": lambda x, y: jnp.pad(outer(x, y), ((0, 0), (1, 2), (0, 3))),
    "two": lambda x, y: outer(x, y) - outer(jnp.cos(x), y),
    "reversed": lambda x, y: outer(x, y)[:, ::-1],
    "joined": lambda x, y: jnp.concatenate([outer(x, y), outer(x, jnp.cos(y))], 2),
    "repeated": lambda x, y: jnp.broadcast_to(x.sum(1), (6, 4)),
    "constant": lambda x, y: outer(x, jnp.arange(1, 9, dtype=x.dtype)),
    "constant_matrix": lambda x, y: x[:, :, None] * jnp.ones((5, 2), x.dtype).cumsum(0),
    "matrix": lambda x, y: x[:, :2] @ jnp.ones((2, 30), x.dtype).cumsum(1),
    "convolution": lambda x, y: ft.vmap(lambda x, y: lax.conv_general_dilated(
        x[None, None], y[:3][None, None], (1,), "SAME"))(x, y),
    "kernel": lambda x, y: lax.conv_general_dilated(x[None], y[None, :, :3], (1,), "VALID"),
    "power": lambda x, y: outer(x, y) ** 2,  # stays
    "elementwise": lambda x, y: jnp.exp(x),  # stays
}


STAY = {"power", "elementwise"}
SMALL = {"repeated", "convolution", "kernel"}  # no products, or not larger than their factors


def stacked(form):
    return lambda h, xs, ys: lax.scan(
        lambda h, xy: (step_of(h, xy[0]), FORMS[form](h, xy[1])), h, (xs, ys))


def carried(form):
    def fun(h, xs, ys):
        like = FORMS[form](h, Y[0].astype(h.dtype))

        def step(carry, xy):
            h, acc, other = carry
            term = FORMS[form](h, xy[1])
            return (step_of(h, xy[0]), acc + term, other - FORMS[form](xy[0], xy[1])), None

        return lax.scan(step, (h, 0 * like, like), (xs, ys), reverse=True)[0]

    return fun


@pytest.mark.parametrize("length", [2, STEPS])
@pytest.mark.parametrize("make", [stacked, carried])
@pytest.mark.parametrize("form", [form for form in FORMS if form not in SMALL])
def test_products_leave_the_loop(form, make, length):
    args = [x.astype(np.float32) for x in (Z[0], X[:length], Y[:length])]
    size = FORMS[form](Z[0], Y[0]).size
    (loop,) = loops_of(simplify(program_of(make(form), *args)[0]))
    outs = [v.aval.size for v in loop.params["jaxpr"].outvars[1:]]
    assert (max(outs, default=0) >= size) == (form in STAY)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("length", [0, 1, 2, STEPS])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("form", FORMS)
def test_forms(form, dtype, length):
    x, y = X.astype(dtype), Y.astype(dtype)
    close = {"rtol": 1e-9, "atol": 1e-9} if dtype is np.float64 else {"rtol": 1e-4, "atol": 1e-4}
    for fun in (stacked(form), carried(form)):
        simplified(fun, Z[0].astype(dtype), x[:length], y[:length], **close)


@pytest.mark.parametrize("length", [0, 1, 2, STEPS])
@pytest.mark.parametrize("mode", ["clip", "drop"])
def test_scattered_rows(mode, length):
    """Rows at places that repeat; -1 and 11 are out of bounds or count from the end."""
    def row(h, i):
        return jnp.zeros((11, 5), h.dtype).at[i].add(h, mode=mode)

    def window(h, i):
        return lax.dynamic_update_slice(jnp.zeros((11, 9), h.dtype), h[:1], (i[0], i[1]))

    def fun(make, stacks):
        def step(carry, x):
            h, acc = carry
            made = make(h, x[1])
            return (step_of(h, x[0]), acc + made), made if stacks else None

        return lambda h, xs, ids: lax.scan(step, (h, make(h, ids[0])), (xs[:length], ids[:length]))

    ids = PLACES - 1
    for make in (row, window):
        for stacks in (False, True):
            simplified(fun(make, stacks), Z[0], X, ids)
            mapped = ft.vmap(fun(make, stacks), (0, 0, 0))
            simplified(mapped, np.stack([Z[0], Z[1]]), np.stack([X, Z]), np.stack([ids, ids[::-1]]))


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_narrow_sums_round_less_often(dtype):
    def fun(h, xs, ys):
        def step(carry, xy):
            h, acc, flat = carry
            x, y = xy
            return (step_of(h, x), acc + outer(h, y), flat - outer(x, y).reshape(4, 35)), None

        zeros = jnp.zeros((4, 5, 7), h.dtype)
        return lax.scan(step, (h, zeros, zeros.reshape(4, 35)), (xs, ys))[0][1:]

    given = ft.numpy.zeros((), dtype).dtype
    args = [np.concatenate([x] * 8).astype(given) for x in (X, Y)]
    before, consts = program_of(fun, Z[0].astype(given), *args)
    after = simplify(before)
    assert [eqn.params["num_carry"] for eqn in loops_of(after)] == [1]
    exact = program_of(fun, Z[0], *[x.astype(np.float64) for x in args])[0]
    h = interpret(after, [*consts, Z[0].astype(given), *args])
    old = interpret(before, [*consts, Z[0].astype(given), *args])
    want = interpret(exact, [Z[0].astype(given).astype(np.float64),
                             *[x.astype(np.float64) for x in args]])
    for new, loop, true in zip(h, old, want, strict=True):
        assert new.dtype == given
        error, before_error = (np.abs(x.astype(np.float64) - true).max() for x in (new, loop))
        assert error <= before_error


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("form", FORMS)
def test_narrow_forms(form, dtype):
    given = jnp.zeros((), dtype).dtype
    args = [x.astype(given) for x in (Z[0], X, Y)]
    for fun in (stacked(form), carried(form)):
        simplified(fun, *args, rtol=0.06, atol=0.15)


def test_narrow_products_that_are_carried_in_wide():
    def fun(h, xs, ys):
        def step(carry, xy):
            h, acc = carry
            return (step_of(h, xy[0]), acc + outer(h, xy[1]).astype("float32")), None

        return lax.scan(step, (h, jnp.zeros((4, 5, 7))), (xs, ys))[0]

    given = jnp.bfloat16
    after = simplified(fun, Z[0].astype(given), X.astype(given), Y.astype(given), rtol=0.02,
                       atol=0.02)
    (loop,) = loops_of(after)
    assert loop.params["num_carry"] == 1
    (product,) = [e for e in after.eqns if e.primitive.name == "dot_general"]
    assert product.params["preferred_element_type"] == np.float32


def test_sums_of_repeated_values_are_sums_of_these():
    def fun(h, xs):
        return lax.scan(lambda c, x: ((step_of(c[0], x), c[1] + c[0][:, :, None]), None),
                        (h, jnp.zeros((4, 5, 7))), xs)[0][1]

    after = simplified(fun, Z[0].astype(np.float32), X.astype(np.float32))
    assert max(made_in_loops(after)) == 20


def test_what_is_smaller_as_a_product_stays():
    def fun(h, xs, ys):
        return lax.scan(lambda h, xy: (step_of(h, xy[0]), h.T @ xy[1]), h, (xs, ys))[1]

    wide = [normal(STEPS, 50, 2).astype(np.float32) for _ in range(2)]
    after = simplified(fun, wide[0][0], *wide)
    (loop,) = loops_of(after)
    assert "dot_general" in [e.primitive.name for e in loop.params["jaxpr"].eqns]


def test_convolutions_of_what_is_larger_than_the_kernel_stay():
    loss, _, _, _ = NETWORKS["convolved"]
    p = {"w": normal(2, 2, 3, 3).astype(np.float32)}
    images = normal(SAMPLES, 2, 12, 12).astype(np.float32)
    for transform in (by_sample, by_batch):
        *_, backward = loops_of(simplified(transform(loss), p, images, rtol=1e-3, atol=1e-4))
        assert [v.aval.ndim for v in backward.outvars[backward.params["num_carry"]:]] == []


@pytest.mark.parametrize("sizes", [("B", None), (None, "T"), ("B", "T")], ids=str)
@pytest.mark.parametrize("name", ["plain", "embedded", "layers_in_time"])
def test_sizes_that_are_not_known(name, sizes):
    loss, p, xs, size = NETWORKS[name]
    p, xs = cast((p, xs), np.float32)
    leaves, tree = ft.tree.flatten(p)
    shape = tuple(n if s is None else Dim(s) for s, n in zip(sizes, xs.shape[:2], strict=True))
    avals = [ShapedArray(x.shape, x.dtype) for x in leaves]
    closed = stage(lambda x, *ls: ft.tree.leaves(by_sample(loss)(ft.tree.unflatten(tree, ls), x)),
                   [ShapedArray(shape + xs.shape[2:], xs.dtype), *avals])
    before = closed.jaxpr.hoist_consts()
    after = simplify(before)
    check_jaxpr(after)
    assert simplify(after) is after
    for eqn in loops_of(after):
        assert all(math.prod(n for n in v.aval.shape if isinstance(n, int)) < size
                   for v in eqn.outvars[:eqn.params["num_carry"]])
    for b, t in ((1, 1), (2, 0), (SAMPLES, STEPS)):
        x = xs[:b if sizes[0] else SAMPLES, :t if sizes[1] else STEPS]
        assert_same_values(before, after, [*map(np.asarray, closed.consts), x, *leaves],
                           1e-3, 1e-4)
