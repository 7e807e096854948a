"""What is said of updates that could not be made in place."""

from __future__ import annotations

from functrans.core.errors import BackendError
from functrans.lowering.loops.tensor import Tensor

__all__ = ["copies_needed"]


def copies_needed(tensor: Tensor, reason: str) -> BackendError:
    """The error where `require_inplace` was asked for, and a value is copied first."""
    return BackendError(f"an update of a {tensor.dtype}{list(tensor.shape)} needs a copy.",
                        where=tensor.source, why=f"{reason}.",
                        fix="jit(f, donate_argnums=...) gives the program the memory of arguments "
                            "that are not used again")
