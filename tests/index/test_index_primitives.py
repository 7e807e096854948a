"""Laws of gather, the scatters and dynamic slices, and their evaluation against a plain loop."""

from __future__ import annotations

import itertools
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from index_laws import cases, check_batching, check_derivatives, check_staging

import functrans as ft
from functrans._runtime import wrap
from functrans.core.avals import ShapedArray
from functrans.core.axes import MappedAxis
from functrans.core.errors import ArgumentError, DTypeError, ShapeError
from functrans.core.staging import stage
from functrans.primitives import dynamic_slice as ds
from functrans.primitives import index, scatter
from functrans.primitives.index_layout import (
    GatherDimensionNumbers,
    GatherScatterMode,
    ScatterDimensionNumbers,
)
from functrans.transforms.batching import batch_flat
from functrans.transforms.jvp import jvp_flat

PRIMITIVES = [index.gather_p, index.scatter_add_p, scatter.scatter_p, scatter.scatter_mul_p,
              scatter.scatter_min_p, scatter.scatter_max_p, ds.dynamic_slice_p,
              ds.dynamic_update_slice_p]
every_primitive = pytest.mark.parametrize("primitive", PRIMITIVES, ids=str)


@every_primitive
def test_derivatives_to_second_order(primitive: Any) -> None:
    for fun, args, where in cases(primitive):
        check_derivatives(fun, [args[i] for i in where])


@every_primitive
def test_derivatives_in_one_operand(primitive: Any) -> None:
    for fun, args, where in cases(primitive):
        for i in range(len(where)):
            others = [wrap(args[j]) for j in where]

            def one(x: Any, fun: Any = fun, others: Any = others, i: int = i) -> Any:
                return fun(*others[:i], x, *others[i + 1:])

            check_derivatives(one, [args[where[i]]])


@every_primitive
def test_batching_every_choice_of_operands(primitive: Any) -> None:
    for sample in primitive.samples():
        check_batching(lambda *xs, p=sample.params: [primitive.bind(*xs, **p)],
                       [np.asarray(a) for a in sample.args])


@every_primitive
def test_type_and_staging(primitive: Any) -> None:
    for sample in primitive.samples():
        check_staging(lambda *xs, p=sample.params: [primitive.bind(*xs, **p)],
                      [np.asarray(a) for a in sample.args])


@every_primitive
def test_derivative_of_batched_is_batched_derivative(primitive: Any) -> None:
    for fun, args, where in cases(primitive):
        floats = [np.stack([args[i]] * 2) for i in where]

        def mapped(*xs: Any, fun: Any = fun) -> Any:
            return batch_flat(fun, MappedAxis(2), xs, [0] * len(xs))[0]

        check_derivatives(mapped, floats)


def reference_scatter(op: Any, x: np.ndarray, indices: np.ndarray, updates: np.ndarray,
                      numbers: ScatterDimensionNumbers, windows: tuple[int, ...],
                      clip: bool) -> np.ndarray:
    """The definition, one element at a time."""
    out = x.copy()
    g = numbers.gather
    skipped = g.collapsed_slice_dims + g.operand_batching_dims
    for at in itertools.product(*map(range, indices.shape[:-1])):
        start = [0] * x.ndim
        for k, d in enumerate(g.start_index_map):
            start[d] = int(indices[at][k])
        if clip:
            start = [min(max(s, 0), n - w) for s, n, w in zip(start, x.shape, windows)]
        elif any(not 0 <= s <= n - w for s, n, w in zip(start, x.shape, windows)):
            continue
        for d, b in zip(g.operand_batching_dims, g.start_indices_batching_dims):
            start[d] = at[b]
        for w in itertools.product(*map(range, windows)):
            place = tuple(s + o for s, o in zip(start, w))
            rest, window = iter(at), iter([o for d, o in enumerate(w) if d not in skipped])
            source = tuple(next(window) if d in g.offset_dims else next(rest)
                           for d in range(updates.ndim))
            out[place] = op(out[place], updates[source])
    return out


