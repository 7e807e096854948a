"""Functions of functrans.numpy beside NumPy's on calls that are drawn.

Dtypes, axes (negative, tuples, None), arrays without elements, broadcasting, views that are not
contiguous, `keepdims`, `where` and `initial`. Where NumPy refuses a call, so do we.
"""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import functrans as ft
import functrans.numpy as jnp

FLOATING, WHOLE = ("f4", "f8"), ("i4", "i1", "u1", "i8")
REAL = (*FLOATING, *WHOLE, "?")
ALL = (*REAL, "c8", "c16")
Draw = Callable[[st.SearchStrategy[Any]], Any]


def values(draw: Draw, shape: tuple[int, ...], dtype: str) -> np.ndarray[Any, Any]:
    """Small numbers, many of them equal; of floating ones few NaN and infinities."""
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    kind = np.dtype(dtype).kind
    if kind == "b":
        return rng.random(shape) < 0.5
    if kind in "iu":
        return rng.integers(0 if kind == "u" else -5, 6, shape).astype(dtype)
    x = np.round(rng.standard_normal(shape) * 2, 1)
    if kind == "c":
        x = x + 1j * np.round(rng.standard_normal(shape), 1)
    elif draw(st.integers(0, 5)) == 0:
        x = np.where(rng.random(shape) < 0.2, rng.choice([np.nan, np.inf, -np.inf, -0.0]), x)
    return np.asarray(x).astype(dtype)


@st.composite
def arrays(draw, dtypes=ALL, least=0, most=3, shape=None):
    """An array, or a view of one: reversed, of every second element, transposed, broadcast."""
    if shape is None:
        shape = tuple(draw(st.lists(st.integers(0, 4), min_size=least, max_size=most)))
    dtype = draw(st.sampled_from(dtypes))
    layout = draw(st.sampled_from(("plain", "reversed", "strided", "transposed", "broadcast")))
    if layout == "strided":
        wide = values(draw, tuple(2 * n for n in shape), dtype)
        return wide[tuple(slice(None, None, 2) for _ in shape)]
    if layout == "transposed":
        return values(draw, shape[::-1], dtype).T
    if layout == "broadcast" and shape:
        return np.broadcast_to(values(draw, shape[1:], dtype), shape)
    x = values(draw, shape, dtype)
    return x[tuple(slice(None, None, -1) for _ in shape)] if layout == "reversed" else x


def axis_of(draw: Draw, x: Any, tuples: bool = True, none: bool = True) -> Any:
    options: list[Any] = [None] if none else []
    options += list(range(-x.ndim, x.ndim)) * 2
    if tuples and x.ndim:
        options += [tuple(draw(st.permutations(range(x.ndim)))[:k]) for k in range(x.ndim + 1)]
    return draw(st.sampled_from(options or [0]))


def reduction(dtypes=ALL, where=False, initial=False, keepdims=True, tuples=True,
              some=False):
    def case(draw: Draw) -> Any:
        x = draw(arrays(dtypes).filter(np.size) if some else arrays(dtypes))
        options = {"axis": axis_of(draw, x, tuples)}
        if keepdims:
            options["keepdims"] = draw(st.booleans())
        if where and draw(st.booleans()):
            shape = x.shape[draw(st.integers(0, x.ndim)):]
            options["where"] = values(draw, shape, "?")
        if initial and draw(st.booleans()):
            options["initial"] = x.dtype.type(3)
        return (x,), options

    return case


def along(dtypes=ALL, none=True, **more):
    def case(draw: Draw) -> Any:
        x = draw(arrays(dtypes))
        options = {"axis": axis_of(draw, x, False, none)}
        return (x,), {**options, **{k: draw(v) for k, v in more.items()}}

    return case


def broadcasting(count, dtypes=ALL):
    def case(draw: Draw) -> Any:
        shape = draw(st.lists(st.integers(0, 3), max_size=3))
        found = []
        for _ in range(count):
            own = [n if draw(st.integers(0, 3)) else 1 for n in shape]
            found.append(draw(arrays(dtypes, shape=tuple(own[draw(st.integers(0, len(own))):]))))
        return tuple(found), {}

    return case


def of(function):
    """A case of an array and what is drawn for it."""
    return lambda draw: function(draw, draw(arrays()))


