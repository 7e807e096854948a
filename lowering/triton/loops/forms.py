"""The forms of a loop on a GPU: a lane a thread, one resident kernel, launches, or the host."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from functools import partial

from functrans.core.jaxpr import Jaxpr, subjaxprs
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
from functrans.lowering.triton.loops.lane_tiles import TILES, lanes_in_tiles
from functrans.lowering.triton.loops.loop_kernel import LoopScope
from functrans.lowering.triton.loops.resident import (
    launched_seconds,
    mapped_scan,
    resident_loop,
)
from functrans.lowering.triton.loops.threads import THREADS, lanes_in_threads
from functrans.primitives.dot import dot_general_p

__all__ = ["LaunchedLoop", "LoopForm", "loop_forms"]

LaunchedLoop = LaunchedScan | DoubleBufferedWhile
LoopForm = Launches | LaunchedLoop | None
"""What computes a loop; None is the host."""


def loop_forms(call: ScanCall | WhileCall, scope: LoopScope, write_body: WriteBody,
               is_unaligned: Callable[[Tensor], bool]) -> list[Form[LoopForm]]:
    """The forms of a loop, and the seconds that each is estimated to take; the host's are unknown.

    Of a loop with a predicate, whose iterations are unknown, they are those of one iteration.
    """
    launched = 0.0
    with contextlib.suppress(UnsupportedKernel):  # a size that is not known
        launched = launched_seconds(call, scope.target)
    forms: list[Form[LoopForm]] = []
    in_one_kernel: list[tuple[str, Callable[[], Form[Launches]]]] = []
    if isinstance(call, ScanCall):
        in_one_kernel.append(("a program an iteration", partial(mapped_scan, call, scope)))
    in_one_kernel.append(("one kernel", lambda: resident_loop(call, scope)[0]))
    is_wide = False
    try:
        threads = lanes_in_threads(call, scope)
    except UnsupportedKernel as error:
        forms.append(Form[LoopForm](THREADS, 0.0, partial(_refused, error)))  # to tell why
    else:
        has_product = _has_product(call.body)
        forms.append(Form[LoopForm](threads.name, (1 + has_product) * threads.seconds,
                                    threads.write))  # each weight is read again by each lane
        is_wide = threads.write().kernels[0].grid[0] > 1 and not has_product
    if is_wide and forms[0].seconds < launched:
        # the others do the same on tiles and with masks: they are made if this one spills
        forms += [Form(name, forms[0].seconds, partial(_made, make))
                  for name, make in in_one_kernel]
    else:
        for _, make in in_one_kernel:
            with contextlib.suppress(UnsupportedKernel):
                forms.append(Form[LoopForm](*make()))
        with contextlib.suppress(UnsupportedKernel):
            launched = resident_loop(call, scope)[1]

    def launches() -> LaunchedLoop:
        return launched_scan(call, write_body, is_unaligned) if isinstance(call, ScanCall) \
            else double_buffered_while(call, write_body, is_unaligned)

    if _has_product(call.body):
        try:
            forms.append(Form[LoopForm](*lanes_in_tiles(call, scope)))
        except UnsupportedKernel as error:
            forms.append(Form[LoopForm](TILES, 0.0, partial(_refused, error)))
    name = "launched step by step" if isinstance(call, ScanCall) else "in turns"
    return [*forms, Form(name, launched, launches),
            Form("computed by the host", math.inf, lambda: None)]



def _refused(error: UnsupportedKernel) -> LoopForm:
    raise error


def _made(make: Callable[[], Form[Launches]]) -> Launches:
    return make().write()


def _has_product(body: Jaxpr) -> bool:
    return any(eqn.primitive is dot_general_p or any(map(_has_product, subjaxprs(eqn)))
               for eqn in body.eqns)
