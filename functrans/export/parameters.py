"""Which primitives a file may name, and of what kinds their static parameters are there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from functrans.core.primitive import Primitive
from functrans.core.table import Table
from functrans.export.kinds import (
    ARRAY,
    CONV_NUMBERS,
    DTYPE,
    EXPONENT,
    FFT_TYPE,
    FLAG,
    GATHER_NUMBERS,
    INDEX_MODE,
    INT,
    MESSAGE,
    NUMBER,
    POLICY,
    PRECISION,
    PROGRAM,
    PROGRAMS,
    RULE,
    SCATTER_NUMBERS,
    SIZES,
    TEXT,
    TEXTS,
    Kind,
)
from functrans.primitives import arithmetic, compare, fused, masked, special, transcendental
from functrans.primitives.arithmetic import integer_pow_p
from functrans.primitives.barrier import checkpoint_name_p, optimization_barrier_p, stop_gradient_p
from functrans.primitives.base import constant_p, full_p
from functrans.primitives.broadcast import broadcast_in_dim_p, reduce_sum_p, transpose_p
from functrans.primitives.callback import debug_callback_p, io_callback_p, pure_callback_p
from functrans.primitives.check import check_p
from functrans.primitives.collective import (
    all_gather_p,
    all_to_all_p,
    axis_index_p,
    pmax_p,
    pmin_p,
    ppermute_p,
    psum_p,
    psum_scatter_p,
    pvary_p,
)
from functrans.primitives.compare import clamp_p, select_n_p
from functrans.primitives.control_flow.cond import cond_p
from functrans.primitives.control_flow.scan import scan_p
from functrans.primitives.control_flow.while_loop import while_p
from functrans.primitives.conv import conv_general_dilated_p
from functrans.primitives.convert import bitcast_convert_type_p, convert_element_type_p
from functrans.primitives.coordinate_products import coo_dot_p
from functrans.primitives.cumulative import (
    cumlogsumexp_p,
    cummax_p,
    cummin_p,
    cumprod_p,
    cumsum_p,
)
from functrans.primitives.differentiable import add_any_p
from functrans.primitives.dot import dot_general_p
from functrans.primitives.dynamic_slice import dynamic_slice_p, dynamic_update_slice_p
from functrans.primitives.elementwise import Elementwise
from functrans.primitives.fft import fft_p
from functrans.primitives.index import gather_p, scatter_add_p
from functrans.primitives.linalg import cholesky_p, lu_p, lu_pivots_to_permutation_p, qr_p
from functrans.primitives.random import philox4x32_p, threefry2x32_p
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
from functrans.primitives.row_coordinates import row_coordinates_p
from functrans.primitives.scatter import scatter_max_p, scatter_min_p, scatter_mul_p, scatter_p
from functrans.primitives.schur import hessenberg_p, reflected_qr_p, schur_p, tridiagonal_p
from functrans.primitives.shape import (
    concatenate_p,
    copy_p,
    iota_p,
    pad_p,
    reshape_p,
    rev_p,
    slice_p,
)
from functrans.primitives.shard_map import shard_map_p, sharding_constraint_p
from functrans.primitives.solve import adjugate_p, det_p, slogdet_p, solve_p, triangular_solve_p
from functrans.primitives.sort import sort_p, top_k_p
from functrans.primitives.sparse import csr_dot_p, csr_sample_p
from functrans.primitives.sparse_sums import sum_places_p
from functrans.primitives.spectral import eig_p, eigh_p, svd_p
from functrans.primitives.sylvester import (
    sylvester_p,
    triangular_root_p,
    triangular_sylvester_p,
)
from functrans.primitives.transcendental import polygamma_p
from functrans.primitives.window import (
    reduce_window_max_p,
    reduce_window_min_p,
    reduce_window_sum_p,
    window_argmax_p,
    window_argmin_p,
    window_put_p,
    window_take_p,
)
from functrans.transforms.checkpoint import checkpoint_p
from functrans.transforms.custom_jvp import custom_jvp_call_p
from functrans.transforms.custom_vjp import custom_vjp_call_p, custom_vjp_linear_p
from functrans.transforms.jit.primitive import checked_p, jit_p
from functrans.transforms.linear_solve import linear_solve_p

__all__ = ["INSTEAD", "OPTIONAL", "PARAMETERS", "PRIMITIVES", "Parameters"]

Parameters = Mapping[str, Kind]

_AXES: Final[Parameters] = {"axes": SIZES}
_CUMULATIVE: Final[Parameters] = {"axis": INT, "reverse": FLAG}
_WINDOW: Final[Parameters] = {
    "window_dimensions": SIZES, "window_strides": SIZES, "padding": SIZES, "base_dilation": SIZES,
    "window_dilation": SIZES}
_INDEX: Final[Parameters] = {
    "mode": INDEX_MODE, "unique_indices": FLAG, "indices_are_sorted": FLAG}
_SCATTER: Final[Parameters] = {"dimension_numbers": SCATTER_NUMBERS, **_INDEX}
_NONE: Final[Parameters] = {}

_CALLS_PYTHON: Final = "it calls a Python function, which a file does not hold."
_OF_DEVICES: Final = "it names devices of this process."
_OF_A_VMAP: Final = "its named axis belongs to a vmap outside of the function."
_CHECKED: Final = "a file holds no programs that look for NaN."
INSTEAD: Final = {
    _CALLS_PYTHON: "compute it with functrans.numpy, or leave it out of the exported function",
    _OF_DEVICES: "export the function of the parts of arrays",
    _OF_A_VMAP: "export the mapped function",
    _CHECKED: "export the function without ft.checked; ft.check may stay",
}
"""What a user may do, by the reason why a primitive cannot be exported."""


def _is_no_function(primitive: Primitive) -> bool:
    return not isinstance(primitive, Elementwise)


PARAMETERS: Final[Table[Parameters]] = Table({
    argmax_p: {"axes": SIZES, "index_dtype": DTYPE},
    argmin_p: {"axes": SIZES, "index_dtype": DTYPE},
    bitcast_convert_type_p: {"new_dtype": DTYPE},
    broadcast_in_dim_p: {"shape": SIZES, "broadcast_dimensions": SIZES},
    check_p: {"message": MESSAGE, "names": TEXTS, "kind": TEXT, "lanes": INT},
    checkpoint_p: {"jaxpr": PROGRAM, "prevent_cse": FLAG, "policy": POLICY},
    concatenate_p: {"dimension": INT},
    cond_p: {"branches": PROGRAMS, "masked": FLAG},
    constant_p: {"value": ARRAY},
    conv_general_dilated_p: {
        "window_strides": SIZES, "padding": SIZES, "lhs_dilation": SIZES, "rhs_dilation": SIZES,
        "dimension_numbers": CONV_NUMBERS, "group_axes": SIZES,
        "preferred_element_type": DTYPE, "precision": PRECISION},
    convert_element_type_p: {"new_dtype": DTYPE, "weak_type": FLAG},
    custom_jvp_call_p: {"call_jaxpr": PROGRAM, "rule_jaxpr": RULE, "num_consts": SIZES},
    custom_vjp_call_p: {"call_jaxpr": PROGRAM, "fwd_jaxpr": RULE, "bwd_jaxpr": RULE,
                        "num_consts": SIZES},
    **dict.fromkeys((cumlogsumexp_p, cummax_p, cummin_p, cumprod_p, cumsum_p), _CUMULATIVE),
    dot_general_p: {"dimension_numbers": SIZES, "preferred_element_type": DTYPE,
                    "precision": PRECISION},
    dynamic_slice_p: {"slice_sizes": SIZES},
    eig_p: {"vectors": FLAG},
    eigh_p: {"vectors": FLAG},
    fft_p: {"fft_type": FFT_TYPE, "fft_lengths": SIZES},
    full_p: {"shape": SIZES, "dtype": DTYPE, "value": NUMBER},
    gather_p: {"dimension_numbers": GATHER_NUMBERS, "slice_sizes": SIZES,
               **_INDEX, "fill_value": NUMBER},
    integer_pow_p: {"y": EXPONENT},
    iota_p: {"dtype": DTYPE, "shape": SIZES, "dimension": INT},
    jit_p: {"jaxpr": PROGRAM, "name": TEXT},
    linear_solve_p: {"matvec": PROGRAM, "solve": PROGRAM, "vecmat": PROGRAM,
                     "transpose_solve": PROGRAM, "num_consts": SIZES},
    lu_pivots_to_permutation_p: {"permutation_size": SIZES},
    checkpoint_name_p: {"name": TEXT},
    optimization_barrier_p: {"last_first": FLAG},
    pad_p: {"padding_config": SIZES},
    polygamma_p: {"n": INT},
    qr_p: {"full_matrices": FLAG},
    **dict.fromkeys((reduce_and_p, reduce_max_p, reduce_min_p, reduce_or_p, reduce_prod_p,
                     reduce_sum_p, reduce_xor_p), _AXES),
    **dict.fromkeys((reduce_window_max_p, reduce_window_min_p, reduce_window_sum_p,
                     window_argmax_p, window_argmin_p, window_take_p), _WINDOW),
    reshape_p: {"new_sizes": SIZES},
    rev_p: {"dimensions": SIZES},
    schur_p: {"vectors": FLAG},
    scan_p: {"jaxpr": PROGRAM, "length": SIZES, "reverse": FLAG, "unroll": INT, "num_consts": INT,
             "num_carry": INT},
    **dict.fromkeys((scatter_p, scatter_add_p, scatter_max_p, scatter_min_p, scatter_mul_p),
                    _SCATTER),
    slice_p: {"start_indices": SIZES, "limit_indices": SIZES, "strides": SIZES},
    sort_p: {"dimension": INT, "is_stable": FLAG, "num_keys": INT},
    svd_p: {"full_matrices": FLAG, "compute_uv": FLAG},
    coo_dot_p: {"sizes": SIZES, "transpose": FLAG, "is_sorted": FLAG},
    csr_dot_p: {"columns": SIZES, "transpose": FLAG},
    sum_places_p: {"sizes": SIZES, "room": SIZES, "compressed": FLAG, "to_rows": FLAG,
                   "numbered": FLAG},
    top_k_p: {"k": SIZES, "axis": INT},
    transpose_p: {"permutation": SIZES},
    triangular_sylvester_p: {"transposed": FLAG, "strict": FLAG},
    triangular_solve_p: {"left_side": FLAG, "lower": FLAG, "transpose_a": FLAG,
                         "conjugate_a": FLAG, "unit_diagonal": FLAG},
    while_p: {"cond_jaxpr": PROGRAM, "body_jaxpr": PROGRAM, "cond_nconsts": INT,
              "body_nconsts": INT, "record": SIZES, "num_active": INT, "masked": FLAG},
    window_put_p: {"shape": SIZES, **_WINDOW},
    **dict.fromkeys((
        add_any_p, adjugate_p, cholesky_p, clamp_p, copy_p, csr_sample_p, det_p,
        dynamic_update_slice_p, hessenberg_p, lu_p, philox4x32_p, reflected_qr_p, row_coordinates_p,
        select_n_p, slogdet_p, solve_p, stop_gradient_p, sylvester_p, threefry2x32_p,
        triangular_root_p, tridiagonal_p),
        _NONE),
}, of=_is_no_function, without={
    **dict.fromkeys((pure_callback_p, io_callback_p, debug_callback_p), _CALLS_PYTHON),
    **dict.fromkeys((psum_p, pmax_p, pmin_p, pvary_p, all_gather_p, psum_scatter_p, all_to_all_p,
                     ppermute_p, axis_index_p), _OF_A_VMAP),
    **dict.fromkeys((shard_map_p, sharding_constraint_p), _OF_DEVICES),
    checked_p: _CHECKED,
    custom_vjp_linear_p: "its transpose alone is known, which is a Python function.",
})
"""The kinds of the parameters of each primitive; an elementwise one without an entry has none."""

OPTIONAL: Final[Table[frozenset[str]]] = Table({
    checkpoint_p: frozenset({"policy", "prevent_cse"}),
    cond_p: frozenset({"masked"}),
    conv_general_dilated_p: frozenset({"group_axes", "precision", "preferred_element_type"}),
    convert_element_type_p: frozenset({"weak_type"}),
    dot_general_p: frozenset({"precision", "preferred_element_type"}),
    gather_p: frozenset({"fill_value"}),
    linear_solve_p: frozenset({"transpose_solve", "vecmat"}),
    optimization_barrier_p: frozenset({"last_first"}),
    while_p: frozenset({"masked", "num_active", "record"}),
}, otherwise="an equation has all parameters")
"""The parameters that an equation may be without."""


def _elementwise() -> Iterator[Primitive]:
    for module in (arithmetic, compare, fused, masked, special, transcendental):
        yield from (p for p in vars(module).values() if isinstance(p, Elementwise))


PRIMITIVES: Final[dict[str, Primitive]] = {p.name: p for p in (*PARAMETERS, *_elementwise())}
"""The primitives that a file may have, by their names in files."""
