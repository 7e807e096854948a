"""Settings that hold in a scope: `with ft.config.default_device("cpu"): ...`, and others."""

from functrans.core.config import (
    ALGEBRA,
    Config,
    algebra,
    current,
    debug_internal_frames,
    disable_jit,
    matmul_precision,
    scope,
    use_backend,
)
from functrans.core.errors import publish
from functrans.device import current_device, default_device

__all__ = ["ALGEBRA", "Config", "algebra", "current", "current_device", "debug_internal_frames",
           "default_device", "disable_jit", "matmul_precision", "scope", "use_backend"]

publish(globals(), ["current_device", "default_device"])
