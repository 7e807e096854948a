"""Settings that hold in a scope: `with ft.config.default_device("cpu"): ...`, and others."""

from functrans.core.config import (
    ALGEBRA,
    AUTOTUNE,
    DYNAMIC_SHAPES,
    HOST_STEPS,
    Config,
    algebra,
    autotune,
    current,
    debug_internal_frames,
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
from functrans.device import current_device, default_device

__all__ = ["ALGEBRA", "AUTOTUNE", "DYNAMIC_SHAPES", "HOST_STEPS", "Config", "algebra", "autotune",
           "current", "current_device", "debug_internal_frames", "default_device",
           "deterministic", "disable_jit", "dynamic_shapes", "host_steps", "matmul_precision",
           "progress", "scope", "use_backend"]

publish(globals(), ["current_device", "default_device"])
