"""The page of an explanation: what costs first, then the program and its passes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING, Final

from functrans.core.jaxpr import Jaxpr
from functrans.core.jaxpr_html import equation_html, program_html
from functrans.core.notation import Names, bodies
from functrans.inspect.costs import KernelCost, StepGroup
from functrans.inspect.explain.code import (
    code_html,
    instructions_html,
    lines_of_variable,
    values_by_line,
)
from functrans.inspect.explain.naming import ProgramNames, path_of
from functrans.inspect.explain.text import (
    collective_lines,
    count_equations,
    flops_text,
    grouped,
    memory_lines,
    ranges,
    summary,
)
from functrans.inspect.pages import fold, fragment, json_data, table
from functrans.inspect.regions import LineGroup, Region, regions_of
from functrans.inspect.timeline import timeline_svg
from functrans.inspect.utilisation import idle_by_estimate
from functrans.lowering.report import (
    CodeValue,
    KernelReport,
    Line,
    LoopLine,
    Value,
    bytes_text,
    count_text,
    line_of,
)

if TYPE_CHECKING:
    from functrans.inspect.explain.explanation import Explanation

__all__ = ["page_of"]

SHOWN_STEPS: Final = 12
SHOWN_OPERATIONS: Final = 3
NAMELESS: Final = re.compile(r"k_?[0-9a-f]+\b|lanes\b|loop\b")
"""Names of kernels that do not tell what they do."""
MOVEMENTS: Final = frozenset({"broadcast_in_dim", "reshape", "transpose", "convert_element_type",
                              "squeeze", "slice", "copy"})
OPEN_LINES: Final = 20
SHOWN_REASONS: Final = 12
OPEN: Final = 60
"""Of a program with more equations what a line asked for is folded."""
OPEN_BODY: Final = 24
"""A body with more equations is folded."""
WITH_MACHINE_CODE: Final = 16
"""Kernels of a saved page that have their instructions."""


def page_of(explained: Explanation, machine_code: bool = False) -> str:
    """The page as one element with its own style and script."""
    return _Page(explained, machine_code).text()


class _Page:
    def __init__(self, explained: Explanation, machine_code: bool) -> None:
        self.explained = explained
        self.report = r = explained.report
        self.program_names = ProgramNames(r)
        self.names = self.program_names.main
        self.kernel_numbers = {id(k): n for n, k in enumerate(r.kernels)}
        self.owners = {e: self.shown(numbers) for e, numbers in r.kernels_of().items()}
        self.equation_lines = [line for _, line in r.equations()]
        lines = [*self.equation_lines, *[line for k in r.kernels for line in k.lines]]
        self.line_numbers = {line: k for k, line in enumerate(
            sorted({line for line in lines if line is not None}))}
        self.machine_code = machine_code
        self.shown_sources: dict[str, str] = {}

    def shown(self, numbers: Iterable[int]) -> list[int]:
        """Steps that the page has: of a loop whose body has steps, these."""
        known = {self.kernel_numbers[id(c.kernel)] for c in self.explained.costs.steps}
        kernels = self.report.kernels
        found = [[n] if n in known else [m for m, k in enumerate(kernels)
                                         if k.place == kernels[n].kind and m in known]
                 for n in numbers]
        return list(dict.fromkeys(n for steps in found for n in steps))

    def text(self) -> str:
        r, costs = self.report, self.explained.costs
        groups = [self.step_group(group, k < WITH_MACHINE_CODE)
                  for k, group in enumerate(costs.groups)]
        rest = sum(len(group.steps) for group in costs.groups[SHOWN_STEPS:])
        kernels = "".join(groups[:SHOWN_STEPS]) + fold(f"{rest} more steps",
                                                       "".join(groups[SHOWN_STEPS:]))
        idle = idle_by_estimate(r)
        parts = [
            f"<h3>{escape(summary(r))}</h3>", self.facts(), self.search(),
            fold("What costs", kernels, True,
                 "by estimate, most first; a step opens to its equations, loops, source and "
                 "machine code"),
            fold("Your lines", self.lines(), len(self.line_numbers) <= OPEN_LINES,
                 "the part of the cost that each asked for"),
            fold("Not fused, and why", self.reasons(), True,
                 f"{len(r.reasons)} values, the largest first; alike ones once"),
            fold("Where the GPU is idle", _list(idle), True),
            fold("Collectives", _list(collective_lines(r)), True),
            fold("Memory", self.memory(), True),
            fold("Program, simplified", self.program(), True,
                 f"{count_equations(r.simplified)} equations by the lines that asked for them"),
            fold("Passes and schedule, one by one", self.stepping(), False,
                 f"{len(r.passes)} passes, {sum(law.count for law in r.laws)} rewrites; "
                 f"{len(r.schedule)} steps of the schedule"),
            fold("Laws", self.laws(), False, f"{len(r.laws)} that were applied"),
            fold("Per-sample algebra", _list(r.decisions)),
            fold("Program, as traced", self.traced(), False,
                 f"{count_equations(r.traced)} equations"),
        ]
        return fragment("".join(parts), ["explain.js"], f"explanation of {r.name}")

    # --- what costs

    def facts(self) -> str:
        c = self.explained.costs
        host = ", ".join(name for name, _ in c.on_host) or "nothing"
        once = " (one iteration of open loops)"
        facts = [("launches" + ("" if c.is_bounded else once), str(c.launches)),
                 ("moved", bytes_text(c.moved)),
                 ("arithmetic" + once * c.has_open_loops, count_text(c.flops, "FLOP")),
                 ("memory at the peak", bytes_text(c.peak)), ("runs on the host", host)]
        return '<div class="facts">' + "".join(
            f"<div><b>{escape(value)}</b><span class='dim'>{escape(name)}</span></div>"
            for name, value in facts) + "</div>"

    def search(self) -> str:
        return ('<div class="steps"><label>Find <input type="search" data-search '
                'placeholder="primitive, line, kernel"></label> '
                '<span class="dim" data-found aria-live="polite"></span></div>')

    def step_group(self, group: StepGroup, is_costly: bool) -> str:
        """A step, or steps of one code below a line with their sum."""
        first = group.steps[0]
        if len(group.steps) == 1:
            return self.kernel(first, is_costly)
        kernels = [c.kernel for c in group.steps]
        moved = sum([k.moved for k in kernels], start=0)
        facts = ", ".join(filter(None, (
            bytes_text(moved) if moved != 0 else "",
            count_text(flops, "FLOP") if (flops := sum([k.flops for k in kernels], start=0)) != 0
            else "")))
        head = (f'<span class="n">{group.share:.0%}</span>{_bar(group.share)}'
                f"<span><b>{escape(group.name)} × {len(kernels)}</b>"
                f"{self.operations(kernels)}</span>"
                f'<span class="dim wide">{facts}</span>'
                f'<span class="wide">{self.place(first.line) if first.line else ""}</span>')
        numbers = " ".join(f"k{self.kernel_numbers[id(k)]}" for k in kernels)
        steps = "".join(self.kernel(c, is_costly and c is first) for c in group.steps)
        return (f'<details class="kernel step-group" data-t="{numbers}"><summary>{head}</summary>'
                f"{steps}</details>")

    def kernel(self, cost: KernelCost, is_costly: bool) -> str:
        k = cost.kernel
        number = self.kernel_numbers[id(k)]
        times = f" × {k.runs}" if k.runs > 1 else ""
        times += f" × {k.per}s" if k.per else ""
        line = self.place(cost.line) if cost.line else ""
        head = (f'<span class="n">{cost.share:.0%}</span>{_bar(cost.share)}'
                f"<span><b>{escape(k.name)}{escape(times)}</b>"
                f"{self.operations([k])}</span>"
                f'<span class="dim wide">{_facts(k)}</span>'
                f'<span class="wide">{line}</span>')
        tokens = self.tokens(lines=k.lines)
        return (f'<details class="kernel" data-name="k{number}" data-own="k{number}" '
                f'data-t="{tokens}"><summary>{head}</summary>'
                f"<div class='dim'>{escape(k.about)}</div>{self.inside(k, number, is_costly)}"
                "</details>")

    def operations(self, kernels: Sequence[KernelReport]) -> str:
        """What kernels do whose names do not tell, in few words."""
        if not NAMELESS.match(kernels[0].name):
            return ""
        names = Counter(self.report.simplified.eqns[e].primitive.name
                        for k in kernels for e in k.equations)
        known = [name for name, _ in names.most_common() if name not in MOVEMENTS] or list(names)
        more = f", {len(known) - SHOWN_OPERATIONS} more" * (len(known) > SHOWN_OPERATIONS)
        told = ", ".join(known[:SHOWN_OPERATIONS]) + more
        told = told or ("" if kernels[0].place else "lays out memory")
        return f' <span class="dim">{escape(told)}</span>' if told else ""

    def inside(self, k: KernelReport, number: int, is_costly: bool) -> str:
        """Equations, source and machine code beside each other."""
        by_line = values_by_line(k)
        eqns = "".join([self.equation(e, number) for e in k.equations]) or "".join(
            [self.inner_equation(path) for path in _paths(by_line)]) or "".join(
            f"<div>{self.place(line)}</div>" for line in k.lines)
        host = f"<div class='hot'>on the host: {escape(k.on_host)}</div>" if k.on_host else ""
        first, loops = f'<b>equations</b><div class="m">{eqns}{host}</div>', k.loops
        if loops:
            first += f"<b>loops</b>{self.loops(loops, number)}"
        columns = [f"<div>{first}</div>"]
        if k.source in self.shown_sources:
            other = escape(self.shown_sources[k.source])
            columns.append(f'<div class="dim">the source is that of <code>{other}</code> above'
                           "</div>")
        elif k.source:
            self.shown_sources[k.source] = k.name
            source = code_html(k, number, self.of, self.program_names.value,
                               self.loops_by_line(k, loops, number, by_line))
            columns.append(f"<div><b>{escape(k.language)}</b>{source}</div>")
            machine = self.machine(k, number, is_costly)
            columns += [f"<div>{machine}</div>"] * bool(machine)
        return f'<div class="code">{"".join(columns)}</div>'

    def machine(self, k: KernelReport, number: int, is_costly: bool) -> str:
        """PTX of a GPU's kernel; in files the machine code of what costs most."""
        own = ptx = ""
        if is_costly and self.machine_code and k.instruction_lines is not None:
            code = instructions_html(k.instruction_lines(), number)
            own = f"<b>machine code{' (SASS)' if k.ptx else ''}</b>{code}"
        if k.ptx_lines is not None:
            state = "" if own else " open"
            ptx = (f"<details{state}><summary><b>PTX</b></summary>"
                   f"{instructions_html(k.ptx_lines(), number)}</details>")
        return ptx + own

    def loops(self, lines: Sequence[LoopLine], number: int) -> str:
        """The loops of a kernel, what is in each further to the right."""
        rows = []
        for k, line in enumerate(lines):
            text, told = self.program_names.loop_line(line)
            tokens = " ".join(dict.fromkeys(" ".join(map(self.of, line.values)).split()))
            shown = f"<b>{escape(text)}</b>" if line.kind == "loop" else escape(text)
            more = f' <span class="dim">{escape(told)}</span>' if told else ""
            rows.append(f'<div class="lp" style="--depth:{line.depth}" data-own="k{number}n{k}" '
                        f'data-t="{tokens}">{shown}{more}</div>')
        return f'<div class="m">{"".join(rows)}</div>'

    def loops_by_line(self, k: KernelReport, loops: Sequence[LoopLine], number: int,
                      by_line: Sequence[tuple[CodeValue, ...]]) -> list[list[str]]:
        """For each line of a source the lines of the loops that belong to it."""
        found: list[list[str]] = [[] for _ in by_line]
        of: dict[object, list[str]] = {}
        for n, line in enumerate(loops):
            token = f"k{number}n{n}"
            if line.kind == "loop":
                for at in lines_of_variable(k, line.variable):
                    found[at].append(token)
            for value in line.values:
                of.setdefault(_identity(value), []).append(token)
        of.pop(None, None)
        for tokens, values in zip(found, by_line, strict=True):
            tokens += [token for v in values for token in of.get(_identity(v), ())]
        return found

    def of(self, value: CodeValue) -> str:
        """The tokens of what belongs to a value in a source."""
        path = path_of(value) if value.inside else None
        inner = "" if path is None else f" e{'.'.join(map(str, path))}"
        return self.tokens([] if value.equation is None else [value.equation],
                           [value.line]) + inner

    def lines(self) -> str:
        shares: dict[Line, float] = {}
        kernels: dict[Line, list[int]] = {}
        for c in self.explained.costs.steps:
            number = self.kernel_numbers[id(c.kernel)]
            if c.line is not None:
                shares[c.line] = shares.get(c.line, 0.0) + c.share
            for line in c.kernel.lines:
                kernels.setdefault(line, []).append(number)
        ordered = sorted(self.line_numbers, key=lambda line: -shares.get(line, 0.0))
        return "".join(
            f'<div class="ln" data-own="l{self.line_numbers[line]}" '
            f'data-t="{" ".join(f"k{n}" for n in kernels.get(line, []))}" '
            f'data-name="l{self.line_numbers[line]}">'
            f'<span class="n">{shares.get(line, 0.0):.0%}</span>{_bar(shares.get(line, 0.0))}'
            f"<span>{_place(line)}</span></div>" for line in ordered)

    def reasons(self) -> str:
        rows = [[bytes_text(r.nbytes) if r.nbytes != 0 else "",
                 f'<code>{escape(r.value)}</code>{f" <b>× {count}</b>" if count > 1 else ""}',
                 self.place(r.line) if r.line else "", escape(r.why), escape(r.advice)]
                for r, count in grouped(self.explained.reasons)]
        heads = ["#bytes", "value", "line", "why it is in memory", "what helps"]
        shown, rest = rows[:SHOWN_REASONS], rows[SHOWN_REASONS:]
        return table(heads, shown, wide=True) + fold(f"{len(rest)} more",
                                                     table(heads, rest, wide=True))

    # --- memory

    def memory(self) -> str:
        r = self.report
        peak = r.peak
        values = _values(peak.values if peak is not None else ())
        lines = [line for line in memory_lines(r) if not line.startswith("    ")]
        return f"{_list(lines)}{timeline_svg(r.timeline)}{values}"

    # --- the program

    def program(self) -> str:
        jaxpr = self.report.simplified
        heads = [f'<span class="m">{escape(self.names(v))}:<span class="t">{escape(str(v.aval))}'
                 "</span></span>" for v in jaxpr.invars]
        inputs = fold(f"{len(heads)} inputs", " &nbsp; ".join(heads), len(heads) <= 6)
        is_open = count_equations(jaxpr) <= OPEN
        regions = "".join(self.region(region, is_open) for region in regions_of(jaxpr))
        results = self.report.results or [f"result {k}" for k in range(len(jaxpr.outvars))]
        outs = [f'<span class="m">{escape(name)} = {escape(self.names(a))}:<span class="t">'
                f"{escape(str(a.aval))}</span></span>"
                for name, a in zip(results, jaxpr.outvars, strict=False)]
        return inputs + regions + fold(f"{len(outs)} results", " &nbsp; ".join(outs),
                                       len(outs) <= 6)

    def region(self, region: Region, is_open: bool) -> str:
        groups = "".join(self.group(g, is_open) for g in region.groups)
        r = region.repeat
        if r.count == 1:
            return groups
        scope = f" {region.scope}" if region.scope else ""
        head = (f'<span class="times">× {r.count}</span>{escape(scope)} '
                f"{r.period} equations each; the first:")
        return f'<details class="group" open><summary>{head}</summary>{groups}</details>'

    def group(self, group: LineGroup, is_open: bool) -> str:
        line = self.place(group.line) if group.line else '<span class="dim">no line of yours</span>'
        count = len(group.equations)
        head = (f'{line} <span class="dim">{count} equation{"s" * (count != 1)}: '
                f"{ranges(group.equations)}</span>")
        rows = "".join(map(self.equation, group.equations))
        return (f'<details class="group"{" open" if is_open else ""}><summary>{head}</summary>'
                f"{rows}</details>")

    def equation(self, number: int, inside: int | None = None) -> str:
        """An equation with links to its kernels, but the one that it stands in."""
        eqn = self.report.simplified.eqns[number]
        owners = self.owners.get(number, [])
        line = self.equation_lines[number]
        chips = " ".join([self.chip(k) for k in owners if k != inside])
        inner = "".join(self.body(label, body, (number, n)) for n, (label, body) in
                        enumerate(bodies(eqn)))
        tokens = self.tokens(lines=[line] if line else [], kernels=owners)
        return (f'<div class="e m" data-own="e{number}" data-t="{tokens}">'
                f'<span class="no">{number}</span>{equation_html(eqn, self.names)} {chips}'
                f"{inner}</div>")

    def body(self, label: str, jaxpr: Jaxpr, path: tuple[int, ...]) -> str:
        """The body of an equation, whose equations are linked, too."""
        count, names = count_equations(jaxpr), self.program_names.of(jaxpr)
        heads = " ".join(f'{escape(names(v))}:<span class="t">{escape(str(v.aval))}</span>'
                         for v in jaxpr.invars)
        rows = "".join(self.inner_equation((*path, k)) for k in range(len(jaxpr.eqns)))
        outs = ", ".join(escape(names(a)) for a in jaxpr.outvars)
        state = " open" if count <= OPEN_BODY else ""
        return (f'<details class="group"{state}><summary>{escape(label)}: {count} equation'
                f'{"s" * (count != 1)}</summary><div class="e dim">in: {heads}</div>{rows}'
                f'<div class="e dim">out: {outs}</div></details>')

    def inner_equation(self, path: tuple[int, ...]) -> str:
        """An equation of a body."""
        eqn, names = self.program_names.equation(path)
        own = ".".join(map(str, path))
        inner = "".join(self.body(label, body, (*path, n)) for n, (label, body) in
                        enumerate(bodies(eqn)))
        tokens = self.tokens(lines=[line_of(eqn.source)])
        return (f'<div class="e m" data-own="e{own}" data-t="{tokens}">'
                f'<span class="no">{path[-1]}</span>{equation_html(eqn, names)}{inner}</div>')

    def chip(self, k: int) -> str:
        return (f'<a class="chip" href="#" data-open="k{k}">'
                f"{escape(self.report.kernels[k].name)}</a>")

    def tokens(self, equations: Iterable[int] = (), lines: Iterable[Line | None] = (),
               kernels: Iterable[int] = ()) -> str:
        return " ".join([*[f"e{e}" for e in equations],
                         *[f"l{self.line_numbers[x]}" for x in lines if x in self.line_numbers],
                         *[f"k{k}" for k in kernels]])

    def place(self, line: Line | None) -> str:
        if line not in self.line_numbers or line is None:
            return _place(line) if line is not None else ""
        number = self.line_numbers[line]
        return f'<a href="#" data-open="l{number}" data-t="l{number}">{_place(line)}</a>'

    def traced(self) -> str:
        names = Names(dict(zip(self.report.traced.invars, self.report.inputs, strict=False)))
        return f'<div class="m">{program_html(self.report.traced, names)}</div>'

    # --- passes

    def laws(self) -> str:
        rows = [[str(law.count), escape(law.table), escape(law.name),
                 ", ".join(self.place(x) for x in law.lines[:4])
                 + (f" and {len(law.lines) - 4} more" if len(law.lines) > 4 else "")]
                for law in sorted(self.report.laws, key=lambda law: -law.count)]
        return table(["#times", "table", "law", "lines"], rows)

    def stepping(self) -> str:
        """The passes as data for the script, and their titles for who has none."""
        ids: dict[str, int] = {}
        passes = []
        for step in self.explained.stepping:
            passes.append({
                "title": step.title,
                "before": [ids.setdefault(text, len(ids)) for text in step.before],
                "after": [ids.setdefault(text, len(ids)) for text in step.after],
                "parts": [[p.kind, p.before.start, p.before.stop, p.after.start, p.after.stop]
                          for p in step.parts],
                "of": "schedule" if step.is_of_schedule else "passes",
                "rewrites": [{"law": w.law, "line": w.line.place if w.line else "",
                              "before": w.text, "after": w.became,
                              "from": w.before, "to": w.after} for w in step.rewrites]})
        if not passes:
            return ""
        titles = "".join(f"<li>{escape(str(p['title']).partition('. ')[2])}</li>" for p in passes)
        data = json_data("passes", {"lines": [escape(text) for text in ids], "passes": passes})
        return f"<div data-stepping><ol>{titles}</ol></div>{data}"


