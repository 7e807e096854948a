"""From a jaxpr to what its program is made of: C text, constants and calls of Python.

Imported by the first program that the disk cache does not know: the passes, the rules, the schedule
and the writers of C take 20 ms to import. (Dataclasses that nobody compares or prints have neither
method: a frozen one with both takes 0.37 ms to make, one without 0.05.)
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from functrans.core import config, dtypes
from functrans.core.dims import Dim, Size
from functrans.core.jaxpr import Equation, Jaxpr, decided_names, size_names, subjaxprs
from functrans.core.record import Record
from functrans.core.sizes import known_sizes, learned_names, shape_names, substitute
from functrans.lowering.analysis import cost_of, memory_of
from functrans.lowering.c.baseline import BASELINE_FLAGS, QuietChildren, baseline_units
from functrans.lowering.c.dynamic_buffers import UnsupportedProgram
from functrans.lowering.c.functions import graph_with_lanes
from functrans.lowering.c.interface import spec
from functrans.lowering.c.isa import COMMON_FLAGS, Isa
from functrans.lowering.c.program import FunctionWriter, ProgramText, write_program
from functrans.lowering.c.toolchain import (
    Children,
    CompilerError,
    CompilerMissing,
    compile_shared,
    compiled_isa,
    compiler_identity,
    is_clang,
)
from functrans.lowering.garbage import collector_paused
from functrans.lowering.loops.tensor import HostCall
from functrans.lowering.memory.aliasing import copies_needed
from functrans.lowering.memory.limit import LoweredProgram, within_limit
from functrans.lowering.passes.complex_parts import split_complex
from functrans.lowering.passes.multiply_adds import contract_products
from functrans.lowering.passes.narrow_numbers import in_bytes
from functrans.lowering.passes.narrow_products import with_narrow_products
from functrans.lowering.passes.networks.decide import Decision
from functrans.lowering.passes.pass_log import PassLog, recorded
from functrans.lowering.passes.pipeline import simplify
from functrans.lowering.passes.rematerialize import Prices
from functrans.lowering.report import Value
from functrans.lowering.report_parts import peak_of, timeline_of
from functrans.lowering.schedule.recomputation_prices import CPU_PRICES, cheaper_memory
from functrans.lowering.store.cache import FORMAT, Cache, digest
from functrans.primitives.control_flow.bodies import leaves_unsized

__all__ = [
    "CompilerError",
    "CompilerMissing",
    "LoweredToC",
    "baseline_units",
    "build_fully",
    "compiled",
    "in_real_numbers",
    "load_or_compile",
    "lower",
]


class LoweredToC(Record, frozen=False, eq=False, repr=False):
    """A program as text, and the inputs and axes that tell its symbolic sizes."""

    simplified: Jaxpr
    text: ProgramText
    sizes: list[tuple[int, int]]
    decisions: list[Decision]
    plan: str = ""
    """What was done for a limit of memory."""

    @property
    def hosts(self) -> list[tuple[Any, ...]]:
        return [host_spec(call) for call in self.text.hosts]

    def as_text(self) -> str:
        """The simplified jaxpr, what was materialised and what was not, what was not fused and
        why, and the C program."""
        notes = [str(n) for schedule in self.text.schedules for n in schedule.notes]
        return "\n".join([str(self.simplified), "", *map(str, self.decisions), self.plan, *notes,
                          "", self.text.text])

    def cost_analysis(self) -> dict[str, Size]:
        return cost_of(self.simplified)

    def memory_analysis(self) -> dict[str, Size]:
        known = memory_of(self.simplified)
        args, outs = known["arguments"], known["outputs"]
        temporaries = self.text.arena_bytes
        shared = sum([v.aval.nbytes for v, alias in zip(
            self.simplified.outvars, self.text.aliases, strict=True) if alias >= 0], start=0)
        return {"arguments": args, "outputs": outs, "temporaries": temporaries, "donated": shared,
                "peak": args + outs + temporaries - shared}


@collector_paused()
def lower(jaxpr: Jaxpr, donated: frozenset[int], timed: bool = False,
          isa: Isa | None = None, plain: bool = False,
          log: PassLog | None = None) -> LoweredToC | None:
    """The program of a jaxpr; None where the runtime could not run it.

    A `timed` one notes when its steps are done; `isa` is that of this machine unless given. In a
    `plain` one each value has a kernel of its own. What the passes do is noted in a `log`.
    """
    decisions: list[Decision] = []
    jaxpr = recorded(log, "narrow products", jaxpr, with_narrow_products)
    jaxpr = recorded(log, "narrow numbers as bytes", jaxpr, in_bytes)
    simplified = in_real_numbers(simplify(jaxpr, log, decisions=decisions), log)
    isa = isa or compiled_isa()
    if isa.fma:
        simplified = recorded(log, "multiply-adds", simplified, contract_products)
    sizes = size_sources(simplified)
    if sizes is None or not simplified.eqns or leaves_unsized(simplified, simplified.outvars):
        # the runtime makes room for results before it runs a program that decides their sizes
        return None
    names = {name: f"z[{k}]" for k, name in enumerate(sizes)}

    def lowered(program: Jaxpr, prices: Prices) -> LoweredToC:
        text = write_program(graph_with_lanes(program, prices=prices), isa, names,
                             donated, sorted(program.decided_names), timed, plain, prices)
        return LoweredToC(program, text, list(sizes.values()), decisions)

    limit = config.current().memory_limit
    try:
        if limit is None:
            found = lowered(simplified, CPU_PRICES)
            if any(r.is_spared for r in found.text.main.graph.residuals):
                # in which steps a chain is divided only the schedule knows
                kept = lowered(simplified, replace(CPU_PRICES, spare=0.0))
                if kept.text.arena_bytes <= found.text.arena_bytes:
                    found = kept
        else:
            found, said = within_limit(
                simplified, limit, list(cheaper_memory(CPU_PRICES)),
                lambda plan: _measured(lowered(plan.program, plan.prices)),
                config.current().chunks_batches)
            found.plan = said
    except UnsupportedProgram:
        return None
    return found if all(_tells_sizes(call.eqn) for call in found.text.hosts) else None


def _measured(program: LoweredToC) -> LoweredProgram[LoweredToC]:
    return LoweredProgram(program, program.memory_analysis(), lambda: max(
        _at_peak(program.text.main), key=lambda v: v.nbytes, default=None))


def in_real_numbers(simplified: Jaxpr, log: PassLog | None = None) -> Jaxpr:
    """A simplified program in real numbers, simplified."""
    name = "complex numbers as pairs"
    split = recorded(log, name, simplified, split_complex)
    if split is simplified:
        return simplified
    # that moves arrays after `complex`: split these, too
    return recorded(log, name, simplify(split, log), split_complex)


def _at_peak(main: FunctionWriter) -> Iterator[Value]:
    """The values at the fullest steps of a function and of bodies in it, with their lines."""
    most = peak_of(timeline_of(main.blocks, (), ()), ())
    yield from [v for v in most.values if v.line] if most else ()
    for bodies in main.bodies.values():
        for body in bodies:
            yield from _at_peak(body)


def compiled(lowered: LoweredToC, require_inplace: bool, cache: Cache,
             units: Sequence[str] | None = None) -> Path:
    """The shared object of a program, or of its baseline build, which has units of its own. Raises
    CompilerMissing, and BackendError where `require_inplace` is asked for and an update needs a
    copy."""
    if require_inplace and lowered.text.copied:
        raise copies_needed(*lowered.text.copied[0])
    if units is not None:
        flags = [*COMMON_FLAGS, *BASELINE_FLAGS, *compiled_isa().flags]
        return load_or_compile(units, flags, cache)
    return load_or_compile(lowered.text.units, flags_of(lowered.text), cache)


def build_fully(text: ProgramText, cache: Cache) -> Path:
    """The shared object of a program whose baseline build runs meanwhile."""
    return load_or_compile(text.units, flags_of(text), cache, QuietChildren)


def flags_of(text: ProgramText) -> list[str]:
    """The flags that a program is compiled with."""
    own = () if is_clang() else text.flags
    return [*COMMON_FLAGS, *own, *compiled_isa().flags]


def size_sources(jaxpr: Jaxpr) -> dict[str, tuple[int, int]] | None:
    """For every named size the input and axis that tell it; None when one is not told."""
    found: dict[str, tuple[int, int]] = {}
    for k, v in enumerate(jaxpr.invars):
        for axis, n in enumerate(v.aval.shape):
            if isinstance(n, Dim) and n.is_name:
                found.setdefault(n.name, (k, axis))
    return found if jaxpr.size_names - jaxpr.decided_names <= found.keys() else None


def host_spec(call: HostCall) -> tuple[Any, ...]:
    """The callable of an equation that Python evaluates, with the types of its arrays."""
    eqn = call.eqn
    return (partial(_evaluate, eqn), [spec(a.aval) for a in eqn.invars],
            [spec(v.aval) for v in eqn.outvars], not _keeps_arguments(eqn))


def _tells_sizes(eqn: Equation) -> bool:
    """Whether the operands tell Python the sizes of the results: it is given nothing else."""
    names = shape_names([v.aval.shape for v in eqn.outvars]) | size_names(tuple(
        eqn.params.values()))
    return names - decided_names(eqn) <= learned_names([a.aval for a in eqn.invars])


def _evaluate(eqn: Equation, *arrays: np.ndarray[Any, Any]) -> list[np.ndarray[Any, Any]]:
    params: Mapping[str, Any] = eqn.params
    if any(isinstance(n, Dim) for v in (*eqn.invars, *eqn.outvars) for n in v.aval.shape):
        sizes = known_sizes([a.aval for a in eqn.invars], [x.shape for x in arrays])
        params = {k: substitute(v, sizes) for k, v in params.items()}
    halves = eqn.primitive.widens_halves and any(dtypes.is_narrow(a.aval.dtype) for a in eqn.invars)
    with np.errstate(all="ignore"):
        out = (eqn.primitive.run if halves else eqn.primitive.evaluate)(*arrays, **params)
    outs = out if eqn.primitive.multiple_results else [out]
    return [np.asarray(o, v.aval.dtype) for o, v in zip(outs, eqn.outvars, strict=True)]


def _keeps_arguments(eqn: Equation) -> bool:
    """Whether user code sees the arguments, and may keep them."""
    return "callback" in eqn.params or any(
        map(_keeps_arguments, (e for body in subjaxprs(eqn) for e in body.eqns)))


def load_or_compile(sources: Sequence[str], flags: Sequence[str], cache: Cache,
                    processes: type[Children] = Children) -> Path:
    """The shared object of some C texts, from the cache or compiled now.

    Raises CompilerMissing and CompilerError.
    """
    key = digest(FORMAT, os.uname().machine, compiler_identity(), *flags, "", *sources)
    found = cache.find(key)
    if found is not None:
        return found
    return cache.add(key, lambda path: compile_shared(sources, flags, path, processes))
