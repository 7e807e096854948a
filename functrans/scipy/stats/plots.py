"""Numbers of probability plots, which are drawn through an object that is given.

`plot` has the methods of `matplotlib.pyplot` or of its axes: `plot`, `text`, and `xlabel`, `ylabel`
and `title` or `set_xlabel`, `set_ylabel` and `set_title`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functrans import numpy as jnp
from functrans.core.errors import ArgumentError, ShapeError, publish, shown
from functrans.core.source import user_source
from functrans.scipy import special
from functrans.scipy.arguments import known_size, real
from functrans.scipy.optimize.scalar_minima import minimize_scalar
from functrans.scipy.stats.correlations import pearsonr
from functrans.scipy.stats.lines import linregress
from functrans.scipy.stats.normalizing import boxcox, yeojohnson
from functrans.scipy.stats.real_line import norm
from functrans.transforms.vmap import vmap
from functrans.typing import Array, ArrayLike

__all__ = ["boxcox_normplot", "ppcc_max", "ppcc_plot", "probplot", "yeojohnson_normplot"]


Pair = tuple[Array, Array]
ProbabilityPlot = Pair | tuple[Pair, tuple[Array, Array, Array]]


class _TukeyLambda:
    """Quantiles of Tukey's family, which is all that plots ask for."""

    @staticmethod
    def ppf(q: Array, lam: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
        power = jnp.asarray(lam).astype(q.dtype)
        standard = special.boxcox(q, power) - special.boxcox(1 - q, power)
        return jnp.asarray(loc) + jnp.asarray(scale) * standard


def _family(name: str, dist: object) -> Any:
    """A family of distributions; those that defaults name may be strings."""
    known = {"norm": norm, "tukeylambda": _TukeyLambda}.get(dist) if isinstance(
        dist, str) else dist
    if not hasattr(known, "ppf"):
        raise ArgumentError(f"scipy.stats.{name}: dist is {shown(dist)}.", where=user_source(),
                            why="it is a family of distributions, or a name of a default.",
                            fix=f"dist=ft.scipy.stats.{dist if isinstance(dist, str) else 'norm'}")
    return known


def _vector(name: str, x: ArrayLike) -> Array:
    (values,) = real(f"stats.{name}", x)
    if values.ndim != 1 or values.shape[0] < 2:
        raise ShapeError(f"scipy.stats.{name}: the sample has shape {values.shape}.",
                         where=user_source(), why="it is a vector of two elements or more.")
    return values


def uniform_medians(n: int) -> np.ndarray:
    """The medians of an ordered sample of uniform variables: Filliben's approximation (1975)."""
    found = (np.arange(1, n + 1) - 0.3175) / (n + 0.365)
    found[-1] = 0.5 ** (1 / n)
    found[0] = 1 - found[-1]
    return found


def _draw(plot: object) -> Any:
    """What is drawn through, which has methods of its own."""
    return plot


def _label(plot: object, x: str, y: str, title: str) -> None:
    for method, text in (("xlabel", x), ("ylabel", y), ("title", title)):
        of = getattr(plot, f"set_{method}", None) or getattr(plot, method, None)
        if of is not None:
            of(text)


def probplot(x: ArrayLike, sparams: ArrayLike | Sequence[ArrayLike] = (), dist: object = "norm",
             fit: bool = True, plot: object = None, rvalue: bool = False) -> ProbabilityPlot:
    """The quantiles of a distribution beside the ordered elements of a vector, and their line.

    `dist` is a family of distributions, `sparams` its shape parameters, and its place and scale.
    The result is ((quantiles, ordered), (slope, intercept, r)), without `fit` the first pair alone.
    `plot` draws them, `rvalue` the square of r too.

    >>> import functrans as ft
    >>> (q, x), (slope, intercept, r) = ft.scipy.stats.probplot([1.0, 3.0, 2.0, 5.0])
    >>> x.tolist(), round(float(intercept), 4), round(float(r), 4)
    ([1.0, 2.0, 3.0, 5.0], 2.75, 0.9849)
    """
    values = _vector("probplot", x)
    family = _family("probplot", dist)
    params: Any = tuple(sparams) if isinstance(sparams, (tuple, list)) else (sparams,)
    middle = jnp.asarray(uniform_medians(values.shape[0])).astype(values.dtype)
    theoretical, ordered = family.ppf(middle, *params), jnp.sort(values)
    line = linregress(theoretical, ordered) if fit else None
    if plot is not None:
        a, b = np.asarray(theoretical), np.asarray(ordered)
        _draw(plot).plot(a, b, "bo")
        if line is not None:
            _draw(plot).plot(a, float(line.slope) * a + float(line.intercept), "r-")
        _label(plot, "Theoretical quantiles", "Ordered values", "Probability plot")
        if line is not None and rvalue:
            _draw(plot).text(a.min() + 0.7 * np.ptp(a), b.min() + 0.01 * np.ptp(b),
                      f"$R^2={float(line.rvalue) ** 2:1.4f}$")
    if line is None:
        return theoretical, ordered
    return (theoretical, ordered), (line.slope, line.intercept, line.rvalue)


def _correlation(name: str, values: Array, dist: Any) -> Callable[[ArrayLike], Array]:
    """The correlation of a probability plot, for a shape parameter."""
    family = _family(name, dist)
    middle = jnp.asarray(uniform_medians(values.shape[0])).astype(values.dtype)
    ordered = jnp.sort(values)
    return lambda shape: pearsonr(family.ppf(middle, shape), ordered).statistic


def ppcc_max(x: ArrayLike, brack: tuple[float, float] = (0.0, 1.0), dist: object = "tukeylambda"
             ) -> Array:
    """The shape parameter whose probability plot has the largest correlation, near `brack`.

    It is differentiated as a minimum. Source: Filliben, The Probability Plot Correlation
    Coefficient Test for Normality (1975).

    >>> import functrans as ft
    >>> x = ft.scipy.special.ndtri(ft.numpy.linspace(0.02, 0.98, 49))
    >>> round(float(ft.scipy.stats.ppcc_max(x)), 1)
    0.2
    """
    values = _vector("ppcc_max", x)
    of = _correlation("ppcc_max", values, dist)
    ends = tuple(jnp.asarray(v).astype(values.dtype) for v in brack)
    return minimize_scalar(lambda v: 1 - of(v), ends, method="brent").x


def _range(name: str, low: Any, high: Any, count: int) -> None:
    known_size(f"stats.{name}", "N", count)
    if not high > low:
        raise ArgumentError(f"scipy.stats.{name}: the ends are {shown(low)} and {shown(high)}.",
                            where=user_source(), why="the second is larger.")


def ppcc_plot(x: ArrayLike, a: float, b: float, dist: object = "tukeylambda", plot: object = None,
              N: int = 80) -> tuple[Array, Array]:
    """The correlations of N probability plots, for shape parameters from a to b.

    >>> import functrans as ft
    >>> shapes, r = ft.scipy.stats.ppcc_plot([1.0, 3.0, 2.0, 5.0, 4.0], 0.0, 1.0, N=3)
    >>> shapes.tolist(), r.round(3).tolist() == sorted(r.round(3).tolist())
    ([0.0, 0.5, 1.0], True)
    """
    values = _vector("ppcc_plot", x)
    _range("ppcc_plot", a, b, N)
    shapes = jnp.linspace(a, b, N, dtype=values.dtype)
    found = vmap(_correlation("ppcc_plot", values, dist))(shapes)
    if plot is not None:
        _draw(plot).plot(np.asarray(shapes), np.asarray(found), "x")
        _label(plot, "Shape values", "Correlation", f"({dist}) PPCC plot")
    return shapes, found


def _normplot(name: str, transform: Callable[..., Any], x: ArrayLike, la: float, lb: float,
              plot: object, count: int) -> tuple[Array, Array]:
    values = _vector(name, x)
    _range(name, la, lb, count)
    powers = jnp.linspace(la, lb, count, dtype=values.dtype)

    def of(power: Array) -> Array:
        changed = jnp.sort(transform(values, power))
        middle = jnp.asarray(uniform_medians(values.shape[0])).astype(values.dtype)
        return pearsonr(special.ndtri(middle), changed).statistic

    found = vmap(of)(powers)
    if plot is not None:
        _draw(plot).plot(np.asarray(powers), np.asarray(found), "x")
        _label(plot, r"$\lambda$", "Correlation", f"{name.split('_')[0]} normality plot")
    return powers, found


def boxcox_normplot(x: ArrayLike, la: float, lb: float, plot: object = None, N: int = 80
                    ) -> tuple[Array, Array]:
    """The correlations of N normal probability plots, after Box and Cox's powers from la to lb.

    >>> import functrans as ft
    >>> powers, r = ft.scipy.stats.boxcox_normplot([1.0, 2.0, 4.0, 8.0, 16.0], -1.0, 1.0, N=3)
    >>> powers.tolist(), float(powers[r.argmax()])
    ([-1.0, 0.0, 1.0], 0.0)
    """
    return _normplot("boxcox_normplot", boxcox, x, la, lb, plot, N)


def yeojohnson_normplot(x: ArrayLike, la: float, lb: float, plot: object = None, N: int = 80
                        ) -> tuple[Array, Array]:
    """The correlations of N normal probability plots, after Yeo and Johnson's powers.

    >>> import functrans as ft
    >>> powers, r = ft.scipy.stats.yeojohnson_normplot([-1.0, 0.0, 1.0, 2.0], 0.0, 2.0, N=3)
    >>> float(powers[r.argmax()])
    1.0
    """
    return _normplot("yeojohnson_normplot", yeojohnson, x, la, lb, plot, N)


publish(globals(), __all__)
