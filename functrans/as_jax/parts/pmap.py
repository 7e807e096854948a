"""`jax.pmap`, and what else of meshes has one answer."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

import functrans
from functrans.core.errors import ShapeError
from functrans.core.source import user_source
from functrans.core.tree import tree_leaves

__all__ = ["pmap", "use_abstract_mesh"]


@contextmanager
def use_abstract_mesh(mesh: Any) -> Iterator[None]:
    """Context manager that changes nothing: programs are told their mesh by `set_mesh`."""
    yield


def pmap(fun: Callable[..., Any], axis_name: Any = None, *, in_axes: Any = 0, out_axes: Any = 0,
         static_broadcasted_argnums: int | Sequence[int] = (), devices: Any = None,
         backend: Any = None, axis_size: int | None = None,
         donate_argnums: int | Sequence[int] = ()) -> Callable[..., Any]:
    """`functrans.pmap`; raises ShapeError for a longer axis than there are devices, as JAX does."""
    static = (static_broadcasted_argnums,) if isinstance(static_broadcasted_argnums, int) \
        else tuple(static_broadcasted_argnums)
    available = len(devices) if devices is not None else functrans.local_device_count()
    run = functrans.pmap(fun, axis_name, in_axes=in_axes, out_axes=out_axes,
                         static_broadcasted_argnums=static, devices=devices, backend=backend,
                         axis_size=axis_size, donate_argnums=donate_argnums)

    @functools.wraps(fun)
    def mapped(*args: Any, **kwargs: Any) -> Any:
        axes = list(in_axes) if isinstance(in_axes, (tuple, list)) else [in_axes] * len(args)
        sizes = {np.shape(leaf)[0] for i, (a, axis) in enumerate(zip(args, axes, strict=False))
                 if i not in static and axis is not None for leaf in tree_leaves(a)
                 if np.ndim(leaf)}
        if any(size > available for size in sizes):
            raise ShapeError(f"pmap over an axis of size {max(sizes)} needs as many devices, and "
                             f"there are {available}.", where=user_source(),
                             fix="jax.vmap(fun), on one device")
        return run(*args, **kwargs)

    mapped.lower = functrans.jit(run).lower  # type: ignore[attr-defined]
    return mapped
