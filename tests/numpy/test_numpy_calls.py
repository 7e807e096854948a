"""Any NumPy function takes our concrete arrays; traced ones are staged, or refused by name."""

import numpy as np
import pytest
import scipy.special
from numpy_calls import NO_ARRAYS, PRODUCTS, calls_of, find, public_functions

import functrans as ft
import functrans.numpy as jnp
import functrans.scipy.special as special
from functrans.core.errors import FunctransError
from functrans.numpy_alternatives import SPECIAL

EXCEPTIONS = {name for names in NO_ARRAYS.values() for name in names.split()}
NAMES = [name for name, _ in public_functions() if name not in EXCEPTIONS]


# kinds of dtypes in which a result differs from NumPy's, as JAX's does
MAY_DIFFER = {"histogram": "fi", "histogram2d": "if", "histogramdd": "if", "poly": "cf",
              "linalg.eigvals": "cf", "linalg.eig": "cf"}


def places(tree, f):
    """`tree` with f of every ndarray."""
    if isinstance(tree, np.ndarray):
        return f(tree)
    if isinstance(tree, (list, tuple)):
        return type(tree)(places(x, f) for x in tree)
    if isinstance(tree, dict):
        return {k: places(v, f) for k, v in tree.items()}
    return tree


def agree(ours, theirs, path=""):
    """The same values, in the same structure; ours may have fewer bits."""
    if isinstance(theirs, (tuple, list)) and not isinstance(ours, (np.ndarray, ft.Array)):
        assert len(ours) == len(theirs), path
        for i, (a, b) in enumerate(zip(ours, theirs, strict=True)):
            agree(a, b, f"{path}[{i}]")
        return
    if not isinstance(theirs, (np.ndarray, np.number, np.bool_, float, int, complex)):
        assert ours == theirs, path
        return
    a, b = np.asarray(ours), np.asarray(theirs)
    kinds = a.dtype.kind + b.dtype.kind
    same = kinds[0] == kinds[1] or kinds in ("iu", "ui") or kinds == MAY_DIFFER.get(
        path.partition("[")[0])
    assert a.shape == b.shape and same, f"{path}: {a.dtype}{a.shape}, {b.dtype}{b.shape}"
    if b.dtype.kind in "fc":
        np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-5, err_msg=path)
    else:
        np.testing.assert_array_equal(a, b, err_msg=path)


def test_every_public_function_is_in_a_table():
    known = set(PRODUCTS) | EXCEPTIONS
    missing = [name for name, _ in public_functions()
               if not calls_of(name) and name not in known]
    assert not missing
    assert {name for name, _ in public_functions()} | {"errstate", "row_stack"} >= EXCEPTIONS


@pytest.mark.parametrize("name", [n for n in NAMES if calls_of(n)])
@pytest.mark.filterwarnings("ignore")
def test_concrete_arrays(name):
    function = find(name)
    for args, kwargs in calls_of(name):
        expected = function(*args, **kwargs)
        result = function(*places(args, jnp.asarray), **places(kwargs, jnp.asarray))
        agree(result, expected, name)


@pytest.mark.one_in(6)
@pytest.mark.parametrize("name", [n for n in NAMES if calls_of(n)])
@pytest.mark.filterwarnings("ignore")
def test_traced_arrays(name):
    """Staged with NumPy's result, or an error that names what does it in functrans."""
    function = find(name)
    for args, kwargs in calls_of(name):
        arrays = []
        places([args, kwargs], arrays.append)
        if not arrays:
            continue

        def traced(*values, args=args, kwargs=kwargs):
            queue = iter(values)
            given, named = places([args, kwargs], lambda _: next(queue))
            return function(*given, **named)

        try:
            result = ft.jit(traced)(*map(jnp.asarray, arrays))
        except FunctransError as error:
            assert "functrans." in str(error), error
        except TypeError as error:  # the result is no array: NumPy's answer about a type
            assert "return" in str(error), error
        else:
            agree(result, function(*args, **kwargs), name)


@pytest.mark.parametrize("name", PRODUCTS)
def test_decompositions(name):
    args, product = PRODUCTS[name]
    args = args if isinstance(args, tuple) else (args,)
    expected = find(name)(*args)
    result = find(name)(*places(args, jnp.asarray))
    agree(product(*map(np.asarray, result)), product(*expected), name)


SCIPY = sorted(n for n in dir(scipy.special) if isinstance(getattr(scipy.special, n), np.ufunc))


@pytest.mark.parametrize("name", SCIPY)
@pytest.mark.filterwarnings("ignore")
def test_ufuncs_of_scipy(name):
    ufunc = getattr(scipy.special, name)
    kinds = next((t for t in ufunc.types if t.startswith("d" * ufunc.nin)), ufunc.types[-1])
    draws = [np.array([0.25, 0.5, 0.75], np.float64) if k in "dfDF" else
             np.array([1, 2, 3], np.int64) for k in kinds[:ufunc.nin]]
    agree(ufunc(*map(jnp.asarray, draws)), ufunc(*draws), name)
    with pytest.raises(FunctransError, match=r"functrans\.") as caught:
        ft.jit(ufunc)(*map(jnp.asarray, draws))
        raise FunctransError("functrans. staged")  # a ufunc that NumPy has too
    if ufunc.__name__ in SPECIAL:
        text = str(caught.value)
        assert f"functrans.scipy.special.{ufunc.__name__}" in text or "staged" in text


def test_alternatives_exist():
    ours = {n for n in special.__all__ if n in SCIPY}
    assert ours == SPECIAL
