"""Quasi-Monte Carlo: points that fill the unit cube evenly, with the names of scipy.stats.qmc.

`Sobol(3, rng=key).random(256)`: `rng` is a key or the int of one, and the same gives the same
points. Without scrambling sequences are those of SciPy, digit by digit in float64.
"""

from functrans.core.errors import explain_missing_names
from functrans.scipy.stats.qmc.discrepancies import (
    discrepancy,
    geometric_discrepancy,
    scale,
    update_discrepancy,
)
from functrans.scipy.stats.qmc.engines import LatinHypercube, QMCEngine
from functrans.scipy.stats.qmc.samplers import MultinomialQMC, MultivariateNormalQMC, PoissonDisk
from functrans.scipy.stats.qmc.sequences import Halton, Sobol

__all__ = [
    "Halton",
    "LatinHypercube",
    "MultinomialQMC",
    "MultivariateNormalQMC",
    "PoissonDisk",
    "QMCEngine",
    "Sobol",
    "discrepancy",
    "geometric_discrepancy",
    "scale",
    "update_discrepancy",
]

explain_missing_names(globals())
