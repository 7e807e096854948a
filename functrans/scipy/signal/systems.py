"""Linear systems: their forms, and continuous ones as discrete ones.

A system is a tuple: numerator and denominator, zeros, poles and gain, or the matrices of its states
(A, B, C, D); a discrete one has its step of time behind them.
"""

from __future__ import annotations

from typing import Any

from functrans import numpy as jnp
from functrans.core.errors import ArgumentError, ShapeError, shown
from functrans.core.source import user_source
from functrans.scipy.arguments import inexact, one_of
from functrans.scipy.linalg import expm
from functrans.scipy.products import matmul
from functrans.scipy.signal.forms import tf2zpk
from functrans.scipy.signal.responses import zpk2tf
from functrans.typing import Array, ArrayLike

Matrices = tuple[Array, Array, Array, Array]
System = tuple[Any, ...]


def tf2ss(num: ArrayLike, den: ArrayLike) -> Matrices:
    """The matrices A, B, C and D of a numerator, or of a row for each output, and a denominator.

    They are those of the controller's canonical form. Raises ShapeError where the numerator is the
    longer one.

    >>> import functrans as ft
    >>> A, B, C, D = ft.scipy.signal.tf2ss([1.0, 3.0], [1.0, 2.0, 5.0])
    >>> A.tolist(), C.tolist()
    ([[-2.0, -5.0], [1.0, 0.0]], [[1.0, 3.0]])
    """
    top, bottom = inexact(num, den)
    top, bottom = jnp.atleast_2d(top), jnp.atleast_1d(bottom)
    order = bottom.shape[0] - 1
    if top.shape[1] > order + 1:
        raise ShapeError(f"functrans.scipy.signal.tf2ss: the numerator has {top.shape[1]} "
                         f"coefficients, the denominator {order + 1}.", where=user_source(),
                         why="such a system would differentiate its input.")
    top, bottom = top / bottom[0], bottom / bottom[0]
    top = jnp.pad(top, [(0, 0), (order + 1 - top.shape[1], 0)])
    D = top[:, :1]
    if not order:
        none = jnp.zeros((1, 1), top.dtype)
        return none, none, jnp.zeros_like(D), D
    A = jnp.concatenate([-bottom[None, 1:], jnp.eye(order - 1, order, dtype=top.dtype)])
    return A, jnp.eye(order, 1, dtype=top.dtype), top[:, 1:] - D * bottom[1:], D


def ss2tf(A: ArrayLike, B: ArrayLike, C: ArrayLike, D: ArrayLike, input: int = 0
          ) -> tuple[Array, Array]:
    """A row of the numerator for each output, and the denominator, of one input of a system.

    Source: the recursion of Faddeev and LeVerrier, which has derivatives at multiple poles, too,
    and loses digits beyond a dozen states.

    >>> import functrans as ft
    >>> A, B, C = [[-2.0, -5.0], [1.0, 0.0]], [[1.0], [0.0]], [[1.0, 3.0]]
    >>> num, den = ft.scipy.signal.ss2tf(A, B, C, 0.0)
    >>> num.tolist(), den.tolist()
    ([[0.0, 1.0, 3.0]], [1.0, 2.0, 5.0])
    """
    a, b, c, d = abcd_normalize(A, B, C, D)
    if not 0 <= input < b.shape[1]:
        raise ArgumentError(f"functrans.scipy.signal.ss2tf: input is {shown(input)}.",
                            where=user_source(), why=f"there are {b.shape[1]} inputs.")
    n, dtype = a.shape[0], a.dtype
    a, b, c, d = (v.astype(jnp.promote_types(dtype, jnp.float64)) for v in (a, b, c, d))
    column, eye = b[:, input:input + 1], jnp.eye(n)
    adjugate, den = eye, [jnp.ones((), a.dtype)]
    num = [jnp.zeros((c.shape[0], 1), a.dtype)]
    for k in range(1, n + 1):
        num.append(matmul(c, matmul(adjugate, column)))
        moved = matmul(a, adjugate)
        den.append(-jnp.trace(moved) / k)
        adjugate = moved + den[-1] * eye
    bottom = jnp.stack(den)
    top = jnp.concatenate(num, axis=1) + d[:, input:input + 1] * bottom
    return top.astype(dtype), bottom.astype(dtype)


