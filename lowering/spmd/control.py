"""Loops and branches on parts of arrays: their bodies become programs of parts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from functrans.core.avals import ShapedArray, get_aval
from functrans.core.jaxpr import ClosedJaxpr, Equation, Jaxpr, Var
from functrans.core.mesh import DimAxes
from functrans.core.primitive import Primitive
from functrans.core.staging import stage
from functrans.lowering.spmd.layout import Local
from functrans.primitives.control_flow.bodies import counted
from functrans.primitives.control_flow.cond import cond_p
from functrans.primitives.control_flow.scan import scan_p
from functrans.primitives.control_flow.while_loop import while_p
from functrans.primitives.shard_map import local_aval

if TYPE_CHECKING:
    from functrans.lowering.spmd.partition import PartitionWalk

__all__ = ["CONTROL"]

Rule = Callable[["PartitionWalk", Equation, Sequence[Local]], "list[Local] | None"]
MOST_ROUNDS: Final = 6
"""How often a body is staged until its carry has the parts that it began with; then it is told."""


def _staged(walk: PartitionWalk, jaxpr: Jaxpr, dims: Sequence[DimAxes],
            wanted: Sequence[DimAxes | None]) -> tuple[ClosedJaxpr, list[DimAxes]]:
    """A body as a program of parts, and the parts of its results: those `wanted`, or as they come.

    What it reads of the program around it are its constants.
    """
    found: list[DimAxes] = []
    start = len(walk.notes)

    def fun(*args: Any) -> list[Any]:
        found.clear()
        del walk.notes[start:]
        outs = walk.run(jaxpr, [Local(x, d, a) for x, d, a in
                                zip(args, dims, jaxpr.in_avals, strict=True)])
        outs = [o if w is None else walk.place(o, w) for o, w in zip(outs, wanted, strict=True)]
        found.extend(o.dims for o in outs)
        return [o.value for o in outs]

    avals = [_part(walk, a, d) for a, d in zip(jaxpr.in_avals, dims, strict=True)]
    return stage(fun, avals, name=jaxpr.name), found


def _part(walk: PartitionWalk, aval: ShapedArray, dims: DimAxes) -> ShapedArray:
    return local_aval(aval.varying_along(frozenset()), dims, walk.mesh)


def _joined(a: DimAxes, b: DimAxes) -> DimAxes:
    """Parts for values that come as `a` and as `b`: the finer ones, where these are of one kind."""
    dims = []
    for x, y in zip(a, b, strict=True):
        n = min(len(x), len(y))
        dims.append((x if len(x) > len(y) else y) if x[:n] == y[:n] else ())
    used = [axis for d in dims for axis in d]
    return tuple(dims) if len(set(used)) == len(used) else ((),) * len(dims)


def _scan(walk: PartitionWalk, eqn: Equation, operands: Sequence[Local]) -> list[Local]:
    params = eqn.params
    jaxpr, n_carry = params["jaxpr"], params["num_carry"]
    consts, carry, xs = counted(operands, params["num_consts"], n_carry)
    xs = [walk.place(x, ((), *x.dims[1:])) for x in xs]
    dims = [x.dims for x in carry]
    outside = [*[x.dims for x in consts]]
    elements = [x.dims[1:] for x in xs]
    free: list[DimAxes | None] = [None] * (len(jaxpr.outvars) - n_carry)
    start = len(walk.notes)
    for _ in range(MOST_ROUNDS):
        _, found = _staged(walk, jaxpr, [*outside, *dims, *elements], [None] * len(jaxpr.outvars))
        joined = [_joined(a, b) for a, b in zip(dims, found[:n_carry], strict=True)]
        if joined == dims:
            break
        dims = joined
    del walk.notes[start:]
    closed, found = _staged(walk, jaxpr, [*outside, *dims, *elements], [*dims, *free])
    carry = [walk.place(x, d) for x, d in zip(carry, dims, strict=True)]
    outs = scan_p.bind(
        *closed.consts, *[x.value for x in (*consts, *carry, *xs)],
        **{**params, "jaxpr": closed.jaxpr.hoist_consts(),
           "num_consts": len(closed.consts) + len(consts)})
    out_dims = [*dims, *[((), *d) for d in found[n_carry:]]]
    return [Local(o, d, v.aval) for o, d, v in zip(outs, out_dims, eqn.outvars, strict=True)]


def _while(walk: PartitionWalk, eqn: Equation, operands: Sequence[Local]) -> list[Local] | None:
    params = eqn.params
    if params.get("record") is not None:  # what it records has a size that the run decides
        return None
    n_test, n_body = params["cond_nconsts"], params["body_nconsts"]
    of_test, of_body, carry = counted(operands, n_test, n_body)
    dims = [x.dims for x in carry]
    start = len(walk.notes)
    for _ in range(MOST_ROUNDS):
        _, found = _staged(walk, params["body_jaxpr"], [*[x.dims for x in of_body], *dims],
                           [None] * len(carry))
        joined = [_joined(a, b) for a, b in zip(dims, found, strict=True)]
        if joined == dims:
            break
        dims = joined
    del walk.notes[start:]
    test, _ = _staged(walk, params["cond_jaxpr"], [*[x.dims for x in of_test], *dims], [()])
    body, _ = _staged(walk, params["body_jaxpr"], [*[x.dims for x in of_body], *dims], dims)
    carry = [walk.place(x, d) for x, d in zip(carry, dims, strict=True)]
    outs = while_p.bind(
        *test.consts, *[x.value for x in of_test], *body.consts,
        *[x.value for x in (*of_body, *carry)],
        **{**params, "cond_jaxpr": test.jaxpr.hoist_consts(),
           "body_jaxpr": body.jaxpr.hoist_consts(), "cond_nconsts": len(test.consts) + n_test,
           "body_nconsts": len(body.consts) + n_body})
    return [Local(o, d, v.aval) for o, d, v in zip(outs, dims, eqn.outvars, strict=True)]


def _cond(walk: PartitionWalk, eqn: Equation, operands: Sequence[Local]) -> list[Local]:
    index, *rest = operands
    branches = eqn.params["branches"]
    dims = [x.dims for x in rest]
    start = len(walk.notes)
    wanted: list[DimAxes] | None = None
    for branch in branches:
        _, found = _staged(walk, branch, dims, [None] * len(branch.outvars))
        wanted = found if wanted is None else [_joined(a, b) for a, b in
                                               zip(wanted, found, strict=True)]
    del walk.notes[start:]
    assert wanted is not None
    staged = [_staged(walk, branch, dims, list(wanted))[0] for branch in branches]
    consts: dict[int, Any] = {}
    for closed in staged:
        consts.update((id(c), c) for c in closed.consts)
    jaxprs = []
    for closed in staged:
        mine = dict(zip(map(id, closed.consts), closed.jaxpr.constvars, strict=True))
        leading = tuple([mine.get(key) or Var(get_aval(c)) for key, c in consts.items()])
        jaxprs.append(Jaxpr((), leading + closed.jaxpr.invars, closed.jaxpr.eqns,
                            closed.jaxpr.outvars, name=closed.jaxpr.name))
    outs = cond_p.bind(index.value, *consts.values(), *[x.value for x in rest],
                       **{**eqn.params, "branches": tuple(jaxprs)})
    return [Local(o, d, v.aval) for o, d, v in zip(outs, wanted, eqn.outvars, strict=True)]


CONTROL: Final[Mapping[Primitive, Rule]] = {scan_p: _scan, while_p: _while, cond_p: _cond}
