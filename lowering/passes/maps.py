"""Maps of maps as one: scans without a carry whose body is such a scan and nothing else.

Iterations of a scan without a carry know nothing of each other. Where they run side by side, a
program an iteration, those of both loops do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from functrans.core.avals import get_aval
from functrans.core.jaxpr import Equation, Jaxpr, Literal, Var
from functrans.core.prune import has_effects
from functrans.lowering.passes.rewrite import with_functions
from functrans.primitives.broadcast import broadcast_in_dim
from functrans.primitives.control_flow.bodies import rearranged
from functrans.primitives.control_flow.scan import scan_p
from functrans.primitives.shape import reshape

__all__ = ["merge_maps"]

MOST_REPEATED: Final = 1 << 26
"""Bytes of copies for each iteration of what several iterations of one map read."""


def merge_maps(jaxpr: Jaxpr) -> Jaxpr:
    """The program with one map in place of a map of maps, at any depth."""
    if not any(_inner(eqn) for eqn in jaxpr.eqns):
        return jaxpr
    return merge_maps(with_functions(jaxpr, _merged))


def _merged(eqn: Equation) -> Callable[..., Sequence[Any]] | None:
    inner = _inner(eqn)
    return None if inner is None else _Merged(eqn, inner)


def _is_map(eqn: Equation) -> bool:
    return eqn.primitive is scan_p and eqn.params["num_carry"] == 0 and not has_effects(eqn) \
        and isinstance(eqn.params["length"], int) and eqn.params["length"] > 0


def _inner(eqn: Equation) -> Equation | None:
    """The map that is all of the body of a map, where merging them copies little."""
    if not _is_map(eqn):
        return None
    body: Jaxpr = eqn.params["jaxpr"]
    if len(body.eqns) != 1 or not _is_map(body.eqns[0]):
        return None
    inner = body.eqns[0]
    if not all(out in inner.outvars for out in body.outvars):
        return None
    copied = sum(_copied_bytes(eqn, inner, k) for k in range(len(inner.invars)))
    return inner if copied <= MOST_REPEATED else None


def _copied_bytes(outer: Equation, inner: Equation, k: int) -> Any:
    """Bytes of copies of an operand of the inner map."""
    x = inner.invars[k]
    if isinstance(x, Literal):
        return 0
    is_element = outer.params["jaxpr"].invars.index(x) >= outer.params["num_consts"]
    if k < inner.params["num_consts"]:
        return is_element * x.aval.nbytes * outer.params["length"] * inner.params["length"]
    return (not is_element) * x.aval.nbytes * outer.params["length"]


class _Merged:
    """The map of both maps, as a function of the operands of the outer one."""

    def __init__(self, outer: Equation, inner: Equation) -> None:
        self.outer, self.inner = outer, inner
        self.sizes = outer.params["length"], inner.params["length"]

    def __call__(self, *operands: Any) -> Sequence[Any]:
        outer, inner = self.outer.params, self.inner.params
        given: dict[Var, Any] = dict(zip(outer["jaxpr"].invars, operands, strict=True))
        elements = outer["jaxpr"].invars[outer["num_consts"]:]
        consts, xs, shared, cut = [], [], [], []
        for k, (x, v) in enumerate(zip(self.inner.invars, inner["jaxpr"].invars, strict=True)):
            value = x.value if isinstance(x, Literal) else given[x]
            if k < inner["num_consts"] and x not in elements:
                consts.append(value)
                shared.append(v)
            else:
                xs.append(self._stacked(value, x in elements, k >= inner["num_consts"]))
                cut.append(v)
        body = rearranged(inner["jaxpr"], (*shared, *cut), inner["jaxpr"].outvars)
        length = self.sizes[0] * self.sizes[1]
        found = dict(zip(self.inner.outvars, scan_p.bind(
            *consts, *xs, jaxpr=body, length=length, reverse=False, unroll=1,
            num_consts=len(consts), num_carry=0), strict=True))
        outs = [found[v] for v in outer["jaxpr"].outvars]
        return [reshape(y, (*self.sizes, *get_aval(y).shape[1:])) for y in outs]

    def _stacked(self, x: Any, is_element: bool, is_cut: bool) -> Any:
        """An operand of the inner map for the iterations of both, along the first axis."""
        shape = get_aval(x).shape
        if not is_element:
            x = broadcast_in_dim(x, (self.sizes[0], *shape), tuple(range(1, len(shape) + 1)))
        elif not is_cut:
            x = broadcast_in_dim(x, (*self.sizes, *shape[1:]), (0, *range(2, len(shape) + 1)))
        shape = get_aval(x).shape
        return reshape(x, (shape[0] * shape[1], *shape[2:]))
