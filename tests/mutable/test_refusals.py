"""What is not right under numpy_code is refused, with the user's line."""

import numpy as np
import pytest

import functrans as ft
from functrans.core.errors import (
    ArgumentError,
    ConcretizationError,
    DTypeError,
    ImmutableArrayError,
    IndexingError,
    LeakedTracerError,
    NotCoveredError,
    ShapeError,
)

X = np.arange(6.0).reshape(2, 3)
OUTSIDE = np.zeros(3)
leaked = []


def loop_body(x):
    out = np.zeros(3)

    def body(i, carry):
        out[i] = carry
        return carry + 1

    return ft.lax.fori_loop(0, 3, body, 0.0)


def of_a_vmap(x):
    out = np.zeros(3)
    ft.vmap(lambda row: out.fill(row[0]))(x)


def reshaped(x):
    y = np.take(np.asfortranarray(x), [0, 1], axis=1)
    flat = y.reshape(-1)
    y[0] = 1
    return flat


def write(target, index, value):
    target[index] = value


REFUSED = [
    (lambda x: write(x, 0, 1), ImmutableArrayError, "argument of .*x = x.copy"),
    (lambda x: write(x.T[1:], 0, 1), ImmutableArrayError, "argument of"),
    (lambda x: x.sort(), ImmutableArrayError, "argument of"),
    (lambda x: np.add(x, 1, out=x), ImmutableArrayError, "argument of"),
    (lambda x: np.add.at(x, 0, 1), ImmutableArrayError, "argument of"),
    (lambda x: write(OUTSIDE, 0, x[0, 0]), ImmutableArrayError, "did not make"),
    (loop_body, ImmutableArrayError, "body of a loop.*carry the array"),
    (of_a_vmap, ImmutableArrayError, "under jit, grad or vmap"),
    (lambda x: np.add(x, 1, out=[1, 2]), ArgumentError, "out="),
    (lambda x: write(np.zeros(3), 3, 1), IndexingError, "index 3 is out of bounds for axis 0"),
    (lambda x: write(np.zeros(3), [0, 5], 1), IndexingError, "index 5 is out of bounds"),
    (lambda x: np.zeros(3)[np.array([-4])], IndexingError, "index -4 is out of bounds"),
    (lambda x: np.zeros(3)[1.5], IndexingError, "an index is an integer"),
    (lambda x: np.zeros(3)[0, 0], IndexingError, "2 items for an array of 1"),
    (lambda x: np.zeros(3)[np.zeros(2, bool)], IndexingError, "mask of shape"),
    (lambda x: write(np.zeros(3), ..., x), ShapeError, "do not fit"),
    (lambda x: np.zeros(3).__iadd__(x), ShapeError, "does not fit an array of shape"),
    (lambda x: np.zeros(3, int).__iadd__(0.5 * x[0]), DTypeError, "same_kind"),
    (lambda x: np.add.at(np.zeros(3, int), 0, x[0, 1]), DTypeError, "same_kind"),
    (lambda x: np.copyto(np.zeros(3, int), x[0]), DTypeError, "same_kind"),
    (lambda x: write(np.zeros(3), 0, x[0, 0] * 1j), DTypeError, "imaginary"),
    (lambda x: write(np.zeros((3, 3)).diagonal(), 0, 1), ValueError, "read-only"),
    (lambda x: write(np.broadcast_to(np.zeros(3), (2, 3)), 0, 1), ValueError, "read-only"),
    (lambda x: np.lib.stride_tricks.as_strided(x, (2,)), NotCoveredError, "sliding_window"),
    (lambda x: np.logaddexp.at(np.zeros(3), [0, 0], 1.0), NotCoveredError, "order does not matter"),
    (lambda x: np.zeros(3).resize(4), ImmutableArrayError, "np.resize"),
    (reshaped, ImmutableArrayError, "was reshaped"),
]


@pytest.mark.parametrize("case", range(len(REFUSED)))
def test_refused(case):
    f, error, message = REFUSED[case]
    with pytest.raises(error, match=f"(?s){message}") as caught:
        ft.numpy_code(f)(X)
    if hasattr(caught.value, "where"):
        assert "test_refusals.py" in str(caught.value)
    assert OUTSIDE.tolist() == [0, 0, 0] and X[0, 0] == 0


def spread(x, i):
    mask, out = x[:, 0] > 0, np.zeros((2, 1))
    out[mask] = x[mask]


TRACED = [
    (lambda x, i: np.zeros(3)[:i], ConcretizationError, "slice with traced bounds"),
    (lambda x, i: write(np.zeros(3), slice(i, None), 0), ConcretizationError, "slice with traced"),
    (lambda x, i: 1 if x[0, 0] > 0 else 2, ConcretizationError, "bool"),
    (lambda x, i: x[x > 0].max(), ConcretizationError, "traced mask is asked for its max"),
    (lambda x, i: np.linalg.norm(x[x > 0]), ConcretizationError, "traced mask"),
    (lambda x, i: x[x > 0] + x[x > 0], ConcretizationError, "another mask"),
    (lambda x, i: x[x > 0] + x[0], ConcretizationError, "combined with an array"),
    (lambda x, i: len(x[x > 0]), ConcretizationError, "counted"),
    (lambda x, i: write(x.copy(), x > 0, x[0]), ShapeError, "not known, and so not which value"),
    (lambda x, i: write(x.copy(), (0, x[0] > 0), x[1]), ShapeError, "not known, and so not"),
    (lambda x, i: write(np.zeros((2, 1)), x[:, 0] > 0, x[x[:, 0] > 0]), ConcretizationError,
     "written elsewhere"),
    (spread, ConcretizationError, r"written into an array of shape \(2, 1\)"),
    (lambda x, i: range(i), ConcretizationError, "range"),
]


@pytest.mark.parametrize("case", range(len(TRACED)))
def test_refused_while_traced(case):
    f, error, message = TRACED[case]
    with pytest.raises(error, match=f"(?s){message}"):
        ft.jit(ft.numpy_code(f))(X, 1)


def test_an_array_that_leaks_says_so():
    def keep(x):
        leaked.append(np.zeros(3))
        leaked[-1][0] = x[0, 0]
        return x

    ft.numpy_code(keep)(X)
    for use in (lambda a: a + 1, lambda a: a[0], lambda a: np.sum(a), lambda a: write(a, 0, 1),
                np.asarray):
        with pytest.raises(LeakedTracerError, match=r"numpy_code\(keep\).*after the call"):
            use(leaked[-1])
    assert "over" in repr(leaked.pop())


def test_what_is_no_python_function():
    for f in (np.sum, ft.jit(lambda x: x), len):
        with pytest.raises(ArgumentError, match="numpy_code takes a Python function"):
            ft.numpy_code(f)
    with pytest.raises(ArgumentError, match=r"numpy_code\(rows\): the function is a generator"):
        ft.numpy_code(rows)


def rows(x):
    yield np.zeros(3)
