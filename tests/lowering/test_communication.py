"""When collectives begin, what is given together, and which steps wait for them."""

import numpy as np
import pytest

import functrans as ft
from functrans import lax
from functrans import numpy as jnp
from functrans.lowering.schedule.communication import (
    BESIDE,
    CommunicatedStep,
    beside_computation,
    overlapped_order,
    with_gathered_sums,
)
from functrans.sharding import P
from tests.sharding.meshes import mesh_of

MB = 1 << 20


def kernel(reads, writes, milliseconds=0.1):
    return CommunicatedStep([*reads, writes], [writes], milliseconds * 1e-3)


def collective(reads, writes, nbytes=8 * MB, gathers=False, reduces=True):
    return CommunicatedStep([reads, writes], [writes], BESIDE.seconds(nbytes), nbytes, nbytes,
                            gathers, reduces and not gathers)


def in_order(steps, order):
    """Whether an order keeps what steps write and read."""
    assert sorted(order) == list(range(len(steps)))
    place = {k: n for n, k in enumerate(order)}
    for j, a in enumerate(steps):
        for k, b in enumerate(steps[j + 1:], j + 1):
            if set(a.written) & set(b.touched) or set(b.written) & set(a.touched):
                assert place[j] < place[k], (j, k)


def test_gradients_are_reduced_while_others_are_computed():
    steps = [*[kernel([f"ct{k}"], f"ct{k + 1}", 1) for k in range(4)],
             *[kernel([f"ct{k}"], f"g{k}", 1) for k in range(4)],
             *[collective(f"g{k}", f"sum{k}") for k in range(4)],
             *[kernel([f"sum{k}"], f"new{k}", 0.01) for k in range(4)]]
    order = overlapped_order(steps)
    in_order(steps, order)
    for k in range(4):  # each sum right behind its gradient
        assert order.index(8 + k) == order.index(4 + k) + 1
    arranged = [steps[k] for k in order]
    overlap = beside_computation(arranged)
    assert [len(g) for g in overlap.groups] == [1] * 4, "each is enough for a launch"
    first_wait = min(overlap.waits)
    assert first_wait > max(k for k, s in enumerate(arranged) if s.seconds >= 1e-3
                            and not s.is_collective)
    assert overlap.beside >= {0, 1}
    assert 3 not in overlap.beside  # nothing is left to compute beside the last one
    assert overlap.under_way


def test_parameters_are_gathered_one_layer_ahead():
    steps = []
    for k in range(6):
        steps += [kernel([f"p{k}"], f"cast{k}", 0.002), collective(f"cast{k}", f"w{k}", 12 * MB,
                                                                   gathers=True),
                  kernel([f"x{k}", f"w{k}"], f"x{k + 1}", 0.5)]
    order = overlapped_order(steps)
    in_order(steps, order)
    overlap = beside_computation([steps[k] for k in order])
    layers = [k for k in order if not steps[k].is_collective and k % 3 == 2]
    assert layers == sorted(layers)
    for k in range(1, 6):
        begun = order[:order.index(3 * (k - 1) + 2)]
        assert 3 * k + 1 in begun, "it begins before the layer before is computed"
        assert 3 * (k + 2) + 1 not in begun, "no earlier"
    assert overlap.beside >= {1, 2, 3, 4, 5}


def test_small_sums_are_given_together():
    steps = [*[kernel([f"ct{k}"], f"ct{k + 1}", 1) for k in range(3)],
             *[collective(f"ct{k + 1}", f"sum{k}", 1000) for k in range(3)],
             kernel(["sum0", "sum1", "sum2"], "out")]
    arranged = [steps[k] for k in overlapped_order(steps)]
    overlap = beside_computation(arranged)
    assert len(overlap.groups) == 1
    assert len(overlap.groups[0]) == 3
    assert list(overlap.waits) == [6]


def test_sums_are_given_in_a_dozen_launches_and_the_last_are_small():
    steps = [*[kernel([f"ct{k}"], f"ct{k + 1}", 1) for k in range(60)],
             *[collective(f"ct{k + 1}", f"sum{k}", 10 * MB) for k in range(60)],
             *[kernel([f"sum{k}"], f"new{k}", 0.01) for k in range(60)]]
    arranged = [steps[k] for k in overlapped_order(steps)]
    overlap = beside_computation(arranged)
    # what comes last has no computation beside it: that is little
    assert [len(g) for g in overlap.groups] == [5] * 11 + [3, 1, 1]
    assert min(overlap.waits) > 100, "all else is computed before"


def test_a_step_that_writes_what_is_sent_waits():
    steps = [kernel([], "a"), collective("a", "b"), kernel(["c"], "a"), kernel(["b"], "d")]
    overlap = beside_computation(steps)
    assert overlap.waits == {2: 0}


