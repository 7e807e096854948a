"""Arrays, functions and programs go to other processes: by their name, or by value."""

import pickle
import subprocess
import sys

import cloudpickle
import numpy as np
import pytest

import functrans as ft
from functrans import numpy as jnp
from functrans.core.primitive import Primitive
from functrans.sharding import NamedSharding, P
from tests.distributed.launch import ROOT, environment
from tests.sharding.meshes import mesh_of

X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)
W = np.linspace(0, 1, 4, dtype=np.float32)


def loss(w, x):
    return (jnp.tanh(x @ w) ** 2).sum()


@ft.jit
def decorated(w, x):
    return loss(w, x) + 1


SCALE = jnp.asarray(np.float32(3))
FUNCTIONS = {
    "plain": loss,
    "decorated": decorated,
    "jit": ft.jit(loss),
    "static": ft.jit(lambda w, x, n=2: loss(w, x) * n, static_argnames="n"),
    "closure": ft.jit(lambda w, x: loss(w, x) * SCALE),
    "grad": ft.grad(loss),
    "value_and_grad": ft.jit(ft.value_and_grad(loss)),
    "vmap": ft.jit(ft.vmap(loss, in_axes=(None, 0))),
    "hessian": ft.hessian(loss),
    "checkpoint": ft.grad(ft.checkpoint(loss)),
    "norms": ft.jit(ft.per_sample.norms(lambda w, x: loss(w, x[None]))),
    "scan": ft.jit(lambda w, x: ft.lax.scan(lambda c, r: (c * r.sum(), c), w, x)),
    "partial": ft.tree_util.Partial(jnp.dot, X),
    "linear": ft.linearize(loss, W, X)[1],
}


def called(name, f):
    return f(W) if name == "partial" else f(W, X)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_are_pickled_by_value(name):
    f = FUNCTIONS[name]
    expected = called(name, f)
    g = cloudpickle.loads(cloudpickle.dumps(f))
    for a, b in zip(ft.tree.leaves(called(name, g)), ft.tree.leaves(expected), strict=True):
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


def test_functions_of_modules_are_pickled_by_name():
    assert pickle.loads(pickle.dumps(decorated)) is decorated
    g = pickle.loads(pickle.dumps(FUNCTIONS["jit"]))  # of a function with a name
    np.testing.assert_array_equal(g(W, X), FUNCTIONS["jit"](W, X))
    assert g is not FUNCTIONS["jit"]


@pytest.mark.parametrize("space", ["numpy", "lax"])
def test_operations_are_themselves(space):
    module = getattr(ft, space)
    kind = type(ft.numpy.sin)
    operations = {k: v for k, v in vars(module).items() if isinstance(v, kind)}
    assert len(operations) > 30
    for name, op in operations.items():
        assert pickle.loads(pickle.dumps(op)) is op, name


def test_primitives_are_themselves():
    jaxpr = ft.make_jaxpr(ft.grad(lambda w: loss(w, X)))(W).jaxpr
    primitives = {e.primitive for e in jaxpr.eqns}
    assert len(primitives) > 3
    for p in primitives:
        assert isinstance(p, Primitive)
        assert pickle.loads(pickle.dumps(p)) is p


def test_exported_programs():
    exported = ft.export.export(ft.jit(loss))(W, X)
    for dumps in (pickle.dumps, cloudpickle.dumps):
        again = pickle.loads(dumps(exported))
        np.testing.assert_array_equal(again.call(W, X), exported.call(W, X))


def test_arrays_and_shardings():
    for x in (jnp.asarray(X), jnp.asarray(X).astype("bfloat16"), ft.random.key(3),
              ft.device_put(X[:2], NamedSharding(mesh_of(2), P("a")))):
        y = pickle.loads(pickle.dumps(x))
        assert y.dtype == x.dtype
        assert str(y) == str(x)


def test_a_program_of_main_goes_to_another_process(tmp_path):
    """The class of functions that engines ship: those of a script or a notebook."""
    script = tmp_path / "script.py"
    script.write_text(
        "import sys, cloudpickle, functrans as ft, functrans.numpy as jnp\n"
        "scale = jnp.arange(3.)\n"
        "@ft.jit\n"
        "def f(x):\n"
        "    return jnp.sin(x) * scale\n"
        "g = ft.jit(ft.vmap(ft.grad(lambda x: f(x).sum())))\n"
        "sys.stdout.buffer.write(cloudpickle.dumps((f, g)))\n")
    data = subprocess.run([sys.executable, str(script)], cwd=ROOT, env=environment(),
                          capture_output=True, check=True).stdout
    f, g = pickle.loads(data)
    x = np.ones(3, np.float32)
    np.testing.assert_allclose(f(x), np.sin(x) * np.arange(3), rtol=1e-6)
    np.testing.assert_allclose(g(x[None])[0], np.cos(x) * np.arange(3), rtol=1e-6)
