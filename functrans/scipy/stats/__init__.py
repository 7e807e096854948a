"""Densities and distribution functions of random variables, with the names of scipy.stats.

Arguments broadcast; `loc` moves and `scale` stretches a distribution. Outside its support the
density of a distribution is 0 and its logarithm -inf.
"""

from functrans.core.errors import explain_missing_names
from functrans.scipy.stats import (
    bernoulli,
    beta,
    cauchy,
    chi2,
    expon,
    gamma,
    laplace,
    logistic,
    multivariate_normal,
    norm,
    poisson,
    t,
    uniform,
)

__all__ = ["bernoulli", "beta", "cauchy", "chi2", "expon", "gamma", "laplace", "logistic",
           "multivariate_normal", "norm", "poisson", "t", "uniform"]

explain_missing_names(globals())
