"""The random variables that have names, and those of other families."""

from __future__ import annotations

from typing import Any

from functrans import numpy as jnp
from functrans.core.errors import ArgumentError, publish
from functrans.core.source import user_source
from functrans.core.tree_registry import register_pytree_node_class
from functrans.scipy.stats.base import Distribution
from functrans.scipy.stats.bounded import uniform
from functrans.scipy.stats.custom import rv_continuous, rv_discrete
from functrans.scipy.stats.discrete import binom
from functrans.scipy.stats.families import DistributionLike
from functrans.scipy.stats.real_line import logistic, norm
from functrans.scipy.stats.variables import FamilyVariable
from functrans.typing import ArrayLike

__all__ = ["BinomialVariable", "LogisticVariable", "NormalVariable", "UniformVariable",
           "make_distribution"]


@register_pytree_node_class
class NormalVariable(FamilyVariable):
    """A normal variable of mean mu and standard deviation sigma: `Normal(mu=0, sigma=1)`.

    >>> from functrans.scipy import stats
    >>> x = 2.0 * stats.Normal(mu=1.0) + 3.0
    >>> float(x.mean()), float(x.variance())
    (5.0, 4.0)
    """

    def __init__(self, *, mu: ArrayLike = 0.0, sigma: ArrayLike = 1.0) -> None:
        super().__init__(norm, (mu, sigma))

    @property
    def mu(self) -> Any:
        """The mean."""
        return self.parameters[0]

    @property
    def sigma(self) -> Any:
        """The standard deviation."""
        return self.parameters[1]


@register_pytree_node_class
class UniformVariable(FamilyVariable):
    """A uniform variable between a and b: `Uniform(a=, b=)`.

    >>> from functrans.scipy import stats
    >>> float(stats.Uniform(a=1.0, b=3.0).mean())
    2.0
    """

    def __init__(self, *, a: ArrayLike, b: ArrayLike) -> None:
        super().__init__(uniform, (a, jnp.asarray(b) - jnp.asarray(a)))


@register_pytree_node_class
class LogisticVariable(FamilyVariable):
    """The standard logistic variable: `Logistic()`.

    >>> from functrans.scipy import stats
    >>> float(stats.Logistic().cdf(0.0))
    0.5
    """

    def __init__(self) -> None:
        super().__init__(logistic, (0.0, 1.0))


@register_pytree_node_class
class BinomialVariable(FamilyVariable):
    """Successes in n trials of probability p: `Binomial(n=, p=)`.

    >>> from functrans.scipy import stats
    >>> float(stats.Binomial(n=4, p=0.5).mean())
    2.0
    """

    def __init__(self, *, n: ArrayLike, p: ArrayLike) -> None:
        super().__init__(binom, (n, p, 0.0))


def make_distribution(dist: DistributionLike) -> type[FamilyVariable]:
    """The class of variables of a family, whose parameters are its shapes by name.

    `dist` is a family of this module, or an instance of a subclass of `rv_continuous` or
    `rv_discrete`. Raises ArgumentError for others.

    >>> from functrans.scipy import stats
    >>> Gamma = stats.make_distribution(stats.gamma)
    >>> round(float(Gamma(a=2.0).mean()), 4)
    2.0
    """
    family: Any = dist._family() if isinstance(dist, (rv_continuous, rv_discrete)) else dist
    if not isinstance(family, Distribution):
        raise ArgumentError(f"scipy.stats.make_distribution: {dist!r} is no family.",
                            where=user_source(), why="it is one such as scipy.stats.gamma.")
    names = family.shapes

    class DerivedVariable(FamilyVariable):
        __doc__ = f"A variable of the family {family.name}."

        def __init__(self, **parameters: ArrayLike) -> None:
            if set(parameters) != set(names):
                raise ArgumentError(
                    f"{family.name}: parameters {sorted(parameters)}.", where=user_source(),
                    why="they are " + (", ".join(names) or "none") + ", by name.")
            ends = (0.0, 1.0) if family.has_scale else (0.0,)
            super().__init__(family, (*(parameters[n] for n in names), *ends))

    name = family.name.rpartition(".")[2].capitalize()
    DerivedVariable.__name__ = DerivedVariable.__qualname__ = name
    return register_pytree_node_class(DerivedVariable)


publish(globals(), ("make_distribution",))
