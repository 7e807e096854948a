"""What consoles and notebooks show: signatures, documentation, names to complete, reprs."""

import importlib
import inspect
import subprocess
import sys
from functools import partial
from pathlib import Path
from types import ModuleType

import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans.custom_batching import custom_vmap

ROOT = Path(__file__).parents[1]


def public_modules():
    found, todo = {}, ["functrans"]
    while todo:
        module = importlib.import_module(todo.pop())
        found[module.__name__] = module
        todo += [value.__name__ for name in module.__all__
                 if isinstance(value := getattr(module, name), ModuleType)
                 and value.__name__.startswith("functrans.")
                 and value.__name__ not in found and hasattr(value, "__all__")]
    return found


MODULES = public_modules()


@pytest.mark.parametrize("name", MODULES)
def test_a_module_completes_what_it_offers(name):
    module = MODULES[name]
    assert dir(module) == sorted(module.__all__)


def test_all_namespaces_are_reached():
    assert {"functrans.numpy.linalg", "functrans.scipy.signal.windows", "functrans.nn",
            "functrans.scipy.sparse.linalg", "functrans.lax.linalg"} <= set(MODULES)
    assert len(MODULES) > 50


def test_an_array_completes_its_public_names():
    x = jnp.ones(3)
    seen = [dir(x), dir(ft.Array)]
    ft.jit(lambda x: seen.append(dir(x)))(x)
    for names in seen:
        assert {"at", "mean", "shape", "T", "__add__"} <= set(names)
        assert not [n for n in names if n.startswith("_") and not n.endswith("_")]
        assert "numpy" not in names  # of other libraries' arrays


def energy(x, scale: float = 2.0, *, offset=0.0):
    """The energy of x."""
    return scale * (x ** 2).sum() + offset


TRANSFORMS = {
    "jit": ft.jit, "grad": ft.grad, "value_and_grad": ft.value_and_grad, "vmap": ft.vmap,
    "checkpoint": ft.checkpoint, "custom_jvp": ft.custom_jvp, "custom_vjp": ft.custom_vjp,
    "custom_vmap": custom_vmap, "jacfwd": ft.jacfwd, "jacrev": ft.jacrev, "hessian": ft.hessian,
    "named_call": ft.named_call, "checked": ft.checked,
    "jit of grad": lambda f: ft.jit(ft.grad(f)), "vmap of jit": lambda f: ft.vmap(ft.jit(f)),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_a_transform_keeps_signature_and_documentation(name):
    made = TRANSFORMS[name](energy)
    assert inspect.signature(made) == inspect.signature(energy)
    assert made.__doc__ == energy.__doc__
    assert inspect.unwrap(made) is energy
    assert made.__module__ == __name__


def square_sum(x, y):
    return (x * x).sum() * y


X, Y = jnp.array([1.0, 2.0]), jnp.array(3.0)
DECORATED = {
    "jit": (ft.jit, {"static_argnums": 1}, (X, 3.0)),
    "grad": (ft.grad, {"argnums": 1}, (X, Y)),
    "value_and_grad": (ft.value_and_grad, {"argnums": (0, 1)}, (X, Y)),
    "vmap": (ft.vmap, {"in_axes": (0, None)}, (X[:, None], Y)),
    "checkpoint": (ft.checkpoint, {"prevent_cse": False}, (X, Y)),
    "jacfwd": (ft.jacfwd, {"argnums": 1}, (X, Y)),
    "jacrev": (ft.jacrev, {"argnums": 1}, (X, Y)),
    "hessian": (ft.hessian, {"argnums": 0}, (X, Y)),
}


@pytest.mark.parametrize("name", DECORATED)
def test_a_transform_with_options_is_a_decorator(name):
    transform, options, args = DECORATED[name]
    expected = ft.tree.leaves(transform(square_sum, **options)(*args))
    for decorator in (transform(**options), partial(transform, **options)):
        made = decorator(square_sum)
        assert inspect.signature(made) == inspect.signature(square_sum)
        results = ft.tree.leaves(made(*args))
        assert [x.tolist() for x in results] == [x.tolist() for x in expected]


def test_a_jitted_function_says_what_it_is():
    f = ft.jit(energy)
    assert repr(f) == "<jit of energy(x, scale, offset): 0 programs>"
    f(X)
    assert repr(f) == "<jit of energy(x, scale, offset): 1 program>"
    f(X.astype("float16"))
    assert repr(f) == "<jit of energy(x, scale, offset): 2 programs>"
    f.clear_cache()
    assert repr(f) == "<jit of energy(x, scale, offset): 0 programs>"
    assert repr(ft.jit(lambda *xs, **rest: xs)) == "<jit of <lambda>(*xs, **rest): 0 programs>"
    assert repr(ft.jit(jnp.sin)).startswith("<jit of sin(")


def test_a_jitted_function_without_a_signature_says_so():
    assert repr(ft.jit(max)) == "<jit of max(...): 0 programs>"


def test_a_clone_that_was_not_built_says_what_to_do():
    # without site-packages: as where a clone's folder hides an install
    done = subprocess.run([sys.executable, "-S", "-c", "import functrans"], cwd=ROOT,
                          capture_output=True, text=True, env={})
    assert done.returncode == 1
    assert "has no compiled runtime" in done.stderr and "pip install -e ." in done.stderr
    assert str(ROOT / "functrans") in done.stderr
