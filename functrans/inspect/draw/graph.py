"""The graph of a program to be drawn: groups of equations that one kernel computes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from functrans.core.jaxpr import Atom, Equation, Var, jaxpr_parts
from functrans.lowering.report import Report, line_of
from functrans.primitives.elementwise import Elementwise

__all__ = ["Drawn", "DrawnGroup", "Node", "graph_of_report"]

LONGEST_CHAIN = 3
"""Elementwise operations one after another that are drawn each; of more, only how many."""
MOST_NODES = 150
"""Of a program with more, a kernel is drawn as one box that counts its operations."""
MOST_INPUTS = 14
"""So many inputs are drawn; more are named by the kernels that read them."""


@dataclass
class Node:
    """One or more operations: what is written on them, what they give, and more as a tooltip."""

    label: str
    type: str
    tooltip: str
    kind: str = "operation"


@dataclass
class DrawnGroup:
    """The box of a kernel, an input or an output: nodes and the edges among them."""

    title: str
    subtitle: str
    kind: str
    nodes: list[Node] = field(default_factory=list)
    edges: list[tuple[int, int]] = field(default_factory=list)


@dataclass
class Drawn:
    """Groups in an order in which values flow, and edges with the type of what flows."""

    groups: list[DrawnGroup]
    edges: dict[tuple[int, int], list[str]]


class _Grapher:
    def __init__(self, report: Report) -> None:
        self.report = report
        self.jaxpr = report.simplified
        self.texts = jaxpr_parts(self.jaxpr)[1]
        self.groups: list[DrawnGroup] = []
        self.edges: dict[tuple[int, int], list[str]] = {}
        self.home: dict[Atom, int] = {}  # the group that gives a value

    def run(self) -> Drawn:
        read = {v for e in self.jaxpr.eqns for v in e.invars} | {*self.jaxpr.outvars}
        inputs = [v for v in self.jaxpr.invars if v in read]
        drawn = len(inputs) <= MOST_INPUTS
        if drawn:
            for v in inputs:
                name = self.report.inputs[self.jaxpr.invars.index(v)]
                self.add(DrawnGroup(name, str(v.aval), "input"), [v])
        groups = self.kernels()
        nodes = [self.nodes(members) for _, _, members in groups]
        single = sum(len(n) for n, _ in nodes) > MOST_NODES
        arguments = set() if drawn else {*inputs}
        for (title, subtitle, members), (found, edges) in zip(groups, nodes, strict=True):
            extern = len(dict.fromkeys(v for k in members for v in self.jaxpr.eqns[k].invars
                                       if v in arguments))
            if extern:
                subtitle += f"{', ' if subtitle else ''}{extern} argument{'s' * (extern > 1)}"
            if single:
                found, edges = [self.counted(members)], []
            self.add(DrawnGroup(title, subtitle, "kernel" if title else "alone", found, edges),
                     [v for k in members for v in self.jaxpr.eqns[k].outvars])
        first = len(self.groups) - len(groups)
        for g, (_, _, members) in enumerate(groups, first):
            for k in members:
                for value in self.jaxpr.eqns[k].invars:
                    self.connect(value, g)
        for k, result in enumerate(self.jaxpr.outvars):
            self.groups.append(DrawnGroup(f"result {k}", str(result.aval), "output"))
            self.connect(result, len(self.groups) - 1)
        return Drawn(self.groups, self.edges)

    def add(self, group: DrawnGroup, values: Sequence[Var]) -> None:
        for v in values:
            self.home.setdefault(v, len(self.groups))
        self.groups.append(group)

    def connect(self, value: Atom, target: int) -> None:
        source = self.home.get(value)
        if source is not None and source < target:
            types = self.edges.setdefault((source, target), [])
            if str(value.aval) not in types:
                types.append(str(value.aval))

    def kernels(self) -> list[tuple[str, str, list[int]]]:
        """Kernels with their equations, each equation in the first kernel that computes it."""
        taken: set[int] = set()
        found = []
        for kernel in self.report.kernels:
            for part in kernel.parts or (kernel.equations,):
                members = [e for e in part if e not in taken]
                taken.update(members)
                if members:
                    found.append((kernel.name, kernel.about.split(";")[0], members))
        found += [("", "", [e]) for e in range(len(self.jaxpr.eqns)) if e not in taken]
        return _in_order(found, self.jaxpr.eqns)

    def nodes(self, members: Sequence[int]) -> tuple[list[Node], list[tuple[int, int]]]:
        """The operations of a kernel, chains of them as one."""
        chains = self.chains(members)
        at = {e: n for n, chain in enumerate(chains) for e in chain}
        maker = {v: e for e in members for v in self.jaxpr.eqns[e].outvars}
        edges = {(at[maker[v]], at[e]) for e in members for v in self.jaxpr.eqns[e].invars
                 if v in maker and at[maker[v]] != at[e]}
        return [self.node(chain) for chain in chains], sorted(edges)

    def chains(self, members: Sequence[int]) -> list[list[int]]:
        """Members one by one, but for long runs of elementwise ones that each have one reader."""
        eqns = self.jaxpr.eqns
        readers: dict[Atom, list[int]] = {}
        for e in range(len(eqns)):
            for v in set(eqns[e].invars):
                readers.setdefault(v, []).append(e)
        mine, outs = {*members}, {*self.jaxpr.outvars}

        def following(e: int) -> int | None:
            (v, *others) = eqns[e].outvars
            near = readers.get(v, [])
            if others or v in outs or len(near) != 1 or near[0] not in mine:
                return None
            return near[0]

        runs: list[list[int]] = []
        run_of: dict[int, list[int]] = {}
        for e in members:
            if not _is_elementwise(eqns[e]):
                continue
            run = run_of.get(e)
            if run is None:
                run = [e]
                runs.append(run)
            then = following(e)
            if then is not None and _is_elementwise(eqns[then]) and then not in run_of:
                run.append(then)
                run_of[then] = run
        # a run is one node only where all that it reads comes before it begins, or from outside
        long = [r for r in runs if len(r) > LONGEST_CHAIN and self.is_closed(r, mine)]
        inside = {e for r in long for e in r}
        found = [*long, *[[e] for e in members if e not in inside]]
        return sorted(found, key=lambda chain: chain[-1] if len(chain) == 1 else chain[0])

    def is_closed(self, run: list[int], mine: set[int]) -> bool:
        """Whether no operation of the kernel between the ends of a run makes what the run reads."""
        eqns = self.jaxpr.eqns
        between = {v for e in range(run[0], run[-1]) if e in mine and e not in run
                   for v in eqns[e].outvars}
        return not any(v in between for e in run for v in eqns[e].invars)

    def node(self, chain: Sequence[int]) -> Node:
        eqns = [self.jaxpr.eqns[e] for e in chain]
        names = [_name(e) for e in eqns]
        label = names[0] if len(names) == 1 else \
            f"{names[0]} … {names[-1]} ({len(names)} operations)"
        lines = dict.fromkeys(str(line) for e in eqns if (line := line_of(e.source)))
        told = [*[self.texts[e].split("\n")[0] for e in chain], *lines]
        kind = "operation" if all(map(_is_elementwise, eqns)) else "other"
        return Node(label, str(eqns[-1].outvars[0].aval) if eqns[-1].outvars else "",
                    "\n".join(told), kind)

    def counted(self, members: Sequence[int]) -> Node:
        """All operations of a kernel as one node."""
        eqns = [self.jaxpr.eqns[e] for e in members]
        counts = Counter(map(_name, eqns)).most_common()
        label = ", ".join(name if n == 1 else f"{n} {name}" for name, n in counts[:3])
        more = sum(n for _, n in counts[3:])
        label += f", {more} more" if more else ""
        lines = dict.fromkeys(str(line) for e in eqns if (line := line_of(e.source)))
        out = eqns[-1].outvars
        return Node(label, str(out[0].aval) if out else "", "\n".join(lines))


def _in_order(groups: list[tuple[str, str, list[int]]],
              eqns: Sequence[Equation]) -> list[tuple[str, str, list[int]]]:
    """Groups so that each comes after those whose values it reads."""
    maker = {v: g for g, (_, _, members) in enumerate(groups) for e in members
             for v in eqns[e].outvars}
    needs = [{maker[v] for e in members for v in eqns[e].invars if v in maker} - {g}
             for g, (_, _, members) in enumerate(groups)]
    order: list[int] = []
    done: set[int] = set()
    while len(order) < len(groups):
        left = [g for g in range(len(groups)) if g not in done]
        # kernels that compute an equation again may read each other's: the earliest goes first
        g = next((g for g in left if needs[g] <= done), left[0])
        order.append(g)
        done.add(g)
    return [groups[g] for g in order]


def _is_elementwise(eqn: Equation) -> bool:
    return isinstance(eqn.primitive, Elementwise) and len(eqn.outvars) == 1


def _name(eqn: Equation) -> str:
    return {"dot_general": "matmul", "conv_general_dilated": "convolution",
            "broadcast_in_dim": "broadcast", "convert_element_type": "convert"}.get(
        eqn.primitive.name, eqn.primitive.name)


def graph_of_report(report: Report) -> Drawn:
    """The groups and edges of the simplified program of a report."""
    return _Grapher(report).run()
