"""Names and arguments of other libraries, and slips: the message says what does the same here."""

import collections
import dataclasses
import importlib
import inspect
import re

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans.core.errors import (
    ArgumentError,
    ConcretizationError,
    IndexingError,
    KeyTypeError,
    MissingNameError,
    NonArrayError,
)
from functrans.core.foreign_names import FUNCTIONS, KEYWORDS, METHODS, MODULE_NAMES
from functrans.core.missing_names import PUBLIC_MODULES
from tests.errors.expect import caught

TABLES = [FUNCTIONS, METHODS, *MODULE_NAMES.values()]
CODE = sorted({code.partition("  #")[0] for table in TABLES for code in table.values()})
x = jnp.arange(6.0)
matrix = x.reshape(2, 3)


@pytest.mark.parametrize("module, name, fix", [
    ("functrans", "tree_map", "ft.tree.map(fun, tree)"),
    ("functrans", "xmap", "ft.vmap(fun, axis_name=...)"),
    ("functrans", "sin", "functrans.numpy.sin"), ("functrans", "synchronize", "ft.block_until"),
    ("functrans", "scan", "functrans.lax.scan"), ("functrans", "grd", "functrans.grad"),
    ("functrans.numpy", "matmull", "functrans.numpy.matmul"),
    ("functrans.numpy", "relu", "functrans.nn.relu"), ("functrans.numpy", "cat", "jnp.concatenate"),
    ("functrans.numpy", "unsqueeze", "jnp.expand_dims"),
    ("functrans.numpy", "Array", "functrans.Array"),
    ("functrans.numpy.linalg", "inverse", "jnp.linalg.inv(x)"),
    ("functrans.config", "debug_nans", "ft.debug_nans()"),
    ("functrans.random", "PRNGkey", "functrans.random.PRNGKey"),
    ("functrans.random", "randn", "ft.random.normal(key, shape)"),
    ("functrans.lax", "while_lop", "functrans.lax.while_loop"),
    ("functrans.lax", "topk", "ft.lax.top_k(x, k)"), ("functrans.nn", "Linear", "x @ w + b"),
    ("functrans.scipy.special", "errf", "functrans.scipy.special.erf"),
])
def test_a_missing_name_of_a_module_has_an_answer(module, name, fix):
    caught(lambda: getattr(importlib.import_module(module), name), MissingNameError,
           f"module {module!r} has no attribute {name!r}", f"Fix: {fix}")
    assert not hasattr(importlib.import_module(module), name)


@pytest.mark.parametrize("module", PUBLIC_MODULES)
def test_every_public_module_corrects_slips(module):
    public = importlib.import_module(module)
    long = [name for name in public.__all__ if len(name) > 6 and not name.startswith("__")]
    for name in long:
        slip = name[:3] + name[4:]
        if not hasattr(public, slip):
            with pytest.raises(MissingNameError) as error:
                getattr(public, slip)
            assert error.value.fix, slip
    with pytest.raises(AttributeError, match="__wrapped_by_nobody__"):
        _ = public.__wrapped_by_nobody__


@pytest.mark.parametrize("code", CODE)
def test_what_the_tables_advise_exists(code):
    for path in re.findall(r"\b(?:ft|jnp)(?:\.\w+)+", code):
        root, *rest = path.split(".")
        value = {"ft": ft, "jnp": jnp}[root]
        for part in rest:
            value = getattr(value, part)
    for attribute in re.findall(r"\bx\.(\w+)", code):
        assert hasattr(matrix, attribute), attribute


def test_arguments_that_the_tables_advise_exist():
    functions = [getattr(importlib.import_module(m), n) for m in PUBLIC_MODULES
                 for n in importlib.import_module(m).__all__]
    known = set()
    for fun in functions:
        if inspect.isfunction(fun):
            known.update(inspect.signature(fun).parameters)
    assert {name for names in KEYWORDS.values() for name in names} <= known


@pytest.mark.parametrize("name", METHODS)
def test_a_missing_attribute_of_arrays_and_tracers_has_an_answer(name):
    caught(lambda: getattr(x, name), MissingNameError, f"no attribute {name!r}", METHODS[name][:9])
    caught(lambda: ft.jit(lambda v: getattr(v, name))(x), MissingNameError, METHODS[name][:9])
    assert not hasattr(x, name) and name not in dir(x) and not hasattr(ft.Array, name)


