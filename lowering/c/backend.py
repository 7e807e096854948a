"""The CPU backend: a jaxpr becomes one C program in a shared object."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from functrans._runtime import Program
from functrans.core import dtypes
from functrans.core.dims import Dim, Size
from functrans.core.errors import BackendError
from functrans.core.jaxpr import Equation, Jaxpr, subjaxprs
from functrans.core.sizes import known_sizes, substitute
from functrans.lowering.analysis import cost_of, memory_of
from functrans.lowering.backend import Executable, register_backend
from functrans.lowering.c.cache import load_or_compile, program_cache
from functrans.lowering.c.decided import Unsupported
from functrans.lowering.c.isa import COMMON_FLAGS, host_isa
from functrans.lowering.c.program import ProgramText, write_program
from functrans.lowering.c.toolchain import CompilerMissing
from functrans.lowering.graph import Graph, graph_of
from functrans.lowering.loops.call import HostCall
from functrans.lowering.passes.pipeline import simplify
from functrans.lowering.reference import ReferenceBackend
from functrans.primitives.control_flow.bodies import leaves_unsized

__all__ = ["CBackend", "CExecutable"]


class CExecutable:
    """A compiled program and what is known of it."""

    def __init__(self, jaxpr: Jaxpr, simplified: Jaxpr, graph: Graph, text: ProgramText,
                 program: Program) -> None:
        self.jaxpr = jaxpr
        self.simplified = simplified
        self.graph = graph
        self.text = text
        self.program = program
        self.run: Callable[[Sequence[np.ndarray[Any, Any]]], list[np.ndarray[Any, Any]]] = program

    def as_text(self) -> str:
        """The simplified jaxpr, what was not fused and why, and the C program."""
        notes = [f"{n.source or 'somewhere'}: {n.tensor} is computed apart: {n.reason}"
                 for schedule in self.text.schedules for n in schedule.notes]
        return "\n".join([str(self.simplified), "", *notes, "", self.text.text])

    def cost_analysis(self) -> dict[str, Size]:
        return cost_of(self.simplified)

    def memory_analysis(self) -> dict[str, Size]:
        known = memory_of(self.simplified)
        args, outs = known["arguments"], known["outputs"]
        temporaries = self.text.arena_bytes
        return {"arguments": args, "outputs": outs, "temporaries": temporaries,
                "peak": args + outs + temporaries}


class CBackend:
    """Compiles to C with explicit vectors; without a C compiler, NumPy evaluates instead."""

    name = "c"

    def __init__(self) -> None:
        self._fallback = ReferenceBackend()
        self._has_compiler = True

    def compile(self, jaxpr: Jaxpr, donated: frozenset[int] = frozenset(),
                require_inplace: bool = False) -> Executable:
        if not self._has_compiler:
            return self._fallback.compile(jaxpr, donated, require_inplace)
        simplified = simplify(jaxpr)
        sizes = size_sources(simplified)
        if sizes is None or not simplified.eqns or leaves_unsized(simplified, simplified.outvars):
            # the runtime makes room for results before it runs a program that decides their sizes
            return self._fallback.compile(jaxpr, donated, require_inplace)
        names = {name: f"z[{k}]" for k, name in enumerate(sizes)}
        graph = graph_of(simplified)
        isa = host_isa()
        try:
            text = write_program(graph, isa, names, donated, sorted(simplified.decided_names))
        except Unsupported:
            return self._fallback.compile(jaxpr, donated, require_inplace)
        if require_inplace and text.copied:
            raise _copies_needed(text)
        try:
            path = load_or_compile([text.text], [*COMMON_FLAGS, *isa.flags], program_cache())
        except CompilerMissing as error:
            self._has_compiler = False
            warnings.warn(f"{error} Until then NumPy evaluates compiled functions, slowly.",
                          RuntimeWarning, stacklevel=2)
            return self._fallback.compile(jaxpr, donated, require_inplace)
        program = Program(
            str(path), [spec(v.aval) for v in simplified.invars], text.constants,
            [(*spec(a.aval), alias) for a, alias in zip(simplified.outvars, text.aliases)],
            text.arena_bytes if isinstance(text.arena_bytes, int) else 0,
            list(sizes.values()), text.libs,
            [host_spec(call, simplified) for call in text.hosts], text.heavy,
            tuple(sorted(a for a in text.aliases if a >= 0)))
        return CExecutable(jaxpr, simplified, graph, text, program)


def _copies_needed(text: ProgramText) -> BackendError:
    tensor, reason = text.copied[0]
    return BackendError(f"an update of a {tensor.dtype}{list(tensor.shape)} needs a copy.",
                        where=tensor.source, why=f"{reason}.",
                        fix="jit(f, donate_argnums=...) gives the program the memory of arguments "
                            "that are not used again")


def spec(aval: Any) -> tuple[np.dtype[Any], tuple[int | None, ...]]:
    """The dtype and shape of a value as the runtime takes them: None for a symbolic size."""
    return aval.dtype, tuple([n if isinstance(n, int) else None for n in aval.shape])


def size_sources(jaxpr: Jaxpr) -> dict[str, tuple[int, int]] | None:
    """For every named size the input and axis that tell it; None when one is not told."""
    found: dict[str, tuple[int, int]] = {}
    for k, v in enumerate(jaxpr.invars):
        for axis, n in enumerate(v.aval.shape):
            if isinstance(n, Dim) and n.is_name:
                found.setdefault(n.name, (k, axis))
    return found if jaxpr.size_names - jaxpr.decided_names <= found.keys() else None


def host_spec(call: HostCall, jaxpr: Jaxpr) -> tuple[Any, ...]:
    """The callable of an equation that Python evaluates, with the types of its arrays."""
    eqn = call.eqn
    return (partial(_evaluate, eqn), [spec(a.aval) for a in eqn.invars],
            [spec(v.aval) for v in eqn.outvars], not _keeps_arguments(eqn))


def _evaluate(eqn: Equation, *arrays: np.ndarray[Any, Any]) -> list[np.ndarray[Any, Any]]:
    params: Mapping[str, Any] = eqn.params
    if any(isinstance(n, Dim) for v in (*eqn.invars, *eqn.outvars) for n in v.aval.shape):
        sizes = known_sizes([a.aval for a in eqn.invars], [x.shape for x in arrays])
        params = {k: substitute(v, sizes) for k, v in params.items()}
    halves = eqn.primitive.widens_halves and any(dtypes.is_half(a.aval.dtype) for a in eqn.invars)
    with np.errstate(all="ignore"):
        out = (eqn.primitive.run if halves else eqn.primitive.evaluate)(*arrays, **params)
    outs = out if eqn.primitive.multiple_results else [out]
    return [np.asarray(o, v.aval.dtype) for o, v in zip(outs, eqn.outvars, strict=True)]


def _keeps_arguments(eqn: Equation) -> bool:
    """Whether user code sees the arguments, and may keep them."""
    return "callback" in eqn.params or any(
        map(_keeps_arguments, (e for body in subjaxprs(eqn) for e in body.eqns)))


register_backend(CBackend())
