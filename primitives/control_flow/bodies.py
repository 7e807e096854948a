"""What loops and branches share: programs rearranged, and the split of a loop body.

A loop body is split for reverse mode into a primal part, which saves residuals, and a linear part,
which takes them. What an iteration saves is stacked; what every iteration would save alike is not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from functrans.core import dtypes
from functrans.core.avals import ShapedArray, get_aval
from functrans.core.errors import JaxprError
from functrans.core.evaluate import eval_jaxpr
from functrans.core.jaxpr import Atom, Jaxpr, Literal, Var
from functrans.core.prune import has_effects, prune_jaxpr, used_inputs
from functrans.core.record import Record
from functrans.core.sizes import shape_names
from functrans.core.staging import stage
from functrans.primitives.base import full, zeros
from functrans.primitives.broadcast import broadcast_in_dim
from functrans.primitives.compare import select_n

__all__ = ["Split", "check_operands", "counted", "depends", "filled",
           "invariant_carry", "leaves_unsized", "ones_like", "pick", "rearranged", "rematerialized",
           "select_lanes", "split_body", "stage_body", "tangent_zeros"]

TRUE = Literal(np.bool_(True), ShapedArray((), np.dtype(np.bool_)))


def counted(items: Sequence[Any], *counts: int) -> list[list[Any]]:
    """`items` cut into pieces of these lengths, and the rest."""
    pieces = []
    start = 0
    for n in counts:
        pieces.append(list(items[start:start + n]))
        start += n
    pieces.append(list(items[start:]))
    return pieces


def pick(items: Iterable[Any], flags: Iterable[bool]) -> list[Any]:
    """The items whose flag is set."""
    return [x for x, flag in zip(items, flags, strict=True) if flag]


def rearranged(jaxpr: Jaxpr, invars: Sequence[Var], outvars: Sequence[Atom]) -> Jaxpr:
    """The same equations between other inputs and outputs."""
    return Jaxpr((), tuple(invars), jaxpr.eqns, tuple(outvars), name=jaxpr.name)


def stage_body(fun: Callable[..., Sequence[Any]], avals: Sequence[ShapedArray],
               name: str) -> Jaxpr:
    """The jaxpr of a flat function that closes over nothing."""
    closed = stage(fun, avals, name=name)
    if closed.consts:
        raise JaxprError(f"{name} closes over {closed.consts[0]!r}.")
    return closed.jaxpr


def check_operands(name: str, expected: Sequence[ShapedArray],
                   given: Sequence[ShapedArray]) -> None:
    """Raise JaxprError unless the operands have the types of a body's inputs."""
    if len(expected) != len(given):
        raise JaxprError(f"{name}: the body takes {len(expected)} operands, given {len(given)}.")
    for i, (e, g) in enumerate(zip(expected, given, strict=True)):
        if not e.matches(g):
            raise JaxprError(f"{name}: operand {i} is {g}, the body takes {e}.")


def tangent_zeros(value: Any) -> Any:
    """A zero tangent of a value, as an array."""
    return zeros(get_aval(value).strong())


def filled(tangents: Sequence[Any], values: Sequence[Any], wanted: Sequence[bool]) -> list[Any]:
    """The wanted tangents, zeros in place of None."""
    return [tangent_zeros(v) if t is None else t
            for t, v, w in zip(tangents, values, wanted, strict=True) if w]


def select_lanes(which: Any, on_true: Any, on_false: Any) -> Any:
    """on_true in the lanes (leading axes) where `which` holds, else on_false."""
    if on_true is on_false:
        return on_true
    shape = get_aval(on_true).shape
    ndim = get_aval(which).ndim
    if 0 < ndim < len(shape):
        which = broadcast_in_dim(which, shape, tuple(range(ndim)))
    return select_n(which, on_false, on_true)


def ones_like(x: Any) -> Any:
    aval = get_aval(x)
    return full(aval.shape, 1, aval.dtype)


def invariant_carry(jaxpr: Jaxpr, num_consts: int, num_carry: int) -> list[bool]:
    """Which carried values a body hands on unchanged."""
    carry = jaxpr.invars[num_consts:num_consts + num_carry]
    return [out is var for out, var in zip(jaxpr.outvars[:num_carry], carry, strict=True)]


def depends(jaxpr: Jaxpr, linear: Sequence[bool]) -> list[bool]:
    """Which outputs may depend linearly on the inputs marked linear: integers only on integers."""
    marked = {v for v, is_linear in zip(jaxpr.invars, linear, strict=True) if is_linear}
    for eqn in jaxpr.eqns:
        on = [a for a in eqn.invars if isinstance(a, Var) and a in marked]
        if on:
            kinds = "iufc" if any(dtypes.kind(a.aval.dtype) in "iu" for a in on) else "fc"
            marked.update(v for v in eqn.outvars if dtypes.kind(v.aval.dtype) in kinds)
    return [isinstance(a, Var) and a in marked for a in jaxpr.outvars]


class LinearizedBody(NamedTuple):
    """A jaxpr split into a primal and a linear part, as `linearize_jaxpr` gives it."""

    primal: Jaxpr
    linear: Jaxpr
    nonzero: tuple[bool, ...]
    forwarded: tuple[int | None, ...]