@pytest.mark.parametrize("call, keyword, usage", [
    (lambda: x.sum(dim=0), "dim", "axis=..."), (lambda: jnp.sum(x, dim=0), "dim", "axis=..."),
    (lambda: ft.jit(lambda v: v.sum(dim=0))(x), "dim", "axis=..."),
    (lambda: jnp.mean(x, keepdim=True), "keepdim", "keepdims=..."),
    (lambda: ft.vmap(jnp.sin, in_dims=0), "in_dims", "in_axes=..."),
    (lambda: ft.grad(jnp.sin, argnum=0), "argnum", "argnums=..."),
    (lambda: ft.jit(jnp.sin, static_args=0), "static_args", "static_argnums=..."),
    (lambda: ft.random.normal(ft.random.key(0), size=(3,)), "size", "shape=..."),
    (lambda: jnp.concatenate([x], axs=0), "axs", "axis=..."),
])
def test_an_unknown_keyword_names_the_one_that_was_meant(call, keyword, usage):
    caught(call, ArgumentError, f"unexpected keyword argument {keyword!r}", usage)


def test_too_many_arguments_show_the_signature():
    caught(lambda: jnp.concatenate(x, x, x, x), ArgumentError, "positional arguments",
           "concatenate(arrays, axis=0")


@pytest.mark.parametrize("call, fix", [
    (lambda key: ft.random.normal((3,), key), "ft.random.normal(key, ...)"),
    (lambda key: ft.random.uniform(3, key), "ft.random.uniform(key, ...)"),
    (lambda key: ft.random.randint((3,), key, 0, 5), "ft.random.randint(key, ...)"),
    (lambda key: ft.random.split(3, key), "ft.random.split(key, ...)"),
    (lambda key: ft.random.normal((3,)), "key = ft.random.key(0); ft.random.normal(key, ...)"),
])
def test_the_key_comes_first(call, fix):
    caught(lambda: call(ft.random.key(0)), KeyTypeError, fix)


def test_at_is_indexed():
    caught(lambda: x.at(0), IndexingError, "x.at[0].set(value)")


@pytest.mark.parametrize("shape", [(3, 2), ((3, 2),), (-1,)])
def test_view_takes_no_shape(shape):
    caught(lambda: x.view(*shape), ArgumentError, "view takes a dtype", "x.reshape(")


@dataclasses.dataclass
class Params:
    w: object


class Settings(dict):
    pass


class Model:
    def __init__(self):
        self.w = x


class Tensor:
    def __dlpack__(self, **kwargs):
        raise AssertionError

    def __iter__(self):
        return iter([1.0])


@pytest.mark.parametrize("value, fix", [
    (Params(x), "register_dataclass(Params)"), (Settings(w=x), "dict(x), or register"),
    (Model(), "register_pytree_node(Model"), (Tensor(), "from_dlpack(x)"),
    ("adam", "static_argnums"), (len, "static_argnums"),
], ids=["dataclass", "dict", "object", "tensor", "str", "function"])
@pytest.mark.parametrize("transform", [ft.jit, ft.vmap, ft.grad],
                         ids=["jit", "vmap", "grad"])
def test_a_leaf_that_is_no_array_says_how_it_becomes_one(value, fix, transform):
    caught(lambda: transform(lambda p: p)(value), NonArrayError, type(value).__name__, fix)


def test_functions_of_other_libraries_are_named_as_such():
    caught(lambda: ft.jit(np.frombuffer)(1.0), ConcretizationError,
           "does not know was called with a traced array", "pure_callback")


def test_a_namedtuple_may_be_registered():
    Pair = collections.namedtuple("Pair", "a b")
    ft.tree_util.register_pytree_node(Pair, lambda p: ((p.a,), p.b), lambda b, a: Pair(*a, b))
    assert len(ft.tree.leaves(Pair(x, "name"))) == 1
    assert ft.jit(lambda p: Pair(p.a * 2, p.b))(Pair(x, "name")).b == "name"
