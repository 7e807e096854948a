"""Masked cotangents: what transposition makes of those that come from a selection.

The cotangent of a case that `select_n` does not choose is 0, although the derivative of that case
may be infinite or NaN there (sqrt at 0). A cotangent is *masked* while its zeros are known to be
such zeros: products with it are 0 where it is, whatever the other factor.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from functrans.core.primitive import HigherOrder, Primitive
from functrans.core.record import Record
from functrans.core.table import Table
from functrans.primitives.arithmetic import div_p, mul_p
from functrans.primitives.barrier import optimization_barrier_p
from functrans.primitives.broadcast import broadcast_in_dim_p, reduce_sum_p, transpose_p
from functrans.primitives.collective import (
    all_gather_p,
    all_to_all_p,
    ppermute_p,
    psum_p,
    psum_scatter_p,
    pvary_p,
)
from functrans.primitives.compare import select_n_p
from functrans.primitives.conv import conv_general_dilated_p
from functrans.primitives.convert import convert_element_type_p
from functrans.primitives.coordinate_products import coo_dot_p
from functrans.primitives.cumulative import cumsum_p
from functrans.primitives.differentiable import add_any_p
from functrans.primitives.dot import dot_general_p
from functrans.primitives.dynamic_slice import dynamic_slice_p, dynamic_update_slice_p
from functrans.primitives.elementwise import Elementwise
from functrans.primitives.fft import fft_p
from functrans.primitives.index import gather_p, scatter_add_p
from functrans.primitives.masked import masked_div, masked_div_p, masked_mul, masked_mul_p
from functrans.primitives.scatter import scatter_mul_p, scatter_p
from functrans.primitives.shape import (
    concatenate_p,
    copy_p,
    pad_p,
    reshape_p,
    rev_p,
    slice_p,
)
from functrans.primitives.shard_map import sharding_constraint_p
from functrans.primitives.solve import solve_p, triangular_solve_p
from functrans.primitives.sparse import csr_dot_p, csr_sample_p
from functrans.primitives.sylvester import sylvester_p, triangular_sylvester_p
from functrans.primitives.window import reduce_window_sum_p, window_put_p, window_take_p

__all__ = ["MASKING", "PRODUCTS", "SELECTIONS", "MaskedProduct", "Masking", "masking_of"]


class Masking(enum.Enum):
    """Whether the cotangents that the transpose of an operation gives are masked."""

    KEPT = "where the given one is: elements are moved, scaled, or added where they are one value"
    LOST = "never: elements are added up that belong to different elements"
    MADE = "always: it selects"


def _transposed(primitive: Primitive) -> bool:
    return (primitive.transpose is not None
            and not isinstance(primitive, (HigherOrder, Elementwise)))


MASKING: Final[Table[Masking]] = Table({
    **dict.fromkeys((select_n_p, masked_mul_p, masked_div_p), Masking.MADE),
    **dict.fromkeys((
        add_any_p, broadcast_in_dim_p, concatenate_p, convert_element_type_p, copy_p,
        dynamic_slice_p, dynamic_update_slice_p, gather_p, optimization_barrier_p, pad_p,
        reduce_sum_p, reduce_window_sum_p, reshape_p, rev_p, scatter_add_p, scatter_mul_p,
        scatter_p, slice_p, transpose_p, window_put_p, window_take_p,
        all_gather_p, all_to_all_p, ppermute_p, psum_p, psum_scatter_p, pvary_p,
        sharding_constraint_p), Masking.KEPT),
    **dict.fromkeys((
        conv_general_dilated_p, coo_dot_p, csr_dot_p, csr_sample_p, cumsum_p, dot_general_p, fft_p,
        solve_p, sylvester_p, triangular_solve_p, triangular_sylvester_p), Masking.LOST),
}, of=_transposed, without={})
"""Of the primitives that have a transpose; those that call programs have what these have."""

SELECTIONS: Final = frozenset(p for p, masking in MASKING.items() if masking is Masking.MADE)
"""Their transposes mask cotangents; reverse mode asks for each operation, so this is a set."""


def masking_of(primitive: Primitive) -> Masking:
    """The entry of a primitive; one without an entry is not known to keep zeros."""
    return MASKING.get(primitive, Masking.KEPT if isinstance(primitive, Elementwise)
                       else Masking.LOST)


class MaskedProduct(Record):
    """An operation that multiplies a cotangent by an operand."""

    operation: Callable[[Any, Any], Any]
    """(cotangent, operand): the product, and 0 where the cotangent is 0."""
    is_plain: Callable[[float], bool]
    """Whether 0 times (divided by) a number is 0 anyway."""


PRODUCTS: Final[Table[MaskedProduct]] = Table({
    mul_p: MaskedProduct(masked_mul, lambda factor: bool(np.isfinite(factor))),
    div_p: MaskedProduct(masked_div, lambda divisor: bool(np.isfinite(divisor)) and divisor != 0),
}, otherwise="its transpose multiplies by no operand, or keeps no mask")
