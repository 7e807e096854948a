"""The Python array API, beside its strict implementation on NumPy, and libraries written for it."""

import inspect
import itertools
import json
import subprocess
import sys
from pathlib import Path

import array_api_compat
import array_api_extra as xpx
import array_api_strict as strict
import einops
import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans.core.errors import ArgumentError, ImmutableArrayError

SPECIAL = [0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 2.0, -3.0, 1e300, np.inf, -np.inf, np.nan]
OWN = {"ArrayAPIStrictFlags", "Device", "__version__"}
MODULES = [(strict, jnp), (strict.linalg, jnp.linalg), (strict.fft, jnp.fft)]


def functions():
    """Each function of the standard: its name, the strict one and ours."""
    for theirs, ours in MODULES:
        for name in theirs.__all__:
            if name not in OWN and "strict_flags" not in name:
                yield name, getattr(theirs, name), getattr(ours, name)


def test_names_and_keywords():
    assert jnp.__array_api_version__ == strict.__array_api_version__
    names = list(functions())
    assert len(names) > 190
    for name, theirs, ours in names:
        if inspect.isfunction(theirs):
            wanted = inspect.signature(theirs).parameters.values()
            keywords = {p.name for p in wanted if p.kind is p.KEYWORD_ONLY}
            assert keywords <= inspect.signature(ours).parameters.keys(), name


def test_inspection():
    seen = []
    info = jnp.asarray(1.0).__array_namespace__(api_version="2025.12").__array_namespace_info__()
    wanted = strict.__array_namespace_info__()
    assert info.capabilities() == wanted.capabilities()
    for run in (ft.jit, ft.vmap):  # no shape depends on what is traced
        run(lambda x: seen.append(info.capabilities()["boolean indexing"]))(jnp.ones(2))
    assert ft.grad(lambda x: x[x > 1].sum())(jnp.arange(3.0)).tolist() == [0, 0, 1]
    assert seen == [False, False]
    kinds = [None, "bool", "signed integer", "unsigned integer", "integral", "real floating",
             "complex floating", "numeric", ("bool", "real floating"), ()]
    for kind in kinds:
        assert info.dtypes(kind=kind).keys() == wanted.dtypes(kind=kind).keys(), kind
    assert info.dtypes()["int16"] == np.int16
    assert info.default_device() in info.devices() == tuple(ft.devices())
    assert info.default_dtypes()["real floating"] == np.float32
    with ft.default_dtypes("float64", "int64"):
        defaults = info.default_dtypes()
        assert defaults["complex floating"] == np.complex128 and defaults["indexing"] == np.int64
    with pytest.raises(ArgumentError, match="kind='number'"):
        info.dtypes(kind="number")
    with pytest.raises(ArgumentError, match=r"no revision '1999.12'"):
        jnp.asarray(1.0).__array_namespace__(api_version="1999.12")


def test_promotion():
    names = strict.__array_namespace_info__().dtypes(kind="numeric")
    for a, b in itertools.product(names, names):
        try:
            wanted = strict.result_type(getattr(strict, a), getattr(strict, b))
        except TypeError:  # the standard leaves it open
            continue
        assert jnp.result_type(np.dtype(a), np.dtype(b)) == wanted._np_dtype, (a, b)


@pytest.mark.parametrize("name", [
    "abs", "acos", "acosh", "asin", "asinh", "atan", "atanh", "ceil", "cos", "cosh", "exp", "expm1",
    "floor", "isfinite", "isinf", "isnan", "log", "log10", "log1p", "log2", "negative",
    "reciprocal", "round", "sign", "signbit", "sin", "sinh", "sqrt", "square", "tan", "tanh",
    "trunc"])
@pytest.mark.parametrize("run", [lambda f: f, ft.jit], ids=["eager", "jit"])
def test_special_values(name, run):
    x = np.array(SPECIAL)
    with np.errstate(all="ignore"):
        wanted = np.asarray(getattr(strict, name)(strict.asarray(x)))
    got = np.asarray(run(getattr(jnp, name))(x))
    assert got.dtype == wanted.dtype
    np.testing.assert_allclose(got, wanted, rtol=1e-15)
    np.testing.assert_array_equal(np.signbit(got[wanted == 0]), np.signbit(wanted[wanted == 0]))


@pytest.mark.parametrize("name", [
    "add", "atan2", "copysign", "divide", "floor_divide", "hypot", "logaddexp", "maximum",
    "minimum", "multiply", "nextafter", "pow", "remainder", "subtract"])
