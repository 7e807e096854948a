"""Generators of random numbers of any distribution, with the names of scipy.stats.sampling.

`NumericalInversePolynomial(dist, random_state=0).rvs(3)`: the set-up is on the host, from the
methods of `dist`; a generator is a tree of tables, whose methods run in `jit` and `vmap`.
`random_state` is a key or the int of one, 0 by default, and the same gives the same numbers.
"""

from functrans.core.errors import explain_missing_names
from functrans.scipy.stats.discrete_tables import DiscreteAliasUrn, DiscreteGuideTable
from functrans.scipy.stats.fast_inversion import FastGeneratorInversion
from functrans.scipy.stats.generators import UNURANError
from functrans.scipy.stats.hats import (
    RatioUniforms,
    SimpleRatioUniforms,
    TransformedDensityRejection,
)
from functrans.scipy.stats.inversions import NumericalInverseHermite, NumericalInversePolynomial

__all__ = [
    "DiscreteAliasUrn",
    "DiscreteGuideTable",
    "FastGeneratorInversion",
    "NumericalInverseHermite",
    "NumericalInversePolynomial",
    "RatioUniforms",
    "SimpleRatioUniforms",
    "TransformedDensityRejection",
    "UNURANError",
]

explain_missing_names(globals())
