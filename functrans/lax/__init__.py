"""The operations below functrans.numpy, with jax.lax's names: no promotion of dtypes or ranks."""

from functrans.core.errors import publish
from functrans.lax import linalg
from functrans.lax.accuracy import AccuracyMode, Tolerance
from functrans.lax.applying import scatter_apply
from functrans.lax.associative import associative_scan
from functrans.lax.bits import (
    igamma_grad_a,
    mulhi,
    reduce_precision,
)
from functrans.lax.branches import cond, switch
from functrans.lax.composed_names import *  # noqa: F403
from functrans.lax.composed_names import __all__ as _composed_names
from functrans.lax.deferred import betainc
from functrans.lax.dispatch import (
    composite,
    platform_dependent,
)
from functrans.lax.elementwise import (
    abs,
    acos,
    acosh,
    add,
    asin,
    asinh,
    atan,
    atan2,
    atanh,
    bessel_i0e,
    bessel_i1e,
    bitwise_and,
    bitwise_not,
    bitwise_or,
    bitwise_xor,
    cbrt,
    ceil,
    clz,
    complex,
    conj,
    cos,
    cosh,
    digamma,
    div,
    eq,
    erf,
    erf_inv,
    erfc,
    exp,
    exp2,
    expm1,
    floor,
    ge,
    gt,
    igamma,
    igammac,
    imag,
    is_finite,
    le,
    lgamma,
    log,
    log1p,
    logistic,
    lt,
    max,
    min,
    mul,
    ne,
    neg,
    nextafter,
    polygamma,
    population_count,
    pow,
    random_gamma_grad,
    real,
    rem,
    rsqrt,
    shift_left,
    shift_right_arithmetic,
    shift_right_logical,
    sign,
    sin,
    sinh,
    sqrt,
    sub,
    tan,
    tanh,
    trunc,
    zeta,
)
from functrans.lax.folding import (
    approx_max_k,
    approx_min_k,
    reduce,
)
from functrans.lax.generators import (
    RandomAlgorithm,
    RoundingMethod,
    rng_bit_generator,
    rng_uniform,
)
from functrans.lax.local_conv import (
    conv_general_dilated_local,
)
from functrans.lax.loops import fori_loop, map, scan, while_loop
from functrans.lax.operations import (
    batch_matmul,
    broadcast,
    collapse,
    dot,
    full,
    full_like,
    reciprocal,
    round,
    select,
    sort_key_val,
    split,
    square,
    stop_gradient,
    zeros_like_array,
)
from functrans.lax.parallel import (
    all_gather,
    all_to_all,
    axis_index,
    axis_size,
    pbroadcast,
    pcast,
    pmax,
    pmean,
    pmin,
    ppermute,
    pshuffle,
    psum,
    psum_scatter,
    pswapaxes,
    pvary,
)
from functrans.lax.primitive_names import *  # noqa: F403
from functrans.lax.primitive_names import __all__ as _primitive_names
from functrans.lax.ragged import (
    RaggedDotDimensionNumbers,
    ragged_dot,
    ragged_dot_general,
    scaled_dot,
)
from functrans.lax.ragged_exchange import ragged_all_to_all
from functrans.lax.roots import custom_root
from functrans.lax.shapes import (
    broadcast_like,
    broadcast_shapes,
    broadcast_to_rank,
    conv_general_permutations,
    conv_general_shape_tuple,
    conv_shape_tuple,
    conv_transpose_shape_tuple,
    dtype,
    empty,
    padtype_to_pads,
    reduce_window_shape_tuple,
    shape_as_value,
    stack,
    stage,
    tile,
    unstack,
)
from functrans.lax.solving import custom_linear_solve
from functrans.lax.tokens import after_all, create_token, dce_sink, precv, psend
from functrans.primitives.arithmetic import integer_pow
from functrans.primitives.barrier import optimization_barrier
from functrans.primitives.broadcast import broadcast_in_dim, reduce_sum, transpose
from functrans.primitives.compare import clamp, select_n
from functrans.primitives.conv import (
    ConvDimensionNumbers,
    conv,
    conv_dimension_numbers,
    conv_general_dilated,
    conv_general_dilated_patches,
    conv_transpose,
    conv_with_general_padding,
)
from functrans.primitives.convert import bitcast_convert_type, convert_element_type
from functrans.primitives.cumulative import cumlogsumexp, cummax, cummin, cumprod, cumsum
from functrans.primitives.dot import dot_general
from functrans.primitives.dynamic_slice import (
    dynamic_index_in_dim,
    dynamic_slice,
    dynamic_slice_in_dim,
    dynamic_update_index_in_dim,
    dynamic_update_slice,
    dynamic_update_slice_in_dim,
)
from functrans.primitives.fft import FftType, fft
from functrans.primitives.index import (
    GatherDimensionNumbers,
    GatherScatterMode,
    ScatterDimensionNumbers,
    gather,
    index_in_dim,
    index_take,
    scatter_add,
)
from functrans.primitives.precision import DotAlgorithm, DotAlgorithmPreset, Precision
from functrans.primitives.reduce import (
    argmax,
    argmin,
    reduce_and,
    reduce_max,
    reduce_min,
    reduce_or,
    reduce_prod,
    reduce_xor,
)
from functrans.primitives.scatter import (
    scatter,
    scatter_max,
    scatter_min,
    scatter_mul,
    scatter_sub,
)
from functrans.primitives.shape import (
    broadcasted_iota,
    concatenate,
    copy,
    expand_dims,
    iota,
    pad,
    reshape,
    rev,
    slice,
    slice_in_dim,
    squeeze,
)
from functrans.primitives.sort import argsort, sort, top_k
from functrans.primitives.window import (
    reduce_window,
    reduce_window_max,
    reduce_window_min,
    reduce_window_sum,
)
from functrans.transforms.constraints import with_sharding_constraint
from functrans.typing import DotDimensionNumbers, PrecisionLike

