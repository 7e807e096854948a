"""Every public function has one type and one error: eagerly, staged, compiled and under vmap."""

import warnings
import zlib

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans import lax
from tests.laws.public_functions import EXCEPTIONS, NAMESPACES

DTYPES = ("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64",
          "float16", "bfloat16", "float32", "float64", "complex64", "complex128")
SCALARS = (True, 2, 1.5, 1 + 0.5j)
WEAK = ("weak int32", "weak float32", "weak complex64")
SHAPES = ((), (3,), (2, 3), (0,), (1,), (1, 0))
FEW, MANY = 3, 40


def slots(pattern):
    """The slots of a case: a letter, with a digit where one kind of slot has two forms."""
    found = []
    for c in pattern:
        if c.isdigit():
            found[-1] += c
        else:
            found.append(c)
    return found


class Draw:
    """Arguments of one case; `seed` tells which."""

    def __init__(self, rng):
        self.rng = rng
        self.shape = SHAPES[rng.integers(len(SHAPES))]
        self.n = (3, 2, 0, 1)[rng.integers(4)]
        self.side = (2, 2, 1, 0)[rng.integers(4)]
        self.dtype = None if rng.random() < 0.5 else DTYPES[rng.integers(len(DTYPES))]

    def array(self, shape, dtypes=DTYPES):
        name = dtypes[self.rng.integers(len(dtypes))]
        if self.dtype is not None and dtypes is DTYPES and self.rng.random() < 0.7:
            name = self.dtype
        values = np.asarray(self.rng.integers(0, 4, shape) / (1 if "int" in name else 2))
        if name.startswith("weak"):
            return lax.convert_element_type(values.astype(name[5:]), name[5:], weak_type=True)
        return jnp.asarray(values).astype(name)

    def __call__(self, slot):
        rng = self.rng
        if slot in ("x", "s") and rng.random() < 0.25:
            return SCALARS[rng.integers(4)]
        if slot == "x":
            cut = rng.random()
            shape = self.shape if cut < 0.7 else () if cut < 0.85 else (1,) * len(self.shape)
            return self.array(shape, WEAK if rng.random() < 0.2 else DTYPES)
        kinds = {"s": self.shape, "v": (self.n,), "v2": (self.side,), "m": (self.side, self.side),
                 "t": (self.n, 2, 2), "g": (self.side, self.side), "f": self.shape,
                 "p": self.shape, "u": (self.n,), "i": self.shape, "i0": (), "I": (self.side, 1)}
        dtypes = {"f": ("float32", "float64", "float16"), "p": ("bool",), "u": ("uint8",),
                  "i": ("int32", "int8", "uint8", "int64"), "i0": ("int32", "int64", "uint8"),
                  "I": ("int32", "int64"),
                  "g": ("float32", "float64", "complex64", "complex128", "int32", "bfloat16")}
        weak = slot in ("s", "v", "m", "t") and rng.random() < 0.15
        x = self.array(kinds[slot], WEAK if weak else dtypes.get(slot, DTYPES))
        if slot == "g":  # well conditioned and symmetric
            x = x + x.T + 9 * jnp.eye(self.side, dtype=x.dtype)
        return jnp.minimum(x, 0) if slot in ("i", "i0", "I") else x


