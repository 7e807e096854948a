"""Functions with the names of SciPy, on arrays and tracers; SciPy itself is not needed."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from functrans.core.errors import missing_attribute

if TYPE_CHECKING:
    from functrans.scipy import (
        cluster,
        differentiate,
        fft,
        integrate,
        interpolate,
        linalg,
        ndimage,
        optimize,
        signal,
        sparse,
        spatial,
        special,
        stats,
    )

__all__ = ["cluster", "differentiate", "fft", "integrate", "interpolate", "linalg", "ndimage",
           "optimize", "signal", "sparse", "spatial", "special", "stats"]


if not TYPE_CHECKING:  # which would take any name for one that there is
    def __getattr__(name: str) -> Any:
        """Modules are imported when they are first used: few programs need more than one."""
        if name in __all__:
            return importlib.import_module(f"functrans.scipy.{name}")
        raise missing_attribute("functrans.scipy", name)


def __dir__() -> list[str]:
    return sorted(__all__)
