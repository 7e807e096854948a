"""Names of jax and jax.lax that are not here, and what to write instead, as in `foreign_names`."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

__all__ = ["LAX", "MODULES", "TOP_LEVEL"]

TOP_LEVEL: Final[Mapping[str, str]] = MappingProxyType({
    "smap": "ft.shard_map(fun, in_specs=P(name), out_specs=P(name), axis_names={name})",
    "remove_size_one_mesh_axis_from_type": "nothing  # shardings are no part of types",
    "auto_pcast": "nothing  # values are made varying where they meet others that are",
    "Ref": "ft.lax.scan(f, init, xs)  # state is carried: arrays are immutable",
    "new_ref": "x = x.at[i].set(y)  # arrays are immutable",
    "empty_ref": "jnp.empty(shape)  # arrays are immutable",
    "free_ref": "del x  # arrays are immutable",
    "freeze": "x  # arrays are immutable",
    "ref": "x.at[i]  # arrays are immutable",
    "ds": "ft.lax.dynamic_slice_in_dim(x, start, size)"
        "  # an index of refs, which there are none of",
    "ad": "ft.jvp, ft.vjp",
    "api_util": "ft.tree_util",
    "lib": "ft.devices()",
    "ffi": "ft.pure_callback(fun, shape, x)"
        "  # a function of another library is called by the host",
    "memory": "ft.device_put(x, device)",
    "copy_to_host_async": "ft.device_get(x)",
    "live_arrays": 'ft.devices("cpu")[0].memory_stats()'
        "  # arrays are not registered, bytes in use are counted",
    "log_compiles": "ft.config.progress(True)",
    "explain_cache_misses": "ft.explain_retrace(fun)",
    "numpy_dtype_promotion": "ft.numpy.promote_types(a, b)"
        "  # dtypes always promote by the lattice",
    "numpy_rank_promotion": "ft.check_shapes  # shapes always broadcast by the rule of NumPy",
    "enable_checks": "nothing  # a switch of checks inside of JAX",
    "no_execution": "ft.eval_shape(fun, x)",
    "no_tracing": "ft.explain_retrace(fun)",
    "thread_guard": "nothing  # arrays and programs may be used by all threads",
    "array_garbage_collection_guard": "nothing"
        "  # arrays hold no arrays, so that no cycle keeps one",
    "transfer_guard": 'ft.config.host_steps("error")'
        "  # of programs; a copy to NumPy is always asked for",
    "transfer_guard_device_to_device": 'ft.config.host_steps("error")',
    "transfer_guard_device_to_host": 'ft.config.host_steps("error")',
    "transfer_guard_host_to_device": 'ft.config.host_steps("error")',
    "threefry_partitionable": "nothing  # draws are always those of the partitionable layout",
    "enable_custom_prng": "ft.random.key(seed)  # keys have a dtype of their own",
    "legacy_prng_key": "ft.random.key(seed)  # plain words are keys wherever they are used",
    "allow_f16_reductions": "nothing  # sums of halves are added up in float32",
    "softmax_custom_jvp": "nothing  # softmax has the derivative in its result",
    "jax2tf_associative_scan_reductions": "nothing  # of a converter to TensorFlow",
    "make_user_context": "ft.config.scope(...)  # what programs depend on is a setting",
})
"""Of jax itself."""

LAX: Final[Mapping[str, str]] = MappingProxyType({
    "all_to_all_p": "ft.lax.all_to_all  # a composition, not a primitive",
    "approx_top_k_p": "ft.lax.approx_max_k  # a composition, not a primitive",
    "igamma_grad_a_p": "ft.lax.igamma_grad_a  # a composition, not a primitive",
    "mulhi_p": "ft.lax.mulhi  # a composition, not a primitive",
    "pmax_p": "ft.lax.pmax  # a composition, not a primitive",
    "pmin_p": "ft.lax.pmin  # a composition, not a primitive",
    "reduce_p": "ft.lax.reduce  # a composition, not a primitive",
    "reduce_precision_p": "ft.lax.reduce_precision  # a composition, not a primitive",
    "reduce_window_p": "ft.lax.reduce_window  # a composition, not a primitive",
    "rng_bit_generator_p": "ft.lax.rng_bit_generator  # a composition, not a primitive",
    "rng_uniform_p": "ft.lax.rng_uniform  # a composition, not a primitive",
    "scatter_sub_p": "ft.lax.scatter_sub  # a composition, not a primitive",
    "split_p": "ft.lax.split  # a composition, not a primitive",
    "square_p": "ft.lax.square  # a composition, not a primitive",
    "squeeze_p": "ft.lax.squeeze  # a composition, not a primitive",
    "stack_p": "ft.lax.stack  # a composition, not a primitive",
    "stage_p": "ft.lax.stage  # a composition, not a primitive",
    "tile_p": "ft.lax.tile  # a composition, not a primitive",
    "unstack_p": "ft.lax.unstack  # a composition, not a primitive",
    "device_put_p": "ft.device_put  # a place of arrays, not an operation of programs",
    "eq_to_p": "ft.lax.eq  # sorting has its total order inside",
    "le_to_p": "ft.lax.le  # sorting has its total order inside",
    "lt_to_p": "ft.lax.lt  # sorting has its total order inside",
    "select_and_gather_add_p": "ft.grad  # max pooling keeps the places of its maxima",
    "select_and_scatter_add_p": "ft.grad  # max pooling keeps the places of its maxima",
    "select_and_scatter_p": "ft.grad  # max pooling keeps the places of its maxima",
    "after_all": "ft.io_callback(fun, shape, ordered=True)"
        "  # effects are ordered without tokens",
    "after_all_p": "ft.io_callback(fun, shape, ordered=True)"
        "  # effects are ordered without tokens",
    "create_token": "ft.io_callback(fun, shape, ordered=True)"
        "  # effects are ordered without tokens",
    "create_token_p": "ft.io_callback(fun, shape, ordered=True)"
        "  # effects are ordered without tokens",
    "dce_sink": "ft.debug.callback(fun, x)  # what nobody reads is not computed",
    "dce_sink_p": "ft.debug.callback(fun, x)  # what nobody reads is not computed",
    "psend": "ft.lax.ppermute(x, axis_name, perm)",
    "precv": "ft.lax.ppermute(x, axis_name, perm)",
    "ragged_all_to_all": "ft.lax.all_to_all(x, axis_name, 0, 0)  # of padded blocks",
    "ragged_all_to_all_p": "ft.lax.all_to_all(x, axis_name, 0, 0)  # of padded blocks",
    "sharding_constraint_p": "ft.lax.with_sharding_constraint(x, sharding)",
    "betainc": "ft.scipy.special.betainc(a, b, x)",
    "regularized_incomplete_beta_p": "ft.scipy.special.betainc(a, b, x)",
    "AccuracyMode": "nothing  # functions are within 2 ULP",
    "Tolerance": "nothing  # functions are within 2 ULP",
    "DotAlgorithm": "ft.lax.Precision",
    "DotAlgorithmPreset": "ft.lax.Precision",
})
"""Of jax.lax."""

_TOKENS: Final = "ft.io_callback(fun, shape, ordered=True)  # effects are ordered without tokens"
_JET: Final = "ft.experimental.jet.jet(fun, primals, series)  # rules are those of derivatives"
_STEPS: Final = "ft.experimental.ode.odeint(fun, y0, t)  # a part of its steps"

MODULES: Final[Mapping[str, Mapping[str, str]]] = MappingProxyType({
    "functrans.custom_derivatives": {
        "remat_opt_p": "ft.checkpoint(fun)  # keeps forward rules, and recomputes what they keep",
    },
    "functrans.profiler": {
        "ProfileData": "json.loads(gzip.open(path).read())  # a trace is JSON",
        "ProfileEvent": "json.loads(gzip.open(path).read())  # a trace is JSON",
        "ProfilePlane": "json.loads(gzip.open(path).read())  # a trace is JSON",
        "ProfileOptions": "nothing  # a trace has every call",
        "register_subprocess": "ft.profiler.trace(log_dir)  # each process writes its own",
    },
    "functrans.export": {
        "DisabledSafetyCheck": "nothing  # a file holds no call of foreign code",
    },
    "functrans.extend.core": {
        "Token": _TOKENS, "AbstractToken": _TOKENS,
        "CallPrimitive": "ft.jit(fun)  # a call of a program is one of the package's primitives",
        "DebugInfo": "eqn.source  # the user's line of an equation",
        "DropVar": "ft.extend.core.Var  # a result that nobody reads",
    },
    "functrans.experimental.jet": dict.fromkeys((
        "ZeroSeries", "ZeroTerm", "def_comp", "def_deriv", "deflinear", "defzero", "deriv_prop",
        "linear_prop", "zero_prop", "zero_series", "zero_term"), _JET) | {
            "fact": "ft.scipy.special.factorial(n)"},
    "functrans.experimental.ode": dict.fromkeys((
        "fit_4th_order_polynomial", "initial_step_size", "interp_fit_dopri", "mean_error_ratio",
        "optimal_step_size", "runge_kutta_step"), _STEPS) | {
            "abs2": "jnp.abs(x) ** 2", "ravel_first_arg": "ft.flatten_util.ravel_pytree(x)"},
})
"""Of modules that have nearly all names."""
