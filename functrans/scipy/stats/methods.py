"""How a test finds its p-value by resampling: what its `method` may be.

`rng` is a key, or the int of one (0 by default): the same gives the same p-value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from functrans.core.errors import publish
from functrans.scipy.arguments import random_key
from functrans.typing import Array

__all__ = ["BootstrapMethod", "MonteCarloMethod", "PermutationMethod"]


Rng = Array | int | None  # a key, or the int of one


def key_of(name: str, rng: Rng) -> Array:
    """A key: `rng` itself, or that of an int; of 0 for None."""
    return random_key(f"stats.{name}", rng)


@dataclass(frozen=True)
class MonteCarloMethod:
    """The p-value among the statistics of samples that are drawn as the hypothesis says.

    `rvs(key, shape=shape)` draws one, `rvs` of several samples is a sequence of such; the test has
    its own where there is none.

    >>> import functrans as ft
    >>> from functrans.scipy import stats
    >>> x = ft.numpy.array([1.0, 2.0, 4.0, 3.0])
    >>> found = stats.pearsonr(x, x**2, method=stats.MonteCarloMethod(n_resamples=99))
    >>> bool(found.pvalue <= 0.1)
    True
    """

    n_resamples: int = 9999
    batch: int | None = None
    rvs: Callable[..., Any] | Sequence[Callable[..., Any]] | None = None
    rng: Rng = None


@dataclass(frozen=True)
class PermutationMethod:
    """The p-value among the statistics of permuted samples, exact where these are few.

    >>> import functrans as ft
    >>> from functrans.scipy import stats
    >>> x = ft.numpy.array([1.0, 2.0, 4.0, 3.0])
    >>> round(float(stats.pearsonr(x, x**2, method=stats.PermutationMethod()).pvalue), 4)
    0.0833
    """

    n_resamples: int = 9999
    batch: int | None = None
    random_state: Rng = None
    rng: Rng = field(default=None, kw_only=True)


@dataclass(frozen=True)
class BootstrapMethod:
    """A confidence interval from samples that are drawn out of the samples: see `bootstrap`.

    >>> from functrans.scipy import stats
    >>> stats.BootstrapMethod(n_resamples=999).method
    'BCa'
    """

    n_resamples: int = 9999
    batch: int | None = None
    random_state: Any = None
    method: str = "BCa"
    rng: Any = field(default=None, kw_only=True)


Resampling = MonteCarloMethod | PermutationMethod | None

publish(globals(), __all__)
