"""Random numbers from explicit keys: the same under jit, vmap and on any device.

Keys are of threefry-2x32 or, with `impl="philox"`, of philox-4x32, which is faster on GPUs. With
those of threefry numbers equal those of jax.random for the same key (partitionable layout): bits,
integers, uniform numbers, permutations and choices to the last bit; samples made with a logarithm
or another transcendental function up to its rounding.
"""

from functrans.core.composed import ComposedPrimitive
from functrans.core.errors import publish
from functrans.random.binomial import binomial, multinomial
from functrans.random.composed import (
    ball,
    double_sided_maxwell,
    f,
    generalized_normal,
    lognormal,
    maxwell,
    orthogonal,
    triangular,
    wald,
)
from functrans.random.continuous import (
    bits,
    cauchy,
    exponential,
    gumbel,
    laplace,
    logistic,
    multivariate_normal,
    normal,
    pareto,
    rayleigh,
    truncated_normal,
    uniform,
    weibull_min,
)
from functrans.random.discrete import (
    bernoulli,
    categorical,
    choice,
    geometric,
    permutation,
    rademacher,
    randint,
)
from functrans.random.gamma import beta, chisquare, dirichlet, gamma, loggamma, poisson, t
from functrans.random.keys import (
    PRNGKey,
    clone,
    fold_in,
    key,
    key_data,
    key_dtype,
    key_impl,
    split,
    wrap_key_data,
)

random_gamma_p = ComposedPrimitive("random_gamma", lambda key, a, *, log_space=False: (
    loggamma if log_space else gamma)(key, a, dtype=a.dtype))

__all__ = [
    "PRNGKey",
    "ball",
    "bernoulli",
    "beta",
    "binomial",
    "bits",
    "categorical",
    "cauchy",
    "chisquare",
    "choice",
    "clone",
    "dirichlet",
    "double_sided_maxwell",
    "exponential",
    "f",
    "fold_in",
    "gamma",
    "generalized_normal",
    "geometric",
    "gumbel",
    "key",
    "key_data",
    "key_dtype",
    "key_impl",
    "laplace",
    "loggamma",
    "logistic",
    "lognormal",
    "maxwell",
    "multinomial",
    "multivariate_normal",
    "normal",
    "orthogonal",
    "pareto",
    "permutation",
    "poisson",
    "rademacher",
    "randint",
    "random_gamma_p",
    "rayleigh",
    "split",
    "t",
    "triangular",
    "truncated_normal",
    "uniform",
    "wald",
    "weibull_min",
    "wrap_key_data",
]

publish(globals(), __all__)
