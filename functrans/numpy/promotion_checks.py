"""What `numpy_rank_promotion` and `numpy_dtype_promotion` refuse, of functions as users call them.

Functions of the package that are composed of others repeat and convert operands on purpose, so that
only what stands next to the user's line is looked at.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Sequence
from types import FrameType
from typing import Any

from functrans.core import config, dtypes
from functrans.core.errors import (
    PromotionError,
    ShapeError,
)
from functrans.core.source import (
    is_internal_module,
    user_source,
)

__all__ = ["check_dtypes", "check_ranks"]

_OPERATORS = "functrans.operators"


def _is_asked_by_user(name: str) -> bool:
    """Whether the function of this name, or an operator, is what the user's line calls."""
    frame: FrameType | None = inspect.currentframe()
    outermost = frame
    while frame is not None and is_internal_module(frame.f_globals.get("__name__", "")):
        # the wrapper that hides frames is no function of its own
        outermost = frame if frame.f_code.co_name != "call" else outermost
        frame = frame.f_back
    if frame is None or outermost is None:
        return False
    module = outermost.f_globals.get("__name__", "")
    return module == _OPERATORS or outermost.f_code.co_name in (name, "fallback")


def check_ranks(name: str, shapes: Sequence[Any]) -> None:
    """Raise or warn where arrays of unlike ranks are to be broadcast, if a setting asks for it."""
    wanted = config.current().rank_promotion
    ranks = {len(s) for s in shapes if len(s)}
    if wanted == "allow" or len(ranks) < 2 or not _is_asked_by_user(name):
        return
    text = f"{name} of shapes {' and '.join(map(str, shapes))}, of unlike ranks."
    if wanted == "warn":
        source = user_source()
        warnings.warn_explicit(text, UserWarning, source.filename if source else "<unknown>",
                               source.line if source else 1)
        return
    raise ShapeError(text, where=user_source(), why="numpy_rank_promotion is 'raise' here.",
                     fix="x[None, :] + y, or jnp.broadcast_to(x, y.shape) + y")


def check_dtypes(name: str, args: Sequence[Any]) -> None:
    """Raise where operands have unlike dtypes, if a setting asks for it."""
    if config.current().dtype_promotion == "standard":
        return
    pairs = [dtypes.dtype_and_weak(a) for a in args]
    strong = sorted({d.name for d, weak in pairs if not weak})
    kinds = [dtypes.kind(d) for d, weak in pairs if weak]
    fits = len(strong) < 2 and all(
        _takes(dtypes.kind(dtypes.as_dtype(strong[0])), k) for k in kinds) if strong else True
    if fits or not _is_asked_by_user(name):
        return
    found = [d.name if not weak else f"a Python number ({dtypes.kind(d)})" for d, weak in pairs]
    raise PromotionError(f"{name} of {' and '.join(found)}.", where=user_source(),
                         why="numpy_dtype_promotion is 'strict' here.",
                         fix="x.astype(y.dtype)")


def _takes(strong: str, weak: str) -> bool:
    """Whether an array of a kind keeps its dtype beside a Python number of another."""
    order = "biufc".replace("u", "")
    strong, weak = ("i" if k == "u" else k for k in (strong, weak))
    if "b" in (strong, weak):
        return strong == weak
    return order.index(weak) <= order.index(strong)