@pytest.mark.parametrize("seed", range(40))
def test_random_programs_keep_their_order(seed):
    rng = np.random.default_rng(seed)
    steps = []
    for _ in range(rng.integers(2, 40)):
        reads = list(map(str, rng.integers(0, 8, rng.integers(1, 4))))
        writes = str(rng.integers(0, 8))
        if rng.random() < 0.3:
            steps.append(collective(reads[0], "r" + writes, int(rng.integers(1, 1 << 24)),
                                    bool(rng.integers(2))))
        else:
            steps.append(kernel([*reads, "r" + reads[0]], writes, float(rng.random())))
    order = overlapped_order(steps)
    in_order(steps, order)
    arranged = [steps[k] for k in order]
    overlap = beside_computation(arranged)
    assert sorted(k for g in overlap.groups for k in g) == [
        k for k, s in enumerate(arranged) if s.is_collective]
    group_of = {k: n for n, g in enumerate(overlap.groups) for k in g}
    begun = {n: g[-1] for n, g in enumerate(overlap.groups)}
    waited = -1
    for k, step in enumerate(arranged):
        waited = max(waited, overlap.waits.get(k, -1))
        if step.is_collective:
            continue
        for j in range(k):
            other = arranged[j]
            if other.is_collective and (set(other.written) & set(step.touched) or set(
                    step.written) & set(other.touched)):
                assert group_of[j] <= waited
                assert begun[group_of[j]] < k


def layers_of(count, width):
    rng = np.random.default_rng(0)
    return [{"w": (rng.normal(size=(width, width)) / width ** 0.5).astype(np.float32),
             "b": np.zeros(width, np.float32)} for _ in range(count)]


@pytest.mark.parametrize("sharded", [False, True])
def test_training_in_the_interpreter(sharded):
    """It runs collectives as late as they may be."""
    mesh, params = mesh_of(2), layers_of(2, 16)
    x = np.random.default_rng(1).normal(size=(8, 16)).astype(np.float32)

    def loss(params, x):
        for layer in params:
            x = jnp.tanh(x @ layer["w"] + layer["b"])
        return (x ** 2).mean()

    def updated(params, gradients):
        return ft.tree.map(lambda p, g: p - 0.1 * g, params, gradients)

    def whole(params, x):
        return loss(ft.tree.map(lambda p: lax.all_gather(p, "a", axis=0, tiled=True), params),
                    x) / 2

    def step(params, x):
        gradients = ft.grad(whole if sharded else loss)(params, x)
        return updated(params, gradients if sharded else ft.tree.map(
            lambda g: lax.pmean(g, "a"), gradients))

    spec = P("a") if sharded else P()
    program = ft.shard_map(step, mesh, (spec, P("a")), spec, check_vma=False)
    with ft.config.use_backend("triton"):
        found = ft.jit(program)(params, x)
    expected = updated(params, ft.grad(loss)(params, x))
    for a, b in zip(ft.tree.leaves(found), ft.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-3, atol=2e-3)


def test_gatherings_of_gradients_begin_as_sums_do():
    """They are given together, when they are there; those of parameters one layer ahead."""
    layers = range(8)
    steps = [*[kernel([f"p{k}"], f"cast{k}", 0.01) for k in layers],
             *[collective(f"cast{k}", f"w{k}", MB, gathers=True) for k in layers],
             *[kernel([f"x{k}", f"w{k}"], f"x{k + 1}", 1) for k in layers],
             *[kernel([f"x{k}", "x8"], f"g{k}", 1) for k in reversed(layers)],
             *[collective(f"g{k}", f"all{k}", MB, gathers=True) for k in layers],
             *[kernel([f"all{k}", f"p{k}"], f"p{k}", 0.01) for k in layers]]
    told = with_gathered_sums(steps)
    assert [s.gathers for s in told if s.is_collective] == [True] * 8 + [False] * 8
    assert [s.reduces for s in told if s.is_collective] == [False] * 8 + [True] * 8
    order = overlapped_order(told)
    in_order(steps, order)
    arranged = [told[k] for k in order]
    groups = beside_computation(arranged).groups
    assert [len(g) for g in groups] == [1] * 8 + [8]
    assert order.index(8 + 7) > order.index(16 + 5)  # the last parameters, a layer ahead


def test_small_gatherings_next_to_each_other_are_given_together():
    steps = [*[collective(f"s{k}", f"all{k}", 1 << 12, gathers=True) for k in range(5)],
             collective("p", "w", MB, gathers=True),
             kernel(["w", *[f"all{k}" for k in range(5)]], "y", 1)]
    overlap = beside_computation([steps[k] for k in overlapped_order(steps)])
    assert [len(g) for g in overlap.groups] == [6]
    steps.insert(2, kernel(["x"], "z", 1))  # what is computed between does not wait
    overlap = beside_computation(steps)
    assert [len(g) for g in overlap.groups] == [2, 4]


def test_updates_come_in_the_order_of_their_sums():
    steps = [*[kernel([f"ct{k}"], f"ct{k + 1}", 1) for k in range(4)],
             *[collective(f"ct{k + 1}", f"sum{k}", 32 * MB) for k in range(4)],
             *[kernel([f"sum{k}"], f"new{k}", 0.01) for k in (3, 1, 2, 0)]]
    order = overlapped_order(steps)
    in_order(steps, order)
    last = [k for k in order if k >= 8]
    assert last == [11, 9, 10, 8], "the update that waits for the last sum is the last"


def test_gatherings_wait_for_the_links_where_these_are_slow():
    """No operand of a gathering is made before the links are free: a layer is computed first."""
    steps = [s for k in range(6) for s in (
        kernel([f"p{k}"], f"cast{k}", 0.1), collective(f"cast{k}", f"w{k}", 64 * MB, gathers=True),
        kernel([f"x{k}", f"w{k}"], f"x{k + 1}", 0.2))]
    order = overlapped_order(steps)
    in_order(steps, order)
    assert order.index(3) < order.index(2) < order.index(9) < order.index(8)
