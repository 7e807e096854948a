"""What explain says of programs of several devices, and what they do without."""

import numpy as np
import pytest

import functrans as ft
from functrans import lax, per_sample
from functrans import numpy as jnp
from functrans.sharding import NamedSharding, P
from tests.sharding.meshes import mesh_of


def struct(spec, *shape):
    return ft.ShapeDtypeStruct(shape, "float32", sharding=NamedSharding(mesh_of(2, 2), spec))


def collectives(f, *args):
    return [(n.name, n.axes, n.nbytes) for n in ft.explain(f, *args).report.collectives]


def test_each_collective_is_shown_with_its_reason():
    def loss(w, x):
        return (jnp.tanh(x @ w) ** 2).mean()

    explained = ft.explain(ft.grad(loss), struct(P("b"), 32, 16), struct(P("a", "b"), 64, 32))
    assert [(n.name, n.axes, n.nbytes, n.asked_by) for n in explained.report.collectives] == [
        ("psum", ("b",), 32 * 16 * 4, "dot_general"), ("psum", ("a",), 16 * 16 * 4, "dot_general")]
    text = str(explained)
    assert "psum over 'b' of a f32[32,16]: 2.05 kB to each device" in text
    assert "for dot_general: a sum over devices  # test_explain.py" in text
    assert "on each device of Mesh('a': 2, 'b': 2)" in text
    assert "psum over" in explained._repr_html_()


def test_values_that_lie_otherwise_are_told():
    f = ft.jit(lambda x: jnp.sort(x, axis=0))
    (note,) = ft.explain(f, struct(P("a"), 8, 4)).report.collectives
    assert (note.name, note.asked_by) == ("all_gather", "sort")
    assert "divided as PartitionSpec('a') and needed as PartitionSpec()" in note.why
    first = ft.explain(jnp.linalg.cholesky, struct(P("a"), 8, 8)).report.collectives[0]
    assert first.name == "all_to_all"  # for the sum of the matrix and its transpose


@pytest.mark.parametrize(("f", "specs", "expected"), [
    (lambda x: x + 1, [P("a", "b")], []),
    (lambda x: x.sum(0), [P(None, "a")], []),
    (lambda x: x.sum(0), [P("a")], ["psum"]),
    (lambda x, y: x @ y, [P("a"), P(None, "b")], []),
    (lambda x, y: x @ y, [P(None, "a"), P("a")], ["psum"]),
    (lambda x: lax.with_sharding_constraint(x, NamedSharding(mesh_of(2, 2), P(None, "a"))),
     [P("a")], ["all_to_all"]),
    (lambda x: lax.with_sharding_constraint(x, NamedSharding(mesh_of(2, 2), P("a", "b"))),
     [P("a")], []),
    (lambda x: x.T.reshape(4, 2, 8), [P("a")], []),
    (lambda x: ft.nn.softmax(x), [P("a")], []),
    (lambda x: jnp.linalg.cholesky(x[:, :, None, None] * np.eye(2, dtype=np.float32)),
     [P("a")], []),
    (lambda x: jnp.fft.fft(x).real, [P("a")], []),
    (lambda x: ft.vmap(lambda r: lax.scan(lambda c, e: (c + e, c), 0.0, r)[1])(x), [P("a")], []),
])
def test_what_needs_no_collective_has_none(f, specs, expected):
    args = [struct(spec, 8, 8) for spec in specs]
    assert [name for name, _, _ in collectives(f, *args)] == expected


def test_norms_of_samples_move_no_gradients():
    def loss(params, x, y):
        return (jnp.tanh(x @ params["w"]) @ params["v"] - y) ** 2

    rng = np.random.default_rng(0)
    params = {"w": rng.normal(size=(6, 5)).astype("f"), "v": rng.normal(size=5).astype("f")}
    x, y = rng.normal(size=(16, 6)).astype("f"), rng.normal(size=16).astype("f")
    rows = NamedSharding(mesh_of(4), P("a"))
    xs, ys = ft.device_put((x, y), rows)
    norms = ft.jit(per_sample.norms(loss))
    assert collectives(norms, params, xs, ys) == []
    found = norms(params, xs, ys)
    assert found.sharding == rows
    np.testing.assert_allclose(found, norms(params, x, y), rtol=1e-5)
    clipped = ft.jit(lambda p, x, y: per_sample.clipped_mean(loss, max_norm=0.5)(p, x, y))
    moved = collectives(clipped, params, xs, ys)
    assert {name for name, _, _ in moved} == {"psum"}
    assert max(n for _, _, n in moved) <= 2 * 30 * 4
    for a, b in zip(ft.tree.leaves(clipped(params, xs, ys)),
                    ft.tree.leaves(clipped(params, x, y)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)


def loss(w, x):
    return (jnp.tanh(x @ w) ** 2).sum()


def step(w, x):
    return w - 0.1 * ft.grad(loss)(w, x)


def steps(w, x):
    return lax.scan(lambda w, _: (step(w, x), None), w, None, length=3)[0]


@pytest.mark.parametrize(("spec", "sums"), [
    (P("a"), [("psum_scatter", ("a",), 256), ("psum", ("b",), 256)]),
    (P(None, "b"), [("psum_scatter", ("b",), 256), ("psum", ("a",), 256)]),
    (P(("a", "b")), [("psum_scatter", ("a", "b"), 384)]),
    (P(), [("psum", ("a", "b"), 768)]),
])
def test_a_sum_of_which_parts_are_needed_is_scattered(spec, sums):
    w, x = struct(spec, 16, 8), struct(P(("a", "b")), 32, 16)
    for f in (step, steps):
        found = [c for c in collectives(f, w, x) if c[0] != "all_gather" and c[2] > 8]
        assert found == sums
    rng = np.random.default_rng(0)
    values = [rng.normal(size=s.shape).astype(np.float32) for s in (w, x)]
    placed = [ft.device_put(v, s.sharding) for v, s in zip(values, (w, x), strict=True)]
    for f in (step, steps):
        out = ft.jit(f)(*placed)
        np.testing.assert_allclose(out, f(*values), rtol=1e-4, atol=1e-5)


def test_a_sum_that_is_needed_whole_besides_is_not_scattered():
    def clipped(w, x):
        g = ft.grad(loss)(w, x)
        return w - 0.1 * g, jnp.sort(g, axis=0)

    found = collectives(clipped, struct(P("a"), 16, 8), struct(P("a"), 32, 16))
    assert "psum_scatter" not in [name for name, _, _ in found]


def test_sums_over_few_devices_of_what_was_narrow_are_gathered():
    mesh = mesh_of(2)

    def f(x):
        return lax.psum(x.astype("float32") * 1, "a"), lax.psum(x.astype("float32"), "a")

    run = ft.jit(ft.shard_map(f, mesh, P("a"), P()))
    x = np.random.default_rng(0).normal(size=(2 << 10, 1 << 10)).astype(jnp.bfloat16)
    notes = ft.explain(run, x).report.collectives
    assert [(n.name, n.nbytes) for n in notes] == [("psum", 4 << 20), ("all_gather", 2 << 20)]
    assert "the narrower ones are fewer bytes" in notes[1].why
    first, second = run(x)
    np.testing.assert_array_equal(first, second)
    four = ft.jit(ft.shard_map(lambda x: lax.psum(x.astype("float32"), "a"), mesh_of(4), P("a"),
                               P()))
    assert [n.name for n in ft.explain(four, x).report.collectives] == ["psum"]