def outcome(call, *args):
    """The types of the results, or which error there is."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            out = call(*args)
        except Exception as error:
            assert not isinstance(error, (AssertionError, AttributeError, KeyError)), error
            return type(error).__name__
    leaves, tree = ft.tree.flatten(out)
    return str(tree), [described(x) for x in leaves]


def described(x):
    if hasattr(x, "weak_type"):
        return (tuple(x.shape), str(x.dtype), x.weak_type)
    return x


def without_axis(found):
    return found if isinstance(found, str) else (
        found[0], [(d[0][1:], *d[1:]) if isinstance(d, tuple) else d for d in found[1]])


def cases(namespace, name):
    module, table = NAMESPACES[namespace]
    function = getattr(module, name)
    for case in table[name]:
        pattern, how = case if isinstance(case, tuple) else (case, {})
        if callable(how):
            yield slots(pattern), lambda *args, how=how: how(function, *args)
        else:
            yield slots(pattern), lambda *args, how=how: function(*args, **how)


def closing(call, args, places):
    """The call as a function of the arrays, closing over the Python numbers among `args`."""
    def fun(*arrays):
        given = dict(zip(places, arrays, strict=True))
        return call(*[given.get(i, x) for i, x in enumerate(args)])

    return fun


def repeated(x):
    """Two of x along a leading axis, as weak as x."""
    return lax.broadcast_in_dim(x, (2, *x.shape), tuple(range(1, x.ndim + 1)))


def outcomes(call, args, namespace, backend):
    """What becomes of one call in every way of making it."""
    places = [i for i, x in enumerate(args) if isinstance(x, ft.Array)]
    arrays = [args[i] for i in places]
    fun = closing(call, args, places)
    found = {"eager": outcome(call, *args),
             "staged": outcome(lambda *xs: ft.eval_shape(fun, *xs), *arrays)}
    if len(arrays) < len(args) and (len(args) == 1 or not namespace.startswith("lax")):
        # beside an array lax converts a Python number, and refuses an array of another dtype
        found["staged numbers"] = outcome(lambda *xs: ft.eval_shape(call, *xs), *args)
    if backend is not None:
        with ft.config.use_backend(backend):
            found["compiled"] = outcome(ft.jit(fun), *arrays)
    if arrays:
        mapped = ft.vmap(fun, axis_size=2)
        found["vmap"] = without_axis(outcome(
            lambda *xs: ft.eval_shape(mapped, *xs), *map(repeated, arrays)))
    return found


def check(namespace, name, number, backend):
    for k, (pattern, call) in enumerate(cases(namespace, name)):
        for seed in range(number):
            at = f"{namespace}.{name}, case {k}, draw {seed}"
            draw = Draw(np.random.default_rng(zlib.crc32(at.encode())))
            args = [draw(slot) for slot in pattern]
            found = outcomes(call, args, namespace, backend)
            assert all(v == found["eager"] for v in found.values()), "\n".join([
                f"{at}, of {[described(x) for x in args]}:",
                *(f"  {k}: {v}" for k, v in found.items())])


def public(namespace):
    module, _ = NAMESPACES[namespace]
    return [n for n in module.__all__ if callable(getattr(module, n))
            and not isinstance(getattr(module, n), type)]


@pytest.mark.parametrize("namespace", NAMESPACES)
def test_every_public_function_is_in_the_table(namespace):
    _, table = NAMESPACES[namespace]
    missing = set(public(namespace)) ^ (set(table) | set(EXCEPTIONS[namespace]))
    assert not missing


ALL = [(s, n) for s in NAMESPACES for n in NAMESPACES[s][1]]


@pytest.mark.one_in(2)
@pytest.mark.parametrize(("namespace", "name"), ALL, ids=[f"{s}.{n}" for s, n in ALL])
def test_types_and_errors_are_the_same_everywhere(namespace, name):
    check(namespace, name, FEW, None)


@pytest.mark.thorough
@pytest.mark.parametrize(("namespace", "name"), ALL, ids=[f"{s}.{n}" for s, n in ALL])
def test_types_and_errors_are_the_same_in_many_draws(namespace, name):
    check(namespace, name, MANY, None)
    check(namespace, name, 2, "c")


@pytest.mark.one_in(2)
@pytest.mark.parametrize(("fun", "dtype", "weak"), [
    (lambda i, h: (2.0 * i) * h, "float16", False), (lambda i, h: 2.0 * i, "float32", True),
    (lambda i, h: True * 2 * i.astype("int8"), "int8", False),
    (lambda i, h: (jnp.asarray(True) * 2) * i.astype("int8"), "int8", False),
    (lambda i, h: (2.0 ** i) * h, "float16", False),
    (lambda i, h: jnp.clip(i, -0.5, 0.7) * h, "float16", False),
    (lambda i, h: ft.grad(jnp.sin)(1.0) * h, "float16", False),
    (lambda i, h: jnp.full(2, 1.5) * h, "float16", False),
    (lambda i, h: lax.map(lambda a: a * 2, jnp.asarray([True])) * i.astype("int8")[0], "int8",
     False),
    (lambda i, h: jnp.where(i > 0, 1.0, 2.0) * h, "float16", False)])
@pytest.mark.parametrize("defaults", [("float32", "int32"), ("float64", "int64")])
def test_weak_numbers_yield_to_the_arrays_beside_them(fun, dtype, weak, defaults):
    with ft.default_dtypes(*defaults):
        args = jnp.arange(2, dtype="int32"), jnp.ones(2, "float16")
        expected = dtype if not weak else defaults[0]
        for out in (fun(*args), ft.jit(fun)(*args), ft.eval_shape(fun, *args),
                    ft.vmap(fun)(*(x[None] for x in args))[0]):
            assert (str(out.dtype), out.weak_type) == (expected, weak)
