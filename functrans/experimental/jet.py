"""Taylor mode, as in `jax.experimental.jet`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from functrans.core.avals import get_aval
from functrans.core.errors import ArgumentError, publish
from functrans.transforms.flat import FlatFunction, check_callable, flatten_args
from functrans.transforms.forward import check_tangents, public_tangent
from functrans.transforms.jet import JetTrace, JetTracer, jet_flat
from functrans.transforms.tangents import is_differentiable
from functrans.tree import flatten, structure, unflatten

__all__ = ["JetTrace", "JetTracer", "fact", "jet"]


def fact(n: int) -> float:
    """The factorial of a whole number, which the derivatives of an order are over in a series.

    >>> fact(4)
    24.0
    """
    return float(math.factorial(n))


def jet(fun: Callable[..., Any], primals: Sequence[Any],
        series: Sequence[Sequence[Any]]) -> tuple[Any, Any]:
    """The value of `fun` and its derivatives of orders 1 to k along a curve, in one pass.

    `series[i]` has the derivatives of orders 1 to k of `primals[i]` along the curve, each of its
    structure, shapes and dtypes. Returns (out, terms), where `terms` has a list of k derivatives
    for each leaf of `out`. Raises ArgumentError where the numbers of arguments or orders differ.
    Source: Griewank and Walther, Evaluating Derivatives (2008), chapter 13.

    >>> import functrans as ft
    >>> from functrans.experimental.jet import jet
    >>> value, terms = jet(ft.numpy.sin, (0.0,), ((1.0, 0.0, 0.0),))
    >>> [float(t) for t in terms]      # sin', sin'', sin''' at 0
    [1.0, 0.0, -1.0]
    """
    check_callable(fun, "jet")
    if len(primals) != len(series):
        raise ArgumentError(f"jet got {len(primals)} primals and {len(series)} series.",
                            fix="a sequence of derivatives for each argument")
    orders = sorted({len(terms) for terms in series})
    if len(orders) > 1:
        raise ArgumentError(f"jet got series of {' and '.join(map(str, orders))} derivatives.",
                            fix="as many for each argument; zeros for those that are constant")
    order = orders[0] if orders else 0
    leaves, tree = flatten_args(tuple(primals), "jet")
    columns: list[list[Any]] = []
    for k in range(order):
        given, given_tree = flatten(tuple([terms[k] for terms in series]))
        what = f"jet: the derivative of order {k + 1}"
        if given_tree != tree:
            raise ArgumentError(f"{what} has another structure than the primals.",
                                fix="the same containers, in the same order")
        columns.append([check_tangents([p], [g], structure(p), what)[0]
                        if is_differentiable(get_aval(p)) else None
                        for p, g in zip(leaves, given, strict=True)])
    inputs = [[column[i] for column in columns] if is_differentiable(get_aval(p)) else None
              for i, p in enumerate(leaves)]
    function = FlatFunction(fun, tree, {}, "jet")
    outs, terms = jet_flat(function, leaves, inputs)
    filled = [[public_tangent(None, o) for _ in range(order)] if t is None else t
              for o, t in zip(outs, terms, strict=True)]
    return unflatten(function.out_tree, outs), unflatten(function.out_tree, filled)


publish(globals(), __all__)
