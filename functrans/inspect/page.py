"""A report as a page for a notebook: it folds, and what belongs together is lit together.

No script: a rule of style for each kernel and each line lights their equations, kernels and lines
while the pointer is on one of them; numbers are links. Colours are see-through, so that they suit
dark and light pages.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from html import escape

from functrans.core.jaxpr import Jaxpr, jaxpr_parts
from functrans.inspect.text import collective_lines, kernel_facts, memory_lines, summary
from functrans.inspect.utilisation import idle_by_estimate
from functrans.lowering.report import KernelReport, Law, Line, Report, line_of

__all__ = ["page_of"]

STYLE = """
#ID{font:13px/1.5 system-ui,sans-serif;color:inherit}
#ID pre,#ID code,#ID .e,#ID .l{font:12px/1.45 ui-monospace,Menlo,Consolas,monospace}
#ID details{margin:4px 0;padding-left:6px;border-left:2px solid rgba(128,128,128,.3)}
#ID summary{cursor:pointer}
#ID h4{display:inline;font-size:13px;margin:0}
#ID pre{overflow:auto;max-height:360px;margin:4px 0;padding:6px;background:rgba(128,128,128,.1)}
#ID .e,#ID .l{white-space:pre;overflow:hidden;text-overflow:ellipsis;padding:0 4px}
#ID .both{display:grid;grid-template-columns:minmax(0,1fr) minmax(0,2fr);gap:12px}
#ID .b{display:inline-block;width:3.2em;opacity:.55}
#ID a{color:inherit;text-decoration:none;border-bottom:1px dotted}
#ID a.k{font-size:11px;padding:0 4px;border:0;border-radius:6px;background:rgba(0,114,178,.22)}
#ID .dim{opacity:.65}
#ID :target{outline:2px solid rgba(213,94,0,.8)}
"""
LIGHT = "background:rgba(230,159,0,.3)"


def page_of(report: Report) -> str:
    """The page of a report: one element with its own style."""
    return _Page(report).text()


class _Page:
    def __init__(self, report: Report) -> None:
        self.report = report
        told = "".join([str(report.simplified), *[k.source for k in report.kernels]])
        self.id = f"ft{zlib.crc32(told.encode()):08x}"
        self.owners = report.kernels_of()
        lines = [line for _, line in report.equations()]
        lines += [line for k in report.kernels for line in k.lines]
        self.lines = sorted({line for line in lines if line is not None})
        self.number = {line: k for k, line in enumerate(self.lines)}

    def text(self) -> str:
        r = self.report
        parts = [
            _fold("Your lines and the program, simplified", self.program(), is_open=True),
            _fold(f"Kernels ({len(r.kernels)})", "".join(map(self.kernel, range(len(r.kernels)))),
                  is_open=True),
            _fold("Program, as traced", _jaxpr(r.traced)),
            _fold(f"Passes ({sum(law.count for law in r.laws)} rewrites)",
                  "".join(map(self.law, r.laws))),
            _fold("Per-sample algebra", _list(r.decisions)),
            _fold(f"Not fused, and why ({len(r.apart)})", _list(r.apart)),
            _fold("Where the GPU is idle", _list(idle_by_estimate(r))),
            _fold("Collectives", _list(collective_lines(r))),
            _fold("Memory", _list(memory_lines(r))),
        ]
        return (f'<div id="{self.id}"><style>{self.style()}</style>'
                f"<b>{escape(summary(r))}</b>{''.join(parts)}</div>")

    def style(self) -> str:
        names = [*(f"k{k}" for k in range(len(self.report.kernels))),
                 *(f"l{k}" for k in range(len(self.lines)))]
        rules = [f"#{self.id}:has(.{name}:hover) .{name}{{{LIGHT}}}" for name in names]
        return STYLE.replace("ID", self.id) + "\n".join(rules)

    def program(self) -> str:
        """The user's lines beside the equations."""
        head, _, outs = jaxpr_parts(self.report.simplified)
        equations = "".join(self.equation(k, text, line)
                            for k, (text, line) in enumerate(self.report.equations()))
        return (f'<div class="both"><div>{"".join(map(self.line, self.lines))}</div>'
                f'<div><div class="e dim">{escape(head)}</div>{equations}'
                f'<div class="e dim">  in ({escape(outs)}) }}</div></div></div>')

    def line(self, line: Line) -> str:
        k = self.number[line]
        mine = [f"k{n}" for n, kernel in enumerate(self.report.kernels) if line in kernel.lines]
        return (f'<div class="l l{k} {" ".join(mine)}" id="{self.id}-l{k}" '
                f'title="{escape(line.file)}"><span class="dim">{escape(line.place)}</span>  '
                f"{escape(line.text)}</div>")

    def equation(self, number: int, text: str, line: Line | None) -> str:
        owners = self.owners.get(number, [])
        names = " ".join([*(f"k{k}" for k in owners), *self.line_names([line])])
        links = " ".join(map(self.kernel_link, owners))
        return (f'<div class="e {names}" id="{self.id}-e{number}"><span class="b">{number}</span>'
                f'{escape(text)}  {links}</div>')

    def line_names(self, lines: Iterable[Line | None]) -> list[str]:
        return [f"l{self.number[line]}" for line in lines if line is not None]

    def kernel_link(self, k: int) -> str:
        name = self.report.kernels[k].name
        return f'<a class="k" href="#{self.id}-k{k}">{escape(name)}</a>'

    def kernel(self, number: int) -> str:
        k = self.report.kernels[number]
        names = " ".join([f"k{number}", *self.line_names(k.lines)])
        equations = " ".join(f'<a href="#{self.id}-e{e}">{e}</a>' for e in k.equations)
        body = [f"<div>{escape(kernel_facts(k))}</div>"]
        body += [f"<div>equations {equations}</div>"] if equations else []
        body += [self.line_link(line) for line in k.lines]
        body += _sources(k)
        head = f'<span class="{names}"><b>{escape(k.name)}</b> {escape(k.about)}</span>'
        return (f'<details id="{self.id}-k{number}"><summary>{head}</summary>'
                f"{''.join(body)}</details>")

    def line_link(self, line: Line) -> str:
        k = self.number[line]
        return (f'<div class="l l{k}"><a href="#{self.id}-l{k}">{escape(line.place)}</a>  '
                f"{escape(line.text)}</div>")

    def law(self, law: Law) -> str:
        places = ", ".join(f'<a href="#{self.id}-l{self.number[x]}">{escape(x.place)}</a>'
                           if x in self.number else escape(x.place) for x in law.lines)
        return (f'<div><span class="b">{law.count} x</span>{escape(law.table)}: '
                f'{escape(law.name)} <span class="dim">{places}</span></div>')


def _sources(kernel: KernelReport) -> list[str]:
    texts = [(kernel.language, kernel.source), ("PTX", kernel.ptx)]
    return [_fold(f"{name} ({text.count(chr(10)) + 1} lines)", f"<pre>{escape(text)}</pre>")
            for name, text in texts if text]


def _fold(title: str, body: str, is_open: bool = False) -> str:
    """A part that folds; nothing where it is empty."""
    if not body:
        return ""
    state = " open" if is_open else ""
    return f"<details{state}><summary><h4>{escape(title)}</h4></summary>{body}</details>"


def _jaxpr(jaxpr: Jaxpr) -> str:
    head, texts, outs = jaxpr_parts(jaxpr)
    lines = [f"{t}{f'  # {line}' if (line := line_of(e.source)) else ''}"
             for t, e in zip(texts, jaxpr.eqns, strict=True)]
    return f"<pre>{escape(chr(10).join([head, *lines, f'  in ({outs}) }}']))}</pre>"


def _list(items: Sequence[str]) -> str:
    return "".join(f"<div>{escape(item)}</div>" for item in items)
