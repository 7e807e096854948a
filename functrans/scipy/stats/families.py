"""What functions of distributions take: a family by what it states."""

from __future__ import annotations

from typing import Any, Protocol

__all__ = ["DistributionLike"]


class DistributionLike(Protocol):
    """A distribution of `functrans.scipy.stats`, or of a user's class: it has its functions."""

    def __getattr__(self, name: str) -> Any: ...
