"""Settings that hold in a scope: `with ft.config.default_device("cpu"): ...`, and others."""

from typing import TYPE_CHECKING, Any

from functrans.core.config import (
    ALGEBRA,
    AUTOTUNE,
    DYNAMIC_SHAPES,
    HOST_STEPS,
    PRNG_IMPLS,
    Config,
    algebra,
    autotune,
    current,
    debug_internal_frames,
    default_prng_impl,
    deterministic,
    disable_jit,
    dynamic_shapes,
    host_steps,
    matmul_precision,
    narrow_64bit,
    progress,
    scope,
    use_backend,
)
from functrans.core.cpu_devices import cpu_device_count, cpu_devices
from functrans.core.errors import missing_attribute, publish
from functrans.core.threads import THREAD_LAYERS, num_threads, thread_layer, threads
from functrans.device import current_device, default_device
from functrans.settings import read, update

__all__ = ["ALGEBRA", "AUTOTUNE", "DYNAMIC_SHAPES", "HOST_STEPS", "PRNG_IMPLS", "THREAD_LAYERS",
           "Config", "algebra", "autotune", "cpu_device_count", "cpu_devices", "current",
           "current_device", "debug_internal_frames", "default_device", "default_prng_impl",
           "deterministic", "disable_jit", "dynamic_shapes", "host_steps", "matmul_precision",
           "narrow_64bit", "num_threads", "progress", "read", "scope", "thread_layer", "threads",
           "update", "use_backend"]


if TYPE_CHECKING:
    x64_enabled: bool
    jax_enable_x64: bool
    jax_disable_jit: bool
    jax_debug_nans: bool
    jax_debug_infs: bool
    jax_debug_key_reuse: bool
    jax_default_matmul_precision: str | None
    jax_default_prng_impl: str
    jax_default_device: str | None
    jax_platform_name: str
    jax_platforms: str | None
    jax_traceback_filtering: str
    jax_check_tracer_leaks: bool
    jax_threefry_partitionable: bool
    jax_enable_custom_prng: bool
    jax_numpy_dtype_promotion: str
    jax_numpy_rank_promotion: str
else:
    def __getattr__(name: str) -> Any:
        """Settings of JAX's by their names, as `jax.config.jax_enable_x64`."""
        if name == "x64_enabled":
            name = "jax_enable_x64"
        if name.startswith("jax_"):
            return read(name)
        raise missing_attribute("functrans.config", name)


publish(globals(), [name for name in __all__ if name in globals()])
