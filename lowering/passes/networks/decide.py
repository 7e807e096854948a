"""Which values are materialised, by what it costs.

Expansions with a contraction in common are decided together. For a set of expansions that are
materialised, each of their contractions is computed either by its equation, from those values, or
by contracting the networks of the others; the set of least estimated time is taken, and the program
stays as it is where nothing is gained.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from functrans.core.dtypes import computed_dtype
from functrans.core.jaxpr import Equation, Var
from functrans.core.source import Source
from functrans.lowering.passes.networks.contract import Plan, kept_indices
from functrans.lowering.passes.networks.cost_estimate import CostEstimate, in_lanes, magnitude
from functrans.lowering.passes.networks.expansions import Expansion
from functrans.lowering.passes.networks.forms import Analysis, Contraction
from functrans.lowering.passes.networks.network import (
    Group,
    Names,
    NetworkArray,
    NetworkIndex,
    NetworkTerm,
    OneHot,
    flat,
    renamed,
    with_fresh_indices,
)
from functrans.lowering.passes.networks.paths import best_path
from functrans.lowering.passes.networks.selections import DenseNetwork, without_selections
from functrans.primitives.broadcast import broadcast_in_dim_p, transpose_p
from functrans.primitives.convert import convert_element_type_p
from functrans.primitives.dot import dot_general_p
from functrans.primitives.shape import concatenate_p, pad_p, reshape_p, slice_p

__all__ = ["Decision", "Replacement", "decide"]

GAIN = 0.9  # of the time; below the error of the model
MOST_TRIED = 4  # expansions of which every subset is tried


class Decision(NamedTuple):
    """How the reductions of some values are computed, and what each strategy costs."""

    values: tuple[str, ...]
    source: Source | None
    reductions: tuple[str, ...]
    is_contracted: bool
    contracted: CostEstimate | None
    materialised: CostEstimate

    def __str__(self) -> str:
        where = f"{self.source.place}: " if self.source else ""
        what = f"{where}{' and '.join(self.values)} for {', '.join(self.reductions)}"
        strategies = f"materialised: {self.materialised}"
        if self.contracted is not None:
            strategies = f"from factors: {self.contracted}; {strategies}"
        verdict = "never made" if self.is_contracted else "materialised"
        return f"{what}: {verdict} ({strategies})"


class Replacement(NamedTuple):
    """A contraction and the plans of its terms."""

    contraction: Contraction
    plans: tuple[Plan, ...]


class Strategy(NamedTuple):
    """How to compute a contraction: by plans, or by its equation where there are none."""

    plans: tuple[Plan, ...] | None
    cost_estimate: CostEstimate


def decide(a: Analysis, eager: bool, collision: float
           ) -> tuple[list[Replacement], list[Decision]]:
    """What to contract; `eager` contracts all that can be, `collision` as in `cost_estimate`."""
    replacements: list[Replacement] = []
    decisions: list[Decision] = []
    for expansions, contractions in _components(a):
        best = _Component(a, expansions, contractions, collision).best(eager)
        replacements += best[0]
        decisions.append(best[1])
    return replacements, decisions


def _components(a: Analysis) -> list[tuple[list[Var], list[Contraction]]]:
    """Expansions with a contraction in common, and the contractions of each such set."""
    owner: dict[Var, int] = {}
    members: dict[int, list[Var]] = {}
    for contraction in a.contractions:
        groups = {owner[s] for s in contraction.form.expansions if s in owner}
        new = [s for s in a.expansions if s in contraction.form.expansions and s not in owner]
        target = min(groups, default=len(members))
        joined = [s for g in sorted(groups) for s in members.pop(g)] + new
        members[target] = joined
        owner.update(dict.fromkeys(joined, target))
    return [(expansions, [s for s in a.contractions if owner[next(iter(s.form.expansions))] == key])
            for key, expansions in members.items()]


class _Component:
    """Some expansions and all contractions in which they occur."""

    def __init__(self, a: Analysis, expansions: list[Var], contractions: list[Contraction],
                 collision: float) -> None:
        self.a, self.expansions, self.contractions = a, expansions, contractions
        self.collision = collision
        self.forced = frozenset(s for s in expansions if s in a.forced)
        self._strategies: dict[tuple[int, frozenset[Var]], Strategy | None] = {}

    def best(self, eager: bool) -> tuple[list[Replacement], Decision]:
        everything = frozenset(self.expansions)
        plain, cost_estimate = self._cost(everything, direct=True)
        assert plain is not None
        found = []
        for made in self._candidates():
            strategies, cost = self._cost(made)
            if strategies is not None and any(w.plans is not None for w in strategies):
                found.append((made, strategies, cost))
        # eagerly, as few values are materialised as can be
        chosen = min(found, key=lambda x: (len(x[0]) if eager else 0, x[2].time), default=None)
        taken = chosen is not None and (eager or chosen[2].time < GAIN * cost_estimate.time)
        replacements = []
        if chosen is not None and taken:
            replacements = [Replacement(contraction, s.plans)
                            for contraction, s in zip(self.contractions, chosen[1], strict=True)
                            if s.plans is not None]
        decision = Decision(
            tuple([str(s.aval) for s in self.expansions]), self.contractions[0].eqn.source,
            tuple([f"{s.eqn.primitive.name} {s.eqn.outvars[0].aval}" for s in self.contractions]),
            bool(replacements), None if chosen is None else chosen[2], cost_estimate)
        return replacements, decision

    def _candidates(self) -> Iterable[frozenset[Var]]:
        """Sets of expansions to materialise."""
        free = [s for s in self.expansions if s not in self.forced]
        if len(free) <= MOST_TRIED:
            for n in range(len(free) + 1):
                for some in itertools.combinations(free, n):
                    yield self.forced | frozenset(some)
            return
        yield self.forced
        yield frozenset(self.expansions)
        chosen = self.forced
        best = self._cost(chosen)[1].time
        for s in free:  # one after the other, where that helps
            tried = chosen | {s}
            yield tried
            time = self._cost(tried)[1].time
            if time < best:
                chosen, best = tried, time

    def _cost(self, materialised: frozenset[Var], direct: bool = False
              ) -> tuple[list[Strategy] | None, CostEstimate]:
        strategies: list[Strategy] = []
        total = CostEstimate()
        made: set[Var] = set()
        steps: set[object] = set()
        for k, contraction in enumerate(self.contractions):
            strategy = self._direct(contraction) if direct else \
                self._strategy(k, contraction, materialised)
            if strategy is None:
                return None, CostEstimate(flops=float("inf"))
            strategies.append(strategy)
            if strategy.plans is None:
                total = total.then(strategy.cost_estimate)
            else:
                total = total.then(_cost_of_plans(contraction, strategy.plans, steps,
                                                  self.collision))
                made |= contraction.form.expansions & materialised
        for s in materialised:
            expansion = self.a.expansions[s]
            # products of two numbers are made where they are read
            if s not in self.forced and (not expansion.is_product or s in made):
                total = total.alongside(expansion_cost(expansion))
            elif s in self.forced:
                total = total._replace(memory=total.memory + s.aval.nbytes)
        return strategies, total

    def _strategy(self, k: int, contraction: Contraction,
             materialised: frozenset[Var]) -> Strategy | None:
        own = materialised & contraction.form.expansions
        if (k, own) not in self._strategies:
            contracted = self._contracted(contraction, own)
            if own == contraction.form.expansions:
                direct = self._direct(contraction)
                if contracted is None or direct.cost_estimate.time <= contracted.cost_estimate.time:
                    contracted = direct
            self._strategies[k, own] = contracted
        return self._strategies[k, own]

    # --------------------------------------------------------------------------- as it is

    def _direct(self, contraction: Contraction) -> Strategy:
        """The operations between the expansions and the contraction, in one kernel."""
        seen: set[Equation] = set()
        todo = [contraction.eqn]
        cost_estimate = CostEstimate(steps=1)
        for eqn in todo:
            out = eqn.outvars[0].aval
            if eqn is contraction.eqn:
                size = max(in_lanes(x.aval.shape) for x in eqn.invars)
                if eqn.primitive is dot_general_p:
                    cost = eqn.primitive.cost(*(x.aval for x in eqn.invars), **eqn.params)
                    cost_estimate = cost_estimate.then(CostEstimate(flops=_number(cost.flops)))
                    for operand in set(contraction.operands) - self.a.expansions.keys():
                        cost_estimate = cost_estimate.then(_stored(operand))
                else:
                    cost_estimate = cost_estimate.then(CostEstimate(elements=size))
                cost_estimate = cost_estimate.then(CostEstimate(moved=magnitude(out.shape)
                                                                * out.dtype.itemsize))
            elif eqn.primitive is dot_general_p:
                cost = eqn.primitive.cost(*(x.aval for x in eqn.invars), **eqn.params)
                cost_estimate = cost_estimate.then(CostEstimate(flops=_number(cost.flops)))
                cost_estimate = cost_estimate.then(_stored(eqn.outvars[0]))
            elif eqn.primitive not in FREE:
                cost_estimate = cost_estimate.then(CostEstimate(elements=in_lanes(out.shape)))
            for x in dict.fromkeys(eqn.invars):
                maker = self.a.makers.get(x)
                expansion = self.a.expansions.get(x)
                if expansion is not None:
                    fused = expansion.is_product and x not in self.forced
                    assert isinstance(x, Var)
                    bytes_ = sum(_bytes(o) for o in expansion.operands) if fused else _bytes(x)
                    cost_estimate = cost_estimate.then(CostEstimate(
                        elements=in_lanes(x.aval.shape) if fused else 0.0, moved=bytes_))
                    if fused and eqn.primitive is dot_general_p:
                        cost_estimate = cost_estimate.then(_stored(x))
                elif x in self.a.forms and maker is not None:
                    if maker not in seen:
                        seen.add(maker)
                        todo.append(maker)
                elif maker is None or maker.primitive is not broadcast_in_dim_p:
                    cost_estimate = cost_estimate.then(CostEstimate(moved=_bytes(x)))
        return Strategy(None, cost_estimate)

    # --------------------------------------------------------------------------- contracted

    def _contracted(self, contraction: Contraction,
                    materialised: frozenset[Var]) -> Strategy | None:
        form = contraction.form
        inner = computed_dtype(form.dtype)
        outputs = flat(form.axes)
        plans: list[Plan] = []
        for term in form.terms:
            expanded = self._expanded(term, form.axes, materialised)
            if expanded is None:
                return None
            dense = without_selections(expanded, outputs, inner)
            if dense is None:
                return None
            if dense.coefficient == 0.0:
                continue
            kept = kept_indices(dense.placed, outputs)
            path = best_path(dense.arrays, kept, inner.itemsize)
            if path is None and dense.arrays:
                return None
            plans.append((dense, path))
        return Strategy(tuple(plans), _cost_of_plans(contraction, plans, set(), self.collision))

    def _expanded(self, term: NetworkTerm, axes: Sequence[Group], materialised: frozenset[Var]
                  ) -> NetworkTerm | None:
        """The term with the networks of its expansions that are not materialised."""
        expansions = [f for f in term.factors if isinstance(f, NetworkArray)
                      and f.source in self.a.expansions
                      and f.source not in materialised]
        factors = [f for f in term.factors if f not in expansions]
        coefficient = term.coefficient
        outputs = set(flat(axes))
        summed = {i for f in expansions for i in f.indices} - outputs
        for k, f in enumerate(expansions):
            expansion = self.a.expansions[f.source]  # type: ignore[index]
            others = [*factors, *expansions[k + 1:]]
            if expansion.conv is not None:
                group = f.axes[expansion.conv.eqn.params["group_axes"][2]]
                if group and not outputs & set(group):
                    along = [o for o in others if set(o.indices) & set(group)]
                    arrays = [o for o in along if isinstance(o, NetworkArray)]
                    total = expansion.conv.summed(arrays, f.axes) if len(arrays) == len(along) \
                        and not any(o in expansions for o in arrays) else None
                    if total is not None:
                        factors = [o for o in factors if o not in along]
                        factors.append(total)
                        summed -= set(group)
                        continue
            if expansion.term is None:
                return None
            inside = _placed(expansion, f)
            if inside is None:
                return None
            coefficient *= inside.coefficient
            factors += inside.factors
        # along an axis that no network varies along, the sum is a product with its size
        gone = [i.size for i in summed - {i for f in factors for i in f.indices}]
        if not all(isinstance(n, int) for n in gone):
            return None
        return NetworkTerm(coefficient * magnitude(gone), tuple(factors))


FREE = frozenset((broadcast_in_dim_p, transpose_p, reshape_p, convert_element_type_p, pad_p,
                  concatenate_p, slice_p))


def _placed(expansion: Expansion, f: NetworkArray) -> NetworkTerm | None:
    """The network of an expansion with the names of the axes of a factor."""
    assert expansion.term is not None
    names: dict[NetworkIndex, Group] = {}
    for group, axis in zip(expansion.axes, f.axes, strict=True):
        if group:
            names[group[0]] = axis
    found: Names = names
    return renamed(with_fresh_indices(expansion.term, expansion.axes), found)


def _cost_of_plans(contraction: Contraction, plans: Sequence[Plan], known: set[object],
                   collision: float) -> CostEstimate:
    """What the plans of a contraction cost; steps that are `known`, to which it adds, cost once."""
    cost_estimate = CostEstimate()
    for dense, path in plans:
        for step in path.steps() if path is not None else ():
            leaves = step.leaves()
            key = (tuple(sorted([id(dense.arrays[k].source) for k in leaves])),
                   tuple(sorted([magnitude((i.size,)) for i in step.kept])))
            if key not in known:
                known.add(key)
                cost_estimate = cost_estimate.alongside(step.own) if len(
                    leaves) > 1 else cost_estimate.then(step.own)
        out = contraction.eqn.outvars[0]
        size = magnitude(out.aval.shape)
        cost_estimate = cost_estimate.then(CostEstimate(0.0, size))
        for f in dense.placed:
            placed = (tuple(sorted([id(a.source) for a in dense.arrays])), id(f.places)
                      if isinstance(f, OneHot) else f.start)
            if placed not in known:
                known.add(placed)
                cost_estimate = cost_estimate.then(CostEstimate(0.0, size, _bytes(out), 1))
                if isinstance(f, OneHot):
                    is_read = path is None or path.cost_estimate.time > 0  # by its last step
                    cost_estimate = cost_estimate.then(_cost_of_updates(
                        contraction, dense, f, is_read, collision))
    return cost_estimate


def _cost_of_updates(contraction: Contraction, dense: DenseNetwork, one_hot: OneHot,
                     is_read: bool, collision: float) -> CostEstimate:
    """What it costs to read the rows that are scattered, and that those at one place wait."""
    outputs = set(flat(contraction.form.axes))
    placed = [f for f in dense.placed if isinstance(f, OneHot)]
    whole = {i for f in placed for i in f.where} | outputs - {f.outer for f in placed}
    elements = 0.0 if is_read else magnitude([i.size for i in whole]) / len(placed)
    rows = magnitude([i.size for i in set(one_hot.where) - outputs])
    places = magnitude([f.outer.size for f in placed])
    itemsize = contraction.eqn.outvars[0].aval.dtype.itemsize
    return CostEstimate(0.0, elements, itemsize * elements, collision * rows / places)


def expansion_cost(expansion: Expansion) -> CostEstimate:
    """What it costs to materialise an expansion."""
    nbytes = _bytes(expansion.var)
    moved = nbytes + sum(_bytes(o) for o in expansion.operands)
    if expansion.conv is not None:
        return CostEstimate(expansion.conv.flops, 0.0, moved, 1, nbytes)
    assert expansion.term is not None
    whole = magnitude([i.size for i in {i for f in expansion.term.factors
                                        if isinstance(f, NetworkArray)
                                        for i in f.indices}])
    if expansion.flops:
        return CostEstimate(expansion.flops, 0.0, moved, 1, nbytes)
    if all(isinstance(f, OneHot) for f in expansion.term.factors):
        whole = magnitude(expansion.var.aval.shape)
    return CostEstimate(0.0, whole, moved, 1, nbytes)


def _stored(x: Var) -> CostEstimate:
    """A value that is written and read again."""
    return CostEstimate(moved=2 * _bytes(x), steps=1, memory=_bytes(x))


def _bytes(x: object) -> float:
    aval = x.aval  # type: ignore[attr-defined]
    return magnitude(aval.shape) * float(aval.dtype.itemsize)


def _number(size: object) -> float:
    return float(size) if isinstance(size, (int, float)) else 0.0
