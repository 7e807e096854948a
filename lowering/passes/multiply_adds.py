"""Products that a sum alone reads are one operation with it, inside of loops.

A loop whose state is in registers takes as long as its arithmetic, of which this is a third less:
programs over lanes take 0.9 of the time. Elsewhere kernels wait for memory, and each operation
rounds as NumPy's does. What is contracted is decided by the body of the loop alone, so that a lane
among others has the bits of the lane alone.
"""

from __future__ import annotations

from collections import Counter

from functrans.core import dtypes
from functrans.core.jaxpr import Atom, Equation, Jaxpr, Literal, Var, subjaxprs
from functrans.primitives.arithmetic import add_p, integer_pow_p, mul_p, neg_p, sub_p
from functrans.primitives.control_flow.scan import scan_p
from functrans.primitives.control_flow.while_loop import while_p
from functrans.primitives.differentiable import add_any_p
from functrans.primitives.fused import fma_p

__all__ = ["contract_products"]

LOOPS = (scan_p, while_p)
SUMS = (add_p, add_any_p, sub_p)


def contract_products(jaxpr: Jaxpr, in_loop: bool = False) -> Jaxpr:
    """The program whose loops round a product and the sum that reads it once; itself if none."""
    if not in_loop and not jaxpr.calls:
        return jaxpr
    eqns = [_with_bodies(eqn, in_loop) for eqn in jaxpr.eqns]
    if in_loop:
        eqns = _contracted(jaxpr, eqns)
    if len(eqns) == len(jaxpr.eqns) and all(map(_is, eqns, jaxpr.eqns)):
        return jaxpr
    return Jaxpr(jaxpr.constvars, jaxpr.invars, tuple(eqns), jaxpr.outvars, name=jaxpr.name)


def _is(x: Equation, y: Equation) -> bool:
    return x is y


def _with_bodies(eqn: Equation, in_loop: bool) -> Equation:
    """An equation whose bodies are contracted."""
    inside = in_loop or eqn.primitive in LOOPS
    found = {body: contract_products(body, inside) for body in subjaxprs(eqn)}
    if all(body is new for body, new in found.items()):
        return eqn
    params = {name: tuple(found.get(v, v) for v in value) if isinstance(value, tuple) and any(
        isinstance(v, Jaxpr) for v in value) else found[value] if isinstance(value, Jaxpr)
        else value for name, value in eqn.params.items()}
    return eqn.replace(params=params)


def _contracted(jaxpr: Jaxpr, eqns: list[Equation]) -> list[Equation]:
    uses = Counter(a for eqn in eqns for a in eqn.invars if isinstance(a, Var))
    uses.update(a for a in jaxpr.outvars if isinstance(a, Var))
    products = {eqn.outvars[0]: eqn for eqn in eqns if _is_product(eqn)
                and uses[eqn.outvars[0]] == 1}
    made: dict[Equation, list[Equation]] = {}
    gone: set[Equation] = set()
    for eqn in eqns:
        if eqn.primitive not in SUMS:
            continue
        of = [products.get(a) if isinstance(a, Var) else None for a in eqn.invars]
        # x * y - z * w is 0 where both are equal, and stays so
        if all(p is None for p in of) or (eqn.primitive is sub_p and None not in of):
            continue
        k = 0 if of[0] is not None else 1
        product = of[k]
        assert product is not None
        made[eqn] = _multiply_add(eqn, product, k)
        gone.add(product)
    return [new for eqn in eqns if eqn not in gone for new in made.get(eqn, [eqn])]


def _is_product(eqn: Equation) -> bool:
    """Whether an equation is a product, or a square, of numbers that processors contract."""
    if eqn.primitive is not mul_p and not (
            eqn.primitive is integer_pow_p and eqn.params["y"] == 2):
        return False
    dtype = eqn.outvars[0].aval.dtype
    return dtypes.kind(dtype) == "f" and dtype.itemsize >= 4


def _multiply_add(eqn: Equation, product: Equation, k: int) -> list[Equation]:
    """The equations that compute a sum whose operand `k` is a product."""
    x, y = product.invars * (2 // len(product.invars))
    z = eqn.invars[1 - k]
    if eqn.primitive is not sub_p:
        return [eqn.replace(primitive=fma_p, invars=(x, y, z), params={})]
    made: list[Equation] = []

    def negated(a: Atom) -> Atom:
        if isinstance(a, Literal):
            return Literal(-a.value, a.aval)
        out = Var(a.aval)
        made.append(Equation(neg_p, (a,), (out,), {}, eqn.source))
        return out

    # x * y - z, or z - x * y
    operands = (x, y, negated(z)) if k == 0 else \
        (x, negated(y), z) if isinstance(y, Literal) else (negated(x), y, z)
    return [*made, eqn.replace(primitive=fma_p, invars=operands, params={})]
