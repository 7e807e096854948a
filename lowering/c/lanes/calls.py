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
__asm__(
  ".text\\n\\t.p2align 4\\nft_saved_stops:\\n\\t"
  "pushq %rbp; movq %rsp, %rbp; pushq %rcx; pushq %rdx; pushq %rsi; pushq %rdi; pushq %r8; "
  "pushq %r9; pushq %r10; pushq %r11; pushq %rax; andq $-64, %rsp; subq $3072, %rsp; "
  "xorl %eax, %eax; movq %rax, 512(%rsp); movq %rax, 520(%rsp); movq %rax, 528(%rsp); "
  "movq %rax, 536(%rsp); movq %rax, 544(%rsp); movq %rax, 552(%rsp); movq %rax, 560(%rsp); "
  "movq %rax, 568(%rsp); movl $0xe7, %eax; xorl %edx, %edx; xsave64 (%rsp); "
  "call *-72(%rbp); movq %rax, -72(%rbp); movl $0xe7, %eax; xorl %edx, %edx; "
  "xrstor64 (%rsp); leaq -72(%rbp), %rsp; popq %rax; popq %r11; popq %r10; popq %r9; "
  "popq %r8; popq %rdi; popq %rsi; popq %rdx; popq %rcx; popq %rbp; ret\\n");
static inline int ft_stops(void *ctx) {
  i64 stops = (i64)ft->stops;
  __asm__ volatile("leaq -128(%%rsp), %%rsp\\n\\tcall ft_saved_stops\\n\\tleaq 128(%%rsp), %%rsp"
                   : "+a"(stops) : "D"(ctx) : "memory", "cc");
  return (int)stops;
}
#else
static inline int ft_stops(void *ctx) { return ft->stops(ctx); }
#endif
"""
"""Whether a loop is to end, by a call that keeps all registers.

A call in a loop, however seldom, otherwise keeps the state of the loop in memory: all registers of
vectors are the callee's. A Mandelbrot set took twice as long. ft_saved_stops(rdi = ctx, rax = the
function) gives rax and changes nothing else. In C it would need the attribute `target`, for which
gcc sets itself up once more: 16 ms for every unit.
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
