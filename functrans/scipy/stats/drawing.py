"""How `rvs` of distributions are called: with a key first, or as SciPy's are."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from functrans.core.errors import ArgumentError
from functrans.core.source import user_source
from functrans.random.keys import is_key
from functrans.scipy.arguments import random_key

__all__ = ["by_key"]


def by_key(rvs: Callable[..., Any]) -> Callable[..., Any]:
    """A method that draws by a key: also by `random_state`, a key or a seed, and of a `size`."""
    @functools.wraps(rvs)
    def drawn(self: Any, *args: Any, key: Any = None, size: Any = None, random_state: Any = None,
              **kwargs: Any) -> Any:
        if key is None and args and _may_be_key(args[0]):
            key, *rest = args
        else:
            rest = list(args)
        name = f"stats.{getattr(self, '__name__', type(self).__name__).rpartition('.')[2]}.rvs"
        if key is None and random_state is None:
            raise ArgumentError(
                f"functrans.scipy.{name}: there is no key.", where=user_source(),
                why="random numbers are a function of a key, and no call changes a state.",
                fix="rvs(ft.random.key(0), ...), or random_state=0")
        if size is not None:
            kwargs["shape"] = size
        return rvs(self, random_key(name, random_state) if key is None else key, *rest, **kwargs)

    return drawn


def _may_be_key(x: Any) -> bool:
    """Whether x is a key, or the words of one."""
    return is_key(x) or str(getattr(x, "dtype", "")) == "uint32"
