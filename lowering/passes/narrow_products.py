"""Products of few rows with matrices of 8-bit weights, which the library converts as it reads them.

`x @ w.astype("float32")` as one operation: in memory the converted weights are four times as large.
Of 4 rows with 4,096 x 4,096 int8 weights the conversion took 6 times as long as the product.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from functrans.core import dtypes
from functrans.core.avals import ShapedArray
from functrans.core.jaxpr import Atom, Equation, Jaxpr, Var
from functrans.core.primitive import Cost, Primitive
from functrans.lowering.passes.rewrite import inlined, with_bodies
from functrans.primitives.convert import (
    bitcast_convert_type,
    convert_element_type,
    convert_element_type_p,
)
from functrans.primitives.dot import dot_general_p

__all__ = ["FORMATS", "MOST_ROWS", "narrow_product_p", "with_narrow_products"]

FORMATS: Final = {"int8": 0, "float8_e4m3fn": 1, "float8_e5m2": 2}
"""How csrc/lib_narrow.cpp names dtypes."""

MOST_ROWS: Final = 32
"""Rows up to which weights are converted again for each few of them: of 64 rows with 4,096 x 4,096
it takes 25 ms of one core, a conversion and a product 21; of 16 rows 7 (float32: 8)."""
LEAST_WEIGHTS: Final = 1 << 14
"""Below, one kernel converts and multiplies as fast."""


class NarrowProduct(Primitive, abstract=True):
    """x (m, k) in float32 times weights (k, n) of a format, whose bytes are given.

    A part of programs for CPUs.
    """

    name = "narrow_product"

    def type(self, x: ShapedArray, w: ShapedArray, *, format: str) -> ShapedArray:
        return ShapedArray((x.shape[0], w.shape[1]), x.dtype)

    def evaluate(self, x: Any, w: Any, *, format: str) -> Any:
        return np.asarray(x) @ np.asarray(w).view(dtypes.as_dtype(format)).astype(np.float32)

    def cost(self, x: ShapedArray, w: ShapedArray, *, format: str) -> Cost:
        (m, k), n = x.shape, w.shape[1]
        return Cost(2 * m * k * n, x.nbytes + w.nbytes + 4 * m * n)


narrow_product_p = NarrowProduct()


def with_narrow_products(jaxpr: Jaxpr) -> Jaxpr:
    """The program, and the bodies in it, with such products as one operation."""
    jaxpr = with_bodies(jaxpr, with_narrow_products)
    if convert_element_type_p not in jaxpr.primitives:
        return jaxpr
    converted: dict[Atom, Atom] = {
        eqn.outvars[0]: eqn.invars[0] for eqn in jaxpr.eqns
        if eqn.primitive is convert_element_type_p and eqn.invars[0].aval.dtype.name in FORMATS}
    if not any(_is_narrow(eqn, converted) for eqn in jaxpr.eqns):
        return jaxpr
    env: dict[Atom, Atom] = {}
    eqns: list[Equation] = []
    for eqn in jaxpr.eqns:
        found = tuple([env.get(a, a) for a in eqn.invars])
        if not _is_narrow(eqn, converted):
            eqns.append(eqn if found == eqn.invars else eqn.replace(invars=found))
            continue
        weights = converted[eqn.invars[1]]
        name, out = weights.aval.dtype.name, eqn.outvars[0].aval

        def product(x: Any, w: Any, name: str = name, dtype: Any = out.dtype) -> list[Any]:
            bits = w if name == "int8" else bitcast_convert_type(w, np.dtype(np.uint8))
            wide = convert_element_type(x, np.dtype(np.float32))
            return [convert_element_type(narrow_product_p.bind(wide, bits, format=name), dtype)]

        (env[eqn.outvars[0]],) = inlined(product, (found[0], env.get(weights, weights)), eqns,
                                         "narrow_product", eqn.source)
    return Jaxpr(jaxpr.constvars, jaxpr.invars, tuple(eqns),
                 tuple([env.get(a, a) for a in jaxpr.outvars]), name=jaxpr.name)


def _is_narrow(eqn: Equation, converted: dict[Atom, Atom]) -> bool:
    """Whether an equation is a product of few rows with converted weights, as these stand."""
    if eqn.primitive is not dot_general_p or not isinstance(eqn.invars[1], Var) or \
            eqn.invars[1] not in converted:
        return False
    x, w = (a.aval for a in eqn.invars)
    out = eqn.outvars[0].aval.dtype
    if eqn.params["dimension_numbers"] != (((1,), (0,)), ((), ())) or x.ndim != 2 or w.ndim != 2 \
            or not all(isinstance(n, int) for n in (*x.shape, *w.shape)):
        return False
    exact = w.dtype == np.float32 or dtypes.is_half(w.dtype)  # halves have all 8-bit weights
    return exact and (out == np.float32 or dtypes.is_half(out)) and w.size >= LEAST_WEIGHTS \
        and 0 < x.shape[0] <= MOST_ROWS
