"""Programs divided over meshes at random give what they give on one device, with gradients."""

import numpy as np
import pytest

import functrans as ft
from functrans import lax, nn
from functrans import numpy as jnp
from functrans.sharding import NamedSharding, P
from tests.sharding.meshes import divided, mesh_of

MESHES = [(2,), (4,), (2, 2)]


def normal(rng, *shape):
    return rng.normal(size=shape).astype(np.float32)


STEPS = [
    lambda rng, x: jnp.tanh(x) * 2 + 1,
    lambda rng, x: x - x.mean(-1, keepdims=True),
    lambda rng, x: x @ normal(rng, x.shape[-1], 8) / 3,
    lambda rng, x: x.swapaxes(-1, -2),
    lambda rng, x: nn.softmax(x, axis=-1) + x,
    lambda rng, x: jnp.concatenate([x, x[..., ::-1]], -1)[..., :8],
    lambda rng, x: x.reshape(-1, x.shape[-1] // 2, 2).sum(-1).reshape(x.shape[0], -1),
    lambda rng, x: jnp.cumsum(x, 0) / 4,
    lambda rng, x: jnp.sort(x, -1),
    lambda rng, x: x[rng.integers(0, x.shape[0], x.shape[0])],
    lambda rng, x: jnp.where(x > 0, x, 0.1 * x),
    lambda rng, x: jnp.einsum("ij,kj->ik", x, x)[:, :8] / 8,
    lambda rng, x: lax.scan(lambda c, r: (jnp.sin(c + r), c * r), x[0], x)[1] + x,
    lambda rng, x: lax.fori_loop(0, 3, lambda i, c: jnp.cos(c) + x, x),
    lambda rng, x: lax.cond(x.sum() > 0, lambda v: v * 2, lambda v: v - 1, x),
    lambda rng, x: ft.vmap(lambda r: (r - r.max()) / (1 + r.std()))(x),
    lambda rng, x: jnp.pad(x, ((0, 0), (1, 1)))[:, 1:-1] * x,
    lambda rng, x: x + ft.random.normal(ft.random.key(3), x.shape),
    lambda rng, x: ft.checkpoint(lambda v: jnp.exp(jnp.sin(v)))(x),
    lambda rng, x: x.at[0].add(1.0).at[:, 1].multiply(2.0),
    lambda rng, x: jnp.linalg.solve(x.T @ x + 9 * np.eye(x.shape[1], dtype=np.float32), x.T).T * 9,
    lambda rng, x: ft.jit(lambda v: jnp.arctan(v) + v.max(0))(x),
]


def program(seed):
    def run(x, w):
        rng = np.random.default_rng(seed)
        for k in rng.integers(0, len(STEPS), 5):
            x = STEPS[k](rng, x)
        return x * w.sum() + (x * x).mean()

    return run


@pytest.mark.one_in(4)
@pytest.mark.parametrize("seed", range(48))
def test_divided_programs_are_whole_ones(seed):
    rng = np.random.default_rng(seed)
    mesh = mesh_of(*MESHES[seed % 3])
    f = program(seed)
    x, w = jnp.asarray(normal(rng, 8, 8)), normal(rng, 4)

    def loss(x, w):
        y = f(x, w)
        return (y * jnp.cos(y)).mean()

    with ft.config.use_backend("reference"):
        xs, ws = divided(rng, mesh, x), divided(rng, mesh, w)
        close(ft.jit(f)(xs, ws), f(x, w))
        for a, b in zip(ft.jit(ft.grad(loss, (0, 1)))(xs, ws), ft.grad(loss, (0, 1))(x, w),
                        strict=True):
            close(a, b, 2e-3)


def close(a, b, tolerance=2e-4):
    b = np.asarray(b)
    scale = max(1.0, float(np.abs(b).max(initial=0)))
    np.testing.assert_allclose(np.asarray(a) / scale, b / scale, atol=tolerance)


def test_eager_programs_follow_their_operands():
    rng = np.random.default_rng(0)
    mesh = mesh_of(2, 2)
    x, w = jnp.asarray(normal(rng, 8, 8)), normal(rng, 4)
    for seed in range(6):
        f = program(seed)
        close(f(divided(rng, mesh, x), divided(rng, mesh, w)), f(x, w))


def test_compiled_programs():
    rng = np.random.default_rng(1)
    mesh = mesh_of(2, 2)
    x, w, b = normal(rng, 16, 8), normal(rng, 8, 12), normal(rng, 12)

    def loss(w, b, x):
        return (nn.softmax(jnp.tanh(x @ w + b)) ** 2).sum()

    step = ft.jit(lambda w, b, x: ft.tree.map(
        lambda p, g: p - 0.1 * g, (w, b), ft.grad(loss, (0, 1))(w, b, x)))
    data = ft.device_put(x, NamedSharding(mesh, P("a")))
    columns = NamedSharding(mesh, P(None, "b")), NamedSharding(mesh, P("b"))
    weights = ft.device_put((w, b), columns)
    expected = step(w, b, x)
    found = weights
    for _ in range(3):
        found, expected = step(*found, data), step(*expected, x)
    step_1 = step(*weights, data)
    assert [p.sharding.spec for p in step_1] == [P(None, "b"), P("b")]
    for a, e in zip(step(*step_1, data), step(*step(w, b, x), x), strict=True):
        close(a, e, 1e-5)


def test_shardings_of_jit():
    mesh = mesh_of(2, 2)
    x = np.arange(16, dtype=np.float32).reshape(4, 4)
    rows, columns = NamedSharding(mesh, P("a")), NamedSharding(mesh, P(None, "b"))
    f = ft.jit(lambda x, n, y: {"s": x + y, "t": x * n}, static_argnums=1,
               in_shardings=(rows, None), out_shardings={"s": columns, "t": None})
    out = f(x, 3, x)
    assert out["s"].sharding == columns
    assert out["t"].sharding == rows
    close(out["t"], 3 * x)
    with ft.set_mesh(mesh):
        g = ft.jit(lambda x: lax.with_sharding_constraint(jnp.sin(x), P("b", "a")),
                   in_shardings=P("a"))
        assert g(x).sharding.spec == P("b", "a")
        h = ft.jit(lambda x: lax.with_sharding_constraint(x * 2, P(P.UNCONSTRAINED, "b")))
        assert h(ft.device_put(x, rows)).sharding.spec == P("a", "b")
        close(ft.grad(lambda x: g(x).sum())(x), np.cos(x))
        batched = ft.vmap(lambda r: lax.with_sharding_constraint(r * 2, P("b")))(x)
        assert batched.sharding.spec[1] == "b"
    nested = ft.jit(lambda x: f(x, 2, x)["s"] + 1)
    close(nested(x), 2 * x + 1)
    lowered = ft.jit(lambda x: x + 1, out_shardings=rows).lower(x).compile()
    assert lowered(x).sharding == rows


def test_shard_map_within_jit_and_within_itself():
    mesh = mesh_of(2, 2)
    x = np.arange(16, dtype=np.float32).reshape(4, 4)
    outer = ft.shard_map(lambda v: ft.shard_map(
        lambda u: lax.psum(u, "b") + lax.axis_index("b"), mesh, P(None, "b"), P(None, None),
        axis_names={"b"}, check_vma=False)(v), mesh, P("a"), P("a"), axis_names={"a"},
        check_vma=False)
    expected = x.reshape(4, 2, 2).sum(1)
    with ft.config.use_backend("reference"):
        part = ft.shard_map(lambda v: lax.psum(v, "b"), mesh, P("a", "b"), P("a"))
        f = ft.jit(lambda v: part(jnp.sin(v) * 2).sum(0))
        close(f(x), (2 * np.sin(x)).reshape(4, 2, 2).sum((0, 1)))
        assert f(ft.device_put(x, NamedSharding(mesh, P("b")))).is_fully_replicated
        found = ft.shard_map(lambda v: lax.psum(v, "b"), mesh, P("a", "b"), P("a"))(x)
        close(found, expected)
        assert np.asarray(outer(x)).shape == (4, 2)


def test_partly_manual():
    mesh = mesh_of(2, 2)
    x = np.arange(16, dtype=np.float32).reshape(4, 4)
    f = ft.shard_map(lambda v: lax.psum(jnp.sin(v) @ v.T, "a"), mesh, P("a"), P(),
                     axis_names={"a"})
    with ft.config.use_backend("reference"):
        halves = x.reshape(2, 2, 4)
        expected = sum(np.sin(h) @ h.T for h in halves)
        close(f(ft.device_put(x, NamedSharding(mesh, P("b")))), expected)
        close(ft.grad(lambda v: f(v).sum())(x), ft.grad(
            lambda v: sum((jnp.sin(h) @ h.T).sum() for h in v.reshape(2, 2, 4)))(jnp.asarray(x)))


def test_gradients_within_add_up_what_devices_share():
    mesh = mesh_of(4)
    rng = np.random.default_rng(0)
    x, w = normal(rng, 8, 3), normal(rng, 3)

    def loss(w, x):
        return jnp.tanh(x @ w).sum()

    expected = ft.grad(loss)(w, x)
    with ft.config.use_backend("reference"):
        shared = ft.shard_map(lambda w, x: ft.grad(loss)(w, x), mesh, (P(), P("a")), P())(w, x)
        close(shared, expected)
        own = ft.shard_map(lambda w, x: ft.grad(loss)(w, x)[None], mesh, (P(), P("a")), P("a"),
                           check_vma=False)(w, x)
        close(own.sum(0), expected)
        mean = ft.shard_map(lambda w, x: ft.grad(lambda w: lax.pmean(loss(w, x), "a"))(w), mesh,
                            (P(), P("a")), P())(w, x)
        close(mean, expected / 4)


def test_replicated_results_have_one_cotangent():
    mesh = mesh_of(2, 2)
    w = np.array([1.0, -2.0], np.float32)
    with ft.config.use_backend("reference"):
        for check in (True, False):
            f = ft.shard_map(jnp.tanh, mesh, P(), P(), check_vma=check)
            close(ft.grad(lambda v, f=f: f(v).sum())(w), 1 - np.tanh(w) ** 2)
            twice = ft.shard_map(jnp.tanh, mesh, P(), P("a"), check_vma=check)
            close(ft.grad(lambda v, f=twice: f(v).sum())(w), 2 * (1 - np.tanh(w) ** 2))


def test_effects_happen_once(capsys):
    mesh = mesh_of(2, 2)
    x = ft.device_put(np.arange(8, dtype=np.float32), NamedSharding(mesh, P("a")))
    told = []

    def f(x):
        ft.debug.print("sum {}", x.sum())
        y = ft.io_callback(lambda v: (told.append(float(v)), np.float32(v + 1))[1],
                           ft.ShapeDtypeStruct((), np.float32), x.max())
        return x + y

    close(ft.jit(f)(x), np.arange(8) + 8)
    assert told == [7.0]
    assert capsys.readouterr().out == "sum 28.0\n"

