"""The NumPy evaluation of convolution: one matrix product over a copy of the windows.

Arrays come as x: (group, batch, feature, *spatial) and w: (group, out, feature, *window), in any
memory order. A view of all windows is copied in the order in which it reads x with the longest
contiguous runs, as the left or the right factor of a BLAS product. Depthwise convolutions, whose
product would be a matrix by a vector, are summed tap by tap.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from functrans.primitives.geometry import Pads, embed, sliding

__all__ = ["convolve"]

NDArray = np.ndarray[Any, Any]

# Windows are copied in pieces of at most this many bytes: bounds memory; pieces from 256 KiB up
# were measured to run at one speed.
_PIECE = 64 << 20
# A product per image is worth its call from this many positions on (measured: 28x28 yes, 8x8 no).
_IMAGE = 256
_MAX_TAPS = 32


def convolve(x: NDArray, w: NDArray, strides: Sequence[int], padding: Pads,
             lhs_dilation: Sequence[int], rhs_dilation: Sequence[int],
             features_last: bool) -> NDArray:
    """The convolution (group, batch, out, *places); `features_last` asks for that memory order."""
    x = embed(x, ((0, 0), (0, 0), (0, 0), *padding), (1, 1, 1, *lhs_dilation))
    windows = sliding(x, 3, w.shape[3:], strides, rhs_dilation)
    taps = math.prod(w.shape[3:])
    if w.shape[0] > 1 and w.shape[1] * w.shape[2] == 1 and 0 < taps <= _MAX_TAPS:
        return _sum_taps(windows, w)
    return _multiply(windows, w, features_last)


def _sum_taps(windows: NDArray, w: NDArray) -> NDArray:
    """One multiply-add of whole arrays per place in the window; one feature in and out."""
    n = w.ndim - 3
    total: NDArray | None = None
    scratch: NDArray | None = None
    for tap in np.ndindex(w.shape[3:]):
        weight = w[(slice(None), slice(None), slice(None), *tap)].reshape(-1, *(1,) * (n + 2))
        taken = windows[(..., *tap)]
        if total is None:
            total = taken * weight
        else:
            scratch = np.multiply(taken, weight, out=scratch)
            total += scratch
    assert total is not None
    return total


def _multiply(windows: NDArray, w: NDArray, features_last: bool) -> NDArray:
    """Windows as a matrix, times the kernel as a matrix."""
    if windows.nbytes > _PIECE:
        axis = int(np.argmax(windows.shape[:3]))
        if windows.shape[axis] > 1:
            return _multiply_halves(windows, w, axis, features_last)
    n = w.ndim - 3
    places, taps = range(3, 3 + n), range(3 + n, 3 + 2 * n)
    free, contract = (1, *places), (2, *taps)
    by_image = windows.shape[1] > 1 and not features_last \
        and math.prod(windows.shape[3:3 + n]) >= _IMAGE
    batch: tuple[int, ...] = (0,)
    if by_image:
        batch, free = (0, 1), tuple(places)
    strides, shape = windows.strides, windows.shape
    free, contract = (tuple(sorted(block, key=lambda d: -strides[d] if shape[d] > 1 else -math.inf))
                      for block in (free, contract))
    contract_inner = _run(windows, contract) >= _run(windows, free)
    order = (*batch, *free, *contract) if contract_inner else (*batch, *contract, *free)
    sizes = {block: math.prod(shape[d] for d in block) for block in (free, contract)}
    rows, inner = sizes[free], sizes[contract]
    head = tuple(shape[d] for d in batch)
    if contract_inner:
        left = windows.transpose(order).reshape(*head, rows, inner)
    else:
        left = windows.transpose(order).reshape(*head, inner, rows).swapaxes(-1, -2)
    # the axes of w in the order of the windows' contracted ones: feature 2, taps from 3
    kernel = w.transpose(0, 1, *(d if d == 2 else d - n for d in contract))
    right = kernel.reshape(w.shape[0], *(1,) * (len(batch) - 1), w.shape[1], inner)
    if features_last or not by_image:
        out: NDArray = np.matmul(left, right.swapaxes(-1, -2)).reshape(
            *head, *(shape[d] for d in free), w.shape[1])
        names = (*batch, *free, "out")
    else:
        out = np.matmul(right, left.swapaxes(-1, -2)).reshape(
            *head, w.shape[1], *(shape[d] for d in free))
        names = (*batch, "out", *free)
    return out.transpose([names.index(d) for d in (0, 1, "out", *places)])


def _multiply_halves(windows: NDArray, w: NDArray, axis: int, features_last: bool) -> NDArray:
    half = windows.shape[axis] // 2
    pieces = []
    for part in (slice(None, half), slice(half, None)):
        at = (*(slice(None),) * axis, part)
        pieces.append(_multiply(windows[at], w if axis == 1 else w[at], features_last))
    if axis == 2:
        return pieces[0] + pieces[1]
    return np.concatenate(pieces, axis)


def _run(x: NDArray, axes: Sequence[int]) -> int:
    """How many elements lie side by side when the last of `axes` are walked first."""
    run = 1
    for d in reversed(axes):
        if x.shape[d] == 1:
            continue
        if x.strides[d] != run * x.itemsize:
            break
        run *= x.shape[d]
    return run
