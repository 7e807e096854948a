"""Which loops are one kernel, of how many programs, and what their kernels keep."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans import lax
from functrans.lowering.passes import separable
from functrans.lowering.triton.machine.device import binaries
from functrans.lowering.triton.steps.spec import DoubleBufferedSteps, Launch
from tests.triton.emulated import check, program_of

RNG = np.random.default_rng(0)


def normal(*shape):
    return RNG.normal(size=shape).astype("f")


def rnn(w, h, xs):
    def step(h, x):
        h = jnp.tanh(x + h @ w)
        return h, h
    return (lax.scan(step, h, xs)[1] ** 2).mean()


def lstm(w, h, xs):
    def step(s, x):
        i, f, g, o = jnp.split(x + s[0] @ w, 4, -1)
        c = ft.nn.sigmoid(f) * s[1] + ft.nn.sigmoid(i) * jnp.tanh(g)
        h = ft.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h
    return (lax.scan(step, (h, h), xs)[1] ** 2).mean()


def power(a, v):
    return lax.fori_loop(0, 9, lambda i, v: (lambda w: w / jnp.sqrt((w * w).sum()))(a @ v), v)


def newton(x):
    return lax.while_loop(lambda c: jnp.abs(c[0] * c[0] - x) > 1e-5,
                          lambda c: ((c[0] + x / c[0]) / 2, c[1] + 1), (x, 0))


def decay(x):
    return lax.fori_loop(0, 9, lambda i, c: c * 0.9 + jnp.sin(c), x)


def collatz(n):
    return lax.while_loop(lambda c: c[0] != 1, lambda c: (
        jnp.where(c[0] % 2 == 0, c[0] // 2, 3 * c[0] + 1), c[1] + 1), (n, 0))[1]


def walk(x):
    return lax.while_loop(lambda c: c.max() < 9, lambda c: c + 1, x)


def loops_of(fun, *args):
    """The programs of the loops that are kernels; `turns` for one that the host drives."""
    return [s.grid[0] if isinstance(s, Launch) else "turns" for s in program_of(fun, *args)[1].steps
            if isinstance(s, DoubleBufferedSteps)
            or (isinstance(s, Launch) and s.kernel in ("loop", "lanes"))]


GOLDEN = [
    ("one for each row", rnn, [(256, 256), (64, 256), (9, 64, 256)], [64]),
    ("eight rows together where there are many", rnn, [(256, 256), (1024, 256), (9, 1024, 256)],
     [128]),
    ("its gradient as well", ft.grad(rnn), [(64, 64), (16, 64), (9, 16, 64)], [16, 16]),
    ("gates", ft.grad(lstm), [(32, 128), (16, 32), (9, 16, 128)], [16, 16]),
    ("weights that are read in every step", lstm, [(512, 2048), (64, 512), (9, 64, 2048)], []),
    ("mixed rows: one program", power, [(64, 64), (64,)], [1]),
    ("more than one multiprocessor reads", power, [(1024, 1024), (1024,)], []),
    ("elements apart, a thread each", decay, [(1 << 16,)], [512]),
    ("few elements apart, a warp at a time", decay, [(100,)], [4]),
    ("a predicate", newton, [()], [1]),
    ("a predicate over many values", walk, [(1 << 20,)], ["turns"]),
]


@pytest.mark.parametrize("what, fun, shapes, expected", GOLDEN, ids=[g[0] for g in GOLDEN])
def test_which_loops_are_kernels(what, fun, shapes, expected):
    assert loops_of(fun, *[np.abs(normal(*s)) for s in shapes]) == expected


def test_the_text_says_what_became_of_a_loop():
    for fun, shape, form in ((newton, (), "while is one kernel of 1 programs"),
                             (walk, (1 << 20,), "while is in turns"),
                             (decay, (1 << 16,), "scan is one kernel of 512 programs")):
        _, program, _ = program_of(fun, np.abs(normal(*shape)))
        (note,) = [n for n in program.notes if form in n]
        assert "test_resident_loops.py" in note


@pytest.mark.one_in(4)
@pytest.mark.parametrize("fun, args", [
    (ft.value_and_grad(rnn, (0, 1, 2)), (normal(24, 24), normal(6, 24), normal(5, 6, 24))),
    (ft.grad(rnn), (normal(80, 80), normal(3, 80), normal(4, 3, 80))),  # in parts, with a rest
    (ft.value_and_grad(lstm, (0, 1, 2)), (normal(8, 32), normal(6, 8), normal(5, 6, 32))),
    (power, (normal(20, 20), normal(20))), (newton, (np.float32(7),)), (decay, (normal(3000),)),
    (collatz, (np.int32(27),)), (ft.vmap(collatz), (np.arange(1, 9, dtype=np.int32),)),
    (lambda x: ft.jvp(decay, (x,), (x,)), (normal(7),)),
    (ft.vmap(ft.grad(rnn), (None, 0, 0)), (normal(8, 8), normal(3, 2, 8), normal(3, 4, 2, 8)))])
def test_loops_that_are_kernels_compute_what_their_steps_do(fun, args):
    program = check(fun, *args, tolerance=2e-3)
    assert any(isinstance(s, Launch) and s.kernel in ("loop", "lanes") for s in program.steps)


def test_recurrent_weights_stay_in_registers_and_shared_memory():
    """An RNN of 256 values and its gradient: of 256 KB one half each, and next to no spills."""
    _, program, _ = program_of(ft.value_and_grad(rnn, (0, 1, 2)), normal(256, 256), normal(64, 256),
                               normal(50, 64, 256))
    found = [b for (_, kernel, *_), b in binaries(program).items() if kernel == "loop"]
    assert len(found) == 2
    for binary in found:
        assert binary.spills <= 96 and 200 < binary.registers <= 255  # rounding takes some
        assert 128 << 10 < binary.shared < 160 << 10


def test_no_barrier_between_phases_that_share_nothing():
    def step(c, x):
        return jnp.tanh(c @ W + x), (c, x * 2)
    W = normal(16, 16)
    _, program, _ = program_of(lambda c, xs: lax.scan(step, c, xs), normal(1, 16), normal(3, 1, 16))
    (text,) = [t for t in program.sources if "def loop" in t]
    body = text[text.index("for t in"):]
    assert body[:body.index("now0 =")].count("tl.debug_barrier()") == 1


ROWS = {  # a body of a carry (rows, 4) and a constant (4, 4): whether its rows may be cut
    "product": (lambda c, w: c @ w, True),
    "product with itself": (lambda c, w: c @ c.T @ c, False),
    "sum along rows": (lambda c, w: c - c.sum(1, keepdims=True), True),
    "sum over rows": (lambda c, w: c - c.mean(0), False),
    "softmax": (lambda c, w: ft.nn.softmax(c), True),
    "turned and back": (lambda c, w: jnp.sin(c.T).T, True),
    "reshaped": (lambda c, w: (c.reshape(-1, 2, 2) * 2).reshape(c.shape), True),
    "rows joined": (lambda c, w: (c.reshape(-1) * 2).reshape(c.shape), False),
    "shifted rows": (lambda c, w: jnp.roll(c, 1, 0), False),
    "shifted columns": (lambda c, w: jnp.roll(c, 1, 1), True),
    "sorted": (lambda c, w: jnp.sort(c, 1), True),
    "running sum over rows": (lambda c, w: jnp.cumsum(c, 0), False),
    "a constant for each row": (lambda c, w: c + jnp.arange(6.0)[:, None].astype("f"), True),
    "a loop inside": (lambda c, w: lax.fori_loop(0, 2, lambda i, d: jnp.sin(d @ w) + c, c), True),
    "a loop inside over rows": (lambda c, w: lax.scan(
        lambda s, x: (s + x, s), w[0], c)[1], False),
    "one column changed": (lambda c, w: c.at[:, 1].add(1), None),
}


@pytest.mark.parametrize("name", ROWS)
def test_rows_that_may_be_cut(name):
    fun, expected = ROWS[name]
    c, w = normal(6, 4), normal(4, 4)
    jaxpr = ft.make_jaxpr(lambda w, c: fun(c, w))(w, c).jaxpr
    if jaxpr.constvars:
        jaxpr = jaxpr.hoist_consts()
    rows = separable.rows_of(jaxpr, len(jaxpr.invars) - 1, 1)
    if expected is not None:
        assert (rows is not None) == expected
    if rows is not None:
        narrowed = rows.narrowed(2)
        assert narrowed is not None and narrowed.invars[-1].aval.shape == (2, 4)
    check(lambda c, w: lax.fori_loop(0, 3, lambda i, c: fun(c, w), c), c, w, tolerance=2e-3)


@pytest.mark.parametrize("shape, fun", [
    ((200,), lambda c: c * 0.5 + jnp.roll(c, 1)),
    ((200,), lambda c: c.at[1:-1].add(0.1 * (c[2:] - 2 * c[1:-1] + c[:-2]))),
    ((200,), lambda c: c * 0.5 + c[::-1]),
    ((10, 20), lambda c: c * 0.3 + jnp.roll(c, (1, 2), (0, 1)) + jnp.roll(c, -1, 1)),
    ((3, 4, 5), lambda c: c + jnp.roll(c, 1, 1) - jnp.roll(c, -1, 2) + jnp.roll(c, -1, 2) * c)])
def test_what_reads_its_neighbours_is_not_kept_in_registers(shape, fun):
    """An address that has a name is that of another element, too."""
    x = normal(*shape)
    check(lambda x: lax.fori_loop(0, 3, lambda i, c: fun(c), x), x)
    check(lambda x: lax.while_loop(lambda s: s[1] < 3, lambda s: (fun(s[0]), s[1] + 1), (x, 0)), x)


def test_what_is_updated_beside_a_loop_begins_with_its_value():
    """The gradient of an embedding adds to zeros, which are written before a loop beside it."""
    weights = np.random.default_rng(0).normal(size=(16, 16)).astype("f") / 4
    table = np.random.default_rng(1).normal(size=(32, 16)).astype("f")
    tokens = np.random.default_rng(2).integers(32, size=(6, 4)).astype("i4")

    def energy(table, tokens):
        def step(h, x):
            h = jnp.tanh(x @ weights + h @ weights)
            return h, h
        return jnp.sum(lax.scan(step, jnp.zeros((4, 16)), table[tokens])[1] ** 2)

    check(ft.grad(energy), table, tokens)
