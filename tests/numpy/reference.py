"""Runs a function of functrans.numpy and NumPy's of the same name on the same arguments."""

from typing import Any

import numpy as np

import functrans.numpy as jnp

# What NumPy computes in 64 bits by default is 32 bits wide here.
NARROW = {
    np.dtype("float64"): np.dtype("float32"), np.dtype("int64"): np.dtype("int32"),
    np.dtype("uint64"): np.dtype("uint32"), np.dtype("complex128"): np.dtype("complex64")}


def is_array(x: Any) -> bool:
    return isinstance(x, (np.ndarray, np.generic)) or type(x).__name__ == "ArrayImpl" or hasattr(
        x, "weak_type")


def on_arrays(f: Any, tree: Any) -> Any:
    """f applied to every NumPy array in nested containers."""
    if isinstance(tree, np.ndarray):
        return f(tree)
    if isinstance(tree, (list, tuple)):
        return type(tree)(on_arrays(f, x) for x in tree)
    if isinstance(tree, dict):
        return {k: on_arrays(f, x) for k, x in tree.items()}
    return tree


def wide(tree: Any) -> str:
    """The kinds in which an argument has 64 bits, so that the result is not narrowed."""
    found = []
    on_arrays(lambda x: found.append(x.dtype.kind if x.dtype in NARROW else ""), tree)
    kinds = "".join(found)
    return kinds + "fc" * ("f" in kinds or "c" in kinds)


def check(ours: Any, theirs: Any, wide: str = "", dtype: bool = True, tol: float = 2e-5
          ) -> None:
    """Assert that both results have one structure, one shape, one dtype and close values."""
    if isinstance(theirs, (list, tuple)):
        assert isinstance(ours, (list, tuple)) and len(ours) == len(theirs)
        for a, b in zip(ours, theirs, strict=True):
            check(a, b, wide, dtype, tol)
        return
    expected = np.asarray(theirs)
    value = np.asarray(ours)
    assert value.shape == expected.shape, f"shape {value.shape}, NumPy {expected.shape}"
    if dtype and is_array(theirs):
        wanted = expected.dtype
        if wanted.kind not in wide:
            wanted = NARROW.get(wanted, wanted)
        assert value.dtype == wanted, f"dtype {value.dtype}, NumPy {expected.dtype}"
    if expected.dtype.kind in "fc":
        np.testing.assert_allclose(value, expected, rtol=tol, atol=tol)
    else:
        np.testing.assert_array_equal(value, expected)


def compare(name: str, *args: Any, tol: float = 2e-5, dtype: bool = True, **kwargs: Any) -> None:
    """Call both functions and check one result against the other."""
    with np.errstate(all="ignore"):
        theirs = getattr(np, name)(*args, **kwargs)
    to_ours = jnp.asarray
    ours = getattr(jnp, name)(*on_arrays(to_ours, args), **on_arrays(to_ours, kwargs))
    check(ours, theirs, wide((args, kwargs)), dtype, tol)


def normal(*shape: int, dtype: Any = np.float32, seed: int = 0) -> np.ndarray:
    """Normally distributed values of a dtype."""
    rng = np.random.default_rng(seed + sum(shape))
    x = rng.normal(size=shape) * 2
    if np.dtype(dtype).kind == "c":
        x = x + 1j * rng.normal(size=shape)
    return np.asarray(x).astype(dtype)


def integers(*shape: int, low: int = -5, high: int = 6, dtype: Any = np.int32, seed: int = 0
             ) -> np.ndarray:
    """Whole numbers in [low, high)."""
    return np.random.default_rng(seed + sum(shape)).integers(low, high, shape).astype(dtype)


def with_nan(*shape: int, seed: int = 0) -> np.ndarray:
    """Normal values, about a quarter of them NaN."""
    x = normal(*shape, seed=seed)
    x[np.random.default_rng(seed).random(shape) < 0.25] = np.nan
    return x
