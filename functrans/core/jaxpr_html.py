"""A program for a notebook: monospaced, types and primitives coloured, bodies of loops folded."""

from __future__ import annotations

from html import escape

from functrans.core.jaxpr import Equation, Jaxpr
from functrans.core.notation import Names, bodies, equation_line

__all__ = ["STYLE", "equation_html", "jaxpr_html", "program_html"]

STYLE = """\
.ft-jaxpr{font:12px/1.5 ui-monospace,Menlo,Consolas,monospace}
.ft-jaxpr .e{padding-left:4em;text-indent:-2em;overflow-wrap:anywhere}
.ft-jaxpr .h{overflow-wrap:anywhere;padding-left:2em;text-indent:-2em}
.ft-jaxpr details{padding-left:2em;text-indent:0}
.ft-jaxpr summary{cursor:pointer;opacity:.75}
.ft-jaxpr .t{color:#0072b2}.ft-jaxpr .p{color:#b5532a;font-weight:600}
.ft-jaxpr .q{opacity:.7}
@media (prefers-color-scheme:dark){.ft-jaxpr .t{color:#6cb6e8}.ft-jaxpr .p{color:#ec9a6f}}
"""


def jaxpr_html(jaxpr: Jaxpr) -> str:
    """The program as one element with its own style; long lines are continued below."""
    return f'<div class="ft-jaxpr"><style>{STYLE}</style>{program_html(jaxpr, Names())}</div>'


def program_html(jaxpr: Jaxpr, names: Names) -> str:
    """The lines of a program."""
    heads = " ".join(f"{escape(names(v))}:{_type(str(v.aval))}"
                     for v in (*jaxpr.constvars, *jaxpr.invars))
    lines = []
    for eqn in jaxpr.eqns:
        lines.append(f'<div class="e">{equation_html(eqn, names)}</div>')
        for label, body in bodies(eqn):
            count = len(body.eqns)
            lines.append(f"<details><summary>{label}: {count} equation{'s' * (count != 1)}"
                         f"</summary>{program_html(body, Names())}</details>")
    outs = ", ".join(escape(names(a)) for a in jaxpr.outvars)
    return (f'<div class="h">{{ lambda {heads}. let</div>{"".join(lines)}'
            f'<div class="h">in ({outs}) }}</div>')


def equation_html(eqn: Equation, names: Names) -> str:
    """One equation, coloured, without its bodies."""
    line = equation_line(eqn, names)
    outs = " ".join(f"{escape(name)}:{_type(kind)}" for name, kind in line.outs)
    params = f'<span class="q">[{escape(line.params)}]</span>' if line.params else ""
    ins = escape(" ".join(line.ins))
    return f'{outs} = <span class="p">{escape(line.primitive)}</span>{params} {ins}'.rstrip()


def _type(text: str) -> str:
    return f'<span class="t">{escape(text)}</span>'
