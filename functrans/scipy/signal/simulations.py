"""What linear systems do: to inputs, to a step, to an impulse, and by frequency."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from functrans import lax
from functrans import numpy as jnp
from functrans.core.errors import ShapeError
from functrans.core.source import user_source
from functrans.scipy.arguments import inexact, known_size, known_values
from functrans.scipy.linalg import expm
from functrans.scipy.products import matmul
from functrans.scipy.signal.forms import freqs
from functrans.scipy.signal.systems import (
    System,
    cont2discrete,
    matrices_of,
    ramp_of,
    transfer_of_system,
)
from functrans.typing import Array, ArrayLike


def _inputs(name: str, u: ArrayLike, count: int, inputs: int, dtype: Any) -> Array:
    values = jnp.asarray(u, dtype)
    values = values[:, None] if values.ndim == 1 else values
    if values.shape != (count, inputs):
        raise ShapeError(f"functrans.scipy.signal.{name}: the input has shape {values.shape}.",
                         where=user_source(), why=f"there are {count} times and {inputs} inputs.")
    return values


def lsim(system: System, U: ArrayLike | None, T: ArrayLike, X0: ArrayLike | None = None,
         interp: bool = True) -> tuple[Array, Array, Array]:
    """Times, the output and the states of a continuous system with the input U at times T.

    T is equally spaced and grows from 0 or later on, where X0 is the state at 0. Between times the
    input is a line, or held without `interp`; None is none. Differentiated in all of the system,
    the input, the times and X0.

    >>> import functrans as ft
    >>> T = ft.numpy.linspace(0.0, 1.0, 5)
    >>> t, y, x = ft.scipy.signal.lsim(([1.0], [1.0, 0.0]), T, T)
    >>> round(float(y[-1]), 4)
    0.5
    """
    (a, b, c, d), _ = matrices_of("lsim", system)
    a, b, c, d, times, _ = inexact(a, b, c, d, T, 0.0 if U is None else U)
    times = jnp.atleast_1d(times)
    n, m = b.shape
    count = times.shape[0]
    start = jnp.zeros(n, a.dtype) if X0 is None else jnp.asarray(X0, a.dtype).reshape(-1)
    if start.shape != (n,):
        raise ShapeError(f"functrans.scipy.signal.lsim: X0 has {start.shape[0]} elements.",
                         where=user_source(), why=f"there are {n} states.")
    none = U is None or (isinstance(U, (int, float)) and U == 0)
    u = jnp.zeros((count, m), a.dtype) if none or U is None else _inputs("lsim", U, count, m,
                                                                         a.dtype)
    first = matmul(expm(a * times[0]), start)
    if count == 1:
        states = first[None]
    else:
        dt = times[1] - times[0]
        if interp:
            step, now, later = ramp_of(a, b, dt)
        else:
            step, now, *_ = cont2discrete((a, b, c, d), dt)
            later = jnp.zeros_like(now)
        pushed = matmul(u[:-1], now.T) + matmul(u[1:], later.T)
        states = _walk(step, first, pushed)
    y = matmul(states, c.T) + matmul(u, d.T)
    return times, jnp.squeeze(y), jnp.squeeze(states)


def _walk(step: Array, first: Array, pushed: Array) -> Array:
    """The states x, step @ x + pushed[0], ... from the first on."""
    def one(x: Array, push: Array) -> tuple[Array, Array]:
        after = matmul(step, x) + push
        return after, after

    later = lax.scan(one, first, pushed)[1]
    return jnp.concatenate([first[None], later])


def _times(a: Array, T: ArrayLike | None, N: int | None) -> Array:
    """Times up to seven of the slowest decay, where none are given."""
    if T is not None:
        (times,) = inexact(T)
        return times
    slowest = jnp.min(jnp.abs(jnp.real(jnp.linalg.eigvals(a))))
    end = 7 / jnp.where(slowest == 0, 1, slowest)
    return end.astype(a.dtype) * jnp.linspace(0, 1, 100 if N is None else known_size(
        "signal", "N", N, 2), dtype=a.dtype)


def step(system: System, X0: ArrayLike | None = None, T: ArrayLike | None = None,
         N: int | None = None) -> tuple[Array, Array]:
    """Times and the output of a continuous system for the input 1, from the state X0 on.

    `N` is how many times there are where T is not given, 100 by default.

    >>> import functrans as ft
    >>> t, y = ft.scipy.signal.step(([1.0], [1.0, 1.0]))
    >>> round(float(y[-1]), 3)
    0.999
    """
    matrices, _ = matrices_of("step", system)
    times = _times(matrices[0], T, N)
    return lsim(matrices, jnp.ones((times.shape[0], matrices[1].shape[1])), times, X0, False)[:2]


def impulse(system: System, X0: ArrayLike | None = None, T: ArrayLike | None = None,
            N: int | None = None) -> tuple[Array, Array]:
    """Times and the output of a continuous system of one input after an impulse; see `step`.

    >>> import functrans as ft
    >>> t, y = ft.scipy.signal.impulse(([2.0], [1.0, 1.0]))
    >>> float(y[0])
    2.0
    """
    matrices, _ = matrices_of("impulse", system)
    b = matrices[1]
    if b.shape[1] != 1:
        raise ShapeError(f"functrans.scipy.signal.impulse: there are {b.shape[1]} inputs.",
                         where=user_source(), why="the impulse is that of one.")
    times = _times(matrices[0], T, N)
    state = b[:, 0] if X0 is None else b[:, 0] + jnp.asarray(X0, b.dtype).reshape(-1)
    return lsim(matrices, None, times, state, False)[:2]


def dlsim(system: System, u: ArrayLike, t: ArrayLike | None = None, x0: ArrayLike | None = None
          ) -> tuple[Array, ...]:
    """Times and the output of a discrete system, and its states where it is given by matrices.

    `u` is the input at each step of time, or at times `t`, between which it is a line; these, and
    the step, are then known. Raises ArgumentError for a system without its step.

    >>> import functrans as ft
    >>> t, y = ft.scipy.signal.dlsim(([1.0], [1.0, -0.5], 1.0), [1.0, 0.0, 0.0])
    >>> y.tolist()
    [[0.0], [1.0], [0.5]]
    """
    (a, b, c, d), dt = matrices_of("dlsim", system, True)
    a, b, c, d, _ = inexact(a, b, c, d, u)
    inputs = b.shape[1]
    if t is None:
        values = jnp.asarray(u)
        values = _inputs("dlsim", values, values.shape[0], inputs, a.dtype)
        count = values.shape[0]
    else:
        given, unit = (known_values("signal.dlsim", argument, v, "the number of steps follows.",
                                    "dlsim(system, u)") for argument, v in (("t", t), ("dt", dt)))
        given = np.atleast_1d(given.astype(float))
        values = _inputs("dlsim", u, given.size, inputs, a.dtype)
        count = math.floor(float(given[-1]) / float(unit)) + 1
        at = jnp.asarray(np.linspace(0.0, given[-1], count)).astype(a.dtype)
        known = jnp.asarray(given).astype(a.dtype)
        values = jnp.stack([jnp.interp(at, known, values[:, i]) for i in range(inputs)], axis=1)
    start = jnp.zeros(a.shape[0], a.dtype) if x0 is None else jnp.asarray(
        x0, a.dtype).reshape(-1)
    states = _walk(a, start, matmul(values[:-1], b.T))
    y = matmul(states, c.T) + matmul(values, d.T)
    times = jnp.arange(count) * jnp.asarray(dt, a.dtype)
    return (times, y, states) if len(system) == 5 else (times, y)


def _each_input(name: str, system: System, x0: ArrayLike | None, t: ArrayLike | None,
                n: int | None, shape: Any) -> tuple[Array, tuple[Array, ...]]:
    matrices, dt = matrices_of(name, system, True)
    inputs = matrices[1].shape[1]
    count = 100 if n is None else known_size(f"signal.{name}", "n", n)
    if t is not None:
        count = jnp.atleast_1d(jnp.asarray(t)).shape[0]
    found = []
    times: Any = None
    for i in range(inputs):
        u = jnp.zeros((count, inputs)).at[:, i].set(shape(count))
        times, y, _ = dlsim((*matrices, dt), u, t, x0)
        found.append(y)
    return times, tuple(found)


def dstep(system: System, x0: ArrayLike | None = None, t: ArrayLike | None = None,
          n: int | None = None) -> tuple[Array, tuple[Array, ...]]:
    """Times, and for each input of a discrete system the output where that input is 1.

    `n` is how many steps there are where `t` is not given, 100 by default.

    >>> import functrans as ft
    >>> t, (y,) = ft.scipy.signal.dstep(([1.0], [1.0, -0.5], 1.0), n=3)
    >>> y.tolist()
    [[0.0], [1.0], [1.5]]
    """
    return _each_input("dstep", system, x0, t, n, jnp.ones)


def dimpulse(system: System, x0: ArrayLike | None = None, t: ArrayLike | None = None,
             n: int | None = None) -> tuple[Array, tuple[Array, ...]]:
    """Times, and for each input of a discrete system the output after an impulse; see `dstep`.

    >>> import functrans as ft
    >>> t, (y,) = ft.scipy.signal.dimpulse(([1.0], [1.0, -0.5], 1.0), n=3)
    >>> y.tolist()
    [[0.0], [1.0], [0.5]]
    """
    return _each_input("dimpulse", system, x0, t, n, lambda count: jnp.eye(1, count)[0])


# By frequency --------------------------------------------------------------------------------


def findfreqs(num: ArrayLike, den: ArrayLike, N: int, kind: str = "ba") -> Array:
    """N frequencies at which an analog filter shows what it does, from coefficients that are known.

    With kind="zp" they are its zeros and its poles.

    >>> import functrans as ft
    >>> print(ft.scipy.signal.findfreqs([1.0], [1.0, 8.0, 25.0], 3).round(3))
    [  1.  10. 100.]
    """
    top, bottom = (np.atleast_1d(np.asarray(v)) for v in (num, den))
    zeros, poles = (top, bottom) if kind == "zp" else (np.roots(top), np.roots(bottom))
    poles = (poles if poles.size else np.array([-1000.0])) + 0j
    zeros = zeros + 0j
    points = np.concatenate([poles[poles.imag >= 0],
                             zeros[(np.abs(zeros) < 1e5) & (zeros.imag >= 0)]])
    at_zero = np.abs(points) < 1e-10
    size = np.abs(points.real + at_zero)
    high = np.round(np.log10(np.max(3 * size + 1.5 * points.imag)) + 0.5)
    low = np.round(np.log10(0.1 * np.min(size + 2 * points.imag)) - 0.5)
    return inexact(np.logspace(low, high, known_size("signal.findfreqs", "N", N)).tolist())[0]


def freqs_zpk(z: ArrayLike, p: ArrayLike, k: ArrayLike, worN: int | ArrayLike = 200
              ) -> tuple[Array, Array]:
    """Angular frequencies, and the response of an analog filter of zeros and poles there.

    >>> import functrans as ft
    >>> w, h = ft.scipy.signal.freqs_zpk([], [-1.0], 1.0, [0.0, 1.0])
    >>> print(abs(h).round(4))
    [1.     0.7071]
    """
    zeros, poles, gain = (jnp.atleast_1d(v) for v in inexact(z, p, k))
    w = findfreqs(zeros, poles, worN, "zp") if isinstance(worN, int) else jnp.atleast_1d(
        inexact(worN)[0])
    at = 1j * w[:, None]
    return w, gain * jnp.prod(at - zeros, axis=1) / jnp.prod(at - poles, axis=1)


def freqresp(system: System, w: ArrayLike | None = None, n: int = 10000) -> tuple[Array, Array]:
    """Angular frequencies, and the response of a continuous system there.

    Without `w` they are n that `findfreqs` chooses, outside of `jit`.

    >>> import functrans as ft
    >>> w, h = ft.scipy.signal.freqresp(([1.0], [1.0, 1.0]), [1.0])
    >>> print(abs(h).round(4))
    [0.7071]
    """
    top, bottom = transfer_of_system("freqresp", system)
    return freqs(top, bottom, findfreqs(top, bottom, n) if w is None else w)


def dfreqresp(system: System, w: ArrayLike | None = None, n: int = 10000, whole: bool = False
              ) -> tuple[Array, Array]:
    """Angles on the circle, and the response of a discrete system there.

    Without `w` they are n up to pi, or to 2 pi with `whole`.

    >>> import functrans as ft
    >>> w, h = ft.scipy.signal.dfreqresp(([1.0], [1.0, -0.5], 1.0), [0.0])
    >>> print(abs(h).round(4))
    [2.]
    """
    top, bottom = transfer_of_system("dfreqresp", system, True)
    (at,) = inexact(np.linspace(0, (2 if whole else 1) * math.pi, n, endpoint=False).tolist()
                    if w is None else w)
    z = jnp.exp(1j * at)
    return at, jnp.polyval(top, z) / jnp.polyval(bottom, z)


def _decibels(w: Array, h: Array) -> tuple[Array, Array, Array]:
    return w, 20 * jnp.log10(jnp.abs(h)), jnp.unwrap(jnp.angle(h)) * (180 / math.pi)


def bode(system: System, w: ArrayLike | None = None, n: int = 100) -> tuple[Array, Array, Array]:
    """Angular frequencies, the response of a continuous system in dB, and its phase in degrees.

    >>> import functrans as ft
    >>> w, gain, phase = ft.scipy.signal.bode(([1.0], [1.0, 1.0]), [1.0])
    >>> print(gain.round(2), phase.round(2))
    [-3.01] [-45.]
    """
    return _decibels(*freqresp(system, w, n))


def dbode(system: System, w: ArrayLike | None = None, n: int = 100) -> tuple[Array, Array, Array]:
    """Angular frequencies, the response of a discrete system in dB, and its phase in degrees.

    `w` are angles on the circle, from which the frequencies follow by the step of time.

    >>> import functrans as ft
    >>> w, gain, phase = ft.scipy.signal.dbode(([1.0], [1.0, -0.5], 0.5), [0.0, 1.0])
    >>> w.tolist(), round(float(gain[0]), 2)
    ([0.0, 2.0], 6.02)
    """
    at, gain, phase = _decibels(*dfreqresp(system, w, n))
    return at / system[-1], gain, phase
