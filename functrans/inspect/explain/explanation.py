"""`explain`: what the compiler did with a function, and why."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from functrans.core import config
from functrans.core.cuda import gpu_of
from functrans.core.dims import Shape, Size
from functrans.core.errors import ArgumentError, FunctransError, MemoryLimitError, public, shown
from functrans.core.jaxpr import Jaxpr, subjaxprs
from functrans.core.mesh import Mesh
from functrans.core.tree import tree_flatten
from functrans.inspect.costs import Costs, costs_of
from functrans.inspect.explain.naming import ProgramNames, loops_text
from functrans.inspect.explain.page import page_of
from functrans.inspect.explain.stepping import Stepping
from functrans.inspect.explain.text import text_of
from functrans.inspect.names import input_names, result_names, short_path, title_of
from functrans.inspect.pages import save_page
from functrans.lowering.backend import (
    AUTO,
    Executable,
    default_backend,
    get_backend,
    inspect_on_mesh,
)
from functrans.lowering.report import (
    Contracted,
    KernelReport,
    Law,
    Line,
    MemoryStep,
    Reason,
    Report,
    TracedProgram,
    line_of,
)
from functrans.transforms.flat import name_of
from functrans.transforms.jit.api import Compiled, Lowered, lower
from functrans.transforms.meshes import dims_on, mesh_of
from functrans.typing import PyTree

__all__ = ["Explanation", "Made", "explain", "inspected", "lowered_of", "report_of"]


@dataclass(frozen=True)
class Made:
    """An array that an operation of a program makes: its type, and the line that asked for it."""

    primitive: str
    shape: Shape
    dtype: np.dtype[Any]
    nbytes: Size
    line: Line | None


class Explanation:
    """What the compiler did with a program: as text, as a page in a notebook, and as data.

    `report` has everything that is known.
    """

    def __init__(self, report: Report) -> None:
        self.report = report

    @property
    def kernels(self) -> tuple[KernelReport, ...]:
        """The steps of the program in order, those of loops last.

        Each has its `name`, `kind`, `equations`, `lines`, `loops`, `flops`, bytes `moved`, `runs`,
        `about`, `source` and, for GPUs, `ptx`.
        """
        return tuple(self.report.kernels)

    @cached_property
    def costs(self) -> Costs:
        """What costs, most first: `.steps` (each with `.kernel`, `.share`, `.seconds` by estimate
        and `.line`), `.launches`, `.moved`, `.flops`, `.peak` and what runs `.on_host`."""
        return costs_of(self.report)

    @property
    def reasons(self) -> tuple[Reason, ...]:
        """Why values go through memory: each with `.line`, `.value`, `.nbytes`, `.why`, `.advice`
        and `.readers`, the largest first."""
        return tuple(sorted(self.report.reasons, key=_bytes_of, reverse=True))

    @property
    def contracted(self) -> tuple[Contracted, ...]:
        """Values that are large next to their factors, and whether they were `.never_made`."""
        return tuple(self.report.contracted)

    @property
    def laws(self) -> tuple[Law, ...]:
        """The laws that passes applied: each with `.table`, `.name`, `.count` and `.lines`."""
        return tuple(self.report.laws)

    @property
    def memory(self) -> dict[str, Size]:
        """Bytes of `arguments`, `outputs` and `temporaries`, and at the `peak`."""
        return dict(self.report.bytes)

    @property
    def timeline(self) -> tuple[MemoryStep, ...]:
        """The temporaries step by step: each with `.step`, `.nbytes` and `.values`."""
        return tuple(self.report.timeline)

    @cached_property
    def stepping(self) -> Stepping:
        """The passes, then the schedule, step by step: `print(explained.stepping[0])` has what was
        before and after side by side, and each rewrite or decision with its reason; `.forward()`
        and `.backward()` walk, `.passes` and `.schedule` are the two parts."""
        return Stepping(self.report)

    @public
    def arrays(self, program: str = "simplified") -> tuple[Made, ...]:
        """The arrays that the operations of a program make, bodies of loops included.

        The program is `"simplified"`, or `"traced"`; raises ArgumentError for another name.
        """
        if program not in ("simplified", "traced"):
            raise ArgumentError(f"there is no program {program!r}.",
                                fix='"traced", or "simplified" after the passes')
        jaxpr = self.report.traced if program == "traced" else self.report.simplified
        return tuple(_arrays_in(jaxpr))

    @public
    def source(self, name: str) -> str:
        """The C or Triton text of the kernel of that name. Raises ArgumentError for no kernel."""
        return self._named(name).source

    @public
    def loops(self, name: str) -> str:
        """The loops of the step of that name: what is read, computed and written in each, and how
        each is done. `.kernels[k].loops` has the same as data. Raises ArgumentError for no step."""
        for kernel in self.kernels:
            if name in (kernel.name, kernel.function):
                return loops_text(kernel, ProgramNames(self.report))
        known = ", ".join([k.name for k in self.kernels])
        raise ArgumentError(f"there is no step {name!r} here.",
                            fix=f"one of: {known}" if known else "a function with a step")

    @public
    def machine_code(self, name: str, language: str | None = None) -> str:
        """The instructions of a kernel: assembly by the C compiler, PTX for GPUs, or `"sass"`.

        SASS is what a GPU runs; Triton's disassembler prints it, and no GPU is needed. Raises
        ArgumentError for no kernel, or for SASS of a CPU.
        """
        kernel = self._named(name)
        if language not in (None, "sass", "ptx") or (language is not None and not kernel.ptx):
            raise ArgumentError(f"there is no machine code {language!r} of {name}.",
                                fix='"ptx" or "sass" for GPUs; without the argument, assembly for '
                                    "CPUs")
        if language == "sass" and kernel.instruction_lines is not None:
            return "\n".join([text for text, _ in kernel.instruction_lines()])
        return kernel.instructions() if kernel.instructions else kernel.ptx

    @public
    def save(self, path: str | Path, machine_code: bool = True) -> None:
        """Write the page to an HTML file, which needs no network and no other file.

        With `machine_code` it has the instructions of the kernels that cost most, which takes the C
        compiler a second or two. Raises ArgumentError for a name that does not end with `.html`.
        """
        save_page(path, self.report.name, page_of(self, machine_code=machine_code))

    def _named(self, name: str) -> KernelReport:
        for kernel in self.kernels:
            if name in (kernel.name, kernel.function) and kernel.source:
                return kernel
        known = ", ".join([k.name for k in self.kernels if k.source])
        raise ArgumentError(f"there is no kernel {name!r} with a source here.",
                            fix=f"one of: {known}" if known else "a function that needs a kernel")

    def __str__(self) -> str:
        return text_of(self.report, self.costs)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return page_of(self)


def _bytes_of(reason: Reason) -> int:
    return reason.nbytes if isinstance(reason.nbytes, int) else 0


def _arrays_in(jaxpr: Jaxpr) -> Iterator[Made]:
    for eqn in jaxpr.eqns:
        for v in eqn.outvars:
            yield Made(eqn.primitive.name, v.aval.shape, v.aval.dtype, v.aval.nbytes,
                       line_of(eqn.source))
        for body in subjaxprs(eqn):
            yield from _arrays_in(body)


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
    backend = lowered.backend
    if backend == AUTO:
        backend = default_backend(gpu_of(tree_flatten((args, kwargs))[0]))
    given = isinstance(f, Lowered) and not args and not kwargs
    values = [] if given else lowered.inputs(*args, **kwargs)
    mesh = mesh_of(lowered.jaxpr.meshes, values)
    if mesh is not None:
        return _report_on_mesh(lowered, f, args, values, mesh, backend)
    limits = lowered.limits
    for smaller in (lowered, *lowered.in_fewer()):
        traced = TracedProgram(title_of(smaller, f), smaller.jaxpr,
                               input_names(smaller, f, args, short_path), smaller.donated,
                               backend, result_names(smaller))
        try:
            with config.scope(backend=backend, **limits):
                return inspected(smaller, backend).report(traced)
        except MemoryLimitError as error:
            failed = error
    raise failed


def _report_on_mesh(lowered: Lowered, f: Any, args: tuple[Any, ...], values: Sequence[Any],
                    mesh: Mesh, backend: str) -> Report:
    """What is known of the program of each device of a mesh."""
    dims = [dims_on(mesh, x) for x in values or lowered.jaxpr.in_avals]
    with config.scope(backend=backend):
        parts, notes, program = inspect_on_mesh(get_backend(backend), lowered.jaxpr, mesh, dims)
        names = [f"the place along {n!r}" for n in mesh.axis_names]
        names += input_names(lowered, f, args, short_path)
        report = program.report(TracedProgram(title_of(lowered, f), parts, names, frozenset(),
                                              backend, result_names(lowered)))
    return replace(report, mesh=repr(mesh), collectives=notes)


def inspected(lowered: Lowered, backend: str) -> Executable:
    """A traced function as the program of a backend to look at, under the settings of now."""
    return get_backend(backend).inspectable(lowered.jaxpr, lowered.donated,
                                            lowered.compiled_by(backend).executable)