def several(draw: Draw) -> Any:
    x = draw(arrays(least=1))
    axis = axis_of(draw, x, False)
    if axis is None:
        return ([x, draw(arrays())],), {"axis": None}
    other = list(x.shape)
    other[axis] = draw(st.integers(0, 3))
    return ([x, draw(arrays(shape=tuple(other)))],), {"axis": axis}


def stacked(draw: Draw) -> Any:
    x = draw(arrays())
    return ([x, draw(arrays(shape=x.shape))],), {"axis": draw(st.integers(-x.ndim - 1, x.ndim))}


def permuted(draw: Draw, x: Any) -> Any:
    axes = draw(st.permutations(range(x.ndim)))
    return (x, draw(st.sampled_from([None, tuple(axes), tuple(a - x.ndim for a in axes)]))), {}


def moved(draw: Draw, x: Any) -> Any:
    count = draw(st.integers(0, x.ndim))
    ends = [tuple(draw(st.permutations(range(x.ndim)))[:count]) for _ in range(2)]
    return (x, *ends), {}


def rolled(draw: Draw, x: Any) -> Any:
    axis = axis_of(draw, x)
    shift = draw(st.integers(-7, 7)) if not isinstance(axis, tuple) or draw(st.booleans()) else \
        tuple(draw(st.integers(-4, 4)) for _ in axis)
    return (x, shift, axis), {}


def taken(draw: Draw) -> Any:
    x = draw(arrays(least=1))
    axis = axis_of(draw, x, False)
    n = x.size if axis is None else x.shape[axis]
    shape = tuple(draw(st.lists(st.integers(0, 3), max_size=2))) if n else (0,)
    return (x, values(draw, shape, "i4") % max(n, 1)), {"axis": axis, "mode": "wrap"}


def taken_along(draw: Draw) -> Any:
    x = draw(arrays(least=1))
    axis = axis_of(draw, x, False, False)
    shape = list(x.shape)
    shape[axis] = draw(st.integers(0, 3)) if x.shape[axis] else 0
    return (x, values(draw, tuple(shape), "i4") % max(x.shape[axis], 1)), {"axis": axis}


def repeated(draw: Draw, x: Any) -> Any:
    axis = axis_of(draw, x, False)
    n = x.size if axis is None else x.shape[axis]
    counts = draw(st.one_of(st.integers(0, 3), st.lists(st.integers(0, 2), min_size=n,
                                                        max_size=n)))
    return (x, np.array(counts, int)), {"axis": axis}


def tiled(draw: Draw, x: Any) -> Any:
    return (x, tuple(draw(st.lists(st.integers(0, 2), max_size=4)))), {}


def differences(draw: Draw, x: Any) -> Any:
    return (x, draw(st.integers(0, 3))), {"axis": axis_of(draw, x, False, False)}


def quantiles(draw: Draw) -> Any:
    x = draw(arrays(("f8",), least=1).filter(np.size))
    x = np.where(np.isinf(x), 0.5, x)  # which NumPy interpolates to NaN
    q = np.round(np.asarray(draw(st.lists(st.integers(0, 100), max_size=3))) / 100, 2)
    at = q if draw(st.booleans()) else np.float64(draw(st.integers(0, 100)) / 100)
    method = draw(st.sampled_from([
        "linear", "lower", "higher", "nearest", "midpoint", "inverted_cdf",
        "averaged_inverted_cdf", "closest_observation", "interpolated_inverted_cdf", "hazen",
        "weibull", "median_unbiased", "normal_unbiased"]))
    return (x, at), {"axis": axis_of(draw, x), "keepdims": draw(st.booleans()), "method": method}


def matrices(draw: Draw) -> Any:
    k = draw(st.integers(0, 3))
    batch = draw(st.sampled_from([((), ()), ((2,), ()), ((), (3,)), ((2, 1), (1, 3)), ((0,), ())]))
    left, right = draw(st.booleans()), draw(st.booleans())
    n, m = draw(st.integers(0, 3)), draw(st.integers(0, 3))
    x = draw(arrays(shape=(*batch[0], n, k) if left or batch[0] else (k,)))
    y = draw(arrays(shape=(*batch[1], k, m) if right or batch[1] else (k,)))
    return (x, y), {}


def contracted(draw: Draw) -> Any:
    count = draw(st.integers(0, 2))
    shared = tuple(draw(st.integers(0, 3)) for _ in range(count))
    x = draw(arrays(shape=(draw(st.integers(0, 3)), *shared)))
    y = draw(arrays(shape=(*shared, draw(st.integers(0, 3)))))
    axes = (tuple(range(1, 1 + count)), tuple(range(count)))
    return (x, y), {"axes": draw(st.sampled_from([count, axes]))}


