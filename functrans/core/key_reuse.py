"""A checker of keys that are used twice, which makes two samples one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

import numpy as np

from functrans.core import config
from functrans.core.dtypes import KEY_DTYPES
from functrans.core.errors import KeyReuseError
from functrans.core.source import describe_source, user_source
from functrans.core.trace import Tracer

__all__ = ["check_key_reuse", "debug_key_reuse", "is_checked", "renewed", "used"]

K = TypeVar("K")

# By the generator and the words of a key, or by the identity of a tracer, which is kept: the line
# that used the key, and the tracer. None where nobody asked.
_uses: ContextVar[dict[Any, Any] | None] = ContextVar("functrans_key_uses", default=None)


@contextmanager
def debug_key_reuse(check: bool = True) -> Iterator[None]:
    """Context manager: a key that is used a second time raises KeyReuseError.

    Samplers and `split` use a key up; `key`, `split`, `fold_in`, `wrap_key_data` and `clone` make
    keys that are new, also where an equal one was used before. Keys alone are checked, not the
    plain words of `PRNGKey`. `jit` calls its target as plain Python meanwhile, so that every use
    is seen; the bodies of loops are checked once, as they are traced.

    >>> import functrans as ft
    >>> with ft.debug_key_reuse(True):
    ...     key = ft.random.key(0)
    ...     first, second = ft.random.split(key)
    ...     x, y = ft.random.normal(first), ft.random.normal(second)
    """
    token = _uses.set({} if check else None)
    try:
        with config.scope(disable_jit=True) if check else config.scope():
            yield
    finally:
        _uses.reset(token)


def check_key_reuse(check: bool) -> None:
    """The same for the rest of this thread."""
    _uses.set({} if check else None)
    config.set_current(disable_jit=bool(check))


def is_checked() -> bool:
    """Whether uses of keys are noted."""
    return _uses.get() is not None


def used(name: str, key: Any) -> None:
    """Note that a function uses a key up; raises KeyReuseError where that was done before."""
    uses = _uses.get()
    if uses is None or key.dtype not in KEY_DTYPES:
        return
    source = user_source()
    for place in _places(key):
        if place in uses:
            before = describe_source(uses[place][0])
            raise KeyReuseError(
                f"ft.random.{name} got a key that was used before"
                f"{before and ', '}{before}.", where=source,
                why="the samples of one key are equal or correlated.",
                fix="key, subkey = ft.random.split(key)  # one for each use")
        uses[place] = source, key


def renewed(keys: K) -> K:
    """The keys themselves, noted as new ones."""
    uses = _uses.get()
    if uses is not None and getattr(keys, "dtype", None) in KEY_DTYPES:
        for place in _places(keys):
            uses.pop(place, None)
    return keys


def _places(keys: Any) -> Iterable[Any]:
    """What keys are noted by: their words where they are known, else the tracer."""
    while isinstance(keys, Tracer) and len(keys.inside) == 1:
        keys = keys.inside[0]
    if isinstance(keys, Tracer):
        return [id(keys)]
    words = np.ascontiguousarray(keys._np).view(np.uint32).reshape(-1, 2)
    return {(keys.dtype, *row) for row in words.tolist()}