def rematerialized(jaxpr: Jaxpr, parts: Any, active: Sequence[bool]) -> LinearizedBody:
    """The split that saves nothing but inputs, and computes the primal part again.

    For bodies whose residuals cannot leave them: the number of iterations of an inner while loop
    differs from one run of the body to the next, and so do the shapes of what it records.
    """
    n_in, n_out = len(jaxpr.invars), len(jaxpr.outvars)
    tangents = parts.linear.in_avals[len(parts.forwarded):]

    def linear(*args: Any) -> list[Any]:
        inputs = args[:n_in]
        saved = iter(eval_jaxpr(parts.primal, (), *inputs)[n_out:])
        residuals = [next(saved) if f is None else inputs[f] for f in parts.forwarded]
        return eval_jaxpr(parts.linear, (), *residuals, *args[n_in:])

    again = prune_jaxpr(stage_body(linear, [*jaxpr.in_avals, *tangents],
                                   f"rematerialized_{jaxpr.name}"))
    used = used_inputs(again)[:n_in]
    again = rearranged(again, pick(again.invars, [*used, *(True for _ in tangents)]), again.outvars)
    return LinearizedBody(jaxpr, again, parts.nonzero, tuple(pick(range(n_in), used)))


def leaves_unsized(jaxpr: Jaxpr, outs: Sequence[Atom]) -> bool:
    """True when the shape of an output has a size that an operation of the body decides."""
    return bool(jaxpr.decided_names & shape_names([a.aval.shape for a in outs]))


class Split(Record):
    """A loop body split for reverse mode.

    `primal` has the body's outputs and then `num_stacked` residuals, one set per iteration. The
    residuals that `linear` takes first are the same in every iteration: operand i of the loop for
    each i in `operands`, then the results of `hoisted` on its first operands. Its inputs are:
    invariant residuals, tangents of constants, tangents of the carry, stacked residuals, residuals
    that are elements of xs (`sliced`, by operand), tangents of elements of xs.
    """

    primal: Jaxpr
    linear: Jaxpr
    num_stacked: int
    operands: tuple[int, ...]
    hoisted: Jaxpr
    sliced: tuple[int, ...]
    nonzero: tuple[bool, ...]

    def invariants(self, operands: Sequence[Any]) -> list[Any]:
        """The residuals that all iterations share."""
        first = operands[:len(self.hoisted.invars)]
        return [operands[i] for i in self.operands] + eval_jaxpr(self.hoisted, (), *first)


def split_body(jaxpr: Jaxpr, num_consts: int, num_carry: int, active: Sequence[bool],
               linearize_jaxpr: Any) -> tuple[Split, list[bool]]:
    """Split a loop body, differentiated in the `active` inputs; and which carries have tangents.

    A carried value has a tangent if its initial value has one or if an iteration gives it one.
    """
    active = list(active)
    carried = slice(num_consts, num_consts + num_carry)
    rest = [False] * (len(jaxpr.outvars) - num_carry)
    while True:
        parts = linearize_jaxpr(jaxpr, active, [*active[carried], *rest])
        if list(parts.nonzero[:num_carry]) == active[carried]:
            break
        active[carried] = parts.nonzero[:num_carry]
    split = _split(jaxpr, num_consts, num_carry, active, parts)
    if leaves_unsized(split.primal, split.primal.outvars[len(jaxpr.outvars):]):
        parts = rematerialized(jaxpr, parts, active)
        split = _split(jaxpr, num_consts, num_carry, active, parts)
    return split, active[carried]


def _split(jaxpr: Jaxpr, num_consts: int, num_carry: int, active: Sequence[bool],
           parts: Any) -> Split:
    primal = parts.primal
    n_out, n_res = len(jaxpr.outvars), len(parts.forwarded)
    unchanged = invariant_carry(primal, num_consts, num_carry)
    known = set(primal.invars[:num_consts])
    known.update(pick(primal.invars[num_consts:num_consts + num_carry], unchanged))
    shared = _computed_from(primal, known)
    saved = iter(primal.outvars[n_out:])
    # (where the residual comes from, the linear part's variable)
    operands: list[tuple[int, Var]] = []
    hoisted: list[tuple[Atom, Var]] = []
    stacked: list[tuple[Atom, Var]] = []
    sliced: list[tuple[int, Var]] = []
    for f, var in zip(parts.forwarded, parts.linear.invars[:n_res], strict=True):
        if f is None:
            atom = next(saved)
            alike = isinstance(atom, Literal) or atom in shared
            (hoisted if alike else stacked).append((atom, var))
        elif f < num_consts or (f < num_consts + num_carry and unchanged[f - num_consts]):
            operands.append((f, var))
        elif f < num_consts + num_carry:
            stacked.append((primal.invars[f], var))
        else:
            sliced.append((f, var))
    pure = tuple([e for e in primal.eqns if e.outvars and shared.issuperset(e.outvars)])
    first = prune_jaxpr(Jaxpr((), primal.invars[:num_consts + num_carry], pure,
                              tuple([a for a, _ in hoisted]), name=primal.name))
    primal = prune_jaxpr(rearranged(primal, primal.invars,
                                    [*primal.outvars[:n_out], *(a for a, _ in stacked)]))
    tangents = iter(parts.linear.invars[n_res:])
    tangent_vars = [next(tangents) if a else None for a in active]
    consts, carry, xs = ([v for v in group if v is not None]
                         for group in counted(tangent_vars, num_consts, num_carry))
    invars = [*(v for _, v in operands), *(v for _, v in hoisted), *consts, *carry,
              *(v for _, v in stacked), *(v for _, v in sliced), *xs]
    linear = rearranged(parts.linear, invars, parts.linear.outvars)
    return Split(primal, linear, len(stacked), tuple(i for i, _ in operands), first,
                 tuple(i for i, _ in sliced), tuple(parts.nonzero))


def _computed_from(jaxpr: Jaxpr, known: set[Var]) -> set[Var]:
    """The variables that pure operations of known sizes compute from the `known` ones."""
    shared = set(known)
    for eqn in jaxpr.eqns:
        if all(isinstance(a, Literal) or a in shared for a in eqn.invars) \
                and not has_effects(eqn) and not eqn.primitive.decided_sizes(eqn.params):
            shared.update(eqn.outvars)
    return shared
