"""A report as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from functrans.core.jaxpr import Jaxpr, jaxpr_parts, subjaxprs
from functrans.inspect.utilisation import idle_by_estimate
from functrans.lowering.report import (
    KernelReport,
    Law,
    Line,
    Report,
    bytes_text,
    count_text,
    line_of,
)

__all__ = ["SHOWN_LINES", "collective_lines", "count_equations", "kernel_facts", "memory_lines",
           "summary", "text_of"]

SHOWN_LINES = 3
"""So many places of a law or a kernel are named, then how many there are besides."""
WIDTH = 72


def text_of(report: Report) -> str:
    """The sections of a report, those that have something to say."""
    sections = [
        ("Program, as traced", _program(report.traced)),
        ("Collectives", collective_lines(report)),
        ("Passes", [_law(law) for law in report.laws]),
        ("Program, simplified", _program(report.simplified)),
        ("Kernels", [line for k in report.kernels for line in _kernel(k)]),
        ("Per-sample algebra", report.decisions),
        ("Not fused, and why", report.apart),
        ("Where the GPU is idle", idle_by_estimate(report)),
        ("Memory", memory_lines(report)),
    ]
    lines = [summary(report)]
    for title, body in sections:
        if body:
            lines += ["", title, "-" * len(title), *body]
    return "\n".join(lines)


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
    return sum(1 if not (bodies := list(subjaxprs(e))) else sum(map(count_equations, bodies))
               for e in jaxpr.eqns)


def _program(jaxpr: Jaxpr) -> list[str]:
    head, texts, outs = jaxpr_parts(jaxpr)
    width = max([len(t) for t in texts if "\n" not in t and len(t) <= WIDTH], default=0)
    found = [head]
    shown = None
    for number, (text, eqn) in enumerate(zip(texts, jaxpr.eqns, strict=True)):
        line = line_of(eqn.source)
        first, *rest = text.split("\n")
        place = "" if line is None else f"  # {line if line != shown else line.place}"
        found.append(f"{number:4} {first:<{width}}{place}".rstrip())
        found += [f"     {more}" for more in rest]
        shown = line
    return [*found, f"  in ({outs}) }}"]


def _law(law: Law) -> str:
    times = f"{law.count} x" if law.count > 1 else ""
    return f"{times:>5} {law.table}: {law.name}{_places(law.lines)}"


def _places(lines: Sequence[Line]) -> str:
    if not lines:
        return ""
    shown = [line.place for line in lines[:SHOWN_LINES]]
    more = len(lines) - len(shown)
    return f"  # {', '.join(shown)}{f' and {more} more' if more else ''}"


def _kernel(kernel: KernelReport) -> Iterable[str]:
    yield f"{kernel.name}: {kernel.about}" if kernel.about else kernel.name
    facts = kernel_facts(kernel)
    if facts:
        yield f"    {facts}"
    if kernel.equations:
        yield f"    equations {_ranges(kernel.equations)}"
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
        facts.append(count_text(kernel.flops, "FLOP"))
    if kernel.source:
        count = kernel.source.count("\n") + 1
        facts.append(f"{count} lines of {kernel.language}: .source({_key(kernel)!r})")
    if kernel.ptx:
        count = kernel.ptx.count("\n") + 1
        facts.append(f"{count} lines of PTX: .machine_code({_key(kernel)!r})")
    return ", ".join(facts)


def _key(kernel: KernelReport) -> str:
    """What `source` finds a kernel by: of kernels of one name, the whole name."""
    return kernel.name if "#" in kernel.name and kernel.language == "Triton" else kernel.function


def _ranges(numbers: Sequence[int]) -> str:
    """`0-3, 7` for 0, 1, 2, 3 and 7."""
    runs: list[list[int]] = []
    for n in numbers:
        if runs and n == runs[-1][-1] + 1:
            runs[-1].append(n)
        else:
            runs.append([n])
    return ", ".join(str(r[0]) if len(r) == 1 else f"{r[0]}-{r[-1]}" for r in runs)


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
