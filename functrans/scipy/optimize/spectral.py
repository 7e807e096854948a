"""Roots by spectral residuals: steps along the function itself, without any Jacobian."""

from __future__ import annotations

import math
from typing import Any

from functrans import lax
from functrans import numpy as jnp
from functrans.core.dtypes import finfo
from functrans.scipy.arguments import known_size
from functrans.scipy.optimize.implicit import Function, option, solution, start_of
from functrans.scipy.optimize.results import RootResults
from functrans.scipy.products import vdot
from functrans.typing import Array, ArrayLike

_STEEP, _LEAST, _MOST = 1e-4, 0.1, 0.5


def spectral_root(fun: Function, x0: ArrayLike, tol: float | None, options: dict[str, Any]
                  ) -> RootResults:
    """A root by the method of La Cruz, Martinez and Raydan, Math. Comp. 75 (2006)."""
    known = option("root", options, {"ftol": 1e-8, "fatol": 1e-300, "maxfev": 1000, "M": 10,
                                     "sigma_eps": 1e-10, "sigma_0": 1.0, "fnorm": None,
                                     "line_search": "cruz", "eta_strategy": None})
    if tol is not None:
        known["fatol"], known["ftol"] = tol, 0.0
    memory = known_size("optimize.root", "M", known["M"])
    start = start_of("root", "x0", x0)
    shape = start.shape
    eps, most = known["sigma_eps"], known["maxfev"]

    def value(z: Array) -> Array:
        return jnp.asarray(fun(z.reshape(shape))).reshape(-1).astype(start.dtype)

    def search(x: Array) -> tuple[Array, Any]:
        f = value(x)
        first = vdot(f, f)
        size = jnp.sqrt(first)
        goal = known["fatol"] + jnp.maximum(known["ftol"], 4 * float(finfo(x.dtype).eps)) * size

        def unfinished(s: Any) -> Any:
            _, f, _, _, calls, _, failed = s
            return (jnp.linalg.norm(f) > goal) & (calls < most) & ~failed

        def improve(s: Any) -> Any:
            x, f, sigma, history, calls, nit, _ = s
            now = vdot(f, f)
            bounded = (jnp.abs(sigma) >= eps) & (jnp.abs(sigma) <= 1 / eps)
            root = jnp.sqrt(now)
            sigma = jnp.where(bounded, sigma, jnp.where(root > 1, 1, jnp.where(
                root < 1e-5, 1e5, 1 / jnp.where(root > 0, root, 1))))
            d = -sigma * f
            slack = first / (1 + nit) ** 2
            allowed = jnp.max(history) + slack

            def low(a: Array, f: Array) -> Any:
                return vdot(f, f) <= allowed - _STEEP * a**2 * now

            def seeking(t: Any) -> Any:
                _, _, done, *_, count = t
                return ~done & (calls + count < most)

            def shorter(t: Any) -> Any:
                up, down, *_, count = t
                f_up, f_down = value(x + up * d), value(x - down * d)
                good_up, good_down = low(up, f_up), low(down, f_down)

                def part(a: Array, f: Array) -> Array:
                    fall = a**2 * now / (vdot(f, f) + (2 * a - 1) * now)
                    found: Array = jnp.clip(jnp.where(jnp.isnan(fall), _LEAST * a, fall),
                                            _LEAST * a, _MOST * a)
                    return found

                point = jnp.where(good_up, x + up * d, x - down * d)
                return (part(up, f_up), part(down, f_down), good_up | good_down, point,
                        jnp.where(good_up, f_up, f_down), count + 1 + ~good_up)

            one = jnp.ones((), x.dtype)
            _, _, done, point, after, count = lax.while_loop(
                seeking, shorter, (one, one, jnp.array(False), x, f, jnp.array(0)))
            step, change = point - x, after - f
            below = vdot(step, change)
            sigma = jnp.where(below == 0, math.inf, vdot(step, step) / jnp.where(
                below == 0, 1, below))
            history = history.at[(nit + 1) % memory].set(vdot(after, after))
            return (jnp.where(done, point, x), jnp.where(done, after, f), sigma, history,
                    calls + count, nit + 1, ~done)

        begin = (x, f, jnp.full((), known["sigma_0"], x.dtype), jnp.full(memory, -math.inf, x.dtype)
                 .at[0].set(first), jnp.array(1), jnp.array(0), jnp.array(False))
        x, f, _, _, calls, nit, _ = lax.while_loop(unfinished, improve, begin)
        return x, (jnp.linalg.norm(f) <= goal, calls, nit)

    at, (success, calls, nit) = solution(value, start.reshape(-1), search)
    return RootResults(at.reshape(shape), success, jnp.where(success, 1, 2),
                       value(at).reshape(shape), calls, nit)
