"""Values that a chain of products has block by block: memory of a thread, soon used again.

Between two products of the same batch stand elementwise operations and reductions of rows: heads of
attention, forward and at once backward. To a plan of what is kept they are of no size. They are
found by the shape of a program, not proved: what becomes no chain costs a worse plan, and no wrong
number. The chains themselves are formed by the schedule (`schedule/chains.py`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from functrans.core.jaxpr import Equation, Jaxpr, Var
from functrans.primitives.base import constant_p, full_p
from functrans.primitives.broadcast import broadcast_in_dim_p, reduce_sum_p, transpose_p
from functrans.primitives.compare import clamp_p, select_n_p
from functrans.primitives.convert import convert_element_type_p
from functrans.primitives.differentiable import add_any_p
from functrans.primitives.dot import dot_general_p
from functrans.primitives.elementwise import Elementwise
from functrans.primitives.reduce import Reduction
from functrans.primitives.shape import iota_p, reshape_p

__all__ = ["chained_values"]

ELEMENT_BY_ELEMENT = frozenset({
    select_n_p, convert_element_type_p, clamp_p, add_any_p, broadcast_in_dim_p, transpose_p,
    full_p, constant_p, iota_p, reshape_p})

Blocks = tuple[int, ...]


def chained_values(jaxpr: Jaxpr, least_blocks: int, most_bytes: int) -> frozenset[Var]:
    """The values that chains of `least_blocks` or more read alone, of `most_bytes` a block at most.
    """
    if dot_general_p not in jaxpr.primitives:
        return frozenset()
    last: dict[Var, int] = {}
    for k, eqn in enumerate(jaxpr.eqns):
        last.update((a, k) for a in eqn.invars if isinstance(a, Var))
    last.update((a, len(jaxpr.eqns)) for a in jaxpr.outvars if isinstance(a, Var))
    return frozenset(
        v for begin, end, blocks in _chains(jaxpr) for eqn in jaxpr.eqns[begin:end]
        for v in eqn.outvars
        if v.aval.shape[:len(blocks)] == blocks and last.get(v, end) < end
        and math.prod(blocks) >= least_blocks
        and v.aval.nbytes <= most_bytes * math.prod(blocks))


def _chains(jaxpr: Jaxpr) -> Iterator[tuple[int, int, Blocks]]:
    """The first equation of each chain, the one after its last, and the sizes of its batch."""
    begin, products = 0, 0
    blocks: Blocks = ()
    for k, eqn in enumerate((*jaxpr.eqns, None)):
        if eqn is not None and blocks and _goes_on(eqn, blocks):
            products += eqn.primitive is dot_general_p
            continue
        if products > 1:
            yield begin, k, blocks
        blocks = () if eqn is None else _batch(eqn)
        begin, products = k, int(bool(blocks))


def _goes_on(eqn: Equation, blocks: Blocks) -> bool:
    primitive = eqn.primitive
    if primitive is dot_general_p:
        return _batch(eqn) == blocks
    if primitive is reduce_sum_p or isinstance(primitive, Reduction):
        return eqn.invars[0].aval.shape[:len(blocks)] == blocks \
            and min(eqn.params["axes"], default=0) >= len(blocks)
    return isinstance(primitive, Elementwise) or primitive in ELEMENT_BY_ELEMENT


def _batch(eqn: Equation) -> Blocks:
    """The sizes of the batch of a product whose operands begin with it, else ()."""
    if eqn.primitive is not dot_general_p:
        return ()
    _, (left, right) = eqn.params["dimension_numbers"]
    first = tuple(range(len(left)))
    shape = eqn.outvars[0].aval.shape[:len(left)]
    is_first = tuple(left) == tuple(right) == first
    return tuple([n for n in shape if isinstance(n, int)]) if is_first else ()
