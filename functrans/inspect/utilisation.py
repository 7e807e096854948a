"""Where a machine is idle in a program: the steps that matter and use little of it, and why."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from functrans.lowering.report import KernelReport, Report

__all__ = ["idle_by_estimate", "idle_on_cpu", "idle_steps"]

SHARE = 0.1
"""Of a run: steps that take less are not told."""
REACHED = 0.2
"""Of what the machine can do: steps that reach more are not told."""
SHORT = 5e-6
"""Seconds of a launch that is over before its programs fill the GPU."""

MANY = 8
"""Fewer of such launches are not told: a small program has no others."""

Told = Sequence[tuple[KernelReport, float]]
"""Steps with their seconds in a run."""


def idle_steps(report: Report, steps: Told, seconds: float,
               share: Callable[[KernelReport, float], tuple[float, str]]) -> list[str]:
    """A line for each step of a GPU's program that uses little of it for a good part of a run.

    `share` says what part of the machine's bandwidth or arithmetic a step reaches, the larger.
    Launches that are short are told together.
    """
    if not report.multiprocessors or seconds <= 0:
        return []
    found, short = [], []
    for kernel, taken in steps:
        reached, of = share(kernel, taken)
        few = 0 < kernel.programs < report.multiprocessors
        if not kernel.programs or not kernel.runs or (reached >= REACHED and not few):
            continue
        if taken / kernel.runs <= SHORT:
            short.append((kernel, taken))
        elif taken >= SHARE * seconds:
            uses = f"holds {_counted(kernel.programs, 'program')} on {report.multiprocessors} " \
                   "multiprocessors" if few else f"reaches {reached:.0%} of {of}"
            found.append(f"{_place(kernel)} {uses}, for {_part(taken, seconds)}: "
                         f"{_why(report, kernel, few, taken / kernel.runs)}")
    taken = sum(t for _, t in short)
    runs = sum(k.runs for k, _ in short)
    if runs >= MANY and taken >= SHARE * seconds:
        found.append(f"{runs} launches of at most {1e6 * SHORT:.0f} us each: "
                     f"{_part(taken, seconds)}. They end before their programs fill the GPU; "
                     "larger arrays, or vmap over more of them, take hardly longer")
    return found


def idle_on_cpu(report: Report, steps: Told, seconds: float,
                share: Callable[[KernelReport, float], tuple[float, str]]) -> list[str]:
    """A line for each step of a CPU's program that uses little of it for a good part of a run."""
    found = []
    for kernel, taken in steps:
        reached, of = share(kernel, taken)
        known = kernel.moved != 0 or kernel.flops != 0
        if taken < SHARE * seconds or (known and reached >= REACHED) or kernel.on_host:
            if kernel.on_host and taken >= SHARE * seconds:
                found.append(f"{_place(kernel)} runs on the host for {_part(taken, seconds)}: "
                             f"{kernel.on_host}")
            continue
        uses = f"reaches {reached:.0%} of {of}" if known else "does work that is not known"
        found.append(f"{_place(kernel)} {uses}, for {_part(taken, seconds)}: "
                     f"{_why_on_cpu(kernel, taken)}")
    return found


def _why_on_cpu(kernel: KernelReport, taken: float) -> str:
    if kernel.runs > 1 and taken / kernel.runs < SHORT_ON_CPU:
        return f"each of its {kernel.runs} runs takes {1e9 * taken / kernel.runs:.0f} ns, of " \
               "which a good part is the call; more work in an iteration, or vmap over many loops"
    if "no kernel of lanes" in kernel.about:
        return "it is a loop step by step; vmap over many of them would be a kernel of lanes"
    if taken / max(kernel.runs, 1) < SHORT_ON_CPU:
        return "it is short: its arrays are small"
    if "one element at a time" in kernel.about:
        return "it computes one element at a time: it writes to computed places, or rows are short"
    if "in one thread" in kernel.about:
        return "it runs in one thread, in order"
    if "gemm" in kernel.kind:
        return "its matrices are small, or have a short side; products of more rows reach more"
    return "many instructions compute each element, or its elements lie apart in memory"


SHORT_ON_CPU = 2e-6
"""Seconds of a step that is over before threads would have begun."""


def idle_by_estimate(report: Report) -> list[str]:
    """The lines of `idle_steps` for a program that has not run."""
    steps = [(k, k.estimate) for k in report.kernels if k.estimate]
    # estimates are of kernels that reach all that their programs can, once these are there
    return idle_steps(report, steps, sum(t for _, t in steps), lambda kernel, taken: (
        float(taken / kernel.runs > SHORT), ""))


def _why(report: Report, kernel: KernelReport, few: bool, each: float) -> str:
    """Of a kernel whose launches take `each` seconds."""
    primitives = {report.simplified.eqns[e].primitive.name for e in kernel.equations}
    if primitives & {"scan", "while"}:
        return "it is a loop in one kernel, whose iterations wait for each other; vmap over many " \
               "such loops fills the GPU"
    if kernel.spills:
        return f"{kernel.spills} numbers of each thread are in memory, for want of registers"
    if few:
        return "what it computes is small, or a sum that one program walks along"
    if kernel.runs > 1 and each <= 4 * SHORT:
        return f"each of its {kernel.runs} launches takes {1e6 * each:.0f} us, of which many are " \
               "its beginning and its end"
    indexed = sorted(primitives & INDEXED)
    if indexed:
        return f"{' and '.join(indexed)} of elements that lie apart: each is a transaction of " \
               "memory"
    return "its elements are read or written apart from each other, many instructions compute " \
           "each of them, or it waits for its own results"


INDEXED = {"gather", "scatter", "scatter_add", "scatter_mul", "scatter_min", "scatter_max", "sort"}


def _place(kernel: KernelReport) -> str:
    return f"{kernel.name} ({kernel.lines[0].place})" if kernel.lines else kernel.name


def _part(taken: float, seconds: float) -> str:
    return f"{min(taken / seconds, 1):.0%} of the run"


def _counted(n: int, one: str) -> str:
    return f"{n} {one}{'s' * (n != 1)}"
