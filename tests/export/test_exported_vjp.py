"""Exported programs of derivatives: `Exported.vjp`, to the order that was exported."""

import subprocess
import sys

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans.core.errors import ArgumentError, ExportError
from functrans.export import deserialize, export

X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)
W = np.linspace(0, 2, 8, dtype=np.float32).reshape(4, 2)


def through_bytes(exported):
    return deserialize(exported.serialize())


def network(params, x, *, scale=2.0):
    return {"h": ft.nn.gelu(x @ params["w"]) * scale, "n": jnp.argmax(x)}


def test_cotangents_of_leaves():
    loaded = through_bytes(export(network)({"w": W}, X, scale=3.0))
    pullback = through_bytes(loaded.vjp())
    assert pullback.fun_name == "vjp_network" and loaded.has_vjp()
    ct = np.ones((3, 2), np.float32)
    got = pullback.call(W, X, 3.0, ct, None)
    expected = ft.grad(lambda w, x, s: network({"w": w}, x, scale=s)["h"].sum(), (0, 1, 2))(
        W, X, 3.0)
    for a, b in zip(got, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
    assert [str(a) for a in pullback.out_avals] == ["f32[4,2]", "f32[3,4]", "f32[]"]


def test_integers_have_none():
    exported = export(lambda x, i: (x * i, i + 1))(X, np.int32(3))
    x, i = exported.vjp().call(X, np.int32(3), X, None)
    assert i is None
    np.testing.assert_allclose(x, 3 * X)


def test_derivatives_of_derivatives():
    fun = lambda x: jnp.sin(x) * x
    first = export(fun)(0.5).vjp()
    second = first.vjp()  # of x and the cotangent
    x, ct = second.call(0.5, 1.0, 1.0)
    assert float(x) == pytest.approx(float(ft.grad(ft.grad(fun))(0.5)), rel=1e-5)
    assert float(ct) == pytest.approx(float(ft.grad(fun)(0.5)), rel=1e-5)


@ft.custom_vjp
def clipped(x):
    return jnp.exp(x)


clipped.defvjp(lambda x: (clipped(x), x), lambda x, ct: (ct * jnp.minimum(clipped(x), 2.0),))


@pytest.mark.parametrize("order", [0, 1, 2])
def test_rules_to_the_order_that_was_asked_for(order):
    exported = through_bytes(export(clipped, vjp_order=order)(0.1))
    derivative = clipped
    for k in range(order):
        assert exported.has_vjp() and exported.vjp_order == order - k
        derivative = ft.grad(derivative)
        exported = exported.vjp()
        if k == 0:
            assert float(exported.call(0.1, 1.0)[0]) == pytest.approx(float(derivative(0.1)))
    assert not exported.has_vjp()
    with pytest.raises(ExportError, match="without this derivative"):
        exported.vjp()


def test_of_symbolic_sizes_and_their_constraints():
    def fun(x, labels):
        assert 2 * x.shape[0] > 7
        return -jnp.take_along_axis(ft.nn.log_softmax(x), labels[:, None], 1).mean()

    labels = np.array([0, 1, 0, 1, 1], np.int32)
    x = np.arange(10, dtype=np.float32).reshape(5, 2)
    jitted = ft.jit(fun, dynamic_shapes={"x": {0: "B"}, "labels": {0: "B"}})
    pullback = through_bytes(export(jitted)(x, labels).vjp())
    assert str(pullback.in_avals[0]) == "f32[B,2]"
    for n in (4, 5):
        got, nothing = pullback.call(x[:n], labels[:n], 1.0)
        assert nothing is None
        np.testing.assert_allclose(got, ft.grad(fun)(x[:n], labels[:n]), rtol=1e-5, atol=1e-6)
    with pytest.raises(ArgumentError, match=r"exported for 2\*B > 7, called with B = 3"):
        pullback.call(x[:3], labels[:3], 1.0)


def test_in_another_process_without_the_source(tmp_path):
    ft.export.save(export(clipped, vjp_order=1)(0.1), tmp_path / "f.ftx")
    code = ("import functrans as ft; v = ft.export.load('f.ftx').vjp(); "
            "ft.export.save(v, 'v.ftx'); print(float(ft.export.load('v.ftx').call(1.5, 2.0)[0]))")
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True, text=True,
                          capture_output=True)
    assert float(done.stdout) == 4.0
