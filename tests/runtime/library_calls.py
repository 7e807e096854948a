"""Calls of library functions of csrc through ctypes, with the structures of generated C."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from functrans import _runtime

i64, pointer = ctypes.c_longlong, ctypes.c_void_p
Fill = ctypes.CFUNCTYPE(None, pointer, i64, i64, i64, i64, i64, pointer)
Epilogue = ctypes.CFUNCTYPE(None, pointer, i64, i64, i64, i64, i64, pointer, i64)
NDArray = np.ndarray[Any, Any]

TYPES = {np.dtype(t): i for i, t in enumerate([
    np.float32, np.float64, ml_dtypes.bfloat16, np.float16, np.int8, np.int16, np.int32, np.int64,
    np.uint8, np.uint16, np.uint32, np.uint64, np.complex64, np.complex128])}


def _operand(name: str, *strides: str) -> list[tuple[str, Any]]:
    return [(name, pointer), *((f"{name}_{s}", i64) for s in strides)]


class Gemm(ctypes.Structure):
    _fields_ = [*((n, i64) for n in ("batch0", "batch1", "m", "n", "k")),
                *_operand("a", "batch0", "batch1", "row", "col"),
                *_operand("b", "batch0", "batch1", "row", "col"),
                *_operand("c", "batch0", "batch1", "row", "col"),
                ("in_type", ctypes.c_int), ("out_type", ctypes.c_int), ("alpha", ctypes.c_double),
                ("accumulate", ctypes.c_int), ("a_fill_columns", ctypes.c_int),
                ("b_fill_columns", ctypes.c_int), ("a_fill", Fill), ("b_fill", Fill),
                ("fill_arg", pointer), ("epilogue", Epilogue), ("epilogue_arg", pointer)]


class Conv(ctypes.Structure):
    _fields_ = [*((n, i64) for n in ("rank", "groups", "batch", "in_features", "out_features")),
                *((n, i64 * 3) for n in ("in_size", "window", "out_size", "stride", "pad_low",
                                         "in_dilation", "window_dilation")),
                *_operand("x", "group", "batch", "feature"), ("x_space", i64 * 3),
                *_operand("w", "group", "out", "in"), ("w_space", i64 * 3),
                *_operand("out", "group", "batch", "feature"), ("out_space", i64 * 3),
                ("in_type", ctypes.c_int), ("out_type", ctypes.c_int), ("alpha", ctypes.c_double),
                ("accumulate", ctypes.c_int)]


library = ctypes.CDLL(_runtime.__file__)
for _function in (library.ft_gemm_run, library.ft_conv_run):
    _function.restype = ctypes.c_int


def _strides(x: NDArray) -> list[int]:
    return [s // x.itemsize for s in x.strides]


def gemm_call(a: NDArray, b: NDArray, c: NDArray, *, alpha: float = 1.0, accumulate: bool = False,
              **callbacks: Any) -> Callable[[], None]:
    """A function that computes c (+)= alpha * a @ b; up to two batch axes, which broadcast."""
    c = c[(None,) * (4 - c.ndim)]
    a, b = (np.broadcast_to(x, (*c.shape[:2], *x.shape[-2:])) for x in (a, b))
    g = Gemm(c.shape[0], c.shape[1], c.shape[2], c.shape[3], a.shape[3],
             a.ctypes.data, *_strides(a), b.ctypes.data, *_strides(b), c.ctypes.data, *_strides(c),
             TYPES[a.dtype], TYPES[c.dtype], alpha, accumulate, **callbacks)
    kept = (a, b, c)

    def call() -> None:
        assert kept
        assert library.ft_gemm_run(ctypes.byref(g)) == 0

    return call


def gemm(a: NDArray, b: NDArray, c: NDArray, **options: Any) -> NDArray:
    gemm_call(a, b, c, **options)()
    return c


def conv_call(x: NDArray, w: NDArray, out: NDArray, *, window_strides: Any, padding: Any,
              lhs_dilation: Any, rhs_dilation: Any, dimension_numbers: Any, group_axes: Any = None,
              alpha: float = 1.0, accumulate: bool = False) -> Callable[[], None]:
    """A function that computes what conv_general_dilated_p computes, into `out`."""
    xs, ws, os = dimension_numbers
    n = len(xs) - 2

    def three(values: Any, rest: int = 1) -> Any:
        return (i64 * 3)(*values, *[rest] * (3 - n))

    groups, strides = 1, []
    for operand, spec, group in zip((x, w, out), (xs, ws, os), group_axes or (None,) * 3,
                                    strict=True):
        steps = _strides(operand)
        groups = groups if group is None else operand.shape[group]
        strides.append((operand.ctypes.data, 0 if group is None else steps[group],
                        *(steps[d] for d in spec[:2]), three((steps[d] for d in spec[2:]), 0)))
    call_of = Conv(n, groups, x.shape[xs[0]], x.shape[xs[1]], w.shape[ws[0]],
                   three(x.shape[d] for d in xs[2:]), three(w.shape[d] for d in ws[2:]),
                   three(out.shape[d] for d in os[2:]), three(window_strides),
                   three((low for low, _ in padding), 0), three(lhs_dilation), three(rhs_dilation),
                   *strides[0], *strides[1], *strides[2], TYPES[x.dtype], TYPES[out.dtype], alpha,
                   accumulate)
    kept = (x, w, out)

    def call() -> None:
        assert kept
        assert library.ft_conv_run(ctypes.byref(call_of)) == 0

    return call


def conv(x: NDArray, w: NDArray, out: NDArray, **options: Any) -> NDArray:
    conv_call(x, w, out, **options)()
    return out
