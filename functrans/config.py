"""Settings that hold in a scope: `with ft.config.default_device("cpu"): ...`, and others."""

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
    progress,
    scope,
    use_backend,
)
from functrans.core.errors import publish
from functrans.core.threads import THREAD_LAYERS, num_threads, thread_layer, threads
from functrans.device import current_device, default_device

__all__ = ["ALGEBRA", "AUTOTUNE", "DYNAMIC_SHAPES", "HOST_STEPS", "PRNG_IMPLS", "THREAD_LAYERS",
           "Config", "algebra", "autotune", "current", "current_device", "debug_internal_frames",
           "default_device", "default_prng_impl", "deterministic", "disable_jit",
           "dynamic_shapes", "host_steps", "matmul_precision", "num_threads", "progress", "scope",
           "thread_layer", "threads", "use_backend"]

publish(globals(), ["current_device", "default_device"])