def _identity(value: CodeValue) -> object:
    """What is the same for a value and its elements; None where the program does not know it."""
    if value.equation is None and value.argument is None:
        return None
    return value.equation, value.inside, value.argument


def _paths(by_line: Sequence[tuple[CodeValue, ...]]) -> list[tuple[int, ...]]:
    """The equations of bodies that lines are for, in order."""
    return sorted({path for values in by_line for v in values
                   if (path := path_of(v)) is not None and v.inside})


def _values(values: Sequence[Value]) -> str:
    rows = [[bytes_text(v.nbytes), f"<code>{escape(v.type)}</code>",
             _place(v.line) if v.line else ""] for v in values[:8]]
    return table(["#bytes", "value", "line"], rows, "alive at the peak, the largest first")


def _place(line: Line) -> str:
    return (f'<code title="{escape(line.file, quote=True)}"><span class="dim">'
            f"{escape(line.place)}</span> {escape(line.text)}</code>")


def _facts(k: KernelReport) -> str:
    facts = [bytes_text(k.moved)] if k.moved != 0 else []
    facts += [flops_text(k)] if k.flops != 0 else []
    return escape(", ".join(facts))


def _bar(share: float) -> str:
    width = max(min(share, 1.0) * 100, 0.0)
    return f'<span class="bar" aria-hidden="true"><i style="width:{width:.1f}%"></i></span>'


def _list(items: Sequence[str]) -> str:
    return "".join(f"<div>{escape(item)}</div>" for item in items)


