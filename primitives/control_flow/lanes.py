"""vmap of loops and branches that lanes take differently, in programs that are compiled.

All lanes at once means masks: a loop runs until its slowest lane is done, and every branch is
computed for every lane. One lane after another means real loops and branches, but no vectors across
lanes. In between are blocks: a loop over blocks of lanes, with masks among the lanes of a block.
The loop over blocks is a scan without a carry, which derivatives and further vmaps know.

Measured on 1024 lanes (us; 2 cores with AVX-512, float32):

| loop | all at once | blocks of 128 | of 64 | of 16 | one by one |
|---|---|---|---|---|---|
| Newton, 1 to 20 iterations | 2.7 | 3.2 | 3.9 | 11 | 36 |
| a scalar, 1 to 1000 iterations | 72 | 93 | 110 | 368 | 5980 |
| a scalar, 10 iterations, every 100th lane 5000 | 469 | 475 | 384 | 336 | 226 |
| 4 elements, 1 to 200 iterations | 9600 | | 6000 | 5600 | 860 |
| 64 elements | 11000 | | 6400 | 8100 | 7600 |
| 256 elements | 33000 | | 25000 | 28000 | 13500 |
| product with a shared 16x16 matrix | 3000 | | 1200 | 9800 | 28000 |
| product with a shared 64x64 matrix | 47000 | | 20000 | 27000 | 120000 |

A cond of 100 iterations or a doubling, 1024 lanes of as many elements, where every second lane or
every 100th takes the loop (us):

| elements | all at once | blocks of 64 | of 16 | of 8 | one by one |
|---|---|---|---|---|---|
| 1 | 4.9, 4.7 | 13, 5.9 | 44, 7.2 | 122, 11 | 343, 7.0 |
| 4 | 27, 30 | 24, 6.6 | 55, 8.0 | 95, 8.5 | 498, 9.9 |
| 16 | 118, 115 | 100, 55 | 84, 16 | 113, 14 | 364, 13 |
| 64 | 465, 387 | 447, 158 | 414, 85 | 366, 40 | 416, 15 |
| 256 | 2500, 4600 | 2100, 1100 | 1300, 300 | 1300, 230 | 648, 72 |
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from functrans.core import config
from functrans.core.avals import get_aval
from functrans.core.axes import MappedAxis
from functrans.core.compiling import compiling
from functrans.core.dims import Size
from functrans.core.jaxpr import Jaxpr, subjaxprs
from functrans.core.prune import has_effects
from functrans.primitives.check import check_p
from functrans.primitives.control_flow.bodies import stage_body
from functrans.primitives.control_flow.scan import scan_p
from functrans.primitives.conv import conv_general_dilated_p
from functrans.primitives.dot import dot_general_p
from functrans.primitives.shape import reshape

__all__ = ["block_of_lanes", "map_blocks", "widest"]

BLOCK = 64  # lanes of scalars, or of what multiplies a matrix that all lanes share
PRODUCTS: Final = frozenset({dot_general_p, conv_general_dilated_p})
WIDE = 128  # elements of a value that fill the vectors by themselves


def block_of_lanes(bodies: Sequence[Jaxpr], axis: MappedAxis,
                   are_expensive: bool = True) -> int | None:
    """How many lanes to take at a time, 1 for one by one; None to take all at once."""
    if any(axis.name in b.axis_names for b in bodies):
        return None
    if config.current().checks or any(map(_has_check, bodies)):
        return 1  # a lane that is done, or takes another branch, must not fail
    if not compiling() or not are_expensive \
            or any(has_effects(eqn) for b in bodies for eqn in b.eqns):
        return None
    width = widest(bodies)
    if width is None:
        return None
    wanted = BLOCK if any(map(_has_product, bodies)) else min(BLOCK, WIDE // width)
    if wanted < 4:
        return 1
    size = axis.size
    if not isinstance(size, int) or size <= 2 * wanted:
        return None
    return next((k for k in range(2 * wanted, wanted // 2 - 1, -1) if size % k == 0), None)


def _has_check(jaxpr: Jaxpr) -> bool:
    return any(eqn.primitive is check_p or any(map(_has_check, subjaxprs(eqn)))
               for eqn in jaxpr.eqns)


def widest(bodies: Sequence[Jaxpr]) -> int | None:
    """The elements of the largest value that bodies compute; None where that is not known."""
    most = 1
    for body in bodies:
        for eqn in body.eqns:
            sizes = [widest(list(subjaxprs(eqn))), *(v.aval.size for v in eqn.outvars)]
            for n in sizes:
                if not isinstance(n, int):
                    return None
                most = max(most, n)
    return most


def _has_product(jaxpr: Jaxpr) -> bool:
    return any(eqn.primitive in PRODUCTS or any(map(_has_product, subjaxprs(eqn)))
               for eqn in jaxpr.eqns)


def map_blocks(fun: Callable[..., Sequence[Any]], operands: Sequence[Any],
               mapped: Sequence[bool], size: Size, block: int, name: str) -> list[Any]:
    """`fun` on blocks of lanes of the operands that are mapped (along axis 0), one by one.

    In blocks of 1, `fun` sees operands without the axis of lanes.
    """
    consts = [x for x, m in zip(operands, mapped, strict=True) if not m]
    xs = [x for x, m in zip(operands, mapped, strict=True) if m]
    if block > 1:
        xs = [reshape(x, (size // block, block, *get_aval(x).shape[1:])) for x in xs]

    def body(*args: Any) -> Sequence[Any]:
        shared, lanes = iter(args[:len(consts)]), iter(args[len(consts):])
        return fun(*[next(lanes) if m else next(shared) for m in mapped])

    avals = [get_aval(c).strong() for c in consts]
    avals += [a.with_shape(a.shape[1:]) for a in (get_aval(x).strong() for x in xs)]
    outs = scan_p.bind(*consts, *xs, jaxpr=stage_body(body, avals, name), length=size // block,
                       reverse=False, unroll=1, num_consts=len(consts), num_carry=0)
    if block == 1:
        return list(outs)
    return [reshape(y, (size, *get_aval(y).shape[2:])) for y in outs]
