"""What the values and equations of a program are called, in all views of it alike."""

from __future__ import annotations

from functrans.core.jaxpr import Equation, Jaxpr
from functrans.core.notation import Names, bodies, equation_line
from functrans.lowering.report import CodeValue, KernelReport, LoopLine, Report, bytes_text

__all__ = ["ProgramNames", "loops_text"]

EquationPath = tuple[int, ...]


class ProgramNames:
    """The names of a simplified program: those of its own, and of each body for itself."""

    def __init__(self, report: Report) -> None:
        self.jaxpr = report.simplified
        self.inputs = report.inputs
        self.main = Names(dict(zip(self.jaxpr.invars, report.inputs, strict=False)))
        self._bodies: dict[Jaxpr, Names] = {}
        for eqn in self.jaxpr.eqns:
            for v in eqn.outvars:
                self.main(v)

    def of(self, body: Jaxpr) -> Names:
        """The names of a body: letters from the first on, as they are met."""
        if body is self.jaxpr:
            return self.main
        found = self._bodies.get(body)
        if found is None:
            found = self._bodies[body] = Names()
            for v in body.invars:
                found(v)
            for eqn in body.eqns:
                for v in eqn.outvars:
                    found(v)
        return found

    def equation(self, path: EquationPath) -> tuple[Equation, Names]:
        """The equation at a path, and the names around it."""
        jaxpr, rest = self.jaxpr, path
        while len(rest) > 1:
            inner = list(bodies(jaxpr.eqns[rest[0]]))
            jaxpr, rest = inner[rest[1]][1], rest[2:]
        return jaxpr.eqns[rest[0]], self.of(jaxpr)

    def value(self, value: CodeValue) -> str:
        """A value: `x f32[3]`; the type alone where it has no name."""
        name = self.name(value)
        return f"{name} {value.type}" if name else value.type

    def name(self, value: CodeValue) -> str:
        """What a value is called; nothing where the program has none for it."""
        path = path_of(value)
        if value.argument is not None and value.equation is not None:  # of a body
            eqn, _ = self.equation((value.equation, *value.inside[:-1]))
            body = list(bodies(eqn))[value.inside[-1]][1]
            return self.of(body)(body.invars[value.argument])
        if path is None:
            number = value.argument
            return "" if number is None or number >= len(self.inputs) else self.inputs[number]
        eqn, names = self.equation(path)
        results = eqn.outvars[value.result:value.result + 1] or eqn.outvars[:1]
        return names(results[0]) if results else ""

    def loop_line(self, line: LoopLine) -> tuple[str, str]:
        """A line of the loops of a kernel, and what is said of it besides."""
        value = line.values[0] if line.values else None
        name = self.name(value) if value is not None else ""
        kind = "" if value is None or line.kind == "value" else value.type
        if line.kind == "loop":
            size = "" if line.size is None else f" in {line.size}"
            return f"for {line.variable}{size}", line.how
        if line.kind == "value" and value is not None and (path := path_of(value)) is not None:
            eqn, names = self.equation(path)
            text = equation_line(eqn, names)
            params = f"[{text.params}]" if text.params else ""
            outs = " ".join(name for name, _ in text.outs)
            return f"{outs} = {text.primitive}{params} {' '.join(text.ins)}".rstrip(), ""
        moved = bytes_text(line.nbytes) if line.nbytes != 0 else ""
        if line.kind == "reduce":
            return f"{line.text} into {name or kind}", kind if name else ""
        if line.kind in ("load", "store"):
            told = ", ".join(filter(None, (kind if name else "", moved, line.how)))
            return f"{line.kind} {name or kind}{line.text}", told
        return f"{name + ' = ' if name else ''}{line.text}", kind


def path_of(value: CodeValue) -> EquationPath | None:
    """The equation that a value is of; None of inputs, also those of bodies."""
    if value.equation is None or value.argument is not None:
        return None
    return value.equation, *value.inside


def loops_text(kernel: KernelReport, names: ProgramNames) -> str:
    """The loops of a kernel as text."""
    lines = []
    for line in kernel.loops:
        text, told = names.loop_line(line)
        lines.append(f"{'  ' * line.depth}{text}{f'  # {told}' if told else ''}")
    return "\n".join(lines)
