"""The names of FITPACK for splines of one variable."""

from __future__ import annotations

from typing import Any

from functrans import numpy as jnp
from functrans.core.errors import ArgumentError
from functrans.core.source import user_source
from functrans.scipy.arguments import one_of
from functrans.scipy.interpolate.bsplines import BSpline
from functrans.scipy.interpolate.univariate import (
    LSQUnivariateSpline,
    UnivariateSpline,
    evaluated,
    smoothing_of,
)
from functrans.typing import Array, ArrayLike

Tck = tuple[Any, Any, int]
Values = Array | list[Array]  # of a spline, or of each coordinate of a curve


def splrep(x: ArrayLike, y: ArrayLike, w: ArrayLike | None = None, xb: float | None = None,
           xe: float | None = None, k: int = 3, task: int = 0, s: float | None = None,
           t: ArrayLike | None = None) -> Tck:
    """Knots, coefficients and degree of a spline near y at growing places x.

    It goes through y, or leaves `s`, the sum of the squares of w (y - f(x)), which is m - sqrt(2 m)
    for m places where weights are given and `s` is not; see `make_splrep`. With `task=-1` it is
    that of least squares with the knots `t` within.

    >>> import functrans as ft
    >>> x = ft.numpy.arange(5.0)
    >>> tck = ft.scipy.interpolate.splrep(x, x ** 2)
    >>> round(float(ft.scipy.interpolate.splev(1.5, tck)), 4)
    2.25
    """
    one_of("interpolate.splrep", "task", task, (0, -1))
    if task == -1 or t is not None:
        if t is None:
            raise ArgumentError("functrans.scipy.interpolate.splrep: task is -1.",
                                where=user_source(), why="the knots are given.", fix="t=knots")
        made = LSQUnivariateSpline(x, y, t, w, (xb, xe), k).spline
    else:
        places = jnp.asarray(x)
        amount = smoothing_of(places.shape[0] if places.ndim else 0, w, s)
        made = UnivariateSpline(x, y, w, (xb, xe), k, amount).spline
    return made.t, jnp.concatenate([made.c, jnp.zeros(k + 1, made.c.dtype)]), k


def spline_of(name: str, tck: Any) -> BSpline:
    if isinstance(tck, BSpline):
        return tck
    if not isinstance(tck, (tuple, list)) or len(tck) != 3:
        raise ArgumentError(f"functrans.scipy.interpolate.{name}: tck is a "
                            f"{type(tck).__name__}.", where=user_source(),
                            fix="tck = splrep(x, y), or a BSpline")
    return BSpline(*tck)


def curves_of(tck: Any) -> list[Tck] | None:
    """The splines of the coordinates of a curve, of which `splprep` has a list of coefficients."""
    if isinstance(tck, (tuple, list)) and len(tck) == 3 and jnp.ndim(tck[1][0]) > 0:
        return [(tck[0], c, tck[2]) for c in tck[1]]
    return None


def splev(x: ArrayLike, tck: Any, der: int = 0, ext: int = 0) -> Values:
    """A spline, or its derivative of order `der`, at x; a list of these of a curve of `splprep`.

    `ext` says what is outside: the outer polynomials (0), 0 (1) or the value at the end (3).

    >>> import functrans as ft
    >>> float(ft.scipy.interpolate.splev(0.5, ([0.0, 0.0, 1.0, 1.0], [1.0, 3.0], 1)))
    2.0
    """
    one_of("interpolate.splev", "ext", ext, (0, 1, 3))
    curves = curves_of(tck)
    if curves is not None:
        return [evaluated(spline_of("splev", one), x, der, ext) for one in curves]
    return evaluated(spline_of("splev", tck), x, der, ext)


def splint(a: ArrayLike, b: ArrayLike, tck: Any) -> Values:
    """The integral of a spline from a to b; it is 0 outside of its knots.

    >>> import functrans as ft
    >>> float(ft.scipy.interpolate.splint(0.0, 1.0, ([0.0, 0.0, 1.0, 1.0], [1.0, 3.0], 1)))
    2.0
    """
    curves = curves_of(tck)
    if curves is not None:
        return [_integral(a, b, one) for one in curves]
    return _integral(a, b, tck)


def _integral(a: ArrayLike, b: ArrayLike, tck: Any) -> Array:
    made = spline_of("splint", tck)
    return BSpline(made.t, made.c, made.k, False).integrate(a, b)


def _tck(made: BSpline, like: Any, rest: Array) -> BSpline | tuple[Array, Array, int]:
    """A spline in the form of another: an object, or knots, coefficients and degree.

    `rest` are coefficients beyond the last, of which FITPACK has as many as knots.
    """
    if isinstance(like, BSpline):
        return made
    more = (made.t.shape[0] - made.c.shape[0], *made.c.shape[1:])
    return made.t, jnp.concatenate([made.c, jnp.broadcast_to(rest, more)]), made.k


def splder(tck: Any, n: int = 1) -> BSpline | tuple[Array, Array, int]:
    """The derivative of order n of a spline, in the same form.

    >>> import functrans as ft
    >>> line = [0.0, 0.0, 1.0, 1.0], [1.0, 3.0], 1
    >>> ft.scipy.interpolate.splder(line)[1].tolist()
    [2.0, 0.0]
    """
    made = spline_of("splder", tck).derivative(n)
    return _tck(made, tck, jnp.zeros_like(made.c[-1]))


def splantider(tck: Any, n: int = 1) -> BSpline | tuple[Array, Array, int]:
    """The integral of a spline from its first knot, taken n times, in the same form.

    >>> import functrans as ft
    >>> line = [0.0, 0.0, 1.0, 1.0], [1.0, 3.0], 1
    >>> float(ft.scipy.interpolate.splev(1.0, ft.scipy.interpolate.splantider(line)))
    2.0
    """
    made = spline_of("splantider", tck).antiderivative(n)
    return _tck(made, tck, made.c[-1])


def spalde(x: ArrayLike, tck: Any) -> Values:
    """The value and all derivatives of a spline at a place, or a row of them for each place.

    >>> import functrans as ft
    >>> ft.scipy.interpolate.spalde(0.5, ([0.0, 0.0, 1.0, 1.0], [1.0, 3.0], 1)).tolist()
    [2.0, 2.0]
    """
    curves = curves_of(tck)
    if curves is not None:
        return [_derivatives(x, one) for one in curves]
    return _derivatives(x, tck)


def _derivatives(x: ArrayLike, tck: Any) -> Array:
    made = spline_of("spalde", tck)
    return jnp.stack([made(x, nu) for nu in range(made.k + 1)], axis=-1)
