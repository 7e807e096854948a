"""Coefficients that leave a given sum of squares, with jumps as small as they can be.

Source: Dierckx, Curve and Surface Fitting with Splines (1993), ch. 5 and 9.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from functrans import numpy as jnp
from functrans.scipy.products import matmul
from functrans.typing import Array

_DEFICIENT: Final = 1e-10  # of the largest singular value: values leave coefficients open
_FAINT: Final = 1e-7  # the part of jumps that decides about such


def least_squares(matrix: Any, jumps: Any, target: Array) -> Array:
    """The coefficients (n, columns) nearest to values (m, columns), which they are linear in.

    Those that values leave open jump least.
    """
    u, sizes, vt = np.linalg.svd(matrix, full_matrices=False)
    if len(matrix) >= matrix.shape[1] and sizes[-1] > _DEFICIENT * sizes[0]:
        back = (vt.T / sizes) @ u.T
    else:
        back = np.linalg.pinv(_with_jumps(matrix, jumps))[:, :len(matrix)]
    return matmul(jnp.asarray(back), target.astype(jnp.float64))


def _with_jumps(matrix: Any, jumps: Any) -> Any:
    """The matrix, with faint rows of the jumps where its columns depend on each other."""
    sizes = np.linalg.svd(matrix, compute_uv=False)
    if len(matrix) >= matrix.shape[1] and sizes[-1] > _DEFICIENT * sizes[0]:
        return matrix
    scale = np.linalg.norm(jumps, 2) if jumps.size else 0.0
    return np.concatenate([matrix, _FAINT * sizes[0] / (scale or 1.0) * jumps])


def penalized(matrix: Any, jumps: Any, values: Any, target: Array, s: float) -> Array:
    """The coefficients (n, columns) that leave s of values (m, columns) with the least jumps.

    `matrix` (m, n) and `jumps` (rows, n) are known, and so are `values`, which `target` is to the
    program. Coefficients are R**-1 V (1 + lam S**2)**-1 V' Q' y, of the decompositions Q R of the
    matrix and U S V' of the jumps times R**-1, and the root lam has its derivative.
    """
    m, count = matrix.shape
    q, r = np.linalg.qr(_with_jumps(matrix, jumps))
    inverse = np.linalg.pinv(r)
    _, sizes, vt = np.linalg.svd(jumps @ inverse)
    squares = np.zeros(count)
    squares[:len(sizes)] = sizes[:count] ** 2
    project = (vt @ q.T)[:, :m]
    squares = squares[:, None]

    def left(log_lam: Any, z: Any, rest: Any, xp: Any) -> Any:
        part = squares / (xp.exp(-log_lam) + squares)
        return rest + xp.sum((part * z) ** 2) - s

    z0 = project @ values
    rest0 = float(np.sum(values**2) - np.sum(z0**2))
    least = float(sizes[-1]) if len(sizes) else 0.0
    low, high = -60.0, 60.0 - math.log(max(least**2, 1e-300))
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if left(middle, z0, rest0, np) < 0 else (low, middle)
    wide = target.astype(jnp.float64)
    z = matmul(jnp.asarray(project), wide)
    rest = jnp.sum(wide**2) - jnp.sum(z**2)
    at_root = jnp.asarray((low + high) / 2)
    share = squares / (math.exp(-(low + high) / 2) + squares)
    slope = float(2 * np.sum(share**2 * (1 - share) * z0**2))
    # one step of Newton's, whose derivative is that of the root
    log_lam = at_root - (left(at_root, z, rest, jnp) / slope if slope else 0.0)
    return matmul(jnp.asarray(inverse @ vt.T), z / (1 + jnp.exp(log_lam) * squares))
