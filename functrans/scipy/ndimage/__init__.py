"""Filters, interpolation and maps of arrays of any rank, with the names of scipy.ndimage."""

from functrans.core.errors import publish
from functrans.scipy.ndimage.filters import (
    convolve,
    convolve1d,
    correlate,
    correlate1d,
    gaussian_filter,
    gaussian_filter1d,
    gaussian_gradient_magnitude,
    gaussian_laplace,
    generic_laplace,
    laplace,
    prewitt,
    sobel,
    uniform_filter,
    uniform_filter1d,
)
from functrans.scipy.ndimage.geometry import affine_transform, map_coordinates, rotate, shift, zoom
from functrans.scipy.ndimage.measurements import center_of_mass
from functrans.scipy.ndimage.ranks import (
    maximum_filter,
    maximum_filter1d,
    median_filter,
    minimum_filter,
    minimum_filter1d,
    percentile_filter,
    rank_filter,
)
from functrans.scipy.ndimage.splines import spline_filter, spline_filter1d

__all__ = [
    "affine_transform", "center_of_mass", "convolve", "convolve1d", "correlate", "correlate1d",
    "gaussian_filter", "gaussian_filter1d", "gaussian_gradient_magnitude", "gaussian_laplace",
    "generic_laplace", "laplace", "map_coordinates", "maximum_filter", "maximum_filter1d",
    "median_filter", "minimum_filter", "minimum_filter1d", "percentile_filter", "prewitt",
    "rank_filter", "rotate", "shift", "sobel", "spline_filter", "spline_filter1d",
    "uniform_filter", "uniform_filter1d", "zoom",
]

publish(globals(), __all__)
