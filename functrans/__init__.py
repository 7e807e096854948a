"""functrans: composable function transformations for Python and NumPy."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

try:
    from functrans import _runtime as _runtime
except ImportError as _error:
    if "cannot import name" not in str(_error):  # it is there, and cannot be loaded
        raise
    # the folder of a clone hides an install that is not editable
    raise ImportError(
        f"functrans was imported from {__path__[0]}, which has no compiled runtime.\n"
        "  Why: it is the source, and comes first where Python starts in its folder, or where "
        "PYTHONPATH names that.\n"
        "  Fix: start Python elsewhere, to use the functrans that is installed; or install the "
        "source in place: pip install -e .") from None

from functrans import array as array
from functrans import config, core, dlpack, dtypes, lax, numpy, tree, tree_util
from functrans import methods as _methods
from functrans import program_views as _program_views
from functrans import third_parties as _third_parties
from functrans.array import Array
from functrans.callbacks import io_callback, pure_callback
from functrans.core.config import default_prng_impl, disable_jit
from functrans.core.config import matmul_precision as default_matmul_precision
from functrans.core.dims import Dim, dim
from functrans.core.dtypes import default_dtypes, float0
from functrans.core.errors import missing_attribute, publish
from functrans.core.key_reuse import debug_key_reuse
from functrans.core.scope import named_scope
from functrans.device import Device, default_device, devices
from functrans.environment import (
    default_backend,
    device_count,
    effects_barrier,
    host_count,
    host_id,
    host_ids,
    local_device_count,
    local_devices,
    make_array_from_callback,
    make_array_from_process_local_data,
    make_array_from_single_device_arrays,
    print_environment_info,
    process_count,
    process_index,
    process_indices,
)
from functrans.lax import stop_gradient
from functrans.placement import block_until_ready, device_get, device_put
from functrans.primitives.barrier import checkpoint_name
from functrans.settings import check_tracer_leaks, checking_leaks, debug_infs, enable_x64
from functrans.transforms import eager as _eager
from functrans.transforms.callables import (
    custom_gradient,
    ensure_compile_time_eval,
    fwd_and_bwd,
    named_call,
    typeof,
)
from functrans.transforms.checkpoint import checkpoint
from functrans.transforms.contracts import check_shapes
from functrans.transforms.custom_jvp import custom_jvp
from functrans.transforms.custom_vjp import custom_vjp
from functrans.transforms.derivatives import (
    grad,
    hessian,
    hvp,
    jacfwd,
    jacobian,
    jacrev,
    value_and_grad,
)
from functrans.transforms.forward import jvp
from functrans.transforms.jit.api import clear_caches, jit, lower
from functrans.transforms.jit.retrace import explain_retrace
from functrans.transforms.reverse import linear_transpose, linearize, vjp
from functrans.transforms.staged import (
    ShapeDtypeStruct,
    closure_convert,
    eval_shape,
    make_jaxpr,
)
from functrans.transforms.vmap import vmap
from functrans.version import __version__ as __version__

if TYPE_CHECKING:
    from functrans import (
        ad,
        ad_checkpoint,
        checkpoint_policies,
        custom_batching,
        custom_derivatives,
        debug,
        distributed,
        errors,
        experimental,
        export,
        extend,
        flatten_util,
        image,
        interpreters,
        mixed_precision,
        nn,
        ops,
        optim,
        per_sample,
        profiler,
        quantize,
        random,
        scipy,
        sharding,
        sparse,
        stages,
        test_util,
        weights,
    )
    from functrans.inspect.draw import draw
    from functrans.inspect.explain import explain
    from functrans.inspect.profile import profile
    from functrans.jax_switches import (
        allow_f16_reductions,
        array_garbage_collection_guard,
        auto_pcast,
        copy_to_host_async,
        enable_checks,
        enable_custom_prng,
        explain_cache_misses,
        jax2tf_associative_scan_reductions,
        legacy_prng_key,
        live_arrays,
        log_compiles,
        no_execution,
        no_tracing,
        numpy_dtype_promotion,
        numpy_rank_promotion,
        remove_size_one_mesh_axis_from_type,
        softmax_custom_jvp,
        thread_guard,
        threefry_partitionable,
        transfer_guard,
        transfer_guard_device_to_device,
        transfer_guard_device_to_host,
        transfer_guard_host_to_device,
    )
    from functrans.mutable.api import numpy_code
    from functrans.ref import Ref, ds, empty_ref, free_ref, freeze, new_ref
    from functrans.sharding import NamedSharding, P, Shard, make_mesh, reshard, set_mesh
    from functrans.sharding.mapped import pmap, smap
    from functrans.transforms.checks.api import check, checked, debug_nans
    from functrans.transforms.shard_map import shard_map

remat = checkpoint
_methods.install()
_eager.install()
_third_parties.install()
_program_views.install()

__all__ = [
    "Array", "Device", "Dim", "NamedSharding", "P", "Ref", "ShapeDtypeStruct", "Shard",
    "ad", "ad_checkpoint", "allow_f16_reductions", "array_garbage_collection_guard", "auto_pcast",
    "block_until_ready", "check", "check_shapes", "check_tracer_leaks", "checked", "checking_leaks",
    "checkpoint", "checkpoint_name", "checkpoint_policies", "clear_caches", "closure_convert",
    "config", "copy_to_host_async", "core", "custom_batching", "custom_derivatives",
    "custom_gradient", "custom_jvp", "custom_vjp", "debug", "debug_infs", "debug_key_reuse",
    "debug_nans", "default_backend", "default_device", "default_dtypes", "default_matmul_precision",
    "default_prng_impl", "device_count", "device_get", "device_put", "devices", "dim",
    "disable_jit", "distributed", "dlpack", "draw", "ds", "dtypes", "effects_barrier", "empty_ref",
    "enable_checks", "enable_custom_prng", "enable_x64", "ensure_compile_time_eval", "errors",
    "eval_shape", "experimental", "explain", "explain_cache_misses", "explain_retrace", "export",
    "extend", "flatten_util", "float0", "free_ref", "freeze", "fwd_and_bwd", "grad", "hessian",
    "host_count", "host_id", "host_ids", "hvp", "image", "interpreters", "io_callback", "jacfwd",
    "jacobian", "jacrev", "jax2tf_associative_scan_reductions", "jit", "jvp", "lax",
    "legacy_prng_key", "linear_transpose", "linearize", "live_arrays", "local_device_count",
    "local_devices", "log_compiles", "lower", "make_array_from_callback",
    "make_array_from_process_local_data", "make_array_from_single_device_arrays", "make_jaxpr",
    "make_mesh", "mixed_precision", "named_call", "named_scope", "new_ref", "nn", "no_execution",
    "no_tracing", "numpy", "numpy_code", "numpy_dtype_promotion", "numpy_rank_promotion", "ops",
    "optim", "per_sample", "pmap", "print_environment_info", "process_count", "process_index",
    "process_indices", "profile", "profiler", "pure_callback", "quantize", "random", "ref", "remat",
    "remove_size_one_mesh_axis_from_type", "reshard", "scipy", "set_mesh", "shard_map", "sharding",
    "smap", "softmax_custom_jvp", "sparse", "stages", "stop_gradient", "test_util", "thread_guard",
    "threefry_partitionable", "transfer_guard", "transfer_guard_device_to_device",
    "transfer_guard_device_to_host", "transfer_guard_host_to_device", "tree", "tree_util", "typeof",
    "value_and_grad", "vjp", "vmap", "weights",
]

publish(globals(), [name for name in __all__ if name in globals()])

_LAZY = ("ad", "ad_checkpoint", "checkpoint_policies", "custom_batching", "custom_derivatives",
    "debug", "distributed", "errors", "experimental", "export", "extend", "flatten_util", "image",
    "interpreters", "mixed_precision", "nn", "ops", "optim", "per_sample", "profiler", "quantize",
    "random", "ref", "scipy", "sharding", "sparse", "stages", "test_util",
         "weights")
_INSPECT = ("draw", "explain", "profile")
_CHECKS = ("check", "checked", "debug_nans")
_MUTABLE = ("numpy_code",)
_REFERENCES = ("Ref", "ds", "empty_ref", "free_ref", "freeze", "new_ref")
_SWITCHES = (
    "allow_f16_reductions", "array_garbage_collection_guard", "auto_pcast", "copy_to_host_async",
    "enable_checks", "enable_custom_prng", "explain_cache_misses",
    "jax2tf_associative_scan_reductions", "legacy_prng_key", "live_arrays", "log_compiles",
    "no_execution", "no_tracing", "numpy_dtype_promotion", "numpy_rank_promotion",
    "remove_size_one_mesh_axis_from_type", "softmax_custom_jvp", "thread_guard",
    "threefry_partitionable", "transfer_guard", "transfer_guard_device_to_device",
    "transfer_guard_device_to_host", "transfer_guard_host_to_device")
_SHARDING = ("NamedSharding", "P", "Shard", "make_mesh", "reshard", "set_mesh")


if not TYPE_CHECKING:  # which would take any name for one that there is
    def __getattr__(name: str) -> Any:
        """Submodules and tools that not everybody needs are imported when they are first used."""
        if name in _LAZY:
            return importlib.import_module(f"functrans.{name}")
        if name in _INSPECT:
            return getattr(importlib.import_module("functrans.inspect"), name)
        if name in _CHECKS:
            return getattr(importlib.import_module("functrans.transforms.checks.api"), name)
        if name in _MUTABLE:
            return getattr(importlib.import_module("functrans.mutable"), name)
        if name in _REFERENCES:
            return getattr(importlib.import_module("functrans.ref"), name)
        if name in _SHARDING:
            return getattr(importlib.import_module("functrans.sharding"), name)
        if name in _SWITCHES:
            return getattr(importlib.import_module("functrans.jax_switches"), name)
        if name in ("pmap", "smap"):
            return getattr(importlib.import_module("functrans.sharding.mapped"), name)
        if name == "shard_map":
            return importlib.import_module("functrans.transforms.shard_map").shard_map
        raise missing_attribute("functrans", name)


def __dir__() -> list[str]:
    return sorted(__all__)
