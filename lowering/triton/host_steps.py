"""What a program for a GPU leaves to the host, and why: told at compile time, or refused."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple

from functrans.core import config, dtypes
from functrans.core.cuda_libraries import is_there
from functrans.core.errors import HostStepError, HostStepWarning
from functrans.core.jaxpr import Equation, subjaxprs
from functrans.core.primitive import Primitive
from functrans.core.source import Source, user_source
from functrans.core.table import Table
from functrans.lowering.loops.tensor import dtype_name
from functrans.lowering.triton.libraries.replace import LIBRARIES, is_known
from functrans.lowering.triton.steps.spec import (
    DoubleBufferedSteps,
    HostStep,
    LibraryStep,
    RepeatedSteps,
    Step,
)
from functrans.primitives.check import check_p
from functrans.primitives.schur import hessenberg_p, reflected_qr_p, schur_p, tridiagonal_p
from functrans.primitives.spectral import eig_p
from functrans.primitives.sylvester import triangular_root_p, triangular_sylvester_p

__all__ = ["REASONS", "HostUse", "check_host_steps", "host_uses", "leave_to_host",
           "steps_of_host"]

REASONS: Final[Table[str]] = Table(
    {eig_p: "no library for GPUs computes eigenvalues of general matrices",
     schur_p: "no library for GPUs computes Schur forms",
     **dict.fromkeys((hessenberg_p, tridiagonal_p, reflected_qr_p),
                     "its reflectors have no kernel for GPUs"),
     **dict.fromkeys((triangular_sylvester_p, triangular_root_p),
                     "substitution on both sides has no kernel for GPUs")},
    otherwise="it has a kernel, or is Python")
"""Primitives that the host computes for want of a kernel, and why."""

ALLOW: Final = 'with ft.config.host_steps("allow"): ..., where the copies do not matter'


class HostUse(NamedTuple):
    """An equation that the host evaluates, why, and what brings it to the GPU, if anything does.

    Of a `fallback` a FallbackWarning has told.
    """

    eqn: Equation
    why: str
    fix: str = ""
    fallback: bool = False

    @property
    def text(self) -> str:
        """What to say of it in one line."""
        name = self.eqn.primitive.name
        return f"{name} runs on the host, between copies: {self.why}." + (
            f" {self.fix} brings it to the GPU." if self.fix else "")


def host_uses(steps: Iterable[Step], has_library: Callable[[str], bool] = is_there
              ) -> list[HostUse]:
    """The equations that the host evaluates, each once, but for what is Python by request."""
    return [_use_of(s.call.eqn, s.call.why, has_library) for s in steps_of_host(steps)
            if not _is_asked_for(s.call.eqn)]


def check_host_steps(steps: Iterable[Step], *, warns: bool) -> None:
    """Refuse what the host computes, or where it `warns` tell of it, as `config.host_steps` says.

    Each operation is told of once for a line of the user.
    """
    mode = config.current().host_steps
    if mode == "allow" or (mode == "warn" and not warns):
        return
    for use in host_uses(steps):
        if mode == "error":
            raise HostStepError(
                f"{use.eqn.primitive.name} has to run on the host, which host_steps(\"error\") "
                "refuses.", where=use.eqn.source or user_source(), why=f"{use.why}.",
                fix=use.fix or ALLOW)
        if not use.fallback:
            _tell(use.eqn.primitive, use.eqn.source, use.text)


def leave_to_host(what: str, why: str, source: Source | None) -> None:
    """Refuse a whole program that the host computes, where `config.host_steps` says so."""
    if config.current().host_steps == "error":
        raise HostStepError(f"{what} has to run on the host, which host_steps(\"error\") refuses.",
                            where=source or user_source(), why=f"{why}.", fix=ALLOW)


def steps_of_host(steps: Iterable[Step]) -> list[HostStep]:
    """The steps that the host computes, also inside of loops; one of each equation."""
    return list({step.call.eqn: step for step in _of_host(steps)}.values())


def _of_host(steps: Iterable[Step]) -> Iterator[HostStep]:
    for step in steps:
        if isinstance(step, RepeatedSteps):
            yield from _of_host(step.steps)
        elif isinstance(step, DoubleBufferedSteps):
            for side in step.sides:
                yield from _of_host((*side.holds, *side.body, *side.ends))
        elif isinstance(step, HostStep) and not isinstance(step, LibraryStep):
            yield step


def _is_asked_for(eqn: Equation) -> bool:
    """Whether an equation is Python, or a loop or a branch with Python inside."""
    return "callback" in eqn.params or eqn.primitive is check_p or any(
        _is_asked_for(e) for jaxpr in subjaxprs(eqn) for e in jaxpr.eqns)


def _use_of(eqn: Equation, fallback: str, has_library: Callable[[str], bool]) -> HostUse:
    primitive = eqn.primitive
    if fallback:
        return HostUse(eqn, f"no kernel of it could be had ({fallback})", fallback=True)
    if primitive in REASONS:
        return HostUse(eqn, REASONS[primitive])
    missing = [x for x in LIBRARIES.get(primitive, ()) if not has_library(x)]
    if missing and is_known(eqn):
        packages = " ".join(f"nvidia-{x}" for x in LIBRARIES[primitive])
        names = " and ".join(NAMES[x] for x in missing)
        return HostUse(eqn, f"{names} cannot be loaded",
                       f"`pip install {packages}` (or \"functrans[gpu-libraries]\")")
    unknown = {a.aval.dtype.name: None for a in (*eqn.invars, *eqn.outvars)
               if dtype_name(a.aval.dtype) is None and dtypes.kind(a.aval.dtype) != "c"}
    if unknown:
        return HostUse(eqn, f"kernels have no {' and no '.join(unknown)}")
    inside = [use for jaxpr in subjaxprs(eqn) for e in jaxpr.eqns
              if (use := _use_of(e, "", has_library)).why != NO_KERNEL]
    if inside:
        return HostUse(eqn, f"in it {inside[0].eqn.primitive.name} does, as {inside[0].why}")
    return HostUse(eqn, NO_KERNEL)


NAMES: Final = {"cufft": "cuFFT", "cublas": "cuBLAS", "cusolver": "cuSOLVER"}
NO_KERNEL: Final = "there is no kernel of it for such operands"


def _tell(primitive: Primitive, source: Source | None, text: str) -> None:
    line = source or user_source()
    place = ("functrans", 0) if line is None else (line.filename, line.line)
    if (primitive, *place) not in _told:
        warnings.warn_explicit(f"functrans: {text}", HostStepWarning, *place)
        _told.add((primitive, *place))


_told: set[tuple[Primitive, str, int]] = set()
