"""Functions of many operations outside of jit: later calls have the bits, types and errors of the
first one, and transforms see the function."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans import nn
from functrans.errors import FunctransError
from functrans.numpy.common import is_traced
from functrans.scipy import special
from functrans.transforms import composite as rooms
from functrans.transforms.composite import EagerProgram, composite

RNG = np.random.default_rng(0)
X = jnp.array(RNG.normal(size=12), "float32")
POSITIVE, M = jnp.abs(X) + 0.1, jnp.array(RNG.normal(size=(5, 4)), "float32")
WITH_NAN = jnp.where(X > 0.5, jnp.nan, X)
INDEX = jnp.array([3, 0, -1, 40], "int32")
HALF = X.astype("bfloat16")

CALLS = {
    "take": lambda: jnp.take(X, INDEX),
    "take_clipped": lambda: jnp.take(M, INDEX, axis=0, mode="clip"),
    "median": lambda: jnp.median(M, axis=1, keepdims=True),
    "percentile": lambda: jnp.percentile(X, 30),
    "quantile": lambda: jnp.quantile(M, jnp.array([0.1, 0.5]), axis=0, method="lower"),
    "nanquantile": lambda: jnp.nanquantile(WITH_NAN, 0.3),
    "interp": lambda: jnp.interp(X, jnp.sort(X), POSITIVE, left=-0.0),
    "cov": lambda: jnp.cov(M), "corrcoef": lambda: jnp.corrcoef(M),
    "histogram": lambda: jnp.histogram(X, 4), "nan_to_num": lambda: jnp.nan_to_num(WITH_NAN),
    "gradient": lambda: jnp.gradient(M), "softmax": lambda: nn.softmax(M, axis=0),
    "softmax_of_half": lambda: nn.softmax(HALF), "log_softmax": lambda: nn.log_softmax(M),
    "logsumexp": lambda: nn.logsumexp(M, axis=1, return_sign=True),
    "standardize": lambda: nn.standardize(M), "glu": lambda: nn.glu(M), "celu": lambda: nn.celu(X),
    "elu": lambda: nn.elu(X, 0.5), "selu": lambda: nn.selu(HALF), "mish": lambda: nn.mish(X),
    "hard_silu": lambda: nn.hard_silu(X), "softplus": lambda: nn.softplus(X),
    "log_sigmoid": lambda: nn.log_sigmoid(X), "squareplus": lambda: nn.squareplus(X, 3),
    "nanmean": lambda: jnp.nanmean(WITH_NAN), "nanvar": lambda: jnp.nanvar(WITH_NAN, ddof=1),
    "tril": lambda: jnp.tril(M, -1), "triu": lambda: jnp.triu(M),
    "norm": lambda: jnp.linalg.norm(M),
    "norm_of_rows": lambda: jnp.linalg.norm(M, 1, axis=1), "diff": lambda: jnp.diff(X, 2),
    "convolve": lambda: jnp.convolve(X, X[:3], "same"), "polyval": lambda: jnp.polyval(X[:4], X),
    "correlate": lambda: jnp.correlate(X, X[:3]), "cross": lambda: jnp.cross(X[:3], X[3:6]),
    "bincount": lambda: jnp.bincount(jnp.abs(INDEX), length=5),
    "select": lambda: jnp.select([X > 0, X < -1], [X, POSITIVE], 0.5),
    "allclose": lambda: jnp.allclose(X, X), "isclose": lambda: jnp.isclose(X, POSITIVE, atol=0.3),
    "trapezoid": lambda: jnp.trapezoid(M, dx=0.5, axis=0),
    "unique": lambda: jnp.unique(INDEX, size=6, fill_value=9),
    "xlogy": lambda: special.xlogy(POSITIVE, POSITIVE),
    "gammainc": lambda: special.gammainc(POSITIVE, POSITIVE),
    "numpy_arrays": lambda: nn.softmax(np.asarray(M, "float64")),
}


def programs_of(call):
    """What is kept of the functions that a call enters, and its results from the first on."""
    rooms._programs.clear()
    results = [call() for _ in range(3)]
    return list(rooms._programs.values()), results


def parts(x):
    leaves, tree = ft.tree.flatten(x)
    return tree, [(a.dtype, a.shape, a.weak_type, np.asarray(a).tobytes()) for a in leaves]


@pytest.mark.parametrize("name", CALLS)
def test_later_calls_have_the_bits_of_the_first(name):
    found, (first, *later) = programs_of(CALLS[name])
    assert any(type(p) is EagerProgram for p in found) and None not in found
    assert all(parts(result) == parts(first) for result in later)
    with ft.disable_jit():
        assert parts(CALLS[name]()) == parts(first)


def test_transforms_see_the_function():
    for _ in range(3):  # with and without a program
        found = ft.vmap(ft.grad(lambda x: nn.logsumexp(x)))(M)
        np.testing.assert_allclose(found, nn.softmax(M), rtol=1e-5)
        names = {e.primitive.name for e in ft.make_jaxpr(lambda x: nn.softmax(x))(X).eqns}
        assert {"exp", "reduce_sum"} <= names
        assert ft.jvp(jnp.median, (X,), (jnp.ones(12),))[1].item() == 1.0


def test_settings_values_and_places_make_other_programs():
    calls = []

    @composite
    def f(x, y=0.0, *, how=("a", 1)):
        calls.append(y)
        return jnp.copysign(x * 1, y), jnp.zeros(2) + x[:2]

    xs = np.arange(3.0, dtype="float32")
    for y in (0.0, -0.0, 1, True):
        for _ in range(4):
            out, other = f(xs, y)
            assert np.signbit(out[1]) == (str(y) == "-0.0") and other.dtype == "float32"
    assert len(calls) == 8  # two each: at once, and for a program
    with ft.default_dtypes("float64", "int64"):
        assert [f(xs)[1].dtype for _ in range(3)] == ["float64"] * 3
    view = composite(lambda x: jnp.reshape(x, (3, 1)))
    kept = [view(xs) for _ in range(4)][1:]
    xs[:] = 7  # which no program's result sees
    assert [k.tolist() for k in kept] == [[[0.0], [1.0], [2.0]]] * 3


def test_what_is_no_program():
    for fun in (jnp.unique.__wrapped__,         # of a size that values decide
                lambda x: x if x.sum() > 0 else -x,  # asks in Python
                lambda x: (2 * x, 1.5),         # returns what is no array
                lambda x: x,                    # and no new one
                lambda x: x + is_traced(x)):    # looks whether it is traced
        call = fun if fun is jnp.unique.__wrapped__ else composite(fun)
        rooms._programs.clear()
        first, *later = [call(X) for _ in range(3)]
        own = [p for key, p in rooms._programs.items() if key[0] is call.__wrapped__]
        assert own == [None] and all(str(result) == str(first) for result in later)
    for wrong in (lambda: jnp.median(X, axis=3), lambda: nn.glu(X[:5]),
                  lambda: jnp.cross(X, X), lambda: jnp.take(X, X)):
        messages = set()
        for _ in range(4):
            with pytest.raises(FunctransError) as caught:
                wrong()
            messages.add(str(caught.value))
        assert len(messages) == 1


def test_programs_forget_the_oldest(monkeypatch):
    monkeypatch.setattr(rooms, "KEPT", 4)
    rooms._programs.clear()
    for n in range(1, 9):
        for _ in range(3):
            nn.softplus(jnp.ones(n))
    assert len(rooms._programs) == 4
