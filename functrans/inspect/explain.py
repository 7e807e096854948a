"""`explain`: what the compiler did with a function, and why."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from functrans.core import config
from functrans.core.cuda import gpu_of
from functrans.core.errors import ArgumentError, FunctransError, public, shown
from functrans.core.jaxpr import Jaxpr
from functrans.core.tree import tree_flatten
from functrans.inspect import c_report, triton_report
from functrans.inspect.names import input_names, title_of
from functrans.inspect.page import page_of
from functrans.inspect.report import KernelReport, Law, Line, Report, line_of
from functrans.inspect.text import text_of
from functrans.lowering.analysis import memory_of
from functrans.lowering.backend import BUILT_IN, GPU_TARGETS, Executable
from functrans.lowering.c.lower import LoweredToC as LoweredToC
from functrans.lowering.c.lower import lower as lower_to_c
from functrans.lowering.passes.networks.decide import Decision
from functrans.lowering.passes.pipeline import simplify
from functrans.lowering.passes.rewrite import Change
from functrans.lowering.triton.backend import TritonExecutable
from functrans.lowering.triton.capacity_retry import CapacityRetryExecutable
from functrans.transforms.flat import name_of
from functrans.transforms.jit import lower
from functrans.transforms.lowered import Compiled, Lowered
from functrans.typing import PyTree

__all__ = ["Explanation", "explain", "is_registered", "lowered_of", "report_of"]


class Explanation:
    """What the compiler did with a program: as text, as a page in a notebook, and as data.

    `kernels` are the steps of the program with their `equations`, `lines`, `flops`, bytes `moved`,
    `source` and, for GPUs, `ptx`; `report` has everything.
    """

    def __init__(self, report: Report) -> None:
        self.report = report

    @property
    def kernels(self) -> tuple[KernelReport, ...]:
        return tuple(self.report.kernels)

    @public
    def source(self, name: str) -> str:
        """The C or Triton text of the kernel of that name. Raises ArgumentError for no kernel."""
        return self._named(name).source

    @public
    def machine_code(self, name: str) -> str:
        """The instructions of a kernel: assembly by the C compiler, or PTX for GPUs."""
        kernel = self._named(name)
        if kernel.language == "C":
            return c_report.assembly_of(self.report.text, kernel.function)
        return kernel.ptx

    def _named(self, name: str) -> KernelReport:
        for kernel in self.kernels:
            if name in (kernel.name, kernel.function) and kernel.source:
                return kernel
        known = ", ".join([k.name for k in self.kernels if k.source])
        raise ArgumentError(f"there is no kernel {name!r} with a source here.",
                            fix=f"one of: {known}" if known else "a function that needs a kernel")

    def __str__(self) -> str:
        return text_of(self.report)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return page_of(self.report)


@public
def explain(f: Callable[..., Any], *args: PyTree, target: str | None = None,
            **kwargs: PyTree) -> Explanation:
    """What the compiler did with `f` for such arguments: printed, or shown in a notebook.

    `f` is a function, jitted or not, or what `ft.lower` returned; arguments are arrays or
    ShapeDtypeStructs. The target is as for `ft.lower`: `"cuda:90"` needs no GPU. Nothing is run,
    and for a CPU no C compiler either. Raises whatever tracing raises.

    >>> import functrans as ft
    >>> x = ft.ShapeDtypeStruct((512, 64), "float32")
    >>> explained = ft.explain(lambda x: ft.nn.softmax(x * 1), x, target="cpu")
    >>> len(explained.kernels), explained.kernels[0].moved
    (1, 262144)
    >>> [law.name for law in explained.report.laws if law.table == "algebra"]
    ['x * 1 = x, x * -1 = -x', 'max(x, -inf) = x']
    """
    lowered = lowered_of(f, args, kwargs, target)
    return Explanation(report_of(lowered, f, args, kwargs))


def lowered_of(f: Any, args: tuple[Any, ...], kwargs: dict[str, Any],
               target: str | None = None) -> Lowered:
    """A function traced for some arguments; what is traced already, as it is."""
    if isinstance(f, Lowered):
        return f
    if isinstance(f, Compiled) or not callable(f):
        raise ArgumentError(f"a function is needed, got {shown(f)} of type {type(f).__name__}.",
                            fix="f and then its arguments, as in functrans.explain(f, x), or what "
                                "functrans.lower(f, x) returns")
    try:
        return lower(f, *args, target=target, **kwargs)
    except TypeError as error:
        parameters = _refusing(f, args, kwargs)
        if isinstance(error, FunctransError) or parameters is None:
            raise
        raise ArgumentError(f"{error}.", fix="the function and then its arguments, as when it is "
                            f"called; {name_of(f)} has the parameters {parameters}") from None


def _refusing(f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str | None:
    """The parameters of a function that does not take such arguments; None where that is open."""
    try:
        signature = inspect.signature(f)
    except (TypeError, ValueError):
        return None
    try:
        signature.bind(*args, **kwargs)
    except TypeError:
        return str(signature)
    return None


def report_of(lowered: Lowered, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Report:
    """What is known of a function traced for some arguments, once the compiler has seen it."""
    name, inputs = title_of(lowered, f), input_names(lowered, f, args)
    backend = lowered.backend
    if backend == "auto":
        backend = "c" if gpu_of(tree_flatten((args, kwargs))[0]) is None else "triton"
    with config.scope(backend=backend):
        if backend == "c":
            program = lower_to_c(lowered.jaxpr, lowered.donated)
            if program is None:
                return _nothing(name, lowered, inputs)
            return _of_c(name, lowered, program, inputs)
        executable = lowered.compiled_by(backend).executable()
        if isinstance(executable, CapacityRetryExecutable):
            executable = executable.latest
        if isinstance(executable, TritonExecutable):
            return _of_triton(name, lowered, executable, inputs)
        if is_registered(backend):
            return _of_other(name, lowered, executable, inputs, backend)
        return _nothing(name, lowered, inputs)


def is_registered(backend: str) -> bool:
    """Whether a backend is of another distribution: known by the protocol alone."""
    return backend not in ("auto", *BUILT_IN) and not backend.startswith(GPU_TARGETS)


def _of_other(name: str, lowered: Lowered, executable: Executable, inputs: list[str],
              backend: str) -> Report:
    """What the protocol of backends tells of a program: one step, with its text and its cost."""
    traced = lowered.jaxpr
    lines = tuple(dict.fromkeys(x for e in traced.eqns if (x := line_of(e.source)) is not None))
    cost, text = executable.cost_analysis(), executable.as_text()
    step = KernelReport(traced.name, "program", tuple(range(len(traced.eqns))), lines, "",
                        cost.get("flops", 0), cost.get("bytes accessed", 0), backend, traced.name,
                        text)
    return Report(name, backend, traced, traced, inputs, [], [step], [], [], [],
                  executable.memory_analysis(), None, text)


def _of_c(name: str, lowered: Lowered, program: LoweredToC, inputs: list[str]) -> Report:
    text = program.text
    isa = text.main.module.isa
    return Report(
        name, f"C for {isa.name}", lowered.jaxpr, program.simplified, inputs,
        _laws(lowered.jaxpr), c_report.kernels_of(program.simplified, text),
        _decisions(program.decisions), c_report.notes_of(text),
        c_report.memory_notes(text, lowered.donated, inputs), program.memory_analysis(),
        c_report.peak(text), text.text)


def _of_triton(name: str, lowered: Lowered, executable: TritonExecutable,
               inputs: list[str]) -> Report:
    known = executable.lowered
    program = known.program
    kernels = triton_report.kernels_of(known.simplified, executable)
    return Report(
        name, f"Triton for {executable.target.name}", lowered.jaxpr,
        known.simplified, inputs, _laws(lowered.jaxpr), kernels, _decisions(known.decisions),
        triton_report.apart_of(program, kernels),
        triton_report.memory_notes(program, lowered.donated, inputs), known.memory_analysis(),
        triton_report.peak(program), "\n".join(program.sources))


def _nothing(name: str, lowered: Lowered, inputs: list[str]) -> Report:
    """A program without code of its own: it has no equations, or NumPy evaluates it."""
    decisions: list[Decision] = []
    simplified = simplify(lowered.jaxpr, decisions=decisions)
    return Report(name, _without_code(simplified),
                  lowered.jaxpr, simplified, inputs, _laws(lowered.jaxpr), [],
                  _decisions(decisions), [], [], memory_of(simplified), None)


def _without_code(simplified: Jaxpr) -> str:
    if not simplified.eqns:
        return "nothing to compute"
    is_sized = simplified.size_names and config.current().backend != "c"
    return "compiled once its sizes are known" if is_sized else "NumPy"


def _decisions(decisions: Sequence[Decision]) -> list[str]:
    found = []
    for d in decisions:
        line = line_of(d.source)
        place = f"{line}: " if line else ""
        found.append(place + str(d._replace(source=None)))
    return found


def _laws(jaxpr: Jaxpr) -> list[Law]:
    """The laws that the passes applied, in the order of their first use."""
    log: list[Change] = []
    simplify(jaxpr, log=log)
    found: dict[tuple[str, str], list[Line | None]] = {}
    for change in log:
        found.setdefault((change.table, change.law), []).append(line_of(change.source))
    return [Law(table, law, len(lines), tuple(dict.fromkeys([x for x in lines if x])))
            for (table, law), lines in found.items()]
