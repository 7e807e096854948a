"""`out_sharding`, which functions of JAX take that make arrays: how the result lies on a mesh."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from functrans import lax
from functrans.core.mesh import PartitionSpec
from functrans.core.sharding import NamedSharding
from functrans.sharding import reshard

__all__ = ["LAX", "NUMPY", "RANDOM", "placed", "placed_einsum"]


def placed(fun: Callable[..., Any]) -> Callable[..., Any]:
    """The function with an argument `out_sharding`; of a type's sharding, which names no axis, and
    of one device nothing follows."""
    @functools.wraps(fun)
    def there(*args: Any, out_sharding: Any = None, **kwargs: Any) -> Any:
        out = fun(*args, **kwargs)
        if isinstance(out_sharding, (NamedSharding, PartitionSpec)):
            return reshard(out, out_sharding)
        return out

    return there


def placed_einsum(einsum: Callable[..., Any]) -> Callable[..., Any]:
    """The same of einsum, which takes a function that contracts pairs as well: the `dot_general`
    that takes `out_sharding` is the one that it has."""
    @functools.wraps(einsum)
    def there(*args: Any, _dot_general: Any = None, **kwargs: Any) -> Any:
        own = inspect.unwrap(_dot_general) if _dot_general is not None else lax.dot_general
        return einsum(*args, _dot_general=own if own is lax.dot_general else _dot_general, **kwargs)

    return placed(there)


def _all(names: str) -> Mapping[str, str]:
    return MappingProxyType(dict.fromkeys(names.split(), f"{__name__}:placed"))


NUMPY: Final = MappingProxyType({
    **_all("arange array asarray bincount broadcast_to dot empty full full_like matmul ones "
           "ones_like percentile ravel repeat reshape tensordot zeros zeros_like"),
    "einsum": f"{__name__}:placed_einsum"})
LAX: Final = _all("broadcast broadcast_in_dim broadcasted_iota conv_general_dilated dot "
                  "dot_general empty ragged_dot ragged_dot_general reduce reduce_sum reshape "
                  "rng_bit_generator")
RANDOM: Final = _all("ball bernoulli beta bits categorical cauchy chisquare dirichlet exponential "
                     "f gamma generalized_normal geometric gumbel laplace loggamma logistic "
                     "lognormal maxwell multivariate_normal normal orthogonal pareto permutation "
                     "poisson rademacher randint rayleigh t triangular truncated_normal uniform "
                     "wald")
"""The functions of JAX 0.10 that take it, by module, and what gives them the argument."""
