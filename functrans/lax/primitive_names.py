"""The primitives that jax.lax has too, under its names.

Their parameters are those of this package: programs read alike, and are not interchangeable. What
is a composition here (`mulhi`, `tile`, `squeeze`, `reduce`, ...) has no primitive.
"""

from functrans.primitives.arithmetic import (
    abs_p,
    add_p,
    ceil_p,
    complex_p,
    conj_p,
    div_p,
    floor_p,
    imag_p,
    integer_pow_p,
    log_p,
    max_p,
    min_p,
    mul_p,
    neg_p,
    nextafter_p,
    pow_p,
    real_p,
    rem_p,
    round_p,
    sign_p,
    sub_p,
)
from functrans.primitives.barrier import optimization_barrier_p, stop_gradient_p
from functrans.primitives.broadcast import broadcast_in_dim_p, reduce_sum_p, transpose_p
from functrans.primitives.collective import (
    all_gather_p,
    axis_index_p,
    ppermute_p,
    psum_p,
)
from functrans.primitives.compare import (
    and_p,
    clamp_p,
    clz_p,
    eq_p,
    ge_p,
    gt_p,
    is_finite_p,
    le_p,
    lt_p,
    ne_p,
    not_p,
    or_p,
    population_count_p,
    select_n_p,
    shift_left_p,
    shift_right_arithmetic_p,
    shift_right_logical_p,
    xor_p,
)
from functrans.primitives.control_flow.cond import cond_p
from functrans.primitives.control_flow.scan import scan_p
from functrans.primitives.control_flow.while_loop import while_p
from functrans.primitives.conv import conv_general_dilated_p
from functrans.primitives.convert import bitcast_convert_type_p, convert_element_type_p
from functrans.primitives.cumulative import cumlogsumexp_p, cummax_p, cummin_p, cumprod_p, cumsum_p
from functrans.primitives.dot import dot_general_p
from functrans.primitives.dynamic_slice import dynamic_slice_p, dynamic_update_slice_p
from functrans.primitives.fft import fft_p
from functrans.primitives.index import gather_p, scatter_add_p
from functrans.primitives.reduce import (
    argmax_p,
    argmin_p,
    reduce_and_p,
    reduce_max_p,
    reduce_min_p,
    reduce_or_p,
    reduce_prod_p,
    reduce_xor_p,
)
from functrans.primitives.scatter import scatter_max_p, scatter_min_p, scatter_mul_p, scatter_p
from functrans.primitives.shape import (
    concatenate_p,
    copy_p,
    iota_p,
    pad_p,
    reshape_p,
    rev_p,
    slice_p,
)
from functrans.primitives.sort import sort_p, top_k_p
from functrans.primitives.special import bessel_i0e_p, bessel_i1e_p, igamma_p, igammac_p, zeta_p
from functrans.primitives.transcendental import (
    acos_p,
    acosh_p,
    asin_p,
    asinh_p,
    atan2_p,
    atan_p,
    atanh_p,
    cbrt_p,
    cos_p,
    cosh_p,
    digamma_p,
    erf_inv_p,
    erf_p,
    erfc_p,
    exp2_p,
    exp_p,
    expm1_p,
    lgamma_p,
    log1p_p,
    logistic_p,
    polygamma_p,
    rsqrt_p,
    sin_p,
    sinh_p,
    sqrt_p,
    tan_p,
    tanh_p,
)
from functrans.primitives.window import (
    reduce_window_max_p,
    reduce_window_min_p,
    reduce_window_sum_p,
)
from functrans.transforms.linear_solve import linear_solve_p

__all__ = [
    "abs_p", "acos_p", "acosh_p", "add_p", "all_gather_p", "and_p", "argmax_p", "argmin_p",
    "asin_p", "asinh_p", "atan2_p", "atan_p", "atanh_p", "axis_index_p", "bessel_i0e_p",
    "bessel_i1e_p", "bitcast_convert_type_p", "broadcast_in_dim_p", "cbrt_p", "ceil_p", "clamp_p",
    "clz_p", "complex_p", "concatenate_p", "cond_p", "conj_p", "conv_general_dilated_p",
    "convert_element_type_p", "copy_p", "cos_p", "cosh_p", "cumlogsumexp_p", "cummax_p", "cummin_p",
    "cumprod_p", "cumsum_p", "digamma_p", "div_p", "dot_general_p", "dynamic_slice_p",
    "dynamic_update_slice_p", "eq_p", "erf_inv_p", "erf_p", "erfc_p", "exp2_p", "exp_p", "expm1_p",
    "fft_p", "floor_p", "gather_p", "ge_p", "gt_p", "igamma_p", "igammac_p", "imag_p",
    "integer_pow_p", "iota_p", "is_finite_p", "le_p", "lgamma_p", "linear_solve_p", "log1p_p",
    "log_p", "logistic_p", "lt_p", "max_p", "min_p", "mul_p", "ne_p", "neg_p", "nextafter_p",
    "not_p", "optimization_barrier_p", "or_p", "pad_p", "polygamma_p", "population_count_p",
    "pow_p", "ppermute_p", "psum_p", "real_p", "reduce_and_p", "reduce_max_p", "reduce_min_p",
    "reduce_or_p", "reduce_prod_p", "reduce_sum_p", "reduce_window_max_p", "reduce_window_min_p",
    "reduce_window_sum_p", "reduce_xor_p", "rem_p", "reshape_p", "rev_p", "round_p", "rsqrt_p",
    "scan_p", "scatter_add_p", "scatter_max_p", "scatter_min_p", "scatter_mul_p", "scatter_p",
    "select_n_p", "shift_left_p", "shift_right_arithmetic_p", "shift_right_logical_p", "sign_p",
    "sin_p", "sinh_p", "slice_p", "sort_p", "sqrt_p", "stop_gradient_p", "sub_p", "tan_p", "tanh_p",
    "top_k_p", "transpose_p", "while_p", "xor_p", "zeta_p",
]
