"""`jax.vmap`, with the argument of JAX's that names an axis of a mesh."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import functrans

__all__ = ["vmap"]


def vmap(fun: Callable[..., Any], in_axes: Any = 0, out_axes: Any = 0, axis_name: Any = None,
         axis_size: Any = None, spmd_axis_name: Any = None) -> Callable[..., Any]:
    """`functrans.vmap`; a constraint on how arrays lie says nothing of the mapped axis.

    So `spmd_axis_name`, the axis of a mesh that JAX takes there, changes no result.
    """
    return functrans.vmap(fun, in_axes, out_axes, axis_name, axis_size)
