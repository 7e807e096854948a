"""Feedback that gives a linear system chosen poles."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np

from functrans import numpy as jnp
from functrans.core.errors import ArgumentError, ShapeError, shown
from functrans.core.source import user_source
from functrans.scipy.arguments import known_size, known_values, one_of, real
from functrans.scipy.products import matmul, pinv
from functrans.typing import Array, ArrayLike

_FLAT = 1e-12  # of the product of lengths, from which vectors are in a plane


class PlacedPoles(NamedTuple):
    """The feedback K of `place_poles`: A - B K has the poles that were asked for.

    `X` are the eigenvectors, `rtol` is the last change of their determinant and `nb_iter` the
    number of sweeps, both NaN where there was no choice.
    """

    gain_matrix: Array
    computed_poles: Array
    requested_poles: Array
    X: Array
    rtol: float
    nb_iter: float


def _ordered(poles: Any) -> Any:
    """The real poles as they grow, then the pairs, the one below the axis first."""
    real_ones = np.sort(poles[poles.imag == 0].real)
    below = np.sort(poles[poles.imag < 0])
    above = poles[poles.imag > 0]
    pairs = np.stack([below, np.conj(below)], 1).reshape(-1)
    if sorted(np.conj(below).tolist(), key=lambda v: (v.real, v.imag)) != sorted(
            above.tolist(), key=lambda v: (v.real, v.imag)):
        raise ArgumentError(f"functrans.scipy.signal.place_poles: poles is {shown(poles)}.",
                            where=user_source(), why="complex poles come in conjugate pairs.")
    return np.concatenate([real_ones, pairs]) if len(below) else real_ones


def _known(A: Array, B: Array, poles: Any) -> tuple[Any, Any, Any]:
    name, fix = "signal.place_poles", "place_poles(A, B, poles)  # before jit"
    a, b = (known_values(name, n, v, "eigenvectors are chosen by it.", fix).astype(float)
            for n, v in (("A", A), ("B", B)))
    wanted = known_values(name, "poles", poles, "they are put in order.", fix)
    if a.ndim != 2 or a.shape[0] != a.shape[1] or b.ndim != 2 or b.shape[0] != a.shape[0] or \
            wanted.shape != a.shape[:1]:
        raise ShapeError(f"functrans.scipy.{name}: A has shape {a.shape}, B {b.shape}, poles "
                         f"{wanted.shape}.", where=user_source(),
                         why="A is (n, n), B (n, inputs), and there are n poles.")
    wanted = _ordered(wanted)
    rank = int(np.linalg.matrix_rank(b))
    for p in wanted:
        if (wanted == p).sum() > rank:
            raise ArgumentError(f"functrans.scipy.{name}: the pole {p} is there "
                                f"{(wanted == p).sum()} times.", where=user_source(),
                                why=f"with B of rank {rank} a pole is there {rank} times at most.")
    return a, b, wanted


def place_poles(A: ArrayLike, B: ArrayLike, poles: ArrayLike, method: str = "YT",
                rtol: float = 1e-3, maxiter: int = 30) -> PlacedPoles:
    """The feedback K for which A - B K has the poles that are asked for.

    With several inputs the eigenvectors are chosen so that their determinant is large, which makes
    poles robust: two at a time ("YT") or one at a time ("KNV0", of real poles), until a sweep
    changes the determinant by less than `rtol`, or `maxiter` times. It needs values, and is made
    outside of `jit`; the feedback is differentiated in A and B, with eigenvectors that move as
    little as they must. Raises ArgumentError for poles that cannot be placed.
    Source: Kautsky, Nichols and Van Dooren, Int. J. Control 41 (1985); Tits and Yang, IEEE Trans.
    Autom. Control 41 (1996).

    >>> import functrans as ft
    >>> A, B = ft.numpy.array([[0.0, 1.0], [0.0, 0.0]]), ft.numpy.array([[0.0], [1.0]])
    >>> ft.scipy.signal.place_poles(A, B, [-1.0, -2.0]).gain_matrix.round(3).tolist()
    [[2.0, 3.0]]
    """
    one_of("signal.place_poles", "method", method, ("YT", "KNV0"))
    sweeps = known_size("signal.place_poles", "maxiter", maxiter)
    if rtol > 1:
        raise ArgumentError(f"functrans.scipy.signal.place_poles: rtol is {shown(rtol)}.",
                            where=user_source(), why="it is 1 at most.")
    system, inputs = real("signal.place_poles", A, B)
    a, b, wanted = _known(system, inputs, poles)
    if method == "KNV0" and (wanted.imag != 0).any():
        raise ArgumentError("functrans.scipy.signal.place_poles: method is 'KNV0' and a pole is "
                            "complex.", where=user_source(), fix="method='YT'")
    n = len(a)
    rank = int(np.linalg.matrix_rank(b))
    change, count = np.nan, np.nan
    if rank == n:
        basis = np.eye(n)
    else:
        basis, change, count = _eigenvectors(a, b, wanted, rank, method, sweeps, rtol)
    K, vectors = _feedback(system, inputs, wanted, basis, rank == n)
    closed = np.linalg.eigvals(a - b @ known_values("signal.place_poles", "A", K, "", ""))
    closed = np.concatenate([np.sort(closed[closed.imag == 0]), *(
        (p, np.conj(p)) for p in np.sort(closed[closed.imag < 0]))]) if (
            closed.imag != 0).any() else np.sort(closed.real)
    found = jnp.asarray(closed), jnp.asarray(wanted)
    return PlacedPoles(K, *found, vectors, float(change), count)


def _eigenvectors(a: Any, b: Any, wanted: Any, rank: int, method: str, sweeps: int, rtol: float
                  ) -> tuple[Any, float, float]:
    """Eigenvectors of A - B K of a large determinant, real and imaginary parts for a pair."""
    n = len(a)
    outside = np.linalg.svd(b)[0][:, rank:].T
    # the spaces of eigenvectors: (A - p) x is in the range of B
    spaces = [np.linalg.svd(outside @ (a - p * np.eye(n)))[2][n - rank:].conj().T for p in wanted]
    columns = np.zeros((n, n))
    blocks: list[tuple[int, ...]] = []
    j = 0
    while j < n:
        x = spaces[j].sum(1)
        if wanted[j].imag:
            columns[:, j], columns[:, j + 1] = x.real, x.imag
            blocks.append((j, j + 1))
        else:
            columns[:, j] = x.real
            blocks.append((j,))
        j += len(blocks[-1])
    scales = np.linalg.norm(columns, axis=0)
    columns /= np.where(scales == 0, 1, scales)
    if rank == 1:
        return columns, 0.0, 0
    singles = [block[0] for block in blocks if len(block) == 1]
    if method == "YT":
        # each real pole with the next one
        around: list[tuple[int, ...]] = [
            (i, k) for i, k in zip(singles, singles[1:] + singles[:1]) if i != k]
        steps = (around or [(i,) for i in singles]) + [v for v in blocks if len(v) == 2]
    else:
        steps = list(blocks)
    change = np.inf
    for count in range(1, sweeps + 1):
        before = abs(np.linalg.det(columns))
        for block in steps:
            columns[:, list(block)] = _best(columns, block, spaces, wanted)
        after = abs(np.linalg.det(columns))
        floor = max(np.sqrt(np.finfo(float).eps), after)
        change = abs(after - before) / floor
        if change < rtol and after > np.sqrt(np.finfo(float).eps):
            return columns, change, count
    if rtol > 0:
        warnings.warn(f"place_poles: the determinant still changes by {change:.1e} after {sweeps} "
                      "sweeps", stacklevel=3)
    return columns, change, sweeps


def _best(columns: Any, block: tuple[int, ...], spaces: list[Any], wanted: Any) -> Any:
    """The columns of a block that make the determinant largest, with the others as they are."""
    rest = np.delete(columns, block, axis=1)
    across = np.linalg.svd(rest)[0][:, rest.shape[1]:]  # (n, 1) or (n, 2)
    i = block[0]
    if len(block) == 1:
        x = spaces[i].real @ (spaces[i].real.T @ across)
    elif wanted[i].imag:
        # the area of real and imaginary part is a Hermitian form of the shares
        top, bottom = across.T @ spaces[i]
        form = (np.outer(top.conj(), bottom) - np.outer(bottom.conj(), top)) / 2j
        sizes, shares = np.linalg.eigh(form)
        z = spaces[i] @ shares[:, np.argmax(np.abs(sizes))]
        # the phase for which the parts are orthogonal: columns of the largest angle
        z = z * np.exp(-0.5j * np.angle(np.sum(z * z)))
        x = np.stack([z.real, z.imag], axis=1)
    else:
        first, second = (spaces[k].real.T @ across for k in block)
        turn = np.array([[0.0, 1.0], [-1.0, 0.0]])
        u, _, vt = np.linalg.svd(first @ turn @ second.T)
        x = np.stack([spaces[block[0]].real @ u[:, 0], spaces[block[1]].real @ vt[0]], axis=1)
    sizes = np.linalg.norm(x, axis=0)
    if not (sizes > _FLAT).all():
        return columns[:, list(block)]
    if len(block) == 2 and wanted[i].imag:
        return x  # both parts keep their proportion
    return x / sizes


def _feedback(A: Array, B: Array, wanted: Any, columns: Any, free: bool) -> tuple[Array, Array]:
    """K of eigenvectors that are brought back into their spaces, which follow A and B."""
    n = A.shape[0]
    back = pinv(B)
    # what is orthogonal to the range of B: the rows of full rank, which follow B
    known = known_values("signal.place_poles", "B", B, "", "").astype(float)
    rank = int(np.linalg.matrix_rank(known))
    fixed = jnp.asarray(np.linalg.svd(known)[0][:, rank:].T).astype(A.dtype)
    outside = fixed - matmul(matmul(fixed, B), back)
    dtype = jnp.promote_types(A.dtype, jnp.complex64)
    vectors, j = [], 0
    while j < n:
        p = wanted[j]
        pair = bool(p.imag)
        x = jnp.asarray(columns[:, j] + 1j * columns[:, j + 1] if pair else columns[:, j]).astype(
            dtype if pair else A.dtype)
        if not free:
            rows = matmul(outside, A - jnp.asarray(p).astype(x.dtype) * jnp.eye(n, dtype=x.dtype))
            gram = matmul(rows, jnp.conj(rows.T))
            x = x - matmul(jnp.conj(rows.T), jnp.linalg.solve(gram, matmul(rows, x)))
        vectors += [x, jnp.conj(x)] if pair else [x]
        j += 1 + pair
    if free:
        # any matrix with these eigenvalues: one block for each pole
        target = np.zeros((n, n))
        for i, p in enumerate(wanted):
            target[i, i] = p.real
            if p.imag < 0:
                target[i, i + 1], target[i + 1, i] = -p.imag, p.imag
        return matmul(back, A - jnp.asarray(target).astype(A.dtype)), jnp.eye(n, dtype=A.dtype)
    X = jnp.stack([v.astype(dtype) for v in vectors], axis=1)
    value = known_values("signal.place_poles", "A", X, "", "")
    if not np.linalg.cond(value) < 1 / np.finfo(value.dtype).eps:
        raise ArgumentError("functrans.scipy.signal.place_poles: these poles cannot be placed.",
                            where=user_source(), why="the eigenvectors are in a plane: the system "
                            "is not controllable.", fix="other poles, or more inputs")
    spectrum = jnp.asarray(wanted).astype(dtype)
    moved = jnp.linalg.solve(X.T, (X * spectrum).T).T
    return matmul(back, A - moved.real.astype(A.dtype)), X
