"""`explain`: what the compiler did with a function, and why."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from functrans.core import config
from functrans.core.cuda import gpu_of
from functrans.core.errors import ArgumentError, FunctransError, MemoryLimitError, public, shown
from functrans.core.mesh import Mesh
from functrans.core.tree import tree_flatten
from functrans.inspect.names import input_names, title_of
from functrans.inspect.page import page_of
from functrans.inspect.text import text_of
from functrans.lowering.backend import (
    AUTO,
    Executable,
    default_backend,
    get_backend,
    inspect_on_mesh,
)
from functrans.lowering.report import KernelReport, Report, TracedProgram
from functrans.transforms.flat import name_of
from functrans.transforms.jit.api import Compiled, Lowered, lower
from functrans.transforms.meshes import dims_on, mesh_of
from functrans.typing import PyTree

__all__ = ["Explanation", "explain", "inspected", "lowered_of", "report_of"]


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
        return kernel.instructions() if kernel.instructions else kernel.ptx

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
        traced = TracedProgram(title_of(smaller, f), smaller.jaxpr, input_names(smaller, f, args),
                               smaller.donated, backend)
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
        names += input_names(lowered, f, args)
        report = program.report(TracedProgram(title_of(lowered, f), parts, names, frozenset(),
                                              backend))
    return replace(report, mesh=repr(mesh), collectives=notes)


def inspected(lowered: Lowered, backend: str) -> Executable:
    """A traced function as the program of a backend to look at, under the settings of now."""
    return get_backend(backend).inspectable(lowered.jaxpr, lowered.donated,
                                            lowered.compiled_by(backend).executable)
