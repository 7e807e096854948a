"""`jax.make_jaxpr`, whose programs have scalar arrays as constants.

Libraries compare the programs of two functions, of which one closes over a known scalar and the
other over a traced one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from functrans.transforms.staged import jaxpr_maker

__all__ = ["make_jaxpr"]


def make_jaxpr(fun: Callable[..., Any], static_argnums: int | Sequence[int] = (),
               axis_env: Sequence[tuple[Any, int]] | None = None, *,
               return_shape: bool = False) -> Callable[..., Any]:
    """`functrans.make_jaxpr`; scalar arrays that `fun` closes over are constants."""
    return jaxpr_maker(fun, static_argnums, axis_env, return_shape, keeps_arrays=True)
