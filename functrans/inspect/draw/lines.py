"""A large program drawn by the lines of the user: layers once, bodies of loops inside."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from functrans.core.jaxpr import Atom, Equation, Jaxpr, Var
from functrans.core.notation import Names, bodies, equation_line
from functrans.inspect.costs import Costs
from functrans.inspect.draw.shapes import Shape
from functrans.inspect.explain.text import count_equations
from functrans.inspect.regions import LineGroup, Region, regions_of
from functrans.lowering.report import Report

__all__ = ["MOST_INPUTS", "shape_of_lines"]

MOST_INPUTS: Final = 14
"""So many inputs are drawn; more are counted where they are read."""
LONGEST: Final = 58  # characters of a title
TOLD: Final = 30  # equations that a tooltip has


def shape_of_lines(report: Report, costs: Costs) -> Shape:
    """The program of a report: a box for each line, within those of layers and loops."""
    jaxpr = report.simplified
    read = {a for e in jaxpr.eqns for a in e.invars} | {*jaxpr.outvars}
    inputs = [v for v in jaxpr.invars if v in read]
    names = Names(dict(zip(jaxpr.invars, report.inputs, strict=False)))
    results = report.results or [f"result {k}" for k in range(len(jaxpr.outvars))]
    root = Shape("", kind="root")
    writer = _SvgWriter(names, _shares(report, costs))
    home: dict[Atom, int] = {}
    drawn = len(inputs) <= MOST_INPUTS
    for v in inputs if drawn else ():
        home[v] = len(root.children)
        root.children.append(Shape(names(v), str(v.aval), "input"))
    writer.fill(root, jaxpr, home, () if drawn else inputs)
    shown = list(zip(results, jaxpr.outvars, strict=False))
    if len(shown) > MOST_INPUTS:
        writer.count_results(root, home, shown)
        return root
    for name, a in shown:
        root.children.append(Shape(name, str(a.aval), "output"))
        if a in home:
            root.connect(home[a], len(root.children) - 1, str(a.aval))
    return root


def _shares(report: Report, costs: Costs) -> Mapping[int, float]:
    """The part of the cost of each equation: that of a kernel is divided among its equations."""
    found: dict[int, float] = {}
    for c in costs.steps:
        for e in c.kernel.equations:
            found[e] = found.get(e, 0.0) + c.share / len(c.kernel.equations)
    return found


class _SvgWriter:
    def __init__(self, names: Names, shares: Mapping[int, float]) -> None:
        self.names = names
        self.shares = shares

    def fill(self, shape: Shape, jaxpr: Jaxpr, home: dict[Atom, int],
             counted: Iterable[Var] = (), is_main: bool = True) -> None:
        """Add the boxes of a program to a box; `home` has the boxes that values are of.

        Inputs that are `counted` are told by the boxes that read them.
        """
        places: dict[int, int] = {}
        for region in regions_of(jaxpr):
            if region.count == 1:
                for group in region.groups:
                    places.update(dict.fromkeys(group.equations, len(shape.children)))
                    shape.children.append(self.group(jaxpr, group, is_main))
                continue
            every = [k for n in range(region.count) for k in region.repeat.at(n)]
            places.update(dict.fromkeys(every, len(shape.children)))
            shape.children.append(self.repeat(jaxpr, region, every, is_main))
        self.connect(shape, jaxpr, places, home, counted)

    def connect(self, shape: Shape, jaxpr: Jaxpr, places: Mapping[int, int],
                home: dict[Atom, int], counted: Iterable[Var] = ()) -> None:
        known = set(counted)
        arguments: dict[int, set[Atom]] = {}
        for k, at in places.items():
            home.update(dict.fromkeys(jaxpr.eqns[k].outvars, at))
        for k, at in places.items():
            for a in jaxpr.eqns[k].invars:
                if a in known:
                    arguments.setdefault(at, set()).add(a)
                elif a in home:
                    shape.connect(home[a], at, str(a.aval))
        for at, found in arguments.items():
            child = shape.children[at]
            count = len(found)
            child.subtitle += f", {count} argument{'s' * (count > 1)}"

    def repeat(self, jaxpr: Jaxpr, region: Region, every: Sequence[int], is_main: bool) -> Shape:
        """A layer that is there several times, once."""
        r = region.repeat
        share = self.share(every, is_main)
        scope = f" {region.scope}" if region.scope else ""
        count = sum(count_equations(Jaxpr((), (), (jaxpr.eqns[k],), ())) for k in r.at(0))
        shape = Shape(f"× {r.count}{scope}", f"{count} equation{'s' * (count != 1)} each{share}",
                      "repeat")
        places: dict[int, int] = {}
        for group in region.groups:
            places.update(dict.fromkeys(group.equations, len(shape.children)))
            shape.children.append(self.group(jaxpr, group, is_main))
        self.connect(shape, jaxpr, places, {})
        return shape

    def group(self, jaxpr: Jaxpr, group: LineGroup, is_main: bool) -> Shape:
        """What a line asked for; the bodies of its loops and branches are in its box."""
        eqns = [jaxpr.eqns[k] for k in group.equations]
        counts = Counter(_name(e) for e in eqns).most_common()
        told = ", ".join(name if n == 1 else f"{n} {name}" for name, n in counts[:4])
        told += ", ..." if len(counts) > 4 else ""
        backward = [e for e in eqns if e.source is not None and e.source.backward]
        title = "no line of yours" if group.line is None else \
            f"{group.line.place}  {group.line.text}"
        scope = f"{group.scope}: " if group.scope else ""
        shape = Shape(_cut(title), _cut(f"{scope}{told}{self.share(group.equations, is_main)}"),
                      "backward" if 2 * len(backward) > len(eqns) else "line",
                      self.tooltip(title, eqns))
        inner = [(eqn, label, body) for eqn in eqns for label, body in bodies(eqn)]
        for eqn, label, body in inner:
            part = "function" if _name(eqn) == "call" else f"{label} of {_name(eqn)}"
            box = Shape(part, f"{len(body.eqns)} equations", "repeat")
            self.fill(box, body, {}, is_main=False)
            shape.children.append(box)
        return shape

    def share(self, equations: Iterable[int], is_main: bool) -> str:
        share = sum(self.shares.get(k, 0.0) for k in equations) if is_main else 0.0
        return f", {share:.0%} of the cost" if share >= 0.005 else ""

    def tooltip(self, title: str, eqns: Sequence[Equation]) -> str:
        lines = [str(equation_line(e, self.names)) for e in eqns[:TOLD]]
        more = len(eqns) - TOLD
        return "\n".join([title, *lines, *([f"and {more} more"] if more > 0 else [])])

    def count_results(self, root: Shape, home: Mapping[Atom, int],
                      results: Sequence[tuple[str, Atom]]) -> None:
        """Results that are too many for boxes, told by what makes them."""
        made: Counter[int] = Counter(home[a] for _, a in results if a in home)
        for at, count in made.items():
            root.children[at].subtitle += f", {count} result{'s' * (count > 1)}"


def _name(eqn: Equation) -> str:
    if eqn.primitive.name == "cond" and len(eqn.params.get("branches", ())) == 1:
        return "call"
    return {"dot_general": "matmul", "conv_general_dilated": "convolution",
            "broadcast_in_dim": "broadcast", "convert_element_type": "convert"}.get(
        eqn.primitive.name, eqn.primitive.name)


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST - 1]}…"
