"""`profile`: runs a program and measures its steps."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from functrans.core import config
from functrans.core.cuda import gpu_of
from functrans.core.errors import ArgumentError, BackendError, public
from functrans.core.evaluate import eval_jaxpr
from functrans.core.jaxpr import Jaxpr
from functrans.core.mesh import Mesh
from functrans.core.trace import Tracer
from functrans.inspect.explain.explanation import inspected, lowered_of, report_of
from functrans.inspect.machine import machine
from functrans.inspect.profile.compare import ProfileComparison, compare
from functrans.inspect.profile.devices import NO_APART, run_on_mesh
from functrans.inspect.profile.profiles import Profile, Timed
from functrans.lowering.backend import computes_on_gpus, default_backend, is_built_in
from functrans.lowering.progress import watched
from functrans.lowering.report import KernelReport
from functrans.lowering.report_parts import computes_nothing
from functrans.placement import device_put
from functrans.transforms.jit.api import Lowered, jit
from functrans.transforms.meshes import mesh_of
from functrans.typing import PyTree

__all__ = ["Profiler", "profile"]


class Profiler:
    """`functrans.profile(f, *args)` measures, `functrans.profile.compare(a, b)` compares.

    >>> import functrans as ft
    >>> step, = ft.profile(lambda x: x @ x, ft.numpy.ones((64, 64))).steps
    >>> step.kernel.kind
    'gemm'
    """

    __name__ = "profile"

    @public
    def __call__(self, f: Callable[..., Any], *args: PyTree, **kwargs: PyTree) -> Profile:
        """How long each kernel and call of `f`, jitted or not, takes on these arguments, when warm.

        The program runs for 0.3 s; times are means of the faster half of the runs, and add up to
        one. On a GPU each step is run many times in a row. Times are compared with a copy and a
        product of matrices on this machine, measured once. Arguments are not donated. Of programs
        of several devices each collective has its time, its bytes and the rate of the bus. Raises
        ArgumentError for arguments without values, and BackendError for a program that is not
        compiled.

        >>> import functrans as ft
        >>> x = ft.numpy.ones((256, 256))
        >>> profiled = ft.profile(lambda x: ft.numpy.tanh(x @ x), x)
        >>> [step.kernel.kind for step in profiled.steps]
        ['gemm with epilogue']
        >>> print(str(profiled).splitlines()[1].split()[:3])
        ['step', 'time', 'share']
        """
        return _profiled(f, args, kwargs)

    @public
    def compare(self, first: Profile, second: Profile) -> ProfileComparison:
        """The steps of two profiles side by side, the largest differences first.

        Differences add up to that of the runs: `.rows` has them as data. Raises ArgumentError for
        what are no profiles.

        >>> import functrans as ft
        >>> x = ft.numpy.ones((64, 64))
        >>> a, b = (ft.profile(lambda x: n * x @ x, x) for n in (1, 2))
        >>> print(ft.profile.compare(a, b).head.split(":")[0])
        <lambda>
        """
        return compare(first, second)

    def __repr__(self) -> str:
        return "<function functrans.profile>"


def _profiled(f: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Profile:
    lowered, inputs = _runnable(f, args, kwargs)
    mesh = mesh_of(lowered.jaxpr.meshes, inputs)
    if mesh is not None and mesh.size > 1:
        return _profiled_on_mesh(lowered, inputs, mesh)
    if is_built_in(lowered.backend):
        gpu = gpu_of(inputs)
        lowered = lowered.compiled_by(default_backend(gpu))
    else:
        gpu = gpu_of(inputs) if computes_on_gpus(lowered.backend) else None
    if gpu is not None:
        inputs = [device_put(x, f"gpu:{gpu}") for x in inputs]
    with watched(f"profiling {lowered.jaxpr.name}: compiling and running it") as at:
        with config.scope(backend=lowered.backend):
            times = inspected(lowered, lowered.backend).timed_steps(inputs, gpu)
        at.doing = f"profiling {lowered.jaxpr.name}: measuring what the machine can do"
        limits = machine("cpu" if gpu is None else f"gpu:{gpu}")
        report = report_of(lowered, f, args, kwargs)
    if times.steps is None:
        steps = [Timed(k, times.whole) for k in report.kernels]
        return Profile(report, steps, times.whole, limits, times.note or "The program was timed "
                       f"as a whole: {lowered.backend} tells of no steps.")
    kernels = [_as_it_ran(k, runs) for k, runs in
               itertools.zip_longest(report.kernels, times.runs[:len(report.kernels)])]
    steps = [Timed(k, s) for k, s in zip(kernels, times.steps, strict=False)]
    return Profile(report, steps, times.whole, limits, times.note)


def _profiled_on_mesh(lowered: Lowered, inputs: list[Any], mesh: Mesh) -> Profile:
    """Of a program of several devices: collectives, and the kernels of one device between them."""
    name = lowered.jaxpr.name
    with watched(f"profiling {name}: running it, and its collectives by themselves"):
        found = run_on_mesh(jit(partial(_results, lowered.jaxpr)), lowered.jaxpr, inputs, mesh)
    if found.part is None or found.computing is None:
        report = report_of(lowered, lowered, (), {})
        return Profile(report, [], found.seconds, machine(_place(mesh)), NO_APART,
                       found.collectives)
    inner = _profiled(found.part, found.of_one, {})
    by_itself = sum(t.seconds for t in inner.steps)
    scale = found.computing / by_itself if by_itself > 0 else 1.0
    report = replace(inner.report, name=name, mesh=repr(mesh), collectives=found.notes)
    note = (f"Collectives were timed by themselves, kernels on one device, without collectives; "
            f"all devices take {scale:.2f} of that time at once.")
    return Profile(report, [Timed(t.kernel, scale * t.seconds) for t in inner.steps],
                   found.seconds, inner.machine, note, found.collectives, found.computing)


def _results(jaxpr: Jaxpr, *args: Any) -> list[Any]:
    return eval_jaxpr(jaxpr, (), *args)


def _place(mesh: Mesh) -> str:
    device = mesh.ranks[0]
    return "cpu" if device.platform == "cpu" else f"gpu:{device.id}"


def _runnable(f: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
              ) -> tuple[Lowered, list[Any]]:
    """A traced function and the values of its inputs. Raises ArgumentError and BackendError."""
    if isinstance(kwargs.get("target"), str):
        raise ArgumentError("profile has no target: it runs the function where its arguments are.",
                            fix='functrans.device_put(x, "cpu") or "gpu:0"')
    lowered = lowered_of(f, args, kwargs).without_donation()
    inputs = lowered.inputs(*args, **kwargs)
    if len(inputs) != len(lowered.jaxpr.invars):
        raise ArgumentError(f"{lowered.jaxpr.name} was traced for other arguments than these.",
                            fix="arguments as those of functrans.lower, with values")
    if any(isinstance(x, Tracer) for x in inputs):
        raise ArgumentError("profile runs the function, and an argument is traced: it has no value "
                            "yet.", fix="call functrans.profile outside of jit, grad, vmap and "
                                        "other transforms; they may be of the function itself")
    if any(not hasattr(x, "__array__") and not np.isscalar(x) for x in inputs):
        raise ArgumentError("profile runs the function, and an argument has no value.",
                            fix="arrays; or functrans.explain, which takes ShapeDtypeStructs")
    if computes_nothing(lowered.jaxpr):
        raise BackendError(f"{lowered.jaxpr.name} has no steps that can be timed.",
                           why="it computes nothing: its results are its arguments, or constants.",
                           fix="a function that computes on its arguments: "
                               "functrans.profile(lambda x: functrans.numpy.sin(x), x)")
    return lowered, inputs


def _as_it_ran(kernel: KernelReport, runs: int | None) -> KernelReport:
    """A kernel with the runs that were counted, where loops decide how many there are."""
    if runs is None or runs == kernel.runs:
        return kernel
    known = max(kernel.runs, 1)
    flops, moved = (n * runs // known if isinstance(n, int) else n
                    for n in (kernel.flops, kernel.moved))
    return replace(kernel, runs=runs, per="", flops=flops, moved=moved,
                   estimate=kernel.estimate * runs / known)


profile = Profiler()