def padded(draw: Draw) -> Any:
    x = draw(arrays(REAL, least=1))
    mode = draw(st.sampled_from(["constant", "edge", "reflect", "symmetric", "wrap", "maximum",
                                 "minimum", "mean", "empty"]))
    width = [(draw(st.integers(0, 5)), draw(st.integers(0, 5))) for _ in x.shape]
    if mode == "empty":
        mode, width = "constant", width[0]
    if mode == "mean" and x.dtype.kind != "f":
        x = x.astype("f4")
    return (x, width, mode), {}


def found_places(draw: Draw) -> Any:
    x = np.sort(draw(arrays(("f4", "f8", "i4"), least=1, most=1)))
    return (x, draw(arrays((x.dtype.str[1:],)))), {"side": draw(st.sampled_from(["left", "right"]))}


def counted(draw: Draw) -> Any:
    x = values(draw, (draw(st.integers(0, 6)),), "i4") % 5
    weights = values(draw, x.shape, "f8") if x.size and draw(st.booleans()) else None
    return (x,), {"weights": weights, "minlength": draw(st.integers(0, 7))}


def diagonals(draw: Draw) -> Any:
    x = draw(arrays(least=2))
    axes = draw(st.permutations(range(x.ndim)))[:2]
    return (x, draw(st.integers(-3, 3)), *axes), {}


def triangles(draw: Draw) -> Any:
    return (draw(arrays(least=2)), draw(st.integers(-3, 3))), {}


def clipped(draw: Draw) -> Any:
    (x, low, high), _ = broadcasting(3, ("f4", "f8"))(draw)
    bounds = draw(st.sampled_from([(low, high), (None, high), (low, None)]))
    return (np.nan_to_num(x), *(None if b is None else np.nan_to_num(b) for b in bounds)), {}


def averaged(draw: Draw) -> Any:
    x = draw(arrays(FLOATING, least=1).filter(np.size))
    axis = axis_of(draw, x)
    full = draw(st.booleans()) or not isinstance(axis, int)
    shape = x.shape if full else (x.shape[axis],)
    weights = np.abs(np.nan_to_num(values(draw, shape, "f8"))) + 0.5
    return (x,), {"axis": axis, "weights": weights, "keepdims": draw(st.booleans())}


def reshaped(draw: Draw, x: Any) -> Any:
    shape = list(draw(st.permutations(x.shape)))
    if shape and x.size and draw(st.booleans()):
        shape[draw(st.integers(0, len(shape) - 1))] = -1
    return (x, tuple(shape)), {}


