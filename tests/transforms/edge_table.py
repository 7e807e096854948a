"""Functions at ties and edges, by name: of a module, which is JAX or functrans, and a point.

What a derivative is there is a convention. `python -m tests.transforms.write_edges` stores JAX's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

TIES = np.array([1.0, 3.0, 3.0, -2.0, 3.0, -2.0])
ZEROS = np.zeros(3)
PAIR = np.array([[1.0, 2.0, 2.0], [2.0, 1.0, 2.0]])
INF = np.inf
SEGMENTS = np.array([0, 0, 0, 1, 1, 1])

Case = tuple[Callable[[Any, Any], Any], Any]
CASES: dict[str, Case] = {
    # ties
    "max": (lambda j, x: j.numpy.max(x) ** 2, TIES),
    "min": (lambda j, x: j.numpy.min(x) ** 2, TIES),
    "max axis": (lambda j, x: j.numpy.max(x**2, axis=1), PAIR),
    "amax where": (lambda j, x: j.numpy.max(x**2, where=x < 3, initial=1.0), TIES),
    "ptp": (lambda j, x: j.numpy.ptp(x) ** 2, TIES),
    "sort": (lambda j, x: j.numpy.sort(x) ** 2, TIES),
    "sort descending": (lambda j, x: j.numpy.sort(x**2, descending=True), TIES),
    "median": (lambda j, x: j.numpy.median(x) ** 2, TIES),
    "median odd": (lambda j, x: j.numpy.median(x[:5]) ** 2, TIES),
    "quantile": (lambda j, x: j.numpy.quantile(x, np.array([0.0, 0.4, 1.0])) ** 2, TIES),
    "top_k": (lambda j, x: j.lax.top_k(x, 4)[0] ** 2, TIES),
    "cummax": (lambda j, x: j.lax.cummax(x) ** 2, TIES),
    "cummin": (lambda j, x: j.lax.cummin(x) ** 2, TIES),
    "cumlogsumexp": (lambda j, x: j.lax.cumlogsumexp(x), TIES),
    "maximum": (lambda j, x: j.numpy.maximum(x**2, x[::-1] ** 2), np.array([2.0, 1.0, -2.0])),
    "maximum number": (lambda j, x: j.numpy.maximum(x, 3.0) ** 2, TIES),
    "minimum": (lambda j, x: j.numpy.minimum(x * x, 9.0), TIES),
    "fmax": (lambda j, x: j.numpy.fmax(x, 3.0) ** 2, TIES),
    "lax max": (lambda j, x: j.lax.max(x, j.numpy.full_like(x, 3.0)) ** 2, TIES),
    "clip": (lambda j, x: j.numpy.clip(x, -2.0, 3.0) ** 2, TIES),
    "clip bounds": (lambda j, x: j.numpy.clip(0.0, x[0], x[1]), ZEROS),
    "clamp": (lambda j, x: j.lax.clamp(-2.0, x, 3.0) ** 2, TIES),
    "segment_max": (lambda j, x: j.ops.segment_max(x, SEGMENTS, 2) ** 2, TIES),
    "segment_min": (lambda j, x: j.ops.segment_min(x, SEGMENTS, 2) ** 2, TIES),
    "at max": (lambda j, x: j.numpy.zeros(2).at[SEGMENTS].max(x) ** 2, TIES),
    "at min": (lambda j, x: j.numpy.zeros(2).at[SEGMENTS].min(x) ** 2, TIES),
    "max pool": (lambda j, x: j.lax.reduce_window(x, -INF, j.lax.max, (3,), (1,), "VALID") ** 2,
                 TIES),
    "prod": (lambda j, x: j.numpy.prod(x), np.array([0.0, 2.0, 0.0, 3.0])),
    "cumprod": (lambda j, x: j.numpy.cumprod(x), np.array([2.0, 0.0, 3.0, 0.0])),
    # kinks
    "abs": (lambda j, x: j.numpy.abs(x) * (x + 1), np.array([0.0, -0.0, 1.0])),
    "abs squared": (lambda j, x: j.numpy.abs(x) ** 2, ZEROS),
    "sign": (lambda j, x: j.numpy.sign(x) * x, np.array([0.0, 2.0])),
    "copysign": (lambda j, x: j.numpy.copysign(x, -1.0), np.array([0.0, 2.0])),
    "relu": (lambda j, x: j.nn.relu(x) * (x + 1), np.array([0.0, -1.0, 1.0])),
    "leaky_relu": (lambda j, x: j.nn.leaky_relu(x), np.array([0.0, -1.0, 1.0])),
    "elu": (lambda j, x: j.nn.elu(x), np.array([0.0, -1.0, 1.0])),
    "hard_tanh": (lambda j, x: j.nn.hard_tanh(x), np.array([-1.0, 0.0, 1.0])),
    "relu6": (lambda j, x: j.nn.relu6(x), np.array([0.0, 3.0, 6.0])),
    "softplus": (lambda j, x: j.nn.softplus(x), np.array([0.0, -800.0, 800.0])),
    "floor": (lambda j, x: j.numpy.floor(x) * x, np.array([1.0, 1.5])),
    "mod": (lambda j, x: j.numpy.mod(x, 1.5), np.array([3.0, 1.0, -1.5])),
    "where": (lambda j, x: j.numpy.where(x > 0, x**2, -x), np.array([0.0, 1.0])),
    "where sqrt": (lambda j, x: j.numpy.where(x > 0, j.numpy.sqrt(x), 0.0), np.array([0.0, 4.0])),
    "heaviside": (lambda j, x: j.numpy.heaviside(x, 0.5) * x, np.array([0.0, 2.0])),
    "interp": (lambda j, x: j.numpy.interp(x, np.array([0.0, 1.0, 2.0]), np.array([0.0, 5.0, 4.0])),
               np.array([1.0, 0.0, 2.0, 0.5])),
    # singularities
    "sqrt": (lambda j, x: j.numpy.sqrt(x), np.array([0.0, 4.0])),
    "cbrt": (lambda j, x: j.numpy.cbrt(x), np.array([0.0, 8.0])),
    "hypot": (lambda j, x: j.numpy.hypot(x[0], x[1]), np.array([0.0, 0.0])),
    "arctan2": (lambda j, x: j.numpy.arctan2(x[0], x[1]), np.array([0.0, 0.0])),
    "arctan2 axis": (lambda j, x: j.numpy.arctan2(x[0], x[1]), np.array([0.0, -1.0])),
    "norm": (lambda j, x: j.numpy.linalg.norm(x), ZEROS),
    "norm 1": (lambda j, x: j.numpy.linalg.norm(x, ord=1), np.array([0.0, 2.0, -1.0])),
    "norm 2": (lambda j, x: j.numpy.linalg.norm(x, ord=2), ZEROS),
    "norm 3": (lambda j, x: j.numpy.linalg.norm(x, ord=3), np.array([0.0, 2.0, -1.0])),
    "norm inf": (lambda j, x: j.numpy.linalg.norm(x, ord=INF) ** 2, np.array([2.0, -2.0, 1.0])),
    "norm fro": (lambda j, x: j.numpy.linalg.norm(x), np.zeros((2, 2))),
    "norm axis": (lambda j, x: j.numpy.linalg.norm(x, axis=1), np.array([[0.0, 0.0], [3.0, 4.0]])),
    "std": (lambda j, x: j.numpy.std(x), np.ones(3)),
    "var": (lambda j, x: j.numpy.var(x), np.ones(3)),
    "power 0": (lambda j, x: x**0, np.array([0.0, 2.0])),
    "power 1": (lambda j, x: x**1, np.array([0.0, 2.0])),
    "power 2": (lambda j, x: x**2, np.array([0.0, 2.0])),
    "power 3.0": (lambda j, x: j.numpy.power(x, 3.0), np.array([0.0, 2.0, -1.0])),
    "power 0.0": (lambda j, x: j.numpy.power(x, 0.0), np.array([0.0, 2.0, -1.0])),
    "power 1.5": (lambda j, x: j.numpy.power(x, 1.5), np.array([0.0, 4.0])),
    "power 2.5": (lambda j, x: j.numpy.power(x, 2.5), np.array([0.0, 4.0])),
    "0 to a power": (lambda j, x: j.numpy.power(0.0, x), np.array([0.0, 1.0, 2.0])),
    "power both": (lambda j, x: j.numpy.power(x[:3], x[3:]),
                   np.array([0.0, 0.0, 2.0, 0.0, 2.0, 0.0])),
    "x log x": (lambda j, x: j.scipy.special.xlogy(x, x), np.array([0.0, 2.0])),
    "xlogy zero": (lambda j, x: j.scipy.special.xlogy(0.0, x), np.array([0.0, 2.0])),
    "entr": (lambda j, x: j.scipy.special.entr(x), np.array([0.0, 2.0])),
    "log": (lambda j, x: j.numpy.log(x), np.array([0.0, 2.0])),
    "reciprocal": (lambda j, x: 1.0 / x, np.array([0.0, 2.0])),
    "sinc": (lambda j, x: j.numpy.sinc(x), np.array([0.0, 1.0])),
    "arccos": (lambda j, x: j.numpy.arccos(x), np.array([1.0, 0.0])),
    "arctanh": (lambda j, x: j.numpy.arctanh(x), np.array([1.0, 0.0])),
    "logsumexp": (lambda j, x: j.scipy.special.logsumexp(x), np.array([-INF, -INF, -INF])),
    "logsumexp some": (lambda j, x: j.scipy.special.logsumexp(x), np.array([-INF, 1.0, 1.0])),
    "logsumexp inf": (lambda j, x: j.scipy.special.logsumexp(x), np.array([INF, 1.0])),
    "logaddexp": (lambda j, x: j.numpy.logaddexp(x[:2], x[2:]), np.array([-INF, 1.0, -INF, 1.0])),
    "logaddexp2": (lambda j, x: j.numpy.logaddexp2(x[:2], x[2:]), np.array([2.0, 1.0, -INF, 1.0])),
    "clamp vector": (lambda j, x: j.lax.clamp(x[:2], x[2:4], x[4:]) ** 2,
                     np.array([1.0, 2.0, 1.0, 5.0, 3.0, 5.0])),
    "softmax": (lambda j, x: j.nn.softmax(x), np.array([-INF, 1.0, 1.0])),
    "log_softmax": (lambda j, x: j.nn.log_softmax(x), np.array([-INF, 1.0, 1.0])),
    "standardize": (lambda j, x: j.nn.standardize(x), np.ones(3)),
    "det": (lambda j, x: j.numpy.linalg.det(x), np.array([[1.0, 2.0], [2.0, 4.0]])),
    "slogdet": (lambda j, x: j.numpy.linalg.slogdet(x)[1], np.array([[1.0, 2.0], [0.0, 4.0]])),
    "log1p": (lambda j, x: j.numpy.log1p(x), np.array([0.0, -1.0])),
    "erf_inv": (lambda j, x: j.lax.erf_inv(x), np.array([0.0, 1.0])),
    "i0": (lambda j, x: j.numpy.i0(x), np.array([0.0, 1.0])),
    "lgamma": (lambda j, x: j.lax.lgamma(x), np.array([1.0, 2.0])),
    "digamma": (lambda j, x: j.lax.digamma(x), np.array([1.0, 2.0])),
    "atan2 zero x": (lambda j, x: j.numpy.arctan2(x, 0.0), np.array([1.0, -1.0])),
    "gelu": (lambda j, x: j.nn.gelu(x), np.array([0.0, -40.0, 40.0])),
    "silu": (lambda j, x: j.nn.silu(x), np.array([0.0, -800.0, 800.0])),
    "mish": (lambda j, x: j.nn.mish(x), np.array([0.0, -50.0, 50.0])),
    "celu": (lambda j, x: j.nn.celu(x), np.array([0.0, -1.0])),
    "selu": (lambda j, x: j.nn.selu(x), np.array([0.0, -1.0])),
    "logit": (lambda j, x: j.scipy.special.logit(x), np.array([0.5, 1.0])),
    "nan_to_num": (lambda j, x: j.numpy.nan_to_num(x) * x, np.array([0.0, np.nan, 2.0])),
    "nanmax": (lambda j, x: j.numpy.nanmax(x) ** 2, np.array([np.nan, 2.0, 2.0])),
    "round": (lambda j, x: j.numpy.round(x) * x, np.array([0.5, 1.0])),
    "angle": (lambda j, x: j.numpy.angle(x + 0j), np.array([1.0, -1.0])),
    "abs complex": (lambda j, x: j.numpy.abs(x[0] + 1j * x[1]), np.array([0.0, 0.0])),
}


def derivatives(j: Any, name: str) -> dict[str, Any]:
    """The value, first derivatives in both modes and the second ones, in float64."""
    fun, point = CASES[name]

    def at(x: Any) -> Any:
        return fun(j, x)

    x = j.numpy.asarray(point)
    return {"value": at(x), "forward": j.jacfwd(at)(x), "reverse": j.jacrev(at)(x),
            "second": j.jacfwd(j.jacrev(at))(x)}
