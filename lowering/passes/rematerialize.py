"""Values that live long are kept, or rematerialised where they are read at last: by a plan.

A gradient reads backwards what the program computed forwards. Linearization wrote down which values
cross; of them many are functions of few. At the position of the program where most bytes are needed
later, the values to keep are a minimum cut: keeping one costs its bytes, computing one again its
time (He and Yu, "Transcending runtime-memory tradeoffs in checkpointing by being fusion aware",
2023). What is computed again comes where it is first read, behind a barrier that lets nothing of it
be computed before. Then follows the next position that is as full, of other values.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import field
from types import MappingProxyType
from typing import Final

from functrans.core.avals import ShapedArray
from functrans.core.jaxpr import Atom, Equation, Jaxpr, Literal, Var
from functrans.core.prune import prune_jaxpr
from functrans.core.record import Record
from functrans.core.source import Source
from functrans.lowering.passes.minimum_cut import FlowNetwork
from functrans.primitives.barrier import optimization_barrier_p
from functrans.primitives.base import constant_p

__all__ = ["Prices", "Residual", "rematerialize"]

MOST_CUTS: Final = 8
SHORT: Final = 2
"""Steps from a value to its last reader at most of which nothing is gained: it is in a cache."""
FAR: Final = 12
"""Steps between the first and the last reader of a value that is computed again, at most: sums that
a residual stream goes through would be computed all at once, and wait as those that are kept."""
NEAR: Final = 4
"""Steps of a chain before one of its operands is read, at most: two in gradients of attention."""
HIDDEN_TIME: Final = 1.0
"""Of what is computed with the kernel that hides it."""
NOWHERE: Final = float(1 << 50)
"""Bytes of what is not in memory, where segments end."""
NONE_EARLY: Final[Mapping[int, Sequence[Var]]] = MappingProxyType({})
LEAST_TOLD: Final = 1 << 20
"""Bytes of values that are worth a line of an explanation."""


class Prices(Record):
    """What it costs to keep values and to compute them again, in nanoseconds.

    `time` is of computing an equation again, infinite where that may not be, 0 where it is index
    arithmetic; `byte` of keeping a byte, which is written, read, and in memory meanwhile. A `step`
    is an equation that is not fused with others. Positions that `least_bytes` cross are looked at;
    at one of them a change saves `least_saved` of these or more. What takes `inlined` an element at
    most is computed by its readers anyway. With `segments` values are kept at so many positions
    before it, and all others are computed again, segment by segment (Chen et al., "Training deep
    nets with sublinear memory cost", 2016). What is kept by these prices is decided anew by those
    that come `then`; `any_time` is of all that may be computed again, products too. Values that are
    `hidden` are never in memory: they stay as they are, but that segments compute them again as a
    whole. Of all its time a program has `spare` for products that are computed again so that the
    fullest step has less in memory.
    """

    time: Callable[[Equation], float]
    byte: float
    step: Callable[[Equation], bool]
    least_bytes: int
    least_saved: float
    inlined: float
    segments: int = 0
    then: Prices | None = None
    any_time: Callable[[Equation], float] | None = None
    hidden: Callable[[Jaxpr], frozenset[Var]] = field(default=lambda _: frozenset())
    spare: float = 0.0


class Residual(Record):
    """A value that is needed late: whether it is computed again, and what either costs."""

    aval: ShapedArray
    operation: str
    source: Source | None
    is_again: bool
    time: float
    cost: float
    is_spared: bool = False
    """Whether it is computed again in the spare time of the program."""

    def __str__(self) -> str:
        what = f"{self.operation} {self.aval}"
        if self.time == math.inf:
            return f"{what} is kept for later: computed again it would be a step of its own"
        if self.is_spared:
            return f"{what} is computed again later, in {self.time / 1e6:.2g} ms that are to spare"
        verdict = "computed again later, not kept" if self.is_again else "kept for later"
        return (f"{what} is {verdict}: keeping it costs {self.cost / 1e6:.2g} ms, computing it "
                f"again from its operands {self.time / 1e6:.2g} ms")


def rematerialize(jaxpr: Jaxpr, prices: Prices, told: list[Residual] | None = None) -> Jaxpr:
    """The program that keeps the least for later; `jaxpr` itself where that gains nothing.

    What was decided on large values is appended to `told`. A program is planned once.
    """
    values = [v for eqn in jaxpr.eqns for v in eqn.outvars]
    if any(map(_is_ours, jaxpr.eqns)) or not all(v.aval.is_static for v in values) \
            or sum(map(_nbytes, values)) < prices.least_bytes:
        return jaxpr
    found = _planned(jaxpr, prices, told)
    if prices.then is not None:
        return _planned(found, prices.then, told)
    return _with_spare_time(found, prices, told) if prices.spare else found


def _with_spare_time(jaxpr: Jaxpr, prices: Prices, told: list[Residual] | None) -> Jaxpr:
    """The program that computes products again as far as it has time to spare.

    Each costs more than the memory of its result, but all of them little of the program's time.
    """
    program = _Program(jaxpr, prices)
    nbytes, position = program.fullest(())
    if nbytes < prices.least_bytes:
        return jaxpr
    return program.without_waiting_products(position, told)


def _planned(jaxpr: Jaxpr, prices: Prices, told: list[Residual] | None) -> Jaxpr:
    examined: set[Var] = set()
    fullest = 0.0
    for _ in range(1 if prices.segments else MOST_CUTS):
        program = _Program(jaxpr, prices)
        nbytes, position = program.fullest(examined)
        fullest = max(fullest, nbytes)
        if nbytes < max(prices.least_bytes, fullest / 8):
            break
        examined.update(program.crossing(position))
        changed = program.cut_at(position, fullest / 16, told)
        if changed is not None:
            examined.update(v for eqn in changed.eqns for v in eqn.outvars
                            if v not in program.made)
            jaxpr = changed
    return jaxpr


class _Program:
    """A program with what makes each value, and the first and the last equation that need it."""

    def __init__(self, jaxpr: Jaxpr, prices: Prices) -> None:
        self.jaxpr, self.prices = jaxpr, prices
        self.all_hidden = hidden = prices.hidden(jaxpr)
        self.hidden = hidden if prices.segments else frozenset[Var]()
        self.times = [HIDDEN_TIME if self.hidden.issuperset(eqn.outvars) else prices.time(eqn)
                      for eqn in jaxpr.eqns]
        self.steps = [k for k, eqn in enumerate(jaxpr.eqns)
                      if prices.step(eqn) and not hidden.issuperset(eqn.outvars)]
        self.made: dict[Var, int] = {v: k for k, eqn in enumerate(jaxpr.eqns)
                                     for v in eqn.outvars}
        self.given = {v for v in (*jaxpr.invars, *jaxpr.constvars, *jaxpr.outvars)
                      if isinstance(v, Var)}
        self.given |= {eqn.outvars[0] for eqn in jaxpr.eqns if eqn.primitive is constant_p}
        self.given |= hidden - self.hidden
        # what is behind barriers of earlier cuts is what is before them
        self.behind: dict[Var, Var] = {}
        for eqn in jaxpr.eqns:
            if _is_ours(eqn):
                self.behind.update((v, a) for v, a in zip(
                    eqn.outvars[:-1], eqn.invars[:-1], strict=True) if isinstance(a, Var))
        self.last = self._last_readers()
        steps = set(self.steps)
        self.number_of_steps = [0]  # before each equation
        for k in range(len(jaxpr.eqns)):
            self.number_of_steps.append(self.number_of_steps[-1] + (k in steps))

    def _last_readers(self) -> dict[Var, int]:
        """The last equation that reads each value; who reads a view reads what is viewed."""
        last: dict[Var, int] = {}
        for k in reversed(range(len(self.jaxpr.eqns))):
            eqn = self.jaxpr.eqns[k]
            if _is_ours(eqn):
                pairs = list(zip(eqn.outvars[:-1], eqn.invars[:-1], strict=True))
            elif self._is_view(k):
                pairs = [(v, a) for v in eqn.outvars for a in eqn.invars]
            else:
                pairs = []
                last.update((a, k) for a in eqn.invars if isinstance(a, Var) and a not in last)
            for v, a in pairs:
                if isinstance(a, Var):
                    last[a] = max(last.get(a, k), last.get(v, k))
        return last

    def _is_view(self, k: int) -> bool:
        return self.times[k] == 0 and bool(self._operands(k))

    def _operands(self, k: int, position: int | None = None) -> list[Var]:
        """What an equation reads, also through barriers, if these are before a position."""
        eqn = self.jaxpr.eqns[k]
        read = eqn.invars[:-1] if _is_ours(eqn) else eqn.invars
        return [self._through(a, position) for a in read if isinstance(a, Var)]

    def _through(self, a: Var, position: int | None) -> Var:
        while a in self.behind and (position is None or self.made[a] < position):
            a = self.behind[a]
        return a

    def _is_long(self, v: Var) -> bool:
        """Whether a value waits in memory for its last reader."""
        first, last = self.made[v] + 1, self.last.get(v, 0)
        return last > first and self.number_of_steps[last] - self.number_of_steps[first] > SHORT

    def fullest(self, examined: Iterable[Var]) -> tuple[float, int]:
        """The bytes of other values than those `examined` that are needed before and after a step,
        and the step where these are most."""
        change = [0.0] * (len(self.jaxpr.eqns) + 1)
        left = self.made.keys() - set(examined) - self.given
        for v in left:
            k = self.made[v]
            if v in self.last and not self._is_view(k) and self._is_long(v):
                change[k + 1] += _nbytes(v)
                change[self.last[v] + 1] -= _nbytes(v)
        best, position, now, steps = 0.0, 0, 0.0, set(self.steps)
        for k in range(len(self.jaxpr.eqns)):
            now += change[k]
            if now > best and k in steps:
                best, position = now, k
        return best, position

    def crossing(self, position: int) -> list[Var]:
        """The values that are made before a position and needed after it."""
        return [v for v, k in self.made.items() if k < position <= self.last.get(v, -1)]

    def cut_at(self, position: int, least: float, told: list[Residual] | None) -> Jaxpr | None:
        """The program that keeps less across a position; None where that is not so many bytes."""
        late = range(position, len(self.jaxpr.eqns))
        eqns = self.jaxpr.eqns
        read = dict.fromkeys(a for k in late for a in self._operands(k, position))
        wanted = [v for v in read if self.made.get(v, position) < position
                  and v not in self.given and self._is_long(v)]
        # what a user's checkpoint keeps
        held = {a for k in late if eqns[k].primitive is optimization_barrier_p
                and not _is_ours(eqns[k]) for a in self._operands(k)}
        held |= self._at_segments(position)
        kept, again = self._kept(wanted, held, position)
        before, after = self._bytes(self._stored(wanted)), self._bytes(kept)
        if not again or before - after < max(least, self.prices.least_saved * before):
            return None
        if told is not None:
            told += [self._residual(v, self.made[v] in again)
                     for v in dict.fromkeys((*wanted, *kept))
                     if v in self.made and v not in self.given and _nbytes(v) >= LEAST_TOLD
                     and self.times[self.made[v]] > 0]
        return self._rewritten(position, again)

    def without_waiting_products(self, position: int, told: list[Residual] | None) -> Jaxpr:
        """The program that computes products again which wait longest at a position, in its spare
        time, where their operands are in memory anyway."""
        any_time = self.prices.any_time or self.prices.time
        times = [any_time(eqn) for eqn in self.jaxpr.eqns]
        left = self.prices.spare * sum([t for t in times if t < math.inf])
        readers = self._late_readers(position)
        found: list[Var] = []
        for v in sorted(readers, key=lambda v: -readers[v][0]):
            k = self.made[v]
            first, last = readers[v]
            needed = [self._viewed(a) for a in self._operands(k)]
            if self.times[k] == math.inf and 0 < times[k] <= left and self._is_long(v) \
                    and self.number_of_steps[last] - self.number_of_steps[first] <= FAR \
                    and all(a in self.given or (a not in found and self.made.get(
                        a, position) < position and self.last[a] >= first) for a in needed):
                left -= times[k]
                found.append(v)
        if not found:
            return self.jaxpr
        if told is not None:
            told += [Residual(v.aval, self.jaxpr.eqns[k].primitive.name, self.jaxpr.eqns[k].source,
                              True, times[k], _nbytes(v) * self.prices.byte, is_spared=True)
                     for v, k in ((v, self.made[v]) for v in found)]
        again = {self.made[v] for v in found}
        again |= {k for k in range(position) if self._is_view(k)
                  and self._viewed(self.jaxpr.eqns[k].outvars[0]) in found}
        early: dict[int, list[Var]] = {}
        for v in found:
            early.setdefault(self._before_others(readers[v][0], position), []).append(v)
        return self._rewritten(position, again, early)

    def _before_others(self, k: int, position: int) -> int:
        """Where to compute a value again that an equation reads at first: before what an earlier
        cut computes again, if that has just begun, since the steps of a chain follow one another.
        """
        steps = self.number_of_steps
        return next((j for j in range(k, position - 1, -1) if _is_ours(self.jaxpr.eqns[j])
                     and steps[k] - steps[j] <= NEAR), k)

    def _late_readers(self, position: int) -> dict[Var, tuple[int, int]]:
        """The first and the last reader from a position on of each value that is made before it and
        may be made again."""
        eqns = self.jaxpr.eqns
        found: dict[Var, tuple[int, int]] = {}
        held: set[Var] = set()  # by the user, or read on the way through a barrier of another cut
        for k in range(position, len(eqns)):
            for a in self._operands(k, position):
                v = self._viewed(a)
                if self.made.get(v, position) < position and v not in self.given:
                    found[v] = found.get(v, (k, k))[0], k
                    if eqns[k].primitive is optimization_barrier_p and not _is_ours(eqns[k]):
                        held.add(v)
        return {v: (first, self.last[v]) for v, (first, _) in found.items()
                if v not in held and v not in self.all_hidden}

    def _viewed(self, a: Var) -> Var:
        """What a view is of, also through barriers."""
        while True:
            a = self._through(a, None)
            if a not in self.made or not self._is_view(self.made[a]):
                return a
            a = self._operands(self.made[a])[0]

    def _stored(self, wanted: Collection[Var]) -> list[Var]:
        """The wanted values that readers would not compute from others of them anyway."""
        known = set(wanted)
        found = []
        for v in wanted:
            time, seen, waiting = 0.0, {v}, [self.made[v]]
            while waiting and time <= self.prices.inlined * v.aval.size:
                k = waiting.pop()
                time += self.times[k]
                for a in self._operands(k):
                    if a not in seen and a not in known and a not in self.given:
                        seen.add(a)
                        waiting.append(self.made[a])
            if time > self.prices.inlined * v.aval.size or self._is_view(self.made[v]):
                found.append(v)
        return found

    def _kept(self, wanted: Sequence[Var], held: Collection[Var],
              position: int) -> tuple[list[Var], set[int]]:
        """The values to keep, and the equations that compute the others from them."""
        held = set(held)
        while True:
            kept = self._cut(wanted, held)
            again = self._again(wanted, kept)
            far = set() if self.prices.segments else self._far_apart(again, position)
            if far <= held:
                return kept, again
            held |= far

    def _far_apart(self, again: Collection[int], position: int) -> set[Var]:
        """The values of some equations that would wait for readers far from the first."""
        first: dict[int, int] = {}
        last: dict[int, int] = {}
        for k in range(position, len(self.jaxpr.eqns)):
            step = self.number_of_steps[k]
            waiting = [self.made[a] for a in self._operands(k, position) if a in self.made]
            while waiting:
                e = waiting.pop()
                if e not in again:
                    continue
                last[e] = step
                if e not in first:
                    first[e] = step
                    waiting += [self.made[a] for a in self._operands(e) if a in self.made]
                elif self._is_view(e):
                    waiting += [self.made[a] for a in self._operands(e) if a in self.made]
        return {v for e in again if last[e] - first[e] > FAR and not self._is_view(e)
                for v in self.jaxpr.eqns[e].outvars}

    def _residual(self, v: Var, is_again: bool) -> Residual:
        k = self.made[v]
        eqn = self.jaxpr.eqns[k]
        return Residual(v.aval, eqn.primitive.name, eqn.source, is_again, self.times[k],
                        _nbytes(v) * self.prices.byte)

    def _at_segments(self, position: int) -> set[Var]:
        """What the equations before a position need at the ends of segments."""
        steps = [k for k in self.steps if k < position]
        count = min(self.prices.segments, len(steps) // 2)
        if not count:
            return set()
        last: dict[Var, int] = {}  # readers before the position
        for k in range(position):
            last.update(dict.fromkeys(self._operands(k), k))
        change = [0.0] * (position + 1)
        for v, k in last.items():
            if v in self.made and v not in self.given and not self._is_view(self.made[v]):
                nbytes = NOWHERE if v in self.hidden else _nbytes(v)
                change[self.made[v] + 1] += nbytes
                change[k + 1] -= nbytes
        live = [0.0]
        for k in range(position):
            live.append(live[-1] + change[k + 1])
        held: set[Var] = set()
        length = len(steps) / (count + 1)
        for n in range(1, count + 1):
            near = steps[round((n - 0.5) * length):round((n + 0.5) * length)]
            at = min(near, key=lambda k: live[k], default=0)
            held.update(v for v, k in last.items()
                        if v in self.made and self.made[v] < at <= k and v not in self.hidden)
        return held

    def _bytes(self, values: Iterable[Var]) -> float:
        """What some values take in memory, views of one once."""
        bases = set()
        for v in values:
            while v in self.made and self._is_view(self.made[v]):
                v = self._operands(self.made[v])[0]
            bases.add(v)
        return sum([_nbytes(v) for v in bases if v not in self.given])

    def _cut(self, wanted: Sequence[Var], held: Collection[Var]) -> list[Var]:
        """The values to keep: of least cost with what must be computed again from them.

        Those that are `held` are kept whatever it costs.
        """
        network = FlowNetwork()
        given = self.given
        seen: set[Var] = set(wanted)
        waiting = list(wanted)
        for v in wanted:
            network.add((v, 1), "late", math.inf)
        while waiting:
            v = waiting.pop()
            is_free = v in given or v in held
            network.add((v, 0), (v, 1), 0.0 if is_free else math.inf if v in self.hidden
                        else _nbytes(v) * self.prices.byte)
            made = self.made.get(v)
            time = math.inf if made is None or is_free else self.times[made]
            network.add("early", (v, 0), time)
            if made is None or time == math.inf:
                continue
            for a in self._operands(made):
                network.add((a, 1), (v, 0), math.inf)
                if a not in seen:
                    seen.add(a)
                    waiting.append(a)
        cut = network.minimum_cut("early", "late")
        return [a[0] for a, b in cut if a != "early" and isinstance(a, tuple)]

    def _again(self, wanted: Iterable[Var], kept: Iterable[Var]) -> set[int]:
        """The equations that compute the wanted values from those that are kept, by number."""
        known = set(kept) | self.given
        found: set[int] = set()
        waiting = [v for v in wanted if v not in known]
        while waiting:
            k = self.made[waiting.pop()]
            if k not in found:
                found.add(k)
                waiting += [a for a in self._operands(k) if a not in known]
        return found

    def _rewritten(self, position: int, again: set[int],
                   early: Mapping[int, Sequence[Var]] = NONE_EARLY) -> Jaxpr:
        """The program that computes some equations again where they are read at first, or `early`:
        before the equations of these numbers."""
        eqns = list(self.jaxpr.eqns[:position])
        env: dict[Var, Var] = {}
        # what kernels know: a barrier of others would be the host's
        steps = {k for k in self.steps
                 if self.jaxpr.eqns[k].outvars[0].aval.dtype.kind in "biuf"
                 and self.all_hidden.isdisjoint(self.jaxpr.eqns[k].invars)}
        first = next((self.jaxpr.eqns[k] for k in reversed(range(position))
                      if k in steps and k not in again), None)
        for k, eqn in enumerate(self.jaxpr.eqns[position:], position):
            operands = self._operands(k, position)
            missing = [a for a in (*early.get(k, ()), *operands) if a not in env
                       and self.made.get(a, position) in again]
            if missing:
                eqns += self._computed_again(missing, again, env, first)
            if any(a in env for a in operands):
                eqn = eqn.replace(invars=self._renamed(eqn.invars, env, position))
            eqns.append(eqn)
            if k in steps:
                first = eqn
        old = self.jaxpr
        return prune_jaxpr(Jaxpr(old.constvars, old.invars, tuple(eqns), old.outvars,
                                 name=old.name))

    def _computed_again(self, missing: Sequence[Var], again: set[int], env: dict[Var, Var],
                        first: Equation | None) -> list[Equation]:
        """Equations that compute some values once more, after another equation; `env` has them."""
        numbers: set[int] = set()
        leaves: dict[Var, Var] = {}
        waiting = list(missing)
        while waiting:
            v = waiting.pop()
            if v in env:
                continue
            k = self.made.get(v, -1)
            if k not in again:
                leaves.setdefault(v, Var(v.aval))
            elif k not in numbers:
                numbers.add(k)
                waiting += self._operands(k)
        found: list[Equation] = []
        local: dict[Var, Var] = leaves
        if leaves and first is not None:
            source = self.jaxpr.eqns[min(numbers)].source
            signal = first.outvars[0]
            found.append(Equation(
                optimization_barrier_p, (*leaves, signal), (*leaves.values(), Var(signal.aval)),
                {"last_first": True}, source))
        else:
            local = {}
        for k in sorted(numbers):
            eqn = self.jaxpr.eqns[k]
            outs = tuple([Var(v.aval) for v in eqn.outvars])
            found.append(eqn.replace(invars=self._renamed(eqn.invars, {**env, **local}, None),
                                     outvars=outs))
            env.update(zip(eqn.outvars, outs, strict=True))
        return found

    def _renamed(self, atoms: Iterable[Atom], env: Mapping[Var, Var],
                 position: int | None) -> tuple[Atom, ...]:
        return tuple([a if isinstance(a, Literal) else env.get(self._through(a, position), a)
                      for a in atoms])


def _is_ours(eqn: Equation) -> bool:
    """Whether an equation is the barrier of a cut."""
    return eqn.primitive is optimization_barrier_p and bool(eqn.params.get("last_first"))


def _nbytes(v: Var) -> float:
    return math.prod(v.aval.shape) * v.aval.dtype.itemsize
