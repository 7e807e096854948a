"""Loops over lanes as kernels of a thread for each: every lane computes what it computes alone."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans import lax
from functrans.core.compiling import for_compiler
from functrans.lowering.passes.lanes import lane_program
from functrans.lowering.schedule.target import HOPPER
from functrans.lowering.triton.emulator.interpret import InterpretedProgram
from functrans.lowering.triton.loops import thread_regions
from functrans.lowering.triton.loops.threads import coordinates
from functrans.lowering.triton.machine.device import binaries
from functrans.lowering.triton.steps.spec import CopyStep, Launch
from tests.triton.emulated import check, program_of

RNG = np.random.default_rng(0)
LANES = 37  # more than a warp, and no multiple of one


def normal(*shape):
    return RNG.normal(size=shape).astype("f")


def newton(a):
    """Lanes end after different numbers of steps, some before the first."""
    return lax.while_loop(lambda s: (jnp.abs(s[0] * s[0] - a) > 1e-4 * a) & (s[1] < 30),
                          lambda s: ((s[0] + a / s[0]) / 2, s[1] + 1), (jnp.ones_like(a), 0))


def counted(n):
    """n steps."""
    return lax.while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, s[1] * 0.5 + 1.0), (0, 1.0))


def lorenz(start, rho):
    def step(s, _):
        d = jnp.stack([10 * (s[1] - s[0]), s[0] * (rho - s[2]) - s[1], s[0] * s[1] - 8 / 3 * s[2]])
        return s + 0.01 * d, s[0]
    return lax.scan(step, start, None, length=5)


def walked_back(x, xs):
    return lax.scan(lambda c, e: (jnp.sin(c) + e, c * e), x, xs, reverse=True)


def in_each_other(x):
    """A loop with a predicate in one of known length, with a branch."""
    def step(c, k):
        c = lax.cond(c > k, lambda c: lax.while_loop(lambda v: v > 1.0, lambda v: v * 0.7, c),
                     lambda c: c + 0.3, c)
        return c, c * k
    return lax.scan(step, x, jnp.arange(4.0))


def collected_inside(x):
    """What an inner loop collects is read by the outer one, and collected again."""
    def outer(c, k):
        d, ys = lax.scan(lambda d, e: (d * 0.9 + e, d * k), c, jnp.arange(3.0))
        return d + ys[1] + ys.sum(), ys
    return lax.scan(outer, x, jnp.arange(1.0, 3.0))


def table(x, t):
    """Rows of a table that lanes share, at places that they compute."""
    def step(s, _):
        at, total = s
        total = total + t[at, 1]
        return ((at * 3 + 1) % t.shape[0], total), None
    return lax.scan(step, (x, 0.0), None, length=6)[0]


def own_vector(x, at):
    """A vector of the lane, of which one element is updated and one read."""
    def step(i, v):
        return v.at[(at + i) % 4].add(v[(at + 2 * i) % 4] * 0.5)
    return lax.fori_loop(0, 5, step, x)


def elements_at_places(x, rows):
    """Of each row one element at a place that the lane computes, and all of them in a loop."""
    def step(c, row):
        at = (c[1] * 3 + 1) % 5
        total, _ = lax.scan(lambda s, e: (s * 0.5 + e, None), c[0], row)
        return (total + row[at], at), row[2]
    return lax.scan(step, (x, 0), rows)


def matrices(m, x):
    return lax.fori_loop(0, 3, lambda i, v: m @ v * 0.5 + v.sum(), x)


def systems(m, x):
    """A system of three equations in every step."""
    def step(i, v):
        return jnp.linalg.solve(m + 3 * jnp.eye(3), v) + 0.1 * v[::-1]
    return lax.fori_loop(0, 3, step, x)


def random_steps(key):
    def step(s):
        key, x, n = s
        key, own = ft.random.split(key)
        return key, x + ft.random.uniform(own), n + 1
    _, x, n = lax.while_loop(lambda s: s[1] < 2.0, step, (key, 0.0, 0))
    return x, n


def extremes(x):
    """Places are used in arithmetic, in tables and modulo a size, too."""
    def step(v, _):
        k = jnp.argmax(v)
        which = jnp.asarray([2, 0, 1])[(k - 2) % 3]
        return v.at[k].set(v.min() - 1).at[which - 1].add(0.1), (k, v[k], jnp.argmin(v), which)
    return lax.scan(step, x, None, length=4)


def narrow(x):
    return lax.fori_loop(0, 5, lambda i, c: (c * 1.01 + 0.1).astype(c.dtype), x)


def bytes_of(x):
    return lax.fori_loop(0, 9, lambda i, c: c * 3 + 1, x)


def kalman(z):
    """The covariance is the same for all lanes, which compute it each."""
    forward = np.float32([[1, 0.1], [0, 1]])

    def step(state, z):
        m, p = state
        m, p = forward @ m, forward @ p @ forward.T + 0.01 * np.eye(2, dtype="f")
        gain = p[:, 0] / (p[0, 0] + 0.1)
        m = m + gain * (z - m[0])
        return (m, p - jnp.outer(gain, p[0])), m[0]
    return lax.scan(step, (jnp.zeros(2), jnp.eye(2)), z)[1]


def sorted_again(x, y):
    def step(i, s):
        keys, values = lax.sort((jnp.round(s[0]), s[1]), num_keys=1)
        return keys[::-1] * 0.9 + values * 0.1, jnp.sort(values) + 0.1 * keys
    return lax.fori_loop(0, 3, step, (x, y))


def pairs(q):
    """Each body with itself, too: that distance is 0, or no number."""
    def step(_, q):
        apart = q[None] - q[:, None]
        pull = (jnp.sum(apart ** 2, -1) + 0.1) ** -1.5
        return q + 0.1 * jnp.sum(apart * pull[..., None], 1)
    return lax.fori_loop(0, 3, step, q)


def bodies():
    q = normal(LANES, 3, 2)
    q[3, 1, 0], q[7, 0, 1] = np.nan, np.inf
    return q


def drawn(x, u):
    """A place by its share of a running sum, where the weights change."""
    def step(i, v):
        p = jnp.cumsum(v)
        k = jnp.searchsorted(p, u * p[-1])
        return v.at[k].multiply(0.5) + 0.01 * lax.cummax(v, reverse=True)
    return lax.fori_loop(0, 3, step, x)


def hidden(x):
    """What only one side of some choices reads, among it loops in each other."""
    bright = x > 0.5
    steps = newton(jnp.abs(x) * 9)[1]
    colour = jnp.stack([x, walked_back(x, jnp.arange(3.0))[0]])
    return jnp.where(bright, steps, -1), jnp.where(bright, colour * 2, x), \
        jnp.where(bright, 0.0, in_each_other(x * 3)[0]), \
        jnp.where(newton(x * x + 1)[1] > 4, 0.0, jnp.maximum(x, 0.0))


def patches(y, x):
    """Rays of an image, which a warp takes as a patch."""
    return ft.vmap(ft.vmap(lambda a, b: newton(a * b), (None, 0)), (0, None))(y, x)


LOOPS = {
    "lanes to their own ends": (ft.vmap(newton), [np.abs(normal(LANES)) * 40 + 0.1]),
    "no step, one, a thousand": (ft.vmap(counted), [np.int32([0, 1, 2, 300, 0, 7] * 6)]),
    "one lane": (ft.vmap(newton), [np.float32([30.0])]),
    "a lane alone": (newton, [np.float32(30.0)]),
    "two maps": (ft.vmap(ft.vmap(lambda a, b: newton(a * b)[0], (None, 0)), (0, None)),
                 [np.abs(normal(5)) + 1, np.abs(normal(7)) + 1]),
    "patches": (patches, [np.abs(normal(8)) + 1, np.abs(normal(16)) * 9 + 1]),
    "one side of a choice": (ft.vmap(hidden), [normal(LANES)]),
    "vectors of a lane": (ft.vmap(lorenz), [normal(LANES, 3), np.abs(normal(LANES)) * 20]),
    "its gradient": (ft.vmap(ft.grad(lambda s, r: lorenz(s, r)[0].sum(), (0, 1))),
                     [normal(LANES, 3), np.abs(normal(LANES)) * 20]),
    "its derivative": (ft.vmap(lambda s, r: ft.jvp(lambda r: lorenz(s, r)[0], (r,), (r,))),
                       [normal(LANES, 3), np.abs(normal(LANES)) * 20]),
    "lanes along a second axis": (ft.vmap(lorenz, (1, 0), 1),
                                  [normal(3, LANES), np.abs(normal(LANES)) * 20]),
    "backwards, over elements": (ft.vmap(walked_back), [normal(LANES), normal(LANES, 4)]),
    "elements that lanes share": (ft.vmap(walked_back, (0, None)), [normal(LANES), normal(4)]),
    "loops and branches in each other": (ft.vmap(in_each_other), [normal(LANES) * 4]),
    "collected inside": (ft.vmap(collected_inside), [normal(LANES)]),
    "a table": (ft.vmap(table, (0, None)), [np.arange(LANES, dtype=np.int32) % 11, normal(11, 2)]),
    "a vector of its own": (ft.vmap(own_vector), [normal(LANES, 4),
                                                  np.arange(LANES, dtype=np.int32)]),
    "elements at places": (ft.vmap(elements_at_places), [normal(LANES), normal(LANES, 6, 5)]),
    "elements at places of shared rows": (ft.vmap(elements_at_places, (0, None)),
                                          [normal(LANES), normal(6, 5)]),
    "matrices": (ft.vmap(matrices), [normal(LANES, 3, 3), normal(LANES, 3)]),
    "a matrix that lanes share": (ft.vmap(matrices, (None, 0)), [normal(3, 3), normal(LANES, 3)]),
    "systems": (ft.vmap(systems), [normal(LANES, 3, 3), normal(LANES, 3)]),
    "places of extremes": (ft.vmap(extremes), [normal(LANES, 5)]),
    "a filter": (ft.vmap(kalman), [normal(LANES, 6)]),
    "pairs": (ft.vmap(pairs), [bodies()]),
    "sorts": (ft.vmap(sorted_again), [normal(LANES, 5) * 2, normal(LANES, 5)]),
    "running sums": (ft.vmap(drawn), [np.abs(normal(LANES, 12)),
                                      RNG.uniform(size=LANES).astype("f")]),
    "bfloat16": (ft.vmap(narrow), [normal(LANES).astype("bfloat16")]),
    "float16": (ft.vmap(narrow), [normal(LANES).astype("f2")]),
    "float64": (ft.vmap(narrow), [normal(LANES).astype("f8")]),
    "bytes": (ft.vmap(bytes_of), [np.arange(LANES, dtype=np.uint8)]),
    "all elements of an array": (lambda x: lax.fori_loop(0, 4, lambda i, c: jnp.sin(c) + x, x),
                                 [normal(4, 9)]),
}


def lanes_in(program):
    return [s for s in program.steps if isinstance(s, Launch) and s.kernel == "lanes"]


@pytest.mark.one_in(6)
@pytest.mark.parametrize("way", ["masks", "blocks", "regions"])
@pytest.mark.parametrize("name", LOOPS)
def test_lanes(name, way, monkeypatch):
    """As masks over all lanes, as blocks of them, and with what is around the loops."""
    fun, args = LOOPS[name]
    if way == "regions":
        monkeypatch.setattr(thread_regions, "LEAST_LANES", 1)
    with for_compiler(way != "masks"):
        program = check(fun, *args)
    assert lanes_in(program)


@pytest.mark.parametrize("as_patches", [False, True])
@pytest.mark.parametrize("sizes", [(7,), (64,), (8, 16), (3, 8, 16), (2, 3, 4, 8), (5, 16)])
def test_each_lane_is_that_of_a_thread(sizes, as_patches):
    names = coordinates(sizes, as_patches)
    found = [tuple([eval(text, {"lane": lane}) for text in names])
             for lane in range(np.prod(sizes))]
    assert sorted(found) == list(np.ndindex(sizes))
    if as_patches and len(sizes) > 1 and (sizes[-2] % 4, sizes[-1] % 8) == (0, 0):
        patch = np.array(found[:32])
        assert (np.ptp(patch, axis=0)[-2:] == (3, 7)).all()


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", ["lanes to their own ends", "vectors of a lane", "its gradient",
                                  "loops and branches in each other", "a table"])
def test_a_lane_computes_what_it_computes_alone_to_the_bit(name):
    fun, args = LOOPS[name]
    _, program, consts = program_of(fun, *args)
    together = InterpretedProgram(program)([*consts, *args])
    one = [a if name == "a table" and k == 1 else a[5:6] for k, a in enumerate(args)]
    _, program, consts = program_of(fun, *one)
    assert lanes_in(program)
    for a, b in zip(together, InterpretedProgram(program)([*consts, *one]), strict=True):
        np.testing.assert_array_equal(a[5:6], b)


def test_lanes_with_keys_of_their_own():
    keys = ft.random.split(ft.random.key(0), 40)
    fun = ft.vmap(lambda data: random_steps(ft.random.wrap_key_data(data)))
    assert lanes_in(check(fun, ft.random.key_data(keys)))


def small_net(w, x):
    def step(s, _):
        return s + 0.1 * (w[1] @ jnp.tanh(w[0] @ s)), None
    return lax.scan(step, x, None, length=3)[0]


def driven(p, x):
    """An oscillator whose parameters are read twice in a step, with signs."""
    def step(s, e):
        return s + 0.1 * (jnp.sin(s * p[0]) - p[1] * s) - p[0] * e + p[2] * s * s, s
    return lax.scan(step, x, jnp.arange(3.0))


SHARED = {
    "matrices": (small_net, [(normal(4, 2), normal(2, 4)), normal(100, 2)], 2),
    "numbers": (driven, [(np.float32(0.7), np.float32(0.2), np.float32(0.1)), normal(100)], 2),
    "a trajectory": (lambda p, x: lorenz(x, p), [np.float32(20.0), normal(100, 3)], 1),
}
"""The last number is that of loops: the gradient to one number runs forward."""


@pytest.mark.parametrize("name", SHARED)
def test_gradients_to_what_lanes_share_are_summed_after_the_loop(name):
    fun, (shared, own), loops = SHARED[name]

    def loss(shared, own):
        return sum((y**2).sum() for y in ft.tree.leaves(ft.vmap(fun, (None, 0))(shared, own)))

    with for_compiler(True):
        program = check(ft.grad(loss), shared, own, tolerance=2e-3)
    assert len(lanes_in(program)) == loops


@pytest.mark.parametrize("fun", [
    lambda x: lax.fori_loop(0, 4, lambda i, s: (jnp.sin(s[0]), s[1] + s[0].sum()), (x, 0.5)),
    lambda x: lax.fori_loop(0, 4, lambda i, s: (jnp.sin(s[0]), s[1] - s[0].sum() + s[0] @ x),
                            (x, 0.5)),
    lambda x: lax.scan(lambda s, e: ((s[0] * e, s[1] + s[0].sum()), s[1]), (x, 0.5), x[:3]),
    lambda x: lax.fori_loop(0, 4, lambda i, s: (s[0] + s[1], s[1] + s[0].sum()), (x, 0.5)),
    lambda x: lax.fori_loop(0, 3, lambda i, s: (x * s[0], s[1] + s[0].sum(), s[2] + s[1]),
                            (x, 0.5, 1.0))])
def test_sums_that_a_loop_carries(fun):
    """Some are read by the loop itself."""
    with for_compiler(True):
        check(fun, normal(90) * np.float32(0.1))


def shared_state(x):
    """A counter and a sum that lanes share, collected too, by a loop inside as well."""
    def outer(c, k):
        lane, n = c
        n, counts = lax.scan(lambda n, e: (n * 2 + 1, n + e), n, jnp.arange(3.0))
        return (jnp.sin(lane) + counts[1], n), (n, lane)
    return lax.scan(outer, (x, 1.0), jnp.arange(4.0))


def test_what_lanes_share_is_stored_once():
    """A million stores to one place wait for each other."""
    check(shared_state, normal(70))
    program = check(lambda x: lax.fori_loop(0, 3, lambda i, s: (jnp.sin(s[0]), s[1] + 1), (x, 0)),
                    normal(70))
    (text,) = [t for t in program.sources if "def lanes" in t]
    assert "if (lane0 == 0):" in text


def test_operands_are_read_where_they_are():
    """What the program computes before a loop is not computed again in it."""
    def fun(x, w):
        start = (jnp.tanh(x @ w) * w[0]).sum(-1)
        return lax.fori_loop(0, 3, lambda i, c: jnp.sin(c), start)

    with for_compiler(True):
        program = check(fun, normal(70, 8), normal(8, 8), tolerance=2e-3)
    (launch,) = lanes_in(program)
    assert len(launch.arguments) == 2


def test_a_loop_reads_through_reshapes_and_broadcasts():
    """Blocks of lanes, and what all lanes begin with, are no kernels of their own."""
    with for_compiler(True):
        program = check(ft.vmap(newton), np.abs(normal(512)) * 9 + 0.1)
    assert [s.kernel for s in program.steps if isinstance(s, Launch)] == ["lanes"]
    assert not any(isinstance(s, CopyStep) for s in program.steps)


def test_what_other_steps_read_is_still_computed():
    def fun(x):
        start = jnp.reshape(x, (5, 20))
        return lax.fori_loop(0, 3, lambda i, c: jnp.sin(c), start), start.T @ start, start

    with for_compiler(True):
        assert lanes_in(check(fun, normal(100)))


def mixing(x):
    """Every lane goes on until all are small."""
    return lax.while_loop(lambda v: (v > 1.0).any(), lambda v: v * 0.7, x)


def masked_by_hand(x):
    """As vmap writes it, but that lanes which are done go on to change."""
    return lax.while_loop(lambda s: s[0].any(), lambda s: (s[1] > 2.0, s[1] * 0.7), (x > 2.0, x))


def revived(x):
    """A lane that is done begins again with the others."""
    return lax.while_loop(lambda s: s[0].any(), lambda s: (
        (s[1] > 2.0) & (s[2] < 5), jnp.where(s[0], s[1] * 0.7, s[1]), s[2] + 1), (x > 5.0, x, 0))


def asked_by_hand(x):
    """A branch that all lanes take, since one asks for it."""
    return lax.fori_loop(0, 3, lambda i, c: lax.cond((c > 2.0).any(), lambda c: c * 0.5,
                                                     lambda c: c, c), x)


def neighbours(x):
    return lax.fori_loop(0, 3, lambda i, c: c * 0.5 + jnp.roll(c, 1), x)


@pytest.mark.parametrize("fun", [mixing, masked_by_hand, revived, asked_by_hand, neighbours])
def test_lanes_that_mix_have_no_threads_of_their_own(fun):
    program = check(fun, np.abs(normal(200)) * 9)
    assert not any(s.grid[0] > 1 for s in lanes_in(program))


def test_lanes_are_the_axes_that_nothing_mixes():
    def body(c, x):
        return c * x.sum(0), (c @ np.ones((4, 4), "f"))

    with for_compiler(True):
        closed = ft.make_jaxpr(lambda c, xs: lax.scan(body, c, xs))(
            normal(6, 4), normal(3, 5, 6, 4))
    (scan,) = [e for e in closed.jaxpr.eqns if e.primitive.name == "scan"]
    program = lane_program(scan, HOPPER.measured.lanes)
    assert program.sizes == (6,)
    assert [layout.axes for layout in program.outputs] == [(0, None), (None, 0, None)]


def test_kernels_of_lanes_compile_without_spills():
    fun, args = LOOPS["its gradient"]
    _, program, _ = program_of(fun, *args)
    found = [b for (_, kernel, *_), b in binaries(program).items() if kernel == "lanes"]
    assert found and all(b.spills == 0 for b in found)


def test_the_program_says_why_a_lane_is_no_thread():
    for fun, words in ((neighbours, "(not a lane a thread: a lane has 200 elements of a value)"),
                       (mixing, "(not a lane a thread: whether a lane goes on depends on others)"),
                       (lambda x: lax.fori_loop(0, 9, lambda i, c: jnp.sin(c), x),
                        "one kernel of 7 programs, a lane a thread")):
        _, program, _ = program_of(fun, normal(200))
        assert any(words in note for note in program.notes)


def shaded(y, x, table):
    """A march along a ray, what is computed before and behind it, and another march."""
    def march(at, by):
        def step(s):
            t, n = s
            return t + jnp.abs(jnp.sum(jnp.sin((at + t * by) * table)) * 0.1) + 0.05, n + 1
        return lax.while_loop(lambda s: (s[0] < 1.5) & (s[1] < 9), step, (0.1, 0))

    by = jnp.stack([x, y, 1.5]) / jnp.sqrt(x * x + y * y + 2.25)
    t, n = march(jnp.zeros(3), by)
    hit = t * by
    away, _ = march(hit, table)
    return jnp.where(t < 1.6, jnp.maximum(jnp.sum(hit * table), 0) + away, 0.0), n


def test_all_that_a_pixel_computes_is_one_kernel(monkeypatch):
    image = ft.vmap(ft.vmap(shaded, (None, 0, None)), (0, None, None))
    with for_compiler(True):
        _, program, _ = program_of(image, normal(256), normal(256), normal(3))
        launches = [s.kernel for s in program.steps if isinstance(s, Launch)]
        assert launches.count("lanes") == 1
        assert len(launches) <= 2
        monkeypatch.setattr(thread_regions, "LEAST_LANES", 1)
        check(image, normal(12), normal(16), normal(3))


def test_forward_and_backward_loops_are_one_kernel(monkeypatch):
    monkeypatch.setattr(thread_regions, "LEAST_LANES", 1)
    fun = ft.vmap(ft.grad(lambda s, r: jnp.sum(lorenz(s, r)[0] ** 2), (0, 1)))
    with for_compiler(True):
        program = check(fun, normal(LANES, 3), np.abs(normal(LANES)) * 20)
    assert [s.kernel for s in program.steps if isinstance(s, Launch)] == ["lanes"]


def test_records_are_read_before_their_turn():
    """A thread that waits for what it has stored takes as long as the second-level cache does."""
    gradient = ft.vmap(ft.grad(lambda x: lax.fori_loop(
        0, 20, lambda k, y: jnp.sin(y) * y[::-1], x).sum()))
    x = normal(70, 3)  # to one number it would run forward
    with pytest.MonkeyPatch.context() as patch, for_compiler(True):
        patch.setattr(thread_regions, "LEAST_LANES", 1)
        program = check(gradient, x)
    (text,) = [t for t in program.sources if "def lanes" in t]
    assert "tl.minimum(" in text


def test_lanes_along_a_short_axis_are_threads_too():
    """A thread would walk them one after another, and most threads would have nothing to do."""
    fun = ft.vmap(ft.vmap(lambda n: counted(n)[1]))
    with for_compiler(True):
        program = check(fun, np.arange(3 * 600, dtype=np.int32).reshape(3, 600) % 9)
    (text,) = [t for t in program.sources if "def lanes" in t]
    assert "if lane < 1800:" in text
