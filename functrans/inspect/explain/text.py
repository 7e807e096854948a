"""A report as text for a terminal: what costs first, then the program by lines."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from typing import Final

from functrans.core.jaxpr import Jaxpr, subjaxprs
from functrans.core.notation import Names, bodies, equation_line
from functrans.inspect.costs import Costs, StepGroup
from functrans.inspect.regions import LineGroup, Region, regions_of
from functrans.inspect.utilisation import idle_by_estimate
from functrans.lowering.report import (
    KernelReport,
    Law,
    Line,
    Reason,
    Report,
    bytes_text,
    count_text,
)

__all__ = ["SHOWN_LINES", "collective_lines", "count_equations", "flops_text", "grouped",
           "kernel_facts", "memory_lines", "ranges", "summary", "text_of"]

SHOWN_LINES: Final = 3
"""So many places of a law or a kernel are named, then how many there are besides."""
SHOWN_STEPS: Final = 10
SHOWN_REASONS: Final = 8
SHOWN_LAWS: Final = 12
WHOLE: Final = 60
"""Of a program with more equations each line has one line, which counts its operations."""
BAR: Final = 16


def text_of(report: Report, costs: Costs) -> str:
    """The sections of a report, those that have something to say."""
    sections = [
        ("What costs", _costs(costs)),
        ("Not fused, and why", _reasons(report.reasons)),
        ("Where the GPU is idle", idle_by_estimate(report)),
        ("Collectives", collective_lines(report)),
        ("Memory", memory_lines(report)),
        ("Program, simplified", _program(report)),
        ("Kernels", _kernels(report)),
        ("Per-sample algebra", report.decisions),
        ("Passes", _laws(report)),
    ]
    lines = [summary(report)]
    for title, body in sections:
        if body:
            lines += ["", title, "-" * len(title), *body]
    return "\n".join(lines)


def summary(report: Report) -> str:
    """The program in one line: how many equations became how many kernels."""
    before, after = count_equations(report.traced), count_equations(report.simplified)
    own = sum(1 for k in report.kernels if k.source)
    calls = len(report.kernels) - own
    made = [f"{own} kernel{'s' * (own != 1)}"] if own else []
    made += [f"{calls} call{'s' * (calls != 1)}"] if calls else []
    became = f" -> {' and '.join(made)}" if made else ""
    on = f" on each device of {report.mesh}" if report.mesh else ""
    return f"{report.name}: {before} equations -> {after}{became} ({report.target}){on}"


def count_equations(jaxpr: Jaxpr) -> int:
    """The equations of a program, those of bodies in place of the calls of them."""
    return sum(1 if not (inner := list(subjaxprs(e))) else sum(map(count_equations, inner))
               for e in jaxpr.eqns)


# --- what costs

def _costs(costs: Costs) -> list[str]:
    if not costs.steps:
        return []
    found = [str(costs)]
    found += [f"on the host: {name}: {why}" for name, why in costs.on_host] or [
        "nothing runs on the host"] * bool(costs.steps)
    shown, rest = costs.groups[:SHOWN_STEPS], costs.groups[SHOWN_STEPS:]
    width = max(len(_title(group)) for group in shown)
    for group in shown:
        kernels = [c.kernel for c in group.steps]
        facts = (f"{_size(sum([k.moved for k in kernels], start=0), 'B'):>8} "
                 f"{_size(sum([k.flops for k in kernels], start=0), 'FLOP'):>11}")
        bar = "#" * max(round(BAR * group.share), 1)
        found.append(f"{group.share:>4.0%} {bar:<{BAR}} {_title(group):<{width}} {facts}  "
                     f"{group.steps[0].line or ''}".rstrip())
    if rest:
        found.append(f"{sum(group.share for group in rest):>4.0%} {'':{BAR}} in "
                     f"{sum(len(group.steps) for group in rest)} more: .costs.steps")
    return found


def _title(group: StepGroup) -> str:
    count = len(group.steps)
    return _times(group.steps[0].kernel) if count == 1 else f"{group.name}, {count} such"


def _size(n: object, unit: str) -> str:
    text = count_text(n, unit) if unit != "B" else bytes_text(n)  # type: ignore[arg-type]
    return text if n != 0 else ""


def _times(kernel: KernelReport) -> str:
    per = f" x {kernel.per}s" if kernel.per else ""
    return f"{kernel.name}{f' x {kernel.runs}' if kernel.runs > 1 else ''}{per}"


def grouped(reasons: Sequence[Reason]) -> list[tuple[Reason, int]]:
    """Reasons that are the same for values of several layers once, and how many; by bytes."""
    found: dict[Hashable, list[Reason]] = {}
    for r in reasons:
        found.setdefault((r.line, r.value, r.advice, _NUMBERS.sub("", r.why)), []).append(r)
    ordered = sorted(found.values(), key=lambda same: -sum(_bytes(r) for r in same))
    return [(same[0], len(same)) for same in ordered]


_NUMBERS: Final = re.compile(r"[#\d.]+|(?:gemm with epilogue|gemm|chain|function)? ?k(?=[ ,])|"
                             r" and (?=[a-z])")


def _bytes(reason: Reason) -> int:
    return reason.nbytes if isinstance(reason.nbytes, int) else 0


def _reasons(reasons: Sequence[Reason]) -> list[str]:
    found = []
    ordered = grouped([r for r in reasons if _bytes(r)])
    notes = [str(r) for r in reasons if not _bytes(r)]  # how loops and products are computed
    told = None
    for reason, count in ordered[:SHOWN_REASONS]:
        if told is not None and reason.advice != told:
            found.append(f"    what helps: {told}")
        told = reason.advice or None
        found.append(f"{reason}{f' ({count} such)' if count > 1 else ''}")
    if told is not None:
        found.append(f"    what helps: {told}")
    more = len(ordered) - SHOWN_REASONS
    return [*found, *([f"and {more} more kinds: .reasons"] if more > 0 else []), *notes]


# --- the program

def _program(report: Report) -> list[str]:
    jaxpr = report.simplified
    names = Names(dict(zip(jaxpr.invars, report.inputs, strict=False)))
    found = [_types(names, jaxpr)] if jaxpr.invars else []
    whole = count_equations(jaxpr) <= WHOLE
    for region in regions_of(jaxpr):
        found += _region(jaxpr, region, names, whole)
    results = report.results or [f"result {k}" for k in range(len(jaxpr.outvars))]
    shown = [f"{name} = {names(a)}" for name, a in zip(results, jaxpr.outvars, strict=False)]
    return [*found, *_wrapped("out: ", shown)] if jaxpr.eqns else []


def _types(names: Names, jaxpr: Jaxpr) -> str:
    return "\n".join(_wrapped("in:  ", [f"{names(v)}:{v.aval}" for v in jaxpr.invars]))


def _wrapped(head: str, items: Iterable[str]) -> list[str]:
    """Items in lines of at most 100 characters."""
    lines = [head]
    for item in items:
        if len(lines[-1]) + len(item) > 98 and lines[-1].strip():
            lines.append(" " * len(head))
        lines[-1] += f"{item}  "
    return [line.rstrip() for line in lines]


def _region(jaxpr: Jaxpr, region: Region, names: Names, whole: bool) -> list[str]:
    indent, found = "", []
    if region.count > 1:
        r = region.repeat
        scope = f" {region.scope}" if region.scope else ""
        found.append(f"{r.count} times{scope}, {r.period} equations each "
                     f"({r.start}-{r.start + r.count * r.period - 1}), the first:")
        indent = "  "
    for group in region.groups:
        found += [indent + line for line in _group(jaxpr, group, names, whole)]
    return found


def _group(jaxpr: Jaxpr, group: LineGroup, names: Names, whole: bool) -> list[str]:
    head = str(group.line) if group.line is not None else "no line of yours"
    if not whole:
        counts = Counter(jaxpr.eqns[k].primitive.name for k in group.equations)
        told = ", ".join(name if n == 1 else f"{n} {name}" for name, n in counts.most_common(4))
        more = len(counts) - 4
        told += f", {more} more kinds" if more > 0 else ""
        return [f"{head}", f"    {ranges(group.equations)}: {told}"]
    return [head, *[line for k in group.equations for line in _equation(jaxpr, k, names)]]


def _equation(jaxpr: Jaxpr, number: int, names: Names) -> list[str]:
    eqn = jaxpr.eqns[number]
    found = [f"{number:4} {equation_line(eqn, names)}"]
    for label, body in bodies(eqn):
        found.append(f"       {label}: {count_equations(body)} equations")
        found += [f"         {line}" for line in _body(body)]
    return found


def _body(jaxpr: Jaxpr) -> list[str]:
    names = Names()
    found = [_types(names, jaxpr).replace("\n", " ")] if jaxpr.invars else []
    for eqn in jaxpr.eqns:
        found.append(str(equation_line(eqn, names)))
        for label, body in bodies(eqn):
            found += [f"  {label}: {count_equations(body)} equations",
                      *[f"    {line}" for line in _body(body)]]
    return [*found, f"out: {'  '.join(map(names, jaxpr.outvars))}"]


# --- laws, kernels, memory

def _laws(report: Report) -> list[str]:
    ordered = sorted(report.laws, key=lambda law: -law.count)
    found = [_law(law) for law in ordered[:SHOWN_LAWS]]
    more = len(ordered) - SHOWN_LAWS
    found += [f"      and {more} laws more: .laws"] if more > 0 else []
    count = len(report.passes)
    told = f"      one by one: .stepping, {count} pass{'es' * (count != 1)}, then the schedule"
    return [*found, told] if found else []


def _law(law: Law) -> str:
    times = f"{law.count} x" if law.count > 1 else ""
    return f"{times:>5} {law.table}: {law.name}{_places(law.lines)}"


def _places(lines: Sequence[Line]) -> str:
    if not lines:
        return ""
    shown = [line.place for line in lines[:SHOWN_LINES]]
    more = len(lines) - len(shown)
    return f"  # {', '.join(shown)}{f' and {more} more' if more else ''}"


def _kernels(report: Report) -> list[str]:
    return [line for k in report.kernels for line in _kernel(k)]


def _kernel(kernel: KernelReport) -> Iterable[str]:
    yield f"{_times(kernel)}: {kernel.about}" if kernel.about else _times(kernel)
    facts = kernel_facts(kernel)
    if facts:
        yield f"    {facts}"
    if kernel.equations:
        yield f"    equations {ranges(kernel.equations)}"
    for line in kernel.lines[:SHOWN_LINES]:
        yield f"    {line}"
    if len(kernel.lines) > SHOWN_LINES:
        yield f"    and {len(kernel.lines) - SHOWN_LINES} more"


def kernel_facts(kernel: KernelReport) -> str:
    """What one run of a kernel does, and how long its text is."""
    facts = []
    if kernel.moved != 0:
        facts.append(f"{bytes_text(kernel.moved)} moved")
    if kernel.flops != 0:
        facts.append(flops_text(kernel))
    if kernel.source:
        count = kernel.source.count("\n") + 1
        facts.append(f"{count} lines of {kernel.language}: .source({_key(kernel)!r})")
    if kernel.ptx:
        count = kernel.ptx.count("\n") + 1
        facts.append(f"{count} lines of PTX: .machine_code({_key(kernel)!r})")
    return ", ".join(facts)


def flops_text(kernel: KernelReport) -> str:
    """The arithmetic of a kernel, and of what that is where it is not that of a run."""
    per = f" per {kernel.flops_per}" if kernel.flops_per else ""
    return f"{count_text(kernel.flops, 'FLOP')}{per}"


def _key(kernel: KernelReport) -> str:
    """What `source` finds a kernel by: of kernels of one name, the whole name."""
    return kernel.name if "#" in kernel.name and kernel.language == "Triton" else kernel.function


def ranges(numbers: Sequence[int]) -> str:
    """`0-3, 7` for 0, 1, 2, 3 and 7."""
    runs: list[list[int]] = []
    for n in numbers:
        if runs and n == runs[-1][-1] + 1:
            runs[-1].append(n)
        else:
            runs.append([n])
    return ", ".join(str(r[0]) if len(r) == 1 else f"{r[0]}-{r[-1]}" for r in runs)


def collective_lines(report: Report) -> list[str]:
    """What devices exchange in a program of several of them, and which operation needs it."""
    found = []
    for note in report.collectives:
        axes = ", ".join(map(repr, note.axes))
        found.append(f"{note.name} over {axes} of a {note.aval}: {bytes_text(note.nbytes)} to each "
                     "device")
        place = "" if note.line is None else f"  # {note.line}"
        why = f"{note.asked_by}{': ' if note.why else ''}{note.why}"
        found.append(f"    for {why}{place}")
    if found:
        total = sum([n.nbytes for n in report.collectives])
        found.insert(0, f"{bytes_text(total)} to each device of {report.mesh}; of a loop, each "
                        "time")
    return found


def memory_lines(report: Report) -> list[str]:
    """What a program needs, when that is most, and what it updates and copies."""
    told = {name: n for name, n in report.bytes.items() if (name, n) != ("donated", 0)}
    found = [", ".join(f"{name} {bytes_text(n)}" for name, n in told.items())]
    peak = report.peak
    if peak is not None:
        at = f", for {peak.line}" if peak.line else ""
        step = f" at {peak.step}" if peak.step else ""
        found.append(f"most temporaries{step}: {bytes_text(peak.nbytes)}{at}")
        for value in peak.values[:SHOWN_LINES]:
            place = f"  # {value.line}" if value.line else ""
            found.append(f"    {bytes_text(value.nbytes)} {value.type}{place}")
        more = len(peak.values) - SHOWN_LINES
        found += [f"    and {more} more"] if more > 0 else []
    return [*found, *report.memory]
