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
    RectBivariateSpline,
    spalde,
    splantider,
    splder,
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
from functrans.scipy.interpolate.scattered import NearestNDInterpolator, RBFInterpolator
from functrans.scipy.interpolate.smooth_triangles import CloughTocher2DInterpolator, lagrange
from functrans.scipy.interpolate.smoothing import (
    generate_knots,
    make_smoothing_spline,
    make_splrep,
)
from functrans.scipy.interpolate.triangulation import LinearNDInterpolator, griddata
from functrans.scipy.interpolate.univariate import (
    InterpolatedUnivariateSpline,
    LSQUnivariateSpline,
    UnivariateSpline,
)

__all__ = [
    "Akima1DInterpolator", "BSpline", "BarycentricInterpolator", "CloughTocher2DInterpolator",
    "CubicHermiteSpline", "CubicSpline", "InterpolatedUnivariateSpline", "KroghInterpolator",
    "LSQUnivariateSpline", "LinearNDInterpolator", "NearestNDInterpolator", "PPoly",
    "PchipInterpolator", "RBFInterpolator", "RectBivariateSpline", "RegularGridInterpolator",
    "UnivariateSpline", "barycentric_interpolate", "generate_knots", "griddata", "interp1d",
    "interpn", "krogh_interpolate", "lagrange", "make_interp_spline", "make_lsq_spline",
    "make_smoothing_spline", "make_splrep", "pchip_interpolate", "spalde", "splantider", "splder",
    "splev", "splint", "splrep",
]

publish(globals(), __all__)