NAN_SAFE = (*FLOATING, "i4", "u1")
CASES: dict[str, Any] = {
    **dict.fromkeys(("sum", "prod"), reduction(where=True, initial=True)),
    **dict.fromkeys(("max", "min"), reduction(REAL, initial=True)),
    **dict.fromkeys(("all", "any"), reduction(where=True)),
    **dict.fromkeys(("mean", "var", "std"), reduction((*FLOATING, "i4", "c8"), where=True)),
    "count_nonzero": reduction(), "ptp": reduction((*FLOATING, "i4")),
    "median": reduction(FLOATING, some=True), "nanmedian": reduction(FLOATING, some=True),
    **dict.fromkeys(("nansum", "nanprod"), reduction(NAN_SAFE, True, True)),
    **dict.fromkeys(("nanmax", "nanmin"), reduction(FLOATING, initial=True)),
    **dict.fromkeys(("nanmean", "nanvar", "nanstd"), reduction(FLOATING, where=True)),
    **dict.fromkeys(("argmax", "argmin"), reduction(REAL, tuples=False)),
    **dict.fromkeys(("cumsum", "cumprod", "nancumsum", "nancumprod"), along()),
    "sort": along(REAL), "argsort": along(REAL, kind=st.just("stable")), "unwrap": along(
        FLOATING, False), "trapezoid": along(("f4", "f8", "i4"), False),
    "flip": lambda draw: reduction(keepdims=False)(draw), "squeeze": along(),
    "diff": of(differences), "transpose": of(permuted), "moveaxis": of(moved),
    "roll": of(rolled), "take": taken, "take_along_axis": taken_along, "repeat": of(repeated),
    "tile": of(tiled), "reshape": of(reshaped), "concatenate": several, "stack": stacked,
    "quantile": quantiles, "nanquantile": quantiles, "matmul": matrices, "tensordot": contracted,
    "pad": padded, "searchsorted": found_places, "bincount": counted, "diagonal": diagonals,
    "trace": diagonals, "tril": triangles, "triu": triangles, "clip": clipped,
    "average": averaged, "outer": broadcasting(2), "kron": broadcasting(2),
    "inner": lambda draw: (tuple(draw(arrays(shape=(*draw(st.sampled_from([(), (2,), (0,)])), 3)))
                                 for _ in range(2)), {}),
    "where": lambda draw: ((draw(arrays(("?",), shape=(2, 1))), draw(arrays(shape=(3,))),
                            draw(arrays(shape=()))), {}),
    "broadcast_arrays": broadcasting(3),
    **dict.fromkeys(("add", "subtract", "multiply", "equal", "not_equal", "logical_and",
                     "logical_xor"), broadcasting(2)),
    **dict.fromkeys(("maximum", "minimum", "fmax", "fmin", "less", "greater_equal", "copysign",
                     "arctan2", "hypot", "logaddexp", "heaviside"), broadcasting(2, REAL)),
    **dict.fromkeys(("floor_divide", "remainder", "fmod", "divide", "float_power", "nextafter"),
                    broadcasting(2, FLOATING)),
    **dict.fromkeys(("bitwise_and", "bitwise_or", "gcd", "lcm"), broadcasting(2, WHOLE)),
    **dict.fromkeys(("square", "conj"), broadcasting(1, (*FLOATING, *WHOLE, "c8"))),
    **dict.fromkeys(("abs", "sign", "real", "imag", "isnan", "isinf", "exp",
                     "sqrt", "log", "sin", "tanh", "angle", "nan_to_num", "isfinite"),
                    broadcasting(1)),
    **dict.fromkeys(("floor", "rint", "trunc", "signbit", "cbrt", "expm1", "log1p", "log2",
                     "arcsinh", "deg2rad", "spacing", "isposinf", "sinc", "i0", "frexp", "modf"),
                    broadcasting(1, FLOATING)),
}

# what differs on purpose, as in JAX: bool minus bool, and signs of bools, are refused by NumPy
SAID = {"subtract": "?", "sign": "?", "positive": "?", "negative": "?"}


def called(function: Any, args: Any, kwargs: Any) -> Any:
    """The result, or the error of a refused call."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return function(*args, **kwargs)
    except (TypeError, ValueError, IndexError, ZeroDivisionError) as error:
        return error


def agree(ours: Any, theirs: Any) -> None:
    if isinstance(theirs, (tuple, list)):
        assert len(ours) == len(theirs)
        for u, v in zip(ours, theirs, strict=True):
            agree(u, v)
        return
    u, v = np.asarray(ours), np.asarray(theirs)
    assert u.shape == v.shape, (u.shape, v.shape)
    assert u.dtype.kind == v.dtype.kind or {u.dtype.kind, v.dtype.kind} == {"i", "u"}, (
        u.dtype, v.dtype)
    if v.dtype.kind in "fc":
        digits = min(np.finfo(u.dtype).precision, np.finfo(v.dtype).precision)
        tol = 10.0 ** (2 - digits)
        np.testing.assert_allclose(u, v, rtol=tol, atol=tol)
    else:
        np.testing.assert_array_equal(u, v.astype(u.dtype))


@pytest.mark.one_in(6)
@pytest.mark.parametrize("name", CASES)
def test_calls_are_those_of_numpy(name):
    @settings(max_examples=12, deadline=None, derandomize=True, database=None,
              suppress_health_check=list(HealthCheck))
    @given(st.data())
    def law(data):
        args, kwargs = CASES[name](data.draw)
        kwargs = {k: v for k, v in kwargs.items() if v is not None or k == "axis"}
        theirs = called(getattr(np, name), args, kwargs)
        with ft.default_dtypes("float64", "int64"):
            ours = called(getattr(jnp, name), args, kwargs)
        if isinstance(theirs, Exception):
            first = np.asarray(args[0]).dtype.char if not isinstance(args[0], list) else ""
            assert isinstance(ours, Exception) or first in SAID.get(name, ""), (ours, theirs)
            return
        assert not isinstance(ours, Exception), (ours, theirs)
        agree(ours, theirs)

    law()