@pytest.mark.parametrize("run", [lambda f: f, ft.jit], ids=["eager", "jit"])
def test_special_values_of_pairs(name, run):
    x, y = map(np.ravel, np.meshgrid(SPECIAL, SPECIAL))
    with np.errstate(all="ignore"):
        wanted = np.asarray(getattr(strict, name)(strict.asarray(x), strict.asarray(y)))
    got = np.asarray(run(getattr(jnp, name))(x, y))
    np.testing.assert_allclose(got, wanted, rtol=1e-15)
    zeros = wanted == 0
    # the sign of the larger of two zeros is left open
    if name not in ("maximum", "minimum"):
        np.testing.assert_array_equal(np.signbit(got[zeros]), np.signbit(wanted[zeros]))


def test_scipy_and_scikit_learn():
    programs = Path(__file__).with_name("array_api_programs.py")
    done = subprocess.run([sys.executable, programs], capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    assert len(found) > 80 and {name: why for name, why in found.items() if why} == {}


def test_compat():
    x = jnp.asarray([3.0, 1.0])
    assert array_api_compat.array_namespace(x, 1.0) is jnp
    assert array_api_compat.is_array_api_obj(x) and not array_api_compat.is_lazy_array(x)
    assert array_api_compat.device(x) == x.device and array_api_compat.size(x) == 2
    assert array_api_compat.to_device(x, "cpu") is x


def test_updates_by_at():
    x = jnp.asarray([3.0, 1.0, 2.0])
    updated = xpx.at(x)[0].set(5.0)
    assert updated.tolist() == [5, 1, 2] and x.tolist() == [3, 1, 2]
    assert ft.jit(lambda x: xpx.at(x, x > 1).set(0.0))(x).tolist() == [0, 1, 0]
    assert ft.jit(lambda x: xpx.at(x, x > 1).add(1.0))(x).tolist() == [4, 1, 3]
    assert ft.grad(lambda x: xpx.at(x)[1].multiply(3.0).sum())(x).tolist() == [1, 3, 1]
    assert ft.vmap(lambda x, i: xpx.at(x)[i].min(-1.0))(jnp.ones((2, 2)), jnp.arange(2)).tolist() \
        == [[-1, 1], [1, -1]]
    n = np.array([3.0, 1.0])
    assert xpx.at(n)[0].set(5.0, copy=False) is n  # those of others as before
    with pytest.raises(ValueError, match="read-only"):
        xpx.at(x)[0].set(5.0, copy=False)


def test_functions_on_top():
    x = jnp.asarray(np.arange(6.0).reshape(2, 3))
    n = np.asarray(x)
    for f in (lambda x: xpx.atleast_nd(x, ndim=3), xpx.cov, lambda x: xpx.create_diagonal(x[0]),
              lambda x: xpx.kron(x, x), lambda x: xpx.pad(x, 1), xpx.sinc,
              lambda x: xpx.apply_where(x > 2, x, lambda a: a * 2, lambda a: a - 1)):
        got = f(x)
        assert isinstance(got, ft.Array)
        np.testing.assert_allclose(np.asarray(got), f(n), rtol=1e-6)


def test_einops():
    x = jnp.asarray(np.arange(24.0).reshape(2, 3, 4))
    n = np.asarray(x)
    for f in (lambda x: einops.rearrange(x, "a b c -> (a c) b"),
              lambda x: einops.reduce(x, "a b c -> a", "mean"),
              lambda x: einops.repeat(x, "a b c -> a b c d", d=2),
              lambda x: einops.einsum(x, x, "a b c, a d c -> a b d"),
              lambda x: einops.pack([x, x], "* b c")[0]):
        for run in (f, ft.jit(f)):
            got = run(x)
            assert isinstance(got, ft.Array)
            np.testing.assert_allclose(np.asarray(got), f(n))
    rows = ft.vmap(lambda x: einops.rearrange(x, "b c -> c b"))(x)
    np.testing.assert_array_equal(np.asarray(rows), n.transpose(0, 2, 1))
    gradient = ft.grad(lambda x: einops.reduce(x**2, "a b c -> ", "sum"))(x)
    np.testing.assert_array_equal(np.asarray(gradient), 2 * n)


def test_libraries_that_are_imported_later_are_told():
    code = ("import sys, functrans.numpy as jnp\n"
            "assert not any('einops' in m or 'array_api_extra' in m for m in sys.modules)\n"
            "import einops, array_api_extra\n"
            "assert einops.rearrange(jnp.ones((2, 3)), 'a b -> b a').shape == (3, 2)\n"
            "assert array_api_extra.at(jnp.ones(2))[0].set(3).tolist() == [3, 1]\n")
    subprocess.run([sys.executable, "-c", code], check=True)


def test_writing_is_still_refused():
    with pytest.raises(ImmutableArrayError, match="in place"):
        jnp.ones(3)[0] = 1