@st.composite
def scatters(draw: Any) -> Any:
    """Random dimension numbers with operand, indices and windows that fit."""
    ndim = draw(st.integers(1, 4))
    shape = tuple(draw(st.integers(1, 4)) for _ in range(ndim))
    dims = draw(st.permutations(range(ndim)))
    n_batching = draw(st.integers(0, max(ndim - 1, 0)))
    batching, rest = tuple(dims[:n_batching]), dims[n_batching:]
    mapped = tuple(rest[:draw(st.integers(0, len(rest)))])
    collapsed = tuple(sorted(d for d in rest if draw(st.booleans())))
    windows = tuple(1 if d in collapsed or d in batching else draw(st.integers(1, shape[d]))
                    for d in range(ndim))
    free = [draw(st.integers(1, 3)) for _ in range(draw(st.integers(0, 2)))]
    batch_shape: list[Any] = [*((shape[d], d) for d in batching), *((n, None) for n in free)]
    batch_shape = list(draw(st.permutations(batch_shape)))
    indices_batching = tuple(next(i for i, b in enumerate(batch_shape) if b[1] == d)
                             for d in batching)
    sizes = tuple(b[0] for b in batch_shape)
    seed = draw(st.integers(0, 1000))
    indices = np.random.default_rng(seed).integers(-1, 5, (*sizes, len(mapped))).astype(np.int32)
    n_window = ndim - len(collapsed) - len(batching)
    total = len(sizes) + n_window
    offset = tuple(sorted(draw(st.permutations(range(total)))[:n_window]))
    numbers = ScatterDimensionNumbers(offset, collapsed, mapped, batching, indices_batching)
    return shape, indices, numbers, windows, draw(st.booleans()), seed


@settings(max_examples=300, deadline=None)
@given(scatters())
def test_gather_and_scatters_are_their_definition(case: Any) -> None:
    shape, indices, numbers, windows, clip, seed = case
    rng = np.random.default_rng(seed)
    x = rng.integers(1, 9, shape).astype(np.float64)
    mode = GatherScatterMode.CLIP if clip else GatherScatterMode.FILL_OR_DROP
    shared = {"mode": mode, "unique_indices": False, "indices_are_sorted": False}
    read = index.gather_p.bind(wrap(x), wrap(indices), dimension_numbers=numbers.gather,
                               slice_sizes=windows, fill_value=0, **shared)
    updates = rng.integers(1, 9, read.shape).astype(np.float64)
    for primitive, op in ((scatter.scatter_p, lambda a, b: b), (index.scatter_add_p, np.add),
                          (scatter.scatter_mul_p, np.multiply),
                          (scatter.scatter_min_p, np.minimum), (scatter.scatter_max_p, np.maximum)):
        got = primitive.bind(wrap(x), wrap(indices), wrap(updates), dimension_numbers=numbers,
                             **shared)
        expected = reference_scatter(op, x, indices, updates, numbers, windows, clip)
        np.testing.assert_array_equal(np.asarray(got), expected, err_msg=primitive.name)
    # gather is what the transpose of scatter_add says it is: <scatter_add(0, u), x> = <u, gather x>
    added = reference_scatter(np.add, np.zeros_like(x), indices, updates, numbers, windows, clip)
    assert np.vdot(added, x) == np.vdot(updates, np.asarray(read))


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "float16", ml_dtypes.bfloat16,
                                   "complex64"], ids=str)
def test_every_dtype_is_gathered_and_scattered(dtype: Any) -> None:
    x = wrap(np.arange(4).astype(dtype))
    i = wrap(np.array([[3], [0], [9]], np.int64))
    numbers = GatherDimensionNumbers((), (0,), (0,))
    got = index.gather(x, i, numbers, (1,), mode="clip")
    assert got.dtype == x.dtype
    np.testing.assert_array_equal(got, np.asarray(x)[[3, 0, 3]])
    filled = index.gather(x, i, numbers, (1,))
    assert filled.dtype == x.dtype
    added = index.scatter_add(x, i, got, ScatterDimensionNumbers((), (0,), (0,)))
    assert added.dtype == x.dtype


