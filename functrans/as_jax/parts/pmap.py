"""`jax.pmap` over the one device of this process, and what else of meshes has one answer."""

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
    """`jit(vmap(fun))` over an axis that is as long as there are devices: of one.

    Raises ShapeError for a longer axis, as JAX does where there are too few devices.
    """
    static = (static_broadcasted_argnums,) if isinstance(static_broadcasted_argnums, int) \
        else tuple(static_broadcasted_argnums)
    available = len(devices) if devices is not None else functrans.local_device_count()

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

    def over_axes(*args: Any, **kwargs: Any) -> Any:
        axes = [None if i in static else (in_axes[i] if isinstance(in_axes, (tuple, list))
                                          else in_axes) for i in range(len(args))]
        given = [_Held(a) if i in static else a for i, a in enumerate(args)]

        def body(*inner: Any, **more: Any) -> Any:
            return fun(*[x.value if isinstance(x, _Held) else x for x in inner], **more)

        return functrans.vmap(body, axes, out_axes, axis_name=axis_name,
                              axis_size=axis_size)(*given, **kwargs)

    run = functrans.jit(over_axes, static_argnums=static)
    mapped.lower = run.lower  # type: ignore[attr-defined]
    return mapped


@functrans.tree_util.register_static
class _Held:
    """An argument that is not mapped and not an array."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Held) and bool(self.value == other.value)

    def __hash__(self) -> int:
        return hash(self.value)
