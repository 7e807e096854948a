"""Functions of arrays: jax.numpy, jax.lax, jax.random, jax.nn, jax.scipy and their kin."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from functrans.as_jax.parts import placed
from functrans.as_jax.table import ModuleEntry

__all__ = ["MODULES"]

_SAME: Final = (
    "image", "nn", "nn.initializers", "numpy.fft", "numpy.linalg", "ops",
    "scipy", "scipy.cluster", "scipy.cluster.vq", "scipy.fft", "scipy.integrate",
    "scipy.interpolate", "scipy.linalg", "scipy.ndimage", "scipy.optimize", "scipy.signal",
    "scipy.sparse", "scipy.sparse.linalg", "scipy.spatial", "scipy.spatial.transform",
    "scipy.special", "scipy.stats",
    *(f"scipy.stats.{name}" for name in (
        "bernoulli", "beta", "betabinom", "binom", "cauchy", "chi2", "dirichlet", "expon", "gamma",
        "gennorm", "geom", "gumbel_l", "gumbel_r", "laplace", "logistic", "multinomial",
        "multivariate_normal", "nbinom", "norm", "pareto", "poisson", "t", "truncnorm", "uniform",
        "vonmises", "wrapcauchy")),
)
"""Modules that have JAX's names under JAX's names."""

MODULES: Final[Mapping[str, ModuleEntry]] = MappingProxyType({
    **{f"jax.{name}": ModuleEntry((f"functrans.{name}",)) for name in _SAME},
    "jax.numpy": ModuleEntry(("functrans.numpy",), wraps=placed.NUMPY),
    "jax.lax": ModuleEntry(("functrans.lax",), wraps=placed.LAX),
    "jax.lax.linalg": ModuleEntry(("functrans.lax.linalg",)),
    "jax.random": ModuleEntry(("functrans.random",), wraps=placed.RANDOM),
})
