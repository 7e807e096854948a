"""Products in all digits of their dtype, where GPUs take TensorFloat-32 unless they are told.

The functions of users keep the precision that their scope says.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from functrans import numpy as jnp
from functrans.core.config import matmul_precision
from functrans.typing import Array

P = ParamSpec("P")
R = TypeVar("R")


def matmul(x: Array, y: Array) -> Array:
    """The product of matrices and vectors."""
    return jnp.matmul(x, y, precision="highest")


def vdot(x: Array, y: Array) -> Array:
    """The sum of products of two vectors."""
    return jnp.vdot(x, y, precision="highest")


def pinv(x: Array, hermitian: bool = False) -> Array:
    """The pseudo-inverse of a matrix."""
    with matmul_precision("highest"):
        return jnp.linalg.pinv(x, hermitian=hermitian)


def lstsq(x: Array, y: Array) -> Array:
    """The least squares of a system."""
    with matmul_precision("highest"):
        return jnp.linalg.lstsq(x, y)[0]


def precise(fun: Callable[P, R]) -> Callable[P, R]:
    """A function that takes none of a user, with all its products so."""
    @wraps(fun)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        with matmul_precision("highest"):
            return fun(*args, **kwargs)

    return call