def test_low_precision_sums_are_accumulated_in_single() -> None:
    x = wrap(np.zeros(1, ml_dtypes.bfloat16))
    ones = wrap(np.ones(1000, ml_dtypes.bfloat16))
    got = index.scatter_add(x, wrap(np.zeros((1000, 1), np.int32)), ones,
                            ScatterDimensionNumbers((), (0,), (0,)))
    assert float(np.asarray(got)[0]) == 1000.0  # one by one in bfloat16 it stops at 256


def test_scatter_apply_applies_for_each_index() -> None:
    x = wrap(np.arange(4.0))
    i = wrap(np.array([[1], [1], [7]], np.int32))
    got = ft.lax.scatter_apply(x, i, lambda v: v * 10.0, ScatterDimensionNumbers((), (0,), (0,)),
                                update_shape=(3,))
    np.testing.assert_array_equal(got, [0, 100, 2, 3])


def test_product_derivative_at_zeros() -> None:
    """Three updates at one place, one of them 0: only its own derivative is not 0."""
    i = wrap(np.zeros((3, 1), np.int32))
    u = np.array([2.0, 0.0, 5.0])
    numbers = ScatterDimensionNumbers((), (0,), (0,))

    def product(x: Any) -> Any:
        return [scatter.scatter_mul(wrap(np.array([3.0])), i, x, numbers)]

    got = [float(np.asarray(jvp_flat(product, [wrap(u)], [wrap(e)])[1][0])[0]) for e in np.eye(3)]
    assert got == [0.0, 30.0, 0.0]


def test_static_starts_become_a_slice() -> None:
    aval = ShapedArray((5, 4), np.dtype(np.float32))
    text = str(stage(lambda x: [ds.dynamic_slice(x, (-2, 9), (2, 2))], [aval]))
    assert "dynamic" not in text and "start_indices=(3, 2)" in text


def test_vmapped_indices_are_not_materialised() -> None:
    """Batching pairs dimensions instead of joining an iota to the indices."""
    f32, i32 = np.dtype(np.float32), np.dtype(np.int32)
    numbers = GatherDimensionNumbers((), (0,), (0,))

    def mapped(x: Any, i: Any) -> Any:
        return batch_flat(lambda x, i: [index.gather(x, i, numbers, (1,))], MappedAxis(3), [x, i],
                          [0, 0])[0]

    jaxpr = stage(mapped, [ShapedArray((3, 5), f32), ShapedArray((3, 2, 1), i32)])
    assert [e.primitive.name for e in jaxpr.eqns] == ["gather"]


class TestErrors:
    x = np.zeros((4, 3), np.float32)

    def test_float_indices(self) -> None:
        with pytest.raises(DTypeError, match="indices are integers"):
            index.gather(wrap(self.x), wrap(np.zeros((1, 1))),
                         GatherDimensionNumbers((1,), (0,), (0,)), (1, 3))

    def test_window_too_large(self) -> None:
        with pytest.raises(ShapeError, match="does not fit dimension 1 of size 3"):
            index.gather(wrap(self.x), wrap(np.zeros((1, 1), np.int32)),
                         GatherDimensionNumbers((1,), (0,), (0,)), (1, 4))

    def test_updates_of_wrong_shape(self) -> None:
        with pytest.raises(ShapeError, match=r"updates are f32\[2,2\]"):
            index.scatter_add(wrap(self.x), wrap(np.zeros((1, 1), np.int32)),
                              wrap(np.zeros((2, 2), np.float32)),
                              ScatterDimensionNumbers((1,), (0,), (0,)))

    def test_unknown_mode(self) -> None:
        with pytest.raises(ArgumentError, match="no mode 'wrapped'"):
            GatherScatterMode.from_any("wrapped")

    def test_too_large_dynamic_window(self) -> None:
        with pytest.raises(ShapeError, match="does not fit"):
            ds.dynamic_slice(wrap(self.x), (wrap(np.int32(0)), 0), (5, 1))

    def test_number_of_starts(self) -> None:
        with pytest.raises(ShapeError, match="one per dimension"):
            ds.dynamic_slice(wrap(self.x), (0,), (1, 1))


def test_starts_of_narrow_dtypes_count_from_the_end():
    out = ft.lax.dynamic_slice(np.arange(300.0), [np.asarray(-3, np.int8)], [2])
    np.testing.assert_array_equal(out, [297.0, 298.0])
