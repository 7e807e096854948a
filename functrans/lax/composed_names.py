"""Names of JAX's primitives for operations of `functrans.lax` that are compositions."""

from typing import Any

from functrans.core.composed import ComposedPrimitive
from functrans.lax import bits, deferred, folding, generators, operations, shapes, tokens
from functrans.lax.ragged_exchange import ragged_all_to_all
from functrans.primitives import scatter, window
from functrans.primitives import shape as shape_functions
from functrans.typing import Array

__all__ = [
    "after_all_p", "approx_top_k_p", "create_token_p", "dce_sink_p", "igamma_grad_a_p", "mulhi_p",
    "ragged_all_to_all_p", "reduce_p", "reduce_precision_p", "reduce_window_p",
    "regularized_incomplete_beta_p", "rng_bit_generator_p", "rng_uniform_p", "scatter_sub_p",
    "split_p", "square_p", "squeeze_p", "stack_p", "stage_p", "tile_p", "unstack_p",
]


def _approx_top_k(operand: Array, *, k: int, is_max_k: bool, **others: Any) -> Any:
    return (folding.approx_max_k if is_max_k else folding.approx_min_k)(operand, k, **others)


after_all_p = ComposedPrimitive("after_all", tokens.after_all)
approx_top_k_p = ComposedPrimitive("approx_top_k", _approx_top_k)
create_token_p = ComposedPrimitive("create_token", tokens.create_token)
dce_sink_p = ComposedPrimitive("dce_sink", tokens.dce_sink)
igamma_grad_a_p = ComposedPrimitive("igamma_grad_a", bits.igamma_grad_a)
mulhi_p = ComposedPrimitive("mulhi", bits.mulhi)
ragged_all_to_all_p = ComposedPrimitive("ragged_all_to_all", ragged_all_to_all)
reduce_p = ComposedPrimitive("reduce", folding.reduce)
reduce_precision_p = ComposedPrimitive("reduce_precision", bits.reduce_precision)
reduce_window_p = ComposedPrimitive("reduce_window", window.reduce_window)
regularized_incomplete_beta_p = ComposedPrimitive("regularized_incomplete_beta", deferred.betainc)
rng_bit_generator_p = ComposedPrimitive("rng_bit_generator", generators.rng_bit_generator)
rng_uniform_p = ComposedPrimitive("rng_uniform", generators.rng_uniform)
scatter_sub_p = ComposedPrimitive("scatter_sub", scatter.scatter_sub)
split_p = ComposedPrimitive("split", operations.split)
square_p = ComposedPrimitive("square", operations.square)
squeeze_p = ComposedPrimitive("squeeze", shape_functions.squeeze)
stack_p = ComposedPrimitive("stack", shapes.stack)
stage_p = ComposedPrimitive("stage", shapes.stage)
tile_p = ComposedPrimitive("tile", shapes.tile)
unstack_p = ComposedPrimitive("unstack", shapes.unstack)
