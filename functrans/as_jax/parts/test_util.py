"""`jax.test_util`: derivatives beside finite differences, with JAX's step.

Steps of 1e-4 are what tests of libraries are written for: they have functions whose third
derivative is large.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from functrans import test_util

__all__ = ["check_grads", "check_jvp", "check_vjp"]

EPS: Final = 1e-4


def check_grads(f: Callable[..., Any], args: Sequence[Any], order: int,
                modes: Sequence[str] = ("fwd", "rev"), atol: float | None = None,
                rtol: float | None = None, eps: float | None = None) -> None:
    """Raise AssertionError where derivatives up to an order are not the finite differences."""
    test_util.check_grads(f, args, order, modes, atol, rtol, EPS if eps is None else eps)


def check_jvp(f: Callable[..., Any], f_jvp: Callable[..., Any], args: Sequence[Any],
              atol: float | None = None, rtol: float | None = None,
              eps: float | None = None, err_msg: str = "") -> None:
    """The same for `f_jvp(primals, tangents)`, which gives results and their tangents."""
    test_util.check_jvp(f, args, atol, rtol, EPS if eps is None else eps,
                        rule=lambda primals, tangents: f_jvp(primals, tangents)[1])


def check_vjp(f: Callable[..., Any], f_vjp: Callable[..., Any], args: Sequence[Any],
              atol: float | None = None, rtol: float | None = None,
              eps: float | None = None, err_msg: str = "") -> None:
    """The same for `f_vjp(*args)`, which gives results and a function of cotangents."""
    test_util.check_vjp(f, args, atol, rtol, EPS if eps is None else eps, rule=f_vjp)
