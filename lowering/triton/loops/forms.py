"""The forms of a loop on a GPU: one resident kernel, launches of its steps, or the host."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable

from functrans.lowering.defects import UnsupportedKernel
from functrans.lowering.loops.tensor import Tensor
from functrans.lowering.schedule.forms import Form
from functrans.lowering.triton.kernels.kernel_source import Launches
from functrans.lowering.triton.loops.double_buffering import (
    DoubleBufferedWhile,
    double_buffered_while,
)
from functrans.lowering.triton.loops.iterations import (
    LaunchedScan,
    ScanCall,
    WhileCall,
    WriteBody,
    launched_scan,
)
from functrans.lowering.triton.loops.loop_kernel import LoopScope
from functrans.lowering.triton.loops.resident import mapped_scan, resident_scan, resident_while

__all__ = ["LaunchedLoop", "LoopForm", "loop_forms"]

LaunchedLoop = LaunchedScan | DoubleBufferedWhile
LoopForm = Launches | LaunchedLoop | None
"""What computes a loop; None is the host."""


def loop_forms(call: ScanCall | WhileCall, scope: LoopScope, write_body: WriteBody,
               is_unaligned: Callable[[Tensor], bool]) -> list[Form[LoopForm]]:
    """The forms of a loop, and the seconds that each is estimated to take; the host's are unknown.

    Of a loop with a predicate, whose iterations are unknown, they are those of one iteration.
    """
    forms: list[Form[LoopForm]] = []
    launched = 0.0
    if isinstance(call, ScanCall):
        with contextlib.suppress(UnsupportedKernel):
            forms.append(Form[LoopForm](*mapped_scan(call, scope)))
    try:
        resident, launched = resident_scan(call, scope) if isinstance(call, ScanCall) \
            else resident_while(call, scope)
        forms.append(Form[LoopForm](*resident))
    except UnsupportedKernel:
        pass  # it is launched, whatever that takes

    def launches() -> LaunchedLoop:
        return launched_scan(call, write_body, is_unaligned) if isinstance(call, ScanCall) \
            else double_buffered_while(call, write_body, is_unaligned)

    name = "launched step by step" if isinstance(call, ScanCall) else "in turns"
    return [*forms, Form(name, launched, launches),
            Form("computed by the host", math.inf, lambda: None)]
