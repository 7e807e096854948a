"""Interpolation on grids, lines and among scattered points, named as in scipy.interpolate.

Interpolators are trees that are functions.
"""

from functrans.core.errors import publish
from functrans.scipy.interpolate.bernstein import BPoly, NdPPoly
from functrans.scipy.interpolate.bsplines import BSpline, make_interp_spline, make_lsq_spline
from functrans.scipy.interpolate.cubic import (
    Akima1DInterpolator,
    CubicHermiteSpline,
    CubicSpline,
    PchipInterpolator,
)
from functrans.scipy.interpolate.curves import insert, make_splprep, splprep, sproot
from functrans.scipy.interpolate.fitpack import (
    spalde,
    splantider,
    splder,
    splev,
    splint,
    splrep,
)
from functrans.scipy.interpolate.grids import RegularGridInterpolator, interpn
from functrans.scipy.interpolate.lines import interp1d, interp2d
from functrans.scipy.interpolate.piecewise import PPoly
from functrans.scipy.interpolate.polynomials import (
    BarycentricInterpolator,
    KroghInterpolator,
    barycentric_interpolate,
    krogh_interpolate,
    pchip_interpolate,
)
from functrans.scipy.interpolate.rational import (
    AAA,
    FloaterHormannInterpolator,
    approximate_taylor_polynomial,
    pade,
)
from functrans.scipy.interpolate.rbf import Rbf
from functrans.scipy.interpolate.scattered import NearestNDInterpolator, RBFInterpolator
from functrans.scipy.interpolate.smooth_triangles import CloughTocher2DInterpolator, lagrange
from functrans.scipy.interpolate.smoothing import (
    generate_knots,
    make_smoothing_spline,
    make_splrep,
)
from functrans.scipy.interpolate.spheres import (
    LSQSphereBivariateSpline,
    RectSphereBivariateSpline,
    SmoothSphereBivariateSpline,
)
from functrans.scipy.interpolate.surfaces import (
    BivariateSpline,
    LSQBivariateSpline,
    RectBivariateSpline,
    SmoothBivariateSpline,
    bisplev,
    bisplrep,
)
from functrans.scipy.interpolate.tensor import NdBSpline
from functrans.scipy.interpolate.triangulation import LinearNDInterpolator, griddata
from functrans.scipy.interpolate.univariate import (
    InterpolatedUnivariateSpline,
    LSQUnivariateSpline,
    UnivariateSpline,
)

__all__ = [
    "AAA", "Akima1DInterpolator", "BPoly", "BSpline", "BarycentricInterpolator",
    "BivariateSpline", "CloughTocher2DInterpolator", "CubicHermiteSpline", "CubicSpline",
    "FloaterHormannInterpolator", "InterpolatedUnivariateSpline", "KroghInterpolator",
    "LSQBivariateSpline", "LSQSphereBivariateSpline", "LSQUnivariateSpline",
    "LinearNDInterpolator", "NdBSpline", "NdPPoly", "NearestNDInterpolator", "PPoly",
    "PchipInterpolator", "RBFInterpolator", "Rbf", "RectBivariateSpline",
    "RectSphereBivariateSpline", "RegularGridInterpolator", "SmoothBivariateSpline",
    "SmoothSphereBivariateSpline", "UnivariateSpline", "approximate_taylor_polynomial",
    "barycentric_interpolate", "bisplev", "bisplrep", "generate_knots", "griddata", "insert",
    "interp1d", "interp2d", "interpn", "krogh_interpolate", "lagrange", "make_interp_spline",
    "make_lsq_spline", "make_smoothing_spline", "make_splprep", "make_splrep", "pade",
    "pchip_interpolate", "spalde", "splantider", "splder", "splev", "splint", "splprep",
    "splrep", "sproot",
]

publish(globals(), __all__)
