"""Gradients of loops to few numbers are accumulated forward, beside the loop: nothing is recorded.

Reverse mode of a loop is a pair: one that records what the other one, which runs backwards, reads.
The second is affine in the cotangents that it carries, so that one of its results is an inner
product: <e, A ct + b> = <A' e, ct> + <e, b>. The transposed loop A' runs in the direction of the
first one, and joins its body: what was recorded is used where it is computed, the carry is the
tangent of the first loop's state, and the cotangents are multiplied after the loop. So forward mode
would have computed it (Griewank and Walther, "Evaluating Derivatives", 2008, chapter 3).

Each number of the result takes a tangent of its own. Lanes that do not mix share one: its seed is
one in all of them, and the inner products are taken in each lane. Of one number the arithmetic is
that of the backward loop; a second one repeats it, which pays where `MOST_OPERATIONS` for each byte
that was recorded are not exceeded: two coefficients of a Van der Pol oscillator take 0.43 of the
time on a CPU, two of a Lorenz system by RK4 would take 1.2. Cotangents of what is collected at each
step are used within the loop where they are elementwise functions of what is collected and of what
was there before. Where they come from further away, the loop records what they are multiplied by,
if that is no more than it carries and recorded before; one that is the same at each step is
multiplied by the sum of these.

Sums are added up in another order, and an infinite tangent times a cotangent of zero is NaN here
where reverse mode may have had zero.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial, reduce
from typing import Any, Final

from functrans.core.avals import ShapedArray, get_aval
from functrans.core.cost import jaxpr_cost
from functrans.core.dims import static_shape
from functrans.core.evaluate import eval_jaxpr
from functrans.core.jaxpr import Atom, Equation, Jaxpr, Var
from functrans.core.primitive import HigherOrder
from functrans.core.prune import has_effects, prune_jaxpr
from functrans.core.record import Record
from functrans.lowering.passes.lane_axes import LaneAxes, lane_axes
from functrans.lowering.passes.rewrite import (
    Change,
    equation_text,
    inlined,
    inlined_jaxpr,
    with_bodies,
)
from functrans.lowering.passes.scans import ScanParts
from functrans.lowering.passes.stack_elements import (
    Element,
    StackElements,
    broadcast_element,
    is_of_elements,
    results_of,
)
from functrans.lowering.passes.transposition import (
    NotLinearError,
    evaluate,
    is_zero,
    linear_values,
    offset,
    offsets,
    read,
    transpose,
)
from functrans.primitives.arithmetic import add, mul
from functrans.primitives.base import full, zeros
from functrans.primitives.broadcast import (
    broadcast_in_dim,
    broadcast_in_dim_p,
    move_axis,
    reduce_sum,
)
from functrans.primitives.broadcast import transpose as transposed_axes
from functrans.primitives.compare import eq
from functrans.primitives.control_flow.bodies import counted, stage_body
from functrans.primitives.control_flow.scan import scan_p
from functrans.primitives.convert import convert_element_type
from functrans.primitives.shape import broadcasted_iota

__all__ = ["accumulate_forward"]

MOST_NUMBERS: Final = 2
"""Of a lane, that a tangent each is carried for."""
MOST_OPERATIONS: Final = 4
"""Of an iteration that are repeated, for each byte that is recorded no longer."""


def accumulate_forward(jaxpr: Jaxpr, log: list[Change] | None = None) -> Jaxpr:
    """The program whose gradients to few numbers run forward; each change is appended to `log`."""
    jaxpr = with_bodies(jaxpr, lambda body: accumulate_forward(body, log))
    flat = _with_loops_of_calls(jaxpr)
    if scan_p not in flat.primitives or not any(True for _ in _pairs(flat)):
        return jaxpr
    flat = prune_jaxpr(flat)
    for loop, back in _pairs(flat):
        changed = _changed(flat, loop, back)
        if changed is not None:
            if log is not None:
                log.append(Change("forward accumulation", "a gradient to few numbers runs forward",
                                  back.source, equation_text(back), ""))
            return accumulate_forward(changed, log)
    return jaxpr


def _with_loops_of_calls(jaxpr: Jaxpr) -> Jaxpr:
    """The program with the equations of programs that it calls and that have loops."""
    if not jaxpr.calls:
        return jaxpr
    env: dict[Atom, Atom] = {}
    eqns: list[Equation] = []
    for eqn in jaxpr.eqns:
        if any(a in env for a in eqn.invars):
            eqn = eqn.replace(invars=tuple([env.get(a, a) for a in eqn.invars]))
        if isinstance(eqn.primitive, HigherOrder) and eqn.primitive.called is not None:
            body, operands = eqn.primitive.called(eqn.invars, **eqn.params)
            if not body.size_names and any(e.primitive is scan_p for e in body.eqns):
                env.update(zip(eqn.outvars, inlined_jaxpr(body, operands, eqns), strict=True))
                continue
        eqns.append(eqn)
    if not env:
        return jaxpr
    return _with_loops_of_calls(
        Jaxpr(jaxpr.constvars, jaxpr.invars, tuple(eqns),
              tuple([env.get(a, a) for a in jaxpr.outvars]), name=jaxpr.name))


def _pairs(jaxpr: Jaxpr) -> Iterator[tuple[Equation, Equation]]:
    """Loops, and those with few results that walk backwards over what they collect."""
    origins: dict[Atom, list[Equation]] = {}
    used: set[Atom] | None = None
    for eqn in jaxpr.eqns:
        if eqn.primitive is not scan_p:
            if is_of_elements(eqn) and (found := _origins(eqn.invars, origins)):
                origins[eqn.outvars[0]] = found
            continue
        p = eqn.params
        walked = eqn.invars[p["num_consts"] + p["num_carry"]:]
        loops = [loop for loop in _origins(walked, origins)
                 if loop.params["reverse"] != p["reverse"]
                 and loop.params["length"] == p["length"]]
        origins.update((v, [eqn]) for v in eqn.outvars[p["num_carry"]:])
        if not loops or not p["num_carry"] or not isinstance(p["length"], int):
            continue
        if used is None:
            used = {a for e in jaxpr.eqns for a in e.invars} | set(jaxpr.outvars)
        if len(used.intersection(eqn.outvars)) <= MOST_NUMBERS and _is_sized(eqn):
            yield from [(loop, eqn) for loop in loops if _is_sized(loop)]


def _origins(operands: Iterable[Atom], known: Mapping[Atom, list[Equation]]) -> list[Equation]:
    return list(dict.fromkeys([loop for x in operands for loop in known.get(x, ())]))


def _is_sized(eqn: Equation) -> bool:
    return not has_effects(eqn) and all(
        v.aval.is_static for v in (*eqn.invars, *eqn.outvars, *[
            v for e in eqn.params["jaxpr"].eqns for v in e.outvars]))


class _Seed(Record):
    """A number of a lane: where it is in what is carried, by its number; 0 along axes of lanes."""

    result: int
    place: tuple[int, ...]


class _Lanes(Record, frozen=False):
    """The coordinates of lanes, and where they are among the axes of values."""

    axes: LaneAxes
    coordinates: tuple[int, ...]

    def of(self, v: Var) -> dict[int, int]:
        """The axis of each coordinate."""
        return {c: k for k, c in self.axes.of(v).items() if c in self.coordinates}

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple([self.axes.sizes[c] for c in self.coordinates])

    def inner(self, x: Any, y: Any, v: Var, more: int = 0) -> Any:
        """The inner product of two values such as v in each lane, with `more` axes before."""
        at = self.of(v)
        product = reduce_sum(mul(x, y), (*range(more), *[
            k + more for k in range(v.aval.ndim) if k not in at.values()]))
        order = sorted(self.coordinates, key=at.__getitem__)
        return transposed_axes(product, tuple([order.index(c) for c in self.coordinates]))

    def spread(self, x: Any, v: Var) -> Any:
        """A number of each lane wherever v has that lane."""
        at = self.of(v)
        order = sorted(self.coordinates, key=at.__getitem__)
        x = transposed_axes(x, tuple([self.coordinates.index(c) for c in order]))
        return broadcast_in_dim(x, v.aval.shape, tuple([at[c] for c in order]))

    def own_shape(self, v: Var) -> tuple[int, ...]:
        """The sizes of v in a lane, one along the axes of lanes."""
        at = set(self.of(v).values())
        return static_shape([1 if k in at else n for k, n in enumerate(v.aval.shape)])

    def at(self, seed: _Seed, v: Var) -> Any:
        """One at a place of v in every lane, zero elsewhere."""
        found = full(v.aval.shape, 1, v.aval.dtype)
        for k, (i, n) in enumerate(zip(seed.place, self.own_shape(v), strict=True)):
            if n > 1:
                here = eq(broadcasted_iota("int32", v.aval.shape, k),
                          full(v.aval.shape, i, "int32"))
                found = mul(found, convert_element_type(here, v.aval.dtype))
        return found


def _lanes(body: Jaxpr, first: int, n: int, linear: set[Var]) -> _Lanes | None:
    """Lanes of a backward loop that all that depends on its carry has; None if they are unclear."""
    axes = lane_axes(body, first, n)
    found = [axes.of(v) for v in linear if v in body.invars
             or any(v in eqn.outvars for eqn in body.eqns)]
    if any(len(set(at.values())) < len(at) for at in found):
        return None
    shared = set(range(len(axes.sizes))).intersection(*[set(at.values()) for at in found])
    return _Lanes(axes, tuple(sorted(shared)))


# --- what is decided


class _Carried(Record):
    """A cotangent that a backward loop carries: its variable before and after an iteration.

    What it starts from is a function of a value of the program.
    """

    v: Var
    out: Atom
    start: Atom
    function: Callable[[Any], Any] = lambda x: x


class _Backward(Record, frozen=False):
    """What a backward loop reads: cotangents, in which it is linear, and what it multiplies by."""

    body: Jaxpr
    carried: list[_Carried]
    stacks: list[tuple[Var, Atom]]
    """Cotangents that the forward loop cannot know."""
    known: dict[Var, Element]

    @property
    def linear(self) -> list[Var]:
        return [*[c.v for c in self.carried], *[v for v, _ in self.stacks]]


def _backward(back: Equation, reads: StackElements) -> _Backward:
    """The operands of a backward loop by what the forward one can have."""
    parts = ScanParts.of(back)
    found = _Backward(back.params["jaxpr"], [], [], {})
    for v, x, out in zip(parts.v_carry, parts.carry, parts.out_carry, strict=True):
        if v is out and x not in reads.later:
            found.known[v] = reads.const(x)
        else:
            found.carried.append(_Carried(v, out, x))
    for v, x in zip(parts.v_consts, parts.consts, strict=True):
        if x in reads.later:
            found.carried.append(_Carried(v, v, x))
        else:
            found.known[v] = reads.const(x)
    for v, x in zip(parts.v_xs, parts.xs, strict=True):
        element, eqn = reads.element(x), reads.makers.get(x)
        if element is not None:
            found.known[v] = element
        elif eqn is not None and eqn.primitive is broadcast_in_dim_p \
                and 0 not in eqn.params["broadcast_dimensions"]:
            found.carried.append(_Carried(v, v, eqn.invars[0],
                                          partial(broadcast_element, eqn, 0)))
        else:
            found.stacks.append((v, x))
    return found


def _changed(jaxpr: Jaxpr, loop: Equation, back: Equation) -> Jaxpr | None:
    """The program in which the results of a backward loop are accumulated forward."""
    body: Jaxpr = back.params["jaxpr"]
    first, n = back.params["num_consts"], back.params["num_carry"]
    used = {a for eqn in jaxpr.eqns for a in eqn.invars} | set(jaxpr.outvars)
    results = [k for k, v in enumerate(back.outvars) if v in used]
    if not results or results[-1] >= n:
        return None
    makers: dict[Atom, Equation] = {v: eqn for eqn in jaxpr.eqns for v in eqn.outvars}
    reads = StackElements(loop, results_of(jaxpr, loop), makers)
    backward = _backward(back, reads)
    number = {c.v: i for i, c in enumerate(backward.carried)}
    wanted = [body.invars[first + k] for k in results]
    if len(wanted) > MOST_NUMBERS or any(v not in number for v in wanted) or any(
            v.aval.dtype.name not in ("float32", "float64") for v in backward.linear):
        return None
    try:
        linear = linear_values(body, backward.linear)
    except NotLinearError:
        return None
    lanes = _lanes(body, first, n, linear)
    if lanes is None:
        return None
    count = sum(math.prod(lanes.own_shape(v)) for v in wanted)
    recorded = sum(v.aval.nbytes for v, x in zip(body.invars[first + n:], back.invars[first + n:],
                                                 strict=True)
                   if v in backward.known and x in reads.later)
    # of what is carried follows what is recorded, see `record_less`
    recorded = min(recorded, sum(v.aval.nbytes for v in loop.outvars[:loop.params["num_carry"]]))
    stacked = sum(v.aval.nbytes for v, _ in backward.stacks)
    if count > MOST_NUMBERS or count * stacked > recorded \
            or (count - 1) * jaxpr_cost(body).flops > MOST_OPERATIONS * recorded:
        return None
    seeds = [_Seed(number[v], place) for v in wanted
             for place in itertools.product(*map(range, lanes.own_shape(v)))]
    return _Joint(jaxpr, loop, back, reads, backward, linear, lanes, seeds).program()


# --- the program


class _Joint(Record, frozen=False):
    """A loop and the transposed backward loop as one."""

    jaxpr: Jaxpr
    loop: Equation
    back: Equation
    reads: StackElements
    backward: _Backward
    linear: set[Var]
    lanes: _Lanes
    seeds: Sequence[_Seed]

    def __post_init__(self) -> None:
        self.carried, self.stacks = self.backward.carried, self.backward.stacks
        self.affine = offsets(self.backward.body, self.linear)
        inner: dict[Atom, Equation] = {
            v: eqn for eqn in self.backward.body.eqns for v in eqn.outvars}
        self.sources = {c.out for c in self.carried
                        if c.out not in self.linear and not is_zero(c.out, inner)}

    def program(self) -> Jaxpr | None:
        """The program with the joint loop, if there is one."""
        loop, back, reads = self.loop, self.back, self.reads
        p = self.loop.params
        consts, carry, xs = counted(loop.invars, p["num_consts"], p["num_carry"])
        body = self._body()
        eqns: list[Equation] = []
        walked = [inlined(lambda y, k=k: [move_axis(y, k, 0)], (x,), eqns, "stack", back.source)[0]
                  if k else x for x, k in reads.xs]
        first = inlined(lambda *_: self._first(), (), eqns, "seeds", back.source)
        outs = [Var(v.aval) for v in first]
        stacks = [Var(v.aval.strong().with_shape((p["length"], *v.aval.shape)))
                  for _ in self.seeds for v, _ in self.stacks]
        eqns.append(loop.replace(
            invars=(*consts, *reads.consts, *carry, *first, *xs, *walked),
            outvars=(*loop.outvars[:len(carry)], *outs, *loop.outvars[len(carry):], *stacks),
            params={**p, "jaxpr": body, "num_consts": len(consts) + len(reads.consts),
                    "num_carry": len(carry) + len(first)}))
        last: list[Equation] = []
        given = [*[c.start for c in self.carried], *[x for _, x in self.stacks], *outs, *stacks]
        found = inlined(self._last, given, last, "products", back.source)
        inputs = self.backward.body.invars[self.back.params["num_consts"]:]
        results = dict.fromkeys([self.carried[seed.result].v for seed in self.seeds])
        new: dict[Atom, Atom] = dict(zip([back.outvars[inputs.index(v)] for v in results], found,
                                         strict=True))
        return self._placed(eqns, last, new)

    def _placed(self, joint: Iterable[Equation], last: Iterable[Equation],
                new: Mapping[Atom, Atom]) -> Jaxpr | None:
        """The program with equations in place of both loops, after what these need; None where
        that would change the order of effects."""
        jaxpr = self.jaxpr
        needed: set[Atom] = {*self.reads.consts, *[x for x, _ in self.reads.xs]}
        start, end = jaxpr.eqns.index(self.loop), jaxpr.eqns.index(self.back)
        moved = []
        for eqn in reversed(jaxpr.eqns[start + 1:end]):
            if not needed.isdisjoint(eqn.outvars):
                moved.append(eqn)
                needed.update(eqn.invars)
        if any(map(has_effects, moved)):
            return None
        rest = [eqn for eqn in jaxpr.eqns[start + 1:end] if eqn not in moved]
        after = [eqn.replace(invars=tuple([new.get(a, a) for a in eqn.invars]))
                 for eqn in jaxpr.eqns[end + 1:]]
        return prune_jaxpr(Jaxpr(
            jaxpr.constvars, jaxpr.invars,
            (*jaxpr.eqns[:start], *reversed(moved), *joint, *rest, *last, *after),
            tuple([new.get(a, a) for a in jaxpr.outvars]), name=jaxpr.name))

    def _first(self) -> list[Any]:
        """Tangents of all that is carried, for each number, and what is added up in the loop."""
        found = []
        for seed in self.seeds:
            found += [self.lanes.at(seed, c.v) if k == seed.result else zeros(c.v.aval.strong())
                      for k, c in enumerate(self.carried)]
        return found + [zeros(a) for a in self._sums()]

    def _sums(self) -> list[ShapedArray]:
        return [self.carried[seed.result].v.aval.strong().with_shape(self.lanes.shape)
                for seed in self.seeds] if self.affine or self.sources else []

    def _last(self, *values: Any) -> list[Any]:
        """The results, of what the backward loop started from and of what the joint one made."""
        n, m, count = len(self.carried), len(self.stacks), len(self.seeds)
        start, walked, tangents, sums, collected = counted(
            values, n, m, n * count, len(self._sums()))
        makers = self.reads.makers
        found: dict[int, Any] = {}
        for j, seed in enumerate(self.seeds):
            v = self.carried[seed.result].v
            terms = [sums[j]] if sums else []
            for c, t, ct in zip(self.carried, tangents[j * n:], start, strict=False):
                if not is_zero(c.start, makers):
                    terms.append(self.lanes.inner(t, c.function(ct), c.v))
            for (own, _), t, ct in zip(self.stacks, collected[j * m:], walked, strict=False):
                terms.append(self.lanes.inner(t, ct, own, 1))
            terms = [convert_element_type(term, v.aval.dtype) for term in terms]
            result = self.lanes.spread(reduce(add, terms) if terms else zeros(
                v.aval.strong().with_shape(self.lanes.shape)), v)
            if math.prod(self.lanes.own_shape(v)) > 1:
                result = mul(result, self.lanes.at(seed, v))
            found[seed.result] = result if seed.result not in found \
                else add(found[seed.result], result)
        return list(found.values())

    def _body(self) -> Jaxpr:
        """The body of the loop with a step of the transposed one."""
        p, reads = self.loop.params, self.reads
        inner: Jaxpr = p["jaxpr"]
        nc, nk = p["num_consts"], p["num_carry"]
        v_consts, v_carry, v_xs = counted(inner.invars, nc, nk)
        size = len(self.carried)
        tangents = [c.v.aval.strong() for _ in self.seeds for c in self.carried]
        others = self._others()

        def step(*args: Any) -> list[Any]:
            consts, more, carry, given, sums, xs, walked = counted(
                args, nc, len(reads.consts), nk, len(tangents), len(self._sums()), len(v_xs))
            outs = eval_jaxpr(inner, (), *consts, *carry, *xs)
            values: dict[Any, Any] = dict(enumerate(outs))
            values.update(zip(reads.consts, more, strict=True))
            values.update(zip(reads.xs, walked, strict=True))
            needed = self.sources.union(*[eqn.invars for eqn in self.backward.body.eqns])
            env = {v: element(values) for v, element in self.backward.known.items()
                   if v in needed}
            evaluate(others, env)
            after: list[Any] = []
            collected: list[Any] = []
            for j in range(len(self.seeds)):
                cts = self._transposed(env, given[j * size:(j + 1) * size], sums, j)
                after += [_given(cts, c.v) for c in self.carried]
                collected += [_given(cts, v) for v, _ in self.stacks]
            return [*outs[:nk], *after, *sums, *outs[nk:], *collected]

        avals = [*[v.aval for v in v_consts], *[v.aval for v in reads.consts.values()],
                 *[v.aval for v in v_carry], *tangents, *self._sums(), *[v.aval for v in v_xs],
                 *[v.aval for v in reads.xs.values()]]
        return stage_body(step, avals, inner.name)

    def _others(self) -> list[Equation]:
        """The equations of the backward loop that compute what cotangents are multiplied by."""
        needed = set(self.sources)
        found: list[Equation] = []
        for eqn in reversed(self.backward.body.eqns):
            if self.linear.isdisjoint(eqn.outvars):
                if needed.isdisjoint(eqn.outvars):
                    continue
                found.append(eqn)
            needed.update([a for a in eqn.invars if a not in self.linear])
        return found[::-1]

    def _transposed(self, env: Mapping[Var, Any], tangents: Sequence[Any], totals: list[Any],
                    j: int) -> dict[Var, Any]:
        """Tangents after an iteration; what it adds to the result is added to a total."""
        cts: dict[Var, Any] = {}

        def add_product(v: Var, ct: Any, x: Any) -> None:
            term = self.lanes.inner(ct, x, v)
            totals[j] = add(totals[j], convert_element_type(term, get_aval(totals[j]).dtype))

        for c, t in zip(self.carried, tangents, strict=True):
            if c.out in self.linear:
                assert isinstance(c.out, Var)
                cts[c.out] = t if c.out not in cts else add(cts[c.out], t)
            elif c.out in self.sources:
                add_product(c.v, t, read(c.out, env))

        def visit(eqn: Equation, found: list[Any]) -> None:
            if eqn in self.affine:
                for v, ct, x in zip(eqn.outvars, found, offset(eqn, self.linear, env), strict=True):
                    if ct is not None and v in self.linear:
                        add_product(v, ct, x)

        transpose(self.backward.body.eqns, self.linear, env, cts, visit)
        return cts


def _given(cts: Mapping[Var, Any], v: Var) -> Any:
    return zeros(v.aval.strong()) if cts.get(v) is None else cts[v]
