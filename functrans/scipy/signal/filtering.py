"""Filters by rational transfer functions: b and a, or sections of second order.

A recursive filter is a scan over time whose carry are the delays, in the transposed direct form II:
one loop to a compiler, over all lines in vectors. One without feedback is a convolution.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from functrans import lax
from functrans import numpy as jnp
from functrans.core.errors import ShapeError
from functrans.core.source import user_source
from functrans.numpy.common import axis_index
from functrans.scipy.arguments import inexact, known_size, of_rank, one_of
from functrans.scipy.axes import EXTENSIONS
from functrans.scipy.signal.gustafsson import agreeing
from functrans.typing import Array, ArrayLike

_UNROLLED = 32  # delays that are carried one by one


def lfilter(b: ArrayLike, a: ArrayLike, x: ArrayLike, axis: int = -1,
            zi: ArrayLike | None = None) -> Array | tuple[Array, Array]:
    """x filtered along an axis: a[0] y[n] = sum b[k] x[n-k] - sum a[k] y[n-k], k from 1 in a.

    `zi` are the initial delays, max(len(a), len(b)) - 1 of them along the axis; with them the
    result is the pair of y and the last ones. Raises ShapeError where they do not fit.

    >>> import functrans as ft
    >>> ft.scipy.signal.lfilter([1.0], [1.0, -0.5], ft.numpy.array([1.0, 0.0, 0.0])).tolist()
    [1.0, 0.5, 0.25]
    """
    b, a, signal, *state = inexact(b, a, x, *([] if zi is None else [zi]))
    b, a = _coefficients("lfilter", b, a)
    axis = axis_index(axis, signal.ndim, "lfilter")
    signal = jnp.moveaxis(signal, axis, -1)
    order = b.shape[0] - 1
    if state:
        delays = jnp.moveaxis(state[0], axis, -1) if state[0].ndim == signal.ndim else state[0]
        if delays.shape[-1:] != (order,):
            raise ShapeError(f"functrans.scipy.signal.lfilter: zi has shape {state[0].shape}.",
                             where=user_source(), why=f"there are {order} delays, along the axis "
                             "that is filtered.")
        delays = jnp.broadcast_to(delays, (*signal.shape[:-1], order))
    else:
        delays = jnp.zeros((*signal.shape[:-1], order), signal.dtype)
    y, last = _filtered(b, a, signal, delays)
    y = jnp.moveaxis(y, -1, axis)
    return (y, jnp.moveaxis(last, -1, axis)) if state else y


def lfilter_zi(b: ArrayLike, a: ArrayLike) -> Array:
    """The delays of `lfilter` whose response to a constant of 1 is constant.

    >>> import functrans as ft
    >>> ft.scipy.signal.lfilter_zi([1.0], [1.0, -0.5]).tolist()
    [1.0]
    """
    b, a = _coefficients("lfilter_zi", *inexact(b, a))
    return _steady(b, a)


def lfiltic(b: ArrayLike, a: ArrayLike, y: ArrayLike, x: ArrayLike | None = None) -> Array:
    """The delays of `lfilter` after the outputs y and the inputs x, the last ones first.

    Those that are missing are 0.

    >>> import functrans as ft
    >>> ft.scipy.signal.lfiltic([1.0], [1.0, -0.5], [4.0]).tolist()
    [2.0]
    """
    top, bottom, after, before = (jnp.atleast_1d(v) for v in inexact(
        b, a, y, [] if x is None else x))
    orders = top.shape[0] - 1, bottom.shape[0] - 1
    size = max(orders)
    top, bottom = top / bottom[0], bottom / bottom[0]
    delays = jnp.zeros(size, top.dtype)
    for sign, c, order, values in ((1, top, orders[0], before), (-1, bottom, orders[1], after)):
        known = jnp.pad(values, (0, max(order - values.shape[0], 0)))[:order]
        for m in range(order):
            delays = delays.at[m].add(sign * jnp.sum(c[m + 1:] * known[:order - m]))
    return delays


def filtfilt(b: ArrayLike, a: ArrayLike, x: ArrayLike, axis: int = -1,
             padtype: str | None = "odd", padlen: int | None = None, method: str = "pad",
             irlen: int | None = None) -> Array:
    """x filtered forwards and backwards, which shifts no phase.

    The signal is continued by `padlen` points (3 max(len(a), len(b)) by default) by `padtype`:
    "odd", "even", "constant" or None. With `method="gust"` it is not continued: delays at both ends
    are those for which both orders agree; `irlen` is the length of the response.
    Raises ShapeError for a signal that is not longer than what it is continued by.

    >>> import functrans as ft
    >>> ft.scipy.signal.filtfilt([0.5, 0.5], [1.0], ft.numpy.ones(8)).tolist()
    [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]
    """
    one_of("signal.filtfilt", "method", method, ("pad", "gust"))
    b, a, signal = inexact(b, a, x)
    if method == "gust":
        length = None if irlen is None else known_size("signal.filtfilt", "irlen", irlen)
        place = axis_index(axis, signal.ndim, "filtfilt")
        lines = jnp.moveaxis(signal, place, -1)
        found = agreeing(lfilter, jnp.atleast_1d(b), jnp.atleast_1d(a), lines, length)
        return jnp.moveaxis(found, -1, place)
    taps = max(b.size, a.size)
    b, a = _coefficients("filtfilt", b, a)
    start = _steady(b, a)
    return _both_ways("filtfilt", lambda v, first: _filtered(b, a, v, start * first)[0], signal,
                      axis, padtype, 3 * taps if padlen is None else padlen)


def sosfilt(sos: ArrayLike, x: ArrayLike, axis: int = -1, zi: ArrayLike | None = None
            ) -> Array | tuple[Array, Array]:
    """x filtered along an axis by sections of second order, one after the other.

    `sos` has shape (sections, 6): b and a of each. `zi` are the initial delays, of the shape of x
    after an axis of sections and with 2 along the axis; with them the last ones are returned too.

    >>> import functrans as ft
    >>> sos = [[1.0, 0.0, 0.0, 1.0, -0.5, 0.0]]
    >>> ft.scipy.signal.sosfilt(sos, ft.numpy.array([1.0, 0.0, 0.0])).tolist()
    [1.0, 0.5, 0.25]
    """
    sections, signal, *state = inexact(sos, x, *([] if zi is None else [zi]))
    sections = _sections("sosfilt", sections)
    axis = axis_index(axis, signal.ndim, "sosfilt")
    signal = jnp.moveaxis(signal, axis, -1)
    shape = (sections.shape[0], *signal.shape[:-1], 2)
    if state:
        delays = jnp.moveaxis(state[0], axis + 1, -1)
        if delays.shape != shape:
            raise ShapeError(f"functrans.scipy.signal.sosfilt: zi has shape {state[0].shape}.",
                             where=user_source(), why=f"with the axis at the end it is {shape}.")
    else:
        delays = jnp.zeros(shape, signal.dtype)
    y, last = _by_sections(sections, signal, delays)
    y = jnp.moveaxis(y, -1, axis)
    return (y, jnp.moveaxis(last, -1, axis + 1)) if state else y


def sosfilt_zi(sos: ArrayLike) -> Array:
    """The delays of `sosfilt` whose response to a constant of 1 is constant, (sections, 2).

    >>> import functrans as ft
    >>> ft.scipy.signal.sosfilt_zi([[1.0, 0.0, 0.0, 1.0, -0.5, 0.0]]).tolist()
    [[1.0, 0.0]]
    """
    return _steady_sections(_sections("sosfilt_zi", inexact(sos)[0]))


def sosfiltfilt(sos: ArrayLike, x: ArrayLike, axis: int = -1, padtype: str | None = "odd",
                padlen: int | None = None) -> Array:
    """x filtered forwards and backwards by sections of second order; see `filtfilt`.

    >>> import functrans as ft
    >>> sos = [[0.5, 0.5, 0.0, 1.0, 0.0, 0.0]]
    >>> ft.scipy.signal.sosfiltfilt(sos, ft.numpy.ones(8)).tolist()
    [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]
    """
    sections, signal = inexact(sos, x)
    sections = _sections("sosfiltfilt", sections)
    if padlen is None:
        taps = 2 * sections.shape[0] + 1
        try:  # sections of first order count once, where they can be told
            values = np.asarray(sections)
            taps -= min((values[:, 2] == 0).sum(), (values[:, 5] == 0).sum())
        except TypeError:
            pass
        padlen = 3 * int(taps)
    start = _steady_sections(sections)

    def run(v: Array, first: Array) -> Array:
        delays = start.reshape(-1, *(1,) * (v.ndim - 1), 2) * first
        return _by_sections(sections, v, delays)[0]

    return _both_ways("sosfiltfilt", run, signal, axis, padtype, padlen)


def _coefficients(name: str, b: Array, a: Array) -> tuple[Array, Array]:
    """b and a of one size, divided by a[0]."""
    b, a = jnp.atleast_1d(b), jnp.atleast_1d(a)
    for argument, v in (("b", b), ("a", a)):
        of_rank(f"signal.{name}", argument, v, 1)
        if not v.shape[0]:
            raise ShapeError(f"functrans.scipy.signal.{name}: {argument} is empty.",
                             where=user_source())
    size = max(b.shape[0], a.shape[0])
    if a.shape[0] == 1:
        return jnp.pad(b / a[0], (0, size - b.shape[0])), jnp.ones(1, a.dtype)
    return (jnp.pad(b / a[0], (0, size - b.shape[0])), jnp.pad(a / a[0], (0, size - a.shape[0])))


def _steady(b: Array, a: Array) -> Array:
    if a.shape[0] < b.shape[0]:
        a = jnp.pad(a, (0, b.shape[0] - a.shape[0]))
    difference = (b - a * b[0])[1:]
    first = jnp.sum(difference) / jnp.sum(a)
    # before the first delay there is none, so that its term is the first itself
    sums_a, sums_b = jnp.cumsum(a)[:-1], jnp.cumsum(difference)
    before = jnp.concatenate([jnp.zeros(1, sums_b.dtype), sums_b[:-1]])
    return sums_a * first - before


def _sections(name: str, sos: Array) -> Array:
    of_rank(f"signal.{name}", "sos", sos, 2)
    if sos.shape[1] != 6:
        raise ShapeError(f"functrans.scipy.signal.{name}: sos has shape {sos.shape}.",
                         where=user_source(), why="a section has six coefficients.")
    return sos / sos[:, 3:4]


def _steady_sections(sos: Array) -> Array:
    gain = jnp.ones((), sos.dtype)
    found = []
    for i in range(sos.shape[0]):
        b, a = sos[i, :3], sos[i, 3:]
        found.append(gain * _steady(b, a))
        gain = gain * jnp.sum(b) / jnp.sum(a)
    return jnp.stack(found)


def _filtered(b: Array, a: Array, x: Array, delays: Array) -> tuple[Array, Array]:
    """The filtered signal along the last axis, and the delays after it."""
    order = b.shape[0] - 1
    delays = jnp.broadcast_to(delays, (*x.shape[:-1], order)).astype(x.dtype)
    if not order:
        return b[0] * x, delays
    if a.shape[0] == 1:
        return _without_feedback(b, x, delays)
    if order <= _UNROLLED:
        def step(state: tuple[Any, ...], value: Any) -> Any:
            out = b[0] * value + state[0]
            later = (*state[1:], 0)
            return tuple(b[k + 1] * value - a[k + 1] * out + later[k]
                         for k in range(order)), out

        start = tuple(delays[..., k] for k in range(order))
        last, y = lax.scan(step, start, jnp.moveaxis(x, -1, 0))
        return jnp.moveaxis(y, 0, -1), jnp.stack(last, axis=-1)

    def step_of_many(state: Any, value: Any) -> Any:
        out = b[0] * value + state[..., 0]
        later = jnp.concatenate([state[..., 1:], jnp.zeros_like(state[..., :1])], axis=-1)
        return b[1:] * value[..., None] - a[1:] * out[..., None] + later, out

    many, y = lax.scan(step_of_many, delays, jnp.moveaxis(x, -1, 0))
    return jnp.moveaxis(y, 0, -1), many


def _without_feedback(b: Array, x: Array, delays: Array) -> tuple[Array, Array]:
    order, size = b.shape[0] - 1, x.shape[-1]
    lines = x.reshape(-1, 1, size)
    y = lax.conv_general_dilated(lines, b[::-1][None, None], (1,), [(order, order)],
                                 precision="highest")
    y = y.reshape(*x.shape[:-1], size + order)
    y = y + jnp.pad(delays, [(0, 0)] * (x.ndim - 1) + [(0, size)])
    return y[..., :size], y[..., size:]


def _by_sections(sos: Array, x: Array, delays: Array) -> tuple[Array, Array]:
    count = sos.shape[0]
    delays = jnp.broadcast_to(delays, (count, *x.shape[:-1], 2)).astype(x.dtype)

    def step(state: Any, value: Any) -> Any:
        after = []
        for i, (first, second) in enumerate(state):
            out = sos[i, 0] * value + first
            after.append((sos[i, 1] * value - sos[i, 4] * out + second,
                          sos[i, 2] * value - sos[i, 5] * out))
            value = out
        return tuple(after), value

    start = tuple((delays[i, ..., 0], delays[i, ..., 1]) for i in range(count))
    last, y = lax.scan(step, start, jnp.moveaxis(x, -1, 0))
    return jnp.moveaxis(y, 0, -1), jnp.stack([jnp.stack(pair, axis=-1) for pair in last])


def _both_ways(name: str, run: Any, x: Array, axis: int, padtype: str | None, padlen: int
               ) -> Array:
    one_of(f"signal.{name}", "padtype", padtype, ("odd", "even", "constant", None))
    axis = axis_index(axis, x.ndim, name)
    x = jnp.moveaxis(x, axis, -1)
    count = 0 if padtype is None else int(padlen)
    if count:
        if x.shape[-1] <= count:
            raise ShapeError(f"functrans.scipy.signal.{name}: the signal has {x.shape[-1]} points.",
                             where=user_source(), why=f"more than padlen={count} are needed.",
                             fix="a smaller padlen, padtype=None")
        x = EXTENSIONS[padtype or "odd"](f"signal.{name}", x, count)
    y = run(x, x[..., :1])[..., ::-1]
    y = run(y, y[..., :1])[..., ::-1]
    return jnp.moveaxis(y[..., count:y.shape[-1] - count], -1, axis)
