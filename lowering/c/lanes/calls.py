"""The call of a kernel of lanes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from functrans.lowering.c.calls import prepare_call, write_call
from functrans.lowering.c.lanes.kernel import LaneText, write_lanes
from functrans.lowering.rules.lanes import LaneLoop
from functrans.lowering.schedule.cpu_target import SERVER

if TYPE_CHECKING:
    from functrans.lowering.c.program import FunctionWriter

__all__ = ["LaneText"]

MOST_HELD: Final = 12
"""Values that a step of a loop reads, of those that fit in 32 registers with what it computes."""
STOPS = """\
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
static __attribute__((noinline, used, no_caller_saved_registers, target("general-regs-only")))
int ft_saved_stops(void *ctx) {
  char area[3072] __attribute__((aligned(64)));
  for (int k = 0; k < 8; k++) ((volatile u64 *)(area + 512))[k] = 0;
  __asm__ volatile("xsave64 %0" : "+m"(area) : "a"(0xe7), "d"(0) : "memory");
  const int stops = ft->stops(ctx);
  __asm__ volatile("xrstor64 %0" : : "m"(area), "a"(0xe7), "d"(0) : "memory");
  return stops;
}
static inline int ft_stops(void *ctx) {
  i64 stops;
  __asm__ volatile("leaq -128(%%rsp), %%rsp\\n\\tcall *%1\\n\\tleaq 128(%%rsp), %%rsp"
                   : "=&a"(stops) : "r"(ft_saved_stops), "D"(ctx) : "memory", "cc");
  return (int)stops;
}
#else
static inline int ft_stops(void *ctx) { return ft->stops(ctx); }
#endif
"""
"""Whether a loop is to end, by a call that keeps all registers.

A call in a loop, however seldom, otherwise keeps the state of the loop in memory: all registers of
vectors are the callee's. A Mandelbrot set took twice as long.
"""


@prepare_call.register(LaneLoop)
def _(call: LaneLoop, out: FunctionWriter) -> None:
    text = out.lanes[call] = write_lanes(call, out.prelude)
    out.work += text.count * text.work
    out.module.has_large_state = bool(out.module.has_large_state) or text.held > MOST_HELD
    if "ft_stops(" in text.text:
        out.module.declare(STOPS)
    out.module.is_bounded &= "for (;;)" not in text.text


@write_call.register(LaneLoop)
def _(call: LaneLoop, out: FunctionWriter, step: int) -> None:
    text = out.lanes[call]
    name = out.module.kernel_name(text.text)
    if text.single != text.text:
        out.module.singles[text.text] = text.single
    pointers = ", ".join([*[out.where[t] for t in text.operands], "ctx", "&failed"])
    work = text.count * text.work
    grain = max(1, SERVER.grain_work // text.work)
    out.line(f"{{ i64 failed = 0; void *a[] = {{{pointers}}}; const int stopped = ft_run(ctx, "
             f"{name}, a, {text.count}, {grain}, {work}); if (failed || stopped) return "
             "failed ? failed : 1; }")