ConvGeneralDilatedDimensionNumbers = tuple[str, str, str] | ConvDimensionNumbers | None
"""What names the axes of a convolution."""

__all__ = [
    "abs", "acos", "acosh", "add", "all_gather", "all_to_all", "approx_max_k", "approx_min_k",
    "argmax", "argmin", "argsort", "asin", "asinh", "associative_scan", "atan", "atan2", "atanh",
    "axis_index", "axis_size", "batch_matmul", "bessel_i0e", "bessel_i1e", "bitcast_convert_type",
    "bitwise_and", "bitwise_not", "bitwise_or", "bitwise_xor", "broadcast", "broadcast_in_dim",
    "broadcast_like", "broadcast_shapes", "broadcast_to_rank", "broadcasted_iota", "cbrt", "ceil",
    "clamp", "clz", "collapse", "complex", "composite", "concatenate", "cond", "conj", "conv",
    "conv_dimension_numbers", "conv_general_dilated", "conv_general_dilated_local",
    "conv_general_dilated_patches", "conv_general_permutations", "conv_general_shape_tuple",
    "conv_shape_tuple", "conv_transpose", "conv_transpose_shape_tuple",
    "conv_with_general_padding", "ConvDimensionNumbers", "convert_element_type",
    "ConvGeneralDilatedDimensionNumbers", "copy", "cos", "cosh", "cumlogsumexp", "cummax",
    "cummin", "cumprod", "cumsum", "custom_linear_solve", "custom_root", "digamma", "div", "dot",
    "dot_general", "DotDimensionNumbers", "dtype", "dynamic_index_in_dim", "dynamic_slice",
    "dynamic_slice_in_dim", "dynamic_update_index_in_dim", "dynamic_update_slice",
    "dynamic_update_slice_in_dim", "empty", "eq", "erf", "erf_inv", "erfc", "exp", "exp2",
    "expand_dims", "expm1", "fft", "FftType", "floor", "fori_loop", "full", "full_like", "gather",
    "GatherDimensionNumbers", "GatherScatterMode", "ge", "gt", "igamma", "igamma_grad_a",
    "igammac", "imag", "index_in_dim", "index_take", "integer_pow", "iota", "is_finite", "le",
    "lgamma", "linalg", "log", "log1p", "logistic", "lt", "map", "max", "min", "mul", "mulhi",
    "ne", "neg", "nextafter", "optimization_barrier", "pad", "padtype_to_pads", "pbroadcast",
    "pcast", "platform_dependent", "pmax", "pmean", "pmin", "polygamma", "population_count", "pow",
    "ppermute", "Precision", "PrecisionLike", "pshuffle", "psum", "psum_scatter", "pswapaxes",
    "pvary", "ragged_dot", "ragged_dot_general", "RaggedDotDimensionNumbers", "random_gamma_grad",
    "RandomAlgorithm", "real", "reciprocal", "reduce", "reduce_and", "reduce_max", "reduce_min",
    "reduce_or", "reduce_precision", "reduce_prod", "reduce_sum", "reduce_window",
    "reduce_window_max", "reduce_window_min", "reduce_window_shape_tuple", "reduce_window_sum",
    "reduce_xor", "rem", "reshape", "rev", "rng_bit_generator", "rng_uniform", "round",
    "RoundingMethod", "rsqrt", "scaled_dot", "scan", "scatter", "scatter_add", "scatter_apply",
    "scatter_max", "scatter_min", "scatter_mul", "scatter_sub", "ScatterDimensionNumbers",
    "select", "select_n", "shape_as_value", "shift_left", "shift_right_arithmetic",
    "shift_right_logical", "sign", "sin", "sinh", "slice", "slice_in_dim", "sort", "sort_key_val",
    "split", "sqrt", "square", "squeeze", "stack", "stage", "stop_gradient", "sub", "switch",
    "tan", "tanh", "tile", "top_k", "transpose", "trunc", "unstack", "while_loop",
    "with_sharding_constraint", "zeros_like_array", "zeta",
    "AccuracyMode", "DotAlgorithm", "DotAlgorithmPreset", "Tolerance", "after_all", "betainc",
    "create_token", "dce_sink", "precv", "psend", "ragged_all_to_all",
    *_composed_names, *_primitive_names,
]

publish(globals(), __all__)
