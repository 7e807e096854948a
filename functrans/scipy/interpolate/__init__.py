"""Interpolation on grids and lines, by trees that are functions, named as in scipy.interpolate."""

from functrans.core.errors import publish
from functrans.scipy.interpolate.bsplines import BSpline, make_interp_spline
from functrans.scipy.interpolate.cubic import (
    Akima1DInterpolator,
    CubicHermiteSpline,
    CubicSpline,
    PchipInterpolator,
)
from functrans.scipy.interpolate.grids import RegularGridInterpolator
from functrans.scipy.interpolate.lines import interp1d
from functrans.scipy.interpolate.piecewise import PPoly

__all__ = [
    "Akima1DInterpolator", "BSpline", "CubicHermiteSpline", "CubicSpline", "PPoly",
    "PchipInterpolator", "RegularGridInterpolator", "interp1d", "make_interp_spline",
]

publish(globals(), __all__)
