"""`jax.jit`, which also takes a device, a backend and options of XLA's compiler."""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any

import functrans
from functrans.device import current_device, find_device

__all__ = ["jit"]


def jit(fun: Callable[..., Any] | None = None, /, *, device: Any = None,
        backend: str | None = None, compiler_options: Mapping[str, Any] | None = None,
        **kwargs: Any) -> Callable[..., Any]:
    """`functrans.jit`, on a device or a backend that is named; options of XLA's compiler are none.
    """
    if fun is None:
        return functools.partial(jit, device=device, backend=backend, **kwargs)
    place = device if device is not None else backend
    compiled = functrans.jit(fun, **kwargs)
    with contextlib.suppress(ValueError, TypeError):
        # as an attribute, since libraries ask for it without following __wrapped__
        compiled.__signature__ = inspect.signature(fun)  # type: ignore[attr-defined]
    if place is None or find_device(place) == current_device():
        return compiled

    @functools.wraps(fun)
    def there(*args: Any, **keywords: Any) -> Any:
        with functrans.default_device(place):
            return compiled(*functrans.device_put(args, find_device(place)), **keywords)

    there.lower = compiled.lower  # type: ignore[attr-defined]
    return there
