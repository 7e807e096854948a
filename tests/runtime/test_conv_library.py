"""Convolutions of csrc against the reference evaluation, in every geometry and layout."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from functrans.core.avals import ShapedArray
from functrans.primitives.conv import ConvDimensionNumbers, conv_general_dilated_p
from tests.runtime.library_calls import conv

NDArray = np.ndarray[Any, Any]


def laid_out(rng: np.random.Generator, x: NDArray) -> NDArray:
    """x with its axes in any memory order, now and then with gaps or backwards."""
    order = rng.permutation(x.ndim)
    base = np.zeros([x.shape[d] + 1 for d in order], x.dtype)
    view = base[tuple(slice(0, x.shape[d]) for d in order)] if rng.integers(3) == 0 \
        else np.zeros([x.shape[d] for d in order], x.dtype)
    if rng.integers(4) == 0:
        view = view[..., ::-1]
    view = view.transpose(np.argsort(order))
    view[...] = x
    return view


def random_case(rng: np.random.Generator, dtype: Any) -> tuple[NDArray, NDArray, dict[str, Any]]:
    n = int(rng.integers(0, 4))
    grouped = bool(rng.integers(0, 2))
    rank = n + 2 + grouped
    specs, groups = [], []
    for _ in range(3):
        places = [int(p) for p in rng.permutation(rank)]
        groups.append(places.pop() if grouped else None)
        specs.append(tuple(places))
    xs, ws, os = specs
    sizes = {"b": int(rng.integers(1, 4)), "i": int(rng.integers(1, 20)),
             "o": int(rng.integers(1, 40)), "g": int(rng.integers(1, 4))}
    space = [int(s) for s in rng.integers(1, 9, n)]
    window = [int(s) for s in rng.integers(1, 4, n)]
    params: dict[str, Any] = {
        "window_strides": tuple(int(s) for s in rng.integers(1, 4, n)),
        "padding": tuple((int(a), int(b)) for a, b in rng.integers(-1, 4, (n, 2))),
        "lhs_dilation": tuple(int(s) for s in rng.integers(1, 4, n)),
        "rhs_dilation": tuple(int(s) for s in rng.integers(1, 4, n)),
        "dimension_numbers": ConvDimensionNumbers(xs, ws, os),
        "group_axes": tuple(groups) if grouped else None}
    operands = []
    for spec, names, extents, group in ((xs, "bi", space, groups[0]),
                                        (ws, "oi", window, groups[1])):
        shape = [0] * rank
        for d, size in zip(spec, [*(sizes[name] for name in names), *extents], strict=True):
            shape[d] = size
        if grouped:
            shape[group] = sizes["g"]
        operands.append(laid_out(rng, rng.standard_normal(shape).astype(dtype)))
    return operands[0], operands[1], params


@pytest.mark.parametrize("dtype", [np.float32, np.float64, ml_dtypes.bfloat16])
@pytest.mark.parametrize("seed", range(4))
def test_random_geometries(seed: int, dtype: Any) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(60):
        x, w, params = random_case(rng, dtype)
        wide = conv_general_dilated_p.evaluate(x.astype(np.float64), w.astype(np.float64), **params)
        bound = conv_general_dilated_p.evaluate(np.abs(x).astype(np.float64),
                                                np.abs(w).astype(np.float64), **params)
        out = laid_out(rng, np.full(wide.shape, np.nan, dtype))
        conv(x, w, out, **params)
        eps = float(ml_dtypes.finfo(dtype).eps)
        terms = 2 if dtype is ml_dtypes.bfloat16 else w.size + 2
        assert np.all(np.abs(out.astype(np.float64) - wide) <= terms * eps * bound + 1e-30), params


@pytest.mark.parametrize("layout", [((0, 1, 2, 3), (0, 1, 2, 3), (0, 1, 2, 3)),
                                    ((0, 3, 1, 2), (3, 2, 0, 1), (0, 3, 1, 2))])
@pytest.mark.parametrize("stride", [1, 2])
def test_gradients_of_larger_images(layout: Any, stride: int) -> None:
    rng = np.random.default_rng(0)
    spec = ConvDimensionNumbers(*layout)
    x = np.zeros([(4, 16, 23, 21)[spec.lhs_spec.index(d)] for d in range(4)], np.float32)
    w = np.zeros([(24, 16, 3, 3)[spec.rhs_spec.index(d)] for d in range(4)], np.float32)
    x[...], w[...] = rng.standard_normal(x.shape), rng.standard_normal(w.shape)
    params: dict[str, Any] = {
        "window_strides": (stride,) * 2, "padding": ((1, 1),) * 2, "lhs_dilation": (1, 1),
        "rhs_dilation": (1, 1), "dimension_numbers": spec}
    avals = ShapedArray(x.shape, x.dtype), ShapedArray(w.shape, w.dtype)
    shape = conv_general_dilated_p.type(*avals, **params).shape
    out = conv(x, w, np.empty(shape, np.float32), **params)
    np.testing.assert_allclose(out, conv_general_dilated_p.evaluate(x, w, **params), rtol=0,
                               atol=1e-3)
    xs, ws, os = spec
    ct = rng.standard_normal(out.shape).astype(np.float32)

    def swapped(s: Any) -> Any:
        return (s[1], s[0], *s[2:])

    def high(size: int, reach: int, low: int) -> int:
        return reach - low - size

    flipped = w[tuple(slice(None, None, -1) if d in ws[2:] else slice(None) for d in range(4))]
    lhs = {**params, "window_strides": (1, 1), "lhs_dilation": (stride,) * 2,
           "dimension_numbers": ConvDimensionNumbers(os, swapped(ws), xs),
           "padding": tuple((1, high((ct.shape[o] - 1) * stride + 1, x.shape[d] + 2, 1))
                            for d, o in zip(xs[2:], os[2:], strict=True))}
    dx = conv(ct, flipped, np.empty_like(x), **lhs)
    rhs = {**params, "window_strides": (1, 1), "rhs_dilation": (stride,) * 2,
           "dimension_numbers": ConvDimensionNumbers(swapped(xs), swapped(os), swapped(ws)),
           "padding": tuple((1, high(x.shape[d], 3 + (ct.shape[o] - 1) * stride, 1))
                            for d, o in zip(xs[2:], os[2:], strict=True))}
    dw = conv(x, ct, np.empty_like(w), **rhs)
    # linear in both: <ct, conv(x, w)> is <x, dx> and <w, dw>
    inner = np.vdot(ct.astype(np.float64), out)
    assert abs(inner - np.vdot(x.astype(np.float64), dx)) < 1e-5 * np.linalg.norm(ct) ** 2
    assert abs(inner - np.vdot(w.astype(np.float64), dw)) < 1e-5 * np.linalg.norm(ct) ** 2
    np.testing.assert_allclose(dx, conv_general_dilated_p.evaluate(ct, flipped, **lhs), atol=1e-3)
    np.testing.assert_allclose(dw, conv_general_dilated_p.evaluate(x, ct, **rhs), atol=1e-2)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [1, 2, 3])
def test_large_windows_in_random_geometries(n: int, dtype: Any) -> None:
    """Gradients to weights are convolutions whose window is an image, and out a kernel."""
    rng = np.random.default_rng(n)
    for _ in range(4):
        places = {1: (600,), 2: (12, 40), 3: (4, 6, 20)}[n]
        window = [int(p + rng.integers(0, 9)) for p in places]
        kernel, stride, dilation = (rng.integers(1, top, n) for top in (5, 3, 4))
        low, high = rng.integers(0, 3, n), rng.integers(0, 3, n)
        reach = (np.array(window) - 1) * dilation + 1 + (kernel - 1) * stride
        space = [int(s) for s in np.maximum(reach - low - high, 1)]
        rank = n + 3
        specs, groups = [], []
        for _ in range(3):
            order = [int(p) for p in rng.permutation(rank)]
            groups.append(order.pop())
            specs.append(tuple(order))
        batch, images, features, count = map(int, rng.integers((1, 3, 1, 1), (30, 5, 70, 3)))
        x, w = (
            laid_out(rng, rng.standard_normal([sizes[(*spec, group).index(d)] for d in range(rank)])
                     .astype(dtype))
            for spec, group, sizes in ((specs[0], groups[0], (batch, images, *space, count)),
                                       (specs[1], groups[1], (features, images, *window, count))))
        params: dict[str, Any] = {
            "window_strides": tuple(int(s) for s in stride), "lhs_dilation": (1,) * n,
            "padding": tuple((int(a), int(b)) for a, b in zip(low, high, strict=True)),
            "rhs_dilation": tuple(int(s) for s in dilation), "group_axes": tuple(groups),
            "dimension_numbers": ConvDimensionNumbers(*specs)}
        expected = conv_general_dilated_p.evaluate(x.astype(float), w.astype(float), **params)
        out = laid_out(rng, np.full(expected.shape, np.nan, dtype))
        conv(x, w, out, **params)
        bound = np.sqrt(images * np.prod(window)) * np.finfo(dtype).eps * 100
        np.testing.assert_allclose(out, expected, rtol=0, atol=bound)
