"""Filters, maps, morphology and measurements of arrays of any rank, named as in scipy.ndimage."""

from functrans.core.errors import publish
from functrans.scipy.ndimage.distances import (
    distance_transform_bf,
    distance_transform_cdt,
    distance_transform_edt,
)
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
from functrans.scipy.ndimage.generic import (
    generic_filter1d,
    generic_gradient_magnitude,
    vectorized_filter,
)
from functrans.scipy.ndimage.geometry import affine_transform, map_coordinates, rotate, shift, zoom
from functrans.scipy.ndimage.measurements import (
    center_of_mass,
    extrema,
    find_objects,
    label,
    labeled_comprehension,
    maximum,
    maximum_position,
    mean,
    median,
    minimum,
    minimum_position,
    standard_deviation,
    sum,
    sum_labels,
    variance,
)
from functrans.scipy.ndimage.morphology import (
    binary_closing,
    binary_dilation,
    binary_erosion,
    binary_fill_holes,
    binary_hit_or_miss,
    binary_opening,
    binary_propagation,
    black_tophat,
    generate_binary_structure,
    grey_closing,
    grey_dilation,
    grey_erosion,
    grey_opening,
    iterate_structure,
    morphological_gradient,
    morphological_laplace,
    white_tophat,
)
from functrans.scipy.ndimage.ranks import (
    maximum_filter,
    maximum_filter1d,
    median_filter,
    minimum_filter,
    minimum_filter1d,
    percentile_filter,
    rank_filter,
)
from functrans.scipy.ndimage.regions import histogram, value_indices, watershed_ift
from functrans.scipy.ndimage.spectra import (
    fourier_ellipsoid,
    fourier_gaussian,
    fourier_shift,
    fourier_uniform,
    generic_filter,
    geometric_transform,
)
from functrans.scipy.ndimage.splines import spline_filter, spline_filter1d

__all__ = [
    "affine_transform", "binary_closing", "binary_dilation", "binary_erosion",
    "binary_fill_holes", "binary_hit_or_miss", "binary_opening", "binary_propagation",
    "black_tophat", "center_of_mass", "convolve", "convolve1d", "correlate", "correlate1d",
    "distance_transform_bf", "distance_transform_cdt", "distance_transform_edt", "extrema",
    "find_objects", "fourier_ellipsoid", "fourier_gaussian", "fourier_shift", "fourier_uniform",
    "gaussian_filter", "gaussian_filter1d", "gaussian_gradient_magnitude", "gaussian_laplace",
    "generate_binary_structure", "generic_filter", "generic_filter1d",
    "generic_gradient_magnitude", "generic_laplace", "geometric_transform", "grey_closing",
    "grey_dilation", "grey_erosion", "grey_opening", "histogram", "iterate_structure", "label",
    "labeled_comprehension", "laplace", "map_coordinates", "maximum", "maximum_filter",
    "maximum_filter1d", "maximum_position", "mean", "median", "median_filter", "minimum",
    "minimum_filter", "minimum_filter1d", "minimum_position", "morphological_gradient",
    "morphological_laplace", "percentile_filter", "prewitt", "rank_filter", "rotate", "shift",
    "sobel", "spline_filter", "spline_filter1d", "standard_deviation", "sum", "sum_labels",
    "uniform_filter", "uniform_filter1d", "value_indices", "variance", "vectorized_filter",
    "watershed_ift", "white_tophat", "zoom",
]

publish(globals(), __all__)