def zpk2ss(z: ArrayLike, p: ArrayLike, k: ArrayLike) -> Matrices:
    """The matrices of zeros, poles and a gain, whose complex ones are conjugated pairs.

    >>> import functrans as ft
    >>> ft.scipy.signal.zpk2ss([], [-2.0], 3.0)[0].tolist()
    [[-2.0]]
    """
    top, bottom = zpk2tf(z, p, k)
    return tf2ss(jnp.real(top), jnp.real(bottom))


def ss2zpk(A: ArrayLike, B: ArrayLike, C: ArrayLike, D: ArrayLike, input: int = 0
           ) -> tuple[Array, Array, Array]:
    """Zeros, poles and gain of one input of a system of one output, outside of `jit`.

    >>> import functrans as ft
    >>> z, p, k = ft.scipy.signal.ss2zpk([[-2.0]], [[1.0]], [[3.0]], 0.0)
    >>> z.size, p.real.tolist(), float(k)
    (0, [-2.0], 3.0)
    """
    top, bottom = ss2tf(A, B, C, D, input)
    if top.shape[0] != 1:
        raise ShapeError(f"functrans.scipy.signal.ss2zpk: there are {top.shape[0]} outputs.",
                         where=user_source(), why="each has zeros of its own.",
                         fix="ss2zpk(A, B, C[:1], D[:1])")
    return tf2zpk(top[0], bottom)


def abcd_normalize(A: ArrayLike, B: ArrayLike, C: ArrayLike, D: ArrayLike) -> Matrices:
    """Four matrices that fit each other; raises ShapeError where they do not.

    >>> import functrans as ft
    >>> [v.shape for v in ft.scipy.signal.abcd_normalize([[1.0]], [[1.0, 2.0]], [[3.0]], 0.0)]
    [(1, 1), (1, 2), (1, 1), (1, 2)]
    """
    a, b, c, d = (jnp.atleast_2d(v) for v in inexact(A, B, C, D))
    n, inputs, outputs = a.shape[0], b.shape[1], c.shape[0]
    if d.size == 1:
        d = jnp.broadcast_to(d, (outputs, inputs))
    if a.shape != (n, n) or b.shape[0] != n or c.shape[1] != n or d.shape != (outputs, inputs):
        raise ShapeError(f"functrans.scipy.signal: A, B, C and D have shapes {a.shape}, {b.shape}, "
                         f"{c.shape} and {d.shape}.", where=user_source(),
                         why="they are (n, n), (n, inputs), (outputs, n) and (outputs, inputs).")
    return a, b, c, d


def matrices_of(name: str, system: System, discrete: bool = False) -> tuple[Matrices, Any]:
    """The matrices of a system of any form, and the step of time of a discrete one."""
    extra = int(discrete)
    if not isinstance(system, (tuple, list)) or len(system) - extra not in (2, 3, 4):
        many = f"of {len(system)} values" if isinstance(system, (tuple, list)) else ""
        raise ArgumentError(
            f"functrans.scipy.signal.{name}: the system is a {type(system).__name__} {many}.",
            where=user_source(), fix=", or ".join(f"({v}{', dt' * extra})" for v in (
                "num, den", "z, p, k", "A, B, C, D")))
    parts = list(system[:len(system) - extra])
    dt = system[-1] if discrete else None
    if len(parts) == 4:
        return abcd_normalize(*parts), dt
    return (tf2ss if len(parts) == 2 else zpk2ss)(*parts), dt


