"""Interpolation on grids, lines and among scattered points, named as in scipy.interpolate.

Interpolators are trees that are functions.
"""

from functrans.core.errors import publish
from functrans.scipy.interpolate.bsplines import BSpline, make_interp_spline, make_lsq_spline
from functrans.scipy.interpolate.cubic import (
    Akima1DInterpolator,
    CubicHermiteSpline,
    CubicSpline,
    PchipInterpolator,
)
from functrans.scipy.interpolate.fitpack import (
    InterpolatedUnivariateSpline,
    RectBivariateSpline,
    splev,
    splint,
    splrep,
)
from functrans.scipy.interpolate.grids import RegularGridInterpolator, interpn
from functrans.scipy.interpolate.lines import interp1d
from functrans.scipy.interpolate.piecewise import PPoly
from functrans.scipy.interpolate.polynomials import (
    BarycentricInterpolator,
    KroghInterpolator,
    barycentric_interpolate,
    krogh_interpolate,
    pchip_interpolate,
)
from functrans.scipy.interpolate.scattered import (
    NearestNDInterpolator,
    RBFInterpolator,
    griddata,
)

__all__ = [
    "Akima1DInterpolator", "BSpline", "BarycentricInterpolator", "CubicHermiteSpline",
    "CubicSpline", "InterpolatedUnivariateSpline", "KroghInterpolator", "NearestNDInterpolator",
    "PPoly", "PchipInterpolator", "RBFInterpolator", "RectBivariateSpline",
    "RegularGridInterpolator", "barycentric_interpolate", "griddata", "interp1d", "interpn",
    "krogh_interpolate", "make_interp_spline", "make_lsq_spline", "pchip_interpolate", "splev",
    "splint", "splrep",
]

publish(globals(), __all__)
