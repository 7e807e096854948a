"""The algorithms that jax.lax.linalg lets a caller choose from.

Each backend has one for each factorization, so that a choice is a hint that changes no result.
"""

from __future__ import annotations

from enum import Enum

from functrans.core.errors import ArgumentError
from functrans.core.source import user_source

__all__ = ["EigImplementation", "EighImplementation", "SvdAlgorithm", "check_hint"]


class EigImplementation(Enum):
    """Libraries for eigenvalues of general matrices.

    >>> ft.lax.linalg.EigImplementation("lapack")
    <EigImplementation.LAPACK: 'lapack'>
    """

    CUSOLVER = "cusolver"
    MAGMA = "magma"
    LAPACK = "lapack"


class EighImplementation(Enum):
    """Algorithms for eigenvalues of Hermitian matrices.

    >>> jacobi = ft.lax.linalg.EighImplementation.JACOBI
    >>> vectors, values = ft.lax.linalg.eigh(jnp.diag(jnp.array([2.0, 1.0])), implementation=jacobi)
    >>> values
    Array([1., 2.], dtype=float32)
    """

    QR = "qr"
    JACOBI = "jacobi"
    QDWH = "qdwh"


class SvdAlgorithm(Enum):
    """Algorithms for singular values.

    >>> jacobi = ft.lax.linalg.SvdAlgorithm.JACOBI
    >>> ft.lax.linalg.svd(jnp.diag(jnp.array([1.0, 3.0])), compute_uv=False, algorithm=jacobi)
    Array([3., 1.], dtype=float32)
    """

    DEFAULT = "default"
    QR = "QR"
    JACOBI = "Jacobi"
    POLAR = "polar"
    DIVIDE_AND_CONQUER = "divide_and_conquer"


def check_hint(name: str, hint: object, kind: type[Enum]) -> None:
    """Raise unless a hint is None or one of its kind."""
    if hint is not None and not isinstance(hint, kind):
        raise ArgumentError(f"{name}: {hint!r} is no {kind.__name__}.", where=user_source(),
                            fix=f"ft.lax.linalg.{kind.__name__}.{next(iter(kind)).name}, or None")