def transfer_of_system(name: str, system: System, discrete: bool = False
                       ) -> tuple[Array, Array]:
    """The numerator and the denominator of a system of one input and one output."""
    if len(system) - int(discrete) == 2:
        top, bottom = inexact(system[0], system[1])
        return jnp.atleast_1d(jnp.squeeze(top)), jnp.atleast_1d(bottom)
    if len(system) - int(discrete) == 3:
        return zpk2tf(*system[:3])
    found, bottom = ss2tf(*matrices_of(name, system, discrete)[0])
    if found.shape[0] != 1:
        raise ShapeError(f"functrans.scipy.signal.{name}: there are {found.shape[0]} outputs.",
                         where=user_source(), why="responses are those of one.")
    return found[0], bottom


_WEIGHTS = {"bilinear": 0.5, "tustin": 0.5, "euler": 0.0, "forward_diff": 0.0,
            "backward_diff": 1.0}


def cont2discrete(system: System, dt: ArrayLike, method: str = "zoh",
                  alpha: float | None = None) -> System:
    """A continuous system as a discrete one of step `dt`, in the same form, with `dt` behind it.

    Between steps the input is held ("zoh"), a line ("foh"), or the response to an impulse is the
    same ("impulse"); "gbt" weighs the ends of a step by `alpha`, which is 1/2 for "bilinear", 0
    for "euler" and 1 for "backward_diff". Zeros, poles and gain are found outside of `jit`.

    >>> import functrans as ft
    >>> A, B, C, D, dt = ft.scipy.signal.cont2discrete(([[0.0]], [[1.0]], [[1.0]], [[0.0]]), 0.5)
    >>> A.tolist(), B.tolist(), dt
    ([[1.0]], [[0.5]], 0.5)
    """
    one_of("signal.cont2discrete", "method", method, (
        "zoh", "foh", "impulse", "gbt", *_WEIGHTS))
    (a, b, c, d), _ = matrices_of("cont2discrete", system)
    if method == "gbt" and (alpha is None or not 0 <= alpha <= 1):
        raise ArgumentError(f"functrans.scipy.signal.cont2discrete: alpha is {shown(alpha)}.",
                            where=user_source(), why='it is between 0 and 1 for "gbt".')
    a, b, c, d, step = inexact(a, b, c, d, dt)
    n = a.shape[0]
    if method == "zoh":
        whole = expm(_stacked(a * step, b * step))
        a, b = whole[:n, :n], whole[:n, n:]
    elif method == "foh":
        a, now, later = ramp_of(a, b, step)
        b, d = now + matmul(a, later), d + matmul(c, later)
    elif method == "impulse":
        a, d = expm(a * step), d + matmul(c, b) * step
        b = matmul(a, b) * step
    else:
        weight = float(alpha or 0.0) if method == "gbt" else _WEIGHTS[method]
        eye = jnp.eye(n, dtype=a.dtype)
        left = eye - weight * step * a
        b = jnp.linalg.solve(left, step * b)
        d = d + weight * matmul(c, b)
        c = jnp.linalg.solve(left.T, c.T).T
        a = jnp.linalg.solve(left, eye + (1 - weight) * step * a)
    if len(system) == 4:
        return a, b, c, d, dt
    if len(system) == 2:
        return (*ss2tf(a, b, c, d), dt)
    return (*ss2zpk(a, b, c, d), dt)


def _stacked(a: Array, b: Array) -> Array:
    """The matrix of states and inputs that do not change."""
    rows = jnp.concatenate([a, b], axis=1)
    return jnp.pad(rows, [(0, b.shape[1]), (0, 0)])


def ramp_of(a: Array, b: Array, dt: ArrayLike) -> tuple[Array, Array, Array]:
    """What a step makes of the state, of the input at its start and of that at its end.

    The input goes from one to the other along a line.
    """
    n, m = b.shape
    rows = jnp.concatenate([a * dt, b * dt, jnp.zeros((n, m), a.dtype)], axis=1)
    slopes = jnp.eye(m, 2 * m, m, dtype=a.dtype)
    rows = jnp.concatenate([rows, jnp.pad(slopes, [(0, m), (n, 0)])])
    whole = expm(rows)
    later = whole[:n, n + m:]
    return whole[:n, :n], whole[:n, n:n + m] - later, later
