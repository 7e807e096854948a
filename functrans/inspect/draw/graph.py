"""The graph of a program to be drawn: groups of equations that one kernel computes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from functrans.core.jaxpr import Atom, Equation, Jaxpr, Var
from functrans.core.notation import Names, bodies, equation_line
from functrans.inspect.draw.shapes import Shape
from functrans.lowering.report import Report, line_of
from functrans.primitives.elementwise import Elementwise

__all__ = ["MOST_EQUATIONS", "MOST_NODES", "count_of", "shape_of_kernels"]

LONGEST_CHAIN = 3
"""Elementwise operations one after another that are drawn each; of more, only how many."""
MOST_NODES = 150
"""A program with more is drawn by the lines of the user, ..."""
MOST_EQUATIONS = 600
"""... and one with more of these, whatever its chains are."""
MOST_INPUTS = 14
"""So many inputs are drawn; more are counted by the kernels that read them."""


class _Grapher:
    def __init__(self, report: Report) -> None:
        self.report = report
        self.jaxpr = report.simplified
        names = Names(dict(zip(self.jaxpr.invars, report.inputs, strict=False)))
        self.texts = [str(equation_line(e, names)) for e in self.jaxpr.eqns]
        self.root = Shape("", kind="root")
        self.home: dict[Atom, int] = {}  # the group that gives a value

    def run(self) -> Shape:
        read = {v for e in self.jaxpr.eqns for v in e.invars} | {*self.jaxpr.outvars}
        inputs = [v for v in self.jaxpr.invars if v in read]
        drawn = len(inputs) <= MOST_INPUTS
        if drawn:
            for v in inputs:
                name = self.report.inputs[self.jaxpr.invars.index(v)]
                self.add(Shape(name, str(v.aval), "input"), [v])
        groups = self.kernels()
        arguments = set() if drawn else {*inputs}
        for title, subtitle, members in groups:
            extern = len(dict.fromkeys(v for k in members for v in self.jaxpr.eqns[k].invars
                                       if v in arguments))
            if extern:
                subtitle += f"{', ' if subtitle else ''}{extern} argument{'s' * (extern > 1)}"
            shape = Shape(title, subtitle, "kernel" if title else "alone")
            self.fill(shape, members)
            self.add(shape, [v for k in members for v in self.jaxpr.eqns[k].outvars])
        first = len(self.root.children) - len(groups)
        for g, (_, _, members) in enumerate(groups, first):
            for k in members:
                for value in self.jaxpr.eqns[k].invars:
                    self.connect(value, g)
        names = self.report.results or [f"result {k}" for k in range(len(self.jaxpr.outvars))]
        for name, result in zip(names, self.jaxpr.outvars, strict=False):
            self.root.children.append(Shape(name, str(result.aval), "output"))
            self.connect(result, len(self.root.children) - 1)
        return self.root

    def add(self, shape: Shape, values: Sequence[Var]) -> None:
        for v in values:
            self.home.setdefault(v, len(self.root.children))
        self.root.children.append(shape)

    def connect(self, value: Atom, target: int) -> None:
        if value in self.home:
            self.root.connect(self.home[value], target, str(value.aval))

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

    def fill(self, shape: Shape, members: Sequence[int]) -> None:
        """Add the operations of a kernel to its box, chains of them as one."""
        chains = self.chains(members)
        at = {e: n for n, chain in enumerate(chains) for e in chain}
        maker = {v: e for e in members for v in self.jaxpr.eqns[e].outvars}
        edges = {(at[maker[v]], at[e]) for e in members for v in self.jaxpr.eqns[e].invars
                 if v in maker and at[maker[v]] != at[e]}
        shape.children += [self.node(chain) for chain in chains]
        for edge in sorted(edges):
            shape.edges[edge] = []

    @cached_property
    def readers(self) -> dict[Atom, list[int]]:
        """The equations that read each value."""
        readers: dict[Atom, list[int]] = {}
        for e, eqn in enumerate(self.jaxpr.eqns):
            for v in set(eqn.invars):
                readers.setdefault(v, []).append(e)
        return readers

    def chains(self, members: Sequence[int]) -> list[list[int]]:
        """Members one by one, but for long runs of elementwise ones that each have one reader."""
        eqns, readers = self.jaxpr.eqns, self.readers
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

    def node(self, chain: Sequence[int]) -> Shape:
        eqns = [self.jaxpr.eqns[e] for e in chain]
        names = [_name(e) for e in eqns]
        label = names[0] if len(names) == 1 else \
            f"{names[0]} … {names[-1]} ({len(names)} operations)"
        lines = dict.fromkeys(str(line) for e in eqns if (line := line_of(e.source)))
        told = "\n".join([*[self.texts[e] for e in chain], *lines])
        kind = "node" if all(map(_is_elementwise, eqns)) else "other"
        inner = [(part, body) for e in eqns for part, body in bodies(e)]
        if inner:  # a loop or a branch
            out = ", ".join(str(v.aval) for v in eqns[0].outvars)
            shape = Shape(label, out, "repeat", told)
            for part, body in inner:
                box = Shape(part, "", "alone")
                fill_with_program(box, body)
                shape.children.append(box)
            return shape
        return Shape(label, str(eqns[-1].outvars[0].aval) if eqns[-1].outvars else "", kind, told)


def fill_with_program(shape: Shape, jaxpr: Jaxpr) -> None:
    """Add the operations of a program to a box, bodies within."""
    names = Names()
    home: dict[Atom, int] = {}
    for eqn in jaxpr.eqns:
        told = str(equation_line(eqn, names))
        inner = list(bodies(eqn))
        out = ", ".join(str(v.aval) for v in eqn.outvars)
        kind = "repeat" if inner else "node" if _is_elementwise(eqn) else "other"
        node = Shape(_name(eqn), out, kind, told)
        for part, body in inner:
            box = Shape(part, "", "alone")
            fill_with_program(box, body)
            node.children.append(box)
        at = len(shape.children)
        shape.children.append(node)
        for a in eqn.invars:
            if a in home:
                shape.connect(home[a], at, str(a.aval))
        home.update(dict.fromkeys(eqn.outvars, at))


def count_of(shape: Shape) -> int:
    """How many boxes there are in a box, and it."""
    return 1 + sum(map(count_of, shape.children))


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


def shape_of_kernels(report: Report) -> Shape:
    """The simplified program of a report: a box for each kernel, its operations inside."""
    return _Grapher(report).run()
